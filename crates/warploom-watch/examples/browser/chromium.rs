//! A Chromium without a window, steered over a pipe.
//!
//! Its protocol for tools talks over file descriptors 3 and 4, which a shell makes of the standard
//! ones: no port, no other program, nothing to install beside the browser.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::{Value, json};
use warploom_watch::recording::Picture;

/// Long enough for a slow machine; whoever waits longer waits for nothing.
const PATIENCE: Duration = Duration::from_mins(1);

/// A browser with one page.
pub(crate) struct Chromium {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// What came while something else was waited for.
    kept: VecDeque<Value>,
    session: Option<String>,
    asked: u64,
    _profile: tempfile::TempDir,
}

/// Rows of colours, 8 bits each.
pub(crate) struct Pixels {
    pub(crate) width: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// The colours of a part, left to right and top to bottom.
    pub(crate) fn part(&self, [x, y, width, height]: [usize; 4]) -> Vec<[u8; 3]> {
        let mut colours = Vec::new();
        for row in y..y + height {
            for column in x..x + width {
                let at = (row * self.width + column) * self.channels;
                if let Some([r, g, b, ..]) = self.bytes.get(at..at + self.channels) {
                    colours.push([*r, *g, *b]);
                }
            }
        }
        colours
    }
}

impl Chromium {
    pub(crate) fn start(program: &Path) -> Result<Self, Failed> {
        let profile = tempfile::tempdir()?;
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 >&2"])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-first-run",
                "--disable-gpu",
            ])
            // In containers there is neither a user for its sandbox nor a large /dev/shm.
            .args([
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args([
                "--force-device-scale-factor=1",
                "--disable-background-networking",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("stdin is piped")?;
        let output = child.stdout.take().ok_or("stdout is piped")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut text = Vec::new();
            while output.read_until(0, &mut text).is_ok_and(|read| read > 0) {
                text.pop();
                let sent = serde_json::from_slice(&text).map(|message| sender.send(message));
                if !matches!(sent, Ok(Ok(()))) {
                    return;
                }
                text.clear();
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            kept: VecDeque::new(),
            session: None,
            asked: 0,
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach)?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// A question and its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failed> {
        self.asked += 1;
        let id = self.asked;
        let mut question = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            question["sessionId"] = json!(session);
        }
        self.input.write_all(&serde_json::to_vec(&question)?)?;
        self.input.write_all(&[0])?;
        let mut answer = self.wait(method, |message| message["id"] == id)?;
        if !answer["error"].is_null() {
            return Err(format!("{method}: {}", answer["error"]).into());
        }
        Ok(answer["result"].take())
    }

    fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value, Failed> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(rest) {
                Ok(message) if fits(&message) => return Ok(message),
                Ok(message) => self.kept.push_back(message),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("{what}: no answer within {PATIENCE:?}").into());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.try_wait()?;
                    return Err(format!("{what}: the browser went away ({status:?})").into());
                }
            }
        }
    }

    /// Opens a file, in a window of this size, light or dark.
    pub(crate) fn open(&mut self, file: &Path, size: [u32; 2], scheme: &str) -> Result<(), Failed> {
        let [width, height] = size;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", &metrics)?;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.ask("Emulation.setEmulatedMedia", &media)?;
        let url = format!("file://{}", file.canonicalize()?.display());
        self.ask("Page.navigate", &json!({ "url": url }))?;
        let is_loaded = |message: &Value| message["method"] == "Page.loadEventFired";
        if !self.kept.iter().any(is_loaded) {
            let event = self.wait("loading the page", is_loaded)?;
            self.kept.push_back(event);
        }
        Ok(())
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value, Failed> {
        let question =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.ask("Runtime.evaluate", &question)?;
        match &answer["exceptionDetails"] {
            Value::Null => Ok(answer["result"]["value"].take()),
            error => Err(format!("{expression}: {error}").into()),
        }
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) -> Result<(), Failed> {
        let text = if key.len() == 1 { key } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "text": if kind == "keyDown" { text } else { "" } });
            self.ask("Input.dispatchKeyEvent", &event)?;
        }
        self.frame()
    }

    /// An event of the mouse at a point of the window.
    pub(crate) fn mouse(
        &mut self,
        kind: &str,
        [x, y]: [f64; 2],
        more: &Value,
    ) -> Result<(), Failed> {
        let mut event = json!({ "type": kind, "x": x, "y": y });
        if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
            event.extend(more.clone());
        }
        self.ask("Input.dispatchMouseEvent", &event)?;
        self.frame()
    }

    /// Until what was asked for is drawn.
    pub(crate) fn frame(&mut self) -> Result<(), Failed> {
        let twice = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";
        self.value(twice).map(drop)
    }

    /// What the page complained about, and what it asked of the network.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        while let Ok(message) = self.messages.try_recv() {
            self.kept.push_back(message);
        }
        let complaint = |message: &Value| {
            let params = &message["params"];
            match message["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" => Some(params.to_string()),
                "Log.entryAdded" => Some(params["entry"].to_string()),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str()?;
                    let is_own = url.starts_with("file://") && params["type"] == "Document";
                    (!is_own && !url.starts_with("data:")).then(|| format!("asked for {url}"))
                }
                _ => None,
            }
        };
        self.kept.iter().filter_map(complaint).collect()
    }

    /// The whole page as a picture, kept as a file.
    pub(crate) fn picture(&mut self, file: &Path) -> Result<Pixels, Failed> {
        let mut shot = self.ask(
            "Page.captureScreenshot",
            &json!({ "captureBeyondViewport": true }),
        )?;
        let Picture(png) = serde_json::from_value(shot["data"].take())?;
        std::fs::write(file, &png)?;
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info()?;
        let room = reader.output_buffer_size().ok_or("a picture too large")?;
        let mut bytes = vec![0; room];
        let info = reader.next_frame(&mut bytes)?;
        let (width, channels) = (info.width as usize, info.color_type.samples());
        Ok(Pixels {
            width,
            channels,
            bytes,
        })
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

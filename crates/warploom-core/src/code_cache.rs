//! Compiled code on disk, for backends whose compilers take long.
//!
//! A file is named by a hash of everything the binary depends on, and holds that everything too: a
//! binary is used only when it is an exact match, so the hash need not withstand an attacker, only
//! never change. Files are written under another name and then renamed, so a reader sees a whole
//! file or none, whoever else writes. Whatever else is found (torn, damaged, of another version)
//! counts as nothing and is written anew. No failure here ever fails a kernel.
//!
//! ```text
//! magic 8 | version u32 | key length u64 | binary length u64 | checksum u128 | key | binary
//! ```
//! Numbers are little-endian; the checksum is over key and binary.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const MAGIC: [u8; 8] = *b"wl-code\0";
const VERSION: u32 = 1;
const HEADER: usize = 8 + 4 + 8 + 8 + 16;
const ENDING: &str = "code";
const UNFINISHED: &str = "part";

/// When the files together pass this, the oldest go. Drivers change, and nobody asks again for what
/// an old one compiled.
const MOST_BYTES: u64 = 256 << 20;

/// An unfinished file this old has lost its writer.
const ABANDONED: Duration = Duration::from_hours(1);

/// Everything a binary depends on: the source, and whatever else changes what a compiler makes of
/// it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeKey {
    material: Vec<u8>,
    hash: u128,
}

impl CodeKey {
    /// The key of these parts. Each is stored with its length, so that no two lists of parts give
    /// the same key.
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut material = Vec::new();
        for part in parts {
            material.extend((part.len() as u64).to_le_bytes());
            material.extend_from_slice(part);
        }
        let hash = fnv1a(&[&material]);
        Self { material, hash }
    }

    fn file_name(&self) -> String {
        format!("{:032x}.{ENDING}", self.hash)
    }
}

impl Hash for CodeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// FNV-1a with 128 bits: the same on every machine and in every release, unlike the standard
/// library's hasher. Each step is a bijection of the state, so a damaged byte always shows.
fn fnv1a(parts: &[&[u8]]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = parts.iter().copied().flatten();
    bytes.fold(BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

/// A directory of binaries. What is found there is run, so nobody else should be able to write to
/// it; it is made so.
#[derive(Clone, Debug)]
pub struct CodeCache {
    dir: PathBuf,
}

impl CodeCache {
    /// In this directory, which is made when it is needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The binary stored under exactly this key.
    pub fn load(&self, key: &CodeKey) -> Option<Vec<u8>> {
        let path = self.dir.join(key.file_name());
        let file = fs::read(&path).ok()?;
        let binary = unpack(&file, key);
        if binary.is_none() {
            tracing::debug!(path = %path.display(), "damaged or foreign file ignored");
        }
        binary.map(<[u8]>::to_vec)
    }

    /// Keeps a binary, if that is possible.
    pub fn store(&self, key: &CodeKey, binary: &[u8]) {
        let path = self.dir.join(key.file_name());
        if let Err(error) = self.write(&path, &pack(key, binary)) {
            tracing::debug!(path = %path.display(), %error, "binary not kept");
        }
        if let Err(error) = tidy(&self.dir, MOST_BYTES, SystemTime::now()) {
            tracing::debug!(path = %self.dir.display(), %error, "cache not tidied");
        }
    }

    fn write(&self, path: &Path, file: &[u8]) -> io::Result<()> {
        make_private(&self.dir)?;
        let (unfinished, mut to) = self.unfinished()?;
        let written = to
            .write_all(file)
            .and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            // Should this fail as well, the file is abandoned and goes with the next tidying.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// A new file that is nobody else's.
    fn unfinished(&self) -> io::Result<(PathBuf, File)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        // Process and counter are unique among the living of one machine. The dead, and machines
        // that share a home directory, may have taken a name; then the next one is tried.
        let attempt = || {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{count}.{UNFINISHED}", std::process::id());
            let path = self.dir.join(name);
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            file.map(|file| (path, file))
        };
        let mut tries = 0;
        loop {
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => {
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Makes the directory so that others can neither read nor plant binaries.
fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn pack(key: &CodeKey, binary: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + key.material.len() + binary.len());
    file.extend(MAGIC);
    file.extend(VERSION.to_le_bytes());
    file.extend((key.material.len() as u64).to_le_bytes());
    file.extend((binary.len() as u64).to_le_bytes());
    file.extend(fnv1a(&[&key.material, binary]).to_le_bytes());
    file.extend_from_slice(&key.material);
    file.extend_from_slice(binary);
    file
}

/// The binary inside `file`, if the file is whole and belongs to `key`.
fn unpack<'f>(file: &'f [u8], key: &CodeKey) -> Option<&'f [u8]> {
    let (magic, rest) = file.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (key_len, rest) = rest.split_first_chunk::<8>()?;
    let (binary_len, rest) = rest.split_first_chunk::<8>()?;
    let (checksum, rest) = rest.split_first_chunk::<16>()?;
    if *magic != MAGIC || u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let key_len = usize::try_from(u64::from_le_bytes(*key_len)).ok()?;
    let (material, binary) = rest.split_at_checked(key_len)?;
    let whole = u64::from_le_bytes(*binary_len) == binary.len() as u64
        && u128::from_le_bytes(*checksum) == fnv1a(&[material, binary]);
    (whole && material == key.material).then_some(binary)
}

/// Removes abandoned files, and the oldest binaries while all together have more than `most` bytes.
/// Another process may do the same at the same time: what is gone is gone.
fn tidy(dir: &Path, most: u64, now: SystemTime) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let Ok(about) = entry.metadata() else {
            continue;
        };
        let written = about.modified().unwrap_or(now);
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            Some(ENDING) => files.push((written, about.len(), path)),
            Some(UNFINISHED) if written + ABANDONED < now => drop(fs::remove_file(path)),
            _ => {}
        }
    }
    let mut sum: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    files.sort();
    for (_, bytes, path) in files {
        if sum <= most {
            break;
        }
        drop(fs::remove_file(path));
        sum -= bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> CodeKey {
        CodeKey::new(&[text.as_bytes(), b"options"])
    }

    fn cache() -> (tempfile::TempDir, CodeCache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = CodeCache::new(dir.path().join("deep/down"));
        (dir, cache)
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(&[]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        // The reference value of the algorithm's authors for "a".
        assert_eq!(fnv1a(&[b"a"]), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv1a(&[b"foo", b"bar"]), fnv1a(&[b"foobar"]));
    }

    #[test]
    fn keys_do_not_run_together() {
        assert_ne!(CodeKey::new(&[b"ab", b"c"]), CodeKey::new(&[b"a", b"bc"]));
        assert_ne!(key("a"), key("b"));
        assert_eq!(key("a"), key("a"));
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let (_dir, cache) = cache();
        assert_eq!(cache.load(&key("a")), None);
        cache.store(&key("a"), b"binary");
        assert_eq!(cache.load(&key("a")).as_deref(), Some(&b"binary"[..]));
        assert_eq!(cache.load(&key("b")), None);
        cache.store(&key("a"), b"newer");
        assert_eq!(cache.load(&key("a")).as_deref(), Some(&b"newer"[..]));
    }

    #[test]
    fn every_truncation_and_every_damaged_byte_is_noticed() {
        let whole = pack(&key("a"), b"some binary");
        assert!(unpack(&whole, &key("a")).is_some());
        for len in 0..whole.len() {
            assert_eq!(unpack(&whole[..len], &key("a")), None, "cut to {len}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(unpack(&damaged, &key("a")), None, "byte {at}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert_eq!(unpack(&longer, &key("a")), None);
    }

    #[test]
    fn a_file_of_another_key_under_this_name_is_foreign() {
        let (_dir, cache) = cache();
        cache.store(&key("a"), b"binary");
        let (from, to) = (key("a").file_name(), key("b").file_name());
        fs::copy(cache.dir.join(from), cache.dir.join(to)).unwrap();
        assert_eq!(cache.load(&key("b")), None);
        cache.store(&key("b"), b"own");
        assert_eq!(cache.load(&key("b")).as_deref(), Some(&b"own"[..]));
    }

    #[test]
    fn a_directory_that_cannot_be_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = CodeCache::new(file.path().join("below a file"));
        cache.store(&key("a"), b"binary");
        assert_eq!(cache.load(&key("a")), None);
    }

    #[test]
    fn names_taken_by_others_are_left_to_them() {
        let (_dir, cache) = cache();
        fs::create_dir_all(&cache.dir).unwrap();
        let me = std::process::id();
        // Tests beside this one use the counter too; take more names than they can.
        for count in 0..90 {
            fs::write(cache.dir.join(format!("{me}-{count}.part")), b"theirs").unwrap();
        }
        cache.store(&key("a"), b"binary");
        assert!(cache.load(&key("a")).is_some());
        let theirs = fs::read(cache.dir.join(format!("{me}-89.part"))).unwrap();
        assert_eq!(theirs, b"theirs");
    }

    #[test]
    fn readers_see_whole_files_while_writers_race() {
        let (_dir, cache) = cache();
        let binary = |fill: u8| vec![fill; 50_000];
        cache.store(&key("a"), &binary(0));
        std::thread::scope(|scope| {
            for writer in 1..=3 {
                let cache = &cache;
                scope.spawn(move || {
                    for _ in 0..20 {
                        cache.store(&key("a"), &binary(writer));
                    }
                });
            }
            for _ in 0..100 {
                let seen = cache.load(&key("a")).expect("a whole file at all times");
                assert_eq!(seen, binary(seen[0]));
            }
        });
        let names = fs::read_dir(&cache.dir).unwrap();
        assert_eq!(names.count(), 1, "no unfinished file is left");
    }

    #[test]
    fn the_oldest_go_first_and_strangers_stay() {
        let (_dir, cache) = cache();
        for (age, name) in ["new", "middle", "old"].iter().enumerate() {
            cache.store(&key(name), &[0; 1000]);
            let file = File::open(cache.dir.join(key(name).file_name())).unwrap();
            let written = SystemTime::now() - Duration::from_secs(100 * age as u64);
            file.set_modified(written).unwrap();
        }
        fs::write(cache.dir.join("notes.txt"), [0; 9000]).unwrap();
        fs::write(cache.dir.join("7-7.part"), b"torn").unwrap();
        let later = SystemTime::now() + 2 * ABANDONED;
        tidy(&cache.dir, 2500, later).unwrap();
        assert_eq!(cache.load(&key("old")), None);
        assert!(cache.load(&key("middle")).is_some());
        assert!(cache.load(&key("new")).is_some());
        assert!(cache.dir.join("notes.txt").exists());
        assert!(!cache.dir.join("7-7.part").exists());
    }

    const CHILD: &str = "WARPLOOM_TEST_CODE_CACHE";

    /// Large enough that a writer is mostly inside a write.
    fn large(fill: u8) -> Vec<u8> {
        vec![fill; 3 << 20]
    }

    /// What the next test starts and kills; on its own it writes once.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a variable reaches through the harness"
    )]
    fn a_writer_writes() {
        let (_dir, own) = cache();
        let given = std::env::var_os(CHILD).map(CodeCache::new);
        let cache = given.as_ref().unwrap_or(&own);
        for fill in 0..=u8::MAX {
            cache.store(&key("a"), &large(fill));
            if given.is_none() {
                break;
            }
        }
        assert!(cache.load(&key("a")).is_some());
    }

    #[test]
    fn a_killed_writer_leaves_a_whole_file_or_none() {
        let (_dir, cache) = cache();
        let (mut found, mut torn) = (0, 0);
        for turn in 0..8 {
            let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "code_cache::tests::a_writer_writes"])
                .env(CHILD, &cache.dir)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            // Later each time, and at the latest when it has begun.
            let begun = SystemTime::now();
            while !cache.dir.exists() && begun.elapsed().unwrap() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(1 + 5 * turn));
            writer.kill().unwrap();
            writer.wait().unwrap();
            if let Some(binary) = cache.load(&key("a")) {
                assert_eq!(binary, large(binary[0]));
                found += 1;
            }
            let names = fs::read_dir(&cache.dir).unwrap();
            torn += names
                .filter(|it| it.as_ref().unwrap().path().extension() == Some(UNFINISHED.as_ref()))
                .count();
        }
        println!("{found} times a file, {torn} unfinished ones seen");
        // Whatever they left, the next one keeps its own.
        cache.store(&key("a"), b"mine");
        assert_eq!(cache.load(&key("a")).as_deref(), Some(&b"mine"[..]));
        tidy(&cache.dir, MOST_BYTES, SystemTime::now() + 2 * ABANDONED).unwrap();
        let left = fs::read_dir(&cache.dir).unwrap().count();
        assert_eq!(left, 1, "what was abandoned is gone");
    }

    #[test]
    fn a_file_cut_short_on_disk_is_written_anew() {
        let (_dir, cache) = cache();
        cache.store(&key("a"), b"some binary");
        let path = cache.dir.join(key("a").file_name());
        let whole = fs::metadata(&path).unwrap().len();
        for len in [0, 1, whole / 2, whole - 1] {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(len).unwrap();
            assert_eq!(cache.load(&key("a")), None, "cut to {len}");
            cache.store(&key("a"), b"some binary");
            assert!(cache.load(&key("a")).is_some());
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_directory_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, cache) = cache();
        cache.store(&key("a"), b"binary");
        let mode = fs::metadata(&cache.dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

//! Records before and after.

use std::fmt::Write as _;

use crate::base64;
use crate::recording::{Picture, Recording};

use super::html::Text;

/// How every PNG file begins.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Pairs of pictures, side by side; the script lets people wipe from one to the other.
pub(super) fn thumbnails(recording: &Recording) -> String {
    let mut figures = String::new();
    for thumbnail in &recording.thumbnails {
        let record = recording.records.get(thumbnail.record.index());
        let name = Text(record.map_or("", |record| &record.name));
        let label = Text(&thumbnail.label);
        let before = image(thumbnail.before.as_ref(), &format!("{name} before"));
        let after = image(thumbnail.after.as_ref(), &format!("{name} after: {label}"));
        let pair = match (before, after) {
            (None, None) => continue,
            (Some(before), Some(after)) => {
                let open = format!("Compare {name} before and after");
                format!(
                    "<button type=\"button\" class=\"pair\" aria-label=\"{open}\">{before}{after}</button>"
                )
            }
            (before, after) => {
                let one = before.or(after).unwrap_or_default();
                format!("<div class=\"pair\">{one}</div>")
            }
        };
        let _ = writeln!(
            figures,
            "<figure>{pair}<figcaption><strong>{name}</strong> <span>{label}</span></figcaption></figure>"
        );
    }
    if figures.is_empty() {
        return figures;
    }
    format!(
        r#"<section aria-labelledby="pictures">
<h2 id="pictures">Before and after</h2>
<div class="pictures">
{figures}</div>
<dialog id="wipe" aria-label="Before and after"><figure><div class="stack"><img id="wipe-before" alt=""><div id="wipe-over"><img id="wipe-after" alt=""></div></div><figcaption id="wipe-caption"></figcaption></figure><label>before <input type="range" id="wipe-at" min="0" max="100" value="50" aria-label="How much of the picture after is shown"> after</label><button type="button" id="wipe-close">Close</button></dialog>
</section>
"#
    )
}

fn image(picture: Option<&Picture>, alt: &str) -> Option<String> {
    let Picture(bytes) = picture.filter(|picture| picture.0.starts_with(PNG))?;
    let data = base64::encode(bytes);
    Some(format!(
        "<img src=\"data:image/png;base64,{data}\" alt=\"{alt}\">"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Record, RecordNo, Thumbnail};

    #[test]
    fn what_is_no_picture_is_not_shown() {
        let mut recording = Recording::new("t", "p");
        assert_eq!(thumbnails(&recording), "");
        recording.record(Record::new("<A01>"));
        let picture = |bytes: &[u8]| Some(Picture(bytes.to_vec()));
        recording.thumbnails.push(Thumbnail {
            record: RecordNo(0),
            label: "x".into(),
            before: picture(b"<svg onload=x()>"),
            after: None,
        });
        assert_eq!(thumbnails(&recording), "");
        recording.thumbnails[0].after = picture(PNG);
        let page = thumbnails(&recording);
        assert!(
            page.contains("<div class=\"pair\"><img src=\"data:image/png;base64,iVBORw0KGgo=\"")
        );
        assert!(page.contains("&lt;A01&gt;"));
        recording.thumbnails[0].before = picture(PNG);
        assert!(thumbnails(&recording).contains("<button type=\"button\" class=\"pair\""));
    }
}

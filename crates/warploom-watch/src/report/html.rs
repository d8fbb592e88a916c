//! Text that goes into a page, and numbers as people read them.

use std::fmt;

/// Text in a page: whatever it contains, it is shown and does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'t>(pub(super) &'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Browsers take some of these for parts of markup, and show none of them. Those
                // that turn the direction of writing would let a name pretend to be another.
                '\0'..='\u{8}'
                | '\u{b}'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' => f.write_str("\u{fffd}")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

/// JSON inside a `script` element: no text in it can end the element or begin a comment.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    // Plain data with string keys can always be written.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Nanoseconds as people read them: `12.3 ms`, `4 min 05 s`.
pub(super) fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0 => "0".to_owned(),
        1..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{} µs", digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(value / 1e6)),
        1_000_000_000..60_000_000_000 => format!("{} s", digits(value / 1e9)),
        _ => {
            let seconds = nanoseconds.saturating_add(500_000_000) / 1_000_000_000;
            let (minutes, hours) = (seconds / 60, seconds / 3_600);
            if hours > 0 {
                format!("{hours} h {:02} min", minutes % 60)
            } else {
                format!("{minutes} min {:02} s", seconds % 60)
            }
        }
    }
}

/// Three digits that count.
pub(super) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{value:.2}"),
        size => {
            // As many places as it takes to show three digits, within reason.
            let places = (3.0 - size.log10().floor() - 1.0).clamp(2.0, 9.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 2 and 9"
            )]
            let places = places as usize;
            format!("{value:.places$}")
        }
    }
}

/// A share of a whole: `93 %`.
pub(super) fn percent(share: f64) -> String {
    let share = share * 100.0;
    match share {
        share if !share.is_finite() => "?".to_owned(),
        0.0 => "0 %".to_owned(),
        ..0.995 => format!("{share:.2} %"),
        ..9.95 => format!("{share:.1} %"),
        _ => format!("{share:.0} %"),
    }
}

/// A count with thin spaces: `12 345`.
pub(super) fn count(number: u64) -> String {
    let plain = number.to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3 * 3);
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && (plain.len() - at).is_multiple_of(3) && plain.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_and_does_nothing() {
        let shown = Text("</script><img onerror='x()' src=\"y\">&amp;\0\u{202e}").to_string();
        assert_eq!(
            shown,
            "&lt;/script&gt;&lt;img onerror=&#39;x()&#39; src=&quot;y&quot;&gt;&amp;amp;\u{fffd}\u{fffd}"
        );
        assert_eq!(Text("Größe µm 5\t\n").to_string(), "Größe µm 5\t\n");
    }

    #[test]
    fn json_cannot_leave_its_element() {
        let text = json(&"</script><!-- &\u{2028}");
        assert_eq!(text, r#""\u003c/script\u003e\u003c!-- \u0026\u2028""#);
        assert_eq!(
            serde_json::from_str::<String>(&text).unwrap(),
            "</script><!-- &\u{2028}"
        );
    }

    #[test]
    fn times_have_units_people_use() {
        let cases = [
            (0, "0"),
            (999, "999 ns"),
            (1_500, "1.50 µs"),
            (12_345_678, "12.3 ms"),
            (999_999_999, "1000 ms"),
            (2_000_000_000, "2.00 s"),
            (59_999_999_999, "60.0 s"),
            (60_000_000_000, "1 min 00 s"),
            (245_400_000_000, "4 min 05 s"),
            (7_260_000_000_000, "2 h 01 min"),
            (u64::MAX, "5124095 h 34 min"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(time(nanoseconds), text);
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.0, "0.00"),
            (1234.5, "1234"),
            (99.96, "100"),
            (12.345, "12.3"),
            (1.2345, "1.23"),
            (0.12345, "0.123"),
            (0.000_123_45, "0.000123"),
            (f64::NAN, "?"),
        ];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
        assert_eq!(
            [0.0, 0.001, 0.0512, 0.934, 1.0].map(percent),
            ["0 %", "0.10 %", "5.1 %", "93 %", "100 %"]
        );
        assert_eq!(
            [0, 999, 9_999, 12_345, 1_234_567]
                .map(count)
                .join("|")
                .replace('\u{202f}', "_"),
            "0|999|9999|12_345|1_234_567"
        );
    }
}

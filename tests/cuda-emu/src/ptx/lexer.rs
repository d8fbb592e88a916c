//! Text to words, numbers and punctuation.

use super::PtxError;

/// One word of the text, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    /// An identifier: `ld`, `%r1`, `$L__BB0_1`, `_`.
    Word(&'a str),
    /// A word with a dot before it, without the dot: directive, modifier or component.
    Dot(&'a str),
    /// An integer; a sign is punctuation.
    Integer(u64),
    /// `0f` and eight digits: the bits of a single.
    Single(u32),
    /// `0d` and sixteen digits, or a decimal fraction: the bits of a double.
    Double(u64),
    /// Between quotation marks.
    Text(&'a str),
    /// Anything else.
    Mark(char),
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<Option<Token<'a>>, PtxError> {
        self.skip_space()?;
        let Some(first) = self.peek(0) else {
            return Ok(None);
        };
        let line = self.line;
        let kind = match first {
            b'.' if self.peek(1).is_some_and(is_word) => {
                self.at += 1;
                Kind::Dot(self.dotted())
            }
            b'0'..=b'9' => self.number()?,
            b'"' => self.quoted()?,
            byte if is_word(byte) => Kind::Word(self.take(is_word)),
            byte if byte.is_ascii() => {
                self.at += 1;
                Kind::Mark(char::from(byte))
            }
            _ => return Err(self.error("a character that is not ASCII")),
        };
        Ok(Some(Token { kind, line }))
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError::new(self.line, message)
    }

    /// Everything from here on that `wanted` likes.
    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// A modifier may have parts joined by two colons: `L1::no_allocate`.
    fn dotted(&mut self) -> &'a str {
        let start = self.at;
        self.take(is_word);
        while self.peek(0) == Some(b':')
            && self.peek(1) == Some(b':')
            && self.peek(2).is_some_and(is_word)
        {
            self.at += 2;
            self.take(is_word);
        }
        &self.text[start..self.at]
    }

    fn skip_space(&mut self) -> Result<(), PtxError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'\n'), _) => {
                    self.line += 1;
                    self.at += 1;
                }
                (Some(byte), _) if byte.is_ascii_whitespace() => self.at += 1,
                (Some(b'/'), Some(b'/')) => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                (Some(b'/'), Some(b'*')) => {
                    let rest = &self.text[self.at..];
                    let Some(end) = rest.find("*/") else {
                        return Err(self.error("a comment that never ends"));
                    };
                    let lines = rest[..end].bytes().filter(|byte| *byte == b'\n').count();
                    self.line += u32::try_from(lines).unwrap_or(u32::MAX);
                    self.at += end + 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn quoted(&mut self) -> Result<Kind<'a>, PtxError> {
        let start = self.at + 1;
        let rest = &self.text[start..];
        let Some(end) = rest.find(['"', '\n']) else {
            return Err(self.error("a text without its closing quotation mark"));
        };
        if rest.as_bytes()[end] == b'\n' {
            return Err(self.error("a text without its closing quotation mark"));
        }
        self.at = start + end + 1;
        Ok(Kind::Text(&rest[..end]))
    }

    fn number(&mut self) -> Result<Kind<'a>, PtxError> {
        let start = self.at;
        let word = self.take(is_word);
        let bad = |lexer: &Self| lexer.error(format!("`{word}` is not a number"));
        let prefix = word.get(..2).unwrap_or("").to_ascii_lowercase();
        let digits = word.get(2..).unwrap_or("");
        match prefix.as_str() {
            "0f" if digits.len() == 8 => {
                let bits = u32::from_str_radix(digits, 16).map_err(|_| bad(self))?;
                return Ok(Kind::Single(bits));
            }
            "0d" if digits.len() == 16 => {
                let bits = u64::from_str_radix(digits, 16).map_err(|_| bad(self))?;
                return Ok(Kind::Double(bits));
            }
            _ => {}
        }
        let is_decimal = word.bytes().all(|byte| byte.is_ascii_digit());
        let has_fraction =
            self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|byte| byte.is_ascii_digit());
        if is_decimal && has_fraction {
            self.at += 1;
            let fraction = self.take(|byte| byte.is_ascii_alphanumeric());
            if fraction.ends_with(['e', 'E']) && matches!(self.peek(0), Some(b'+' | b'-')) {
                self.at += 1;
                self.take(|byte| byte.is_ascii_digit());
            }
            let value: f64 = self.text[start..self.at].parse().map_err(|_| bad(self))?;
            return Ok(Kind::Double(value.to_bits()));
        }
        let plain = word.strip_suffix('U').unwrap_or(word);
        let (radix, digits) = match prefix.as_str() {
            "0x" => (16, plain.get(2..).unwrap_or("")),
            "0b" => (2, plain.get(2..).unwrap_or("")),
            _ if plain.len() > 1 && plain.starts_with('0') => (8, &plain[1..]),
            _ => (10, plain),
        };
        let value = u64::from_str_radix(digits, radix).map_err(|_| bad(self))?;
        Ok(Kind::Integer(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        let tokens = tokens(text).unwrap();
        tokens.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn an_instruction_is_words_dots_and_marks() {
        assert_eq!(
            kinds("ld.global.L1::no_allocate.f32 %f1, [%rd2+-4];"),
            [
                Kind::Word("ld"),
                Kind::Dot("global"),
                Kind::Dot("L1::no_allocate"),
                Kind::Dot("f32"),
                Kind::Word("%f1"),
                Kind::Mark(','),
                Kind::Mark('['),
                Kind::Word("%rd2"),
                Kind::Mark('+'),
                Kind::Mark('-'),
                Kind::Integer(4),
                Kind::Mark(']'),
                Kind::Mark(';'),
            ]
        );
    }

    #[test]
    fn numbers_of_all_sorts() {
        assert_eq!(
            kinds("0 12 0x1F 0b101 017 7U 0f3F800000 0dBFF0000000000000 1.5 2.5e-1"),
            [
                Kind::Integer(0),
                Kind::Integer(12),
                Kind::Integer(31),
                Kind::Integer(5),
                Kind::Integer(15),
                Kind::Integer(7),
                Kind::Single(0x3f80_0000),
                Kind::Double((-1.0f64).to_bits()),
                Kind::Double(1.5f64.to_bits()),
                Kind::Double(0.25f64.to_bits()),
            ]
        );
    }

    #[test]
    fn lines_are_counted_through_comments() {
        let tokens = tokens("// one\n/* two\nthree */ add\n\"text\"").unwrap();
        assert_eq!(tokens[0].line, 3);
        assert_eq!(tokens[1].line, 4);
        assert_eq!(tokens[1].kind, Kind::Text("text"));
    }

    #[test]
    fn what_is_no_token_is_refused_with_its_line() {
        for (text, line) in [("\n\"x\n", 2), ("/* x", 1), ("12ab", 1), ("\n\n0x", 3)] {
            assert_eq!(tokens(text).unwrap_err().line, line, "{text:?}");
        }
    }
}

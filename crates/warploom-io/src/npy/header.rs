//! The header of an `.npy` file: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.

use std::io::Read;

use warploom_core::DType;

use crate::error::Fault;

/// What a header says.
#[derive(PartialEq, Debug)]
pub(super) struct Header {
    pub(super) element: ElementType,
    /// The first axis varies fastest.
    pub(super) fortran: bool,
    pub(super) dims: Vec<u64>,
    /// Where the elements begin.
    pub(super) bytes: u64,
}

/// The type of the elements, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ElementType {
    pub(super) dtype: DType,
    pub(super) is_bool: bool,
    big_endian: bool,
}

impl ElementType {
    /// Are the bytes of an element the wrong way round for this machine?
    pub(super) fn is_swapped(self) -> bool {
        self.big_endian != cfg!(target_endian = "big")
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        let (order, kind) = match text.split_at_checked(1) {
            Some(("<", kind)) => (false, kind),
            Some((">", kind)) => (true, kind),
            // `=` never gets into files that NumPy wrote; `|` says that there is no order.
            Some(("|" | "=", kind)) => (cfg!(target_endian = "big"), kind),
            _ => (false, text),
        };
        let dtype = match kind {
            "b1" | "?" | "u1" | "B" => DType::U8,
            "i1" | "b" => DType::I8,
            "u2" => DType::U16,
            "i2" => DType::I16,
            "u4" => DType::U32,
            "i4" => DType::I32,
            "u8" => DType::U64,
            "i8" => DType::I64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            _ => return Err(unread(text, kind)),
        };
        Ok(Self {
            dtype,
            is_bool: matches!(kind, "b1" | "?"),
            big_endian: order,
        })
    }
}

fn unread(text: &str, kind: &str) -> Fault {
    let what = match kind.chars().next() {
        Some('c') => format!("complex numbers ({text})"),
        Some('O') => "Python objects".to_owned(),
        Some('U' | 'S' | 'a') => format!("texts ({text})"),
        Some('M' | 'm') => format!("times ({text})"),
        Some('f') => format!("floats of a size that few programs know ({text})"),
        _ => format!("elements of an unknown type ({text})"),
    };
    Fault::Unread {
        what,
        instead: "save it as u8, u16, i16, i32, u32, f32 or f64, as with `a.astype('float32')`"
            .into(),
    }
}

/// A header longer than this is none of NumPy's; its own reader refuses at 10 000 characters.
const LONGEST: u32 = 65_536;

impl Header {
    /// Reads up to the first element.
    pub(super) fn read(file: &mut impl Read) -> Result<Self, Fault> {
        let mut start = [0_u8; 8];
        fill(file, &mut start, "its header")?;
        let [.., major, _minor] = start;
        let (length, bytes) = match major {
            1 => {
                let mut length = [0; 2];
                fill(file, &mut length, "its header")?;
                (u32::from(u16::from_le_bytes(length)), 10)
            }
            2 | 3 => {
                let mut length = [0; 4];
                fill(file, &mut length, "its header")?;
                (u32::from_le_bytes(length), 12)
            }
            _ => {
                return Err(Fault::Unread {
                    what: format!("version {major} of the .npy format"),
                    instead: "versions 1, 2 and 3 are read; save it with NumPy".into(),
                });
            }
        };
        if length > LONGEST {
            let what = format!("its header is {length} bytes long, at most {LONGEST} make sense");
            return Err(Fault::Damaged { what });
        }
        let mut text = vec![0; length as usize];
        fill(file, &mut text, "its header")?;
        // Version 3 is UTF-8, the others Latin-1; what we look for is in both.
        let text = String::from_utf8_lossy(&text);
        let mut parser = Parser { rest: &text };
        let (element, fortran, dims) = parser.dictionary()?;
        Ok(Self {
            element,
            fortran,
            dims,
            bytes: bytes + u64::from(length),
        })
    }
}

fn fill(file: &mut impl Read, buffer: &mut [u8], what: &str) -> Result<(), Fault> {
    let wanted = buffer.len();
    let mut there = 0;
    while there < wanted {
        match file.read(&mut buffer[there..]) {
            Ok(0) => {
                return Err(Fault::Short {
                    what: what.to_owned(),
                    wanted: wanted as u64,
                    there: there as u64,
                });
            }
            Ok(more) => there += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::open(&error)),
        }
    }
    Ok(())
}

/// Reads Python's notation, as much of it as headers use.
struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn dictionary(&mut self) -> Result<(ElementType, bool, Vec<u64>), Fault> {
        let (mut element, mut fortran, mut dims) = (None, None, None);
        self.expect("{")?;
        while !self.take("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" if self.peek("[") => {
                    return Err(Fault::Unread {
                        what: "records with several fields".into(),
                        instead: "save one field, as with `numpy.save(path, a['field'])`".into(),
                    });
                }
                "descr" => element = Some(ElementType::parse(self.string()?)?),
                "fortran_order" => fortran = Some(self.truth()?),
                "shape" => dims = Some(self.tuple()?),
                _ => return Err(damaged(format!("its header has an unknown key `{key}`"))),
            }
            if !self.take(",") && !self.peek("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        match (element, fortran, dims) {
            (Some(element), Some(fortran), Some(dims)) => Ok((element, fortran, dims)),
            _ => Err(damaged(
                "its header has no `descr`, no `fortran_order` or no `shape`",
            )),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>, Fault> {
        let mut dims = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            dims.push(self.number()?);
            if !self.take(",") && !self.peek(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(dims)
    }

    fn number(&mut self) -> Result<u64, Fault> {
        self.skip_space();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        if digits.is_empty() {
            return Err(self.unexpected("a number"));
        }
        // Python 2 wrote long numbers with an L behind them.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        digits
            .parse()
            .map_err(|_| damaged(format!("its header says an extent of {digits}")))
    }

    fn truth(&mut self) -> Result<bool, Fault> {
        if self.take("True") {
            Ok(true)
        } else if self.take("False") {
            Ok(false)
        } else {
            Err(self.unexpected("`True` or `False`"))
        }
    }

    fn string(&mut self) -> Result<&'t str, Fault> {
        self.skip_space();
        let Some(quote @ ('\'' | '"')) = self.rest.chars().next() else {
            return Err(self.unexpected("a text in quotes"));
        };
        match self.rest[1..].split_once(quote) {
            Some((text, rest)) => {
                self.rest = rest;
                Ok(text)
            }
            None => Err(self.unexpected("a closing quote")),
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), Fault> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{token}`")))
        }
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn peek(&mut self, token: &str) -> bool {
        self.skip_space();
        self.rest.starts_with(token)
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found: String = self.rest.chars().take(12).collect();
        damaged(format!(
            "its header has {wanted} missing before `{}`",
            found.escape_debug()
        ))
    }
}

fn damaged(what: impl std::fmt::Display) -> Fault {
    Fault::damaged(what)
}

/// The header of an array in C order, little-endian, padded as NumPy pads it.
pub(super) fn text(dtype: DType, dims: &[u64]) -> Vec<u8> {
    let descr = match dtype {
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::I16 => "<i2",
        DType::U32 => "<u4",
        DType::I32 => "<i4",
        DType::U64 => "<u8",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        // The only other type that `Format::takes` lets through.
        _ => "<f8",
    };
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        dims.join(", ")
    );
    // Six axes of twenty digits are far from the 65 535 that two bytes count.
    let padding = (64 - (10 + text.len() + 1) % 64) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [
        b"\x93NUMPY\x01\x00",
        &length.to_le_bytes()[..],
        text.as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, Fault> {
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        let file = [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes()].concat();
        Header::read(&mut file.as_slice())
    }

    #[test]
    fn headers_are_read_back() {
        for (dtype, dims) in [
            (DType::U8, &[3, 4][..]),
            (DType::F64, &[5]),
            (DType::I16, &[0, 7, 9]),
        ] {
            let text = text(dtype, dims);
            assert_eq!(text.len() % 64, 0);
            let header = Header::read(&mut text.as_slice()).unwrap();
            assert_eq!(header.dims, dims);
            assert_eq!(header.element.dtype, dtype);
            assert_eq!(header.bytes, text.len() as u64);
            assert!(!header.fortran && !header.element.is_bool);
        }
    }

    #[test]
    fn what_numpy_and_its_forks_write_is_understood() {
        let header = parse("{\"shape\":(2L,3),'fortran_order':True ,\"descr\":'>u2'}\n").unwrap();
        assert_eq!(header.dims, [2, 3]);
        assert!(header.fortran && header.element.is_swapped());
        let header = parse("{'descr': '|b1', 'fortran_order': False, 'shape': (), }").unwrap();
        assert!(header.element.is_bool && header.dims.is_empty());
    }

    #[rstest::rstest]
    #[case("", "is damaged: its header has `{` missing before ``")]
    #[case(
        "{'descr': '<f4'",
        "is damaged: its header has `,` or `}` missing before ``"
    )]
    #[case(
        "{'descr': '<f4'}",
        "is damaged: its header has no `descr`, no `fortran_order` or no `shape`"
    )]
    #[case(
        "{'descr': '<f4', 'shape': (-1,)}",
        "is damaged: its header has a number missing before `-1,)}`"
    )]
    #[case(
        "{'descr': '<f4', 'shape': (99999999999999999999,)}",
        "is damaged: its header says an extent of 99999999999999999999"
    )]
    #[case("{'descr': '<c8', ", "holds complex numbers (<c8)")]
    #[case("{'descr': '|O', ", "holds Python objects")]
    #[case("{'descr': [('a', '<f4')], ", "holds records with several fields")]
    #[case(
        "{'descr': '<f16', ",
        "holds floats of a size that few programs know (<f16)"
    )]
    #[case("{'color': 1}", "is damaged: its header has an unknown key `color`")]
    #[case(
        "{'descr': 'é",
        "is damaged: its header has a closing quote missing before `\\'é`"
    )]
    fn nonsense_is_named(#[case] text: &str, #[case] message: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn other_versions_and_endless_headers_are_refused() {
        let mut file = &b"\x93NUMPY\x04\x00"[..];
        assert!(
            Header::read(&mut file)
                .unwrap_err()
                .to_string()
                .contains("version 4")
        );
        let mut file = &b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..];
        assert!(matches!(
            Header::read(&mut file),
            Err(Fault::Damaged { .. })
        ));
        let mut file = &b"\x93NUMPY\x01\x00\x76\x00{'descr"[..];
        assert_eq!(
            Header::read(&mut file).unwrap_err().to_string(),
            "is cut short: its header needs 118 bytes, 7 are there"
        );
    }
}

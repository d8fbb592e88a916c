//! Parquet, as little of it as tables of numbers and texts need: one row group, plain pages without
//! compression, no missing values.
//!
//! The `parquet` crate without Arrow is 29 packages and a minute of processor time to build; what it
//! would do here is this file. pyarrow reads what is written in tests.

use std::io::{self, Write};

use crate::table::{Column, Table, Values};

const MAGIC: &[u8] = b"PAR1";

/// Rows of a page: readers hold a page in memory.
const PAGE: usize = 1 << 18;

/// Thrift's compact protocol: numbers of fields are differences, numbers are short when small.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: Vec<i16>,
}

impl Thrift {
    const I32: u8 = 5;
    const I64: u8 = 6;
    const BINARY: u8 = 8;
    const LIST: u8 = 9;
    const STRUCT: u8 = 12;

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn field(&mut self, id: i16, kind: u8) {
        let last = self.last.last().copied().unwrap_or(0);
        // Fields of our structures are near each other and in order.
        let delta = u8::try_from(id - last).unwrap_or(15);
        self.bytes.push(delta << 4 | kind);
        if let Some(last) = self.last.last_mut() {
            *last = id;
        }
    }

    fn i32(&mut self, id: i16, value: i32) {
        self.field(id, Self::I32);
        self.zigzag(value.into());
    }

    fn i64(&mut self, id: i16, value: u64) {
        self.field(id, Self::I64);
        self.zigzag(value.cast_signed());
    }

    fn text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn string(&mut self, id: i16, text: &str) {
        self.field(id, Self::BINARY);
        self.text(text);
    }

    fn list(&mut self, id: i16, kind: u8, count: usize) {
        self.field(id, Self::LIST);
        if let Ok(count @ 0..15) = u8::try_from(count) {
            self.bytes.push(count << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            self.varint(count as u64);
        }
    }

    fn begin(&mut self) {
        self.last.push(0);
    }

    fn structure(&mut self, id: i16) {
        self.field(id, Self::STRUCT);
        self.begin();
    }

    fn end(&mut self) {
        self.last.pop();
        self.bytes.push(0);
    }
}

/// The number that the format has for a type.
fn physical(values: &Values) -> i32 {
    match values {
        Values::Whole(_) => 2,
        Values::Reals(_) => 5,
        Values::Texts(_) => 6,
    }
}

/// Where a column is in the file.
struct Chunk {
    at: u64,
    bytes: u64,
}

/// Writes a table.
pub(crate) fn write(file: &mut impl Write, table: &Table) -> io::Result<()> {
    file.write_all(MAGIC)?;
    let mut at = MAGIC.len() as u64;
    let mut chunks = Vec::new();
    for column in table.columns() {
        let bytes = write_column(file, &column.values)?;
        chunks.push(Chunk { at, bytes });
        at += bytes;
    }
    let footer = footer(table, &chunks);
    file.write_all(&footer)?;
    let length = u32::try_from(footer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(MAGIC)
}

fn write_column(file: &mut impl Write, values: &Values) -> io::Result<u64> {
    let mut written = 0;
    let mut first = 0;
    // A column without rows has a page without values.
    while first < values.len() || (first == 0 && written == 0) {
        let end = values.len().min(first + PAGE);
        let page = plain(values, first, end);
        let size = i32::try_from(page.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let count = i32::try_from(end - first).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut header = Thrift::default();
        header.begin();
        header.i32(1, 0);
        header.i32(2, size);
        header.i32(3, size);
        header.structure(5);
        header.i32(1, count);
        header.i32(2, 0);
        header.i32(3, 3);
        header.i32(4, 3);
        header.end();
        header.end();
        file.write_all(&header.bytes)?;
        file.write_all(&page)?;
        written += (header.bytes.len() + page.len()) as u64;
        first = end;
    }
    Ok(written)
}

fn plain(values: &Values, first: usize, end: usize) -> Vec<u8> {
    match values {
        Values::Whole(values) => values[first..end]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        Values::Reals(values) => values[first..end]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        Values::Texts(values) => {
            let mut page = Vec::new();
            for text in &values[first..end] {
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                page.extend(length.to_le_bytes());
                page.extend(text.as_bytes());
            }
            page
        }
    }
}

fn footer(table: &Table, chunks: &[Chunk]) -> Vec<u8> {
    let columns = table.columns();
    let rows = table.rows() as u64;
    let mut meta = Thrift::default();
    meta.begin();
    meta.i32(1, 2);
    meta.list(2, Thrift::STRUCT, columns.len() + 1);
    meta.begin();
    meta.string(4, "schema");
    meta.i32(5, i32::try_from(columns.len()).unwrap_or(i32::MAX));
    meta.end();
    for column in columns {
        schema(&mut meta, column);
    }
    meta.i64(3, rows);
    meta.list(4, Thrift::STRUCT, 1);
    meta.begin();
    meta.list(1, Thrift::STRUCT, columns.len());
    for (column, chunk) in columns.iter().zip(chunks) {
        meta.begin();
        meta.i64(2, chunk.at);
        meta.structure(3);
        meta.i32(1, physical(&column.values));
        meta.list(2, Thrift::I32, 1);
        meta.zigzag(0);
        meta.list(3, Thrift::BINARY, 1);
        meta.text(&column.name);
        meta.i32(4, 0);
        meta.i64(5, rows);
        meta.i64(6, chunk.bytes);
        meta.i64(7, chunk.bytes);
        meta.i64(9, chunk.at);
        meta.end();
        meta.end();
    }
    meta.i64(2, chunks.iter().map(|chunk| chunk.bytes).sum());
    meta.i64(3, rows);
    meta.end();
    meta.string(6, "Warploom");
    meta.end();
    meta.bytes
}

fn schema(meta: &mut Thrift, column: &Column) {
    meta.begin();
    meta.i32(1, physical(&column.values));
    // Required: no value is missing.
    meta.i32(3, 0);
    meta.string(4, &column.name);
    if matches!(column.values, Values::Texts(_)) {
        // UTF-8, by its old name and its new one.
        meta.i32(6, 0);
        meta.structure(10);
        meta.structure(1);
        meta.end();
        meta.end();
    }
    meta.end();
}

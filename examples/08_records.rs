//! Images through work of one's own, without a plan: read ahead, written behind, in bounded memory.
//! Run it with `cargo run -p warploom-examples --bin 08_records -- FOLDER`.
//!
//! Threads read the images that come next while one is worked on, and write those that are done. A file that
//! cannot be read or written is told of with its record, and is no reason not to go on.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use warploom::io::records::Layout;
use warploom::io::{Ahead, Header, Prefetch, Sync, WriteBehind, read, write_image};
use warploom::{DType, Shape};

const SIDE: u64 = 256;
const IMAGES: u16 = 24;
/// One that somebody cut short.
const BROKEN: u16 = 7;
/// What may wait to be written.
const ROOM: u64 = 4 << 20;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| PathBuf::from("records-demo"));
    let (input, output) = (folder.join("images"), folder.join("results"));
    std::fs::create_dir_all(&input)?;
    std::fs::create_dir_all(&output)?;
    images(&input)?;

    // A folder, a glob, or a pattern whose fields are known of each record.
    let found = Layout::new(&input.join("site{site}.npy").to_string_lossy())?.find()?;
    println!("{} records", found.records.len());
    let ahead = Ahead {
        threads: 2,
        buffers: 6,
        expected: Some((DType::U16, Shape::new(&[SIDE, SIDE])?)),
        ..Ahead::default()
    };
    let mut reader = Prefetch::start(found.records.into_iter().map(Ok), ahead)?;
    let writer: WriteBehind<String> = WriteBehind::start(2, ROOM)?;
    let mut unread = Vec::new();
    while let Some(loaded) = reader.next() {
        let name = loaded.record.context("all were found before")?;
        let name = name.id().to_owned();
        let mut lent = match loaded.image {
            Ok(lent) => lent,
            Err(error) => {
                unread.push(format!("{name}: {error}"));
                continue;
            }
        };
        // The work: a negative. The image goes along to the writer, and its buffer comes back from there.
        for pixel in lent.elements_mut::<u16>().context("images are u16")? {
            *pixel = u16::MAX - *pixel;
        }
        let path = output.join(format!("{name}.tif"));
        let to = path.clone();
        let bytes = lent.header().bytes();
        writer.submit(name, &path, bytes, move || {
            write_image(&to, lent.header(), lent.bytes(), Sync::No)
        });
    }
    let answers = writer.finish();
    for (name, answer) in &answers {
        if let Err(error) = answer {
            println!("{name} was not written: {error}");
        }
    }
    for one in &unread {
        println!("not read: {one}");
    }
    let written = answers.iter().filter(|(_, answer)| answer.is_ok()).count();
    println!("{written} written, {} not read", unread.len());

    ensure!(unread.len() == 1 && written + 1 == usize::from(IMAGES));
    let negative = read(output.join("03.tif"))?;
    let first = negative.elements::<u16>().context("results are u16")?[0];
    ensure!(first == u16::MAX - 3, "{first} is no negative of 3");
    Ok(())
}

/// Images that begin with their number.
fn images(folder: &Path) -> Result<()> {
    let header = Header::new(DType::U16, Shape::new(&[SIDE, SIDE])?);
    for site in 0..IMAGES {
        let path = folder.join(format!("site{site:02}.npy"));
        let pixels: Vec<u16> = (0..SIDE * SIDE)
            .map(|at| u16::try_from(at % 4096).map(|value| value + site))
            .collect::<Result<_, _>>()?;
        write_image(&path, &header, bytemuck::cast_slice(&pixels), Sync::No)?;
        if site == BROKEN {
            let bytes = std::fs::read(&path)?;
            std::fs::write(&path, &bytes[..bytes.len() / 2])?;
        }
    }
    Ok(())
}

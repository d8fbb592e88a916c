//! `warploom ops`: the catalogue of image operations.

use std::process::ExitCode;

use warploom::kernels::op::page::{Pages, list_text, page_text};
use warploom::kernels::op::{OpInfo, find};

use crate::args;
use crate::output;
use crate::report;

pub(crate) fn run(args: &args::Ops) -> ExitCode {
    let asked: Option<&'static OpInfo> = match args.name.as_deref().map(find).transpose() {
        Ok(asked) => asked,
        Err(error) => return report::print(&error.into()),
    };
    match (asked, args.json) {
        (None, false) => output::text(&list_text()),
        (None, true) => output::json(&Pages::all()),
        (Some(op), false) => output::text(&page_text(op)),
        (Some(op), true) => output::json(&Pages::of([op])),
    }
}

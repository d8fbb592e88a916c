//! `warploom explain WLxxxx`: what a code means and what usually helps.

use std::process::ExitCode;

use serde::Serialize;
use warploom::Code;
use warploom::plan::diagnostic;

use crate::args;
use crate::output;
use crate::report::{self, Problem};

/// A code and its page, one a line; those of the compiler are with the compiler.
const PAGES: &str = include_str!("pages.txt");

#[derive(Serialize)]
struct Page {
    code: String,
    title: Option<String>,
    text: String,
}

pub(crate) fn run(args: &args::Explain) -> ExitCode {
    let Some(asked) = &args.code else {
        let all = codes();
        return if args.json {
            output::json(&all)
        } else {
            let lines = all
                .iter()
                .map(|page| format!("{}  {}\n", page.code, page.text));
            output::text(&lines.collect::<String>())
        };
    };
    let wanted = asked.trim().to_ascii_uppercase();
    let Some(page) = codes().into_iter().find(|page| page.code == wanted) else {
        let text = format!("there is no code `{asked}`");
        return report::print(&Problem::usage(
            text,
            "`warploom explain` lists all of them",
        ));
    };
    if args.json {
        return output::json(&page);
    }
    let title = page
        .title
        .map_or_else(String::new, |title| format!(": {title}"));
    output::text(&format!("{}{title}\n\n{}\n", page.code, page.text))
}

/// Every code, in order.
fn codes() -> Vec<Page> {
    let lines = PAGES.lines().filter_map(|line| line.split_once(' '));
    let elsewhere = lines.map(|(code, text)| Page {
        code: code.to_owned(),
        title: None,
        text: text.to_owned(),
    });
    let own = diagnostic::Problem::ALL.iter().map(|problem| {
        let code: Code = problem.code();
        let title = problem.title().trim();
        Page {
            code: code.to_string(),
            title: title.rsplit_once(" (").map(|(title, _)| title.to_owned()),
            text: problem.page().to_owned(),
        }
    });
    let mut all: Vec<Page> = elsewhere.chain(own).collect();
    all.sort_by(|a, b| a.code.cmp(&b.code));
    all
}

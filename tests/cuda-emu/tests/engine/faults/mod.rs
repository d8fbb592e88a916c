//! What goes wrong is noticed, and named.

mod bounds;
mod launches;
mod meetings;
mod memory;
mod time;

/// A module with these lines before its only kernel, `k`.
fn module(before: &str, params: &str, body: &str) -> String {
    format!(
        "
.version 8.6
.target sm_90
.address_size 64
{before}
.visible .entry k({params})
{{
    .reg .pred %p<8>;
    .reg .b16 %h<16>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    .reg .f32 %f<16>;
    .reg .f64 %fd<16>;
{body}
}}
"
    )
}

/// The line on which `text` stands in a module.
fn line_of(module: &str, text: &str) -> u32 {
    let found = module.lines().position(|line| line.contains(text));
    found.expect("the text is there") as u32 + 1
}

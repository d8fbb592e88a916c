//! Programs as PTX.

use std::fmt::Write as _;

use super::program::{
    Guard, Program, REGISTERS, SCRATCH, SORTS, STATE_BYTES, Sort, Source, Space, Statement,
};

pub(super) fn module(programs: &[Program]) -> String {
    let mut text = ".version 8.8\n.target sm_100\n.address_size 64\n".to_owned();
    for program in programs {
        text += &kernel(program);
    }
    text
}

struct Writer {
    text: String,
    labels: u32,
    counters: u32,
}

impl Writer {
    fn line(&mut self, line: &str) {
        writeln!(self.text, "    {line}").expect("writing to a String does not fail");
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }
}

pub(super) fn kernel(program: &Program) -> String {
    let mut body = Writer {
        text: String::new(),
        labels: 0,
        // The first is used for addresses.
        counters: 1,
    };
    restore(&mut body);
    statements(&mut body, &program.body);
    save(&mut body);
    let counters = body.counters + 1;
    format!(
        ".visible .entry {}(.param .u64 to, .param .align 32 .b8 state[{STATE_BYTES}])
{{
    .reg .b16 %h<{REGISTERS}>;
    .reg .b32 %r<{REGISTERS}>;
    .reg .b64 %d<{REGISTERS}>;
    .reg .f32 %f<{REGISTERS}>;
    .reg .f64 %g<{REGISTERS}>;
    .reg .pred %p<{REGISTERS}>, %nan, %again;
    .reg .b32 %count<{counters}>, %at;
    .reg .b64 %to, %global, %local, %shared, %generic, %where, %wide, %w<4>, %word;
    .shared .align 32 .b8 tile[{SCRATCH}];
    .local .align 32 .b8 own[{SCRATCH}];
{}    ret;
}}
",
        program.name, body.text
    )
}

/// All registers in the order of the record.
fn registers() -> Vec<(Sort, usize)> {
    let each = |sort| (0..REGISTERS).map(move |number| (sort, number));
    SORTS.into_iter().flat_map(each).collect()
}

/// Takes registers and scratch memories from the parameter.
fn restore(out: &mut Writer) {
    out.line("ld.param.u64 %to, [to];");
    out.line("mov.u64 %shared, tile;");
    out.line("mov.u64 %local, own;");
    out.line("cvta.local.u64 %generic, own;");
    for (place, (sort, number)) in registers().into_iter().enumerate() {
        out.line(&format!("ld.param.u64 %word, [state+{}];", place * 8));
        let name = format!("{}{number}", sort.prefix());
        out.line(&match sort {
            Sort::H => format!("cvt.u16.u64 {name}, %word;"),
            Sort::R => format!("cvt.u32.u64 {name}, %word;"),
            Sort::D | Sort::G => format!("mov.b64 {name}, %word;"),
            Sort::F => format!("cvt.u32.u64 %at, %word; mov.b32 {name}, %at;"),
            Sort::P => format!("and.b64 %word, %word, 1; setp.ne.u64 {name}, %word, 0;"),
        });
    }
    let start = registers().len() * 8;
    // Global memory is used in place, in the output; the others get a copy.
    out.line(&format!("add.u64 %global, %to, {start};"));
    let spaces = ["global", "shared", "local"];
    for (space, at) in spaces.into_iter().zip((start..).step_by(SCRATCH)) {
        for step in (0..SCRATCH).step_by(16) {
            for word in 0..2 {
                let place = at + step + word * 8;
                out.line(&format!("ld.param.u64 %w{word}, [state+{place}];"));
            }
            out.line(&format!(
                "st.{space}.v2.u64 [%{space}+{step}], {{%w0, %w1}};"
            ));
        }
    }
}

/// Leaves everything in the output.
fn save(out: &mut Writer) {
    for (place, (sort, number)) in registers().into_iter().enumerate() {
        let name = format!("{}{number}", sort.prefix());
        let word = format!("%w{}", place % 4);
        out.line(&match sort {
            Sort::H => format!("cvt.u64.u16 {word}, {name};"),
            Sort::R => format!("cvt.u64.u32 {word}, {name};"),
            Sort::D | Sort::G => format!("mov.b64 {word}, {name};"),
            Sort::F => format!("mov.b32 %at, {name}; cvt.u64.u32 {word}, %at;"),
            Sort::P => format!("selp.u64 {word}, 1, 0, {name};"),
        });
        if place % 4 == 3 {
            let at = (place - 3) * 8;
            out.line(&format!(
                "st.global.v4.u64 [%to+{at}], {{%w0, %w1, %w2, %w3}};"
            ));
        }
    }
    let start = registers().len() * 8;
    for (load, at) in [("ld.shared", 1), ("ld", 2)] {
        let from = if at == 1 { "%shared" } else { "%generic" };
        for step in (0..SCRATCH).step_by(16) {
            out.line(&format!("{load}.v2.u64 {{%w0, %w1}}, [{from}+{step}];"));
            let to = start + at * SCRATCH + step;
            out.line(&format!("st.global.v2.u64 [%to+{to}], {{%w0, %w1}};"));
        }
    }
}

fn guarded(guard: Guard) -> String {
    match guard {
        None => String::new(),
        Some((register, false)) => format!("@%p{register} "),
        Some((register, true)) => format!("@!%p{register} "),
    }
}

fn source(sort: Sort, source: Source) -> String {
    match (source, sort) {
        (Source::Register(number), _) => format!("{}{number}", sort.prefix()),
        (Source::Constant(bits), Sort::F) => format!("0f{bits:08X}"),
        (Source::Constant(bits), Sort::G) => format!("0d{bits:016X}"),
        (Source::Constant(bits), _) => {
            let unused = 64 - sort.bits();
            let value = (bits << unused) as i64 >> unused;
            // Small negative numbers as compilers write them, others as they come.
            if (-100..0).contains(&value) {
                value.to_string()
            } else {
                bits.to_string()
            }
        }
    }
}

fn statements(out: &mut Writer, all: &[Statement]) {
    for statement in all {
        match statement {
            Statement::Compute {
                rule,
                target,
                sources,
                guard,
            } => {
                let target = format!("{}{target}", rule.to.prefix());
                let sources: Vec<String> = rule
                    .from
                    .iter()
                    .zip(sources)
                    .map(|(sort, given)| source(*sort, *given))
                    .collect();
                let guard = guarded(*guard);
                let operands = sources.join(", ");
                out.line(&format!("{guard}{} {target}, {operands};", rule.opcode));
                if rule.to == Sort::G && rule.is_arithmetic {
                    // Which payload survives is left open, so none does.
                    out.line(&format!("testp.notanumber.f64 %nan, {target};"));
                    out.line(&format!(
                        "selp.f64 {target}, 0d7FF8000000000000, {target}, %nan;"
                    ));
                }
            }
            Statement::Access { .. } => access(out, statement),
            Statement::If {
                predicate,
                then,
                otherwise,
            } => {
                let (other, end) = (out.label(), out.label());
                out.line(&format!("@!%p{predicate} bra {other};"));
                statements(out, then);
                out.line(&format!("bra {end};"));
                out.line(&format!("{other}:"));
                statements(out, otherwise);
                out.line(&format!("{end}:"));
            }
            Statement::Loop { times, body } => {
                let (again, counter) = (out.label(), out.counters);
                out.counters += 1;
                out.line(&format!("mov.u32 %count{counter}, 0;"));
                out.line(&format!("{again}:"));
                statements(out, body);
                out.line(&format!("add.u32 %count{counter}, %count{counter}, 1;"));
                out.line(&format!("setp.lt.u32 %again, %count{counter}, {times};"));
                out.line(&format!("@%again bra {again};"));
            }
            Statement::Barrier => out.line("bar.sync 0;"),
        }
    }
}

fn access(out: &mut Writer, statement: &Statement) {
    let Statement::Access {
        is_load,
        space,
        ty,
        bytes,
        sort,
        lanes,
        target,
        place,
        guard,
    } = statement
    else {
        return;
    };
    let size = bytes * lanes;
    let mask = SCRATCH - size;
    // Sizes are powers of two, so that the mask keeps multiples of the size.
    out.line(&format!("and.b32 %at, %r{place}, {mask};"));
    let (prefix, base) = match space {
        Space::Global => (".global", "%global"),
        Space::Shared => (".shared", "%shared"),
        Space::Local => (".local", "%local"),
        Space::Generic => ("", "%generic"),
    };
    // Some spaces have addresses of 32 bits as well.
    let address = if *space == Space::Shared && place % 2 == 0 {
        out.line("cvt.u32.u64 %count0, %shared; add.u32 %at, %at, %count0;");
        "[%at]"
    } else {
        out.line(&format!(
            "cvt.u64.u32 %wide, %at; add.u64 %where, {base}, %wide;"
        ));
        "[%where]"
    };
    let names: Vec<String> = (*target..target + lanes)
        .map(|number| format!("{}{number}", sort.prefix()))
        .collect();
    let (vector, names) = match lanes {
        1 => (String::new(), names[0].clone()),
        _ => (format!(".v{lanes}"), format!("{{{}}}", names.join(", "))),
    };
    let guard = guarded(*guard);
    if *is_load {
        out.line(&format!(
            "{guard}ld{prefix}{vector}.{ty} {names}, {address};"
        ));
    } else {
        out.line(&format!(
            "{guard}st{prefix}{vector}.{ty} {address}, {names};"
        ));
    }
}

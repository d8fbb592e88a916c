//! Programs as PTX.

use std::fmt::Write as _;

use super::program::{
    Guard, Program, REGISTERS, SCRATCH, SORTS, STATE_BYTES, Sort, Source, Space, Statement,
};

pub(super) fn module(programs: &[Program]) -> String {
    let mut text = ".version 8.0\n.target sm_80\n.address_size 64\n".to_owned();
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
        counters: 0,
    };
    restore(&mut body);
    statements(&mut body, &program.body);
    save(&mut body);
    let counters = body.counters + 1;
    format!(
        ".visible .entry {}(.param .u64 from, .param .u64 to)
{{
    .reg .b16 %h<{REGISTERS}>;
    .reg .b32 %r<{REGISTERS}>;
    .reg .b64 %d<{REGISTERS}>;
    .reg .f32 %f<{REGISTERS}>;
    .reg .f64 %g<{REGISTERS}>;
    .reg .pred %p<{REGISTERS}>, %nan, %again;
    .reg .b32 %count<{counters}>, %at, %thread, %shared;
    .reg .b64 %from, %to, %global, %local, %generic, %where, %wide, %word;
    .shared .align 16 .b8 tile[1024];
    .local .align 16 .b8 own[{SCRATCH}];
{}    ret;
}}
",
        program.name, body.text
    )
}

/// Where a thread's record begins, and its scratch memories.
fn restore(out: &mut Writer) {
    out.line("mov.u32 %thread, %tid.x;");
    out.line("ld.param.u64 %from, [from];");
    out.line("ld.param.u64 %to, [to];");
    out.line(&format!(
        "mad.wide.u32 %from, %thread, {STATE_BYTES}, %from;"
    ));
    out.line(&format!("mad.wide.u32 %to, %thread, {STATE_BYTES}, %to;"));
    out.line(&format!("mad.lo.u32 %shared, %thread, {SCRATCH}, tile;"));
    out.line("mov.u64 %local, own;");
    out.line("cvta.local.u64 %generic, own;");
    let mut at = 0;
    for sort in SORTS {
        for number in 0..REGISTERS {
            out.line(&format!("ld.global.u64 %word, [%from+{at}];"));
            let name = format!("{}{number}", sort.prefix());
            out.line(&match sort {
                Sort::H => format!("cvt.u16.u64 {name}, %word;"),
                Sort::R => format!("cvt.u32.u64 {name}, %word;"),
                Sort::D | Sort::G => format!("mov.b64 {name}, %word;"),
                Sort::F => format!("cvt.u32.u64 %at, %word; mov.b32 {name}, %at;"),
                Sort::P => format!("and.b64 %word, %word, 1; setp.ne.u64 {name}, %word, 0;"),
            });
            at += 8;
        }
    }
    // Global memory is used in place, in the output; the others get a copy.
    out.line(&format!("add.u64 %global, %to, {at};"));
    for step in (0..SCRATCH).step_by(8) {
        let place = at + step;
        out.line(&format!("ld.global.u64 %word, [%from+{place}];"));
        out.line(&format!("st.global.u64 [%global+{step}], %word;"));
        let place = place + SCRATCH;
        out.line(&format!("ld.global.u64 %word, [%from+{place}];"));
        out.line(&format!("st.shared.u64 [%shared+{step}], %word;"));
        let place = place + SCRATCH;
        out.line(&format!("ld.global.u64 %word, [%from+{place}];"));
        out.line(&format!("st.local.u64 [%local+{step}], %word;"));
    }
}

fn save(out: &mut Writer) {
    let mut at = 0;
    for sort in SORTS {
        for number in 0..REGISTERS {
            let name = format!("{}{number}", sort.prefix());
            out.line(&match sort {
                Sort::H => format!("cvt.u64.u16 %word, {name};"),
                Sort::R => format!("cvt.u64.u32 %word, {name};"),
                Sort::D | Sort::G => format!("mov.b64 %word, {name};"),
                Sort::F => format!("mov.b32 %at, {name}; cvt.u64.u32 %word, %at;"),
                Sort::P => format!("selp.u64 %word, 1, 0, {name};"),
            });
            out.line(&format!("st.global.u64 [%to+{at}], %word;"));
            at += 8;
        }
    }
    for step in (0..SCRATCH).step_by(8) {
        let place = at + SCRATCH + step;
        out.line(&format!("ld.shared.u64 %word, [%shared+{step}];"));
        out.line(&format!("st.global.u64 [%to+{place}], %word;"));
        let place = place + SCRATCH;
        out.line(&format!("ld.u64 %word, [%generic+{step}];"));
        out.line(&format!("st.global.u64 [%to+{place}], %word;"));
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
    out.line(&format!("and.b32 %at, %r{place}, {mask};"));
    // Masks of powers of two keep multiples of the size.
    out.line(&format!("and.b32 %at, %at, {};", SCRATCH - size));
    let (prefix, base) = match space {
        Space::Global => (".global", "%global"),
        Space::Shared => (".shared", ""),
        Space::Local => (".local", "%local"),
        Space::Generic => ("", "%generic"),
    };
    let address = if base.is_empty() {
        out.line("add.u32 %at, %at, %shared;");
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

//! The screen, drawn from what is known and what was chosen. 80 columns and 24 lines are enough.

use std::time::SystemTime;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, TableState};
use warploom::Bytes;
use warploom::watch::board::{Notice, Phase};
use warploom::watch::{Machine, MachineDevice};

use super::rows;
use super::state::{Focus, State};

/// From this width on there is room for memory and a bar.
const WIDE: u16 = 100;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    machine: &Machine,
    state: &State,
    trouble: Option<&str>,
    now: SystemTime,
) {
    let leases = rows::leases(machine, now);
    let lines = |rows: usize, most: u16| u16::try_from(rows).unwrap_or(most).clamp(1, most) + 2;
    let third = (frame.area().height / 3).saturating_sub(2).max(1);
    let [
        head,
        devices_area,
        leases_area,
        runs_area,
        detail_area,
        foot,
    ] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lines(machine.devices.len(), third)),
        Constraint::Length(lines(leases.len(), third)),
        Constraint::Min(3),
        Constraint::Length(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(headline(machine), head);
    devices(frame, machine, devices_area);
    lease_table(frame, &leases, state, leases_area);
    let runs = state.ordered(machine);
    run_table(frame, &runs, state, runs_area);
    if let Some(run) = runs.get(state.place(&runs)) {
        frame.render_widget(detail(run), detail_area);
    }
    frame.render_widget(footer(state, trouble), foot);
}

fn headline(machine: &Machine) -> Line<'static> {
    let (runs, waiting) = (machine.runs.len(), machine.in_phase(Phase::Waiting));
    let mut parts = vec![
        "warploom top".bold(),
        format!("  {runs} run{}", if runs == 1 { "" } else { "s" }).into(),
    ];
    if waiting > 0 {
        parts.push(format!(", {waiting} waiting").yellow());
    }
    if machine.rate().is_some() {
        parts.push(format!(", {} together", rows::rate(machine.rate())).into());
    }
    Line::from(parts)
}

fn block(title: &str, focused: bool) -> Block<'static> {
    let style = if focused {
        Style::new().bold()
    } else {
        Style::new()
    };
    let title = Span::styled(format!(" {title} "), style);
    Block::new()
        .borders(Borders::TOP)
        .border_style(Style::new().dim())
        .title(title)
}

/// Names of columns, over numbers on the side where the numbers are.
fn heads(names: &[&'static str]) -> Row<'static> {
    let is_word = |name: &str| {
        [
            "DEVICE", "NAME", "FOR", "STATE", "PIPELINE", "PHASE", "ON", "DONE",
        ]
        .contains(&name)
    };
    let cell = |&name: &&'static str| {
        if is_word(name) {
            Cell::from(name)
        } else {
            right(name)
        }
    };
    Row::new(names.iter().map(cell)).style(Style::new().dim())
}

fn right(text: &str) -> Cell<'static> {
    Cell::from(Line::from(text.to_owned()).alignment(Alignment::Right))
}

fn devices(frame: &mut Frame<'_>, machine: &Machine, area: Rect) {
    let all = rows::devices(machine);
    let shown = usize::from(area.height.saturating_sub(2));
    let rows = machine.devices.iter().zip(&all).map(|(device, row)| {
        let [name, label, slots, leased, of, used, wait] = row;
        let style = match fullness(device) {
            full if full >= 0.95 => Style::new().fg(Color::Red),
            full if full >= 0.7 => Style::new().fg(Color::Yellow),
            _ => Style::new(),
        };
        let leased = right(leased).style(style);
        Row::new([
            Cell::from(name.clone()).bold(),
            Cell::from(label.clone()),
            right(slots),
            leased,
            right(of),
            right(used),
            right(wait),
        ])
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Fill(1),
        Constraint::Length(6),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(4),
    ];
    let title = titled("Devices", all.len(), shown);
    let table = Table::new(rows, widths)
        .header(heads(&rows::DEVICE_HEADS))
        .block(block(&title, false));
    frame.render_widget(table, area);
}

/// How much of a device is leased: the larger of slots and bytes.
fn fullness(device: &MachineDevice) -> f64 {
    let share = |held: u64, all: u64| {
        if all == 0 {
            0.0
        } else {
            held as f64 / all as f64
        }
    };
    let slots = share(device.slots_held(), device.capacity.slots.into());
    slots.max(share(device.bytes_held(), device.capacity.bytes))
}

/// A title that says if not everything has room.
fn titled(name: &str, all: usize, shown: usize) -> String {
    if all > shown {
        format!("{name} ({shown} of {all})")
    } else {
        name.to_owned()
    }
}

fn lease_table(frame: &mut Frame<'_>, leases: &[[String; 7]], state: &State, area: Rect) {
    let shown = usize::from(area.height.saturating_sub(2));
    let title = block(
        &titled("Leases", leases.len(), shown),
        state.focus == Focus::Leases,
    );
    if leases.is_empty() {
        frame.render_widget(
            Paragraph::new("  nobody holds a device").dim().block(title),
            area,
        );
        return;
    }
    let from = state.lease.min(leases.len().saturating_sub(shown.max(1)));
    let rows = leases
        .iter()
        .skip(from)
        .map(|[device, pid, label, slots, bytes, since, what]| {
            let row = Row::new([
                Cell::from(device.clone()).bold(),
                right(pid),
                Cell::from(label.clone()),
                right(slots),
                right(bytes),
                right(since),
                Cell::from(what.clone()),
            ]);
            if what == "waiting" {
                row.fg(Color::Yellow)
            } else {
                row
            }
        });
    let widths = [
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Fill(1),
        Constraint::Length(5),
        Constraint::Length(10),
        Constraint::Length(7),
        Constraint::Length(7),
    ];
    let table = Table::new(rows, widths)
        .header(heads(&rows::LEASE_HEADS))
        .block(title);
    frame.render_widget(table, area);
}

fn run_table(frame: &mut Frame<'_>, runs: &[&Notice], state: &State, area: Rect) {
    let shown = usize::from(area.height.saturating_sub(2));
    let title = block(
        &titled("Runs", runs.len(), shown),
        state.focus == Focus::Runs,
    );
    if runs.is_empty() {
        let nothing = "  nothing runs; `warploom run` shows up here while it works";
        frame.render_widget(Paragraph::new(nothing).dim().block(title), area);
        return;
    }
    let wide = area.width >= WIDE;
    let rows = runs.iter().map(|run| {
        let [pid, pipeline, phase, on, done, failed, rate, memory, left] = rows::run(run);
        let phase_style = match run.phase {
            Phase::Running => Style::new().fg(Color::Green),
            Phase::Waiting => Style::new().fg(Color::Yellow),
            Phase::Starting | Phase::Draining => Style::new(),
        };
        let failed_style = if run.failed > 0 {
            Style::new().fg(Color::Red)
        } else {
            Style::new()
        };
        let done = if wide {
            format!("{} {done}", bar(run))
        } else {
            done
        };
        let mut cells = vec![
            right(&pid),
            Cell::from(pipeline).bold(),
            Cell::from(phase).style(phase_style),
            Cell::from(on),
            Cell::from(done),
            right(&failed).style(failed_style),
            right(&rate),
        ];
        cells.extend(wide.then(|| right(&memory)));
        cells.push(right(&left));
        Row::new(cells)
    });
    let mut widths = vec![
        Constraint::Length(8),
        Constraint::Fill(1),
        Constraint::Length(8),
        Constraint::Length(if wide { 16 } else { 10 }),
        Constraint::Length(if wide { 30 } else { 17 }),
        Constraint::Length(6),
        Constraint::Length(8),
    ];
    widths.extend(wide.then_some(Constraint::Length(10)));
    widths.push(Constraint::Length(7));
    let names: Vec<&'static str> = rows::RUN_HEADS
        .into_iter()
        .filter(|&name| wide || name != "MEMORY")
        .collect();
    let picked = Style::new().add_modifier(Modifier::REVERSED);
    let table = Table::new(rows, widths)
        .header(heads(&names))
        .row_highlight_style(picked)
        .block(title);
    let mut place = TableState::new().with_selected(state.place(runs));
    frame.render_stateful_widget(table, area, &mut place);
}

fn bar(run: &Notice) -> String {
    let full = usize::try_from(rows::percent(run) / 10)
        .unwrap_or(10)
        .min(10);
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

/// The picked run, device by device.
fn detail(run: &Notice) -> Paragraph<'static> {
    let mut first = vec![Span::from(rows::clean(&run.title)).bold()];
    if let Some(bound) = run.bound {
        first.push(format!("  the model allows {}", rows::rate(Some(bound))).dim());
    }
    let devices = run.devices.iter().map(|device| {
        let memory = match (device.memory, device.budget) {
            (Some(used), Some(budget)) => format!(" {} of {}", Bytes(used), Bytes(budget)),
            (Some(used), None) => format!(" {}", Bytes(used)),
            _ => String::new(),
        };
        let text = format!(
            "{} {} ok {}{memory}   ",
            rows::clean(&device.label),
            device.ok,
            rows::rate(device.rate)
        );
        if device.quarantined {
            format!("{text}quarantined   ").red()
        } else {
            Span::from(text)
        }
    });
    Paragraph::new(vec![Line::from(first), devices.collect::<Line<'_>>()])
}

fn footer(state: &State, trouble: Option<&str>) -> Line<'static> {
    if let Some(trouble) = trouble {
        return Line::from(rows::clean(trouble)).red();
    }
    let direction = if state.reversed { ", reversed" } else { "" };
    Line::from(format!(
        "q quit  ↑↓ move  Tab list  s sort: {}{direction}  r reverse  d detect again",
        state.order.word()
    ))
    .dim()
}

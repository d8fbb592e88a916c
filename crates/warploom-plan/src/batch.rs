//! Many pipelines over many records: who runs where, so that all are done early.
//!
//! Every kind of work (a pipeline on records of one sort) is compiled once for each card. Work is
//! then dealt out by prices of the cards' time, which also give the bound on what is possible, and
//! the fullest cards give pieces away as long as that helps. Where that is not near the bound, long pieces
//! are dealt one by one (`branch`); a handful of pieces is dealt in the best way there is. All of it is
//! arithmetic on estimates, so the same batch gives the same assignment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warploom_core::Status;

use crate::branch;
use crate::compile::compile;
use crate::diagnostic::{Diagnostic, merge};
use crate::handful;
use crate::options::Options;
use crate::pipeline::{Pipeline, Policy};
use crate::plan::ExecutionPlan;
use crate::sources::Sources;
use crate::world::order;

/// One kind of work.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// What its records look like.
    pub sources: &'a Sources,
    /// How many records of this kind there are.
    pub records: usize,
}

/// What was assigned to one card.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Share {
    /// Records of each kind of work, by its position.
    pub records: BTreeMap<usize, usize>,
}

/// Who runs where.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct BatchPlan {
    /// The plan of each kind of work on each card that can run it.
    pub plans: Vec<BTreeMap<String, ExecutionPlan>>,
    /// What each card does.
    pub shares: BTreeMap<String, Share>,
    /// Seconds until the last card is done.
    pub makespan: f64,
    /// Seconds that no assignment can beat.
    pub bound: f64,
}

/// Compiles every kind of work for every card, and deals the records out.
///
/// # Errors
/// When some kind of work fits no card, with the reasons of each.
pub fn compile_batch(
    work: &[Work<'_>],
    status: Option<&Status>,
    options: &Options,
) -> Result<BatchPlan, Vec<Diagnostic>> {
    let mut plans = Vec::new();
    let mut refused = Vec::new();
    for kind in work {
        let mut able = BTreeMap::new();
        for names in cards(kind.pipeline, status, options) {
            let mut only = options.clone();
            only.devices = names;
            if let Ok(plan) = compile(kind.pipeline, kind.sources, status, &only) {
                able.insert(plan.device.name.clone(), plan);
            }
        }
        if able.is_empty() {
            // It goes where it would by itself, such as to the processor if nothing else can run
            // it; or is refused with what every card has against it.
            match compile(kind.pipeline, kind.sources, status, options) {
                Ok(plan) => drop(able.insert(plan.device.name.clone(), plan)),
                Err(findings) => merge(&mut refused, findings),
            }
        }
        plans.push(able);
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let names: Vec<String> = {
        let mut names: Vec<String> = plans.iter().flat_map(|able| able.keys().cloned()).collect();
        names.sort_by(|a, b| order(a).cmp(&order(b)));
        names.dedup();
        names
    };
    let costs: Vec<Vec<f64>> = plans
        .iter()
        .map(|able: &BTreeMap<String, ExecutionPlan>| {
            let cost = |name: &String| able.get(name).map_or(f64::INFINITY, |p| p.estimate.paced);
            names.iter().map(cost).collect()
        })
        .collect();
    let counts: Vec<usize> = work.iter().map(|kind| kind.records).collect();
    let dealt = deal(&costs, &counts);
    let shares = names.iter().zip(&dealt.counts);
    let shares = shares.map(|(name, counts)| {
        let records = counts.iter().copied().enumerate();
        let records = records.filter(|(_, count)| *count > 0).collect();
        (name.clone(), Share { records })
    });
    Ok(BatchPlan {
        shares: shares.collect(),
        makespan: dealt.makespan,
        bound: dealt.bound,
        plans,
    })
}

/// The cards a kind of work is dealt to, each by the names that are allowed of it: those the caller
/// names, or else those a pipeline goes to by itself, and under `cost` the processor as well.
fn cards(pipeline: &Pipeline, status: Option<&Status>, options: &Options) -> Vec<Vec<String>> {
    let Some(status) = status else {
        return vec![vec!["cpu".to_owned()]];
    };
    let survey = &status.survey;
    if options.devices.is_empty() {
        let mut cards = survey.usable();
        if options.placement.or(pipeline.placement) == Some(Policy::Cost) {
            let there: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
            let processor = survey.find("cpu");
            cards.extend(processor.filter(|_| !there.contains(&"cpu")));
        }
        return cards.iter().map(|card| vec![card.name.clone()]).collect();
    }
    // Two faces of one card are one card.
    let mut cards: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in &options.devices {
        let card = survey.find(name).map_or(name, |card| &card.name);
        cards.entry(card.clone()).or_default().push(name.clone());
    }
    cards.into_values().collect()
}

/// Work dealt out.
#[derive(Clone, PartialEq, Debug)]
pub struct Dealt {
    /// Pieces of each kind, card by card.
    pub counts: Vec<Vec<usize>>,
    /// Seconds until the last card is done.
    pub makespan: f64,
    /// Seconds that no way to deal this work can beat.
    pub bound: f64,
}

/// Deals `counts[k]` pieces of each kind `k`, which take `costs[k][c]` seconds on card `c`
/// (infinity where they cannot run).
pub fn deal(costs: &[Vec<f64>], counts: &[usize]) -> Dealt {
    handful::best(costs, counts).unwrap_or_else(|| branch::deal(costs, counts))
}

/// Deals what is left, by prices, to cards that have these pieces and loads already.
pub(crate) fn complete(
    costs: &[Vec<f64>],
    left: &[usize],
    market: &Market,
    (mut dealt, mut loads): (Vec<Vec<usize>>, Vec<f64>),
) -> Dealt {
    let cards = loads.len();
    for (kind, count) in left.iter().enumerate() {
        let mut left = *count;
        for card in 0..cards {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share is between 0 and the count"
            )]
            let whole = (market.shares[kind][card] as usize).min(left);
            if whole > 0 {
                dealt[card][kind] += whole;
                loads[card] += costs[kind][card] * whole as f64;
                left -= whole;
            }
        }
        // What cutting left over goes where it ends first.
        for _ in 0..left {
            let end = |card: &usize| loads[*card] + costs[kind][*card];
            let able = (0..cards).filter(|card| costs[kind][*card].is_finite());
            let Some(card) = able.min_by(|a, b| end(a).total_cmp(&end(b))) else {
                break;
            };
            dealt[card][kind] += 1;
            loads[card] += costs[kind][card];
        }
    }
    even_out(costs, &mut dealt, &mut loads);
    improve(costs, &mut dealt, &mut loads);
    Dealt {
        counts: dealt,
        makespan: loads.iter().copied().fold(0.0, f64::max),
        bound: market.value,
    }
}

/// A piece of a kind that goes from one card to another.
type Move = (usize, usize, usize);

/// Moves pieces from the fullest card to where the least time is lost by it, while that ends
/// sooner. Where the best place is full itself, a piece there makes room by moving on.
fn even_out(costs: &[Vec<f64>], dealt: &mut [Vec<usize>], loads: &mut [f64]) {
    let (cards, kinds) = (loads.len(), costs.len());
    let pieces: usize = dealt.iter().flatten().sum();
    // Moving on is tried where there are few enough ways to try.
    let onward = if kinds * cards <= 256 { kinds } else { 0 };
    for _ in 0..4 * pieces {
        let Some(full) = (0..cards).max_by(|a, b| loads[*a].total_cmp(&loads[*b])) else {
            return;
        };
        let limit = loads[full] * (1.0 - 1e-9);
        let mut best: Option<(f64, Move, Option<Move>)> = None;
        for kind in (0..kinds).filter(|kind| dealt[full][*kind] > 0) {
            let gone = costs[kind][full];
            for card in (0..cards).filter(|card| *card != full) {
                let come = costs[kind][card];
                let mut consider = |lost: f64, on: Option<Move>| {
                    let loss = (come - gone + lost) / gone;
                    if best.is_none_or(|(least, ..)| loss < least) {
                        best = Some((loss, (kind, full, card), on));
                    }
                };
                if loads[card] + come < limit {
                    consider(0.0, None);
                    continue;
                }
                for other in (0..onward).filter(|other| dealt[card][*other] > 0) {
                    let away = costs[other][card];
                    for to in (0..cards).filter(|to| *to != full && *to != card) {
                        let there = costs[other][to];
                        let room = loads[card] + come - away < limit && loads[to] + there < limit;
                        if room {
                            consider(there - away, Some((other, card, to)));
                        }
                    }
                }
            }
        }
        let Some((_, first, second)) = best else {
            return;
        };
        for (kind, from, to) in [Some(first), second].into_iter().flatten() {
            dealt[from][kind] -= 1;
            dealt[to][kind] += 1;
            loads[from] -= costs[kind][from];
            loads[to] += costs[kind][to];
        }
    }
}

/// Moves and swaps pieces away from the fullest card while that ends sooner.
fn improve(costs: &[Vec<f64>], dealt: &mut [Vec<usize>], loads: &mut [f64]) {
    let (cards, kinds) = (loads.len(), costs.len());
    for _ in 0..10_000 {
        let Some(full) = (0..cards).max_by(|a, b| loads[*a].total_cmp(&loads[*b])) else {
            return;
        };
        // The later of the two cards' ends after a change must be before the end now.
        let now = loads[full];
        let mut best: Option<(f64, usize, usize, Option<usize>)> = None;
        for kind in (0..kinds).filter(|kind| dealt[full][*kind] > 0) {
            for card in (0..cards).filter(|card| *card != full) {
                let (gone, come) = (costs[kind][full], costs[kind][card]);
                let mut consider = |back: Option<usize>| {
                    let (lost, won) = back.map_or((0.0, 0.0), |k| (costs[k][card], costs[k][full]));
                    let end = (now - gone + won).max(loads[card] + come - lost);
                    let better = best.is_none_or(|(other, ..)| end < other);
                    if end < now * (1.0 - 1e-9) && better {
                        best = Some((end, kind, card, back));
                    }
                };
                consider(None);
                // Swaps are tried where there are few enough pairs to try.
                let pairs = if kinds <= 64 { kinds } else { 0 };
                for back in (0..pairs).filter(|back| *back != kind && dealt[card][*back] > 0) {
                    consider(Some(back));
                }
            }
        }
        let Some((_, kind, card, back)) = best else {
            return;
        };
        let mut shift = |kind: usize, from: usize, to: usize| {
            dealt[from][kind] -= 1;
            dealt[to][kind] += 1;
            loads[from] -= costs[kind][from];
            loads[to] += costs[kind][to];
        };
        shift(kind, full, card);
        if let Some(back) = back {
            shift(back, card, full);
        }
    }
}

/// Prices per second of each card, summing to 1, at which the cheapest way to do all work is as
/// dear as possible; and how work is dealt on average while the price of whatever is asked for most
/// is raised again and again, which comes near the best way to deal pieces that can be cut.
pub(crate) struct Market {
    prices: Vec<f64>,
    shares: Vec<Vec<f64>>,
    /// What all work costs at these prices: no assignment ends sooner.
    pub(crate) value: f64,
}

impl Market {
    pub(crate) fn of(costs: &[Vec<f64>], counts: &[usize]) -> Self {
        let cards = costs.first().map_or(0, Vec::len);
        let size = (costs.len() * cards).max(1);
        let rounds = (4_000_000 / size).clamp(500, 10_000);
        let weights = vec![1.0 / cards.max(1) as f64; cards];
        Self::from(costs, counts, &vec![0.0; cards], weights, rounds)
    }

    /// The same for other work, on cards that have loads already, beginning with these prices.
    pub(crate) fn next(
        &self,
        costs: &[Vec<f64>],
        counts: &[usize],
        loads: &[f64],
        rounds: usize,
    ) -> Self {
        Self::from(costs, counts, loads, self.prices.clone(), rounds)
    }

    fn from(
        costs: &[Vec<f64>],
        counts: &[usize],
        loads: &[f64],
        mut weights: Vec<f64>,
        rounds: usize,
    ) -> Self {
        let step = 2.0 / (rounds as f64).sqrt();
        let value = |weights: &[f64]| {
            let begun = loads
                .iter()
                .zip(weights)
                .map(|(load, weight)| load * weight);
            cheapest(costs, counts, weights) + begun.sum::<f64>()
        };
        let mut best = (value(&weights), weights.clone());
        let mut shares = vec![vec![0.0; loads.len()]; costs.len()];
        for round in 0..rounds {
            let mut asked = loads.to_vec();
            for (kind, count) in counts.iter().enumerate() {
                let Some(card) = cheapest_card(&costs[kind], &weights) else {
                    continue;
                };
                asked[card] += costs[kind][card] * *count as f64;
                // The first prices are far off and say nothing about shares.
                if round >= rounds / 5 {
                    shares[kind][card] += *count as f64;
                }
            }
            let most = asked.iter().copied().fold(0.0, f64::max);
            if most <= 0.0 {
                break;
            }
            for (weight, asked) in weights.iter_mut().zip(&asked) {
                *weight *= (step * asked / most).exp();
            }
            let sum: f64 = weights.iter().sum();
            for weight in &mut weights {
                *weight /= sum;
            }
            let value = value(&weights);
            if value > best.0 {
                best = (value, weights.clone());
            }
        }
        for (shares, count) in shares.iter_mut().zip(counts) {
            let sum: f64 = shares.iter().sum();
            for share in shares {
                *share *= *count as f64 / sum.max(1.0);
            }
        }
        Self {
            value: best.0,
            prices: best.1,
            shares,
        }
    }
}

fn cheapest_card(costs: &[f64], weights: &[f64]) -> Option<usize> {
    let able = (0..costs.len()).filter(|card| costs[*card].is_finite());
    able.min_by(|a, b| (costs[*a] * weights[*a]).total_cmp(&(costs[*b] * weights[*b])))
}

/// What all work costs at these prices, each piece where it is cheapest. With prices that sum to
/// 1 no assignment ends sooner than this.
fn cheapest(costs: &[Vec<f64>], counts: &[usize], weights: &[f64]) -> f64 {
    let each = costs.iter().zip(counts).filter_map(|(costs, count)| {
        let card = cheapest_card(costs, weights)?;
        Some(costs[card] * weights[card] * *count as f64)
    });
    each.sum()
}

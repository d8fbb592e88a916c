//! Primitives that look at whole images.

use super::image::with_image;
use super::threshold::Method;
use super::totals::{Totals, Wanted};
use super::{
    Image, ImageMut, View, ViewMut, distance, histogram, label, objects, percentile, threshold,
    totals,
};
use warploom_flow::expr::Node as Term;
use warploom_flow::flow::{Connectivity, Flow, Prim, ThresholdMethod, ValueId};

/// Runs a primitive of this family; answers whether it is one.
pub(super) fn run(prim: &Prim, sources: &[Image<'_>], targets: &mut Vec<ImageMut<'_>>) -> bool {
    match prim {
        Prim::Totals => some_totals(sources[0], targets.remove(0), Wanted::ALL),
        Prim::Histogram { bins, low, high } => {
            let listed = |at: usize| match sources.get(1) {
                Some(Image::F64(list)) => list.row(0, 0)[at],
                _ => unreachable!("a histogram is given its limits, or a list that holds them"),
            };
            let (low, high) = (
                low.unwrap_or_else(|| listed(0)),
                high.unwrap_or_else(|| listed(1)),
            );
            let mut counts = vec![0; *bins as usize];
            with_image!(sources[0], view => histogram::histogram(view, low, high, &mut counts));
            counts_into(targets.remove(0), &counts);
        }
        Prim::Percentiles { q } => {
            let found = with_image!(sources[0], view => percentile::percentiles(view, q));
            numbers(targets.remove(0), &found);
        }
        Prim::Threshold { method, bins } => {
            let method = self::method(*method);
            let bins = *bins as usize;
            let found = with_image!(sources[0], view => threshold::threshold(view, method, bins));
            numbers(targets.remove(0), &[found]);
        }
        Prim::Label(_) | Prim::Distance => on_mask(prim, sources[0], targets.remove(0)),
        Prim::KeepSizes { .. } | Prim::ClearBorder | Prim::Relabel | Prim::Expand { .. } => {
            if let (Image::U32(labels), ImageMut::U32(out)) = (sources[0], targets.remove(0)) {
                on_labels(prim, labels, out);
            }
        }
        Prim::Statistics { columns } => {
            if let (Image::U32(labels), ImageMut::F64(mut out)) = (sources[0], targets.remove(0)) {
                let found =
                    with_image!(sources[1], view => objects::label_statistics(labels, view));
                table(&found, *columns as usize, out.row(0, 0));
            }
        }
        _ => return false,
    }
    true
}

/// Which numbers of a list of totals somebody reads.
pub(super) fn wanted(flow: &Flow, list: ValueId) -> Wanted {
    if flow.is_output(list) {
        return Wanted::ALL;
    }
    let mut places: Vec<usize> = Vec::new();
    for node in flow.readers(list).map(|at| &flow.nodes()[at]) {
        match &node.prim {
            Prim::Map { dag, .. } => {
                places.extend(dag.nodes().iter().filter_map(|(term, _)| match *term {
                    Term::Scalar { list: at, index } if node.inputs[at as usize] == list => {
                        Some(index as usize)
                    }
                    _ => None,
                }));
            }
            Prim::Histogram { .. } => places.extend([0, 1]),
            _ => return Wanted::ALL,
        }
    }
    Wanted::of(places.into_iter())
}

/// Those of an image's totals that are wanted.
pub(super) fn some_totals(source: Image<'_>, target: ImageMut<'_>, wanted: Wanted) {
    let found = with_image!(source, view => totals::some_totals(view, wanted));
    totals_into(target, found);
}

pub(super) fn totals_into(target: ImageMut<'_>, found: Totals) {
    numbers(
        target,
        &[found.min, found.max, found.sum, found.mean, found.std],
    );
}

/// A histogram as a list.
pub(super) fn counts_into(target: ImageMut<'_>, counts: &[u64]) {
    if let ImageMut::U32(mut list) = target {
        for (to, from) in list.row(0, 0).iter_mut().zip(counts) {
            *to = *from as u32;
        }
    }
}

pub(super) fn method(method: ThresholdMethod) -> Method {
    match method {
        ThresholdMethod::Otsu => Method::Otsu,
        ThresholdMethod::Triangle => Method::Triangle,
        ThresholdMethod::Li => Method::Li,
        ThresholdMethod::Yen => Method::Yen,
        ThresholdMethod::Isodata => Method::Isodata,
        ThresholdMethod::Mean => Method::Mean,
    }
}

fn on_mask(prim: &Prim, mask: Image<'_>, target: ImageMut<'_>) {
    match (prim, target) {
        (Prim::Label(connectivity), ImageMut::U32(out)) => {
            let connectivity = match connectivity {
                Connectivity::Diamond => label::Connectivity::Diamond,
                Connectivity::Box => label::Connectivity::Box,
            };
            with_image!(mask, view => label::label(view, connectivity, out));
        }
        (_, ImageMut::F32(out)) => {
            with_image!(mask, view => distance::distance_transform(view, out));
        }
        (_, ImageMut::F64(out)) => {
            with_image!(mask, view => distance::distance_transform(view, out));
        }
        _ => unreachable!("labels are u32, distances real"),
    }
}

fn on_labels(prim: &Prim, labels: View<'_, u32>, out: ViewMut<'_, u32>) {
    match *prim {
        Prim::KeepSizes {
            least,
            most: u64::MAX,
        } => {
            objects::remove_small_labels(labels, least, false, out);
        }
        Prim::KeepSizes { least: 0, most } => {
            objects::remove_large_labels(labels, most, false, out);
        }
        Prim::KeepSizes { .. } => unreachable!("an operation has one limit"),
        Prim::ClearBorder => label::clear_border(labels, out),
        Prim::Expand { distance } => distance::expand_labels(labels, distance, out),
        _ => {
            objects::relabel_sequential(labels, out);
        }
    }
}

/// The number of objects, then as many rows as fit; nothing beyond.
fn table(found: &[objects::Statistics], columns: usize, out: &mut [f64]) {
    out.fill(0.0);
    out[0] = found.len() as f64;
    let axes = (columns - 7) / 3;
    for (row, s) in out[1..].chunks_exact_mut(columns).zip(found) {
        let scalars = [s.area as f64, s.sum, s.mean, s.minimum, s.maximum, s.std];
        row[0] = s.label as f64;
        row[1..7].copy_from_slice(&scalars);
        for (to, from) in row[7..7 + axes].iter_mut().zip(&s.centroid[3 - axes..]) {
            *to = *from;
        }
        let ends = s.start[3 - axes..].iter().chain(&s.stop[3 - axes..]);
        for (to, from) in row[7 + axes..].iter_mut().zip(ends) {
            *to = *from as f64;
        }
    }
}

pub(super) fn numbers(target: ImageMut<'_>, numbers: &[f64]) {
    if let ImageMut::F64(mut list) = target {
        list.row(0, 0)[..numbers.len()].copy_from_slice(numbers);
    }
}

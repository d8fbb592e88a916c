//! Objects: found, sifted, split and measured.

use super::catalogue::{
    EXACT, LABELS, MAP, MASK, NAN_NONE, NAN_SET, RADIUS, SUMMED, absent, input, optional, passes,
    preset, required, scratch,
};
use super::info::{Backends, Family, Gives, InputInfo, OpInfo, Role, Rule, TableRule};
use super::param::{ParamInfo, ParamKind, Span};

const IN: &[InputInfo] = &[input(
    "labels",
    Role::Labels,
    "objects numbered from 1; 0, and anything below, is background",
)];

const LABEL: OpInfo = OpInfo {
    family: Family::Label,
    inputs: IN,
    gives: LABELS,
    nan: NAN_NONE,
    tolerance: EXACT,
    ..MAP
};

const CONNECT: OpInfo = OpInfo {
    inputs: &[input("mask", Role::Mask, "set where it is not 0")],
    nan: NAN_SET,
    traffic: scratch(1, 4),
    ..LABEL
};

const PIXELS: ParamKind = ParamKind::Integer(Span::whole(0, (1 << 31) - 1));

const RELABEL: ParamInfo = preset(
    "relabel",
    ParamKind::Flag,
    "false",
    "number what is left from 1 without gaps",
);

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "label_box",
        summary: "number connected objects, diagonals connect",
        formula: "1..n in scan order of each object's first pixel; 8 or 26 neighbours",
        reference: "scipy.ndimage.label(mask, numpy.ones((3,)*mask.ndim))[0]",
        ..CONNECT
    },
    OpInfo {
        name: "label_diamond",
        summary: "number connected objects, diagonals do not connect",
        formula: "1..n in scan order of each object's first pixel; 4 or 6 neighbours",
        reference: "scipy.ndimage.label(mask)[0]",
        ..CONNECT
    },
    OpInfo {
        name: "remove_small_labels",
        summary: "remove objects of few pixels",
        formula: "label where its pixel count >= minimum, else 0",
        own_params: &[
            required("minimum", PIXELS, "the fewest pixels an object may have"),
            RELABEL,
        ],
        traffic: passes(2),
        reference: "numpy.where(numpy.bincount(labels.ravel())[labels] >= minimum, labels, 0)",
        ..LABEL
    },
    OpInfo {
        name: "remove_large_labels",
        summary: "remove objects of many pixels",
        formula: "label where its pixel count <= maximum, else 0",
        own_params: &[
            required("maximum", PIXELS, "the most pixels an object may have"),
            RELABEL,
        ],
        traffic: passes(2),
        reference: "numpy.where(numpy.bincount(labels.ravel())[labels] <= maximum, labels, 0)",
        ..LABEL
    },
    OpInfo {
        name: "clear_border",
        summary: "remove objects that touch the edge",
        formula: "label where no pixel of its piece is on the edge of an axis longer than 1, else 0",
        notes: &[
            "a piece is what touches of one label, along the axes or across corners (8 or 26 neighbours): another piece of the same label stays, as in scikit-image",
        ],
        traffic: passes(2),
        reference: "skimage.segmentation.clear_border(labels)",
        ..LABEL
    },
    OpInfo {
        name: "expand_labels",
        summary: "grow objects without merging them",
        formula: "the label of the nearest labelled pixel if it is at most distance away, else 0",
        notes: &[
            "of several nearest pixels, scipy's choice: the one its distance transform names",
            "extents whose squares sum to 2^31 or more (a diagonal of 46,341 pixels) are computed on the host",
        ],
        own_params: &[preset(
            "distance",
            ParamKind::Number(Span::between(0.0, 32_767.0)),
            "1",
            "how far in pixels",
        )],
        traffic: scratch(1, 4),
        reference: "skimage.segmentation.expand_labels(labels, distance)",
        ..LABEL
    },
    OpInfo {
        name: "relabel_sequential",
        summary: "number objects from 1 without gaps",
        formula: "the place of each label among the sorted labels in use",
        traffic: passes(2),
        reference: "skimage.segmentation.relabel_sequential(labels)[0]",
        ..LABEL
    },
    OpInfo {
        name: "watershed",
        summary: "flood an image from markers",
        formula: "each pixel gets the marker whose flood reaches it first, lowest pixels first",
        notes: &[
            "neighbours along the axes only (4 or 6)",
            "pixels of one value are flooded in the order they were reached",
            "markers below 0 count as none, where scikit-image floods from them, too",
            "markers are numbered up to 4294967294; the next number is taken for what the mask leaves out",
        ],
        inputs: &[
            input(
                "markers",
                Role::Labels,
                "where floods start, numbered from 1",
            ),
            input("image", Role::Image, "the landscape"),
            optional(
                "mask",
                Role::Mask,
                "flooded where it is not 0; left out, everywhere",
            ),
        ],
        nan: "NaN counts as higher than every number",
        traffic: scratch(1, 4),
        reference: "skimage.segmentation.watershed(image, markers, mask=mask)",
        backends: Backends::CpuOnly {
            why: "its priority queue decides every pixel in turn, so there is nothing to share out",
        },
        ..LABEL
    },
    OpInfo {
        name: "local_maxima",
        summary: "mask of peaks",
        formula: "(a == maximum_box(a, radius)) and (a > threshold)",
        notes: &["every pixel of a flat peak is set"],
        inputs: super::catalogue::IMAGE,
        own_params: &[
            RADIUS,
            absent(
                "threshold",
                ParamKind::Number(Span::ANY),
                "what a peak must be above; left out, every peak counts",
            ),
        ],
        boundary: true,
        rules: &[Rule::SomeAxis("radius")],
        gives: MASK,
        nan: "NaN is ignored in windows and is no peak itself",
        reference: "(a == scipy.ndimage.maximum_filter(a, 2*radius+1, mode=\"nearest\")) & (a > threshold)",
        ..LABEL
    },
    OpInfo {
        name: "label_statistics",
        summary: "measure every object",
        formula: "per label in use: label, area, sum, mean, minimum, maximum, std, centroid_*, start_*, stop_*",
        notes: &[
            "one row per label in use, ascending; background has none",
            "std is the population's; start is the first pixel of the bounding box, stop one past the last",
            "axes are z, y, x for stacks and y, x for planes, in that order",
        ],
        inputs: &[
            input("labels", Role::Labels, "objects numbered from 1"),
            input("image", Role::Image, "the intensities measured"),
        ],
        gives: Gives::Table(TableRule::Objects),
        nan: "sum, mean and std of an object with a NaN pixel are NaN; minimum and maximum ignore it",
        tolerance: SUMMED,
        reference: "skimage.measure.regionprops_table(labels, image)",
        ..LABEL
    },
];

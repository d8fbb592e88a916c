//! Pixels moved.

use super::catalogue::{
    EXACT, MAP, NAN_MOVES, NAN_SPREADS, ROUNDED, SAME, SUMMED, absent, input, preset, required,
};
use super::info::{DTypeRule, Family, Gives, OpInfo, Ranks, Role, Rule, ShapeRule};
use super::param::{BOUNDARY_KIND, ParamInfo, ParamKind, Span};

const PIXELS: ParamKind = ParamKind::Integer(Span::whole(0, (1 << 31) - 1));
const SOME: ParamKind = ParamKind::Integer(Span::whole(1, (1 << 31) - 1));

const fn shaped(dtype: DTypeRule, shape: ShapeRule) -> Gives {
    Gives::Image { dtype, shape }
}

const MOVE: OpInfo = OpInfo {
    family: Family::Geometry,
    gives: SAME,
    nan: NAN_MOVES,
    tolerance: EXACT,
    ..MAP
};

const BIN: OpInfo = OpInfo {
    own_params: &[required(
        "factor",
        ParamKind::PerAxis(Span::whole(1, 32_767)),
        "edge of a tile in pixels",
    )],
    notes: &[
        "rows and columns that fill no tile are cut off",
        "an axis with one pixel is left as it is",
    ],
    gives: shaped(DTypeRule::Real, ShapeRule::Bin),
    nan: "a tile that holds a NaN gives NaN",
    tolerance: SUMMED,
    ..MOVE
};

const RESAMPLE: OpInfo = OpInfo {
    gives: super::catalogue::REAL,
    nan: NAN_SPREADS,
    tolerance: ROUNDED,
    notes: &["a position outside the image, by however little, gives 0, as in scipy"],
    ..MOVE
};

const RESIZE: &[ParamInfo] = &[required(
    "factor",
    ParamKind::PerAxis(Span::above(0.0, 1024.0)),
    "how many times as large",
)];

const fn offset(name: &'static str, doc: &'static str) -> ParamInfo {
    preset(name, ParamKind::Number(Span::between(-1e9, 1e9)), "0", doc)
}

pub(super) static OPS: &[OpInfo] = &[
    OpInfo {
        name: "crop",
        summary: "cut a part out",
        formula: "a[z:z+depth, y:y+height, x:x+width]",
        notes: &["the part must lie inside the image"],
        own_params: &[
            absent("z", PIXELS, "first plane, for stacks; left out, 0"),
            preset("y", PIXELS, "0", "first row"),
            preset("x", PIXELS, "0", "first column"),
            absent(
                "depth",
                SOME,
                "how many planes, for stacks; left out, the rest",
            ),
            absent("height", SOME, "how many rows; left out, the rest"),
            absent("width", SOME, "how many columns; left out, the rest"),
        ],
        rules: &[Rule::StackParam("z"), Rule::StackParam("depth")],
        gives: shaped(DTypeRule::Same, ShapeRule::Crop),
        reference: "a[z:z+depth, y:y+height, x:x+width]",
        ..MOVE
    },
    OpInfo {
        name: "pad",
        summary: "add a frame",
        formula: "a inside a frame of `before` and `after` pixels along each axis",
        notes: &[
            "unlike elsewhere, a single number counts for every axis, also one of a single pixel",
            "numpy calls the boundaries edge (clamp), constant (zero), symmetric (reflect) and wrap",
        ],
        own_params: &[
            required(
                "before",
                ParamKind::PerAxis(Span::whole(0, 1 << 20)),
                "pixels added before the first",
            ),
            absent(
                "after",
                ParamKind::PerAxis(Span::whole(0, 1 << 20)),
                "pixels added after the last; left out, as many as before",
            ),
            preset(
                "boundary",
                BOUNDARY_KIND,
                "zero",
                "what the frame holds: the edge pixel, `value`, the mirrored or the repeated image",
            ),
            preset(
                "value",
                ParamKind::Number(Span::ANY),
                "0",
                "what a frame of boundary zero holds, rounded and saturated to the image's type",
            ),
        ],
        gives: shaped(DTypeRule::Same, ShapeRule::Pad),
        reference: "numpy.pad(a, [(before, after)]*a.ndim, constant_values=value)",
        ..MOVE
    },
    OpInfo {
        name: "flip_x",
        summary: "mirror left and right",
        formula: "a[.., nx-1-x]",
        reference: "numpy.flip(a, -1)",
        ..MOVE
    },
    OpInfo {
        name: "flip_y",
        summary: "mirror top and bottom",
        formula: "a[.., ny-1-y, x]",
        reference: "numpy.flip(a, -2)",
        ..MOVE
    },
    OpInfo {
        name: "flip_z",
        summary: "mirror first and last plane",
        formula: "a[nz-1-z, y, x]",
        ranks: Ranks::Stack,
        reference: "numpy.flip(a, -3)",
        ..MOVE
    },
    OpInfo {
        name: "transpose_xy",
        summary: "exchange rows and columns",
        formula: "a[.., x, y]",
        gives: shaped(DTypeRule::Same, ShapeRule::Swap(1, 2)),
        reference: "numpy.swapaxes(a, -1, -2)",
        ..MOVE
    },
    OpInfo {
        name: "transpose_xz",
        summary: "exchange planes and columns",
        formula: "a[x, y, z]",
        ranks: Ranks::Stack,
        gives: shaped(DTypeRule::Same, ShapeRule::Swap(0, 2)),
        reference: "numpy.swapaxes(a, -1, -3)",
        ..MOVE
    },
    OpInfo {
        name: "transpose_yz",
        summary: "exchange planes and rows",
        formula: "a[y, z, x]",
        ranks: Ranks::Stack,
        gives: shaped(DTypeRule::Same, ShapeRule::Swap(0, 1)),
        reference: "numpy.swapaxes(a, -2, -3)",
        ..MOVE
    },
    OpInfo {
        name: "bin_mean",
        summary: "mean of each tile",
        formula: "mean of a over tiles of factor pixels along each axis",
        reference: "skimage.measure.block_reduce(a, factor, numpy.mean) without the rest",
        ..BIN
    },
    OpInfo {
        name: "bin_sum",
        summary: "sum of each tile",
        formula: "sum of a over tiles of factor pixels along each axis",
        reference: "skimage.measure.block_reduce(a, factor, numpy.sum) without the rest",
        ..BIN
    },
    OpInfo {
        name: "bin_max",
        summary: "largest of each tile",
        formula: "max of a over tiles of factor pixels along each axis",
        gives: shaped(DTypeRule::Same, ShapeRule::Bin),
        nan: super::catalogue::NAN_IGNORED,
        tolerance: EXACT,
        reference: "skimage.measure.block_reduce(a, factor, numpy.max) without the rest",
        ..BIN
    },
    OpInfo {
        name: "shift_linear",
        summary: "move by any distance",
        formula: "a[z-dz, y-dy, x-dx], interpolated linearly, 0 outside",
        own_params: &[
            absent(
                "dz",
                ParamKind::Number(Span::between(-1e9, 1e9)),
                "planes to move by, for stacks; left out, 0",
            ),
            offset("dy", "rows to move down"),
            offset("dx", "columns to move right"),
        ],
        rules: &[Rule::StackParam("dz")],
        reference: "scipy.ndimage.shift(a, (dy, dx), order=1)",
        ..RESAMPLE
    },
    OpInfo {
        name: "rotate_linear",
        summary: "turn about the centre, plane by plane",
        formula: "a at R*(i - c) + c, R = [[cos, sin], [-sin, cos]] on (y, x), c = (n-1)/2, interpolated linearly, 0 outside",
        own_params: &[required(
            "degrees",
            ParamKind::Number(Span::between(-1e6, 1e6)),
            "angle, counter-clockwise with y upwards",
        )],
        reference: "scipy.ndimage.rotate(a, degrees, axes=(-1, -2), reshape=False, order=1)",
        ..RESAMPLE
    },
    OpInfo {
        name: "affine_linear",
        summary: "any affine map",
        formula: "a at matrix*i + offset, interpolated linearly, 0 outside",
        notes: &[
            "the matrix maps positions of the result to positions of the image, axes in the order (z,) y, x",
            "for d axes it has d*d numbers, d*(d+1) with a column of offsets, or (d+1)*(d+1) with a last row 0,..,0,1; where `;` ends rows, they are so long",
            "a position outside the image, by however little, gives 0, as in scipy",
        ],
        own_params: &[
            required(
                "matrix",
                ParamKind::Matrix,
                "rows of the matrix, first axis first",
            ),
            preset(
                "offset",
                ParamKind::PerAxis(Span::between(-1e9, 1e9)),
                "0",
                "added to the position, besides the matrix's own column",
            ),
        ],
        rules: &[Rule::AffineMatrix("matrix")],
        reference: "scipy.ndimage.affine_transform(a, matrix, offset, order=1)",
        ..RESAMPLE
    },
    OpInfo {
        name: "resize_linear",
        summary: "make larger or smaller, interpolated",
        formula: "a at (i + 0.5)*n_in/n_out - 0.5, clamped to the image, interpolated linearly",
        notes: &[
            "n_out = n_in*factor, halves rounded to even; an axis with one pixel is left as it is",
            "no smoothing before making smaller: blur or bin first",
        ],
        own_params: RESIZE,
        gives: shaped(DTypeRule::Real, ShapeRule::Resize),
        reference: "scipy.ndimage.map_coordinates(a, positions, order=1, mode=\"nearest\")",
        ..RESAMPLE
    },
    OpInfo {
        name: "resize_nearest",
        summary: "make larger or smaller, nearest pixel",
        formula: "a[floor((i + 0.5)*n_in/n_out)]",
        notes: &[
            "n_out = n_in*factor, halves rounded to even; an axis with one pixel is left as it is",
        ],
        own_params: RESIZE,
        gives: shaped(DTypeRule::Same, ShapeRule::Resize),
        reference: "a[numpy.ix_(*positions)], positions = floor((i + 0.5)*n_in/n_out)",
        ..MOVE
    },
    OpInfo {
        name: "blend_two",
        summary: "stitch two images side by side",
        formula: "a | a*(1-w) + b*w, w = (i + 0.5)/overlap | b",
        notes: &["b is to the right of a; i counts the columns both cover, from the left"],
        inputs: &[
            input("a", Role::Image, "the left image"),
            input("b", Role::Image, "the right image, as high as the left"),
        ],
        own_params: &[required(
            "overlap",
            PIXELS,
            "how many columns both images cover",
        )],
        gives: shaped(DTypeRule::Real, ShapeRule::Beside),
        nan: "NaN gives NaN wherever its image has a share",
        tolerance: ROUNDED,
        reference: "numpy.concatenate((a[:, :-n], a[:, -n:]*(1-w) + b[:, :n]*w, b[:, n:]), 1), n = overlap",
        ..MOVE
    },
];

"""What is measured: our operations with their parameters, and the bytes that have to move."""

from dataclasses import dataclass, field

PLANES, STACKS, BOTH = (2,), (3,), (2, 3)


@dataclass
class Work:
    """One line of the table."""

    name: str
    steps: list
    ranks: tuple = BOTH
    #: Bytes per pixel of the first image, read and written, if nothing moves twice.
    moves: tuple = (4, 4)
    outputs: list = field(default_factory=list)


WORK: dict[str, Work] = {}


def one(name, *args, op=None, inputs=("image",), **options):
    """A single operation."""
    step = {"op": op or name, "args": list(args), "inputs": list(inputs)}
    WORK[name] = Work(name, [step], **options)


def chain(name, *steps, **options):
    """Each operation on the one before; an operation is its name and its arguments."""
    made = []
    for op, *args in steps:
        made.append({"op": op, "args": args, "inputs": [len(made) - 1] if made else ["image"]})
    WORK[name] = Work(name, made, **options)


MASKED = {"inputs": ("mask",), "moves": (1, 1)}
PAIR = {"inputs": ("image", "other"), "moves": (8, 4)}
TO_MASK = {"moves": (4, 1)}
READ = {"moves": (4, 0)}
LABELS = {"inputs": ("labels",), "moves": (4, 4)}
FLAT = {"moves": (4, 0), "ranks": STACKS}

one("affine_intensity", "scale=2.5", "offset=-3")
one("power", "exponent=1.7")
one("gamma", "gamma=0.6", moves=(8, 4))
one("exp", "scale=0.001")
one("log1p")
one("sqrt")
one("abs")
one("invert", moves=(8, 4))
one("clip", "low=90", "high=400")
for name in ("greater", "greater_equal", "less", "less_equal", "equal"):
    one(name, "value=130", **TO_MASK)
one("between", "low=100", "high=200", **TO_MASK)
for name in ("add", "subtract", "multiply", "divide"):
    one(f"{name}_images", **PAIR)
one("absolute_difference", **PAIR)
one("maximum_images", **PAIR)
one("minimum_images", **PAIR)
one("mask_image", inputs=("image", "mask"), moves=(5, 4))
one("select", inputs=("mask", "image", "other"), moves=(9, 4))
one("cast_u8", "type=u8", op="cast", moves=(4, 1))
one("cast_u16", "type=u16", op="cast", moves=(4, 2))
one("minmax_normalize", moves=(8, 4))
one("percentile_normalize", "low=1", "high=99.8", moves=(8, 4))
one("flat_field", "dark=10", inputs=("image", "flat"), moves=(12, 4))
one("subtract_gaussian_background", "sigma=8")
one("divide_gaussian_background", "sigma=8")
one("unsharp", "sigma=2", "amount=1.5")
one("subtract_rolling_ball", "radius=10")
one("gaussian", "sigma=2")
one("gaussian_8", "sigma=8", op="gaussian")
one("mean_box", "radius=2")
one("mean_box_30", "radius=30", op="mean_box")
one("mean_sphere", "radius=3")
one("median_box", "radius=1")
one("median_box_2", "radius=2", op="median_box", ranks=PLANES)
one("median_sphere", "radius=2")
one("percentile_box", "radius=2", "q=30")
for name in ("minimum", "maximum"):
    one(f"{name}_box", "radius=3")
    one(f"{name}_box_30", "radius=30", op=f"{name}_box")
    one(f"{name}_sphere", "radius=3")
one("variance_box", "radius=2")
one("variance_box_30", "radius=30", op="variance_box")
one("std_box", "radius=2")
one("sobel")
one("gradient_x")
one("gradient_y")
one("gradient_z", ranks=STACKS)
one("laplace_diamond")
one("laplace_box")
one("difference_of_gaussian", "sigma1=2", "sigma2=6")
one("laplacian_of_gaussian", "sigma=2")
one("convolve", inputs=("image", "kernel"))
for name in ("opening", "closing", "top_hat", "bottom_hat"):
    one(f"{name}_box", "radius=5")
    one(f"{name}_sphere", "radius=5")
for name in ("erode", "dilate", "open", "close"):
    one(f"binary_{name}", **MASKED)
for name in ("and", "or", "xor"):
    one(f"binary_{name}", inputs=("mask", "mask2"), moves=(2, 1))
one("binary_not", **MASKED)
one("fill_holes", **MASKED)
one("distance_transform", inputs=("mask",), moves=(1, 4))
for name in ("otsu", "triangle", "li", "yen", "isodata", "mean"):
    one(f"threshold_{name}", moves=(8, 1))
one("threshold_local", "radius=10", **TO_MASK)
one("label_box", inputs=("mask",), moves=(1, 4))
one("label_diamond", inputs=("mask",), moves=(1, 4))
one("remove_small_labels", "minimum=20", **LABELS)
one("remove_large_labels", "maximum=200", **LABELS)
one("clear_border", **LABELS)
one("expand_labels", "distance=3", **LABELS)
one("relabel_sequential", **LABELS)
one("watershed", inputs=("markers", "image"), moves=(8, 4))
one("local_maxima", "radius=2", "threshold=150", **TO_MASK)
one("label_statistics", inputs=("labels", "image"), moves=(8, 0))
for name in ("sum", "max", "min", "mean", "std", "median", "argmax"):
    one(f"{name}_z", **FLAT)
one("totals", **READ)
one("histogram", "bins=256", "low=0", "high=1000", **READ)
one("percentiles", "q=1,50,99.8", **READ)
one("crop", "y=1", "x=1")
one("pad", "before=8")
one("flip_x")
one("flip_y")
one("flip_z", ranks=STACKS)
one("transpose_xy")
one("transpose_xz", ranks=STACKS)
one("transpose_yz", ranks=STACKS)
one("bin_mean", "factor=2", moves=(4, 1))
one("bin_sum", "factor=2", moves=(4, 1))
one("bin_max", "factor=2", moves=(4, 1))
one("shift_linear", "dy=3.25", "dx=-5.5")
one("rotate_linear", "degrees=10")
#: Rows of a matrix of the last two axes.
TURN = (0.98, 0.05, -0.05, 0.98)
one("affine_linear", f"matrix={','.join(map(str, TURN))}", "offset=3.5", ranks=PLANES)
one("affine_linear_stack", "matrix=1,0,0,0,0.98,0.05,0,-0.05,0.98", "offset=3.5", op="affine_linear", ranks=STACKS)
one("resize_linear", "factor=0.5", moves=(4, 1))
one("resize_nearest", "factor=0.5", moves=(4, 1))
one("fft_convolve", inputs=("image", "kernel"))
one("phase_shift", inputs=("image", "other"), moves=(8, 0))
one("richardson_lucy", "sigma=2", "iterations=10")
one("blend_two", "overlap=64", inputs=("image", "other"), moves=(8, 8))

ADD, MULTIPLY, EXPONENT, MULTIPLY_AGAIN, ADD_AGAIN = 0.5, 1.25, 1.5, 0.01, -2.0
chain(
    "chain5",
    ("affine_intensity", f"offset={ADD}"),
    ("affine_intensity", f"scale={MULTIPLY}"),
    ("power", f"exponent={EXPONENT}"),
    ("affine_intensity", f"scale={MULTIPLY_AGAIN}"),
    ("affine_intensity", f"offset={ADD_AGAIN}"),
)
WORK["chain5_cheap"] = Work(
    "chain5_cheap",
    [
        {"op": "affine_intensity", "args": [f"offset={ADD}"], "inputs": ["image"]},
        {"op": "affine_intensity", "args": [f"scale={MULTIPLY}"], "inputs": [0]},
        {"op": "multiply_images", "args": [], "inputs": [1, "image"]},
        {"op": "affine_intensity", "args": [f"scale={MULTIPLY_AGAIN}"], "inputs": [2]},
        {"op": "affine_intensity", "args": [f"offset={ADD_AGAIN}"], "inputs": [3]},
    ],
)

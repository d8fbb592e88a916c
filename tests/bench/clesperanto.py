"""pyclesperanto, the library whose users we want: on the same OpenCL device as we are."""

from .peers import Peer
from .work import ADD, ADD_AGAIN, EXPONENT, MULTIPLY, MULTIPLY_AGAIN


class Clesperanto(Peer):
    """pyclesperanto on PoCL, every call waiting for its end; images are on the device."""

    name = "cle"
    threads_note = "PoCL's threads"

    def __init__(self):
        import pyclesperanto

        self.cle = pyclesperanto
        device = pyclesperanto.get_device()
        if device is None:
            raise RuntimeError("no OpenCL device")
        self.threads_note += f" on {device.name}"
        pyclesperanto.wait_for_kernel_to_finish(True)

    def show(self, scene, rank):
        super().show({name: self.cle.push(image) for name, image in scene.items()}, rank)

    def calls(self):
        c = self.cle
        z = int(self.rank == 3)
        r = lambda n: {"radius_x": n, "radius_y": n, "radius_z": n * z}
        g = lambda n, name="sigma": {f"{name}_x": n, f"{name}_y": n, f"{name}_z": n * z}

        def chain(s):
            made = c.multiply_image_and_scalar(c.add_image_and_scalar(s.image, scalar=ADD), scalar=MULTIPLY)
            made = c.multiply_image_and_scalar(c.power(made, scalar=EXPONENT), scalar=MULTIPLY_AGAIN)
            return c.add_image_and_scalar(made, scalar=ADD_AGAIN)

        def cheap(s):
            made = c.multiply_image_and_scalar(c.add_image_and_scalar(s.image, scalar=ADD), scalar=MULTIPLY)
            made = c.multiply_image_and_scalar(c.multiply_images(made, s.image), scalar=MULTIPLY_AGAIN)
            return c.add_image_and_scalar(made, scalar=ADD_AGAIN)

        calls = {
            "affine_intensity": lambda s: c.add_image_and_scalar(c.multiply_image_and_scalar(s.image, scalar=2.5), scalar=-3),
            "power": lambda s: c.power(s.image, scalar=1.7),
            "gamma": lambda s: c.gamma_correction(s.image, gamma=0.6),
            "exp": lambda s: c.exponential(c.multiply_image_and_scalar(s.image, scalar=0.001)),
            "log1p": lambda s: c.logarithm(c.add_image_and_scalar(s.image, scalar=1)),
            "sqrt": lambda s: c.square_root(s.image),
            "abs": lambda s: c.absolute(s.image),
            "clip": lambda s: c.clip(s.image, min_intensity=90, max_intensity=400),
            "greater": lambda s: c.greater_constant(s.image, scalar=130),
            "add_images": lambda s: c.add_images(s.image, s.other),
            "subtract_images": lambda s: c.subtract_images(s.image, s.other),
            "multiply_images": lambda s: c.multiply_images(s.image, s.other),
            "divide_images": lambda s: c.divide_images(s.image, s.other),
            "absolute_difference": lambda s: c.absolute_difference(s.image, s.other),
            "maximum_images": lambda s: c.maximum_images(s.image, s.other),
            "mask_image": lambda s: c.mask(s.image, s.mask),
            "subtract_gaussian_background": lambda s: c.subtract_gaussian_background(s.image, **g(8)),
            "divide_gaussian_background": lambda s: c.divide_by_gaussian_background(s.image, **g(8)),
            "gaussian": lambda s: c.gaussian_blur(s.image, **g(2)),
            "gaussian_8": lambda s: c.gaussian_blur(s.image, **g(8)),
            "mean_box": lambda s: c.mean_box(s.image, **r(2)),
            "mean_box_30": lambda s: c.mean_box(s.image, **r(30)),
            "mean_sphere": lambda s: c.mean_sphere(s.image, **r(3)),
            "median_box": lambda s: c.median_box(s.image, **r(1)),
            "median_box_2": lambda s: c.median_box(s.image, **r(2)),
            "median_sphere": lambda s: c.median_sphere(s.image, **r(2)),
            "minimum_box": lambda s: c.minimum_box(s.image, **r(3)),
            "maximum_box": lambda s: c.maximum_box(s.image, **r(3)),
            "minimum_sphere": lambda s: c.minimum_sphere(s.image, **r(3)),
            "maximum_sphere": lambda s: c.maximum_sphere(s.image, **r(3)),
            "variance_box": lambda s: c.variance_box(s.image, **r(2)),
            "std_box": lambda s: c.standard_deviation_box(s.image, **r(2)),
            "sobel": lambda s: c.sobel(s.image),
            "gradient_x": lambda s: c.gradient_x(s.image),
            "gradient_y": lambda s: c.gradient_y(s.image),
            "gradient_z": lambda s: c.gradient_z(s.image),
            "laplace_diamond": lambda s: c.laplace_diamond(s.image),
            "laplace_box": lambda s: c.laplace_box(s.image),
            "difference_of_gaussian": lambda s: c.difference_of_gaussian(s.image, **g(2, "sigma1"), **g(6, "sigma2")),
            "binary_erode": lambda s: c.binary_erode(s.mask, **r(1)),
            "binary_dilate": lambda s: c.binary_dilate(s.mask, **r(1)),
            "binary_and": lambda s: c.binary_and(s.mask, s.mask2),
            "binary_or": lambda s: c.binary_or(s.mask, s.mask2),
            "binary_xor": lambda s: c.binary_xor(s.mask, s.mask2),
            "binary_not": lambda s: c.binary_not(s.mask),
            "label_box": lambda s: c.connected_component_labeling(s.mask, connectivity="box"),
            "remove_small_labels": lambda s: c.remove_small_labels(s.labels, minimum_size=20),
            "clear_border": lambda s: c.remove_labels_on_edges(s.labels),
            "relabel_sequential": lambda s: c.relabel_sequential(s.labels),
            "label_statistics": lambda s: c.statistics_of_labelled_pixels(s.image, s.labels),
            "histogram": lambda s: c.histogram(s.image, num_bins=256, minimum_intensity=0, maximum_intensity=1000),
            "flip_x": lambda s: c.flip(s.image, flip_x=True, flip_y=False, flip_z=False),
            "transpose_xy": lambda s: c.transpose_xy(s.image),
            "chain5": chain,
            "chain5_cheap": cheap,
        }
        for name in ("opening", "closing", "top_hat", "bottom_hat"):
            for form in ("box", "sphere"):
                run = getattr(c, f"{name}_{form}")
                calls[f"{name}_{form}"] = lambda s, run=run: run(s.image, **r(5))
        for name in ("otsu", "triangle", "li", "yen", "isodata", "mean"):
            run = getattr(c, f"threshold_{name}")
            calls[f"threshold_{name}"] = lambda s, run=run: run(s.image)
        for name, long in (("sum", "sum"), ("max", "maximum"), ("min", "minimum"), ("mean", "mean"), ("std", "std")):
            run = getattr(c, f"{long}_z_projection")
            calls[f"{name}_z"] = lambda s, run=run: run(s.image)
        return calls


class ClesperantoByHand(Clesperanto):
    """The same with chains written by hand as one expression."""

    name = "cle_fused"

    def calls(self):
        values = {"a": ADD, "m": MULTIPLY, "n": MULTIPLY_AGAIN, "b": ADD_AGAIN}
        run = lambda text, **more: lambda s: self.cle.evaluate(text, {"x": s.image, **values, **more})
        return {
            "chain5": run("pow((x + a) * m, e) * n + b", e=EXPONENT),
            "chain5_cheap": run("(x + a) * m * x * n + b"),
        }

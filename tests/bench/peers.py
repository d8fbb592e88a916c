"""The libraries, each saying our operations in its own words.

A library maps the name of a piece of work to a function of the scene; what it does not have, or has
only for planes, it leaves out. Results are new arrays every time, as their users get them.
"""

from types import SimpleNamespace

import numpy as np

from .work import ADD, ADD_AGAIN, EXPONENT, MULTIPLY, MULTIPLY_AGAIN, TURN


def ball(radius, rank):
    """The footprint of our spheres."""
    grid = np.meshgrid(*[np.arange(-radius, radius + 1)] * rank, indexing="ij")
    return sum(x * x for x in grid) <= radius * radius


class Peer:
    """A library; `calls` maps a name to a function of the scene."""

    threads_note = "one thread"
    def show(self, scene, rank):
        """Takes the images in."""
        self.rank = rank
        self.scene = SimpleNamespace(**scene)

    def call(self, name):
        """A function without arguments, or None."""
        made = self.calls().get(name)
        return (lambda: made(self.scene)) if made else None


class Numpy(Peer):
    name = "numpy"

    def calls(self):
        f = np.float32
        p = np.percentile
        return {
            "affine_intensity": lambda s: s.image * f(2.5) + f(-3),
            "power": lambda s: s.image ** f(1.7),
            "gamma": lambda s: (s.image / s.image.max()) ** f(0.6) * s.image.max(),
            "exp": lambda s: np.exp(s.image * f(0.001)),
            "log1p": lambda s: np.log1p(s.image),
            "sqrt": lambda s: np.sqrt(s.image),
            "abs": lambda s: np.abs(s.image),
            "invert": lambda s: s.image.max() - s.image,
            "clip": lambda s: np.clip(s.image, f(90), f(400)),
            "greater": lambda s: s.image > f(130),
            "greater_equal": lambda s: s.image >= f(130),
            "less": lambda s: s.image < f(130),
            "less_equal": lambda s: s.image <= f(130),
            "equal": lambda s: s.image == f(130),
            "between": lambda s: (s.image >= f(100)) & (s.image <= f(200)),
            "add_images": lambda s: s.image + s.other,
            "subtract_images": lambda s: s.image - s.other,
            "multiply_images": lambda s: s.image * s.other,
            "divide_images": lambda s: s.image / s.other,
            "absolute_difference": lambda s: np.abs(s.image - s.other),
            "maximum_images": lambda s: np.maximum(s.image, s.other),
            "minimum_images": lambda s: np.minimum(s.image, s.other),
            "mask_image": lambda s: np.where(s.mask, s.image, f(0)),
            "select": lambda s: np.where(s.mask, s.image, s.other),
            "cast_u8": lambda s: np.clip(np.rint(s.image), 0, 255).astype(np.uint8),
            "cast_u16": lambda s: np.clip(np.rint(s.image), 0, 65535).astype(np.uint16),
            "minmax_normalize": lambda s: (s.image - s.image.min()) / np.ptp(s.image),
            "percentile_normalize": lambda s: self.normalized(s.image, *p(s.image, [1, 99.8])),
            "flat_field": lambda s: (s.image - f(10)) / (s.flat - f(10)) * (s.flat - f(10)).mean(),
            "gradient_x": lambda s: np.gradient(s.image, axis=-1),
            "gradient_y": lambda s: np.gradient(s.image, axis=-2),
            "gradient_z": lambda s: np.gradient(s.image, axis=0),
            "binary_and": lambda s: s.mask & s.mask2,
            "binary_or": lambda s: s.mask | s.mask2,
            "binary_xor": lambda s: s.mask ^ s.mask2,
            "binary_not": lambda s: s.mask == 0,
            "threshold_mean": lambda s: s.image > s.image.mean(),
            "sum_z": lambda s: s.image.sum(0),
            "max_z": lambda s: s.image.max(0),
            "min_z": lambda s: s.image.min(0),
            "mean_z": lambda s: s.image.mean(0),
            "std_z": lambda s: s.image.std(0),
            "median_z": lambda s: np.median(s.image, 0),
            "argmax_z": lambda s: s.image.argmax(0),
            "totals": lambda s: (s.image.min(), s.image.max(), s.image.sum(), s.image.mean(), s.image.std()),
            "histogram": lambda s: np.histogram(s.image, 256, (0, 1000)),
            "percentiles": lambda s: p(s.image, [1, 50, 99.8]),
            "flip_x": lambda s: np.ascontiguousarray(s.image[..., ::-1]),
            "flip_y": lambda s: np.ascontiguousarray(s.image[..., ::-1, :]),
            "transpose_xy": lambda s: np.ascontiguousarray(np.swapaxes(s.image, -1, -2)),
            "crop": lambda s: np.ascontiguousarray(s.image[..., 1:, 1:]),
            "pad": lambda s: np.pad(s.image, 8),
            "flip_z": lambda s: np.ascontiguousarray(s.image[::-1]),
            "transpose_yz": lambda s: np.ascontiguousarray(np.swapaxes(s.image, -2, 0)),
            "blend_two": lambda s: self.blended(s.image, s.other, 64),
            "transpose_xz": lambda s: np.ascontiguousarray(np.swapaxes(s.image, -1, 0)),
            "chain5_cheap": lambda s: (s.image + f(ADD)) * f(MULTIPLY) * s.image * f(MULTIPLY_AGAIN) + f(ADD_AGAIN),
            "chain5": lambda s: ((s.image + f(ADD)) * f(MULTIPLY)) ** f(EXPONENT) * f(MULTIPLY_AGAIN) + f(ADD_AGAIN),
        }

    @staticmethod
    def blended(a, b, overlap):
        w = ((np.arange(overlap) + 0.5) / overlap).astype(np.float32)
        both = a[..., -overlap:] * (1 - w) + b[..., :overlap] * w
        return np.concatenate([a[..., :-overlap], both, b[..., overlap:]], -1)

    @staticmethod
    def normalized(image, low, high):
        return np.clip((image - np.float32(low)) / np.float32(high - low), 0, 1)


class Scipy(Peer):
    name = "scipy"

    def calls(self):
        from scipy import ndimage as n, signal

        edge = {"mode": "nearest"}
        blur = lambda image, sigma: n.gaussian_filter(image, sigma, **edge)
        both = n.generate_binary_structure(self.rank, self.rank)
        cross = n.generate_binary_structure(self.rank, 1)
        disk = ball(3, self.rank)
        wide = ball(5, self.rank)
        boxed = -np.ones((3,) * self.rank, np.float32)
        boxed[(1,) * self.rank] = 3**self.rank - 1
        shift = [0.0] * (self.rank - 2) + [3.25, -5.5]

        def sobel(s):
            total = sum(n.sobel(s.image, axis, **edge) ** 2 for axis in range(self.rank))
            return np.sqrt(total, out=total)

        def variance(image, size):
            wide = image.astype(np.float64)
            return n.uniform_filter(wide * wide, size, **edge) - n.uniform_filter(wide, size, **edge) ** 2

        def statistics(s):
            index = np.arange(1, int(s.labels.max()) + 1)
            made = [f(s.image, s.labels, index) for f in (n.sum, n.mean, n.minimum, n.maximum, n.standard_deviation)]
            return made, n.center_of_mass(s.mask, s.labels, index), n.find_objects(s.labels.astype(np.int32))

        turned = np.eye(self.rank)
        turned[-2:, -2:] = np.reshape(TURN, (2, 2))

        def restored(s):
            guess = np.ones_like(s.image)
            for _ in range(10):
                guess *= blur(s.image / np.maximum(blur(guess, 2), np.float32(1e-12)), 2)
            return guess

        calls = {
            "subtract_gaussian_background": lambda s: s.image - blur(s.image, 8),
            "divide_gaussian_background": lambda s: s.image / blur(s.image, 8),
            "unsharp": lambda s: s.image + np.float32(1.5) * (s.image - blur(s.image, 2)),
            "gaussian": lambda s: blur(s.image, 2),
            "gaussian_8": lambda s: blur(s.image, 8),
            "mean_box": lambda s: n.uniform_filter(s.image, 5, **edge),
            "mean_box_30": lambda s: n.uniform_filter(s.image, 61, **edge),
            "mean_sphere": lambda s: n.correlate(s.image, disk / np.float32(disk.sum()), **edge),
            "median_box": lambda s: n.median_filter(s.image, 3, **edge),
            "median_box_2": lambda s: n.median_filter(s.image, 5, **edge),
            "median_sphere": lambda s: n.median_filter(s.image, footprint=ball(2, self.rank), **edge),
            "percentile_box": lambda s: n.percentile_filter(s.image, 30, 5, **edge),
            "minimum_box": lambda s: n.minimum_filter(s.image, 7, **edge),
            "maximum_box": lambda s: n.maximum_filter(s.image, 7, **edge),
            "minimum_box_30": lambda s: n.minimum_filter(s.image, 61, **edge),
            "maximum_box_30": lambda s: n.maximum_filter(s.image, 61, **edge),
            "minimum_sphere": lambda s: n.minimum_filter(s.image, footprint=disk, **edge),
            "maximum_sphere": lambda s: n.maximum_filter(s.image, footprint=disk, **edge),
            "variance_box": lambda s: variance(s.image, 5),
            "variance_box_30": lambda s: variance(s.image, 61),
            "std_box": lambda s: np.sqrt(variance(s.image, 5)),
            "sobel": sobel,
            "laplace_diamond": lambda s: -n.laplace(s.image, **edge),
            "laplace_box": lambda s: n.correlate(s.image, boxed, **edge),
            "difference_of_gaussian": lambda s: blur(s.image, 2) - blur(s.image, 6),
            "laplacian_of_gaussian": lambda s: n.gaussian_laplace(s.image, 2, **edge),
            "convolve": lambda s: n.convolve(s.image, s.kernel, **edge),
            "opening_box": lambda s: n.grey_opening(s.image, 11, **edge),
            "closing_box": lambda s: n.grey_closing(s.image, 11, **edge),
            "top_hat_box": lambda s: n.white_tophat(s.image, 11, **edge),
            "bottom_hat_box": lambda s: n.black_tophat(s.image, 11, **edge),
            "opening_sphere": lambda s: n.grey_opening(s.image, footprint=wide, **edge),
            "closing_sphere": lambda s: n.grey_closing(s.image, footprint=wide, **edge),
            "top_hat_sphere": lambda s: n.white_tophat(s.image, footprint=wide, **edge),
            "bottom_hat_sphere": lambda s: n.black_tophat(s.image, footprint=wide, **edge),
            "binary_erode": lambda s: n.binary_erosion(s.mask, both, border_value=1),
            "binary_dilate": lambda s: n.binary_dilation(s.mask, both),
            "binary_open": lambda s: n.binary_opening(s.mask, both),
            "binary_close": lambda s: n.binary_closing(s.mask, both),
            "fill_holes": lambda s: n.binary_fill_holes(s.mask),
            "distance_transform": lambda s: n.distance_transform_edt(s.mask),
            "threshold_local": lambda s: s.image > n.uniform_filter(s.image, 21, **edge),
            "label_box": lambda s: n.label(s.mask, both),
            "label_diamond": lambda s: n.label(s.mask, cross),
            "local_maxima": lambda s: (s.image == n.maximum_filter(s.image, 5, **edge)) & (s.image > 150),
            "label_statistics": statistics,
            "shift_linear": lambda s: n.shift(s.image, shift, order=1),
            "rotate_linear": lambda s: n.rotate(s.image, 10, (-1, -2), reshape=False, order=1),
            "affine_linear": lambda s: n.affine_transform(s.image, turned, 3.5, order=1),
            "affine_linear_stack": lambda s: n.affine_transform(s.image, turned, 3.5, order=1),
            "resize_linear": lambda s: n.zoom(s.image, 0.5, order=1, mode="nearest", grid_mode=True),
            "resize_nearest": lambda s: n.zoom(s.image, 0.5, order=0, mode="nearest", grid_mode=True),
            "richardson_lucy": restored,
            "fft_convolve": lambda s: signal.fftconvolve(s.image, s.kernel, "same"),
        }
        return calls


class Skimage(Peer):
    name = "skimage"

    def calls(self):
        import functools

        from skimage import feature, filters, measure, morphology, registration, restoration, segmentation, transform

        parts = functools.partial(morphology.footprint_rectangle, decomposition="separable")
        seven, eleven = parts((7,) * self.rank), parts((11,) * self.rank)
        disk, wide = ball(3, self.rank), ball(5, self.rank)
        columns = ("label", "area", "intensity_mean", "intensity_min", "intensity_max", "intensity_std", "centroid", "bbox")
        bell = np.exp(-0.5 * (np.arange(-8, 9) / 2.0) ** 2)
        spread = (bell[:, None] * bell / bell.sum() ** 2).astype(np.float32)
        calls = {
            "unsharp": lambda s: filters.unsharp_mask(s.image, 2, 1.5, preserve_range=True),
            "gaussian": lambda s: filters.gaussian(s.image, 2, mode="nearest", preserve_range=True),
            "gaussian_8": lambda s: filters.gaussian(s.image, 8, mode="nearest", preserve_range=True),
            "median_box": lambda s: filters.median(s.image, np.ones((3,) * self.rank), mode="nearest"),
            "median_sphere": lambda s: filters.median(s.image, ball(2, self.rank), mode="nearest"),
            "minimum_box": lambda s: morphology.erosion(s.image, seven),
            "maximum_box": lambda s: morphology.dilation(s.image, seven),
            "minimum_sphere": lambda s: morphology.erosion(s.image, disk),
            "maximum_sphere": lambda s: morphology.dilation(s.image, disk),
            "sobel": lambda s: filters.sobel(s.image, mode="nearest"),
            "laplace_diamond": lambda s: filters.laplace(s.image),
            "difference_of_gaussian": lambda s: filters.difference_of_gaussians(s.image, 2, 6, mode="nearest"),
            "opening_box": lambda s: morphology.opening(s.image, eleven),
            "closing_box": lambda s: morphology.closing(s.image, eleven),
            "top_hat_box": lambda s: morphology.white_tophat(s.image, eleven),
            "bottom_hat_box": lambda s: morphology.black_tophat(s.image, eleven),
            "opening_sphere": lambda s: morphology.opening(s.image, wide),
            "closing_sphere": lambda s: morphology.closing(s.image, wide),
            "top_hat_sphere": lambda s: morphology.white_tophat(s.image, wide),
            "bottom_hat_sphere": lambda s: morphology.black_tophat(s.image, wide),
            "threshold_local": lambda s: s.image > filters.threshold_local(s.image, 21, "mean", mode="nearest"),
            "label_box": lambda s: measure.label(s.mask, connectivity=self.rank),
            "label_diamond": lambda s: measure.label(s.mask, connectivity=1),
            "remove_small_labels": lambda s: morphology.remove_small_objects(s.labels, max_size=19),
            "clear_border": lambda s: segmentation.clear_border(s.labels),
            "expand_labels": lambda s: segmentation.expand_labels(s.labels, 3),
            "relabel_sequential": lambda s: segmentation.relabel_sequential(s.labels),
            "watershed": lambda s: segmentation.watershed(s.image, s.markers),
            "local_maxima": lambda s: feature.peak_local_max(s.image, min_distance=2, threshold_abs=150),
            "label_statistics": lambda s: measure.regionprops_table(s.labels, s.image, properties=columns),
            "bin_mean": lambda s: transform.downscale_local_mean(s.image, (2,) * self.rank),
            "bin_max": lambda s: measure.block_reduce(s.image, 2, np.max),
            "bin_sum": lambda s: measure.block_reduce(s.image, 2, np.sum),
            "resize_nearest": lambda s: transform.resize(s.image, [n // 2 for n in s.image.shape], order=0, anti_aliasing=False),
            "resize_linear": lambda s: transform.resize(s.image, [n // 2 for n in s.image.shape], order=1, anti_aliasing=False),
            "phase_shift": lambda s: registration.phase_cross_correlation(s.image, s.other),
        }
        if self.rank == 2:
            # It turns planes only, and takes minutes to roll a ball under a stack.
            calls["subtract_rolling_ball"] = lambda s: s.image - restoration.rolling_ball(s.image, radius=10)
            calls["rotate_linear"] = lambda s: transform.rotate(s.image, 10, preserve_range=True)
            calls["richardson_lucy"] = lambda s: restoration.richardson_lucy(s.image, spread, num_iter=10, clip=False)
        calls["threshold_li"] = lambda s: s.image > filters.threshold_li(s.image, iter_callback=Rounds())
        for kind in ("otsu", "triangle", "yen", "isodata"):
            found = getattr(filters, f"threshold_{kind}")
            calls[f"threshold_{kind}"] = lambda s, found=found: s.image > found(s.image)
        return calls


class Rounds:
    """Counts rounds of a search, and gives up: means of many f32 can alternate by more than it waits for, for ever."""

    MOST = 200

    def __init__(self):
        self.left = self.MOST

    def __call__(self, _threshold):
        self.left -= 1
        if self.left < 0:
            raise ArithmeticError(f"it has found no end in {self.MOST} rounds")


class OpenCV(Peer):
    name = "opencv"
    threads_note = "as many threads as we"

    def __init__(self, threads):
        import cv2

        self.cv2 = cv2
        cv2.setNumThreads(threads)

    def calls(self):
        return {**self.anything(), **(self.planes() if self.rank == 2 else self.stacks_only())}

    def show(self, scene, rank):
        # It has no third axis; pixel by pixel none is needed.
        flat = {name: image.reshape(image.shape[0], -1) for name, image in scene.items()}
        super().show(scene if rank == 2 else flat, rank)

    def anything(self):
        c = self.cv2

        def chain(s):
            made = c.pow(c.multiply(c.add(s.image, ADD), MULTIPLY), EXPONENT)
            return c.add(c.multiply(made, MULTIPLY_AGAIN), ADD_AGAIN)

        return {
            "affine_intensity": lambda s: c.addWeighted(s.image, 2.5, s.image, 0.0, -3.0),
            "power": lambda s: c.pow(s.image, 1.7),
            "exp": lambda s: c.exp(c.multiply(s.image, 0.001)),
            "log1p": lambda s: c.log(c.add(s.image, 1.0)),
            "sqrt": lambda s: c.sqrt(s.image),
            "abs": lambda s: c.absdiff(s.image, 0.0),
            "clip": lambda s: c.min(c.max(s.image, 90.0), 400.0),
            "invert": lambda s: c.subtract(c.minMaxLoc(s.image)[1], s.image),
            "greater": lambda s: c.compare(s.image, 130.0, c.CMP_GT),
            "greater_equal": lambda s: c.compare(s.image, 130.0, c.CMP_GE),
            "less": lambda s: c.compare(s.image, 130.0, c.CMP_LT),
            "less_equal": lambda s: c.compare(s.image, 130.0, c.CMP_LE),
            "equal": lambda s: c.compare(s.image, 130.0, c.CMP_EQ),
            "between": lambda s: c.inRange(s.image, 100.0, 200.0),
            "add_images": lambda s: c.add(s.image, s.other),
            "subtract_images": lambda s: c.subtract(s.image, s.other),
            "multiply_images": lambda s: c.multiply(s.image, s.other),
            "divide_images": lambda s: c.divide(s.image, s.other),
            "absolute_difference": lambda s: c.absdiff(s.image, s.other),
            "maximum_images": lambda s: c.max(s.image, s.other),
            "minimum_images": lambda s: c.min(s.image, s.other),
            "mask_image": lambda s: c.copyTo(s.image, s.mask),
            "cast_u8": lambda s: c.addWeighted(s.image, 1.0, s.image, 0.0, 0.0, dtype=c.CV_8U),
            "cast_u16": lambda s: c.addWeighted(s.image, 1.0, s.image, 0.0, 0.0, dtype=c.CV_16U),
            "minmax_normalize": lambda s: c.normalize(s.image, None, 0.0, 1.0, c.NORM_MINMAX),
            "binary_and": lambda s: c.bitwise_and(s.mask, s.mask2),
            "binary_or": lambda s: c.bitwise_or(s.mask, s.mask2),
            "binary_xor": lambda s: c.bitwise_xor(s.mask, s.mask2),
            "threshold_mean": lambda s: c.compare(s.image, c.mean(s.image)[0], c.CMP_GT),
            "totals": lambda s: (c.minMaxLoc(s.image), c.meanStdDev(s.image), c.sumElems(s.image)),
            "histogram": lambda s: c.calcHist([s.image], [0], None, [256], [0, 1000]),
            "chain5": chain,
        }

    def stacks_only(self):
        c = self.cv2
        return {
            "sum_z": lambda s: c.reduce(s.image, 0, c.REDUCE_SUM),
            "max_z": lambda s: c.reduce(s.image, 0, c.REDUCE_MAX),
            "min_z": lambda s: c.reduce(s.image, 0, c.REDUCE_MIN),
            "mean_z": lambda s: c.reduce(s.image, 0, c.REDUCE_AVG),
        }

    def planes(self):
        c = self.cv2
        edge = {"borderType": c.BORDER_REPLICATE}
        box = lambda r: np.ones((2 * r + 1, 2 * r + 1), np.uint8)
        disk = lambda r: ball(r, 2).astype(np.uint8)
        boxed = np.full((3, 3), -1, np.float32)
        boxed[1, 1] = 8
        near = np.ones((3, 3), np.uint8)
        blur = lambda image, sigma: c.GaussianBlur(image, (8 * sigma + 1,) * 2, sigma, **edge)

        def variance(image, r):
            size = (2 * r + 1, 2 * r + 1)
            mean = c.boxFilter(image, c.CV_64F, size, **edge)
            return c.subtract(c.sqrBoxFilter(image, c.CV_64F, size, **edge), c.multiply(mean, mean))

        def sobel(s):
            x = c.Sobel(s.image, c.CV_32F, 1, 0, **edge)
            return c.magnitude(x, c.Sobel(s.image, c.CV_32F, 0, 1, **edge))

        def otsu(s, kind):
            as_bytes = c.normalize(s.image, None, 0, 255, c.NORM_MINMAX, c.CV_8U)
            return c.threshold(as_bytes, 0, 1, c.THRESH_BINARY | kind)[1]

        def warp(s, matrix):
            return c.warpAffine(s.image, np.float32(matrix), s.image.shape[::-1], flags=c.INTER_LINEAR)

        def maxima(s):
            same = c.compare(s.image, c.dilate(s.image, box(2), **edge), c.CMP_EQ)
            return c.bitwise_and(same, c.compare(s.image, 150.0, c.CMP_GT))

        morph = {
            "opening": c.MORPH_OPEN, "closing": c.MORPH_CLOSE, "top_hat": c.MORPH_TOPHAT, "bottom_hat": c.MORPH_BLACKHAT,
        }  # fmt: skip
        calls = {
            "subtract_gaussian_background": lambda s: c.subtract(s.image, blur(s.image, 8)),
            "divide_gaussian_background": lambda s: c.divide(s.image, blur(s.image, 8)),
            "unsharp": lambda s: c.addWeighted(s.image, 2.5, blur(s.image, 2), -1.5, 0.0),
            "gaussian": lambda s: blur(s.image, 2),
            "gaussian_8": lambda s: blur(s.image, 8),
            "mean_box": lambda s: c.blur(s.image, (5, 5), **edge),
            "mean_box_30": lambda s: c.blur(s.image, (61, 61), **edge),
            "mean_sphere": lambda s: c.filter2D(s.image, -1, disk(3) / np.float32(disk(3).sum()), **edge),
            "median_box": lambda s: c.medianBlur(s.image, 3),
            "median_box_2": lambda s: c.medianBlur(s.image, 5),
            "variance_box": lambda s: variance(s.image, 2),
            "variance_box_30": lambda s: variance(s.image, 30),
            "std_box": lambda s: c.sqrt(variance(s.image, 2)),
            "sobel": sobel,
            "laplace_diamond": lambda s: c.Laplacian(s.image, c.CV_32F, ksize=1, scale=-1, **edge),
            "laplace_box": lambda s: c.filter2D(s.image, -1, boxed, **edge),
            "difference_of_gaussian": lambda s: c.subtract(blur(s.image, 2), blur(s.image, 6)),
            "convolve": lambda s: c.filter2D(s.image, -1, s.kernel, **edge),
            "binary_erode": lambda s: c.erode(s.mask, near),
            "binary_dilate": lambda s: c.dilate(s.mask, near),
            "binary_open": lambda s: c.morphologyEx(s.mask, c.MORPH_OPEN, near),
            "binary_close": lambda s: c.morphologyEx(s.mask, c.MORPH_CLOSE, near),
            "distance_transform": lambda s: c.distanceTransform(s.mask, c.DIST_L2, c.DIST_MASK_PRECISE),
            "threshold_otsu": lambda s: otsu(s, c.THRESH_OTSU),
            "threshold_triangle": lambda s: otsu(s, c.THRESH_TRIANGLE),
            "threshold_local": lambda s: c.compare(s.image, c.blur(s.image, (21, 21), **edge), c.CMP_GT),
            "label_box": lambda s: c.connectedComponents(s.mask, connectivity=8),
            "label_diamond": lambda s: c.connectedComponents(s.mask, connectivity=4),
            "local_maxima": maxima,
            "flip_x": lambda s: c.flip(s.image, 1),
            "flip_y": lambda s: c.flip(s.image, 0),
            "transpose_xy": lambda s: c.transpose(s.image),
            "pad": lambda s: c.copyMakeBorder(s.image, 8, 8, 8, 8, c.BORDER_CONSTANT),
            "affine_linear": lambda s: c.warpAffine(
                s.image, np.float32([[TURN[3], TURN[2], 3.5], [TURN[1], TURN[0], 3.5]]), s.image.shape[::-1],
                flags=c.INTER_LINEAR | c.WARP_INVERSE_MAP,
            ),
            "resize_nearest": lambda s: c.resize(s.image, None, fx=0.5, fy=0.5, interpolation=c.INTER_NEAREST),
            "bin_mean": lambda s: c.resize(s.image, None, fx=0.5, fy=0.5, interpolation=c.INTER_AREA),
            "shift_linear": lambda s: warp(s, [[1, 0, -5.5], [0, 1, 3.25]]),
            "rotate_linear": lambda s: warp(s, c.getRotationMatrix2D((1023.5, 1023.5), 10, 1)),
            "resize_linear": lambda s: c.resize(s.image, None, fx=0.5, fy=0.5, interpolation=c.INTER_LINEAR),
            "phase_shift": lambda s: c.phaseCorrelate(s.image, s.other),
        }
        for name, kind in morph.items():
            calls[f"{name}_box"] = lambda s, kind=kind: c.morphologyEx(s.image, kind, box(5), **edge)
            calls[f"{name}_sphere"] = lambda s, kind=kind: c.morphologyEx(s.image, kind, disk(5), **edge)
        for name, grow in (("minimum", c.erode), ("maximum", c.dilate)):
            calls[f"{name}_box"] = lambda s, grow=grow: grow(s.image, box(3), **edge)
            calls[f"{name}_box_30"] = lambda s, grow=grow: grow(s.image, box(30), **edge)
            calls[f"{name}_sphere"] = lambda s, grow=grow: grow(s.image, disk(3), **edge)
        return calls


def gathered(names, threads):
    """The libraries that can be had, and why others cannot."""
    from .clesperanto import Clesperanto, ClesperantoByHand

    kinds = {
        "numpy": Numpy,
        "scipy": Scipy,
        "skimage": Skimage,
        "opencv": lambda: OpenCV(threads),
        "cle": Clesperanto,
        "cle_fused": ClesperantoByHand,
    }
    found, missing = [], {}
    for name in names or kinds:
        try:
            found.append(kinds[name]())
        except (ImportError, RuntimeError) as error:
            missing[name] = str(error)
    return found, missing

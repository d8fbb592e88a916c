"""Makes the files in this folder: what NumPy, tifffile and Pillow write.

Needs numpy, tifffile, imagecodecs, pillow and zarr. The tests know each pixel: element number i of an
array is i * 37 + 11, modulo 251; floats are a quarter of that, signed numbers that minus 125.
"""

import shutil
from pathlib import Path

import numpy
import tifffile
import zarr
from numpy.lib import format as npy
from PIL import Image
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec

HERE = Path(__file__).parent


def ramp(shape, dtype):
    values = (numpy.arange(numpy.prod(shape)) * 37 + 11) % 251
    kind = numpy.dtype(dtype).kind
    if kind == "f":
        values = values / 4
    elif kind == "i":
        values = values - 125
    elif kind == "b":
        values = values % 2
    return values.astype(dtype).reshape(shape)


def save_npy(name, array, version=(1, 0)):
    with open(HERE / f"{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version)


def make_npy():
    for dtype in "bool u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8".split():
        save_npy(f"plane-{dtype}", ramp((5, 7), dtype))
    save_npy("big-endian-u2", ramp((5, 7), "u2").astype(">u2"))
    save_npy("big-endian-f8", ramp((5, 7), "f8").astype(">f8"))
    save_npy("fortran-u2", numpy.asfortranarray(ramp((3, 5, 7), "u2")))
    save_npy("fortran-f4", numpy.asfortranarray(ramp((5, 7), "f4")))
    save_npy("version2", ramp((5, 7), "f4"), (2, 0))
    save_npy("version3", ramp((5, 7), "f4"), (3, 0))
    save_npy("empty", numpy.zeros((0, 7), "f4"))
    save_npy("row", ramp((9,), "f4"))
    save_npy("scalar", numpy.float32(3).reshape(()))
    save_npy("complex", numpy.zeros((2, 2), "c8"))
    save_npy("records", numpy.zeros((2, 2), [("a", "f4"), ("b", "u1")]))
    save_npy("axes7", numpy.zeros((1,) * 7, "u1"))


def save_tif(name, array, **options):
    options.setdefault("photometric", "minisblack")
    tifffile.imwrite(HERE / f"{name}.tif", array, **options)


def make_tif():
    for dtype in "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8".split():
        save_tif(f"plane-{dtype}", ramp((5, 7), dtype))
    save_tif("bits", ramp((5, 19), "bool"))
    save_tif("stack", ramp((3, 5, 7), "u2"))
    save_tif("stack-plain", ramp((3, 5, 7), "u2"), metadata=None)
    save_tif("one-plane-stack", ramp((1, 5, 7), "u2"))
    save_tif("time-stack", ramp((2, 3, 5, 7), "u2"), metadata={"axes": "TZYX"})
    save_tif("imagej", ramp((3, 5, 7), "u2"), imagej=True)
    save_tif("ome", ramp((3, 5, 7), "u2"), ome=True)
    save_tif("bigtiff", ramp((3, 5, 7), "u2"), bigtiff=True)
    save_tif("big-endian", ramp((3, 5, 7), "u2"), byteorder=">")
    save_tif("strips", ramp((5, 7), "f4"), rowsperstrip=2)
    save_tif("tiles", ramp((40, 50), "u2"), tile=(16, 32))
    save_tif("tiles-lzw", ramp((40, 60), "u2"), tile=(16, 32), compression="lzw")
    save_tif("tiles-bits", ramp((20, 70), "bool"), tile=(16, 32))
    save_tif("tiles-zstd-f4", ramp((40, 50), "f4"), tile=(16, 32), compression="zstd", predictor=3)
    for codec in "lzw zlib packbits zstd".split():
        save_tif(codec, ramp((2, 20, 30), "u2"), compression=codec)
    save_tif("lzw-predictor", ramp((2, 20, 30), "u2"), compression="lzw", predictor=2)
    with tifffile.TiffWriter(HERE / "thumbnail.tif") as file:
        file.write(ramp((20, 30), "u1"), photometric="minisblack", metadata=None)
        file.write(ramp((10, 15), "u1"), photometric="minisblack", subfiletype=1, metadata=None)
    with tifffile.TiffWriter(HERE / "sizes.tif") as file:
        file.write(ramp((20, 30), "u1"), photometric="minisblack", metadata=None)
        file.write(ramp((10, 15), "u1"), photometric="minisblack", metadata=None)
    save_tif("white-is-zero", ramp((5, 7), "u1"), photometric="miniswhite")
    save_tif("rgb", ramp((5, 7, 3), "u1"), photometric="rgb")
    save_tif("channels", ramp((5, 7, 2), "u2"), planarconfig="contig")
    save_tif("palette", ramp((5, 7), "u1"), photometric="palette",
             colormap=ramp((3, 256), "u2"))
    save_tif("truncated-pages", ramp((3, 5, 7), "u2"), truncate=True)
    save_tif("volume", ramp((16, 16, 16), "u1"), volumetric=True, tile=(16, 16, 16))
    hyperstack = ramp((2, 3, 2, 5, 7), "u2")
    save_tif("ome-order", hyperstack.transpose(2, 0, 1, 3, 4), ome=True, metadata={"axes": "ZTCYX"})
    save_tif("imagej-order", hyperstack.transpose(0, 2, 1, 3, 4), imagej=True, metadata={"axes": "TZCYX"})
    with tifffile.TiffWriter(HERE / "two-images.ome.tif", ome=True) as file:
        file.write(ramp((3, 5, 7), "u2"), metadata={"axes": "ZYX"})
        file.write(ramp((2, 4, 6), "u2"), metadata={"axes": "CYX"})
    save_tif("bigtiff-tiles", ramp((2, 40, 50), "i2"), bigtiff=True, byteorder=">", tile=(16, 16),
             compression="zlib", predictor=2)
    save_tif("lzw-predictor-f8", ramp((20, 30), "f8"), compression="lzw", predictor=3)


def make_zarr():
    shutil.rmtree(HERE / "zarr", ignore_errors=True)

    def save(name, **options):
        array = ramp((3, 20, 30), "u2")
        path = HERE / "zarr" / f"{name}.zarr"
        stored = zarr.create_array(path, shape=array.shape, dtype=array.dtype, chunks=(3, 10, 30), zarr_format=3, **options)
        stored[...] = array

    save("plain")
    save("gzip", compressors=GzipCodec())
    for codec, shuffle in [("blosclz", "bitshuffle"), ("lz4", "shuffle"), ("zlib", "noshuffle"), ("zstd", "shuffle")]:
        save(f"blosc-{codec}", compressors=BloscCodec(cname=codec, shuffle=shuffle))
    save("shards", shards=(3, 20, 30))
    save("turned", filters=TransposeCodec(order=(2, 0, 1)), compressors=Crc32cCodec())


def make_png():
    def save(name, image, **options):
        image.save(HERE / f"{name}.png", **options)

    gray = ramp((5, 7), "u1")
    save("plane-u1", Image.fromarray(gray))
    save("plane-u2", Image.fromarray((ramp((5, 7), "u2") * 250).astype("u2")))
    save("bits", Image.fromarray(ramp((5, 19), "bool")))
    save("gray-rgb", Image.fromarray(numpy.stack([gray] * 3, -1)))
    opaque = numpy.full_like(gray, 255)
    save("gray-rgba", Image.fromarray(numpy.stack([gray] * 3 + [opaque], -1)))
    save("gray-alpha", Image.fromarray(numpy.stack([gray, opaque], -1), "LA"))
    save("transparent", Image.fromarray(numpy.stack([gray, ramp((5, 7), "u1")], -1), "LA"))
    save("rgb", Image.fromarray(ramp((5, 7, 3), "u1")))
    palette = Image.fromarray(gray, "P")
    palette.putpalette([value for i in range(256) for value in (i, 0, 255 - i)])
    save("palette", palette)
    palette.putpalette([value for i in range(256) for value in (i, i, i)])
    save("gray-palette", palette)
    frames = [Image.fromarray(gray), Image.fromarray(255 - gray)]
    save("animation", frames[0], save_all=True, append_images=frames[1:])


make_npy()
make_tif()
make_png()
make_zarr()

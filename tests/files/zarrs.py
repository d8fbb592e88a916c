"""Zarr: zarr-python and ome-zarr on either side."""

import itertools
import shutil

import numpy as np
import zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from .case import pixels, reads, refuses, same, smooth, writes

TYPES = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]


def theirs(folder):
    """What zarr-python writes, in many ways."""
    number = itertools.count()

    def path():
        return folder / f"theirs-{next(number)}.zarr"

    def array(name, data, **options):
        target = path()
        stored = zarr.create_array(target, shape=data.shape, dtype=data.dtype, zarr_format=3, **options)
        stored[...] = data
        want = data.astype("u1") if data.dtype == bool else data
        yield reads(name, target, want, folder)
        start = [extent // 3 for extent in data.shape]
        extent = [max(1, extent // 2) for extent in data.shape]
        where = tuple(slice(s, s + e) for s, e in zip(start, extent))
        yield reads(f"{name} part", target, want[where], folder, start=start, extent=extent)

    for dtype in TYPES:
        data = pixels((5, 21, 34), "u1") > 99 if dtype == "bool" else pixels((5, 21, 34), dtype)
        yield from array(f"zarr {dtype}", data, chunks=(2, 10, 16))
        yield from array(f"zarr {dtype} shards", data, chunks=(2, 5, 16), shards=(4, 10, 32))
        yield from array(f"zarr {dtype} big-endian", data, chunks=(2, 10, 16), serializer="auto" if np.dtype(data.dtype).itemsize == 1 else BytesCodec(endian="big"), compressors=None)
    packs = [("none", None), ("zstd", ZstdCodec(level=9, checksum=True)), ("gzip", GzipCodec(level=6)), ("crc32c", Crc32cCodec()), ("zstd crc32c", [ZstdCodec(), Crc32cCodec()]), ("gzip zstd", [GzipCodec(), ZstdCodec()])]
    for cname, shuffle in itertools.product(["blosclz", "lz4", "lz4hc", "zlib", "zstd"], ["noshuffle", "shuffle", "bitshuffle"]):
        packs.append((f"blosc {cname} {shuffle}", BloscCodec(cname=cname, clevel=5, shuffle=shuffle)))
    images = [("noise", pixels((3, 70, 90), "u2")), ("smooth", smooth((3, 120, 90), "u2")), ("floats", smooth((3, 64, 64), "f8"))]
    for (title, pack), (image, data) in itertools.product(packs, images):
        yield from array(f"zarr {title} {image}", data, chunks=(1, 64, 50), compressors=pack)
        if image == "smooth":
            yield from array(f"zarr shards {title} {image}", data, chunks=(1, 32, 25), shards=(2, 64, 50), compressors=pack)
    data = smooth((200, 300), "u2")
    # Blocks that are split, and blocks that are not; sizes that are no multiple of anything.
    for blocksize, dtype in itertools.product([0, 256, 1000, 4096], ["u1", "u2", "f4", "f8"]):
        for cname in ["blosclz", "lz4", "zstd"]:
            codec = BloscCodec(cname=cname, clevel=9, shuffle="shuffle", blocksize=blocksize)
            yield from array(f"zarr blosc {cname} blocks {blocksize} {dtype}", data.astype(dtype), chunks=(77, 131), compressors=codec)
    for order in itertools.permutations(range(3)):
        yield from array(f"zarr order {order}", pixels((5, 6, 7), "u2"), chunks=(2, 3, 4), filters=[TransposeCodec(order=order)])
    twice = [TransposeCodec(order=(1, 2, 0)), TransposeCodec(order=(0, 2, 1))]
    yield from array("zarr orders", pixels((5, 6, 7), "u2"), chunks=(2, 3, 4), filters=twice)
    start = ShardingCodec(chunk_shape=(4, 5), index_location="start", codecs=[BytesCodec(), ZstdCodec()])
    yield from array("zarr index first", pixels((21, 33), "u2"), chunks=(8, 10), serializer=start, compressors=None)
    for separator, name in itertools.product("./", ["default", "v2"]):
        yield from array(f"zarr keys {name} {separator}", pixels((21, 33), "u2"), chunks=(8, 10), chunk_key_encoding={"name": name, "separator": separator})

    for dtype, fill in [("u2", 7), ("i2", -7), ("f4", np.nan), ("f8", np.inf), ("f4", -1.5), ("u8", 2**64 - 1), ("f2", 0.25)]:
        target = path()
        stored = zarr.create_array(target, shape=(20, 30), chunks=(8, 8), dtype=dtype, fill_value=fill, zarr_format=3)
        stored[9:12, 9:12] = 5
        yield reads(f"zarr fill {dtype} {fill}", target, stored[...], folder)
        target = path()
        stored = zarr.create_array(target, shape=(20, 30), chunks=(4, 4), shards=(8, 8), dtype=dtype, fill_value=fill, zarr_format=3)
        stored[9:12, 9:12] = 5
        yield reads(f"zarr fill {dtype} {fill} shards", target, stored[...], folder)
    yield from ngff(folder, path)
    yield from refusals(path)


def ngff(folder, path):
    """OME-NGFF 0.5, as ome-zarr writes it."""
    from ome_zarr.writer import write_image

    data = pixels((2, 3, 4, 40, 50), "u2")
    target = path()
    group = zarr.open_group(target, mode="w", zarr_format=3)
    write_image(data, group, axes="tczyx", scale_factors=[2, 4])
    yield reads("ngff", target, data, folder, axes="TCZYX")
    yield reads("ngff part", target, data[1:, 1:2, 2:3], folder, axes="TCZYX", start=[1, 1, 2, 0, 0], extent=[1, 1, 1, 40, 50])
    levels = [dataset["path"] for dataset in group.attrs["ome"]["multiscales"][0]["datasets"]]
    for level, name in enumerate(levels):
        yield reads(f"ngff level {level}", target, group[name][...], folder, level=level)
        yield reads(f"ngff array {level}", target / name, group[name][...], folder)
    yield refuses("ngff level 9", target, f"{len(levels)} resolutions", level=9)


def refusals(path):
    """What is not read is said."""
    target = path()
    zarr.create_array(target, shape=(4, 4), dtype="u2", zarr_format=2)
    yield refuses("zarr 2", target, "Zarr of version 2")
    target = path()
    zarr.create_array(target, shape=(4, 4), dtype="c8", zarr_format=3)
    yield refuses("zarr complex", target, "`complex64`")
    target = path()
    zarr.open_group(target, mode="w", zarr_format=3)
    yield refuses("zarr group", target, "a group of arrays")
    good = path()
    stored = zarr.create_array(good, shape=(4, 4), chunks=(4, 4), dtype="u2", zarr_format=3, compressors=Crc32cCodec())
    stored[...] = 1

    def changed(name, change):
        target = path()
        shutil.copytree(good, target)
        (target / name).write_bytes(change((target / name).read_bytes()))
        return target

    target = changed("c/0/0", lambda chunk: chunk[:-1] + b"x")
    yield refuses("zarr check sum", target, "check sum of a chunk is wrong, in its part `c/0/0`")
    yield refuses("zarr empty chunk", changed("c/0/0", lambda _: b""), "in its part `c/0/0`")
    yield refuses("zarr codec", changed("zarr.json", lambda text: text.replace(b'"crc32c"', b'"wavelets"')), "`wavelets`")
    yield refuses("zarr no JSON", changed("zarr.json", lambda _: b"{"), "is no JSON")


def ours(folder):
    """What zarr-python and ome-zarr make of ours."""
    number = itertools.count()

    def plain(array, key):
        return lambda path: same(zarr.open(path, mode="r")[key][...] if key else zarr.open(path, mode="r")[...], array)

    for dtype, shape in itertools.product(TYPES[1:], [(33, 47), (1, 1), (3, 5, 21), (2, 2, 3, 4, 5)]):
        array = pixels(shape, dtype)
        target = folder / f"ours-{next(number)}.zarr"
        yield writes(f"our zarr {dtype} {shape}", array, target, plain(array, "0"), folder)
    array = pixels((2, 1500, 1030), "u2")
    yield writes("our zarr of several chunks", array, folder / "ours-large.zarr", plain(array, "0"), folder)
    for shape, axes in [((7,), None), ((3, 4, 5), "NYX"), ((3, 4, 5), "XYZ"), ((0, 5), None)]:
        array = pixels(shape, "f4")
        target = folder / f"ours-{next(number)}.zarr"
        job = {"axes": axes} if axes else {}
        key = "0" if shape == (0, 5) else None
        yield writes(f"our zarr without OME {shape} {axes}", array, target, plain(array, key), folder, **job)

    def image(axes, array):
        def look(path):
            node = next(iter(Reader(parse_url(path))()))
            names = "".join(axis["name"] for axis in node.metadata["axes"])
            if names != axes.lower():
                return f"axes {names}"
            ome = zarr.open_group(path, mode="r").attrs["ome"]
            scale = ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
            if scale[-1] != 0.25 or ome["omero"]["channels"][1]["label"] != "a&b" or ome["version"] != "0.5":
                return f"it says {ome}"
            return same(np.asarray(node.data[0]), array)

        return look

    for axes, shape in [("CYX", (2, 6, 7)), ("TCZYX", (3, 2, 4, 6, 7)), ("CZYX", (2, 3, 5, 6))]:
        array = pixels(shape, "u2")
        facts = {"axes": axes, "channels": ["DAPI", "a&b"], "spacing": [2.0, 0.25, 0.25]}
        target = folder / f"ours-{axes}.ome.zarr"
        yield writes(f"our ngff {axes}", array, target, image(axes, array), folder, **facts)
        back = reads(f"our ngff {axes} again", target, array, folder, channels=["DAPI", "a&b"], axes=axes, spacing=[2.0 if "Z" in axes else None, 0.25, 0.25])
        yield back

"""TIFF: tifffile on either side."""

import itertools
import re

import numpy as np
import tifffile

from .case import pixels, reads, refuses, same, smooth, writes

TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]


def theirs(folder):
    """What tifffile writes, in many ways."""
    number = itertools.count()

    def path(suffix=".tif"):
        return folder / f"theirs-{next(number)}{suffix}"

    def plane(name, array, want=None, **options):
        target = path()
        options.setdefault("photometric", "minisblack")
        tifffile.imwrite(target, array, **options)
        return reads(name, target, array if want is None else want, folder)

    codecs = [None, "lzw", "zlib", "packbits", "zstd"]
    layouts = [("strips", {"rowsperstrip": 5}), ("one strip", {}), ("tiles", {"tile": (32, 16)})]
    for codec, (layout, how), dtype in itertools.product(codecs, layouts, TYPES):
        array = smooth((45, 37), dtype)
        yield plane(f"tif {codec} {layout} {dtype}", array, compression=codec, **how)
        if codec in (None, "packbits"):
            continue
        predictor = 3 if dtype[0] == "f" else 2
        name = f"tif {codec} {layout} {dtype} predictor {predictor}"
        yield plane(name, array, compression=codec, predictor=predictor, **how)
    for byteorder, bigtiff, dtype in itertools.product("<>", (False, True), TYPES):
        array = pixels((3, 19, 23), dtype)
        name = f"tif {byteorder} {'big' if bigtiff else 'classic'} {dtype}"
        yield plane(name, array, byteorder=byteorder, bigtiff=bigtiff)
        more = {"byteorder": byteorder, "bigtiff": bigtiff, "compression": "zlib", "tile": (16, 16)}
        yield plane(f"{name} tiles", array, predictor=3 if dtype[0] == "f" else 2, **more)
    for shape in [(1, 1), (1, 300), (300, 1), (513, 257)]:
        for tile in [(16, 16), (64, 128)]:
            yield plane(f"tif tile {tile} of {shape}", pixels(shape, "u2"), tile=tile, compression="lzw")
    yield plane("tif bits", pixels((21, 33), "u1") > 127, want=(pixels((21, 33), "u1") > 127).astype("u1"))

    array = pixels((2, 3, 4, 21, 17), "u2")
    parts = [([0, 0, 0, 0, 0], [2, 3, 4, 21, 17]), ([1, 2, 3, 5, 6], [1, 1, 1, 7, 8]), ([0, 1, 1, 20, 0], [2, 2, 3, 1, 17])]
    # The order of an OME-TIFF in the file is any; what we make of it is one.
    for order in ["TCZYX", "TZCYX", "CTZYX", "ZCTYX", "CZTYX", "ZTCYX"]:
        target = path(".ome.tif")
        turned = array.transpose(["TCZYX".index(axis) for axis in order])
        metadata = {"axes": order, "Channel": {"Name": ["DAPI", "GFP", "a&b"]}, "PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "µm", "PhysicalSizeZ": 300.0, "PhysicalSizeZUnit": "nm"}
        tifffile.imwrite(target, turned, metadata=metadata, tile=(16, 16), compression="zlib")
        for start, extent in parts:
            where = tuple(slice(s, s + e) for s, e in zip(start, extent))
            facts = {"axes": "TCZYX", "channels": ["DAPI", "GFP", "a&b"], "spacing": [0.3, None, 0.25]}
            yield reads(f"ome {order} {start}", target, array[where], folder, start=start, extent=extent, **facts)
    target = path(".ome.tif")
    with tifffile.TiffWriter(target, ome=True) as file:
        file.write(array[0, 0], metadata={"axes": "ZYX"})
        file.write(array[0, :, 0], metadata={"axes": "CYX"})
    yield refuses("ome of two images", target, "2 images")
    yield reads("ome of two images 0", target, array[0, 0], folder, axes="ZYX", series=0)
    yield reads("ome of two images 1", target, array[0, :, 0], folder, axes="CYX", series=1)
    yield refuses("ome of two images 2", target, "2 images", series=2)
    target = path(".ome.tif")
    tifffile.imwrite(target, array[0, 0], metadata={"axes": "ZYX"}, ome=True)
    yield reads("ome of a stack", target, array[0, 0], folder, axes="ZYX")

    # ImageJ's order is T, Z, C; with one page for all, as it writes beyond 4 GiB, too.
    for pages in ["pages", "one page"]:
        target = path()
        metadata = {"axes": "TZCYX", "unit": "um", "spacing": 2.0}
        tifffile.imwrite(target, array.transpose(0, 2, 1, 3, 4), imagej=True, metadata=metadata, resolution=(4, 4))
        if pages == "one page":
            cut_pages(target)
        for start, extent in parts:
            where = tuple(slice(s, s + e) for s, e in zip(start, extent))
            yield reads(f"imagej {pages} {start}", target, array[where], folder, axes="TCZYX", spacing=[2.0, 0.25, 0.25], start=start, extent=extent)
    target = path()
    tifffile.imwrite(target, array[0, 0], metadata={"axes": "ZYX"}, photometric="minisblack")
    yield reads("tifffile's own axes", target, array[0, 0], folder, axes="ZYX")
    target = path()
    tifffile.imwrite(target, array[:, :, 0], metadata={"axes": "TCYX"}, photometric="minisblack")
    yield reads("tifffile's own axes TC", target, array[:, :, 0], folder, axes="TCYX")

    yield from foreign(folder, path, array)


def cut_pages(path):
    """Makes the first page the only one, as ImageJ does where 32 bits do not do."""
    bytes_ = bytearray(path.read_bytes())
    order = ">" if bytes_[:2] == b"MM" else "<"
    at = int(np.frombuffer(bytes_, order + "u4", 1, 4)[0])
    count = int(np.frombuffer(bytes_, order + "u2", 1, at)[0])
    end = at + 2 + 12 * count
    bytes_[end : end + 4] = bytes(4)
    path.write_bytes(bytes_)


def foreign(folder, path, array):
    """OME-XML that speaks of what is not there."""
    target = path(".ome.tif")
    tifffile.imwrite(target, array[0, 0], metadata={"axes": "ZYX"}, ome=True)
    text = tifffile.TiffFile(target).pages[0].description
    for name, words, old, new in [
        ("more planes than pages", "fewer planes than it describes", 'SizeZ="4"', 'SizeZ="5"'),
        ("a plane elsewhere", "`other.ome.tif`", "<TiffData IFD", '<TiffData IFD="0"><UUID FileName="other.ome.tif">urn:uuid:1</UUID></TiffData><TiffData IFD'),
        ("a plane missing", "no page for 2 of the planes", 'PlaneCount="4"', 'PlaneCount="2"'),
        ("an unknown order", "DimensionOrder", 'DimensionOrder="XY', 'DimensionOrder="XYQ'),
        ("another size", "says planes of 22x17", 'SizeY="21"', 'SizeY="22"'),
        ("no XML", "makes no sense", "</Pixels>", "</Pixel>"),
    ]:
        changed = text.replace(old, new)
        assert changed != text, (name, text)
        target = path(".ome.tif")
        tifffile.imwrite(target, array[0, 0], metadata=None, description=changed.encode(), photometric="minisblack")
        yield refuses(f"ome: {name}", target, words)
    # One file that is named, and no other: it is this one, by whatever name it goes now.
    for own in ["", ' UUID="urn:uuid:1"']:
        changed = re.sub(' UUID="[^"]*"', own, text, count=1)
        changed = re.sub("(<TiffData [^>]*)/>", r'\1><UUID FileName="old-name.ome.tif">urn:uuid:1</UUID></TiffData>', changed)
        target = path(".ome.tif")
        tifffile.imwrite(target, array[0, 0], metadata=None, description=changed.encode(), photometric="minisblack")
        yield reads(f"ome: named {own}", target, array[0, 0], folder, axes="ZYX")
    target = path()
    tifffile.imwrite(target, np.zeros((20, 20), "u1"), compression="jpeg")
    yield refuses("jpeg", target, "compressed by JPEG (7)")


def ours(folder):
    """What tifffile makes of ours."""
    number = itertools.count()
    for dtype, shape in itertools.product(TYPES, [(33, 47), (1, 1), (5, 21, 34), (2, 3, 4, 5), (1, 9, 8)]):
        target = folder / f"ours-{next(number)}.tif"
        array = pixels(shape, dtype)
        yield writes(f"our tif {dtype} {shape}", array, target, lambda p, a=array: same(tifffile.imread(p), a), folder)

    def hyperstack(axes, array, imagej):
        def look(path):
            with tifffile.TiffFile(path) as file:
                if file.is_imagej != imagej or len(file.pages) != int(np.prod(array.shape[:-2])):
                    return f"is_imagej is {file.is_imagej}, {len(file.pages)} pages"
                found = file.series[0].axes
                wrong = None if found == axes else f"axes {found}"
                return wrong or same(file.asarray(), array)

        return look

    for axes, shape, imagej in [("TZCYX", (2, 3, 4, 6, 7), True), ("CYX", (3, 6, 7), True), ("TYX", (3, 6, 7), True), ("TZYX", (3, 2, 6, 7), True), ("CZYX", (3, 2, 6, 7), False), ("ZYX", (3, 6, 7), False)]:
        for dtype in ["u1", "u2", "f4"]:
            target = folder / f"ours-{next(number)}.tif"
            array = pixels(shape, dtype)
            yield writes(f"our {axes} {dtype}", array, target, hyperstack(axes, array, imagej), folder, axes=axes)

    def ome(axes, array):
        def look(path):
            with tifffile.TiffFile(path) as file:
                if not file.is_ome:
                    return "no OME-TIFF"
                found = file.series[0]
                text = file.ome_metadata
                for words in ['Name="a&amp;b"', 'PhysicalSizeX="0.25"', 'PhysicalSizeZ="2"']:
                    if words not in text:
                        return f"no {words} in {text}"
                wrong = None if found.axes == axes else f"axes {found.axes}"
                return wrong or same(file.asarray(), array)

        return look

    for axes, shape in [("CYX", (2, 6, 7)), ("TCZYX", (3, 2, 4, 6, 7)), ("CTZYX", (2, 3, 4, 6, 7)), ("ZCYX", (3, 2, 5, 6))]:
        for dtype in ["u1", "i2", "u4", "f4", "f8"]:
            target = folder / f"ours-{next(number)}.ome.tif"
            array = pixels(shape, dtype)
            facts = {"axes": axes, "channels": ["DAPI", "a&b"], "spacing": [2.0, 0.25, 0.25]}
            yield writes(f"our ome {axes} {dtype}", array, target, ome(axes, array), folder, **facts)

"""adjoin._pt_old_layout: `.pt` files as PyTorch wrote them before 1.6: pickles one after the other, then the storages' bytes."""

import pickle
import pickletools
import struct
import sys
import zipfile

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_SIZES = {"short": 2, "int": 4, "long": 4}


def _with_views(data):
    """(the pickle, its storages with a sixth word, which says that none is a part of another; {key: count of elements})"""
    parts, counts, begin, words, last = [], {}, 0, [], None
    memo, kept = {}, None
    for code, argument, at in pickletools.genops(data):
        if code.name == "BINPERSID":
            parts += [data[begin:last], b"N"]
            begin = last
            counts[words[-3]] = words[-1]
        elif code.name == "MARK":
            words = []
        elif code.name == "BINPUT" or code.name == "LONG_BINPUT":
            memo[argument] = kept
        elif code.name != "TUPLE":
            kept = memo.get(argument) if code.name in ("BINGET", "LONG_BINGET") else argument
            words.append(kept)
        last = at
    return b"".join([*parts, data[begin:]]), counts


def pieces(zipped):
    """The parts of a file in the old layout, of one in the layout of today."""
    with zipfile.ZipFile(zipped) as archive:
        root = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("data.pkl")
        data, counts = _with_views(archive.read(f"{root}data.pkl"))
        information = {
            "protocol_version": _PROTOCOL,
            "little_endian": sys.byteorder == "little",
            "type_sizes": _SIZES,
        }
        for value in (_MAGIC, _PROTOCOL, information):
            yield pickle.dumps(value, protocol=2)
        yield data
        yield pickle.dumps(list(counts), protocol=2)
        for key, count in counts.items():
            yield struct.pack("<q", count)
            yield archive.read(f"{root}data/{key}")

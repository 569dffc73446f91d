"""adjoin.cuda._images: for which architectures the plugin cuda has machine code: read from its file, so no device is needed."""

import functools
import mmap
import struct

from .. import _C

_MAGIC = struct.pack("<I", 0xBA55ED50)  # begins each container of nvcc's
_CONTAINER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes of what follows
_IMAGE = struct.Struct("<HHIQIIHHI")  # kind, ..., bytes of this header, bytes of the image, ..., architecture
_TEXT, _CODE = 1, 2  # kinds: for newer devices to compile, for one architecture


def _path():
    return next((plugin["path"] for plugin in _C.plugin_list() if plugin["name"] == "cuda"), None)


@functools.cache
def _images(path):
    found = set()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_MAGIC)
        while at >= 0:
            _, _, header, size = _CONTAINER.unpack_from(content, at)
            place, end = at + header, at + header + size
            while header == _CONTAINER.size and place + _IMAGE.size <= min(end, len(content)):
                kind, _, skip, length, *_, arch = _IMAGE.unpack_from(content, place)
                if kind not in (_TEXT, _CODE) or not 50 <= arch < 1000 or skip < _IMAGE.size:
                    break
                found.add((kind, arch))
                place += skip + length
            at = content.find(_MAGIC, at + 1)
    return found


def architectures():
    """["sm_90", "compute_90"]: machine code, then what newer devices compile; none where the plugin is not there."""
    path = _path()
    kinds = {_CODE: "sm_", _TEXT: "compute_"}
    return [f"{kinds[kind]}{arch}" for kind, arch in sorted(_images(path) if path else (), key=lambda i: (-i[0], i[1]))]

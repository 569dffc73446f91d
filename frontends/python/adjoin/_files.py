"""adjoin._files: the bytes of a file: read if it is small, mapped privately otherwise."""

import mmap
import os

from adjoin import _C

MAPPED = 64 << 20  # bytes, from which on files are mapped


def is_large(path):
    """Whether a file is mapped unless the caller says otherwise."""
    return os.path.exists(path) and os.path.getsize(path) >= MAPPED


def contents(path):
    """The bytes as a writable view; what is written to it stays in the process.

    A mapped file that somebody cuts short ends the process (SIGBUS) when a page that is gone is touched.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size >= MAPPED:
            _C.watch_mapped_files()
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        data = bytearray(size)
        return memoryview(data)[: file.readinto(data)]

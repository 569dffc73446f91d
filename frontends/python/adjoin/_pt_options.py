"""adjoin._pt_options: how `.pt` files are read and written, as a program sets it for all of them."""

import contextlib
import enum
import io
import mmap
import os
import shutil
import struct
import tempfile
import threading
import warnings
import zipfile
import zlib

from . import _C

STORAGES = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16",
    "IntStorage": "int32", "LongStorage": "int64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "FloatStorage": "float32", "DoubleStorage": "float64", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8", "_UntypedStorage": "uint8",
}  # fmt: skip


class StorageType:
    """A class of storages, as files name them."""

    def __init__(self, name):
        if name not in STORAGES:
            raise KeyError(f"StorageType: {name!r} is no class of storages; known are {', '.join(STORAGES)}")
        self.name, self.dtype = name, getattr(_C, STORAGES[name])

    def __repr__(self):
        return f"<class torch.{self.name}>"


class SourceChangeWarning(Warning):
    """A category for warning filters: a class's source is not what it was. Files here hold no sources, so nothing warns."""


class LoadEndianness(enum.Enum):
    """The order of bytes of a file that does not say its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness = None


def get_default_load_endianness():
    """The order of bytes that is taken for a file without a mark of its own; None: the machine's."""
    return _endianness


def set_default_load_endianness(endianness):
    """Sets the order of bytes that is taken for a file without a mark of its own: a LoadEndianness, or None."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(f"set_default_load_endianness: a LoadEndianness or None is wanted, not {endianness!r}")
    _endianness = endianness


def with_byte_order(source, mapped):
    """The source of a file, marked as the program has set it if the file has no mark; and whether it is still to be mapped."""
    if _endianness is not LoadEndianness.BIG:  # what is not marked is read as little
        return source, mapped
    whole = io.BytesIO(source) if not isinstance(source, str) else None
    try:
        with zipfile.ZipFile(whole or source) as archive:
            root = next((n[:-8] for n in archive.namelist() if n.endswith("data.pkl")), "")
            if root + "byteorder" in archive.namelist():
                return source, mapped
    except zipfile.BadZipFile:
        return source, mapped  # the old layout, or no file of tensors: the reader says so
    if whole is None:
        with open(source, "rb") as file:
            whole = io.BytesIO(file.read())
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr(root + "byteorder", "big")
    return whole.getvalue(), False


def get_default_mmap_options():
    """How files are mapped: mmap.MAP_PRIVATE."""
    return mmap.MAP_PRIVATE


class set_default_mmap_options:
    """Files are mapped by mmap.MAP_PRIVATE, for good or within a with statement; nothing else is there to be set."""

    def __init__(self, flags):
        if flags == mmap.MAP_SHARED:
            raise NotImplementedError(
                "set_default_mmap_options: files are mapped privately (mmap.MAP_PRIVATE); what is written to loaded tensors goes "
                "into a file by adjoin.save"
            )
        if flags != mmap.MAP_PRIVATE:
            raise ValueError(f"set_default_mmap_options: {flags!r} is given; mmap.MAP_PRIVATE is wanted")

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None


class _Skipping(threading.local):
    depth = 0


_skipping = _Skipping()


class skip_data:
    """Within, save() writes zeros in place of the storages' bytes, load() gives tensors of zeros and reads no bytes of storages.

    The bytes of such a file can be filled in later; its check sums are those of zeros, so load it with ``check_sums=False`` then.
    """

    def __init__(self, materialize_fake_tensors=False):
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data: there are no fake tensors; leave materialize_fake_tensors out")

    def __enter__(self):
        _skipping.depth += 1

    def __exit__(self, *error):
        _skipping.depth -= 1


def is_skipping():
    """Whether this thread is within skip_data()."""
    return _skipping.depth > 0


def save_without_data(write, f):
    """Writes a file by ``write(file)``, zeros its storages, and brings it to ``f``, a path or what has ``write``."""
    whole = io.BytesIO()
    write(whole)
    with whole.getbuffer() as view, zipfile.ZipFile(whole) as archive:
        entry = archive.start_dir
        for record in archive.infolist():  # in the directory's order
            if record.filename.rpartition("/")[0].endswith("/data"):
                _zero(view, record, entry)
            entry += 46 + _lengths(view, entry + 28, 3)
    bring([whole.getvalue()], f)


def bring(pieces, f):
    """Writes pieces of bytes to ``f``: to what has ``write``, or to a path, where the file appears whole or not at all."""
    if hasattr(f, "write"):
        for piece in pieces:
            f.write(piece)
        return
    path = os.path.realpath(os.fsencode(f))
    part = path + b".%d.part" % os.getpid()
    try:
        with open(part, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def _lengths(view, at, count):
    """The sum of so many lengths of two bytes each."""
    return sum(struct.unpack_from(f"<{count}H", view, at))


def _zero(view, record, entry):
    """Zeros a record's bytes; its check sum, in its header and in its entry of the directory, is that of zeros."""
    header, size = record.header_offset, record.file_size
    begin = header + 30 + _lengths(view, header + 26, 2)
    view[begin : begin + size] = bytes(size)
    total = zlib.crc32(view[begin : begin + size])
    for at in (header + 14, entry + 16):
        struct.pack_into("<I", view, at, total)


@contextlib.contextmanager
def mkdtemp():
    """A new folder for the time of a with statement."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether a module's ``__version__`` is at least the tuple; a version that cannot be compared raises RuntimeError, or warns
    and is taken for enough."""
    try:
        parts = module.__version__.split(".")
        found = tuple(type(wanted)(parts[i]) for i, wanted in enumerate(req_version_tuple))
        return found >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared "
            f"with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True

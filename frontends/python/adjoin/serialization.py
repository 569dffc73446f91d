"""adjoin.serialization: save and load in PyTorch's `.pt` layout.

The reader executes nothing. What a file names beyond plain data and tensors is refused, or with
``weights_only=False`` becomes an inert record; a class is made only if the caller has allowed it
(`add_safe_globals`) or has handed over an unpickler (``pickle_module=pickle``; `load` says when False does).
"""

import contextlib
import io
import os
import pickle
import stat
import sys
import warnings
from collections.abc import Callable

import adjoin
from adjoin import _C

from ._files import is_large
from ._pt_options import (  # noqa: F401
    bring,
    LoadEndianness,
    SourceChangeWarning,
    StorageType,
    check_module_version_greater_or_equal,
    get_default_load_endianness,
    get_default_mmap_options,
    is_skipping,
    mkdtemp,
    save_without_data,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
    with_byte_order,
)
from ._pt_places import (  # noqa: F401
    check_tags,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from ._pt_policy import Loading, Saving, UnknownClass, UnknownObject, allowed, unpickled

MAP_LOCATION = (
    Callable[[adjoin.Tensor, str], adjoin.Tensor] | adjoin.device | str | dict[str, str] | None
)  # for annotations

__all__ = [
    "LoadEndianness", "SourceChangeWarning", "StorageType", "UnknownClass", "UnknownObject", "add_safe_globals",
    "check_module_version_greater_or_equal", "clear_safe_globals", "default_restore_location", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "location_tag", "mkdtemp", "register_package", "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
    "set_default_mmap_options", "skip_data", "validate_cuda_device",
    "validate_hpu_device",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
_SMALL = 1 << 20
_ON = ("1", "y", "yes", "true")
_crc32 = True


def _get_layout(name):
    """The layout of a name, as pickles of PyTorch's say it: "torch.sparse_coo"."""
    return getattr(adjoin, name.rpartition(".")[2])


def _entry(item):
    if isinstance(item, tuple):
        return item[1], item[0]
    return f"{item.__module__}.{item.__qualname__}", item


def add_safe_globals(safe_globals):
    """Allows classes and functions, or (object, "module.name") pairs, for every later load."""
    allowed.update(map(_entry, safe_globals))


def get_safe_globals():
    """What add_safe_globals() has allowed."""
    return list(allowed.values())


def clear_safe_globals():
    """Allows nothing any more."""
    allowed.clear()


@contextlib.contextmanager
def safe_globals(safe_globals):
    """Allows classes and functions for the time of a block."""
    before = dict(allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        allowed.clear()
        allowed.update(before)


def get_crc32_options():
    """Whether save() computes check sums."""
    return _crc32


def set_crc32_options(compute_crc32):
    """Whether save() computes check sums; without them other zip programs call the file damaged."""
    global _crc32
    _crc32 = bool(compute_crc32)


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True):
    """Saves tensors, and lists, dicts, numbers and objects around them, where PyTorch can read them.

    ``f`` is a path or has ``write``. A file of a path appears whole or not at all: what was there
    stays until the new one is on the disk. Tensors that share memory share it in the file. Whatever
    ``pickle_module`` and ``pickle_protocol`` are, protocol 2 is written, as PyTorch writes by default.
    ``_use_new_zipfile_serialization=False`` writes the layout from before PyTorch 1.6, which takes the memory twice.
    """
    if not _use_new_zipfile_serialization:
        from ._pt_old_layout import pieces

        if not isinstance(f, (str, bytes, os.PathLike)) and not hasattr(f, "write"):
            raise _no_file("save", "writing", "write", f)
        zipped = io.BytesIO()
        _written(obj, zipped, "archive")
        bring(pieces(zipped), f)
        _flushed(f)
        return
    if isinstance(f, (str, bytes, os.PathLike)):
        path = os.fsencode(f)
        if b"\0" in path:
            raise ValueError("save: the path has a null byte in it")
        root = os.path.basename(os.fsdecode(f)).rpartition(".")[0] or os.path.basename(os.fsdecode(f))
        root = root.encode("utf-8", "replace").decode().replace("\0", "?")[:200] or "archive"
        _written(obj, path, root)
    elif hasattr(f, "write"):
        _written(obj, f, "archive")
        _flushed(f)
    else:
        raise _no_file("save", "writing", "write", f)


def _flushed(f):
    """What was saved can be read by its name, though the file is still open."""
    if hasattr(f, "flush"):
        f.flush()


class _NoFile(AttributeError, TypeError):
    """What PyTorch calls an attribute that is missing is a wrong type, too."""


def _no_file(who, purpose, method, f):
    return _NoFile(
        f"{who}: a path or a file that is open for {purpose} is wanted (an object with `{method}`), not {type(f).__name__}"
    )


def _written(obj, f, root):
    check_tags(obj)
    if is_skipping():
        save_without_data(lambda file: _C.pt_save(obj, Saving(), file, root, True), f)
    else:
        _C.pt_save(obj, Saving(), f, root, _crc32)


def load(
    f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, check_sums=None, **pickle_load_args
):
    """What `save`, or PyTorch, has saved.

    ``f`` is a path or has ``read``. A file below 64 MB is read. A larger one is mapped privately: pages
    are read when they are used, what is written to the tensors stays in the process. ``mmap=True`` and
    ``mmap=False`` decide otherwise. Who maps a file must leave it alone: written over in place, it changes
    the tensors; cut short, it ends the process (SIGBUS; the message on stderr names the file). `save` puts a
    new file in its place, which does no harm.
    ``map_location`` (a device, its name, a dict of names, or a function of a storage and a name) says
    where tensors go; otherwise where they were, or to the host where there is no such device.
    Where ``import torch`` is Adjoin, ``weights_only=False`` means what it means to PyTorch's programs, that the file is trusted:
    what it names is imported and called, as by ``pickle_module=pickle``.
    ``check_sums``: compare the storages' check sums too; by default only of what is copied.
    """
    weights_only = _by_environment(weights_only)
    if pickle_module is not None and weights_only:
        raise RuntimeError("load: weights_only=True reads without pickle_module; leave one of them out")
    if weights_only is False and pickle_module is None and sys.modules.get("torch") is adjoin:
        pickle_module = pickle
    weights_only = pickle_module is None if weights_only is None else weights_only
    if weights_only and pickle_load_args.get("encoding") == "bytes":
        raise NotImplementedError(
            'load: encoding="bytes" is there where the file is trusted: give weights_only=False; else its strings are UTF-8'
        )
    if map_location is not None and not callable(map_location) and not isinstance(map_location, dict):
        map_location = adjoin.device(map_location)
    is_path = isinstance(f, (str, bytes, os.PathLike))
    if not is_path and not hasattr(f, "read"):
        raise _no_file("load", "reading", "read", f)
    if mmap and not is_path:
        raise ValueError("load: mmap=True needs a path, not an open file")
    begin = 0 if is_path else _position(f)
    source, mapped = _source(f, is_path, True if mmap is None and is_path and is_skipping() else mmap)
    count = len(source) if begin is not None and not isinstance(source, str) else 0
    source, mapped = with_byte_order(source, mapped)
    try:
        file = _C.pt_open(source, mapped, not mapped if check_sums is None else check_sums)
    except RuntimeError:
        if not _holds_program(source):
            raise
        return _program(source, weights_only, map_location)
    if _C.pt_length(file) < count:
        f.seek(begin + _C.pt_length(file))  # what else was written to it can be read next
    loading = Loading(weights_only, map_location)
    if pickle_module is not None:
        try:
            return unpickled(file, loading, pickle_module, pickle_load_args)
        except (ModuleNotFoundError, AttributeError) as error:
            error.add_note(
                "load: the file holds an object of a class that was there when it was written; bring the class back where it was,"
                " or save state_dict(), which names none"
            )
            raise
    loading.file = file
    try:
        return _C.pt_run(file, loading)
    except UnicodeDecodeError as error:
        raise pickle.UnpicklingError(f"load: the file is damaged: a text in it is no UTF-8 ({error.reason})") from error


def _holds_program(source):
    """Whether a path or bytes are an archive that jit.save() has written."""
    import zipfile

    try:
        with zipfile.ZipFile(source if isinstance(source, str) else io.BytesIO(source)) as archive:
            return "program/program.ajir" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):  # ValueError: a name is no text
        return False


def _program(source, weights_only, map_location):
    if weights_only:
        raise RuntimeError(
            "load: Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: the file holds a program; "
            "jit.load() reads it, or load(..., weights_only=False) where it is trusted"
        )
    warnings.warn("load: the file holds a program, so jit.load() reads it; call that", stacklevel=3)
    return adjoin.jit.load(source if isinstance(source, str) else io.BytesIO(source), map_location)


def _position(f):
    """Where an open file is; None where it cannot be brought back there."""
    try:
        return f.tell() if f.seekable() else None
    except (AttributeError, OSError):
        return None


def _by_environment(weights_only):
    """``weights_only``, where a variable of the environment does not decide it for the whole program."""
    forced = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _ON
    freed = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _ON
    if forced and freed:
        raise RuntimeError(
            "load: only one of TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD should be set, both are; unset one"
        )
    if forced:
        return True
    if freed and weights_only is None:
        warnings.warn(
            "load: TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is set and weights_only is not given: forcing weights_only=False",
            stacklevel=3,
        )
        return False
    return weights_only


def _source(f, is_path, mmap):
    """(a path or bytes, whether to map it)"""
    if is_path:
        return os.fsdecode(f), is_large(f) if mmap is None else bool(mmap)
    if mmap is None and type(f) is io.BufferedReader and type(f.raw) is io.FileIO and f.tell() == 0:
        path = f"/proc/self/fd/{f.fileno()}"  # an ordinary file that is merely open already
        if stat.S_ISREG(os.fstat(f.fileno()).st_mode) and os.path.exists(path) and is_large(path):
            f.seek(0, os.SEEK_END)
            return path, True
    source = _unread(f) if mmap is None else None
    source = f.read() if source is None else source
    if isinstance(source, str):
        raise TypeError("load: the file is open for text; open it in binary mode, 'rb'")
    return source, False


def _unread(f):
    """What is left of a file in memory that is not small, without a copy of it; the file can be closed when it is loaded."""
    if type(f) is not io.BytesIO or f.getbuffer().nbytes - f.tell() < _SMALL:
        return None
    begin = f.tell()
    f.seek(0, os.SEEK_END)
    return f.getbuffer()[begin:]


def get_unsafe_globals_in_checkpoint(f):
    """Names in a file that a load with weights_only=True would refuse."""
    found = []

    class Asking(Loading):
        def unknown(self, module, name):
            found.append(f"{module}.{name}")
            return UnknownClass(module, name)

    asking = Asking(False, adjoin.device("cpu"))
    asking.file = _C.pt_open(_source(f, isinstance(f, (str, bytes, os.PathLike)), None)[0], False, False)
    _C.pt_run(asking.file, asking)
    return found


def _is_zipfile(f):
    """Whether a zip archive begins where an open file is; the file stays there."""
    begin = f.tell()
    try:
        return f.read(4) == b"PK\x03\x04"
    finally:
        f.seek(begin)


def _open_zipfile_reader(name_or_buffer):
    """The records of a `.pt` file, for ``with``."""
    from ._pt_records import PyTorchFileReader

    return PyTorchFileReader(name_or_buffer)


def _open_zipfile_writer(name_or_buffer):
    """A `.pt` file that is written record by record, for ``with``."""
    from ._pt_records import PyTorchFileWriter

    return PyTorchFileWriter(name_or_buffer)


def normalize_storage_type(storage_type):
    """The class of typed storages that a storage's class is the kind of."""
    from ._typed_storage import TypedStorage

    if not (isinstance(storage_type, type) and issubclass(storage_type, TypedStorage)):
        raise TypeError(f"normalize_storage_type: a class of typed storages is wanted, not {storage_type!r}")
    return storage_type


def storage_to_tensor_type(storage):
    """The old class of tensors of a typed storage's dtype."""
    import adjoin

    return getattr(adjoin, type(storage).__name__.replace("Storage", "Tensor"))

"""adjoin.distributed.checkpoint.metadata: what a checkpoint holds, and in which file each piece lies.

The file ``.metadata`` is PyTorch's: a pickle of these classes. It is read by an unpickler that knows them and nothing else, so
nothing that the file names is imported or called; it is written with PyTorch's names, so PyTorch reads what is written here.
"""

import dataclasses
import enum
import io
import os
import pathlib
import pickle

import adjoin

from ... import _C

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


@dataclasses.dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, and its sizes."""

    offsets: adjoin.Size
    sizes: adjoin.Size


class _MEM_FORMAT_ENCODING(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclasses.dataclass
class TensorProperties:
    """What a tensor is besides its sizes and values."""

    dtype: adjoin.dtype = adjoin.float32
    layout: adjoin.layout = adjoin.strided
    requires_grad: bool = False
    memory_format: adjoin.memory_format = adjoin.contiguous_format
    pin_memory: bool = False
    strides: tuple | None = None

    def __getstate__(self):
        encoding = _MEM_FORMAT_ENCODING(_FORMATS.index(self.memory_format))
        return self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory, self.strides

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory, *more = state
        self.strides = more[0] if more else None
        self.memory_format = _FORMATS[encoding.value]

    @staticmethod
    def create_from_tensor(tensor):
        """Those of a tensor."""
        return TensorProperties(tensor.dtype, requires_grad=tensor.requires_grad, strides=tuple(tensor.stride()))


_FORMATS = adjoin.contiguous_format, adjoin.channels_last, adjoin.preserve_format


@dataclasses.dataclass
class TensorStorageMetadata:
    """A tensor, and the boxes that are stored of it."""

    properties: TensorProperties
    size: adjoin.Size
    chunks: list


@dataclasses.dataclass
class BytesStorageMetadata:
    """An object that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict


@dataclasses.dataclass
class StorageMeta:
    """Which save it was."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Metadata:
    """A checkpoint: name -> what it is; name -> its path in the nested state; piece -> its file."""

    state_dict_metadata: dict
    planner_data: object = None
    storage_data: object = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclasses.dataclass(frozen=True)
class MetadataIndex:
    """Names a piece: of which tensor, and where its box begins; an object has no box."""

    fqn: str
    offset: adjoin.Size | None = None
    index: int | None = dataclasses.field(hash=False, compare=False, default=None)


@dataclasses.dataclass
class _StorageInfo:
    """Where the bytes of a piece lie."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: tuple | None = None


@dataclasses.dataclass
class _StoragePrefix:
    prefix: str


_HERE, _FILES = "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"
_RECORDS = {
    **{c: _HERE for c in (ChunkStorageMetadata, TensorProperties, TensorStorageMetadata, BytesStorageMetadata, StorageMeta)},
    **{c: _HERE for c in (Metadata, MetadataIndex, _MEM_FORMAT_ENCODING)},
    **{c: _FILES for c in (_StorageInfo, _StoragePrefix)},
}  # fmt: skip
_CLASSES = {(module, c.__name__): c for c, module in _RECORDS.items()}


def _layout(name):
    return getattr(adjoin, str(name).rpartition(".")[2])


def _path(*parts):
    return "/".join(map(str, parts)).replace("//", "/", 1)


_KNOWN = {
    ("torch", "Size"): adjoin.Size,
    ("torch.serialization", "_get_layout"): _layout,
    ("collections", "OrderedDict"): dict,
    **{("pathlib", name): _path for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")},
}


class _Reader(pickle.Unpickler):
    """Makes the classes above of what a file says, and nothing else."""

    def find_class(self, module, name):
        found = _CLASSES.get((module, name)) or _KNOWN.get((module, name))
        if found is None and module == "torch":
            found = getattr(_C, name, None)
            found = found if isinstance(found, (adjoin.dtype, adjoin.memory_format)) else None
        if found is None:
            raise pickle.UnpicklingError(
                f".metadata names {module}.{name}, which no checkpoint needs; nothing of the file was run"
            )
        return found

    def persistent_load(self, pid):
        raise pickle.UnpicklingError(
            ".metadata refers to something outside of the file; it is damaged, or no such file"
        )


def read(path):
    """The metadata of a file."""
    data = pathlib.Path(path).read_bytes()
    try:
        found = _Reader(io.BytesIO(data)).load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{path}: {error}") from None
    except Exception as error:  # whatever damage makes of it
        raise pickle.UnpicklingError(f"{path}: it is damaged ({type(error).__name__}: {error})") from None
    if not isinstance(found, Metadata) or not isinstance(found.state_dict_metadata, dict):
        raise pickle.UnpicklingError(f"{path}: it holds no metadata of a checkpoint")
    return found


def _global(c):
    return b"c" + f"{_RECORDS[c]}\n{c.__name__}\n".encode()


def _pickled(value):
    """The pickle of a value, by PyTorch's names; no library's pickler writes the names of classes that are not there."""
    kind = type(value)
    if kind in (bool, type(None), int, float, str):
        return pickle.dumps(value, 2)[2:-1]
    if kind is adjoin.Size:
        return b"ctorch\nSize\n(" + _pickled(tuple(value)) + b"tR"
    if kind is tuple:
        return b"(" + b"".join(map(_pickled, value)) + b"t"
    if kind is list:
        return b"](" + b"".join(map(_pickled, value)) + b"e"
    if kind is dict:
        return b"}(" + b"".join(_pickled(v) for pair in value.items() for v in pair) + b"u"
    if kind is adjoin.dtype:
        return b"ctorch\n" + str(value).rpartition(".")[2].encode() + b"\n"
    if kind is TensorProperties:
        layout = b"ctorch.serialization\n_get_layout\n(" + _pickled("torch.strided") + b"tR"
        plain = _global(_MEM_FORMAT_ENCODING) + b"(" + _pickled(0) + b"tR"
        parts = [
            _pickled(value.dtype),
            layout,
            _pickled(value.requires_grad),
            plain,
            _pickled(False),
            _pickled(value.strides),
        ]
        return _global(kind) + b")\x81(" + b"".join(parts) + b"tb"
    state = {k: v for k, v in vars(value).items() if v is not None or kind is not _StorageInfo}
    return _global(kind) + b")\x81" + _pickled(state) + b"b"


def written(metadata):
    """The bytes of the file."""
    return b"\x80\x02" + _pickled(metadata) + b"."

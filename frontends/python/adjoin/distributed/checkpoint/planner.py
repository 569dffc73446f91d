"""adjoin.distributed.checkpoint.planner: who saves and loads what; a class of one's own over the default planners changes it."""

import abc
import collections.abc
import dataclasses
import enum
import io
import math

import adjoin

from . import _boxes, _names, _planning
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties

__all__ = ["BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData",
           "WriteItem", "WriteItemType"]  # fmt: skip


class WriteItemType(enum.Enum):
    """What is written: a tensor, a part of one, an object's bytes."""

    TENSOR = 1
    SHARD = 2
    BYTE_IO = 3


class LoadItemType(enum.Enum):
    """What is read."""

    TENSOR = 1
    BYTE_IO = 2


@dataclasses.dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes an object has."""

    nbytes: int


@dataclasses.dataclass(frozen=True)
class TensorWriteData:
    """A box of a tensor, what the tensor is, and its whole size."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: adjoin.Size


@dataclasses.dataclass(frozen=True)
class WriteItem:
    """A piece that is to be written."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self):
        """The bytes of the whole tensor; None of an object."""
        data = self.tensor_data
        return None if data is None else math.prod(data.size) * data.properties.dtype.itemsize


@dataclasses.dataclass(frozen=True)
class ReadItem:
    """A box that is to be read: of which piece, and where it goes."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: adjoin.Size
    storage_index: MetadataIndex
    storage_offsets: adjoin.Size
    lengths: adjoin.Size


@dataclasses.dataclass(frozen=True)
class SavePlan:
    """What a process writes."""

    items: list
    storage_data: object = None
    planner_data: object = None
    usable: bool = True


@dataclasses.dataclass
class LoadPlan:
    """What a process reads."""

    items: list
    storage_data: object = None
    planner_data: object = None


class SavePlanner(abc.ABC):
    """Says who saves what. A save calls set_up_planner, create_local_plan, finish_plan and resolve_data in each process, and
    create_global_plan in the coordinator between the first two and the others."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """Takes the state."""

    @abc.abstractmethod
    def create_local_plan(self):
        """A SavePlan of what this process has."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans):
        """(a plan for each process, the Metadata of the checkpoint), of all plans."""

    @abc.abstractmethod
    def finish_plan(self, new_plan):
        """The plan that this process carries out."""

    @abc.abstractmethod
    def resolve_data(self, write_item):
        """What an item writes: a tensor, or an io.BytesIO."""


class LoadPlanner(abc.ABC):
    """Says what is loaded to where. A load calls set_up_planner, create_local_plan, finish_plan in each process, create_global_plan in the
    coordinator, then for each item load_bytes, or resolve_tensor and commit_tensor."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Takes the state, and what the checkpoint has."""

    @abc.abstractmethod
    def create_local_plan(self):
        """A LoadPlan of what this process wants."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan):
        """A plan for each process, of all plans."""

    @abc.abstractmethod
    def finish_plan(self, central_plan):
        """The plan that this process carries out."""

    @abc.abstractmethod
    def load_bytes(self, read_item, value):
        """Takes an object's bytes, an io.BytesIO."""

    def resolve_bytes(self, read_item):
        """Where bytes go to before load_bytes."""
        return io.BytesIO()

    @abc.abstractmethod
    def resolve_tensor(self, read_item):
        """The tensor that an item fills, as large as its lengths."""

    @abc.abstractmethod
    def commit_tensor(self, read_item, tensor):
        """It is filled."""


class DefaultSavePlanner(SavePlanner):
    """Each process saves its own parts; what several have, one of them saves. ``flatten_state_dict=False``: a dict in the state is one
    object, which one process saves whole."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None,
                 dedup_save_to_lowest_rank=False, enable_plan_caching=False):  # fmt: skip
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        found = _names.flattened(state_dict) if self.flatten_state_dict else _names.flat(state_dict)
        self.state_dict = {name: value for name, (_, value) in found.items()}
        self.mappings = {name: path for name, (path, _) in found.items()}
        self.is_coordinator = is_coordinator

    def create_local_plan(self):
        flat = {name: (self.mappings.get(name, (name,)), value) for name, value in self.state_dict.items()}
        self._values, told = _planning.items(flat)
        items = []
        for name, _, size, properties, boxes in told:
            for box in boxes:
                if box is None:
                    items.append(WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO))
                    continue
                chunk = ChunkStorageMetadata(adjoin.Size(box[0]), adjoin.Size(box[1]))
                kind = WriteItemType.TENSOR if tuple(box[1]) == tuple(size) else WriteItemType.SHARD
                data = TensorWriteData(chunk, properties, adjoin.Size(size))
                items.append(WriteItem(MetadataIndex(name, chunk.offsets), kind, tensor_data=data))
        self.plan = SavePlan(items, planner_data=self.mappings if self.flatten_state_dict else None)
        return self.plan

    def create_global_plan(self, all_plans):
        everybody = [_told(plan) for plan in all_plans]
        tasks, self.metadata = _planning.planned(everybody, self.dedup_save_to_lowest_rank)
        if not self.flatten_state_dict:
            self.metadata.planner_data = None
        self.global_plan = [
            dataclasses.replace(plan, items=[item for item in plan.items if item.index in wanted])
            for plan, wanted in zip(all_plans, map(set, tasks), strict=True)
        ]
        return self.global_plan, self.metadata

    def finish_plan(self, new_plan):
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item):
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index):
        """What the state has for a piece."""
        if index not in self._values:
            raise KeyError(f"{type(self).__name__}: this process has no {index}; give the piece to one that has it")
        return self._values[index]

    def transform_object(self, write_item, object):
        """The bytes of an object; a tensor as it is."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        data = io.BytesIO()
        adjoin.save(object, data)
        data.seek(0)
        return data


def _told(plan):
    """A plan as _planning takes it: (name, path, size, properties, boxes)."""
    found = {}
    for item in plan.items:
        name, data = item.index.fqn, item.tensor_data
        paths = plan.planner_data if isinstance(plan.planner_data, collections.abc.Mapping) else {}
        size, properties = (None, None) if data is None else (tuple(data.size), data.properties)
        box = None if data is None else (tuple(data.chunk.offsets), tuple(data.chunk.sizes))
        found.setdefault(name, (name, paths.get(name, (name,)), size, properties, []))[4].append(box)
    return list(found.values())


class DefaultLoadPlanner(LoadPlanner):
    """``allow_partial_load``: what the checkpoint does not have stays as it is."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load, self.mappings = allow_partial_load, {}

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        kept = metadata.state_dict_metadata
        found = _names.known(state_dict, kept) if self.flatten_state_dict else _names.flat(state_dict)
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        self.state_dict = {name: value for name, (_, value) in found.items()}
        self.mappings = {name: path for name, (path, _) in found.items()}

    def create_local_plan(self):
        kept = self.metadata.state_dict_metadata
        missing = sorted(self.state_dict.keys() - kept.keys())
        if missing and not self.allow_partial_load:
            raise RuntimeError(
                f"Missing key in checkpoint state_dict: {', '.join(missing[:20])}; it has {', '.join(sorted(kept)[:20])}. "
                "allow_partial_load=True keeps what is there"
            )
        items = []
        for name, value in self.state_dict.items():
            if name not in missing:
                items += _wanted(name, value, kept[name])
        return LoadPlan(items)

    def create_global_plan(self, global_plan):
        return global_plan

    def finish_plan(self, central_plan):
        return central_plan

    def load_bytes(self, read_item, value):
        name = read_item.dest_index.fqn
        self.state_dict[name] = adjoin.load(value, map_location="cpu", weights_only=True)
        if name in self.mappings:
            _names.put(self.original_state_dict, self.mappings[name], self.state_dict[name])

    def resolve_tensor(self, read_item):
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def lookup_tensor(self, index):
        """The part of the state's tensor that begins there."""
        wanted = tuple(index.offset or ())
        return next(part for offsets, part in _boxes.own(self.state_dict[index.fqn])[1] if tuple(offsets) == wanted)

    def transform_tensor(self, read_item, tensor):
        """The box of it that an item fills."""
        return _boxes.cut(tensor, list(zip(read_item.dest_offsets, read_item.lengths, strict=True)))

    def commit_tensor(self, read_item, tensor):
        pass


def _wanted(name, value, entry):
    """The items that fill a value."""
    if isinstance(entry, BytesStorageMetadata):
        none = adjoin.Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, MetadataIndex(name), none, MetadataIndex(name), none, none)]
    if not isinstance(value, adjoin.Tensor):
        raise ValueError(
            f"load: the checkpoint has a tensor for {name}, the state {type(value).__name__}; put an empty tensor there"
        )
    size, boxes = _boxes.own(value)
    if tuple(size) != tuple(entry.size):
        raise ValueError(f"Size mismatch between saved {tuple(entry.size)} and current: {tuple(size)} for {name}")
    items = []
    for chunk in entry.chunks:
        for offsets, part in boxes:
            found = _boxes.meeting(chunk.offsets, chunk.sizes, offsets, part.shape)
            if found is not None:
                sources, targets, lengths = (adjoin.Size(n) for n in zip(*found)) if found else [adjoin.Size(())] * 3
                items.append(ReadItem(LoadItemType.TENSOR, MetadataIndex(name, adjoin.Size(offsets)), targets,
                                      MetadataIndex(name, chunk.offsets), sources, lengths))  # fmt: skip
    return items


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Makes the state of what the checkpoint has; ``keys`` choose some by the beginnings of their names."""

    def __init__(self, keys=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.keys = keys

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        self.make(state_dict, metadata)
        super().set_up_planner(state_dict, metadata, is_coordinator)

    def make(self, state, found):
        """Places for all that is wanted."""
        for name, entry in found.state_dict_metadata.items():
            if self.wants(name):
                path = (found.planner_data or {}).get(name, (name,))
                tensor = not isinstance(entry, BytesStorageMetadata)
                _names.put(
                    state, path, adjoin.empty(tuple(entry.size), dtype=entry.properties.dtype) if tensor else None
                )

    def wants(self, name):
        """Whether a name is, or lies under, one of the keys."""
        return self.keys is None or any(name == k or name.startswith(f"{k}.") for k in self.keys)


def is_plain(planner):
    """Whether nobody has written methods of his own: then less is told between the processes."""
    return type(planner) in (DefaultSavePlanner, DefaultLoadPlanner, _EmptyStateDictLoadPlanner)


def known_planner(planner, kind):
    """The planner; the default one where there is none."""
    planner = kind() if planner is None else planner
    if not isinstance(planner, kind.__mro__[1]):
        raise TypeError(
            f"checkpoint: the planner is a {type(planner).__name__}; wanted is a {kind.__mro__[1].__name__}"
        )
    return planner

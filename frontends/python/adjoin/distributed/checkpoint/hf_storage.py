"""adjoin.distributed.checkpoint.hf_storage: checkpoints as safetensors files, by the names and with the index that model hubs have.

A file's metadata says where the parts in it begin (``DCP_SHARDING_INFO``), as PyTorch's files do.
"""

import dataclasses
import json
import pathlib

import adjoin

from ... import safetensors
from . import _boxes
from .filesystem import _done, _Folder
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
    _StorageInfo,
)
from .planner import WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX, _PARTS = "model.safetensors.index.json", "DCP_SHARDING_INFO"


class HuggingFaceStorageWriter(_Folder, StorageWriter):
    """Writes tensors into safetensors files. ``fqn_to_index_mapping`` says which of several files, from 1, a tensor goes to.

    One process writes whole tensors; with ``save_distributed`` each its own parts, and with ``enable_consolidation`` these lie in the
    folder ``sharded``, and the coordinator makes whole files of them in the end.
    """

    def __init__(self, path, fqn_to_index_mapping=None, thread_count=1, save_distributed=False, enable_consolidation=False,
                 thread_count_consolidation=1):  # fmt: skip
        self.path, self.files = pathlib.Path(path), fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation

    def _folder(self):
        return self.path / "sharded" if self.save_distributed and self.enable_consolidation else self.path

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Makes the folder."""
        self._folder().mkdir(parents=True, exist_ok=True)

    def prepare_global_plan(self, plans):
        """Each process learns its number."""
        if not self.save_distributed and sum(bool(plan.items) for plan in plans) > 1:
            raise ValueError(
                "HuggingFaceStorageWriter: several processes have something to write; pass save_distributed=True, or save whole tensors "
                "in one process with no_dist=True"
            )
        return [dataclasses.replace(plan, storage_data=i) for i, plan in enumerate(plans, 1)]

    def _name(self, fqn, process=None):
        many = max(self.files.values()) if self.files else 1
        whole = f"model-{self.files[fqn] if self.files else 1:05d}-of-{many:05d}.safetensors"
        return whole if process is None else f"shard-{process:05d}-{whole}"

    def write_data(self, plan, planner):
        """Writes the items of a plan into the files of this process."""
        by_file, found = {}, []
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                raise ValueError(
                    f"HuggingFaceStorageWriter: {item.index.fqn} is no tensor, and safetensors files have no others"
                )
            by_file.setdefault(
                self._name(item.index.fqn, plan.storage_data if self.save_distributed else None), []
            ).append(item)
        for name, items in by_file.items():
            tensors, begins = {}, {}
            for item in items:
                if item.index.fqn in tensors:
                    raise ValueError(
                        f"HuggingFaceStorageWriter: a process has two parts of {item.index.fqn}; a file has place for one"
                    )
                tensors[item.index.fqn] = planner.resolve_data(item).detach().cpu().contiguous()
                begins[item.index.fqn] = {"saved_offsets": list(item.index.offset or ())}
                size = tensors[item.index.fqn].numel() * tensors[item.index.fqn].element_size()
                found.append(WriteResult(item.index, size, _StorageInfo(name, 0, size)))
            _write(tensors, self._folder() / name, {_PARTS: json.dumps(begins), "DCP_VERSION": "1.0", "format": "pt"})
        return _done(found)

    def finish(self, metadata, results):
        """The index, of whole files."""
        if not self.save_distributed:
            self._index(
                [(r.index.fqn, r.storage_data.relative_path, r.size_in_bytes) for part in results for r in part]
            )
        elif self.enable_consolidation:
            from .state_dict_loader import whole

            state, by_file = whole(HuggingFaceStorageReader(self._folder())), {}
            for fqn, tensor in state.items():
                by_file.setdefault(self._name(fqn), {})[fqn] = tensor
            for name, tensors in by_file.items():
                _write(tensors, self.path / name, {"format": "pt"})
            self._index([(f, self._name(f), t.numel() * t.element_size()) for f, t in state.items()])

    def _index(self, rows):
        told = {
            "metadata": {"total_size": sum(size for *_, size in rows)},
            "weight_map": {fqn: name for fqn, name, _ in rows},
        }
        (self.path / _INDEX).write_text(json.dumps(told, indent=2))


def _write(tensors, path, metadata):
    beside = path.with_name(path.name + ".tmp")
    safetensors.save_file(tensors, beside, metadata)
    beside.replace(path)


class HuggingFaceStorageReader(_Folder, StorageReader):
    """Reads the safetensors files of a folder, whole tensors or parts."""

    def __init__(self, path, thread_count=1):
        self.path, self._tensors = pathlib.Path(path), {}

    def read_metadata(self, *args, **kwargs):
        """What the files hold."""
        entries, places = {}, {}
        for file in sorted(self.path.glob("*.safetensors")):
            begins = json.loads(safetensors.load_metadata(file).get(_PARTS, "{}"))
            for fqn, tensor in self._file(file.name).items():
                offset = adjoin.Size(begins.get(fqn, {}).get("saved_offsets", [0] * tensor.dim()))
                entry = entries.setdefault(fqn, TensorStorageMetadata(TensorProperties(tensor.dtype), tensor.shape, []))
                entry.chunks.append(ChunkStorageMetadata(offset, tensor.shape))
                ends = [o + n for o, n in zip(offset, tensor.shape, strict=True)]
                entry.size = adjoin.Size(max(a, b) for a, b in zip(entry.size, ends, strict=True))
                places[MetadataIndex(fqn, offset)] = file.name
        if not entries:
            raise FileNotFoundError(f"HuggingFaceStorageReader: {self.path} has no safetensors files")
        for fqn, entry in entries.items():
            wrong = _boxes.tiles(entry.size, [(c.offsets, c.sizes) for c in entry.chunks])
            if wrong:
                raise ValueError(
                    f"HuggingFaceStorageReader: the parts of {fqn!r} in {self.path} do not make it: {wrong}"
                )
        return Metadata(entries, {fqn: (fqn,) for fqn in entries}, places, StorageMeta(str(self.path)))

    def _file(self, name):
        if name not in self._tensors:
            self._tensors[name] = safetensors.load_file(self.path / name)
        return self._tensors[name]

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Takes where the parts lie."""
        self._places = metadata.storage_data

    def prepare_global_plan(self, plans):
        """The plans as they are."""
        return plans

    def read_data(self, plan, planner):
        """Reads the items of a plan."""
        for item in plan.items:
            stored = self._file(self._places[item.storage_index])[item.storage_index.fqn]
            target = planner.resolve_tensor(item)
            _boxes.copied(target, _boxes.cut(stored, list(zip(item.storage_offsets, item.lengths, strict=True))))
            planner.commit_tensor(item, target)
        self._tensors.clear()
        return _done()

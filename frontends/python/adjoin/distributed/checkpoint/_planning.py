"""adjoin.distributed.checkpoint._planning: what a process has of a state, and who writes what."""

import adjoin

from . import _boxes
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)


def items(flat):
    """{index: (tensor or object)} of what this process has, and what the others need to know of it."""
    values, told = {}, []
    for name, (path, value) in flat.items():
        if not isinstance(value, adjoin.Tensor):
            values[MetadataIndex(name)] = value
            told.append((name, path, None, None, [None]))
            continue
        size, parts = _boxes.own(value)
        properties = TensorProperties.create_from_tensor(value)
        for offsets, part in parts:
            values[MetadataIndex(name, adjoin.Size(offsets))] = part
        told.append((name, path, size, properties, [(o, tuple(p.shape)) for o, p in parts]))
    return values, told


def planned(everybody, to_lowest):
    """({rank: indices it writes}, the metadata): of what several have, that process writes which has the least so far."""
    entries, paths, holders, load = {}, {}, {}, [0] * len(everybody)
    for rank, told in enumerate(everybody):
        for name, path, size, properties, boxes in told:
            known = entries.setdefault(
                name,
                BytesStorageMetadata() if size is None else TensorStorageMetadata(properties, adjoin.Size(size), []),
            )
            paths[name] = path
            if (
                (size is None) != isinstance(known, BytesStorageMetadata)
                or size is not None
                and tuple(known.size) != tuple(size)
            ):
                raise ValueError(
                    f"save: {name!r} is not the same on all ranks: rank {rank} has {'an object' if size is None else tuple(size)}"
                )
            for box in boxes:
                holders.setdefault((name, box), []).append(rank)
    tasks = [[] for _ in everybody]
    for (name, box), ranks in holders.items():
        cost = 1 if box is None else _bytes(entries[name], box)
        rank = ranks[0] if to_lowest or box is None else min(ranks, key=load.__getitem__)
        load[rank] += cost
        tasks[rank].append(MetadataIndex(name) if box is None else MetadataIndex(name, adjoin.Size(box[0])))
        if box is not None:
            entries[name].chunks.append(ChunkStorageMetadata(adjoin.Size(box[0]), adjoin.Size(box[1])))
    for name, entry in entries.items():
        wrong = isinstance(entry, TensorStorageMetadata) and _boxes.tiles(
            entry.size, [(c.offsets, c.sizes) for c in entry.chunks]
        )
        if wrong:
            raise ValueError(f"save: the parts of {name!r}, which is {tuple(entry.size)}, do not make it: {wrong}")
    return tasks, Metadata(entries, paths, version="1.0.0")


def _bytes(entry, box):
    count = entry.properties.dtype.itemsize
    for n in box[1]:
        count *= n
    return count

"""adjoin.distributed.tensor.table: how each row is computed in parts, tried with its own samples on several processes.

``adjoin launch --nproc-per-node 2 --module adjoin.distributed.tensor.table`` prints it.
"""

import itertools

import adjoin

from ... import _C
from ... import distributed as dist
from ...testing._samples import NoSample, Op, mapped, tensors_in
from . import _dispatch, _rules
from ._api import DTensor, distribute_tensor
from ._cut import row
from .debug import CommDebugMode
from .placement_types import Replicate, Shard

_MOVES = ("all_gather", "all_to_all", "reduce_scatter", "all_reduce")


def rows(packs=True):
    """Names of all rows of ops that take a tensor, with those of packs; forms that write in place have their row's rule."""
    for name in sorted(_C.op_names(True)):
        info = _C.op_info(name)[0]
        known = name.endswith("_") and _C.op_info(name[:-1])
        takes = info["schema"].rpartition("->")[0]
        ours = not info["provider"] or packs and info["provider"].startswith("ops_") and not name.startswith("_::")
        if ours and not known and ("Tensor" in takes or "Operand" in takes):
            yield name


def rule_of(name):
    """Where the rule comes from."""
    found = row(name)
    if "ordered" in found.tags:
        return "by the place in the whole"
    if name in _rules.WHOLE_CALLS or name in _rules._NAMED:
        return "of its own"
    if found.kind in _rules._KINDS:
        return f"of the kind {found.kind}"
    return "of the ops in its body" if found.composite and found.gives_tensors else "none"


def _same(a, b):
    if isinstance(a, DTensor):
        a = a.full_tensor()
    if isinstance(b, adjoin.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        wide = adjoin.complex128 if b.dtype.is_complex else adjoin.float64
        a, b = a.to(wide), b.to(wide)
        return bool((((a - b).abs() <= 1e-9 * (1 + b.abs())) | (a == b) | ((a != a) & (b != b))).all())
    if isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b or a != a and b != b


def _placed(results):
    return [p for t in tensors_in([results]) if isinstance(t, DTensor) for p in t.placements]


def tried(name, mesh, most=3):
    """(placements of inputs and results of a call in parts, or None; what went wrong, or None)."""
    cut, moved, wrong = None, None, None
    try:
        adjoin.manual_seed(1)  # the same in all processes
        samples = list(itertools.islice(Op(name).samples(), most))
    except (NoSample, ValueError):
        return None, None, None
    for args, kwargs in samples:
        try:
            adjoin.manual_seed(1)
            whole = _C.find_op(name)(
                *mapped(lambda t: t.clone(), args, kwargs)[0], **mapped(lambda t: t.clone(), args, kwargs)[1]
            )
        except Exception:
            continue
        tensors = tensors_in(args, kwargs)
        for k, t in enumerate(tensors):
            for d in range(t.dim()):
                found, moves, bad = _one(name, mesh, args, kwargs, k, d, whole)
                wrong = wrong or bad
                if found and not moves:
                    cut = cut or found
                moved = moved or moves
    return cut, moved, wrong


def _one(name, mesh, args, kwargs, k, d, whole):
    """A call with tensor k cut along dimension d, the others whole."""
    number = itertools.count()

    def placed(t):
        return distribute_tensor(t.clone(), mesh, [Shard(d) if next(number) == k else Replicate()], src_data_rank=None)

    parts, words = mapped(placed, args, kwargs)
    before = dict(_dispatch.gathered)
    try:
        adjoin.manual_seed(1)
        with CommDebugMode() as comm:
            results = _C.find_op(name)(*parts, **words)
        placements = _placed(results)
    except Exception as error:
        return None, None, f"raises {type(error).__name__}: {str(error)[:150]}"
    counts = comm.get_comm_counts()
    if "empty" not in name and not _same(results, whole):
        return None, None, f"is wrong with tensor {k} cut along {d}"
    in_parts = any(not p.is_replicate() for p in placements)
    if counts or before != _dispatch.gathered or not in_parts:
        return None, ", ".join(f"{n} {c}" for c, n in counts.items()) or "whole", None
    return f"S({d}) of tensor {k} -> {' '.join(map(str, placements))}", None, None


def table(mesh, most=3, packs=True):
    """{row: (rule, what is cut, what was moved, what went wrong)}; every process calls it."""
    return {name: (rule_of(name), *tried(name, mesh, most)) for name in rows(packs)}


def main():
    """Prints the table, and how many rows are computed in parts without a gather."""
    dist.init_process_group()
    found = table(dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    if dist.get_rank() == 0:
        for name, (rule, cut, moved, wrong) in found.items():
            print(f"{name:32} {rule:32} {cut or '-':40} {wrong or moved or ''}")
        print(
            f"{sum(bool(cut) for _, cut, _, _ in found.values())} of {len(found)} rows are computed in parts without a gather"
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

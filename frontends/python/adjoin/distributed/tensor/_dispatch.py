"""adjoin.distributed.tensor._dispatch: an op of DTensors: the parts are brought where its rule wants them, and it runs on them."""

import adjoin

from ... import _C
from . import _loss, _rules
from . import _random as _random_parts
from ._cut import Call, Choice, row
from ._move import moved
from ._utils import local_shape
from .placement_types import Replicate, Shard

_Tensor = _C.Tensor
gathered = {}  # op -> how often its tensors were brought together for want of a rule
_without_body = set()  # ops whose bodies write to tensors that they have made themselves


def _flat(values):
    for value in values:
        if isinstance(value, _Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _flat(value)


def _made_here():
    """Whether a body or a derivative may have made a tensor: these are the same in all processes."""
    return _C.dispatch_bodies() or _C.backward_passes()


def _placed(tensors, kind, name):
    """(mesh, placements of each tensor): a tensor that is no DTensor must be one number, which all have."""
    mesh = next((t.device_mesh for t in tensors if hasattr(t, "_placements")), None)
    found = []
    for t in tensors:
        if isinstance(t, kind):
            if not hasattr(t, "_placements"):
                raise RuntimeError(f"{name}: a body has made a DTensor without parts")
            if t.device_mesh is not mesh and t.device_mesh != mesh:
                raise RuntimeError(
                    f"{name}: DTensors of two meshes, {mesh} and {t.device_mesh}; bring one to the other's processes first"
                )
            found.append(t.placements)
        elif t.numel() == 1 or kind._implicit() or _made_here() or _loss.of_parts() and name in _loss.NAMES:
            found.append((Replicate(),) * mesh.ndim)
        else:
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
                f"distributed operators: distribute_tensor(t, mesh, placements), or `with implicit_replication():` if all processes "
                f"have the same; the tensor is of shape {tuple(t.shape)}"
            )
    return mesh, found


def _local(t, kind):
    return t._local_tensor if isinstance(t, kind) else t


def _replaced(args, locals_):
    """The arguments with other tensors in their order."""
    following = iter(locals_)

    def of(value):
        if isinstance(value, _Tensor):
            return next(following)
        if isinstance(value, (list, tuple)):
            return type(value)(map(of, value))
        return value

    return [of(a) for a in args]


def run(kind, name, in_place, args):
    """Serves a call of an op with DTensors; ``kind`` is their class."""
    if name in _rules.WHOLE_CALLS:
        return _rules.WHOLE_CALLS[name](kind, name, in_place, args)
    call = Call(name, args)
    if in_place is None:
        _without_body.add(name)
    in_place = in_place or 0 in call.row.writes and isinstance(args[0], _Tensor)
    target = args[0] if in_place else None
    if target is not None and not isinstance(target, kind) and _C.backward_passes():
        return _into_plain(kind, call)
    if target is not None and not isinstance(target, kind):
        raise RuntimeError(
            f"{name}: a plain tensor cannot be written by DTensors; make it by distribute_tensor(t, mesh, placements)"
        )
    if target is not None and getattr(target, "_is_copy", False):
        raise RuntimeError(
            f"{name}: this view of a DTensor along a dimension that is cut is a copy, and what is written to it would be lost; write to "
            "the tensor itself, to its to_local(), or clone() the view first"
        )
    mesh, placements = _placed(call.tensors, kind, name)
    if "ordered" in call.row.tags or in_place and call.row.random:
        return _random(kind, call, mesh, target)
    cut = _rules.cut(call)
    if cut is None:
        if _has_body(call, in_place):
            return NotImplemented  # its body is run, and the ops in it come here
        gathered[name] = gathered.get(name, 0) + 1
        cut = _rules.whole(call)
    choice = Choice(cut, call.tensors, placements, [mesh.size(m) for m in range(mesh.ndim)], target.placements if in_place else None)  # fmt: skip
    locals_ = [moved(_local(t, kind), t.shape, now, then, mesh) for t, now, then in zip(call.tensors, placements, choice.wanted, strict=True)]  # fmt: skip
    if in_place and tuple(choice.given[0]) == target.placements and choice.wanted[0] == list(target.placements):
        _called(cut, call, choice, mesh, locals_, True)
        return target
    results = _wrapped(_called(cut, call, choice, mesh, locals_, False), cut, choice, kind, mesh)
    if not in_place:
        if call.row.kind == "view":
            _mark(results, call.first(), choice.wanted[0], placements[0])
        _written_back(call, choice, placements, locals_, kind, mesh)
        return results
    made = moved(results._local_tensor, results.shape, results.placements, target.placements, mesh)
    target._local_tensor.copy_(made)
    return target


def _into_plain(kind, call):
    """A formula writes zeros that it has made, whole in each process: so are they afterwards."""
    mesh, placements = _placed(call.tensors, kind, call.name)
    whole = (Replicate(),) * mesh.ndim
    locals_ = [moved(_local(t, kind), t.shape, p, whole, mesh) for t, p in zip(call.tensors, placements, strict=True)]
    gathered[call.name] = gathered.get(call.name, 0) + 1
    return call.row(_replaced(call.args, locals_), True)


def _mark(results, base, wanted, placed):
    """Views of what had to be moved are no views."""
    if tuple(wanted) != placed or getattr(base, "_is_copy", False):
        for t in _flat((results,)):
            t._is_copy = True


def _has_body(call, in_place):
    """Whether the ops of a body can do it: not what writes, or gives numbers, or draws a random number for each element."""
    row_ = call.row
    if call.name in _without_body or not row_.composite or not row_.gives_tensors or in_place or row_.writes:
        return False
    return not row_.random or row_.name == "nn::dropout"


def _written_back(call, choice, placements, locals_, kind, mesh):
    """What an op has written goes to the tensors that it was meant for, if it was given copies."""
    for at in call.row.writes:
        written = call.args[at] if at < len(call.args) else None
        for t in _flat((written,)):
            k = next(i for i, given in enumerate(call.tensors) if given is t)
            if tuple(choice.wanted[k]) != placements[k] and isinstance(t, kind):
                t._local_tensor.copy_(moved(locals_[k], t.shape, choice.wanted[k], placements[k], mesh))


def _called(cut, call, choice, mesh, locals_, in_place):
    args, name = _replaced(call.args, locals_), call.name
    if cut.compute is not None:
        return cut.compute(call, choice, mesh, args)
    if cut.call is not None:

        def local(shape, letters):
            placed = [Shard(letters.index(c)) if c is not None and c in letters else Replicate() for c in choice.cuts]
            return local_shape(shape, mesh, placed)

        name, args = cut.call(args, local)
    return row(name)(args, in_place)


def _wrapped(results, cut, choice, kind, mesh):
    def of(value, k):
        if isinstance(value, _Tensor):
            return kind._made(value, mesh, tuple(choice.given[k]), choice.shape(k, value.shape))
        if isinstance(value, (list, tuple)):
            return type(value)(of(v, k) for v in value)
        return value

    if isinstance(results, _Tensor) or len(cut.outs) == 1 and isinstance(results, (list, tuple)):
        return of(results, 0)
    if isinstance(results, (list, tuple)):
        return tuple(of(v, k) for k, v in enumerate(results))
    return results


def _random(kind, call, mesh, target):
    """Random numbers depend on the place in the whole tensor: each process makes those of its part, or all of them and keeps its part."""
    given = call.first()
    if _random_parts.serves(call.name):
        *words, seed, offset = call.args[1:]
        placements = tuple(Replicate() if p.is_partial() else p for p in given.placements)
        own = moved(given._local_tensor, given.shape, given.placements, placements, mesh)
        made = _random_parts.part(call.name, tuple(words), seed, offset, tuple(given.shape), own, mesh, placements)
        if target is None:
            return kind._made(made, mesh, placements, tuple(given.shape))
        target._local_tensor.copy_(moved(made, given.shape, placements, target.placements, mesh))
        return target
    ones = adjoin.ones(tuple(given.shape), dtype=given.dtype)
    whole = (Replicate(),) * mesh.ndim
    args = [
        ones,
        *(
            moved(a._local_tensor, a.shape, a.placements, whole, mesh) if isinstance(a, kind) else a
            for a in call.args[1:]
        ),
    ]
    made = call.row(args, target is not None)
    if target is not None:
        target._local_tensor.copy_(moved(made, given.shape, whole, target.placements, mesh))
        return target
    placements = tuple(Replicate() if p.is_partial() else p for p in given.placements)
    own = moved(given._local_tensor, given.shape, given.placements, placements, mesh)
    return kind._made(own * moved(made, given.shape, whole, placements, mesh), mesh, placements, tuple(given.shape))

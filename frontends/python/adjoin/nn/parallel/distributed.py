"""adjoin.nn.parallel.distributed: DistributedDataParallel: each process has the module whole and a part of the batch.

Gradients come together in buckets while the backward pass goes on. A bucket is one flat tensor; ``.grad`` of a parameter is a
view of it. Buckets are reduced strictly in their order, so that all processes start the same collectives.
"""

import contextlib
import typing

import adjoin

from ... import _C
from ... import distributed as dist
from ...distributed._objects import alike
from ...futures import Future
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ..modules.module import Module
from ._parts import Parts, in_parts

_MEGABYTE = 1 << 20
_FIRST_BUCKET = _MEGABYTE  # the backward pass ends with little to wait for
_TOGETHER = _MEGABYTE  # smaller tensors go together in one message


class GradBucket:
    """Gradients of several parameters, one behind the other; what a communication hook gets."""

    def __init__(self, place, params, more=0):
        self._place, self._params, self._is_last, self._work = place, params, False, None
        first, count = params[0], sum(p.numel() for p in params)
        self._all = adjoin.zeros(count + more, dtype=first.dtype, device=first.device)  # what goes over the wire
        self._flat = self._all[:count] if more else self._all
        self._views, begin = [], 0
        for p in params:
            self._views.append(self._flat[begin : begin + p.numel()].reshape(p.shape))
            begin += p.numel()
        self._take_gradients()

    def _take_gradients(self):
        """Gradients that are there lie in the bucket from now on; what they took goes back: else there would be two of each."""
        freed = 0
        for p, view in zip(self._params, self._views, strict=True):
            held = p.grad
            if held is None or held.requires_grad or held.layout is not adjoin.strided:
                continue
            if (held.dtype, held.device) != (view.dtype, view.device):
                continue
            view.copy_(held)
            p.grad = view
            freed += view.numel() * view.element_size()
        if freed > _MEGABYTE:
            _C.memory_release(str(self._all.device))

    def buffer(self):
        """The flat tensor."""
        return self._flat

    def set_buffer(self, tensor):
        """Other contents for it."""
        self._flat.copy_(tensor.reshape(-1))

    def gradients(self):
        """A view for each parameter."""
        return list(self._views)

    def parameters(self):
        """The parameters, in the order of their gradients."""
        return list(self._params)

    def index(self):
        """Which one it is, from 0."""
        return self._place

    def is_last(self):
        """Whether no other one comes."""
        return self._is_last


def _buckets(params, cap, flags):
    """The last parameters first: their gradients come first. A bucket has one dtype and device. The last one carries so many flags."""
    made, open_ones = [], {}
    for p in reversed(params):
        kind = p.dtype, p.device
        held, size, limit = open_ones.get(kind, ([], 0, min(_FIRST_BUCKET, cap) if not made else cap))
        held.append(p)
        size += p.numel() * p.element_size()
        if size >= limit:
            made.append(held)
            open_ones.pop(kind, None)
        else:
            open_ones[kind] = held, size, limit
    made += [held for held, _, _ in open_ones.values()]
    buckets = [GradBucket(i, held, flags if i == len(made) - 1 else 0) for i, held in enumerate(made)]
    buckets[-1]._is_last = True
    return buckets


class _Reducer:
    """The reducer of abi/distributed.h, which takes gradients as the tape finishes them; here is what is done once a pass."""

    def __init__(self, params, names, group, cap, find_unused):
        self.group, self.find_unused = group, find_unused
        self.buckets = _buckets(params, cap, len(params) if find_unused else 0)
        self.params = [p for b in self.buckets for p in b._params]
        self.views = [v for b in self.buckets for v in b._views]
        self.names = [names[id(p)] for p in self.params]
        self.flags = self.buckets[-1]._all[self.buckets[-1]._flat.numel() :]  # how many processes use each parameter
        self.hook = self.state = self.mine = None
        self._native = _C.dist_reducer_new(
            self, group._native, tuple(self.params), tuple(self.names), tuple(self.views), tuple(b._all for b in self.buckets),
            tuple(b._place for b in self.buckets for _ in b._params), 1.0 / group.size(),
        )  # fmt: skip

    def arm(self, outputs):
        """Before a backward pass of these outputs, whose gradients shall be reduced."""
        roots = tuple(_tensors_of(outputs)) if self.find_unused else None
        self.mine = _C.dist_reducer_arm(self._native, len(self.params), roots)
        if self.mine is None:
            return
        with adjoin.no_grad():
            self.flags.copy_(adjoin.tensor(list(self.mine), dtype=self.flags.dtype))
        if not any(self.mine):
            _C.dist_reducer_go(self._native)

    def reduce_flags(self):
        """Starts to find out who is used anywhere, where a hook does what else carries the flags."""
        return dist.all_reduce(self.flags, group=self.group, async_op=True)

    def unfinished(self):
        """The names of parameters without a gradient, where a pass has begun and not reduced everything; else None."""
        missing = _C.dist_reducer_missing(self._native, len(self.params))
        if missing is None:
            return None
        return [name for name, lacks in zip(self.names, missing, strict=True) if lacks]

    def use_hook(self, state, hook):
        """A hook in place of the mean."""
        self.state, self.hook = state, hook
        _C.dist_reducer_hook(self._native, True)

    def reduce(self, b):
        """Starts to reduce a bucket that the native part does not."""
        if self.hook is not None:
            return self.hook(self.state, b)
        return dist.all_reduce(b._all, group=self.group, async_op=True)

    def _full(self, number):
        if number >= 0:
            self.buckets[number]._work = self.reduce(self.buckets[number])
        else:
            self._finish()

    def _finish(self):
        asked = self.reduce_flags() if self.mine is not None and self.hook is not None else None
        try:
            _C.dist_reducer_wait(self._native)
        except RuntimeError as error:
            raise dist.DistBackendError(str(error)) from None
        for b in self.buckets:
            work, b._work = b._work, None
            if work is None:
                continue
            result = work.wait()
            if self.hook is not None:
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not None and result is not b._flat:
                    b.set_buffer(result)
        if asked is not None:
            asked.wait()
        if self.mine is None or all(self.mine):
            return
        for p, view, used, here in zip(self.params, self.views, self.flags.tolist(), self.mine, strict=True):
            if used and not here:  # others have used it
                p.grad = view


def _tensors_of(value):
    if isinstance(value, adjoin.Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors_of(v)
    elif isinstance(value, (list, tuple, set)):
        for v in value:
            yield from _tensors_of(v)
    elif hasattr(value, "__dataclass_fields__"):
        yield from _tensors_of(vars(value))


def _broadcast(tensors, group, root=0):
    """Those of one of the group's processes to all: few messages for many tensors, and no copy of large ones."""
    by_kind = {}
    with adjoin.no_grad():
        for t in tensors:
            t = (t.to_local() if in_parts(t) else t).detach()
            size = t.numel() * t.element_size()
            if size >= _TOGETHER and t.is_contiguous():
                dist.broadcast(t, group=group, group_src=root)
                continue
            same, held = by_kind.pop((t.dtype, t.device), ([], 0))
            if same and held + size > _TOGETHER:
                _broadcast_together(same, group, root)
                same, held = [], 0
            by_kind[t.dtype, t.device] = [*same, t], held + size
        for same, _ in by_kind.values():
            _broadcast_together(same, group, root)


def _broadcast_together(tensors, group, root):
    flat = adjoin.cat([t.reshape(-1) for t in tensors])
    dist.broadcast(flat, group=group, group_src=root)
    begin = 0
    for t in tensors:
        t.copy_(flat[begin : begin + t.numel()].reshape(t.shape))
        begin += t.numel()


class DistributedDataParallel(Module, Joinable):
    """Calls the module; backward passes average the gradients of all processes, so that each makes the same step.

    Parameters and buffers begin as those of rank 0. The mean over equal parts of a batch is the gradient of the whole one.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
                 process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
                 gradient_as_bucket_view=True, static_graph=False, delay_all_reduce_named_params=None,
                 param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None,
                 skip_all_reduce_unused_params=False):  # fmt: skip
        super().__init__()
        for name, given in (("mixed_precision", mixed_precision), ("delay_all_reduce_named_params", delay_all_reduce_named_params)):  # fmt: skip
            if given is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not served; leave it out")
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError(
                    "DistributedDataParallel: both process_group and device_mesh are given; pass one of them"
                )
            if device_mesh.ndim != 1:
                raise RuntimeError(
                    f"DistributedDataParallel: the mesh has {device_mesh.ndim} dimensions; pass one of them: mesh[NAME]"
                )
            process_group = device_mesh.get_group()
        self.device_mesh = device_mesh
        self.process_group = dist._group.of(process_group)
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: device_ids are {list(device_ids)}; a process serves one device: start one for each"
            )
        self.module, self.dim, self.device_ids = module, dim, list(device_ids) if device_ids else None
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.device, self.static_graph = named[0][1].device, static_graph
        self.require_backward_grad_sync = True
        if init_sync:
            self._agree(named)
            _broadcast([*module.parameters(), *module.buffers()], self.process_group)
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MEGABYTE)
        cut = [(n, p) for n, p in named if in_parts(p)]
        if cut and find_unused_parameters:
            raise NotImplementedError(
                "DistributedDataParallel: find_unused_parameters=True is not served for DTensors; leave it out, or use fully_shard"
            )
        params, names = [p for _, p in named if not in_parts(p)], {id(p): n for n, p in named}
        reducer = _Reducer(params, names, self.process_group, cap, find_unused_parameters) if params else None
        object.__setattr__(self, "reducer", reducer)
        object.__setattr__(self, "_parts", Parts(cut, self.process_group) if cut else None)

    def _agree(self, named):
        try:
            from _blake2 import blake2b  # hashlib would load a library of 4 MB
        except ImportError:
            from hashlib import blake2b

        mine = [(n, tuple(p.shape), str(p.dtype)) for n, p in named]
        digest = int.from_bytes(blake2b(repr(mine).encode(), digest_size=7).digest(), "little")
        if alike(digest, self.process_group):
            return
        all_of_them = [None] * self.process_group.size()
        dist.all_gather_object(all_of_them, mine, self.process_group)
        for rank, theirs in enumerate(all_of_them):
            for a, b in zip(all_of_them[0], theirs, strict=False):
                if a != b:
                    raise RuntimeError(
                        f"DistributedDataParallel: the modules differ: rank 0 has {a}, rank {rank} has {b}"
                    )
            if len(theirs) != len(all_of_them[0]):
                raise RuntimeError(
                    f"DistributedDataParallel: the modules differ: rank 0 has {len(all_of_them[0])} parameters, "
                    f"rank {rank} has {len(theirs)}"
                )

    def forward(self, *inputs, **kwargs):
        """What the module gives."""
        self._before()
        if self.device_ids:
            from ._spread import scatter_kwargs

            moved, named = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
            inputs, kwargs = (moved[0] if moved else ()), (named[0] if named else {})
        outputs = self.module(*inputs, **kwargs)
        self._after(outputs)
        return outputs

    def _syncs(self):
        return self.require_backward_grad_sync and adjoin.is_grad_enabled()

    def _before(self):
        if self._syncs():
            self._refuse_unfinished()
            Join.notify_join_context(self)
        if self.require_backward_grad_sync:
            self._sync_buffers()

    def _after(self, outputs):
        if self._syncs() and any(t.requires_grad for t in _tensors_of(outputs)):
            self._arm(outputs)

    def _arm(self, outputs):
        """The next backward pass of these outputs is reduced."""
        if self.reducer is not None:
            self.reducer.arm(outputs)
        if self._parts is not None:
            self._parts.arm()

    def _refuse_unfinished(self):
        late = self.reducer.unfinished() if self.reducer is not None else None
        late = late or (self._parts.unfinished() if self._parts is not None else None)
        if late:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one: "
                f"{len(late)} parameters got no gradient in the last backward pass: {', '.join(late[:8])}"
                f"{', …' if len(late) > 8 else ''}. The loss must depend on every parameter, or pass "
                "find_unused_parameters=True to DistributedDataParallel"
            )

    def _get_ddp_logging_data(self):
        """What trainers note of it; a graph that is the same each time has nothing to gain here."""
        params = [p for p in self.module.parameters() if p.requires_grad]
        buckets = self.reducer.buckets if self.reducer is not None else []
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "backend_name": str(self.process_group.name()),
            "module_name": type(self.module).__name__,
            "num_parameter_tensors": len(params),
            "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in params),
            "bucket_sizes": ", ".join(str(b.buffer().numel() * b.buffer().element_size()) for b in buckets),
            "find_unused_parameters": self.find_unused_parameters,
            "broadcast_buffers": self.broadcast_buffers,
            "can_set_static_graph": False,
        }

    def _refuse_parts(self, what):
        if self._parts is not None:
            raise NotImplementedError(f"DistributedDataParallel: {what} is not served for DTensors; use fully_shard")

    def _sync_buffers(self):
        if self.broadcast_buffers and self.module.training:
            if buffers := list(self.module.buffers()):
                _broadcast(buffers, self.process_group)

    @contextlib.contextmanager
    def no_sync(self):
        """Inside of it gradients add up in each process alone; the first pass outside of it reduces them."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state, hook):
        """``hook(state, bucket)`` reduces a bucket in place of the mean: it gives a future of the reduced flat tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        _check_hints(hook)
        self._refuse_parts("a communication hook")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook: there is one already; it can be registered once")
        self.reducer.use_hook(state, hook)

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """``with net.join():`` around a loop over batches, of which processes may have different numbers."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, divide_by_initial_world_size=True, **kwargs):
        """What a process without batches does for the others."""
        self._refuse_parts("join")
        if not divide_by_initial_world_size:
            raise NotImplementedError(
                "DistributedDataParallel.join: divide_by_initial_world_size=False is not served; sums are divided by the number "
                "of all processes"
            )
        return _Shadow(self)

    @property
    def join_process_group(self):
        """The processes that train together."""
        return self.process_group

    @property
    def join_device(self):
        """The device of the parameters."""
        return self.device


class _Shadow(JoinHook):
    """Gives zeros to the others' steps; in the end all have what the last ones have."""

    def __init__(self, net):
        self.net = net

    def main_hook(self):
        net, reducer = self.net, self.net.reducer
        net._sync_buffers()
        with adjoin.no_grad():
            for b in reducer.buckets:
                b._all.zero_()
                reducer.reduce(b).wait()
            if reducer.find_unused and reducer.hook is not None:
                reducer.reduce_flags().wait()

    def post_hook(self, is_last_joiner):
        group = self.net.process_group
        chosen = adjoin.tensor([dist.get_rank(group) if is_last_joiner else -1])
        dist.all_reduce(chosen, dist.ReduceOp.MAX, group=group)
        module = self.net.module
        _broadcast([*module.parameters(), *module.buffers()], group, int(chosen))


def _check_hints(hook):
    """A hook whose annotations say that it is another kind of function is refused; one without them is not asked."""
    said = getattr(hook, "__annotations__", {})
    takes, gives = said.get("bucket", GradBucket), said.get("return", Future)
    if not isinstance(takes, str) and takes is not GradBucket:
        raise ValueError(f"Communication hook: bucket annotation should be dist.GradBucket. It is {takes!r}")
    if not isinstance(gives, str) and typing.get_origin(gives) is not Future and gives is not Future:
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future[torch.Tensor] or torch.futures.Future. "
            f"It is {gives!r}"
        )


__all__ = ["DistributedDataParallel", "GradBucket"]

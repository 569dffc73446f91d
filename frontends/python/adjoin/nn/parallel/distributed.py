"""adjoin.nn.parallel.distributed: DistributedDataParallel: each process has the module whole and a part of the batch.

Gradients come together in buckets while the backward pass goes on. A bucket is one flat tensor; ``.grad`` of a parameter is a
view of it. Buckets are reduced strictly in their order, so that all processes start the same collectives.
"""

import contextlib

import adjoin

from ... import distributed as dist
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ..modules.module import Module

_MEGABYTE = 1 << 20
_FIRST_BUCKET = _MEGABYTE  # the backward pass ends with little to wait for


class GradBucket:
    """Gradients of several parameters, one behind the other; what a communication hook gets."""

    def __init__(self, place, params):
        self._place, self._params, self._is_last = place, params, False
        first, count = params[0], sum(p.numel() for p in params)
        self._flat = adjoin.zeros(count, dtype=first.dtype, device=first.device)
        self._views, begin = [], 0
        for p in params:
            self._views.append(self._flat[begin : begin + p.numel()].reshape(p.shape))
            begin += p.numel()
        self.reset()

    def reset(self):
        self._missing, self._work, self._launched = set(range(len(self._params))), None, False

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


def _buckets(params, cap):
    """The last parameters first: their gradients come first. A bucket has one dtype and device."""
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
    buckets = [GradBucket(i, held) for i, held in enumerate(made)]
    buckets[-1]._is_last = True
    return buckets


class _Reducer:
    """Takes gradients as the tape finishes them, reduces full buckets, and waits for all in the last hook of the pass."""

    def __init__(self, params, names, group, cap, find_unused):
        self.group, self.names, self.find_unused = group, names, find_unused
        self.buckets = _buckets(params, cap)
        self.place = {id(p): (b, i) for b in self.buckets for i, p in enumerate(b._params)}
        self.hook = self.state = None
        self.armed = self.begun = False
        self.factor = 1.0 / group.size()
        self._handles = [p.register_post_accumulate_grad_hook(self._arrived) for p in params]

    def arm(self, outputs):
        """Before a backward pass of these outputs, whose gradients shall be reduced."""
        for b in self.buckets:
            b.reset()
        self.armed, self.begun, self.next, self.used = True, False, 0, None
        if not self.find_unused:
            return
        reached = _leaves(outputs)
        self.used = adjoin.zeros(len(self.place), dtype=adjoin.int32)
        number = 0
        for b in self.buckets:
            for i, p in enumerate(b._params):
                if id(p) in reached:
                    self.used[number] = 1
                else:
                    b._views[i].zero_()
                    b._missing.discard(i)
                number += 1
        if not reached:  # there will be no hook
            self._go_on()

    def _unfinished(self):
        late = [self.names[id(b._params[i])] for b in self.buckets for i in sorted(b._missing)]
        return (
            "Expected to have finished reduction in the prior iteration before starting a new one: "
            f"{len(late)} parameters got no gradient in the last backward pass: {', '.join(late[:8])}"
            f"{', …' if len(late) > 8 else ''}. The loss must depend on every parameter, or pass "
            "find_unused_parameters=True to DistributedDataParallel"
        )

    def _arrived(self, p):
        if not self.armed:
            return
        self.begun = True
        b, i = self.place[id(p)]
        if i not in b._missing:
            if self.find_unused and not b._launched:
                return
            raise RuntimeError(
                f"DistributedDataParallel: the gradient of {self.names[id(p)]} came twice, or after its bucket: a parameter that "
                "two backward passes of one forward reach wants no_sync() for all but the last one"
            )
        view = b._views[i]
        with adjoin.no_grad():
            if p.grad is not view:
                view.copy_(p.grad)
                p.grad = view
            if self.hook is None:
                view.mul_(self.factor)
        b._missing.discard(i)
        self._go_on()

    def _go_on(self):
        while self.next < len(self.buckets) and not self.buckets[self.next]._missing:
            b = self.buckets[self.next]
            b._work = self._reduce(b)
            b._launched = True
            self.next += 1
        if self.next == len(self.buckets):
            self._finish()

    def _reduce(self, b):
        if self.hook is not None:
            return self.hook(self.state, b)
        return dist.all_reduce(b._flat, group=self.group, async_op=True)

    def _finish(self):
        self.armed = self.begun = False
        anywhere = None
        if self.used is not None:
            mine, anywhere = self.used, self.used.clone()
            dist.all_reduce(anywhere, dist.ReduceOp.MAX, group=self.group)
            mine, anywhere = mine.tolist(), anywhere.tolist()
        for b in self.buckets:
            result = b._work.wait()
            if self.hook is not None:
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not None and result is not b._flat:
                    b.set_buffer(result)
            b._work = None
        if anywhere is None:
            return
        number = 0
        for b in self.buckets:
            for p, view in zip(b._params, b._views, strict=True):
                if anywhere[number] and not mine[number]:  # others have used it
                    p.grad = view
                number += 1


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


def _leaves(outputs):
    """ids of the leaves that a backward pass of the outputs reaches."""
    reached, seen = set(), set()
    waiting = [t.grad_fn for t in _tensors_of(outputs) if t.grad_fn is not None]
    reached.update(id(t) for t in _tensors_of(outputs) if t.grad_fn is None and t.requires_grad)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            reached.add(id(leaf))
        waiting += [n for n, _ in node.next_functions if n is not None]
    return reached


def _broadcast(tensors, group, root=0):
    """Those of one of the group's processes to all, few messages for many tensors."""
    by_kind = {}
    for t in tensors:
        by_kind.setdefault((t.dtype, t.device), []).append(t.detach())
    with adjoin.no_grad():
        for same in by_kind.values():
            flat = adjoin.cat([t.reshape(-1) for t in same])
            dist.broadcast(flat, group=group, group_src=root)
            begin = 0
            for t in same:
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
        for name, given in (("mixed_precision", mixed_precision), ("device_mesh", device_mesh),
                            ("delay_all_reduce_named_params", delay_all_reduce_named_params)):  # fmt: skip
            if given is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not served; leave it out")
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
        self.device = named[0][1].device
        self.require_backward_grad_sync = True
        if init_sync:
            self._agree(named)
            _broadcast([*module.parameters(), *module.buffers()], self.process_group)
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MEGABYTE)
        params, names = [p for _, p in named], {id(p): n for n, p in named}
        object.__setattr__(self, "reducer", _Reducer(params, names, self.process_group, cap, find_unused_parameters))

    def _agree(self, named):
        mine = [(n, tuple(p.shape), str(p.dtype)) for n, p in named]
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
        syncs = self.require_backward_grad_sync and adjoin.is_grad_enabled()
        if syncs and self.reducer.armed and self.reducer.begun:
            raise RuntimeError(self.reducer._unfinished())
        if syncs:
            Join.notify_join_context(self)
        if self.require_backward_grad_sync:
            self._sync_buffers()
        if self.device_ids:
            from ._spread import scatter_kwargs

            moved, named = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
            inputs, kwargs = (moved[0] if moved else ()), (named[0] if named else {})
        outputs = self.module(*inputs, **kwargs)
        if syncs and any(t.requires_grad for t in _tensors_of(outputs)):
            self.reducer.arm(outputs)
        return outputs

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
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook: there is one already; it can be registered once")
        self.reducer.state, self.reducer.hook = state, hook

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """``with net.join():`` around a loop over batches, of which processes may have different numbers."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, divide_by_initial_world_size=True, **kwargs):
        """What a process without batches does for the others."""
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
                b._flat.zero_()
                reducer._reduce(b).wait()
            if reducer.find_unused:
                dist.all_reduce(
                    adjoin.zeros(len(reducer.place), dtype=adjoin.int32), dist.ReduceOp.MAX, group=reducer.group
                )

    def post_hook(self, is_last_joiner):
        group = self.net.process_group
        chosen = adjoin.tensor([dist.get_rank(group) if is_last_joiner else -1])
        dist.all_reduce(chosen, dist.ReduceOp.MAX, group=group)
        module = self.net.module
        _broadcast([*module.parameters(), *module.buffers()], group, int(chosen))


__all__ = ["DistributedDataParallel", "GradBucket"]

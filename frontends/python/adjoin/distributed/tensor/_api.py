"""adjoin.distributed.tensor._api: DTensor: a tensor of which several processes have parts."""

import contextlib
import threading

import adjoin

from ... import _C
from ...utils import _python_dispatch
from .. import _collectives as collectives
from .._group import get_rank
from .._objects import all_gather_object
from ..device_mesh import DeviceMesh
from . import _dispatch
from ._move import moved
from ._utils import compute_local_shape_and_global_offset, local_shape, normal
from .placement_types import Replicate

_Function = adjoin.autograd.Function
_grad = _C.Tensor.__dict__["grad"]


_replicates = threading.local()  # a thread may be a process


def _check_parts(tensor, mesh):
    """Each process of the mesh hears of parts that make no tensor."""
    told = {get_rank(): (str(tensor.dtype), tensor.requires_grad)}
    for m in range(mesh.ndim):
        lines = [None] * mesh.size(m)
        all_gather_object(lines, told, mesh.get_group(m))
        told = {rank: kind for line in lines for rank, kind in line.items()}
    if len(set(told.values())) > 1:
        raise ValueError("DTensor.from_local: the parts differ: " + "; ".join(
            f"rank {rank} has {dtype}{' that requires a gradient' if grad else ''}" for rank, (dtype, grad) in sorted(told.items())
        ))  # fmt: skip


class DTensor(_C.Tensor):
    """A tensor of which each process of a mesh has a part. Calls with it compute what they would of the whole tensor."""

    @staticmethod
    def _implicit():
        return getattr(_replicates, "here", False)

    @staticmethod
    def __new__(cls, local_tensor=None, spec=None, *, requires_grad=False):
        if spec is None:
            raise TypeError(
                "DTensor: use distribute_tensor(whole, mesh, placements) or DTensor.from_local(part, mesh, placements)"
            )
        return cls._made(local_tensor, spec.mesh, spec.placements, spec.shape, requires_grad)

    @classmethod
    def _made(cls, local, mesh, placements, shape, requires_grad=False):
        made = _python_dispatch._make_wrapper_subclass(
            cls, shape, dtype=local.dtype, device=local.device, requires_grad=requires_grad
        )
        made._local_tensor, made._mesh, made._placements = local, mesh, tuple(placements)
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{func}: calls of DTensors are served by their rows; call {func} itself")

    @classmethod
    def __row_dispatch__(cls, name, in_place, args):
        """Serves a call by the row's name, with all arguments in its order."""
        return _dispatch.run(DTensor, name, in_place, args)

    @property
    def grad(self):
        """The gradient; one that every process has whole may come as a plain tensor."""
        found = _grad.__get__(self)
        if found is None or isinstance(found, DTensor):
            return found
        return DTensor._made(found, self._mesh, (Replicate(),) * self._mesh.ndim, tuple(self.shape))

    @grad.setter
    def grad(self, value):
        _grad.__set__(self, value)

    device_mesh = property(lambda self: self._mesh)
    placements = property(lambda self: self._placements)

    @property
    def _spec(self):
        return Spec(self._mesh, self._placements, self.shape)

    @staticmethod
    def from_local(local_tensor, device_mesh=None, placements=None, *, run_check=False, shape=None, stride=None,
                   grad_placements=None):  # fmt: skip
        """The tensor of which each process has such a part. Without ``shape`` parts along a dimension are of one size. With ``run_check``
        parts of other dtypes are refused, and copies are those of the first process."""
        mesh = device_mesh or _the_mesh("DTensor.from_local")
        placements = normal(placements or (Replicate(),) * mesh.ndim, local_tensor.dim(), mesh, "DTensor.from_local")
        if run_check:
            _check_parts(local_tensor, mesh)
            for m, p in enumerate(placements):
                if p.is_replicate():
                    with adjoin.no_grad():
                        collectives.broadcast(local_tensor.detach(), group=mesh.get_group(m), group_src=0)
        if shape is None:
            sizes = list(local_tensor.shape)
            for m, p in enumerate(placements):
                if p.is_shard():
                    sizes[p.dim] *= mesh.size(m)
            shape = tuple(sizes)
        return _FromLocal.apply(local_tensor, mesh, placements, tuple(shape), grad_placements)

    def to_local(self, *, grad_placements=None):
        """This process's part. ``grad_placements``: how its gradient is to be taken; without, as the part is."""
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self, device_mesh=None, placements=None, *, async_op=False, forward_dtype=None, backward_dtype=None
    ):
        """The same tensor in other parts."""
        mesh = device_mesh or self._mesh
        if mesh is not self._mesh and mesh != self._mesh:
            raise NotImplementedError(
                "redistribute: to another mesh is not served; full_tensor() and distribute_tensor() do it"
            )
        if placements is None:
            raise RuntimeError("redistribute: placements are wanted, one for each dimension of the mesh")
        placements = normal(placements, self.dim(), mesh, "redistribute")
        given = self if forward_dtype is None else self.to(forward_dtype)
        return given if placements == given._placements else _Redistribute.apply(given, placements, backward_dtype)

    def full_tensor(self, *, grad_placements=None):
        """The whole tensor, in every process."""
        whole = self.redistribute(self._mesh, (Replicate(),) * self._mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def __checkpoint_box__(self):
        """(where this process's part begins, the part): of several that have it, a checkpoint takes one."""
        if any(p.is_partial() for p in self._placements):
            raise RuntimeError("checkpoint: a DTensor of summands is no tensor yet; redistribute it first")
        offsets = compute_local_shape_and_global_offset(tuple(self.shape), self._mesh, self._placements)[1]
        return offsets, self._local_tensor.detach()

    def __tensor_flatten__(self):
        return ["_local_tensor"], (self._mesh, self._placements, tuple(self.shape), self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        mesh, placements, shape, requires_grad = context
        return DTensor._made(inner["_local_tensor"], mesh, placements, shape, requires_grad)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """The gradients of all leaves; of a tensor of one number without ``gradient``."""
        if gradient is None and self.numel() == 1:
            gradient = adjoin.ones_like(self.detach())
        return super().backward(gradient, retain_graph, create_graph, inputs)

    def item(self):
        """The number of a tensor that has one."""
        return self.full_tensor().detach().item()

    def tolist(self):
        """The numbers of the whole tensor."""
        return self.full_tensor().detach().tolist()

    def numpy(self, *, force=False):
        """Raises: a part is not the tensor."""
        raise RuntimeError(
            "numpy: a DTensor lies on several processes; full_tensor().numpy() or to_local().numpy() is meant"
        )

    __array__ = numpy

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copy = DTensor._made(self._local_tensor.clone(), self._mesh, self._placements, tuple(self.shape))
        if getattr(self, "_is_param", False):
            copy = adjoin.nn.Parameter(copy, self.requires_grad)
        else:
            copy.requires_grad_(self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol=None):
        raise RuntimeError(
            "a DTensor is not pickled, for its parts lie on several processes: torch.distributed.checkpoint saves them, or save full_tensor()"
        )

    __getstate__ = __reduce_ex__  # which save asks

    def __repr__(self, *, tensor_contents=None):
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._mesh}, placements={self._placements})"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)


class Spec:
    """Where a DTensor lies, and its sizes."""

    def __init__(self, mesh, placements, shape):
        self.mesh, self.device_mesh, self.placements, self.shape = mesh, mesh, tuple(placements), tuple(shape)


def _whole_sums(placements):
    """Gradients lie as their tensors; of summands each process has the whole gradient."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)


class _FromLocal(_Function):
    @staticmethod
    def forward(ctx, local, mesh, placements, shape, grad_placements):
        ctx.placements = (
            normal(grad_placements, local.dim(), mesh, "from_local") if grad_placements else _whole_sums(placements)
        )
        return DTensor._made(local.detach(), mesh, placements, shape)

    @staticmethod
    def backward(ctx, g):
        return _part(g, ctx.placements), None, None, None, None


class _ToLocal(_Function):
    @staticmethod
    def forward(ctx, t, grad_placements):
        ctx.mesh, ctx.shape = t._mesh, tuple(t.shape)
        ctx.placements = (
            normal(grad_placements, t.dim(), t._mesh, "to_local") if grad_placements else _whole_sums(t._placements)
        )
        return t._local_tensor.detach()

    @staticmethod
    def backward(ctx, g):
        return DTensor._made(g.detach(), ctx.mesh, ctx.placements, ctx.shape), None


class _Redistribute(_Function):
    @staticmethod
    def forward(ctx, t, placements, backward_dtype):
        ctx.placements, ctx.dtype = t._placements, backward_dtype
        return DTensor._made(_part(t, placements, True), t._mesh, placements, tuple(t.shape))

    @staticmethod
    def backward(ctx, g):
        if ctx.dtype is not None:
            g = g.to(ctx.dtype)
        placements = tuple(now if p.is_partial() and not now.is_partial() else Replicate() if p.is_partial() else p for p, now in zip(ctx.placements, g._placements, strict=True))  # fmt: skip
        return DTensor._made(_part(g, placements, True), g._mesh, placements, tuple(g.shape)), None, None


def _part(t, placements, own=False):
    """This process's part by other placements, without a record."""
    made = moved(t._local_tensor, tuple(t.shape), t._placements, placements, t._mesh)
    return made.detach() if made is t._local_tensor or own else made


def _the_mesh(who):
    from .. import _group, device_mesh

    if device_mesh._around():
        return device_mesh._around()[-1]

    if not _group.is_initialized():
        raise RuntimeError(f"{who}: device_mesh is wanted; init_device_mesh('cpu', (N,)) makes one of all processes")
    return DeviceMesh("cpu", list(range(_group.get_world_size())))


@contextlib.contextmanager
def implicit_replication():
    """Inside, a tensor that is no DTensor counts as one that all processes have: they must have the same."""
    before, _replicates.here = DTensor._implicit(), True
    try:
        yield
    finally:
        _replicates.here = before


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """A whole tensor in parts. The values are those of the mesh's process ``src_data_rank``; None: each takes its own."""
    mesh = device_mesh or _the_mesh("distribute_tensor")
    placements = normal(placements or (Replicate(),) * mesh.ndim, tensor.dim(), mesh, "distribute_tensor")
    if isinstance(tensor, DTensor):
        if placements != tensor.placements or tensor.device_mesh != mesh:
            raise ValueError("distribute_tensor: the tensor lies in other parts already; use redistribute()")
        return tensor
    if any(p.is_partial() for p in placements):
        raise ValueError("distribute_tensor: a tensor that is there is no sum to be made; use Shard or Replicate")
    if not tensor.is_leaf:
        raise RuntimeError(
            "distribute_tensor: the tensor is a result; DTensor.from_local(...).redistribute(...) keeps its record"
        )
    with adjoin.no_grad():
        whole = tensor.detach()
        if src_data_rank is not None and mesh.size() > 1 and not whole.is_meta:
            whole = whole.clone(memory_format=adjoin.contiguous_format)
            for m in range(mesh.ndim):
                collectives.broadcast(whole, group=mesh.get_group(m), group_src=src_data_rank)
        own = moved(whole, tuple(tensor.shape), (Replicate(),) * mesh.ndim, placements, mesh)
        own = own.clone() if own.is_meta or own.data_ptr() == tensor.detach().data_ptr() else own
    made = DTensor._made(own, mesh, placements, tuple(tensor.shape))
    if isinstance(tensor, adjoin.nn.Parameter):
        return adjoin.nn.Parameter(made, tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """A module's parameters in parts: ``partition_fn(name, module, mesh)`` does it for each module, the rest is whole everywhere.
    ``input_fn(module, inputs, mesh)`` and ``output_fn(module, outputs, mesh)`` run before and after ``forward``."""
    mesh = device_mesh or _the_mesh("distribute_module")
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, p in part._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                part.register_parameter(key, adjoin.nn.Parameter(distribute_tensor(p.detach(), mesh), p.requires_grad))
        for key, b in part._buffers.items():
            if b is not None and not isinstance(b, DTensor):
                part._buffers[key] = distribute_tensor(b, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


def _size(size):
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _factory(name, fill, ordered=False):
    def make(*size, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None, **more):
        size, mesh = _size(size), device_mesh or _the_mesh(name)
        placed = normal(placements or (Replicate(),) * mesh.ndim, len(size), mesh, name)
        if ordered:  # the place in the whole tensor says the number
            whole = fill(size, dtype=dtype, **more)
            own = moved(whole, size, (Replicate(),) * mesh.ndim, placed, mesh)
        else:
            own = fill(local_shape(size, mesh, placed), dtype=dtype, **more)
        return DTensor._made(own, mesh, placed, size, requires_grad)

    make.__name__ = name
    make.__doc__ = f"``{name}(*size, device_mesh=, placements=)``: as adjoin.{name}, in parts."
    return make


zeros, ones, empty = (_factory(name, getattr(adjoin, name)) for name in ("zeros", "ones", "empty"))
rand, randn = (_factory(name, getattr(adjoin, name), ordered=True) for name in ("rand", "randn"))


def full(size, fill_value, *, dtype=None, layout=None, requires_grad=False, device_mesh=None, placements=None):
    """``adjoin.full`` in parts."""
    made = _factory("full", lambda shape, dtype: adjoin.full(shape, fill_value, dtype=dtype))
    return made(size, dtype=dtype, requires_grad=requires_grad, device_mesh=device_mesh, placements=placements)

"""adjoin.distributed.tensor.parallel._styles: how a module is cut, and where its inputs and outputs lie."""

import fnmatch
import warnings

import adjoin

from .._api import DTensor, distribute_tensor
from ..placement_types import Placement, Replicate, Shard


class ParallelStyle:
    """How a module is cut: ``_apply(module, mesh)`` does it."""

    src_data_rank = 0

    def _apply(self, module, mesh):
        raise NotImplementedError(f"{type(self).__name__} has no _apply(module, mesh)")

    def _distributed(self, module, mesh, placements):
        """Parameters of the module by their names in parts; others whole."""
        for name, p in list(module._parameters.items()):
            if p is not None and not isinstance(p, DTensor):
                placed = distribute_tensor(
                    p.detach(), mesh, [placements.get(name, Replicate())], src_data_rank=self.src_data_rank
                )
                module.register_parameter(name, adjoin.nn.Parameter(placed, p.requires_grad))


def _entered(x, mesh, layout, wanted, name="input"):
    """A process's tensor as what it is a part of, brought where it is wanted."""
    if not isinstance(x, adjoin.Tensor):
        return x
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, [layout])
    return x.redistribute(mesh, [wanted])


def _left(x, mesh, layout, local):
    if not isinstance(x, DTensor):
        return x
    x = x.redistribute(mesh, [layout])
    return x.to_local() if local else x


class _Layer(ParallelStyle):
    """A layer with an input and an output."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        self.given, self.out = input_layouts or self.GIVEN, output_layouts or self.OUT
        self.local = use_local_output

    def _apply(self, module, mesh):
        self._distributed(module, mesh, self._placements(module))
        wanted = self._wanted(module)
        module.register_forward_pre_hook(lambda m, args: (_entered(args[0], mesh, self.given, wanted), *args[1:]))
        module.register_forward_hook(lambda m, args, output: _left(output, mesh, self.out, self.local))
        return module

    def _refuse(self, module):
        return NotImplementedError(
            f"{type(self).__name__} is for Linear and Embedding, not for {type(module).__name__}"
        )


class ColwiseParallel(_Layer):
    """Each process has some of a Linear's outputs, or of an Embedding's columns."""

    GIVEN, OUT = Replicate(), Shard(-1)

    def _placements(self, module):
        if isinstance(module, adjoin.nn.Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        if isinstance(module, adjoin.nn.Embedding):
            return {"weight": Shard(1)}
        raise self._refuse(module)

    def _wanted(self, module):
        return Replicate()


class RowwiseParallel(_Layer):
    """Each process has some of a Linear's inputs, or of an Embedding's rows; results are summed."""

    GIVEN, OUT = Shard(-1), Replicate()

    def _placements(self, module):
        if isinstance(module, adjoin.nn.Linear):
            return {"weight": Shard(1)}
        if isinstance(module, adjoin.nn.Embedding):
            return {"weight": Shard(0)}
        raise self._refuse(module)

    def _wanted(self, module):
        return Shard(-1) if isinstance(module, adjoin.nn.Linear) else Replicate()


class SequenceParallel(ParallelStyle):
    """A norm or a dropout: each process has a part of the sequence, and whole parameters."""

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        self.dim, self.local = sequence_dim, use_local_output

    def _apply(self, module, mesh):
        self._distributed(module, mesh, {})
        module.register_forward_pre_hook(
            lambda m, args: (_entered(args[0], mesh, Shard(self.dim), Shard(self.dim)), *args[1:])
        )
        module.register_forward_hook(lambda m, args, output: _left(output, mesh, Shard(self.dim), self.local))
        return module


def _listed(layouts):
    return (layouts,) if layouts is None or isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Brings a module's arguments where they are wanted; None leaves one as it is."""

    def __init__(self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None, desired_input_kwarg_layouts=None,
                 use_local_output=False):  # fmt: skip
        self.given, self.wanted = _listed(input_layouts), _listed(desired_input_layouts)
        if len(self.given) != len(self.wanted):
            raise ValueError("PrepareModuleInput: input_layouts and desired_input_layouts should have same length!")
        self.words = input_kwarg_layouts or {}
        self.wanted_words = desired_input_kwarg_layouts or {}
        self.local = use_local_output

    def _one(self, x, mesh, given, wanted):
        if given is None or not isinstance(x, adjoin.Tensor):
            return x
        x = _entered(x, mesh, given, given if wanted is None else wanted)
        return x.to_local() if self.local else x

    def _before(self, mesh, args, kwargs):
        layouts = self.given if self.given != (None,) else (None,) * len(args)
        wanted = self.wanted if self.wanted != (None,) else (None,) * len(args)
        if len(args) != len(layouts):
            raise ValueError(
                f"PrepareModuleInput: module inputs and input_layouts should have same length: {len(args)} and {len(layouts)}"
            )
        args = tuple(self._one(x, mesh, g, w) for x, g, w in zip(args, layouts, wanted, strict=True))
        return args, {k: self._one(v, mesh, self.words.get(k), self.wanted_words.get(k)) for k, v in kwargs.items()}

    def _apply(self, module, mesh):
        module.register_forward_pre_hook(lambda m, args, kwargs: self._before(mesh, args, kwargs), with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Brings a module's results where they are wanted."""

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        self.given, self.wanted, self.local = _listed(output_layouts), _listed(desired_output_layouts), use_local_output
        if len(self.given) != len(self.wanted):
            raise ValueError("PrepareModuleOutput: output_layouts and desired_output_layouts should have same length!")

    def _after(self, mesh, output):
        several = isinstance(output, (tuple, list))
        made = []
        for x, g, w in zip(output if several else (output,), self.given, self.wanted, strict=True):
            if g is not None:
                x = _entered(x, mesh, g, w)
                x = x.to_local() if self.local and isinstance(x, DTensor) else x
            made.append(x)
        return tuple(made) if several else made[0]

    def _apply(self, module, mesh):
        module.register_forward_hook(lambda m, args, output: self._after(mesh, output))
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Both."""

    def __init__(self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None, desired_input_kwarg_layouts=None,
                 use_local_input=False, output_layouts, desired_output_layouts, use_local_output=True):  # fmt: skip
        self.input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts, input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts, use_local_output=use_local_input,
        )  # fmt: skip
        self.output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, mesh):
        return self.output._apply(self.input._apply(module, mesh), mesh)


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Cuts a module by a style, or its parts by {path: style}, where a path may have * for any name; returns the module."""
    from .._api import _the_mesh

    mesh = device_mesh or _the_mesh("parallelize_module")
    if mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: a mesh of {mesh.ndim} dimensions; pass the one for the layers: mesh['tp']"
        )
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call "
                      "will do nothing.", stacklevel=2)  # fmt: skip
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    for path, style in parallelize_plan.items():
        found = [part for name, part in module.named_modules() if _matches(name, path)]
        if not found:
            raise ValueError(f"parallelize_module: no module has the path {path!r}")
        for part in found:
            style.src_data_rank = src_data_rank
            style._apply(part, mesh)
    return module


def _matches(name, path):
    names, wanted = name.split("."), path.split(".")
    return len(names) == len(wanted) and all(fnmatch.fnmatch(n, w) for n, w in zip(names, wanted, strict=True))

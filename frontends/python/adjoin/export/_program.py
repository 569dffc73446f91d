"""adjoin.export's programs: what a traced module takes and gives, by name, and its file."""

import enum
import json
import os
import shutil
import tempfile
import zipfile
from collections import namedtuple

from .. import _C, compiler, get_rng_state, no_grad, set_rng_state
from ..jit._foreign import load as of_pytorch
from ..jit._traced import CONSTANT, EXPORTED, INPUT, PARAM, RESULT, TracedForward, places_of_files, trace
from ..jit._traced import load as load_traced
from ..jit._traced import save as save_traced
from ..nn.modules.module import Module
from ._dims import Dim, resolve


class InputKind(enum.Enum):
    """What an input of the program is."""

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4


class OutputKind(enum.Enum):
    """What an output of the program is."""

    USER_OUTPUT = 1
    BUFFER_MUTATION = 3


TensorArgument = namedtuple("TensorArgument", ["name"])
InputSpec = namedtuple("InputSpec", ["kind", "arg", "target", "persistent"])
OutputSpec = namedtuple("OutputSpec", ["kind", "arg", "target"])


class ExportGraphSignature:
    """Inputs and outputs of the program: parameters, buffers, constants, and what the caller gives and gets."""

    def __init__(self, input_specs, output_specs):
        self.input_specs, self.output_specs = input_specs, output_specs

    def _inputs(self, kind, part="target"):
        found = [s for s in self.input_specs if s.kind is kind]
        return tuple(s.arg.name if part == "arg" else s.target for s in found)

    parameters = property(lambda self: self._inputs(InputKind.PARAMETER))
    buffers = property(lambda self: self._inputs(InputKind.BUFFER))
    lifted_tensor_constants = property(lambda self: self._inputs(InputKind.CONSTANT_TENSOR))
    user_inputs = property(lambda self: self._inputs(InputKind.USER_INPUT, "arg"))

    def _named(self, kind):
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    inputs_to_parameters = property(lambda self: self._named(InputKind.PARAMETER))
    inputs_to_buffers = property(lambda self: self._named(InputKind.BUFFER))

    @property
    def user_outputs(self):
        return tuple(s.arg.name for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT)

    @property
    def buffers_to_mutate(self):
        """The buffers that a run writes: name of the buffer by its name."""
        return {s.target: s.target for s in self.output_specs if s.kind is OutputKind.BUFFER_MUTATION}

    def __repr__(self):
        lines = [f"{s.kind.name} {s.arg.name}" + (f" = {s.target}" if s.target else "") for s in self.input_specs]
        gives = [f"{s.kind.name} {s.arg.name or s.target}" for s in self.output_specs]
        return "\n".join([*lines, "->", *gives])


class ExportedProgram:
    """A program with what it takes: module() runs it, save() writes it."""

    def __init__(self, traced, dims, writes, buffers):
        self._traced, self._dims, self._writes, self._buffers = traced, dims, tuple(writes), tuple(buffers)
        self.example_inputs = None

    @property
    def _program(self):
        return self._traced._traced.program

    @property
    def code(self):
        """The program as text."""
        return self._traced.graph

    @property
    def graph_module(self):
        """The calls as an fx.GraphModule, over the program's own parameters."""
        from ..fx import from_program

        return from_program(self)

    @property
    def graph(self):
        """The calls as an fx.Graph: ``for node in program.graph.nodes``."""
        return self.graph_module.graph

    @property
    def graph_signature(self):
        handle = self._program.handle
        takes = []
        for name, _, _ in _C.program_values(handle, PARAM):
            kind = InputKind.BUFFER if name in self._buffers else InputKind.PARAMETER
            prefix = "b" if kind is InputKind.BUFFER else "p"
            takes.append(InputSpec(kind, TensorArgument(f"{prefix}_{name.replace('.', '_')}"), name, True))
        for name, _, _ in _C.program_values(handle, CONSTANT):
            takes.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name.replace(".", "_")), name, None))
        for name, _, _ in _C.program_values(handle, INPUT):
            takes.append(InputSpec(InputKind.USER_INPUT, TensorArgument(name), None, None))
        gives = [OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(name), name) for name in self._writes]
        for name, _, _ in _C.program_values(handle, RESULT):
            gives.append(OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name), None))
        return ExportGraphSignature(takes, gives)

    @property
    def state_dict(self):
        """Parameters and buffers by name."""
        return dict(self._program.weights(PARAM))

    @property
    def constants(self):
        return dict(self._program.weights(CONSTANT))

    @property
    def range_constraints(self):
        """(least, most or None) of each dimension that may differ."""
        return {name: (d.min, d.max) for name, d in self._dims.items()}

    def parameters(self):
        return iter([t for name, t in self._program.weights(PARAM) if name not in self._buffers])

    def named_parameters(self):
        return iter([(name, t) for name, t in self._program.weights(PARAM) if name not in self._buffers])

    def buffers(self):
        return iter([t for name, t in self._program.weights(PARAM) if name in self._buffers])

    def named_buffers(self):
        return iter([(name, t) for name, t in self._program.weights(PARAM) if name in self._buffers])

    def module(self, check_guards=True):
        """A module that runs the program; its parameters are those of the program."""
        return Exported(self)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ExportedProgram: it is no function; call program.module()(...)")

    def run_decompositions(self, decomp_table=None, decompose_custom_triton_ops=False):
        """The program itself where decomp_table is {} or left out and its calls are ops of the registry, as they always are.

        Each call stands under the name of its row, and a backend that lacks one runs the row's body; so nothing has to be
        taken apart before.
        """
        if decomp_table:
            raise NotImplementedError(
                "run_decompositions: a table of decompositions is of PyTorch's ops; here a row's body serves where a backend "
                "lacks the op"
            )
        return self

    def __repr__(self):
        return f"ExportedProgram:\n{self.code}\nGraph signature:\n{self.graph_signature}\nRange constraints: {self.range_constraints}"


class Exported(Module):
    """An exported program as a module."""

    def __init__(self, program):
        super().__init__()
        object.__setattr__(self, "_exported", program)
        for name, child in program._traced._modules.items():
            self.add_module(name, child)
        for name, t in program._traced._parameters.items():
            self.register_parameter(name, t)
        for name, t in program._traced._buffers.items():
            self.register_buffer(name, t)

    def forward(self, *args, **kwargs):
        program = self._exported
        if program._dims:
            check_sizes(program, args, kwargs)
        return program._traced._traced(args, kwargs)

    def train(self, mode=True):
        raise NotImplementedError(
            "export: train() and eval() do not change a program; export the module in the mode that you want"
        )

    def eval(self):
        return self.train(False)


def check_sizes(program, args, kwargs):
    """Are the dimensions with a name within their bounds? The program itself takes any size."""
    from ..jit._traced import take_apart

    leaves = []
    take_apart((args, kwargs), leaves)
    head = next(line for line in program.code.splitlines() if line.startswith("fn "))
    shapes = [part.split("[", 1)[1] for part in head.split("]")[:-1] if "[" in part]
    for leaf, shape in zip(leaves, shapes, strict=False):
        for size, name in zip(leaf.shape, shape.split(", "), strict=False):
            dim = program._dims.get(name)
            if dim and not (dim.min <= size and (dim.max is None or size <= dim.max)):
                raise RuntimeError(
                    f"export: dimension '{name}' is {size}; the program was exported for {dim.min} to "
                    f"{'any' if dim.max is None else dim.max}"
                )


def export(
    mod,
    args=(),
    kwargs=None,
    *,
    dynamic_shapes=None,
    strict=False,
    preserve_module_call_signature=(),
    prefer_deferred_runtime_asserts_over_guards=False,
):
    """The program of a module's forward for these inputs, which is saved, and runs without the module's Python.

    It runs the module as jit.trace does; buffers and random numbers are those of before afterwards. dynamic_shapes names the
    dimensions that may differ, as {"x": {0: Dim("batch")}} or by place. A decision by values (item, an if) is refused, naming
    the line; jit.cond and while_loop are kept.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"export: a Module is wanted, not {type(mod).__name__}; a function is traced by jit.trace")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"export: args is a tuple of inputs, not {type(args).__name__}")
    args, kwargs = tuple(args), dict(kwargs or {})
    dynamic, dims = resolve(mod.forward, args, kwargs, dynamic_shapes)
    buffers = dict(mod.named_buffers(remove_duplicate=False))
    kept = {name: (t._version, t.detach().clone()) for name, t in buffers.items()}
    numbers = get_rng_state()
    compiler._exporting = True
    try:
        traced = trace(mod, args, kwargs, 0, dynamic, {name: (d.min, d.max) for name, d in dims.items()})
    finally:
        compiler._exporting = False
        set_rng_state(numbers)
        writes = [name for name, t in buffers.items() if t._version != kept[name][0]]
        with no_grad():
            for name in writes:
                buffers[name].copy_(kept[name][1])
    traced._traced.again = None  # its Python does not run any more, for no sizes
    made = ExportedProgram(traced, dims, writes, buffers)
    made.example_inputs = args, kwargs
    return made


def export_for_training(mod, args, kwargs=None, **words):
    """export: a program is differentiated as its calls are."""
    return export(mod, args, kwargs, **words)


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=None):
    """Writes a program to an archive, which jit.load, C++ and `adjoin run` read, too: text and safetensors, no pickle. extra_files are
    texts or bytes by name that lie beside it."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"export.save: an ExportedProgram is wanted, not {type(ep).__name__}")
    if opset_version:
        raise NotImplementedError(
            "export.save: opset_version is of PyTorch's ops; the archive has the schema of each op"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.aj")
        save_traced(ep._traced, path, extra_files)
        told = {"dims": {n: [d.min, d.max] for n, d in ep._dims.items()}, "writes": ep._writes, "buffers": ep._buffers}
        with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as z:
            z.writestr(EXPORTED, json.dumps(told))
        if not hasattr(f, "write"):
            shutil.copyfile(path, os.fspath(f))
            return
        with open(path, "rb") as written:
            shutil.copyfileobj(written, f)


def text_of(content):
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def load(f, *, extra_files=None, expected_opset_version=None):
    """The program in a file of save(), of jit.save, or of PyTorch (`.pt2`). Nothing in the file is executed. extra_files is a dictionary
    that takes the files of the user's by name: texts, or bytes where they are none."""
    if (there := of_pytorch(f)) is not None:
        if extra_files:
            raise NotImplementedError(
                "export.load: extra_files of PyTorch's archives are not read; take them out of the zip"
            )
        return there
    traced = load_traced(f)
    if not isinstance(traced, TracedForward):
        raise RuntimeError("export.load: the file holds no program of export.save")
    if hasattr(f, "seek"):
        f.seek(0)
    with zipfile.ZipFile(f) as z:
        told = z.read(EXPORTED) if EXPORTED in z.namelist() else b'{"dims": {}, "writes": [], "buffers": []}'
        if extra_files is not None:
            extra_files.update({n: text_of(z.read(place)) for n, place in places_of_files(z).items()})
    try:
        told = json.loads(told)
        dims = {n: Dim(n, min=least, max=most) for n, (least, most) in told["dims"].items()}
        return ExportedProgram(traced, dims, told["writes"], told["buffers"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RuntimeError(
            f"export.load: the file is damaged: what it says of dimensions and buffers is not understood ({error!r})"
        ) from error

"""adjoin.jit._torchscript._objects: the modules and objects of an archive."""

import ast

from adjoin import Tensor

from ..._pt_policy import UnknownObject
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .. import RecursiveScriptModule
from ._code import Class, ScriptError
from ._run import Interpreter


class ScriptedModule(RecursiveScriptModule):
    """A module of TorchScript: its methods are computed by an interpreter."""

    def __init__(self, code, of):
        super().__init__()
        vars(self)["_code"], vars(self)["_class"], vars(self)["_attributes"] = code, of, {}
        vars(self)["original_name"] = of.name.rpartition(".")[2]

    def forward(self, *args, **kwargs):
        return self._code.interpreter.method(self, "forward", args, kwargs)

    def __getattr__(self, name):
        if name in vars(self).get("_attributes", ()):
            return self._attributes[name]
        of = vars(self).get("_class")
        if of is not None and name in of.methods:
            return lambda *args, **kwargs: self._code.interpreter.method(self, name, args, kwargs)
        if of is not None and name in of.constants:
            return self._code.interpreter.constant(of, name)
        return super().__getattr__(name)

    def read(self, name):
        """An attribute, as the code reads it."""
        for kept in (self._parameters, self._buffers, self._modules, self._attributes):
            if name in kept:
                return kept[name]
        if name == "training":
            return self.training
        if name in self._class.constants:
            return self._code.interpreter.constant(self._class, name)
        raise ScriptError(f"{self._class.name} has no attribute '{name}'")

    def put(self, name, value):
        """An attribute, as the code sets it."""
        if name == "training":
            self.training = bool(value)
        elif name in self._buffers:
            self._buffers[name] = value
        elif name in self._parameters or name in self._modules:
            raise ScriptError(f"{self._class.name}: the code sets the parameter or module '{name}'")
        else:
            self._attributes[name] = value

    @property
    def code(self):
        """The text of forward."""
        return ast.unparse(self._class.methods["forward"]) if "forward" in self._class.methods else ""

    def __len__(self):
        return (
            int(self._code.interpreter.method(self, "__len__", (), {}))
            if "__len__" in self._class.methods
            else len(self._modules)
        )

    def __bool__(self):
        return True


class ScriptObject:
    """An object of a class of the code that is no module."""

    def __init__(self, of):
        self.of, self.values = of, {}

    def read(self, name):
        if name not in self.values:
            raise ScriptError(f"{self.of.name} has no attribute '{name}'")
        return self.values[name]

    def put(self, name, value):
        self.values[name] = value

    def __repr__(self):
        return f"<{self.of.name} object>"


class Built:
    """Makes modules of what a pickle said."""

    def __init__(self, code, root):
        self.code, self.root, self.made, self.depth, self.held = (
            code,
            root,
            {},
            0,
            [],
        )  # held: so that ids stay their own
        code.interpreter = Interpreter(code)

    def module(self):
        made = self.value(self.root)
        if not isinstance(made, ScriptedModule):
            raise ScriptError("jit.load: the archive holds no module")
        self.code.check()
        return made

    def value(self, o):
        from ._archive import KINDS, plain

        if not isinstance(o, UnknownObject):
            return self.container(o) if isinstance(o, (list, tuple, dict)) else o
        if o.cls.module == "torch.jit._pickle" and o.cls.name in KINDS:
            return self.value(plain(o))
        if id(o) in self.made:
            return self.made[id(o)]
        name = f"{o.cls.module}.{o.cls.name}"
        if not name.startswith("__torch__."):
            raise ScriptError(f"jit.load: its data name {name}, which is not served")
        if name.startswith("__torch__.torch.classes."):
            raise ScriptError(
                f"jit.load: the class {name.removeprefix('__torch__.')} is PyTorch's own (quantized or custom) and is not served"
            )
        of = self.code.find(name)
        if not isinstance(of, Class):
            raise ScriptError(f"jit.load: {name} is no class")
        if of.base == "Enum":
            return self.member(of, o.args)
        self.depth += 1
        if self.depth > 200:
            raise ScriptError("jit.load: its modules lie deeper than 200")
        if of.base == "NamedTuple":
            from ._run import named_tuple

            made = named_tuple(
                of,
                [self.value(v) for v in (o.args[0] if len(o.args) == 1 and isinstance(o.args[0], tuple) else o.args)],
            )
        else:
            made = ScriptedModule(self.code, of) if of.base == "Module" else ScriptObject(of)
            self.made[id(o)] = made
            self.fill(made, of, o.state)
        self.depth -= 1
        return made

    def container(self, o):
        if id(o) in self.made:
            return self.made[id(o)]
        self.depth += 1
        if self.depth > 200:
            raise ScriptError("jit.load: its data lie deeper than 200")
        made = (
            {self.value(k): self.value(v) for k, v in o.items()}
            if isinstance(o, dict)
            else type(o)(self.value(x) for x in o)
        )
        self.depth -= 1
        self.made[id(o)] = made
        self.held.append(o)
        return made

    def member(self, of, args):
        """The member of an enumeration that has a value."""
        return self.code.interpreter.member(of, args[0] if args else None)

    def fill(self, made, of, state):
        if "__setstate__" in of.methods:
            self.code.interpreter.method(made, "__setstate__", (self.value(state),), {})
            return
        if not isinstance(state, dict):
            raise ScriptError(f"jit.load: an object of {of.name} has no attributes")
        for name, value in state.items():
            value = self.value(value)
            if isinstance(made, ScriptObject):
                made.put(name, value)
            elif name == "training":
                made.training = bool(value)
            elif name in of.parameters:
                kept = Parameter(value.detach(), value.requires_grad) if isinstance(value, Tensor) else None
                made._parameters[name] = kept
            elif name in of.buffers and (value is None or isinstance(value, Tensor)):
                made._buffers[name] = value
            elif isinstance(value, Module):
                made._modules[name] = value
            elif name != "_is_full_backward_hook":
                made._attributes[name] = value


__all__ = ["Built", "ScriptObject", "ScriptedModule"]

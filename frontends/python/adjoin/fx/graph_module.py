"""adjoin.fx.graph_module: a module whose forward is generated from a graph."""

import copy
import itertools
import linecache
import os
import pathlib
import pickle
import warnings

import adjoin

from ..nn import Module, Parameter
from ._naming import is_own, qualified_name, root
from .graph import Graph, _PyTreeCodeGen

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


def _compiled(src, globals):
    """The ``forward`` of generated text; tracebacks and debuggers find its lines."""
    file = f"<adjoin.fx generated {next(_numbers)}>"
    # Without a loader in the namespace linecache forgets no lines at checkcache.
    linecache.cache[file] = (len(src), None, src.splitlines(True), file)
    scope = dict(globals)
    exec(compile(src, file, "exec"), scope)
    return scope["forward"]


def _walk(owner, path, make=False):
    """The object that holds the last part of a dotted path, and that part."""
    *parts, last = path.split(".")
    for part in parts:
        below = getattr(owner, part, None)
        if below is None:
            if not make:
                return None, last
            below = Module()
            setattr(owner, part, below)
        owner = below
    return owner, last


def _copy_attr(from_module, to_module, target):
    """Sets what ``from_module`` has at a path at the same path of ``to_module``, with modules on the way."""
    source, name = _walk(from_module, target)
    if source is not None:
        _assign_attr(getattr(source, name), to_module, target)


def _assign_attr(from_obj, to_module, target):
    """Sets an object at a path; a tensor that is no parameter becomes a buffer."""
    owner, name = _walk(to_module, target, make=True)
    if isinstance(from_obj, adjoin.Tensor) and not isinstance(from_obj, Parameter):
        if name in owner.__dict__:
            delattr(owner, name)
        owner.register_buffer(name, from_obj)
    else:
        setattr(owner, name, from_obj)


class _CodeOnlyModule(Module):
    """The attributes of a module, without its class."""

    def __init__(self, body):
        super().__init__()
        self.__dict__.update(body)


def _keep_rest(made, body):
    """Modules, parameters and buffers that the graph does not use are kept, too."""
    for kind in ("_modules", "_parameters", "_buffers"):
        for name, value in body.get(kind, {}).items():
            made.__dict__[kind].setdefault(name, value)


def reduce_graph_module(body, graph, name):
    """A GraphModule from what pickle wrote of one."""
    made = GraphModule(_CodeOnlyModule({**body, "_graph": None}), graph, name)
    for key, value in body.items():
        made.__dict__.setdefault(key, value)
    _keep_rest(made, body)
    made.train(body["training"]) if body["training"] is not made.training else None
    return made


class GraphModule(Module):
    """A module made of a graph. ``root`` is where its modules, parameters and buffers come from: a module, or
    a dictionary from paths to objects.

    ``graph`` can be changed; then ``recompile()`` writes ``forward`` anew. ``code`` is its text.
    """

    # What jit.script leaves out.
    _unscripted = frozenset(
        ("meta", "_graph", "_code", "_tracer_cls", "_tracer_extras", "_replace_hooks", "_create_node_hooks", "_erase_node_hooks",
         "_deepcopy_hooks")
    )  # fmt: skip

    def __new__(cls, *args, **kwargs):
        for base in cls.__mro__:  # each object has a class of its own, since each has a forward of its own
            if "forward" in base.__dict__ and base.__dict__.get("_generated"):
                cls = base.__bases__[0]
        own = type(
            cls.__name__, (cls,), {"_generated": True, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        )
        return super().__new__(own)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        wanted = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            for path in wanted:
                _copy_attr(root, self, path)
            if isinstance(root, _CodeOnlyModule):
                self._hooks_of(root)
        elif isinstance(root, dict):
            for path in sorted(dict.fromkeys(wanted), key=lambda p: p.count(".")):
                if path not in root:
                    raise RuntimeError(
                        f"the graph uses {path!r}, but the dictionary `root` has none; it has {sorted(root)}"
                    )
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"GraphModule: root is a {type(root).__name__}; give a Module or a dictionary")
        self.meta = dict(getattr(root, "meta", None) or {}) if isinstance(root, Module) else {}
        self._replace_hooks, self._create_node_hooks, self._erase_node_hooks, self._deepcopy_hooks = [], [], [], []
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras

    def _replicate_for_data_parallel(self):
        made = super()._replicate_for_data_parallel()
        type(made).forward = type(self).forward
        return made

    def _hooks_of(self, module):
        for key, value in module.__dict__.items():
            if key.endswith("_hooks") or key.startswith(("_forward_hooks", "_forward_pre_hooks")):
                self.__dict__[key] = value

    @property
    def graph(self):
        """The graph; one that is set belongs to the module from then on, and its code is written."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"GraphModule.graph: a Graph is wanted, not a {type(graph).__name__}")
        if graph.owning_module not in (None, self):  # one graph can't be two modules'
            graph = copy.deepcopy(graph)
        graph.owning_module = self
        self._graph = graph
        self.recompile()

    @property
    def code(self):
        """The text of the generated forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Call recompile()")
        return self._code

    def recompile(self):
        """Writes ``forward`` from the graph again."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            info = self._graph._codegen.pytree_info
            self._in_spec, self._out_spec = info.in_spec, info.out_spec
        python = self._graph.python_code("self")
        self._code = python.src
        cls = type(self)
        if not cls.__dict__.get("_generated"):  # made by copy.copy of a foreign class
            raise TypeError(f"{cls.__name__}.recompile: make the object by its constructor")
        cls.forward = _compiled(python.src, python.globals)
        return python

    # Its modules

    def add_submodule(self, target, m):
        """Sets a module at a path, with modules on the way; False where something else stands there."""
        owner = self
        *parts, name = target.split(".")
        for part in parts:
            below = getattr(owner, part, None)
            if below is None:
                below = Module()
                setattr(owner, part, below)
            if not isinstance(below, Module):
                return False
            owner = below
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Takes a module out; False where there is none."""
        owner, name = _walk(self, target)
        if owner is None or not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self):
        """Takes out the modules that no node uses, nor anything in or around one that is used."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    try:
                        below = self.get_submodule(node.target)
                    except AttributeError:
                        warnings.warn(f"delete_all_unused_submodules: no module {node.target!r}", stacklevel=2)
                        continue
                    used.update(f"{node.target}.{name}" for name, _ in below.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def _recompile_submodules(self):
        return [m.recompile() for m in self.modules() if m is not self and isinstance(m, GraphModule)]

    # Hooks on changes of the graph

    def _register_replace_node_hook(self, f):
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f):
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f):
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f):
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f):
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f):
        self._erase_node_hooks.remove(f)

    # Copies and files

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        body = {k: v for k, v in self.__dict__.items() if not k.endswith("_node_hooks") and k != "_replace_hooks"}
        body.pop("_graph", None)
        source = _CodeOnlyModule(copy.deepcopy(body, memo))
        graph = copy.deepcopy(self._graph, {})
        self._deepcopy_init()(made, source, graph, type(self).__name__)
        for key, value in source.__dict__.items():
            if key not in made.__dict__ and key != "_code":
                made.__dict__[key] = value
        _keep_rest(made, source.__dict__)
        return made

    def __copy__(self):
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = dict(self.meta)
        return made

    def __reduce__(self):
        skipped = ("_graph", "_code", "_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
        body = {k: v for k, v in self.__dict__.items() if k not in skipped and k not in ("_tracer_cls",)}
        return reduce_graph_module, (body, self._graph, type(self).__name__)

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def to_folder(self, folder, module_name="FxModule"):
        """Writes a Python package with the code as ``module.py`` and the state next to it."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        python = self._graph.python_code("self")
        imports = {root(): f"import {root()}"}
        for name, value in python.globals.items():
            if value is adjoin:
                continue
            module = getattr(value, "__module__", None) or "builtins"
            where = qualified_name(value) if is_own(value) else f"{module}.{getattr(value, '__qualname__', '')}"
            if module in ("builtins", "__main__") or "<locals>" in where or "." not in where:
                raise ValueError(
                    f"to_folder: {name} = {value!r} can't be imported from a file; save the module with adjoin.save"
                )
            home, _, last = where.rpartition(".")
            imports[name] = f"from {home} import {last} as {name}"
        lines = []
        for name, child in self.named_children():
            (folder / f"{name}.pickle").write_bytes(pickle.dumps(child))
            lines.append(f"        self.{name} = pickle.loads((here / '{name}.pickle').read_bytes())")
        adjoin.save(self.state_dict(), str(folder / "state_dict.pt"))
        for kind, parts in (("parameter", self._parameters), ("buffer", self._buffers)):
            for name, value in parts.items():
                made = f"{root()}.empty({tuple(value.shape)}, dtype={root()}.{str(value.dtype).rpartition('.')[2]})"
                made = f"{root()}.nn.Parameter({made})" if kind == "parameter" else made
                lines.append(f"        self.register_{kind}({name!r}, {made})")
        head = f"class {module_name}({root()}.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        head += "        here = pathlib.Path(__file__).parent\n" + "\n".join(lines)
        head += f"\n        self.load_state_dict({root()}.load(str(here / 'state_dict.pt')))\n"
        body = "\n".join("    " + line if line else "" for line in python.src.strip().splitlines())
        text = "import pathlib\nimport pickle\n\n" + "\n".join(imports.values()) + f"\n\n\n{head}\n{body}\n"
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *\n")

    def print_readable(self, print_output=True, include_stride=False, include_device=False, colored=False, **_):
        """The code as a class, printed and given."""
        python = self._graph.python_code("self", verbose=True)
        lines = python.src.strip().splitlines()
        text = f"class {type(self).__name__}({root()}.nn.Module):\n" + "\n".join("    " + line for line in lines) + "\n"
        for _name, child in self.named_children():
            if isinstance(child, GraphModule):
                below = child.print_readable(print_output=False).splitlines()
                text += "\n" + "\n".join("    " + line for line in below) + "\n"
        if print_output:
            print(text)
        return text

    def __str__(self):
        return os.linesep.join(
            (super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`")
        )

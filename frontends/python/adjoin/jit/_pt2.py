"""adjoin.jit._pt2: programs of torch.export, in the archives that PyTorch writes: read, and computed call by call.

The graph is JSON, the weights are raw bytes. No pickle is read, nothing is executed.
"""

import io
import json
import math
import operator
import re

import adjoin

from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from . import RecursiveScriptModule, _aten_calls
from ._pt2_tree import Tree, refuse

SCHEMA = 8  # the major version that is read
LARGEST = 1 << 28  # bytes of the graph's JSON
# PyTorch's numbers of dtypes in these files.
DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64", 10: "complex64",
    11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz", 34: "uint32", 35: "uint64",
}  # fmt: skip
FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}


def dtype_of(number):
    if number not in DTYPES:
        refuse(f"the dtype of number {number} is not served")
    return getattr(adjoin, DTYPES[number])


class Archive:
    def __init__(self, zipped):
        self.zip = zipped
        names = zipped.namelist()
        self.root = names[0].partition("/")[0] + "/" if names else ""
        self.infos = {i.filename: i for i in zipped.infolist()}
        if len(names) != len(self.infos):
            refuse("two parts of the archive have one name")

    def has(self, name):
        return self.root + name in self.infos

    def bytes(self, name, most=None):
        info = self.infos.get(self.root + name)
        if info is None:
            refuse(f"the archive has no '{name}'")
        if info.flag_bits & 1 or info.compress_type not in (0, 8):
            refuse(f"the part '{name}' is encrypted, or packed in a way that PyTorch does not use")
        if (
            info.compress_type
            and info.file_size > 1000 * max(info.compress_size, 1000)
            or most is not None
            and info.file_size > most
        ):
            refuse(f"the part '{name}' would have {info.file_size} bytes")
        try:
            with self.zip.open(info) as part:
                return part.read(info.file_size + 1)
        except Exception as error:  # what zipfile and zlib say of damaged parts
            refuse(f"the part '{name}' is damaged: {error}")

    def json(self, name):
        try:
            return json.loads(self.bytes(name, LARGEST))
        except (ValueError, RecursionError) as error:
            refuse(f"the part '{name}' is no JSON: {error}")

    def models(self):
        return [
            n[len(self.root) + 7 : -5]
            for n in self.infos
            if re.fullmatch(re.escape(self.root) + r"models/[^/]+\.json", n)
        ]


def size_of(said):
    """A size that is a number."""
    n = said.get("as_int") if isinstance(said, dict) else said
    if not isinstance(n, int) or n < 0:
        refuse(f"a size of a weight is {said}")
    return n


def tensor(archive, folder, entry, kept):
    """A weight of the archive."""
    meta = entry["tensor_meta"]
    if entry.get("use_pickle"):
        refuse("a weight is pickled (a subclass of tensors); only plain tensors are read")
    if meta.get("layout", 7) != 7:
        refuse("a weight is sparse or has a layout of its own; only strided tensors are read")
    dtype, sizes = dtype_of(meta["dtype"]), [size_of(s) for s in meta["sizes"]]
    strides, offset = [size_of(s) for s in meta["strides"]], size_of(meta["storage_offset"])
    name = entry["path_name"]
    if name not in kept:
        data = archive.bytes(f"{folder}/{name}")
        kept[name] = bytearray(data)
    raw = kept[name]
    if len(sizes) != len(strides) or len(sizes) > 64:
        refuse(f"a weight has {len(sizes)} sizes and {len(strides)} strides")
    count = math.prod(sizes)
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if count else -1
    if (last + 1) * dtype.itemsize > len(raw):
        refuse(f"a weight of shape {sizes} wants {(last + 1) * dtype.itemsize} bytes, there are {len(raw)}")
    if not count:
        return adjoin.empty(sizes, dtype=dtype)
    flat = adjoin.frombuffer(raw, dtype=dtype, count=len(raw) // dtype.itemsize)
    return flat.as_strided(sizes, strides, offset)


def weights(archive, model):
    """{name: (tensor, is it a parameter)} of a model."""
    made, kept = {}, {}
    for folder in ("weights", "constants"):
        listing = f"data/{folder}/{model}_{folder}_config.json"
        if not archive.has(listing):
            continue
        for name, entry in archive.json(listing)["config"].items():
            if "tensor_meta" not in entry or entry["tensor_meta"] is None:
                continue  # an object of a class: refused where the graph asks for it
            if (same := kept.get((folder, entry["path_name"]))) is None:
                same = kept[folder, entry["path_name"]] = {}
            made[name] = tensor(archive, f"data/{folder}", entry, same), bool(entry.get("is_param"))
    return made


def one(said):
    """(the tag, the value) of what has one of several kinds."""
    if not isinstance(said, dict) or len(said) != 1:
        refuse(f"an argument of one kind is wanted, there is {str(said)[:80]}")
    return next(iter(said.items()))


class Values(dict):
    """Values of a graph by name."""

    def __missing__(self, name):
        refuse(f"the graph reads '{name}', which nothing has made before")


def argument(said, env, graph):
    tag, v = one(said)
    if tag in (
        "as_int",
        "as_float",
        "as_string",
        "as_bool",
        "as_ints",
        "as_floats",
        "as_strings",
        "as_bools",
        "as_int_lists",
        "as_float_lists",
    ):
        if tag == "as_float" and isinstance(v, str):
            return float(v)
        return v
    if tag == "as_none":
        return None
    if tag == "as_tensor":
        return env[v["name"]]
    if tag == "as_tensors":
        return [env[t["name"]] for t in v]
    if tag == "as_optional_tensors":
        return [argument(t, env, graph) for t in v]
    if tag == "as_optional_tensor":
        return argument(v, env, graph)
    if tag in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        kind, inner = one(v)
        return env[inner] if kind == "as_name" else inner
    if tag in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
        return [env[inner] if kind == "as_name" else inner for kind, inner in map(one, v)]
    if tag == "as_nested_tensors":
        return [[env[t["name"]] for t in row] for row in v]
    if tag == "as_scalar_type":
        return dtype_of(v)
    if tag == "as_memory_format":
        return getattr(adjoin, FORMATS[v]) if v in FORMATS else None
    if tag == "as_layout":
        if v != 7:
            refuse("a layout that is not strided is asked for")
        return None
    if tag == "as_device":
        return adjoin.device(v["type"] if v.get("index") is None else f"{v['type']}:{v['index']}")
    if tag == "as_complex":
        return complex(v["real"], v["imag"])
    if tag == "as_graph":
        return Block(v["graph"])
    if tag == "as_string_to_argument":
        return {k: argument(a, env, graph) for k, a in v.items()}
    refuse(f"an argument of the kind '{tag}' is not served")


class Block:
    """A graph that is an argument: a branch, the body of a loop."""

    def __init__(self, graph):
        self.graph = graph

    def __call__(self, *args):
        env = Values(zip((name_of(i) for i in self.graph["inputs"]), args, strict=False))
        made = run(self.graph, env)
        return made[0] if self.graph.get("is_single_tensor_return") else tuple(made)


def name_of(said):
    tag, v = one(said)
    if isinstance(v, dict):
        return v.get("name") or v.get("as_name") or v.get("graph_name")
    return None


_OPERATORS = {
    name: getattr(operator, name)
    for name in "add sub mul floordiv truediv mod pow neg eq ne lt le gt ge and_ or_ not_ lshift rshift pos".split()
} | {
    "sym_max": max, "sym_min": min, "sym_not": operator.not_, "sym_float": float, "sym_int": int, "sym_ite": lambda c, a, b: a if c else b,
    "sym_sum": sum, "getitem": operator.getitem, "_sym_sqrt": math.sqrt, "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc,
    "round": round,
}  # fmt: skip


def function_of(target):
    """What computes a node's target."""
    if target.startswith("torch.ops.higher_order."):
        return _HIGHER.get(target.rpartition(".")[2]) or refuse(f"the graph calls '{target}', which is not served")
    if target.startswith("torch.ops.aten."):
        name = target.split(".")[3]  # the overload says which types; ours are told by the values
        function = _aten_calls.function_of(name)
        return lambda args, kwargs: function(*args, **_aten_calls.words(kwargs))
    if target.startswith("torch.ops."):
        parts = target.split(".")
        function = _aten_calls.function_in(parts[2], parts[3] if len(parts) > 3 else "")
        return lambda args, kwargs: function(*args, **_aten_calls.words(kwargs))
    space, _, name = target.rpartition(".")
    if space in ("_operator", "operator", "torch", "math", "torch.sym_", "builtins") and name in _OPERATORS:
        return lambda args, kwargs: _OPERATORS[name](*args)
    refuse(f"the graph calls '{target}', which is not served")


def _cond(args, kwargs):
    from .. import jit

    pred, yes, no, operands = args
    made = jit.cond(pred, yes, no, tuple(operands))
    return made


def _while(args, kwargs):
    from .. import jit

    test, body, carried, more = args[:4]
    made = jit.while_loop(lambda *xs: test(*xs, *more), lambda *xs: body(*xs, *more), tuple(carried))
    return list(made)


def _grad_mode(args, kwargs):
    on, block, *more = args
    with adjoin.set_grad_enabled(bool(on)):
        return block(*more)


_HIGHER = {"cond": _cond, "while_loop": _while, "wrap_with_set_grad_enabled": _grad_mode}


def run(graph, env):
    """The outputs of a graph for values by name."""
    for node in graph["nodes"]:
        args, kwargs = [], {}
        for given in node["inputs"]:
            value = argument(given["arg"], env, graph)
            if given.get("kind") == 2:
                kwargs[given["name"]] = value
            else:
                args.append(value)
        try:
            made = function_of(node["target"])(args, kwargs)
        except (NotImplementedError, ValueError, TypeError, RuntimeError, IndexError) as error:
            if not getattr(error, "_told", False):
                trace = (node.get("metadata") or {}).get("stack_trace", "").strip().split("\n")
                line = trace[-2].strip() if len(trace) > 1 else ""
                error.args = (f"{error} (in {node['target']}{', ' + line if line else ''})",)
                error._told = True
            raise
        keep(node["outputs"], made, env)
    return [argument(o, env, graph) for o in graph["outputs"]]


def keep(outputs, made, env):
    if len(outputs) == 1:
        tag, v = one(outputs[0])
        if tag in ("as_tensors", "as_optional_tensors"):
            for item, x in zip(v, made, strict=False):
                name = item.get("name") or (item.get("as_tensor") or {}).get("name")
                if name:
                    env[name] = x
        elif tag != "as_none" and (name := name_of(outputs[0])):
            env[name] = made[0] if isinstance(made, (tuple, list)) and len(made) == 1 else made
        return
    for out, x in zip(outputs, made if isinstance(made, (tuple, list)) else [made], strict=False):
        if one(out)[0] in ("as_tensors", "as_optional_tensors"):
            keep([out], x, env)
        elif (name := name_of(out)) is not None:
            env[name] = x


class ExportedModule(RecursiveScriptModule):
    """A program of torch.export as a module."""

    def __init__(self, said, named):
        super().__init__()
        version = said.get("schema_version", {}).get("major")
        if version != SCHEMA:
            refuse(f"the file's schema is {version}, {SCHEMA} is read; export it with PyTorch 2.7 or later")
        module = said["graph_module"]
        self.graph, self.signature = module["graph"], module["signature"]
        self.ranges = said.get("range_constraints", {})
        call = module["module_call_graph"][0]["signature"]
        self.form_in, self.form_out = Tree(call["in_spec"]), Tree(call["out_spec"])
        self._places = {}
        tensors = {}
        for name, (t, is_param) in named.items():
            tensors[name] = plant(
                self, name, Parameter(t, t.dtype.is_floating_point) if is_param and t.dtype.is_floating_point else t
            )
        self._bound, self._users = [], []
        for spec in self.signature["input_specs"]:
            kind, v = one(spec)
            self.bind(kind, v, tensors)
        self.training = False

    def bind(self, kind, v, tensors):
        field = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}.get(
            kind
        )
        if field is not None:
            if v[field] not in tensors:
                refuse(f"the archive has no values of '{v[field]}'")
            self._bound.append((name_of({"a": v["arg"]}) or v["arg"]["name"], v[field]))
        elif kind == "user_input":
            self._users.append(name_of(v["arg"]))
        elif kind == "constant_input":
            self._users.append(v["name"])
        elif kind != "token":
            refuse(f"an input is an object of a class ({kind}), which is not served")

    def found(self, name):
        """A parameter or buffer by its dotted name."""
        o = self
        for part in name.split("."):
            o = getattr(o, part)
        return o

    def forward(self, *args, **kwargs):
        leaves = self.form_in.leaves((args, self.named(kwargs)))
        if len(leaves) != len(self._users):
            raise TypeError(f"{len(self._users)} values are wanted, {len(leaves)} are given")
        env = Values(zip(self._users, leaves, strict=True))
        for name, at in self._bound:
            env[name] = self.found(at)
        self.check(env)
        results = []
        for spec, value in zip(self.signature["output_specs"], run(self.graph, env), strict=True):
            kind, v = one(spec)
            if kind in ("user_output", "loss_output"):
                results.append(value)
            elif kind in ("buffer_mutation", "parameter_mutation"):
                with adjoin.no_grad():
                    self.found(v.get("buffer_name") or v.get("parameter_name")).copy_(value)
            elif kind == "user_input_mutation":
                env[v["user_input_name"]].copy_(value)
        return self.form_out.put(results)

    def named(self, kwargs):
        """Keywords in the order of the export."""
        order = self.form_in.keys(self.form_in.spec["children_spec"][1])
        if set(order) != set(kwargs):
            raise TypeError(f"the keywords {list(order)} are wanted, {list(kwargs)} are given")
        return {k: kwargs[k] for k in order}

    def check(self, env):
        """Sizes of the inputs: those that are numbers, and the ranges of the others."""
        seen = {}
        for name in self._users:
            meta = self.graph["tensor_values"].get(name)
            value = env[name]
            if meta is None or not isinstance(value, adjoin.Tensor):
                continue
            if value.dtype != dtype_of(meta["dtype"]) or value.dim() != len(meta["sizes"]):
                raise TypeError(
                    f"'{name}' is {value.dtype} with {value.dim()} dimensions; {dtype_of(meta['dtype'])} with {len(meta['sizes'])} is wanted"
                )
            for d, (said, n) in enumerate(zip(meta["sizes"], value.shape, strict=True)):
                kind, v = one(said)
                if kind == "as_int":
                    if n != v:
                        raise RuntimeError(f"dimension {d} of '{name}' is {n}; the program was exported for {v}")
                    continue
                found = re.fullmatch(r"Symbol\('(\w+)'[^()]*\)|(\w+)", v["expr_str"])
                if found is None:
                    continue  # made of other sizes
                symbol = found[1] or found[2]
                if seen.setdefault(symbol, n) != n:
                    raise RuntimeError(
                        f"dimension {d} of '{name}' is {n}; it is the size {symbol}, which is {seen[symbol]} elsewhere"
                    )
                limits = self.ranges.get(symbol) or {}
                low, high = limits.get("min_val"), limits.get("max_val")
                if low is not None and n < low and not (low == 2 and n in (0, 1)) or high is not None and n > high:
                    raise RuntimeError(
                        f"dimension {d} of '{name}' is {n}; the program was exported for {low} to {high}"
                    )

    def module(self, check_guards=True):
        """Itself: what is loaded is a module already."""
        return self


def plant(root, name, value):
    """Registers a tensor under a dotted name."""
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    if isinstance(value, Parameter):
        root.register_parameter(last, value)
    else:
        root.register_buffer(last, value)
    return value


def read(zipped):
    """The module of an archive that is open."""
    archive = Archive(zipped)
    models = archive.models()
    if len(models) != 1:
        if any("aotinductor" in n for n in archive.infos):
            refuse("the archive holds machine code of AOTInductor, which is not run; export the program itself")
        refuse(f"one model is wanted, the archive has {len(models)}")
    said = archive.json(f"models/{models[0]}.json")
    try:
        return ExportedModule(said, weights(archive, models[0]))
    except (KeyError, AttributeError, TypeError, IndexError) as error:
        refuse(f"the archive is damaged: {type(error).__name__}: {error}")


def load(f):
    """The module of a file, or of bytes, of torch.export."""
    import zipfile

    try:
        zipped = zipfile.ZipFile(io.BytesIO(f) if isinstance(f, (bytes, bytearray)) else f)
    except zipfile.BadZipFile:
        refuse("this is no zip archive")
    with zipped:
        return read(zipped)

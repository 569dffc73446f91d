"""adjoin._pt_policy: what becomes of the classes and functions that an object to be saved has, or that a `.pt` file names."""

import _codecs
import collections
import copyreg
import io
import pickle
import sys
import warnings

import adjoin
from adjoin import _C

from ._pt_options import STORAGES, StorageType, is_skipping
from ._pt_places import by_package, packages
from ._tensor import sees_calls, set_state

allowed = {}  # "module.name" -> object, as the user says
# No file of tensors needs these modules, so nobody is advised to allow them.
_HARMFUL = {
    "os",
    "posix",
    "nt",
    "subprocess",
    "pty",
    "sys",
    "runpy",
    "shutil",
    "socket",
    "importlib",
    "ctypes",
    "webbrowser",
    "pickle",
    "marshal",
}
_BLOCKED = {"os", "posix", "nt", "sys"}  # which no list of names lets in
_HARMFUL_BUILTINS = {"eval", "exec", "compile", "__import__", "open", "getattr", "breakpoint", "input"}


def _is_harmful(module, name):
    return module.partition(".")[0] in _HARMFUL or (module in ("builtins", "__builtin__") and name in _HARMFUL_BUILTINS)


class UnknownClass:
    """The name of a class or function that a file speaks of and that nobody has allowed."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __repr__(self):
        return f"<unknown {self.module}.{self.name}>"


class UnknownObject:
    """What a file says of an object of an unknown class: the arguments it was made of, and its state.

    ``items`` and ``pairs`` are what was appended to it, were it a list or a dict.
    """

    def __init__(self, cls, args, kwargs=None):
        self.cls, self.args, self.kwargs = cls, args, kwargs or {}
        self.state, self.items, self.pairs = None, [], []

    def __repr__(self):
        return f"<unknown object of {self.cls.module}.{self.cls.name}>"

    def __getattr__(self, name):
        if name.startswith("__") or "cls" not in self.__dict__:  # what copy and pickle ask
            raise AttributeError(name)
        raise AttributeError(f"{self!r} has no {name!r}; {self._remedy()}")

    def __call__(self, *args, **kwargs):
        raise TypeError(f"{self!r} cannot be called; {self._remedy()}")

    def _remedy(self):
        ran_nothing = "load() runs nothing that a file names and made a record of it"
        if _is_harmful(self.cls.module, self.cls.name):
            return f"{ran_nothing}: it may be meant to harm"
        return (
            f"{ran_nothing}. If you trust the file, load it inside "
            f"`with adjoin.serialization.safe_globals([{self.cls.name}])`, or with `pickle_module=pickle`"
        )


class Saving:
    """Names and parts of what is no plain data, for the writer."""

    def name(self, obj):
        theirs = f"torch{obj.__module__[6:]}" if (obj.__module__ or "").startswith("adjoin._utils") else None
        if f"{theirs}.{obj.__name__}" in _KNOWN:
            return theirs, obj.__name__
        if isinstance(obj, type) and obj.__module__ == "adjoin" and obj is adjoin.Tensor:
            return "torch", "Tensor"
        return self.found(obj, pickle.whichmodule(obj, obj.__name__), getattr(obj, "__qualname__", obj.__name__))

    def outside(self, tensor):
        """What is seen of a tensor without memory, whose class serves all calls with it; None of others."""
        if not sees_calls(type(tensor)):
            return None
        return (
            type(tensor), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), 0, tensor.layout,
            tensor.device, tensor.requires_grad,
        )  # fmt: skip

    def state(self, tensor):
        """What a tensor of a class has beside its values."""
        return tensor.__getstate__()

    def found(self, obj, module, name):
        """Its module and name as Python 2 has them, after a look whether they lead back to it."""
        found = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not obj or "<locals>" in name or "." in name:
            raise pickle.PicklingError(
                f"save: {obj!r} cannot be found again as {module}.{name}; define it at the top of a module"
            )
        renamed = pickle._compat_pickle.REVERSE_NAME_MAPPING.get((module, name))
        return renamed or (pickle._compat_pickle.REVERSE_IMPORT_MAPPING.get(module, module), name)

    def reduce(self, obj):
        kind = type(obj)
        if kind is bytes:
            return _codecs.encode, (obj.decode("latin1"), "latin1")
        if kind is adjoin.device:
            return ("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is adjoin.layout:
            return ("torch.serialization", "_get_layout"), ("torch." + str(obj).rpartition(".")[2],)
        if kind is adjoin.memory_format:
            return ["torch", str(obj).rpartition(".")[2]]
        if kind is adjoin.storage.UntypedStorage:
            return obj._all()  # a tensor says: its storage
        if "adjoin._typed_storage" in sys.modules and isinstance(obj, adjoin.storage.TypedStorage):
            return obj._row
        reducer = copyreg.dispatch_table.get(kind)
        try:
            reduced = reducer(obj) if reducer else obj.__reduce_ex__(2)
        except TypeError as error:
            raise pickle.PicklingError(f"save: a {kind.__qualname__} cannot be saved: {error}") from error
        if isinstance(reduced, str):
            return list(self.found(obj, pickle.whichmodule(obj, reduced), reduced))
        if not isinstance(reduced, tuple):
            raise pickle.PicklingError(f"save: a {kind.__qualname__} cannot be saved: __reduce_ex__ gave {reduced!r}")
        return reduced[:5]

    def host_bytes(self, tensor):
        memory = tensor.detach()
        base = memory if tensor._base is None else tensor._base.detach()
        count = base._storage_info()[1] // base.itemsize
        return base.as_strided((count,), (1,), 0).cpu().contiguous().view(adjoin.uint8)


def _layout(name):
    return getattr(adjoin, name.rpartition(".")[2])


def _encode(text, encoding="latin1"):
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"load: bytes in the encoding {encoding!r} are not read")
    return text.encode("latin1")


def _device(kind, index=None):
    try:
        return adjoin.device(kind) if index is None else adjoin.device(kind, index)
    except (RuntimeError, TypeError):
        known = UnknownObject(UnknownClass("torch", "device"), (kind, index))
        warnings.warn(f"load: the file names the device {kind!r}, which is not here", stacklevel=2)
        return known


def _parameter(data, requires_grad=True, hooks=None):
    return adjoin.nn.Parameter(data, requires_grad)


def _parameter_with_state(data, requires_grad, hooks, state):
    parameter = adjoin.nn.Parameter(data, requires_grad)
    parameter.__dict__.update(_attributes(state))
    return parameter


def _meta_tensor(dtype, size, stride, requires_grad):
    made = adjoin.empty(size, dtype=dtype, device="meta")
    return made.as_strided(size, stride).detach().requires_grad_(requires_grad)


def _parts(op, args, requires_grad):
    """A tensor without strides, made by the op that the plugin of its key has named when it was saved."""
    info = _C.op_info(op) if isinstance(op, str) and isinstance(args, tuple) else None
    if not info or not info[0]["provider"]:
        raise pickle.UnpicklingError(
            f"load: the file makes a tensor by the op {op!r}, which no plugin that is loaded has; load that plugin first"
        )
    made = adjoin._tensor._rebuild_parts(op, args, requires_grad)
    if _C.wrapper_parts(made) is None:
        raise pickle.UnpicklingError(
            f"load: the file makes a tensor by the op {op!r}, which makes no tensors of that kind"
        )
    return made


def _outside(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """A tensor without memory, of a class that serves all calls with it; its attributes come with its state."""
    return adjoin.Tensor._make_wrapper_subclass(
        cls, size, strides=stride, storage_offset=storage_offset, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def _sparse_tensor(layout, data):
    """A sparse tensor of PyTorch's; its parts are checked like any other's."""
    from . import _sparse

    if layout is adjoin.sparse_coo:
        indices, values, size, *coalesced = data
        return _sparse.sparse_coo_tensor(indices, values, size, is_coalesced=bool(coalesced and coalesced[0]))
    return _sparse.sparse_compressed_tensor(*data[:3], data[3], layout=layout)


def _nested():
    """Nested tensors are loaded with the first file that has one."""
    from .nested import _files

    return _files


def _attributes(state):
    """The attributes among what an object's state is: a dict, or (a dict or None, slots)."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    found = {}
    for part in parts:
        if part is not None and not isinstance(part, dict):
            raise pickle.UnpicklingError(f"load: the state of an object is a {type(part).__name__}, not a dict")
        found.update(part or {})
    return found


def _stated(tensor, state):
    """The tensor with the state that a file has for it."""
    if type(tensor).__setstate__ is adjoin.Tensor.__setstate__:
        _attributes(state)  # is it one?
    set_state(tensor, state)
    return tensor


_KNOWN = {
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._utils._rebuild_sparse_tensor": _sparse_tensor,
    "torch._utils._rebuild_wrapper_subclass": _outside,
    "torch.serialization._get_layout": _layout,
    "adjoin._tensor._rebuild_parts": _parts,
    "torch.Size": adjoin.Size,
    "torch.Tensor": adjoin.Tensor,
    "torch.device": _device,
    "_codecs.encode": _encode,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.complex": complex,
}


class Loading:
    """Decides what becomes of what a file names."""

    tensor_v1 = UnknownClass("torch._utils", "_rebuild_tensor")
    tensor_v2 = UnknownClass("torch._utils", "_rebuild_tensor_v2")
    tensor_v3 = UnknownClass("torch._utils", "_rebuild_tensor_v3")
    typed = UnknownClass("torch._tensor", "_rebuild_from_type_v2")

    def __init__(self, weights_only, map_location):
        self.weights_only, self.map_location = weights_only, map_location
        self.arrays = None  # NumPy's, where the file has some
        self.devices = {}  # location -> device, of those seen
        self.by_name = {
            **{f"{c.module}.{c.name}": c for c in (self.tensor_v1, self.tensor_v2, self.tensor_v3, self.typed)},
        }

    # Names

    def find(self, module, name):
        """The thing of a name; a refusal or an inert class for what nobody has allowed."""
        module, name = _modern(module, name)
        full = f"{module}.{name}"
        if full in self.by_name:
            return self.by_name[full]
        if full in _KNOWN:
            return _KNOWN[full]
        if "nested" in full and full in _nested().names:
            return _nested().names[full]
        if full in allowed and not (self.weights_only and module in _BLOCKED):
            return allowed[full]
        if module == "torch" or module.startswith("torch."):
            ours = full.replace("torch", "adjoin", 1)
            if ours in allowed:
                return allowed[ours]
            if name in STORAGES:
                return StorageType(name)
            known = getattr(_C, name, None) if module == "torch" else None
            if isinstance(known, (adjoin.dtype, adjoin.memory_format)):
                return known
        if not self.weights_only and module.partition(".")[0] == "numpy" and (known := self.of_numpy(name)) is not None:
            return known
        return self.unknown(module, name)

    def of_numpy(self, name):
        """NumPy's function or class, or None, also where NumPy is not installed."""
        if self.arrays is None:
            from ._pt_numpy import Arrays

            try:
                self.arrays = Arrays()
            except ImportError:
                return None
        return self.arrays.find(name)

    def unknown(self, module, name):
        if self.weights_only:
            if _is_harmful(module, name):
                raise pickle.UnpicklingError(
                    f"load: Weights only load failed: the file names {module}.{name}, which is not allowed and no file of tensors needs: it may be meant to "
                    "harm, so load it with no other reader; get an inert record by weights_only=False"
                )
            raise pickle.UnpicklingError(
                f"load: Weights only load failed: the file names {module}.{name}, which is not allowed with weights_only=True; if you trust it, "
                f"allow it by adjoin.serialization.add_safe_globals([{name.rpartition('.')[2]}]), or get an inert record by "
                "weights_only=False"
            )
        return UnknownClass(module, name)

    # Calls

    def call(self, f, args):
        if f is self.typed:
            return self.subclass(*args)
        if f is set or f is bytearray or f is complex or f in (collections.OrderedDict, collections.Counter):
            return self.plain(f, args)
        if isinstance(f, UnknownClass):
            self.refuse_call(f)
            return UnknownObject(f, args)
        if self.arrays is not None and f in self.arrays.calls:
            return f(*args)
        if f in _ALLOWED_CALLS or getattr(f, "makes_nested", False) or any(f is known for known in allowed.values()):
            return f(*args)
        raise pickle.UnpicklingError(f"load: the file calls {f!r}, which is no function that it may call")

    def refuse_call(self, f):
        if self.weights_only:
            raise pickle.UnpicklingError(
                f"load: the file calls {f.module}.{f.name} with arguments that Adjoin does not know"
            )

    def plain(self, f, args):
        """A container of what the file has given, never one of a size that it merely claims."""
        if f is bytearray and any(not isinstance(a, (str, bytes)) for a in args):
            raise pickle.UnpicklingError("load: a bytearray is made of something else than bytes")
        if f is not complex and f is not bytearray and any(not isinstance(a, (list, tuple, dict)) for a in args):
            raise pickle.UnpicklingError(f"load: a {f.__name__} is made of something else than its items")
        return f(*args)

    def subclass(self, f, cls, args, state):
        if getattr(f, "makes_nested", False):
            return f(*args)
        rebuilt = {self.tensor_v2: 0, self.tensor_v3: 1}.get(f)
        if rebuilt is not None:
            made = _C.pt_rebuild(self.file, rebuilt, args)
        elif f in (_parameter, _parameter_with_state, _meta_tensor, _parts):
            made = f(*args)
        elif f is _outside and args and args[0] is cls:
            if isinstance(cls, UnknownClass):
                record = UnknownObject(cls, args[1:])
                record.state = state
                return record
            made = f(*args)
        else:
            raise pickle.UnpicklingError(f"load: a tensor is made by {f!r}, which is no function that makes tensors")
        if isinstance(cls, UnknownClass):
            record = UnknownObject(cls, (made,))
            record.state = state
            return record
        if cls is not adjoin.Tensor and getattr(cls, "is_nested", None) is not None and cls in _nested().classes:
            return _nested().of_file(cls, made, _attributes(state))
        if cls is not adjoin.Tensor and type(made) is not cls:
            if not (isinstance(cls, type) and issubclass(cls, adjoin.Tensor)):
                raise pickle.UnpicklingError(f"load: {cls!r} is no class of tensors")
            made = made.as_subclass(cls)
        return _stated(made, state)

    def make(self, cls, args, kwargs):
        if isinstance(cls, UnknownClass):
            self.refuse_call(cls)
            return UnknownObject(cls, args, kwargs)
        if cls is adjoin.Size or cls in (collections.OrderedDict, collections.Counter, set):
            return self.call(cls, args)
        if isinstance(cls, type) and any(cls is known for known in allowed.values()):
            return cls.__new__(cls, *args, **(kwargs or {}))
        raise pickle.UnpicklingError(f"load: the file makes a {cls!r}, which it may not")

    def build(self, obj, state):
        if isinstance(obj, UnknownObject):
            obj.state = state
        elif self.arrays is not None and self.arrays.holds(obj):
            obj.__setstate__(state)
        elif isinstance(obj, adjoin.Tensor):
            _stated(obj, state)
        elif type(obj) in (collections.OrderedDict, collections.Counter):
            obj.__dict__.update(_attributes(state))
        elif not any(type(obj) is known for known in allowed.values()):
            raise pickle.UnpicklingError(f"load: the file gives a state to a {type(obj).__name__}, which it may not")
        elif hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            for name, value in _attributes(state).items():
                setattr(obj, name, value)

    def extend(self, obj, items):
        if isinstance(obj, UnknownObject):
            obj.items.extend(items)
        elif any(type(obj) is known for known in allowed.values()):
            obj.extend(items) if hasattr(obj, "extend") else [obj.append(item) for item in items]
        else:
            raise pickle.UnpicklingError(f"load: the file appends to a {type(obj).__name__}")

    def set_items(self, obj, flat):
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        if isinstance(obj, UnknownObject):
            obj.pairs.extend(pairs)
        elif type(obj) is collections.Counter or any(type(obj) is known for known in allowed.values()):
            for key, value in pairs:
                obj[key] = value
        else:
            raise pickle.UnpicklingError(f"load: the file sets items of a {type(obj).__name__}")

    # Places

    def place(self, base, location):
        """The storage's tensor on the device where it belongs."""
        if is_skipping():
            base = adjoin.zeros_like(base)
        where = self.map_location
        if isinstance(where, dict):
            location, where = where.get(location, location), None
            location = location if isinstance(location, str) else str(location)
        if callable(where):
            return self.placed_by(where, base, location)
        if packages:
            known = by_package(adjoin.UntypedStorage(base), location if where is None else str(where))
            if known is not None:
                return known._all().view(base.dtype)
        device = where if where is not None else self.device(location)
        return base if adjoin.device(device).type == "cpu" else base.to(device)

    def placed_by(self, where, base, location):
        made = where(adjoin.UntypedStorage(base), location)
        if made is None:
            device = self.device(location)
        elif isinstance(made, adjoin.Tensor):
            device = made.device
        else:
            device = made.device
        return base if adjoin.device(device).type == "cpu" else base.to(device)

    def device(self, location):
        """A location is a hint: of a device that is not here, the host takes the place."""
        if location not in self.devices:
            self.devices[location] = _present(location)
        return self.devices[location]


_ALLOWED_CALLS = (
    _parameter, _parameter_with_state, _meta_tensor, _parts, _sparse_tensor, _layout, _encode, _device, adjoin.Size,
)  # fmt: skip


def _present(location):
    if location == "cpu":
        return "cpu"
    try:
        adjoin.empty(0, device=location)
        return location
    except (RuntimeError, ImportError):
        warnings.warn(
            f"load: tensors of the file belong on {location!r}, which is not here; they stay on the host "
            "(map_location='cpu' says so without this warning)",
            stacklevel=2,
        )
        return "cpu"


def _modern(module, name):
    """A name as Python 3 has it."""
    module, name = pickle._compat_pickle.NAME_MAPPING.get((module, name), (module, name))
    return pickle._compat_pickle.IMPORT_MAPPING.get(module, module), name


def unpickled(file, loading, pickle_module, arguments):
    """By an unpickler of the caller's, who may import and run what the file names.

    Only the unpickler holds the file: a class is freed when the collector comes by, and the file should not wait for it.
    """

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            file, loading = self.adjoin_file
            modern = ".".join(_modern(module, name))
            if modern in _BY_UNPICKLER:
                return lambda *args: _C.pt_rebuild(file, _BY_UNPICKLER[modern], args)
            if modern == "torch._tensor._rebuild_from_type_v2":
                return lambda f, cls, args, state: _with_state(f(*args), cls, state)
            if modern in _KNOWN or module.startswith("torch") and name in STORAGES:
                return loading.find(module, name)
            if module == "torch" and isinstance(getattr(_C, name, None), (adjoin.dtype, adjoin.memory_format)):
                return getattr(_C, name)
            if module == "torch" or module.startswith("torch."):
                module = "adjoin" + module[5:]
            return super().find_class(module, name)

        def persistent_load(self, pid):
            if isinstance(pid, tuple):  # of a file of Python 2, read by encoding="bytes"
                pid = tuple(part.decode("ascii") if isinstance(part, bytes) else part for part in pid)
            return _C.pt_storage(self.adjoin_file[0], pid)

    unpickler = Unpickler(io.BytesIO(_C.pt_pickle(file, loading)), **arguments)
    unpickler.adjoin_file = file, loading
    return unpickler.load()


def _with_state(made, cls, state):
    return _stated(made if type(made) is cls else made.as_subclass(cls), state)


_BY_UNPICKLER = {
    "torch._utils._rebuild_tensor": 0, "torch._utils._rebuild_tensor_v2": 0, "torch._utils._rebuild_tensor_v3": 1,
}  # fmt: skip

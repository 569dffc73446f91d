"""frontends/python/stubs/known.py: types of what is written in C++ or without annotations: by name, where one holds for all."""

# What _C offers; a line each, without "def".
FUNCTIONS = {
    "tensor": "(data: Any, *, dtype: _dtype | None = None, device: _Device | None = None, requires_grad: builtins.bool = False) -> Tensor",
    "as_tensor": "(data: Any, dtype: _dtype | None = None, device: _Device | None = None) -> Tensor",
    "asarray": "(obj: Any, *args: Any, **kwargs: Any) -> Tensor",
    "from_numpy": "(ndarray: Any, /) -> Tensor",
    "frombuffer": "(buffer: Any, *args: Any, **kwargs: Any) -> Tensor",
    "from_dlpack": "(ext_tensor: Any, *args: Any, **kwargs: Any) -> Tensor",
    "promote_types": "(type1: _dtype, type2: _dtype) -> _dtype",
    "can_cast": "(from_: _dtype, to: _dtype) -> builtins.bool",
    "get_default_dtype": "() -> _dtype",
    "set_default_dtype": "(d: _dtype) -> None",
    "get_default_device": "() -> _device",
    "get_num_threads": "() -> builtins.int",
    "set_num_threads": "(n: builtins.int) -> None",
    "is_grad_enabled": "() -> builtins.bool",
    "is_inference_mode_enabled": "() -> builtins.bool",
    "load_plugin": "(path: builtins.str) -> Any",
    "manual_seed": "(seed: builtins.int) -> Generator",
}
# Attributes of Tensor that are neither ops nor Python; the flag: may be assigned.
PROPERTIES = {
    "shape": ("Size", False), "dtype": ("_dtype", False), "device": ("_device", False), "layout": ("_layout", False),
    "ndim": ("builtins.int", False), "itemsize": ("builtins.int", False), "nbytes": ("builtins.int", False),
    "output_nr": ("builtins.int", False), "_version": ("builtins.int", False), "requires_grad": ("builtins.bool", True),
    "grad": ("Tensor | None", True), "data": ("Tensor", True), "is_leaf": ("builtins.bool", False),
    "retains_grad": ("builtins.bool", False), **{n: ("Tensor", False) for n in ("T", "mT", "H", "mH")},
    **{n: ("Tensor", True) for n in ("real", "imag")},
    **{"is_" + n: ("builtins.bool", False) for n in ("cpu", "cuda", "meta", "sparse", "sparse_csr", "quantized", "nested", "mkldnn")},
}  # fmt: skip
SELF = "(self) -> Tensor"
METHODS = {
    "item": "(self) -> Any", "tolist": "(self) -> Any", "numpy": "(self, *, force: builtins.bool = False) -> Any",
    "dim": "(self) -> builtins.int", "ndimension": "(self) -> builtins.int", "numel": "(self) -> builtins.int",
    "nelement": "(self) -> builtins.int", "element_size": "(self) -> builtins.int", "data_ptr": "(self) -> builtins.int",
    "storage_offset": "(self) -> builtins.int", "is_contiguous": "(self, memory_format: _memory_format = ...) -> builtins.bool",
    "is_floating_point": "(self) -> builtins.bool", "is_complex": "(self) -> builtins.bool",
    "is_signed": "(self) -> builtins.bool", "is_inference": "(self) -> builtins.bool",
    "backward": "(self, gradient: Tensor | None = None, retain_graph: builtins.bool | None = None, "
                "create_graph: builtins.bool = False, inputs: Any = None) -> None",
    "to": "(self, *args: Any, **kwargs: Any) -> Tensor", "cpu": SELF, "detach": SELF, "detach_": SELF,
    "cuda": "(self, *args: Any, **kwargs: Any) -> Tensor", "requires_grad_": "(self, requires_grad: builtins.bool = True) -> Tensor",
    "retain_grad": "(self) -> None", "as_subclass": "(self, cls: Any) -> Any",
    **{n: SELF for n in ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble")},
    **{n: "(self, *args: Any, **kwargs: Any) -> Tensor" for n in (
        "new_empty", "new_zeros", "new_ones", "new_full", "contiguous", "clone", "copy_", "fill_", "zero_", "type_as",
        "new_tensor", "view_as", "expand_as")},
}  # fmt: skip
_UNARY = ("neg", "pos", "abs", "invert")
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor")
OPERATORS = {
    **{f"__{n}__": SELF for n in _UNARY},
    **{f"__{side}{n}__": "(self, other: Any) -> Tensor" for n in _BINARY for side in ("", "r", "i")},
    **{f"__{n}__": "(self, other: Any) -> Tensor" for n in ("eq", "ne", "lt", "le", "gt", "ge")},
    "__getitem__": "(self, index: Any) -> Tensor", "__setitem__": "(self, index: Any, value: Any) -> None",
    "__iter__": "(self) -> Iterator[Tensor]", "__len__": "(self) -> builtins.int", "__bool__": "(self) -> builtins.bool",
    "__int__": "(self) -> builtins.int", "__float__": "(self) -> builtins.float", "__index__": "(self) -> builtins.int",
    "__complex__": "(self) -> builtins.complex", "__contains__": "(self, element: Any) -> builtins.bool",
    "__hash__": "(self) -> builtins.int",
}  # fmt: skip
# Of any class: what a function of this name returns.
RETURNS = {
    "__init__": "None", "__repr__": "builtins.str", "__str__": "builtins.str", "__len__": "builtins.int",
    "__hash__": "builtins.int", "__contains__": "builtins.bool", "__eq__": "builtins.bool", "__ne__": "builtins.bool",
    "__dir__": "builtins.list[builtins.str]", "__setattr__": "None", "__delattr__": "None", "__setitem__": "None", "__delitem__": "None",
    "__enter__": "Any", "__exit__": "None", "__bool__": "builtins.bool", "__setstate__": "None", "__iter__": "Iterator[Any]",
    "extra_repr": "builtins.str", "zero_grad": "None", "reset_parameters": "None", "add_param_group": "None",
    "register_buffer": "None", "register_parameter": "None", "add_module": "None",
    "parameters": "Iterator[Any]", "named_parameters": "Iterator[builtins.tuple[builtins.str, Any]]",
    "named_modules": "Iterator[builtins.tuple[builtins.str, Any]]", "modules": "Iterator[Any]", "children": "Iterator[Any]",
}  # fmt: skip
RETURNS_SELF = {"train", "eval", "to", "half", "float", "double", "bfloat16", "cpu", "cuda", "requires_grad_", "apply"}
# Modules whose functions return a tensor each, and other functions.
OF_TENSORS = {"adjoin.nn.functional", *(f"adjoin.nn._functional.{m}" for m in ("chances", "drawn", "images", "losses"))}
FUNCTIONS = {
    "adjoin._overloads.detach": "Tensor", "adjoin._overloads.poisson": "Tensor",
    **{f"adjoin._overloads.{n}": "builtins.tuple[Tensor, ...]" for n in ("gradient", "split")},
    **{f"adjoin._overloads.{n}": "builtins.tuple[Tensor, Tensor]" for n in ("std_mean", "var_mean")},
}  # fmt: skip

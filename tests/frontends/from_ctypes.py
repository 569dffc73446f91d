"""tests/frontends/from_ctypes.py: the contract from a language that has no binding: Python's ctypes, without the package
adjoin. An op is defined here, with its shape rule, kernel and derivative; then a parameter is trained for one step.

python from_ctypes.py LIBADJOIN.so
"""

import ctypes as C
import sys

P, I32, U32, I64, U64 = C.c_void_p, C.c_int32, C.c_uint32, C.c_int64, C.c_uint64


def struct(name, *fields):
    return type(name, (C.Structure,), {"_fields_": list(fields)})


Str = struct("Str", ("data", C.c_char_p), ("len", U64))
Device = struct("Device", ("type", I32), ("id", I32))
DType = struct("DType", ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16))
Dense = struct("Dense", ("data", P), ("device", Device), ("ndim", I32), ("dtype", DType), ("shape", C.POINTER(I64)),
               ("strides", C.POINTER(I64)), ("byte_offset", U64))  # fmt: skip
Tensor = struct("Tensor", ("refs", U64), ("type", I32), ("flags", U32), ("dl", Dense), ("keys", U64))
TensorP = C.POINTER(Tensor)


class Number(C.Union):
    _fields_ = [("i", I64), ("f", C.c_double), ("tensor", TensorP)]


Value = struct("Value", ("tag", I32), ("aux", U32), ("v", Number))
BOOL, INT, FLOAT, TENSOR = 1, 2, 3, 64
Call = struct("Call", ("size", U32), ("flags", U32), ("core", P), ("op", P), ("args", C.POINTER(Value)),
              ("rets", C.POINTER(Value)), ("nargs", U32), ("nrets", U32))  # fmt: skip
GradCall = struct("GradCall", ("size", U32), ("flags", U32), ("core", P), ("op", P), ("autograd", P),
                  ("saved", C.POINTER(Value)), ("grad_out", C.POINTER(TensorP)), ("grad_in", C.POINTER(TensorP)))  # fmt: skip
Backward = struct("Backward", ("size", U32), ("flags", U32), ("roots", P), ("grads", P), ("inputs", P), ("out", P),
                  ("nroots", U32), ("ninputs", U32))  # fmt: skip
Save = struct("Save", ("what", I32), ("index", I32), ("only_for", U64))
OpDef = struct("OpDef", ("size", U32), ("flags", U32), *((n, Str) for n in ("schema", "doc", "kind", "tags", "test")),
               ("infer", P), ("body", P), ("self", P))  # fmt: skip
KernelDef = struct("KernelDef", ("size", U32), ("flags", U32), ("op", Str), ("key", Str), ("schema", Str), ("dtypes", U64),
                   ("priority", I32), ("reserved", U32), ("fn", P), ("self", P), ("can_run", P))  # fmt: skip
VjpDef = struct("VjpDef", ("size", U32), ("flags", U32), ("op", Str), ("save", C.POINTER(Save)), ("nsave", U32),
                ("reserved", U32), ("save_more", P), ("vjp", P), ("self", P), ("drop", P), ("key", Str))  # fmt: skip
Env = struct("Env", ("size", U32), ("minor", U32), ("core", P), ("query", P), ("registrar", P))

# A table is its size, its minor version, then functions in the order of the header.
CORE = """status_new status_with_cause status_code status_kind status_message status_where status_cause status_free retain
  release type_register type_find type_name object_new object_payload string_new string_get list_new list_get
  complex_new complex_get function_new function_call stream_new stream_get dtype_register dtype_info dtype_find
  dtype_promote dtype_can_cast default_dtype set_default_dtype tensor_empty tensor_view tensor_from_memory
  tensor_from_dlpack tensor_to_dlpack tensor_version tensor_bump_version tensor_storage tensor_resize tensor_set
  tensor_copy_bytes tensor_numel tensor_unique frontend_register frontend_word set_frontend_word set_line get_line
  parallel_for num_threads set_num_threads thread_index interrupted log device_find"""
OPS = "def_op def_kernel def_fallback def_key key_mask find_op call redispatch declare"
AUTOGRAD = """def_vjp save grad_mode set_grad_mode inference_mode set_inference_mode set_anomaly_mode
  set_requires_grad grad set_grad retain_grad retains_grad detach detach_in_place data set_data base backward"""


class Table:
    def __init__(self, name, words):
        lib.aj_get_interface.restype = P
        self.at = lib.aj_get_interface(name, 1)
        assert self.at, f"there is no interface {name}"
        self.names = words.split()

    def __call__(self, name, *args, result=P):
        """Calls a function of the table; one that returns a status raises what it says."""
        address = P.from_address(self.at + 8 + 8 * self.names.index(name)).value
        types = [type(a) if isinstance(a, (C._SimpleCData, C.Structure, C.Array)) else P for a in args]
        got = C.CFUNCTYPE(result, *types)(address)(*args)
        if result is P and got:
            message = core("status_message", P(got), result=Str)
            text = C.string_at(message.data, message.len).decode()
            core("status_free", P(got), result=None)
            raise RuntimeError(text)
        return got


def text(s):
    return Str(s.encode(), len(s))


def value(x):
    if isinstance(x, TensorP):
        return Value(TENSOR, 0, Number(tensor=x))
    return Value(FLOAT, 0, Number(f=x)) if isinstance(x, float) else Value(INT, 0, Number(i=x))


def call(name, *args, into=None):
    """An op by name; one result, owned. into: the form in place."""
    values, ret = (Value * len(args))(*map(value, args)), value(into) if into else Value()
    ops("call", P(ops("find_op", text(name), result=U64)), values, U32(len(args)), C.byref(ret), U32(1))
    return ret.v.tensor


def make(numbers):
    like = Dense(ndim=1, dtype=DType(2, 32, 1), shape=(I64 * 1)(len(numbers)))
    core("device_find", text("cpu"), C.byref(like, Dense.device.offset))
    t = TensorP()
    core("tensor_empty", C.byref(like), U64(0), C.byref(t))
    core("tensor_copy_bytes", t, (C.c_float * len(numbers))(*numbers), U64(4 * len(numbers)), I32(0))
    return t


def numbers(t):
    n = core("tensor_numel", t, result=I64)
    room = (C.c_float * n)()
    core("tensor_copy_bytes", t, room, U64(4 * n), I32(1))
    return list(room)


def callback(argument):
    """A function for the core: NULL is success, and what Python raises is told, not printed. It has to live as long as the op."""

    def wrap(function):
        def guarded(_, pointer):
            try:
                function(pointer)
                return None
            except Exception as error:
                kind = text(type(error).__name__)
                return core("status_new", I32(2), kind, text(str(error)), b"from_ctypes.py", U64(0), result=U64)

        return C.CFUNCTYPE(P, P, C.POINTER(argument))(guarded)

    return wrap


# The op: by * x^2.


@callback(Call)
def infer(c):
    x = c[0].args[0].v.tensor[0].dl
    ops("declare", c, U32(0), x.dtype, I32(x.ndim), x.shape, None)


@callback(Call)
def kernel(c):
    x, by, y = c[0].args[0].v.tensor, c[0].args[1].v.f, c[0].rets[0].v.tensor
    if by < 0:
        raise ValueError(f"scaled_square: by is {by}, wanted: 0 or more")
    squares = [by * v * v for v in numbers(x)]
    core("tensor_copy_bytes", y, (C.c_float * len(squares))(*squares), U64(4 * len(squares)), I32(0))


@callback(GradCall)
def vjp(g):
    """g * 2 by x, by ops: it can be differentiated again."""
    twice = call("mul", g[0].saved[0].v.tensor, 2 * g[0].saved[1].v.f)
    g[0].grad_in[0] = call("mul", g[0].grad_out[0], twice)
    core("release", twice, result=None)


@callback(Env)
def init(env):
    registrar, name = P(env[0].registrar), text("ctypes::scaled_square")
    schema = text("ctypes::scaled_square(Tensor input, float by=1.0) -> Tensor")
    op = OpDef(C.sizeof(OpDef), schema=schema, doc=text("by * input^2"), infer=C.cast(infer, P))
    ops("def_op", registrar, C.byref(op))
    k = KernelDef(C.sizeof(KernelDef), op=name, key=text("cpu"), dtypes=1 << 8, fn=C.cast(kernel, P))
    ops("def_kernel", registrar, C.byref(k))
    saves = (Save * 2)(Save(0, 0), Save(0, 1))
    derivative = VjpDef(C.sizeof(VjpDef), op=name, save=saves, nsave=2, vjp=C.cast(vjp, P))
    autograd("def_vjp", registrar, C.byref(derivative))


def main():
    Table(b"x.plugins", "replace define")("define", text("ctypes"), init, None)
    w, x = make([1.0, -2.0, 3.0]), make([0.5, 1.5, -1.0])
    autograd("set_requires_grad", w, I32(1))
    for step in range(2):
        product = call("mul", w, x)
        square = call("ctypes::scaled_square", product, 3.0) if step == 0 else call("ctypes::scaled_square", product)
        loss = call("sum", square)
        print("loss", *numbers(loss))
        roots = (TensorP * 1)(loss)
        autograd("backward", C.byref(Backward(C.sizeof(Backward), roots=C.cast(roots, P), nroots=1)))
        grad = TensorP()
        autograd("grad", w, C.byref(grad))
        print("grad", *numbers(grad))
        mode = autograd("set_grad_mode", I32(0), result=I32)
        for t in (product, square, loss, grad, call("sub", w, grad, 0.125, into=w)):
            core("release", t, result=None)
        autograd("set_grad", w, None)
        autograd("set_grad_mode", I32(mode), result=I32)
        print("w", *numbers(w))
    for wrong in (lambda: call("matmul", make([1.0, 2.0]), make([1.0, 2.0, 3.0])),
                  lambda: call("ctypes::scaled_square", x, -1.0)):  # fmt: skip
        try:
            wrong()
        except RuntimeError as error:
            print("error", error)


lib = C.CDLL(sys.argv[1])
core, ops, autograd = Table(b"aj.core", CORE), Table(b"aj.op", OPS), Table(b"aj.autograd", AUTOGRAD)
main()

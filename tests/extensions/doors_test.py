"""tests/extensions/doors_test.py: each op of the examples runs and is differentiated twice from Python, C++ and Lua."""

import re
import shutil
import subprocess

import pytest
from installed import SOURCES, flags

import adjoin as T
from adjoin.autograd import gradcheck, gradgradcheck

# The op, its value at 0.5, its first and second derivative there.
OPS = [
    ("squash", "squash::squash", 1 / 3, 1 / 2.25, -2 / 3.375),
    ("softsign", "softsign::softsign", 1 / 3, 1 / 2.25, -2 / 3.375),
    ("bounded", "bounded::clip", 0.5, 1.0, 0.0),
]


@pytest.mark.parametrize("name, op, y, dy, ddy", OPS)
def test_from_python(built, name, op, y, dy, ddy):
    T.load_plugin(str(built / f"libaj_{name}.so"))
    space, short = op.split("::")
    f = getattr(getattr(T.ops, space), short)
    x = T.tensor(0.5, dtype=T.float64, requires_grad=True)
    (g,) = T.autograd.grad(f(x), x, create_graph=True)
    assert f(x).item() == pytest.approx(y) and g.item() == pytest.approx(dy)
    if g.requires_grad:
        (h,) = T.autograd.grad(g, x)
        assert h.item() == pytest.approx(ddy)
    x = T.linspace(-2.9, 3, 12, dtype=T.float64).reshape(3, 4).requires_grad_()
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))
    for case in (x.t(), x[:, ::2], x[1:1], x[0, 0]):
        assert f(case).shape == case.shape and T.allclose(f(case), f(case.contiguous()))


def test_the_hook_shortens_the_gradient(built):
    T.load_plugin(str(built / "libaj_bounded.so"))
    x = T.ones(3, requires_grad=True)
    (T.ops.bounded.calm(x, norm=0.5) * 100).sum().backward()
    assert x.grad.norm().item() == pytest.approx(0.5)
    with pytest.raises(RuntimeError, match="clip: limit is -1.*more than 0"):
        T.ops.bounded.clip(x, limit=-1)


CPP = """
#include <adjoin/adjoin.hpp>
#include <cstdio>
using namespace adjoin;
Tensor visible(std::string_view name, const Tensor& x) {  // without results for the derivative alone
  const aj_op* op = kit::dispatch().find_op(kit::str(name));
  aj_op_info info{};
  info.struct_size = sizeof info;
  kit::check(kit::dispatch().op_info(op, &info));
  aj_value arg = kit::value(x), rets[8] = {};
  kit::check(kit::dispatch().call(op, &arg, 1, rets, info.nresults));
  for (uint32_t i = 1; i < info.nresults; ++i) kit::drop(rets[i]);
  return Tensor::steal(rets[0].v.tensor);
}
int main(int, char** argv) {
  for (int i = 1; argv[i]; i += 2) {
    kit::check(aj_load_plugin(argv[i]));
    Tensor x = full({}, 0.5, float64).requires_grad_();
    Tensor y = visible(argv[i + 1], x);
    Tensor g = grad({&y, 1}, {&x, 1}, true)[0];
    Tensor h = g.requires_grad() ? grad({&g, 1}, {&x, 1})[0] : zeros({});
    std::printf("%.12g %.12g %.12g\\n", y.item<double>(), g.item<double>(), h.item<double>());
  }
}
"""


def lines_of(built, ops=OPS):
    """Arguments of the programs, and what they print."""
    words = [w for name, op, *_ in ops for w in (str(built / f"libaj_{name}.so"), op)]
    return words, [numbers for _, _, *numbers in ops]


def check(done, wanted):
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [[float(w) for w in line.split()] for line in done.stdout.splitlines()]
    assert len(rows) == len(wanted)
    for row, numbers in zip(rows, wanted, strict=True):
        assert row == pytest.approx(numbers)


def test_from_cpp(built, tmp_path):
    (tmp_path / "t.cpp").write_text(CPP)
    lib = flags("--libdir")[0]
    line = ["c++", "-std=c++20", tmp_path / "t.cpp", *flags("--cflags"), f"-L{lib}", f"-Wl,-rpath,{lib}", "-ladjoin"]
    subprocess.run([*line, "-o", tmp_path / "t"], check=True)
    words, wanted = lines_of(built)
    check(subprocess.run([tmp_path / "t", *words], capture_output=True, text=True), wanted)


LUA = """
local ffi = require("ffi")
ffi.cdef(io.open(arg[1]):read("*a"))
local aj = ffi.load(arg[2])
local core = ffi.cast("const aj_core*", aj.aj_get_interface("aj.core", 1))
local op = ffi.cast("const aj_dispatch*", aj.aj_get_interface("aj.op", 1))
local tape = ffi.cast("const aj_autograd*", aj.aj_get_interface("aj.autograd", 1))
local function str(s) return ffi.new("aj_str", s, #s) end
local function check(status)
  if status ~= nil then local m = core.status_message(status); error(ffi.string(m.data, m.len)) end
end
local function call(name, ...)
  local args, rets = ffi.new("aj_value[8]"), ffi.new("aj_value[8]")
  for i, t in ipairs({...}) do args[i - 1].tag = ffi.C.AJ_TENSOR; args[i - 1].v.tensor = t end
  local found = op.find_op(str(name))
  local info = ffi.new("aj_op_info"); info.struct_size = ffi.sizeof(info)
  check(op.op_info(found, info))
  check(op.call(found, args, select("#", ...), rets, info.nresults))
  return rets[0]
end
local function grad(y, x)
  local b, out = ffi.new("aj_backward"), ffi.new("aj_tensor*[1]")
  b.struct_size, b.flags = ffi.sizeof(b), 3  -- keep the graph, make one of the gradients
  local roots, inputs = ffi.new("aj_tensor*[1]", y), ffi.new("aj_tensor*[1]", x)
  b.roots, b.nroots, b.inputs, b.ninputs, b.out = roots, 1, inputs, 1, out
  check(tape.backward(b))
  return out[0]
end
local function number(t) return call("item", t).v.f end
for i = 3, #arg, 2 do
  check(aj.aj_load_plugin(arg[i]))
  local half, memory = ffi.new("DLTensor"), ffi.new("double[1]", 0.5)
  half.device.device_type, half.dtype.code, half.dtype.bits, half.dtype.lanes = 1, 2, 64, 1
  half.data = memory
  local t = ffi.new("aj_tensor*[1]")
  check(core.tensor_from_memory(half, 8, 0, nil, nil, t))
  local x = t[0]
  check(tape.set_requires_grad(x, 1))
  local y = call(arg[i + 1], x).v.tensor
  local g = grad(y, x)
  local second = bit.band(g.obj.flags, ffi.C.AJ_TENSOR_REQUIRES_GRAD) ~= 0
  print(string.format("%.12g %.12g %.12g", number(y), number(g), second and number(grad(g, x)) or 0))
end
"""


def declarations(tmp_path):
    """The contract as LuaJIT reads it: preprocessed, without what the system's headers declare."""
    (tmp_path / "t.c").write_text("#include <adjoin/abi/capi.h>\n")
    line = ["cc", "-E", *flags("--cflags"), str(tmp_path / "t.c")]
    ours, kept = False, []
    for text in subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines():
        if text.startswith("#"):
            ours = "adjoin/abi/" in text
        elif ours and "_Static_assert" not in text:
            kept.append(re.sub(r"__attribute__\s*\(\(.*?\)\)\)?", "", text))
    return "\n".join(kept)


@pytest.mark.skipif(not shutil.which("luajit"), reason="luajit is not installed")
def test_from_lua(built, tmp_path):
    (tmp_path / "t.h").write_text(declarations(tmp_path))
    (tmp_path / "t.lua").write_text(LUA)
    words, wanted = lines_of(built)
    line = ["luajit", tmp_path / "t.lua", tmp_path / "t.h", flags("--libdir")[0] + "/libadjoin.so", *words]
    check(subprocess.run(line, capture_output=True, text=True), wanted)


def test_sizes():
    """As short as they claim to be."""
    assert len((SOURCES / "squash.c").read_text().splitlines()) <= 60
    assert len((SOURCES / "softsign.cpp").read_text().splitlines()) <= 20

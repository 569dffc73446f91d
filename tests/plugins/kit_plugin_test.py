"""tests/plugins/kit_plugin_test.py: a plugin written with the kit alone: functors, lambdas, derivatives, its mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import adjoin
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "abi"))
from abi_tools import INCLUDE

BEGIN = """
#include <adjoin/kit/kit.hpp>
using namespace adjoin::kit;
"""
GOOD = (
    BEGIN
    + """
struct Squash {
  template <class T> AJ_HD T operator()(T x) const { return x / (T(1) + std::abs(x)); }
};
AJ_PLUGIN(.name = "kitgood", .version = "0.1.0", .provides = "ops:kitgood") {
  plugin.op("kitgood::squash(Tensor input) -> Tensor", "input / (1 + |input|).")
      .kind("unary_float")
      .kernel("cpu", unary<Squash, floating>)
      .vjp([](adjoin::Tensor g, Saved x) {
        adjoin::Tensor d = 1 + adjoin::call("abs", x);
        return g / (d * d);
      });
  plugin.op("kitgood::shift(Tensor input, int[]? by=None, *, float scale=1.0) -> Tensor", "scale * input + number of by.")
      .infer(like<0>)
      .kernel("cpu", [](TensorView x, Span by, double scale, Mut<TensorView> out) {
        if (scale < 0) raise(AJ_INVALID_ARGUMENT, "scale must not be negative, it is ", scale);
        visit<floating>(x.dtype(), [&]<class T>() {
          for (int64_t i = 0; i < x.numel(); ++i) out.data<T>()[i] = T(scale) * x.data<T>()[i] + T(by.size());
        });
      })
      .vjp([](adjoin::Tensor g, Skip, Skip, double scale) { return g * scale; });
}
"""
)
MISMATCH = (
    BEGIN
    + """
AJ_PLUGIN(.name = "kitbad", .provides = "ops:kitbad") {
  plugin.op("kitbad::f(Tensor input, int k) -> Tensor", "").infer(like<0>).kernel("cpu", [](TensorView, double, MutView) {});
}
"""
)
WRITES = (
    BEGIN
    + """
AJ_PLUGIN(.name = "kitwrites", .provides = "ops:kitwrites") {
  plugin.op("kitwrites::halve(Tensor input) -> Tensor", "input / 2.")
      .infer(like<0>)
      .kernel("cpu", [](TensorView x, MutView out) {
        for (int64_t i = 0; i < x.numel(); ++i) out.data<float>()[i] = x.data<float>()[i] / 2;
      });
  plugin.op("kitwrites::poke(Tensor input) -> Tensor", "Adds 1 to the first element behind the core's back.")
      .infer(like<0>)
      .kernel("cpu", [](TensorView x, MutView) {
        aj_tensor* t = x.get();
        adjoin::Tensor::view(t).data<float>()[0] += 1;
      });
}
"""
)
CALLS = (
    BEGIN
    + """
#include <tuple>
using adjoin::Tensor;
static void normed(Body& b) {
  Tensor x = b.tensor(0), no;
  auto both = adjoin::call<std::tuple<Tensor, Tensor>>("batch_norm_stats", x, no, no, no, no, true, 0.1, 0.0);
  Tensor one = adjoin::call("batch_norm_stats", x, no, no, no, no, true, 0.1, 0.0);
  adjoin::call<void>("fill_", x, 2.0);
  if (x.dim() != 2 || x.sizes()[1] != 3 || x.data_ptr<float>() != x.data_ptr()) raise(AJ_INTERNAL, "names differ");
  b.ret(0, std::get<0>(both) - one + std::get<1>(both));
}
static void nothing(Body& b) { b.ret(0, adjoin::call("fused_sgd_", b.tensor(0))); }
AJ_PLUGIN(.name = "kitcalls", .provides = "ops:kitcalls") {
  plugin.op("kitcalls::normed(Tensor(a!) input) -> Tensor", "").body(body<normed>);
  plugin.op("kitcalls::nothing(Tensor input) -> Tensor", "").body(body<nothing>);
}
"""
)
LATIN = (
    BEGIN
    + r"""
AJ_PLUGIN(.name = "kitlatin", .provides = "ops:kitlatin") {
  plugin.op("kitlatin::f(Tensor input) -> Tensor", "The caf\xe9 of it.").infer(like<0>).kernel("cpu", [](TensorView, MutView) {
    raise(AJ_INVALID_ARGUMENT, "the caf\xe9 is closed");
  });
}
"""
)
THROWS = BEGIN + 'AJ_PLUGIN(.name = "kitthrows") { throw std::runtime_error("no such luck"); }\n'


def build(folder, name, text):
    source, out = folder / f"{name}.cpp", folder / f"libaj_{name}.so"
    source.write_text(text)
    options = [
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{INCLUDE}",
    ]
    subprocess.run(["c++", *options, str(source), "-o", str(out)], check=True)
    return str(out)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    adjoin.load_plugin(build(tmp_path_factory.mktemp("kit"), "kitgood", GOOD))
    return adjoin.ops.kitgood


def test_a_functor_is_a_kernel_for_every_layout(good):
    x = adjoin.randn(6, 5)
    for t in (x, x.t(), x[::2], x[:, 1], x.half(), adjoin.arange(5)):
        f = t.float()
        assert adjoin.allclose(good.squash(t).float(), f / (1 + f.abs()), atol=1e-3)


def test_a_lambda_is_a_derivative_that_can_be_differentiated(good):
    x = adjoin.randn(5, dtype=adjoin.float64, requires_grad=True)
    assert adjoin.autograd.gradcheck(good.squash, (x,))
    assert adjoin.autograd.gradgradcheck(good.squash, (x,))
    (g,) = adjoin.autograd.grad(good.shift(x, [1, 2], scale=3.0).sum(), x)
    assert g.tolist() == [3.0] * 5


def test_arguments_reach_a_lambda(good):
    assert good.shift(adjoin.ones(3), [4, 5], scale=2.0).tolist() == [4.0] * 3
    assert good.shift(adjoin.ones(3)).tolist() == [1.0] * 3


def test_text_that_is_no_utf8_is_shown_all_the_same(tmp_path):
    adjoin.load_plugin(build(tmp_path, "kitlatin", LATIN))
    with pytest.raises(RuntimeError, match="the caf\ufffd is closed"):
        adjoin.ops.kitlatin.f(adjoin.ones(3))
    assert "The caf\ufffd of it." in adjoin.ops.kitlatin.f.__doc__
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    with pytest.raises(Exception, match="\ufffd") as caught:
        adjoin.load_plugin(folder + b"/libaj_none.so")
    assert not isinstance(caught.value, (UnicodeError, TypeError))


def test_what_a_lambda_throws_is_an_error_that_names_the_op(good):
    with pytest.raises(RuntimeError, match="shift: scale must not be negative, it is -1"):
        good.shift(adjoin.ones(3), scale=-1.0)
    with pytest.raises(NotImplementedError, match="shift: no kernel for int32; it has float32, float64"):
        good.shift(adjoin.ones(3, dtype=adjoin.int32))


def test_parameters_that_do_not_fit_the_schema_are_told_at_load(tmp_path):
    with pytest.raises(
        RuntimeError,
        match=r"f: the kernel's argument 1 wants float Scalar, the schema has int there",
    ):
        adjoin.load_plugin(build(tmp_path, "kitbad", MISMATCH))


def test_what_init_throws_is_the_reason(tmp_path):
    with pytest.raises(RuntimeError, match="kitthrows.*no such luck"):
        adjoin.load_plugin(build(tmp_path, "kitthrows", THROWS))


def test_an_op_is_called_for_as_many_results_as_are_wanted(tmp_path):
    adjoin.load_plugin(build(tmp_path, "kitcalls", CALLS))
    x = adjoin.tensor([[1.0, 2, 3], [3, 4, 8]])
    assert adjoin.ops.kitcalls.normed(x).tolist() == [[2, 3, 5.5]] * 2 and x.tolist() == [[2.0] * 3] * 2
    with pytest.raises(Exception, match="fused_sgd_: "):
        adjoin.ops.kitcalls.nothing(x)


def test_what_a_plugin_writes_reaches_packed_weights(tmp_path):
    adjoin.load_plugin(build(tmp_path, "kitwrites", WRITES))
    x, w = adjoin.randn(40, 256), adjoin.randn(192, 256)
    linear = adjoin.nn.functional.linear
    ops = adjoin.ops.kitwrites
    for write in (lambda w: ops.halve(adjoin.randn(192, 256), out=w), ops.poke, ops.poke):
        before = [linear(x, w) for _ in range(4)][-1]
        write(w)
        for _ in range(3):
            assert adjoin.equal(linear(x, w), linear(x, w.clone()))
        assert not adjoin.equal(linear(x, w), before)

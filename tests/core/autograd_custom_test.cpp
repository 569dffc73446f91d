// tests/core/autograd_custom_test.cpp: hooks, custom nodes, derivatives from
// outside, saved-tensor hooks, looking at graphs.
#include "autograd_fixture.hpp"
#include "core/op/registry.hpp"

namespace adjoin::test {
namespace {

const aj_autograd& table() { return *kit::env.autograd; }

struct Log {
  std::vector<std::string> lines;
  double factor = 1;
  const char* name = "";
};
aj_status* note_tensor(void* self, aj_tensor** g) {
  Log& log = *static_cast<Log*>(self);
  return kit::guard("hook", [&] {
    log.lines.push_back(log.name);
    if (log.factor != 1) *g = (Tensor::view(*g) * log.factor).take();
  });
}
aj_status* note_node(void* self, aj_tensor**, uint32_t, aj_tensor* const*, uint32_t nother) {
  static_cast<Log*>(self)->lines.push_back(nother ? "post" : "pre");
  return nullptr;
}

TEST_F(Tape, HooksRunInOrder) {
  Tensor x = leaf(2), y = x * 2;
  Log log;
  log.name = "y";
  log.factor = 3;
  uint64_t id = 0, unused = 0;
  kit::check(table().hook_tensor(y.get(), AJ_HOOK_TENSOR, note_tensor, &log, nullptr, &id));
  kit::check(table().retain_grad(y.get()));
  aj_node* n = nullptr;
  kit::check(table().tensor_node(y.get(), &n, nullptr));
  kit::check(table().hook_node(n, AJ_HOOK_NODE_PRE, note_node, &log, nullptr, &unused));
  kit::check(table().hook_node(n, AJ_HOOK_NODE_POST, note_node, &log, nullptr, &unused));
  kit::env.core->release(n);
  Log after;
  after.name = "accumulated";
  kit::check(
      table().hook_tensor(x.get(), AJ_HOOK_POST_ACCUMULATE, note_tensor, &after, nullptr, &unused));
  sum(y).backward();
  EXPECT_EQ(log.lines, std::vector<std::string>({"y", "pre", "post"}));
  EXPECT_EQ(after.lines.size(), 1u);
  EXPECT_EQ(elements(y.grad()), Doubles({3, 3}));
  EXPECT_EQ(elements(x.grad()), Doubles({6, 6}));
  kit::check(table().hook_remove(id));
  x.set_grad(Tensor());
  sum(y).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({2, 2}));
}

aj_status* backward_again(void* self, aj_tensor**) {
  return kit::guard("hook", [&] { static_cast<Tensor*>(self)->backward(Tensor(), true); });
}
TEST_F(Tape, AHookMayRunBackwardOnTheSameGraph) {
  Tensor x = leaf(2), y = x * x, root = sum(y), again = sum(y * 1);
  uint64_t id;
  kit::check(table().hook_tensor(root.get(), AJ_HOOK_TENSOR, backward_again, &again, nullptr, &id));
  root.backward();
  EXPECT_EQ(elements(x.grad()), Doubles({4, 8}));
}

int dropped = 0;
aj_status* cube_vjp(void*, aj_grad_call* call) {
  return kit::derive(call,
                     [](kit::Grad& d) { d.set(0, d.grad(0) * d.tensor(0) * d.tensor(0) * 3); });
}
aj_status* wrong_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) { d.set(0, zeros({2}, float64, d.grad(0).device())); });
}
Tensor custom(const Tensor& x, const Tensor& y, aj_status* (*vjp)(void*, aj_grad_call*),
              uint32_t flags = 0) {
  aj_vjp_def def{};
  def.struct_size = sizeof def;
  def.flags = flags;
  def.op = AJ_STR_LIT("squash");
  def.vjp = vjp;
  def.drop = [](void*) { dropped++; };
  aj_tensor* inputs[] = {x.get()};
  aj_node* n = nullptr;
  kit::check(table().node_new(&def, &dropped, inputs, 1, &n));
  aj_value v = kit::value(x);
  kit::check(table().node_save(n, &v, 0));
  kit::check(table().node_attach(n, 0, y.get(), 0));
  kit::env.core->release(n);
  return y;
}
TEST_F(Tape, CustomNodes) {
  dropped = 0;
  {
    Tensor x = leaf(2), y;
    {
      NoGradGuard off;
      y = x * x * x;
    }
    Tensor z = custom(x, y, cube_vjp);
    Tensor g = gradients(sum(z), {x}, AJ_BACKWARD_CREATE_GRAPH)[0];
    EXPECT_EQ(elements(g), Doubles({3, 12}));
    EXPECT_EQ(elements(gradients(sum(g), {x})[0]), Doubles({6, 12}));
    EXPECT_EQ(dropped, 0);
  }
  EXPECT_EQ(dropped, 1);
}

TEST_F(Tape, ChecksWhatADerivativeReturns) {
  Tensor x = leaf(3);
  Tensor z = custom(x, numbers(3), wrong_vjp);
  EXPECT_NE(error_of([&] { sum(z).backward(); })
                .find("squash: its derivative returned a gradient of shape [2] "
                      "for input 0 of shape [3]"),
            std::string::npos);
}

TEST_F(Tape, OnceMeansOnce) {
  Tensor x = leaf(2), z = custom(x, numbers(2), cube_vjp, AJ_VJP_ONCE);
  Tensor g = gradients(sum(z), {x}, AJ_BACKWARD_CREATE_GRAPH)[0];
  EXPECT_TRUE(g.requires_grad());
  EXPECT_NE(error_of([&] { gradients(sum(g), {x}); }).find("cannot be differentiated again"),
            std::string::npos);
}

TEST_F(Tape, AnOpWithoutADerivativeRaises) {
  aj_registrar r("test");
  aj_op_def d{};
  d.struct_size = sizeof d;
  d.schema = AJ_STR_LIT("tapetest::opaque(Tensor input) -> Tensor");
  d.kind = AJ_STR_LIT("unary");
  kit::check(kit::env.op->def_op(&r, &d));
  aj_kernel_def k{};
  k.struct_size = sizeof k;
  k.op = AJ_STR_LIT("tapetest::opaque");
  k.key = AJ_STR_LIT("reference");
  k.fn = [](void*, aj_call*) -> aj_status* { return nullptr; };
  kit::check(kit::env.op->def_kernel(&r, &k));
  kit::check(r.commit());
  Tensor x = leaf(2), y = call("tapetest::opaque", x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_NE(error_of([&] { sum(y).backward(); }).find("tapetest::opaque has no gradient"),
            std::string::npos);
}

int packs = 0, unpacks = 0;
TEST_F(Tape, SavedTensorsPassThroughHooks) {
  auto pack = [](void*, aj_tensor* t, aj_object** out) -> aj_status* {
    packs++;
    kit::env.core->retain(t);
    *out = &t->obj;
    return nullptr;
  };
  auto unpack = [](void*, aj_object* o, aj_tensor** out) -> aj_status* {
    unpacks++;
    kit::env.core->retain(o);
    *out = reinterpret_cast<aj_tensor*>(o);
    return nullptr;
  };
  kit::check(table().push_saved_hooks(pack, unpack, nullptr, nullptr));
  Tensor x = leaf(2), y = sum(exp(x * x));
  kit::check(table().pop_saved_hooks());
  Tensor g = gradients(y, {x}, AJ_BACKWARD_CREATE_GRAPH)[0];
  Tensor h = gradients(sum(g), {x})[0];
  EXPECT_EQ(packs, 3);
  EXPECT_GE(unpacks, 3);
  EXPECT_NEAR(elements(h)[0], 6 * std::exp(1.0),
              1e-12);  // (exp(x^2))'' = (2 + 4 x^2) exp(x^2)
}

TEST_F(Tape, GraphsCanBeLookedAt) {
  Tensor x = leaf(2), y = x * 2;
  aj_node *n = nullptr, *next = nullptr;
  uint32_t result = 7;
  kit::check(table().tensor_node(y.get(), &n, &result));
  EXPECT_EQ(kit::view_of(table().node_name(n)), "mul");
  EXPECT_EQ(result, 0u);
  ASSERT_EQ(table().node_edges(n), 2u);
  kit::check(table().node_edge(n, 0, &next, &result));
  EXPECT_EQ(table().node_variable(next), x.get());
  kit::env.core->release(next);
  kit::check(table().node_edge(n, 1, &next, &result));
  EXPECT_EQ(next, nullptr);
  kit::env.core->release(n);
}

}  // namespace
}  // namespace adjoin::test

// tests/core/autograd_views_test.cpp: views and in-place writes on the tape:
// histories, refusals, derivatives without a formula.
#include "autograd_fixture.hpp"

namespace adjoin::test {
namespace {

TEST_F(Tape, WritingThroughAViewChangesTheBasesHistory) {
  Tensor x = leaf(4), y = x * 1, v = narrow(y, 0, 1, 2);
  mul_(v, 3);
  sum(y * y).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({2, 36, 54, 8}));
}

TEST_F(Tape, WritingTheBaseChangesItsViews) {
  Tensor x = leaf(4), y = x * 1, v = narrow(y, 0, 1, 2), w = select(v, 0, 1);
  mul_(y, 3);
  sum(v * v + w).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({0, 36, 60, 0}));
}

TEST_F(Tape, ABufferStartsToRequireGrad) {
  Tensor x = leaf(2), buffer = zeros({4}, float64, home), v = narrow(buffer, 0, 2, 2);
  copy_(v, x);
  EXPECT_TRUE(buffer.requires_grad());
  sum(buffer * buffer).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({2, 4}));
}

TEST_F(Tape, OverwritingCutsTheOldGradient) {
  Tensor x = leaf(3), y = x * 1, w = leaf(1);
  copy_(narrow(y, 0, 0, 1), w);
  fill_(narrow(y, 0, 1, 1), 7);
  sum(y * y).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({0, 0, 6}));
  EXPECT_EQ(elements(w.grad()), Doubles({2}));
}

TEST_F(Tape, SecondDerivativesPassThroughWrites) {
  Tensor x = leaf(4), y = x * 1, v = narrow(y, 0, 1, 2);
  exp_(mul_(v, 0.5));
  Tensor g = gradients(sum(y * y), {x}, AJ_BACKWARD_CREATE_GRAPH)[0];
  Doubles second = elements(gradients(sum(g), {x})[0]);
  EXPECT_NEAR(second[1], std::exp(2.0), 1e-12);  // (exp(x/2)^2)'' = exp(x)
  EXPECT_EQ(second[3], 2);
}

TEST_F(Tape, RefusesWritesThatWouldLoseHistory) {
  Tensor x = leaf(4);
  EXPECT_NE(error_of([&] {
              mul_(x, 2);
            }).find("mul_: a leaf that requires grad is being written in place"),
            std::string::npos);
  EXPECT_NE(error_of([&] { mul_(narrow(x, 0, 0, 2), 2); }).find("a view of a leaf"),
            std::string::npos);
  Tensor y = x * 1;
  std::vector<Tensor> parts = split(y, {2, 2}, 0);
  EXPECT_NE(error_of([&] { mul_(parts[0], 2); }).find("returns multiple views"), std::string::npos);
  Tensor quiet;
  {
    NoGradGuard off;
    quiet = narrow(y, 0, 0, 2);
    mul_(x, 1);  // nothing is recorded, nothing is refused
  }
  EXPECT_NE(error_of([&] { mul_(quiet, 2); }).find("made with recording off"), std::string::npos);
  mul_(y, 2);
  EXPECT_NE(error_of([&] { sum(parts[1]); }).find("has a base that was written in place since"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              kit::check(kit::env.autograd->detach_in_place(narrow(y, 0, 0, 1).get()));
            }).find("detach_"),
            std::string::npos);
}

TEST_F(Tape, ViewsWithoutAFormula) {
  Tensor x = leaf(5), y = x * 1;
  Tensor windows = as_strided(y, {3, 3}, {1, 1}, 0);
  sum(windows * windows).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({2, 8, 18, 16, 10}));
  x.set_grad(Tensor());
  Tensor repeated = as_strided(x * 1, {2, 3}, {0, 2}, 0);
  sum(repeated * repeated).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({4, 0, 12, 0, 20}));
}

// Such a graph cannot be run, but it must not hold itself either.
TEST_F(Tape, WritingWhatWasSavedMakesNoCycle) {
  for (bool through_view : {false, true}) {
    int dropped = 0;
    {
      Tensor x = leaf(4), y = x * 1;
      uint64_t id;
      auto drop = [](void* self) { ++*static_cast<int*>(self); };
      auto hook = [](void*, aj_tensor**) -> aj_status* { return nullptr; };
      kit::check(
          kit::env.autograd->hook_tensor(y.get(), AJ_HOOK_TENSOR, hook, &dropped, drop, &id));
      Tensor part = through_view ? narrow(y, 0, 0, 2) : y;
      Tensor square = part * part;
      add_(part, square);
      EXPECT_NE(
          error_of([&] { sum(y).backward(); }).find("has been modified by an inplace operation"),
          std::string::npos);
    }
    EXPECT_EQ(dropped, 1);
  }
}

TEST_F(Tape, DetachSharesVersionsAndDataDoesNot) {
  Tensor x = leaf(2), y = x * 1, z = sum(y * y);
  aj_tensor* data = nullptr;
  kit::check(kit::env.autograd->data(y.get(), &data));
  mul_(Tensor::steal(data), 1);
  EXPECT_EQ(error_of([&] { z.backward(Tensor(), true); }), "");
  mul_(y.detach(), 1);
  EXPECT_NE(error_of([&] { z.backward(); }).find("has been modified by an inplace operation"),
            std::string::npos);
}

TEST_F(Tape, InferenceTensorsStayOutside) {
  Tensor x = leaf(2), inside;
  int32_t before = kit::env.autograd->set_inference_mode(1);
  inside = numbers(2) * 2;
  EXPECT_FALSE((x * 2).requires_grad());
  kit::env.autograd->set_inference_mode(before);
  EXPECT_NE(error_of([&] { x* inside; }).find("made in inference mode"), std::string::npos);
  EXPECT_NE(error_of([&] { add_(inside, 1); }).find("outside of it"), std::string::npos);
}

}  // namespace
}  // namespace adjoin::test

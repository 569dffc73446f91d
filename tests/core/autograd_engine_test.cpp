// tests/core/autograd_engine_test.cpp: backward: what it accumulates, frees,
// refuses; depth, threads, re-entry.
#include <pthread.h>

#include <thread>

#include "autograd_fixture.hpp"

namespace adjoin::test {
namespace {

TEST_F(Tape, AccumulatesIntoLeaves) {
  Tensor x = leaf(3);
  sum(x * x).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({2, 4, 6}));
  sum(x * x + x).backward();
  EXPECT_EQ(elements(x.grad()), Doubles({5, 9, 13}));
}

TEST_F(Tape, GradientsHaveTheStridesOfTheirLeaf) {
  Tensor x = reshape(numbers(6), {3, 2}).detach().requires_grad_();
  sum(transpose(x, 0, 1) * 1).backward();
  EXPECT_EQ(x.grad().stride(0), 2);
  Tensor turned = transpose(reshape(numbers(6), {3, 2}), 0, 1).detach().requires_grad_();
  sum(turned * 2).backward();
  EXPECT_EQ(turned.grad().stride(0), 1);
}

TEST_F(Tape, FreesWhatItSavedUnlessRetained) {
  Tensor x = leaf(2), y = sum(exp(x));
  y.backward(Tensor(), true);
  y.backward();
  EXPECT_NE(error_of([&] {
              y.backward();
            }).find("already been freed: Specify retain_graph=True the first time"),
            std::string::npos);
  Tensor z = sum(x + x);  // saves nothing, so it can be run again
  z.backward();
  EXPECT_EQ(error_of([&] { z.backward(); }), "");
}

TEST_F(Tape, NamesWhoChangedASavedTensor) {
  Tensor x = leaf(2), y = x * 1;
  Tensor z = sum(y * y);
  add_(y, 1);
  std::string message = error_of([&] { z.backward(); });
  EXPECT_NE(message.find("was changed in place after mul saved it (version 1, "
                         "saved at 0), by add_"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("clone it before the change"), std::string::npos);
}

TEST_F(Tape, SavesOnlyForGradientsThatAreWanted) {
  Tensor x = leaf(2), y = x * 1, constant = numbers(2);
  Tensor z = sum(y * constant);
  add_(y, 1);  // y is not needed for its own gradient
  z.backward();
  EXPECT_EQ(elements(x.grad()), Doubles({1, 2}));
}

TEST_F(Tape, AFailedPassLeavesNothingBehind) {
  Tensor x = leaf(2), y = x * 1, bad = exp(y), good = sin(x);
  Tensor both = sum(bad) + sum(good);
  add_(bad, 1);
  for (int i = 0; i < 2; i++) EXPECT_NE(error_of([&] { both.backward(Tensor(), true); }), "");
  x.set_grad(Tensor());
  sum(good).backward(Tensor(), true);
  EXPECT_EQ(x.grad().numel(), 2);
}

TEST_F(Tape, GradientsOfChosenInputs) {
  Tensor x = leaf(2), w = leaf(2), y = x * w, z = y * y;
  auto g = gradients(sum(z), {y, w}, AJ_BACKWARD_RETAIN_GRAPH);
  EXPECT_EQ(elements(g[0]), Doubles({2, 8}));
  EXPECT_EQ(elements(g[1]), Doubles({2, 16}));
  EXPECT_FALSE(x.grad().defined());
  Tensor other = leaf(2);
  EXPECT_NE(error_of([&] {
              gradients(sum(z), {other}, AJ_BACKWARD_RETAIN_GRAPH);
            }).find("allow_unused=True"),
            std::string::npos);
  EXPECT_FALSE(
      gradients(sum(z), {other}, AJ_BACKWARD_RETAIN_GRAPH | AJ_BACKWARD_ALLOW_UNUSED)[0].defined());
  EXPECT_EQ(elements(gradients(sum(z), {other}, AJ_BACKWARD_ZERO_UNUSED)[0]), Doubles({0, 0}));
}

TEST_F(Tape, DerivativesOfDerivatives) {
  Tensor x = leaf(2), g = x;
  Tensor y = sum(x * x * x * x);
  std::vector<Doubles> all;
  for (int i = 0; i < 4; i++) {
    g = gradients(i ? sum(g) : y, {x}, AJ_BACKWARD_CREATE_GRAPH)[0];
    all.push_back(elements(g));
  }
  EXPECT_EQ(all, (std::vector<Doubles>{{4, 32}, {12, 48}, {24, 48}, {24, 24}}));
}

TEST_F(Tape, RefusesRootsWithoutHistoryAndWrongGradients) {
  Tensor x = leaf(2);
  EXPECT_NE(error_of([&] { numbers(2).backward(); }).find("does not require grad"),
            std::string::npos);
  EXPECT_NE(error_of([&] { (x * 2).backward(); }).find("only for scalar outputs"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              (x * 2).backward(numbers(3));
            }).find("gradient 0 has shape [3], its root has [2]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              x.set_grad(numbers(3));
            }).find("the gradient has shape [3], the tensor has [2]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              arange(0, 3, 1, int64, home).requires_grad_();
            }).find("only Tensors of floating point and complex dtype"),
            std::string::npos);
  Tensor y = x * 2;
  EXPECT_NE(error_of([&] { y.requires_grad_(false); }).find("only a leaf"), std::string::npos);
}

// A million ops, run and freed on a stack of 64 KiB.
void* deep_chain(void* home) {
  Tensor x = arange(1, 5, 1, float64, *static_cast<DLDevice*>(home)).requires_grad_(), y = x;
  for (int i = 0; i < 1'000'000; i++) y = y * y.detach();
  y = sum(y);
  {
    Tensor again = x * 2;
    for (int i = 0; i < 100'000; i++) again = again + 1;
    sum(again).backward();
  }
  bool right = elements(x.grad()) == Doubles({2, 2, 2, 2});
  y = Tensor();
  return right ? home : nullptr;
}
TEST_F(Tape, DeepChainsNeedNoStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  pthread_t thread;
  sum(leaf(1)).backward();  // what is done once is done here
  ASSERT_EQ(pthread_create(&thread, &attributes, deep_chain, &home), 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, &home);
  pthread_attr_destroy(&attributes);
}

TEST_F(Tape, ThreadsShareLeavesAndGraphs) {
  Tensor w = leaf(64), shared = sum(exp(w * 0.01) * w);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; i++) {
        if (error_of([&] { shared.backward(Tensor(), true); }) != "") wrong++;
        if (error_of([&] { sum(w * w).backward(); }) != "") wrong++;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  Tensor once = gradients(shared, {w})[0] + 2 * w.detach();
  for (double ratio : elements(w.grad() / once)) EXPECT_NEAR(ratio, 800, 1e-9);
}

}  // namespace
}  // namespace adjoin::test

// tests/core/call_test.cpp: the kit's Tensor and the generated functions, as a C++ user writes
// them.
#include <adjoin/abi/capi.h>
#include <gtest/gtest.h>

#include <adjoin/kit/ops.hpp>

namespace adjoin {
namespace {

class Calls : public testing::Test {
 protected:
  void SetUp() override {
    kit::bind(aj_get_interface);
    home = device("reference");
  }
  Tensor numbers(std::initializer_list<int64_t> shape, DLDataType dtype = float32) {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return reshape(arange(0, n, 1, dtype, home), shape);
  }
  DLDevice home;
};

std::vector<float> elements(const Tensor& t) {
  Tensor flat = to(contiguous(t), float32);
  return {flat.data<float>(), flat.data<float>() + flat.numel()};
}
using Floats32 = std::vector<float>;

TEST_F(Calls, NumbersPassAsNumbers) {
  Tensor x = numbers({3}), whole = numbers({3}, int64);
  EXPECT_EQ(elements(2 * x - 1 + x / 2), Floats32({-1, 1.5, 4}));
  EXPECT_TRUE((whole + 1).dtype() == int64);
  EXPECT_TRUE((whole + 1.5).dtype() == float32);
  EXPECT_TRUE((x * std::complex<double>(0, 1)).dtype() == complex64);
  EXPECT_EQ(elements(-pow(2, x)), Floats32({-1, -2, -4}));
}

TEST_F(Calls, ListsAreBorrowed) {
  Tensor x = numbers({2, 3});
  std::vector<int64_t> dims = {0, 1};
  EXPECT_EQ(sum(x).item<double>(), 15);
  EXPECT_EQ(sum(x, dims).item<int>(), 15);
  EXPECT_EQ(elements(sum(x, 0)), Floats32({3, 5, 7}));
  EXPECT_EQ(elements(sum(x, {-1}, true)), Floats32({3, 12}));
  EXPECT_EQ(cat({x, x}, 1).shape()[1], 6);
  auto [values, indices] = max(x, 1);
  EXPECT_EQ(elements(values), Floats32({2, 5}));
  EXPECT_TRUE(indices.dtype() == int64);
}

TEST_F(Calls, InPlaceAndByName) {
  Tensor x = numbers({3});
  add_(x, 1);
  EXPECT_EQ(elements(x), Floats32({1, 2, 3}));
  EXPECT_EQ(elements(call("mul", x, x)), Floats32({1, 4, 9}));
  EXPECT_THROW(call("no_such_op", x), kit::Error);
  for (int i = 0; i < 2; ++i) {  // how many results an op has is asked once
    EXPECT_EQ(elements(call("max.dim", x, 0)), Floats32({3}));
    auto [value, place] = call<std::tuple<Tensor, Tensor>>("max.dim", x, 0);
    EXPECT_EQ(elements(place), Floats32({2}));
    call<void>("max.dim", x, 0);
    using Three = std::tuple<Tensor, Tensor, Tensor>;
    EXPECT_THROW(call<Three>("max.dim", x, 0), kit::Error);
  }
}

TEST_F(Calls, GradientsTwice) {
  Tensor x = numbers({3}) + 1;
  x.requires_grad_();
  sum(x * x * x).backward(Tensor(), false, true);
  Tensor g = x.grad();
  EXPECT_EQ(elements(g), Floats32({3, 12, 27}));
  x.set_grad({});
  sum(g).backward();
  EXPECT_EQ(elements(x.grad()), Floats32({6, 12, 18}));
  {
    NoGradGuard off;
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  EXPECT_FALSE(x.detach().requires_grad());
}

TEST_F(Calls, ErrorsCarryTheStatus) {
  Tensor x = numbers({2, 3});
  try {
    x + numbers({2});
    FAIL();
  } catch (const kit::Error& e) {
    EXPECT_EQ(e.code(), AJ_INVALID_ARGUMENT);
    EXPECT_EQ(e.kind(), "RuntimeError");
    EXPECT_NE(std::string(e.what()).find("[2, 3]"), std::string::npos) << e.what();
  }
  EXPECT_THROW(sum(x, 5), kit::Error);
  EXPECT_THROW(x.data<double>(), kit::Error);
  EXPECT_THROW(device("no_such_device"), kit::Error);
}

TEST_F(Calls, AScalarKeepsItsKind) {
  EXPECT_TRUE(full({2}, true, std::nullopt, home).dtype() == boolean);
  EXPECT_TRUE(full({2}, 3, std::nullopt, home).dtype() == int64);
  EXPECT_TRUE(full({2}, 3.0, std::nullopt, home).dtype() == float32);
  EXPECT_TRUE(Scalar(2) * Scalar(3) == Scalar(6));
  EXPECT_TRUE(Scalar(1) / Scalar(2) == Scalar(0.5));
  EXPECT_TRUE(Scalar().is_none() && Scalar() == Scalar());
  EXPECT_EQ(full({}, std::complex<double>(1, 2), std::nullopt, home).item<std::complex<double>>(),
            std::complex<double>(1, 2));
}

// Composites in place may save what they overwrite.
TEST_F(Calls, ACompositeInPlaceIsRecorded) {
  Tensor x = numbers({4});
  x.requires_grad_();
  Tensor y = x * 1;
  const aj_op* clip = kit::env.op->find_op(AJ_STR_LIT("clip"));
  const aj_value args[] = {kit::value(y), kit::value(0.5), kit::value(2.5)};
  kit::run_into(clip, args, 3, y);
  sum(y).backward();
  EXPECT_EQ(elements(y.detach()), Floats32({0.5, 1, 2, 2.5}));
  EXPECT_EQ(elements(x.grad()), Floats32({0, 1, 1, 0}));
}

}  // namespace
}  // namespace adjoin

// tests/plugins/kit_test.cpp: the kit without libadjoin: numbers, conversions, the generator, the
// tree, lambdas and schemas.
#include <gtest/gtest.h>

#include <adjoin/kit/kit.hpp>
#include <adjoin/kit/philox.hpp>
#include <adjoin/kit/reduce.hpp>
#include <thread>
#include <vector>

namespace adjoin::kit {
namespace {

// A core that has threads and errors, and nothing else.
int threads = 1;
aj_status* run_chunks(int64_t n, int64_t grain, aj_status* (*body)(void*, int64_t, int64_t),
                      void* self) {
  int64_t chunks = (n + grain - 1) / grain;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([=] {  // last chunks first: nothing may depend on the order
      for (int64_t i = chunks - 1 - t; i >= 0; i -= threads)
        body(self, i * grain, std::min(n, (i + 1) * grain));
    });
  for (auto& t : pool) t.join();
  return nullptr;
}
struct FakeCore : testing::Test {
  static inline aj_core core = {};
  void SetUp() override {
    core.struct_size = sizeof core;
    core.parallel_for = run_chunks;
    env.core = &core;
    core.dtype_info = [](DLDataType, aj_dtype_info*) {
      return reinterpret_cast<aj_status*>(&core);
    };  // not known
  }
  void TearDown() override { env.core = nullptr; }
};
using Kit = FakeCore;

TEST_F(Kit, HalvesRoundTripAndRoundToEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t h = uint16_t(bits);
    float f = Half::to_float(h);
    if (f == f) {
      EXPECT_EQ(Half(f).bits, h);
    } else {
      EXPECT_NE(Half(f).bits & 0x3ff, 0) << bits;
    }
    BFloat16 b;
    b.bits = h;
    if (float(b) == float(b)) {
      EXPECT_EQ(BFloat16(float(b)).bits, h);
    }
  }
  for (uint32_t h = 0; h < 0x7bff;
       ++h) {  // between two neighbours: the nearer one; in the middle the even one
    float a = Half::to_float(uint16_t(h)), b = Half::to_float(uint16_t(h + 1)),
          middle = (a + b) / 2;
    EXPECT_EQ(Half(middle).bits, h % 2 ? h + 1 : h);
    EXPECT_EQ(Half(std::nextafter(middle, 0.0f)).bits, h);
    EXPECT_EQ(Half(std::nextafter(middle, INFINITY)).bits, h + 1);
  }
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e-8f).bits, 0x8000);
}

TEST_F(Kit, FloatsToIntegersAreDefinedEverywhere) {
  EXPECT_EQ(cast<int32_t>(NAN), INT32_MIN);
  EXPECT_EQ(cast<int32_t>(3e9f), INT32_MIN);
  EXPECT_EQ(cast<int64_t>(INFINITY), INT64_MIN);
  EXPECT_EQ(cast<int64_t>(-2.9), -2);
  EXPECT_EQ(cast<uint8_t>(300.7f), 44);
  EXPECT_EQ(cast<uint8_t>(-1.0f), 255);
  EXPECT_EQ(cast<uint64_t>(1.8e19), 18000000000000000000u);
  EXPECT_TRUE(cast<bool>(NAN));
  EXPECT_EQ(cast<float>(Complex64(2, 3)), 2.0f);
}

TEST_F(Kit, IntegersWrapAndNeverTrap) {
  using namespace scalar;
  EXPECT_EQ(Mul()(uint16_t(65535), uint16_t(65535)), 1);
  EXPECT_EQ(Add()(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(FloorDivide()(INT64_MIN, int64_t(-1)), INT64_MIN);
  EXPECT_EQ(Remainder()(INT32_MIN, -1), 0);
  EXPECT_EQ(FloorDivide()(-7, 2), -4);
  EXPECT_EQ(Remainder()(-7, 2), 1);
  EXPECT_EQ(FMod()(-7, 2), -1);
  EXPECT_EQ(Remainder()(-7.5, 2.0), 0.5);
  EXPECT_THROW(FloorDivide()(1, 0), Error);
  EXPECT_EQ(ShiftLeft()(1, 40), 0);
  EXPECT_EQ(ShiftRight()(-8, 99), -1);
  EXPECT_EQ(ShiftRight()(8, -1), 0);
  EXPECT_EQ(Pow()(int64_t(-1), int64_t(-3)), -1);
  EXPECT_TRUE(std::isnan(Maximum()(1.0f, NAN)) && std::isnan(Minimum()(NAN, 1.0f)));
  EXPECT_TRUE(std::signbit(FloorDivide()(-0.0, 3.0)));
}

TEST_F(Kit, PhiloxHasThePublishedAnswers) {
  auto words = [](uint64_t low, uint64_t high, uint64_t key) {
    auto b = Philox{key, 0}(low, high);
    return std::vector<uint32_t>(b.word, b.word + 4);
  };
  EXPECT_EQ(words(0, 0, 0),
            (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(~0ull, ~0ull, ~0ull),
            (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

struct Total {
  using T = float;
  using State = float;
  State start() const { return 0; }
  void add(State& s, T x, int64_t) const { s += x; }
  void join(State& s, State o) const { s += o; }
  std::tuple<float> finish(State s, int64_t) const { return s; }
};

// Sums over the reduced dimensions of `shape` (innermost first, the first nreduced of them) with
// the given strides.
std::vector<float> sums(const std::vector<float>& data, std::vector<int64_t> sizes,
                        std::vector<int64_t> strides, uint32_t nreduced) {
  int64_t kept = 1, numel = 1;
  std::vector<int64_t> out_strides(sizes.size(), 0);
  for (size_t d = 0; d < sizes.size(); ++d) {
    numel *= sizes[d];
    strides[d] *= 4;
    if (d >= nreduced) out_strides[d] = 4 * kept, kept *= sizes[d];
  }
  std::vector<float> out(static_cast<size_t>(kept));
  aj_operand ops[2] = {
      {out.data(), out_strides.data(), nullptr, dtype_of<float>, AJ_OPERAND_WRITE},
      {const_cast<float*>(data.data()), strides.data(), nullptr, dtype_of<float>, 0}};
  aj_plan p = {};
  p.struct_size = sizeof p;
  p.ndim = uint32_t(sizes.size());
  p.nout = 1, p.nops = 2, p.nreduced = nreduced;
  p.compute = dtype_of<float>;
  p.numel = numel;
  p.sizes = sizes.data();
  p.ops = ops;
  reduce(p, Total());
  return out;
}

TEST_F(Kit, SumsHaveTheSameBitsForAnyNumberOfThreads) {
  std::vector<float> x(1'000'003);
  Philox philox{7, 0};
  for (size_t i = 0; i < x.size(); ++i) x[i] = uniform_of(philox(i / 4).word[i % 4]) - 0.3f;
  int64_t n = int64_t(x.size());
  threads = 1;
  auto all = sums(x, {n}, {1}, 1), rows = sums(x, {100'000, 10}, {1, 100'000}, 1),
       columns = sums(x, {100'000, 10}, {10, 1}, 1);
  for (threads = 2; threads < 6; ++threads) {
    EXPECT_EQ(all, sums(x, {n}, {1}, 1));
    EXPECT_EQ(rows, sums(x, {100'000, 10}, {1, 100'000}, 1));
    EXPECT_EQ(columns, sums(x, {100'000, 10}, {10, 1}, 1));
  }
  double exact = 0;
  for (float v : x) exact += double(v);
  EXPECT_NEAR(double(all[0]), exact, 2e-7 * exact);
  EXPECT_EQ(sums({}, {0, 3}, {1, 1}, 1), std::vector<float>(3, 0.0f));
}

TEST_F(Kit, SchemasAreReadForTheirParameters) {
  auto bases = schema_bases(
      "acme::f(Tensor(a!)? input, int[2]? k=None, *, Tensor<int64> i, float by=1.0, Scalar s=2) -> "
      "Tensor");
  EXPECT_EQ(bases, (std::deque<std::string>{"Tensor", "int[]", "Tensor", "float", "Scalar"}));
  EXPECT_TRUE(schema_bases("f() -> Tensor").empty());
  auto good = [](TensorView, int64_t, MutView) {};
  auto bad = [](TensorView, double, MutView) {};
  EXPECT_NO_THROW(match<decltype(good)>("f(Tensor x, int k) -> Tensor", "kernel"));
  try {
    match<decltype(bad)>("f(Tensor x, int k) -> Tensor", "kernel");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(),
              "f: the kernel's argument 1 wants float Scalar, the schema has int there: f(Tensor "
              "x, int k) -> Tensor");
  }
}

TEST_F(Kit, DerivativesSaveWhatTheirParametersName) {
  auto vjp = [](Tensor, Saved, Skip, double, Out) { return Tensor(); };
  const auto& list = saves<decltype(vjp)>;
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].what, AJ_SAVE_ARG);
  EXPECT_EQ(list[0].index, 0);
  EXPECT_EQ(list[1].index, 2);
  EXPECT_EQ(list[2].what, AJ_SAVE_RESULT);
  EXPECT_EQ(list[2].index, 0);
}

TEST_F(Kit, NotesAreMadeAtCompileTime) {
  constexpr aj_plugin_note note =
      make_note({.name = "squash", .version = "1.2", .provides = "ops:acme"});
  static_assert(note.struct_size == sizeof(aj_plugin_note));
  EXPECT_STREQ(note.magic, "AJPLUG1");
  EXPECT_STREQ(note.provides, "ops:acme");
}

}  // namespace
}  // namespace adjoin::kit

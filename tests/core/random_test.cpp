// tests/core/random_test.cpp: Philox gives the published words; generators count what they gave
// out.
#include <gtest/gtest.h>

#include <adjoin/kit/philox.hpp>
#include <cmath>
#include <thread>
#include <vector>

#include "core/guest/object.hpp"
#include "core/random/generator.hpp"
#include "tests/core/fake_device.hpp"

namespace adjoin::test {
namespace {

// The known answers of Random123 for philox4x32 with 10 rounds.
TEST(Philox, PublishedVectors) {
  struct Case {
    uint32_t counter[4], key[2], words[4];
  };
  const Case cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) {
    auto wide = [](uint32_t low, uint32_t high) { return low | uint64_t(high) << 32; };
    kit::Philox philox{wide(c.key[0], c.key[1]), wide(c.counter[0], c.counter[1])};
    auto block = philox(0, wide(c.counter[2], c.counter[3]));
    for (int i = 0; i < 4; i++) EXPECT_EQ(block.word[i], c.words[i]);
  }
}

TEST(Philox, BlocksFollowTheOffset) {
  kit::Philox a{42, 0}, b{42, 1000};
  for (uint64_t i = 0; i < 10; i++)
    for (int w = 0; w < 4; w++) EXPECT_EQ(a(1000 + i).word[w], b(i).word[w]);
}

TEST(Philox, MomentsOfUniformAndNormal) {
  double sum = 0, square = 0, normal = 0, normal_square = 0;
  constexpr int n = 200'000;
  for (int i = 0; i < n / 4; i++) {
    auto block = kit::Philox{7, 0}(uint64_t(i));
    float u[4], z[4];
    kit::uniform_block(block, u);
    kit::normal_block(block, z);
    for (int k = 0; k < 4; k++) {
      ASSERT_TRUE(u[k] >= 0 && u[k] < 1);
      sum += u[k], square += u[k] * u[k], normal += z[k], normal_square += z[k] * z[k];
    }
  }
  EXPECT_NEAR(sum / n, 0.5, 0.003);
  EXPECT_NEAR(square / n, 1.0 / 3, 0.003);
  EXPECT_NEAR(normal / n, 0, 0.01);
  EXPECT_NEAR(normal_square / n, 1, 0.015);
}

TEST(Philox, IntegersStayInRange) {
  for (uint64_t range :
       {1ull, 2ull, 7ull, (1ull << 24) + 1, 3000000000ull, 1ull << 40, (1ull << 63) + 12345}) {
    double sum = 0;
    for (uint64_t i = 0; i < 4000; i++) {
      uint64_t v = kit::integer_of(kit::Philox{3, 0}, i, range);
      ASSERT_LT(v, range);
      sum += double(v) / double(range);
    }
    if (range > 100) {
      EXPECT_NEAR(sum / 4000, 0.5, 0.03) << range;
    }
  }
}

uint64_t draw(aj_object* g, uint64_t blocks, uint64_t* seed) {
  uint64_t offset = ~0ull;
  EXPECT_EQ(generator_draw(g, blocks, seed, &offset), nullptr);
  return offset;
}

TEST(Generator, CountsBlocks) {
  aj_object* g = nullptr;
  uint64_t seed = 0, offset = 0;
  ASSERT_EQ(generator_new(fake_host().device->id, &g), nullptr);
  ASSERT_EQ(generator_set(g, 5, 100), nullptr);
  EXPECT_EQ(draw(g, 7, &seed), 100u);
  EXPECT_EQ(seed, 5u);
  EXPECT_EQ(draw(g, 0, &seed), 107u);
  ASSERT_EQ(generator_get(g, &seed, &offset), nullptr);
  EXPECT_EQ(offset, 107u);
  any_release(g);
}

TEST(Generator, ManualSeedSeedsAllDefaults) {
  aj_object *host = nullptr, *acc = nullptr, *same = nullptr;
  ASSERT_EQ(generator_default(fake_host().device->id, &host), nullptr);
  ASSERT_EQ(generator_default(fake_host().device->id, &same), nullptr);
  EXPECT_EQ(host, same);
  ASSERT_EQ(manual_seed(1234), nullptr);
  ASSERT_EQ(generator_default(fake_accelerator().device->id, &acc),
            nullptr);  // made after the seed was set
  uint64_t seed = 0;
  for (aj_object* g : {host, acc, static_cast<aj_object*>(nullptr)}) {
    EXPECT_EQ(draw(g, 3, &seed), 0u);
    EXPECT_EQ(seed, 1234u);
  }
  for (aj_object* g : {host, same, acc}) any_release(g);
}

TEST(Generator, FreshSeedsDiffer) {
  aj_object *a = nullptr, *b = nullptr;
  uint64_t sa = 0, sb = 0;
  ASSERT_EQ(generator_new(fake_host().device->id, &a), nullptr);
  ASSERT_EQ(generator_new(fake_host().device->id, &b), nullptr);
  draw(a, 0, &sa);
  draw(b, 0, &sb);
  EXPECT_NE(sa, sb);
  any_release(a);
  any_release(b);
}

TEST(Generator, ThreadsNeverGetTheSamePlace) {
  aj_object* g = nullptr;
  ASSERT_EQ(generator_new(fake_host().device->id, &g), nullptr);
  ASSERT_EQ(generator_set(g, 1, 0), nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([g] {
      uint64_t seed, last = 0;
      for (int i = 0; i < 5000; i++) {
        uint64_t at = draw(g, 3, &seed);
        EXPECT_TRUE(i == 0 || at >= last + 3);
        last = at;
      }
    });
  for (auto& t : threads) t.join();
  uint64_t seed;
  EXPECT_EQ(draw(g, 0, &seed), 60000u);
  any_release(g);
}

TEST(Generator, OtherObjectsAreRefused) {
  uint64_t seed, offset;
  aj_object* text = nullptr;
  ASSERT_EQ(string_new(str("no generator"), &text), nullptr);
  EXPECT_NE(take_message(generator_draw(text, 1, &seed, &offset)).find("wanted a generator"),
            std::string::npos);
  EXPECT_NE(take_message(generator_get(nullptr, &seed, &offset)).find("got nothing"),
            std::string::npos);
  EXPECT_NE(take_message(generator_set(text, 1, 2)), "");
  any_release(text);
}

}  // namespace
}  // namespace adjoin::test

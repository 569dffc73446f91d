// core/base/keys.hpp: the bits of tensors' keys and of a call's; those below 24 are devices.
#pragma once
#include <cstdint>

namespace adjoin {

enum KeyBit {
  kLazyBit = 31,
  kAutogradBit = 33,
  kTransformBit = 32,
  kAutocastBit = 44,
  kCaptureBit = 52,
  kFunctionBit = 56,
  kProfilerBit = 60
};
constexpr uint64_t kAutogradKey = 1ull << kAutogradBit;
constexpr uint64_t kTransformKey = 1ull << kTransformBit;
// Of every tensor without strides, beside its own key: it is never excluded, so no backend's kernel
// meets one. It counts as the lowest key: who has no other left is settled or refused.
constexpr uint64_t kWrapKey = 1ull << 45;
constexpr uint64_t kFunctionalKeys = ~((1ull << 24) - 1);

}  // namespace adjoin

// core/op/numbers.hpp: what an op's tags say of numbers among its arguments and of out=, kept in
// bits of its flags that the contract leaves.
#pragma once
#include "core/op/op.hpp"

namespace adjoin {

constexpr uint32_t kOutExact = 1u << 28;  // tag "out:exact": out= must have the dtype of the result
constexpr uint32_t kNumbersExact =
    1u << 29;  // tag "numbers:exact": one that the integers computed in cannot hold is an error
constexpr uint32_t kNumbersClamped =
    1u << 30;  // tag "numbers:clamped": the nearest one is taken; else its lowest bits are
constexpr uint32_t kCountsBool = 1u << 31;  // tag "bool:int64": of bool the op is computed in int64
constexpr uint32_t kNumberFlags = kOutExact | kNumbersExact | kNumbersClamped | kCountsBool;

}  // namespace adjoin

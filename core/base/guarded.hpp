// core/base/guarded.hpp: a function of a table, from which no exception gets out.
#pragma once
#include <exception>
#include <new>

#include "core/base/status.hpp"

namespace adjoin {

// What a handler was given, as an error; to be called inside of one.
[[gnu::cold]] aj_status* status_of_exception();

// Callbacks of users and allocations inside may throw; nothing passes a table. A function that each
// call runs has a handler of its own instead, which needs no frame.
template <auto F>
struct Guarded;
template <class... A, aj_status* (*F)(A...)>
struct Guarded<F> {
  static aj_status* call(A... a) {
    try {
      return F(a...);
    } catch (const std::exception&) {
      return status_of_exception();
    }
  }
};
template <auto F>
constexpr auto guarded = &Guarded<F>::call;

// The same of a function that gives no status: 0 or NULL says that there is nothing.
template <auto F>
struct Quiet;
template <class R, class... A, R (*F)(A...)>
struct Quiet<F> {
  static R call(A... a) {
    try {
      return F(a...);
    } catch (const std::exception&) {
      return R();
    }
  }
};
template <auto F>
constexpr auto quiet = &Quiet<F>::call;

}  // namespace adjoin

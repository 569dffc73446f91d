// core/base/guarded.hpp: a function of a table, from which no exception gets out.
#pragma once
#include <exception>
#include <new>

#include "core/base/status.hpp"

namespace adjoin {

// Callbacks of users and allocations inside may throw; nothing passes a table.
template <auto F>
struct Guarded;
template <class... A, aj_status* (*F)(A...)>
struct Guarded<F> {
  static aj_status* call(A... a) {
    try {
      return F(a...);
    } catch (const std::bad_alloc&) {
      return make_status(AJ_OUT_OF_MEMORY, {},
                         "the system has no memory for what libadjoin itself needs");
    } catch (const std::exception& e) {
      return fail(AJ_INTERNAL, "libadjoin: ", e.what());
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

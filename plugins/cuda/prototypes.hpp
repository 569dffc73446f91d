// plugins/cuda/prototypes.hpp: whether a prototype of our own agrees with one of NVIDIA's headers.
#ifndef ADJOIN_PLUGINS_CUDA_PROTOTYPES_HPP
#define ADJOIN_PLUGINS_CUDA_PROTOTYPES_HPP
#include <type_traits>

namespace adjoin::vendor {

// What a caller has to agree on: how many arguments there are, which are addresses, which numbers
// and how wide. Words are passed as numbers.
template <class T>
using Passed =
    std::conditional_t<std::is_pointer_v<T>, void*, std::conditional_t<std::is_enum_v<T>, int, T>>;
template <class F>
struct Shape;
template <class R, class... A>
struct Shape<R (*)(A...)> {
  using Type = void (*)(Passed<A>...);
};
template <class Ours, class Theirs>
constexpr bool agree = std::is_same_v<typename Shape<Ours>::Type, typename Shape<Theirs>::Type>;

}  // namespace adjoin::vendor
#endif

// core/base/status.hpp: making and passing error values. NULL is success; every other status is
// owned by one holder.
#pragma once
#include <adjoin/abi/core.h>

#include <bit>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

struct aj_status {
  int32_t code;
  bool is_static;  // the one for "no memory for an error" is never freed
  std::string kind, message, where;
  aj_status* cause;
  uint32_t body_name =
      0;                // bytes of message that name the composite op in whose body it was raised
  bool placed = false;  // the message says which plugin failed, and where
};

namespace adjoin {

inline aj_str str(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view view(aj_str s) { return {s.data ? s.data : "", s.data ? s.len : 0}; }

aj_status* make_status(int32_t code, std::string_view kind, std::string_view message,
                       const char* file = nullptr, uint64_t line = 0);
void free_status(aj_status* s);

// How values look in a message: shapes as [2, 3], dtypes and devices by name.
void append(std::string& out, std::string_view s);
void append(std::string& out, const char* s);
void append(std::string& out, int64_t v);
void append(std::string& out, uint64_t v);
void append(std::string& out, double v);
void append(std::string& out, DLDataType d);
void append(std::string& out, DLDevice d);  // core/device/device.cpp has it
void append(std::string& out, std::span<const int64_t> shape);
inline void append(std::string& out, const std::string& s) { append(out, std::string_view(s)); }
inline void append(std::string& out, aj_str s) { append(out, view(s)); }
inline void append(std::string& out, int32_t v) { append(out, int64_t(v)); }
inline void append(std::string& out, uint32_t v) { append(out, uint64_t(v)); }

// Any of these, and numbers of other sizes, as a byte and an address: one function puts a message
// together, and the templates below are a few instructions each.
enum class Part : uint8_t {
  chars,
  pointer,
  string,
  view,
  str,
  dtype,
  device,
  shape,
  real,
  i1,
  i2,
  i4,
  i8,
  u1,
  u2,
  u4,
  u8
};
template <class T>
constexpr Part part_of() {
  if constexpr (std::is_array_v<T>)
    return Part::chars;
  else if constexpr (std::is_pointer_v<T>)
    return Part::pointer;
  else if constexpr (std::is_same_v<T, std::string>)
    return Part::string;
  else if constexpr (std::is_same_v<T, std::string_view>)
    return Part::view;
  else if constexpr (std::is_same_v<T, aj_str>)
    return Part::str;
  else if constexpr (std::is_same_v<T, DLDataType>)
    return Part::dtype;
  else if constexpr (std::is_same_v<T, DLDevice>)
    return Part::device;
  else if constexpr (std::is_same_v<T, std::span<const int64_t>> ||
                     std::is_same_v<T, std::span<int64_t>>)
    return Part::shape;
  else if constexpr (std::is_same_v<T, double>)
    return Part::real;
  else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    constexpr bool below = std::is_signed_v<T> || std::is_enum_v<T>;
    constexpr Part sizes[] = {Part::i1, Part::i2, Part::i4, Part::i8};
    return Part(int(sizes[std::countr_zero(sizeof(T))]) + (below ? 0 : 4));
  }
}
std::string text_of(const Part* kinds, const void* const* parts, size_t n);
[[gnu::cold]] aj_status* fail_of(int32_t code, std::string_view kind, const Part* kinds,
                                 const void* const* parts, size_t n);
template <class... Parts>
constexpr Part parts_of[] = {part_of<Parts>()..., Part::chars};

template <class... Parts>
std::string text(const Parts&... parts) {
  const void* const all[] = {static_cast<const void*>(std::addressof(parts))..., nullptr};
  return text_of(parts_of<Parts...>, all, sizeof...(Parts));
}

// fail(AJ_INVALID_ARGUMENT, "matmul: inner sizes differ: a is ", shape, ...). The Python class
// follows from the code: INVALID_ARGUMENT RuntimeError, OUT_OF_RANGE IndexError, WRONG_TYPE
// TypeError, NOT_FOUND and others RuntimeError, UNIMPLEMENTED NotImplementedError, OUT_OF_MEMORY
// OutOfMemoryError. fail_kind names another.
template <class... Parts>
[[gnu::cold, gnu::noinline]] aj_status* fail_kind(int32_t code, std::string_view kind,
                                                  const Parts&... parts) {
  const void* const all[] = {static_cast<const void*>(std::addressof(parts))..., nullptr};
  return fail_of(code, kind, parts_of<Parts...>, all, sizeof...(Parts));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] aj_status* fail(int32_t code, const Parts&... parts) {
  const void* const all[] = {static_cast<const void*>(std::addressof(parts))..., nullptr};
  return fail_of(code, {}, parts_of<Parts...>, all, sizeof...(Parts));
}

// What a definition may not say: a flag of the low half that is not among the known ones, a
// reserved word that is not 0.
aj_status* refuse_words(std::string_view who, std::string_view what, uint64_t unknown,
                        uint64_t reserved);
inline aj_status* check_words(std::string_view who, std::string_view what, uint64_t flags,
                              uint32_t known, uint64_t reserved = 0) {
  uint64_t unknown = flags & 0xffff & ~uint64_t(known);
  return __builtin_expect((unknown | reserved) != 0, 0) ? refuse_words(who, what, unknown, reserved)
                                                        : nullptr;
}

// Prepends "who: " context while keeping code and kind.
aj_status* prefix(aj_status* steal, std::string_view before);

// An error of an op inside the body of another is told as that of the outermost: what the user
// asked for.
aj_status* name_body(aj_status* steal, std::string_view op);

#define AJ_TRY(expr)                                                                          \
  do {                                                                                        \
    if (aj_status* aj_try_ = (expr); __builtin_expect(aj_try_ != nullptr, 0)) return aj_try_; \
  } while (0)

}  // namespace adjoin

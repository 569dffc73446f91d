// core/status.hpp: making and passing error values. NULL is success; every other status is owned by one holder.
#pragma once
#include <adjoin/abi/core.h>

#include <span>
#include <string>
#include <string_view>

struct aj_status {
  int32_t code;
  bool is_static;  // the one for "no memory for an error" is never freed
  std::string kind, message, where;
  aj_status* cause;
  uint32_t body_name = 0;  // bytes of message that name the composite op in whose body it was raised
  bool placed = false;     // the message says which plugin failed, and where
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
void append(std::string& out, DLDevice d);
void append(std::string& out, std::span<const int64_t> shape);
inline void append(std::string& out, const std::string& s) { append(out, std::string_view(s)); }
inline void append(std::string& out, aj_str s) { append(out, view(s)); }
inline void append(std::string& out, int32_t v) { append(out, int64_t(v)); }
inline void append(std::string& out, uint32_t v) { append(out, uint64_t(v)); }

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

// fail(AJ_INVALID_ARGUMENT, "matmul: inner sizes differ: a is ", shape, ...). The Python class follows from the code:
// INVALID_ARGUMENT RuntimeError, OUT_OF_RANGE IndexError, WRONG_TYPE TypeError, NOT_FOUND and others RuntimeError,
// UNIMPLEMENTED NotImplementedError, OUT_OF_MEMORY OutOfMemoryError. fail_kind names another.
template <class... Parts>
[[gnu::cold, gnu::noinline]] aj_status* fail(int32_t code, const Parts&... parts) {
  return make_status(code, {}, text(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] aj_status* fail_kind(int32_t code, std::string_view kind, const Parts&... parts) {
  return make_status(code, kind, text(parts...));
}

// What a definition may not say: a flag of the low half that is not among the known ones, a reserved word that is not 0.
aj_status* refuse_words(std::string_view who, std::string_view what, uint64_t unknown, uint64_t reserved);
inline aj_status* check_words(std::string_view who, std::string_view what, uint64_t flags, uint32_t known, uint64_t reserved = 0) {
  uint64_t unknown = flags & 0xffff & ~uint64_t(known);
  return __builtin_expect((unknown | reserved) != 0, 0) ? refuse_words(who, what, unknown, reserved) : nullptr;
}

// Prepends "who: " context while keeping code and kind.
aj_status* prefix(aj_status* steal, std::string_view before);

// An error of an op inside the body of another is told as that of the outermost: what the user asked for.
aj_status* name_body(aj_status* steal, std::string_view op);

#define AJ_TRY(expr)                                                   \
  do {                                                                 \
    if (aj_status* aj_try_ = (expr); __builtin_expect(aj_try_ != nullptr, 0)) return aj_try_; \
  } while (0)

}  // namespace adjoin

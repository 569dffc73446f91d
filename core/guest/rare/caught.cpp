// core/guest/rare/caught.cpp: words for what functions of a plugin's let out, or fail with.
#include "core/guest/caught.hpp"

#include <atomic>
#include <exception>

#include "core/base/log.hpp"
#include "core/base/tls.hpp"
#include "core/guest/pins.hpp"

namespace adjoin {
namespace {

constinit thread_local const void* looked_at __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

bool is_about_the_call(int32_t code) {
  return code == AJ_INVALID_ARGUMENT || code == AJ_OUT_OF_RANGE || code == AJ_WRONG_TYPE ||
         code == AJ_NOT_FOUND || code == AJ_PRECONDITION || code == AJ_UNIMPLEMENTED ||
         code == AJ_OUT_OF_MEMORY;
}

aj_status* thrown(std::string_view who) {
  aj_status* s;
  try {
    throw;
  } catch (const std::exception& e) {
    s = fail(AJ_INTERNAL, who, " let an exception out: ", e.what());
  } catch (...) {
#ifdef __GLIBCXX__
    if (!std::current_exception()) throw;
#endif
    s = fail(AJ_INTERNAL, who, " let an unknown exception out");
  }
  if (!s->is_static) s->placed = true;
  return s;
}

static std::string whose(const void* code, const char* what) {
  const char* label = plugin::label_at(code);
  return label ? text("plugin ", label, ": its ", what) : text("a ", what);
}

std::string of_plugin(const void* code) {
  const char* label = plugin::label_at(code);
  return label ? text("; it is of plugin ", label) : std::string();
}

aj_status* thrown_by(const void* code, const char* what) { return thrown(whose(code, what)); }

void look_at_returned(const aj_status* s, const void* code) {
  if (!s) return;
  looked_at = code;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  static_cast<void>(*static_cast<const volatile int32_t*>(&s->code));
  for (const std::string* part : {&s->kind, &s->message, &s->where})
    static_cast<void>(*static_cast<const volatile char*>(part->data() + part->size()));
  std::atomic_signal_fence(std::memory_order_seq_cst);
  looked_at = nullptr;
}

const void* returned_by() { return looked_at; }

aj_status* name_plugin(aj_status* s, const void* code, const char* what) {
  bool said = s->is_static || s->placed || s->code == AJ_CANCELLED || is_about_the_call(s->code);
  if (said || !plugin::label_at(code)) return s;
  s->placed = true;
  return prefix(s, text(whose(code, what), ": "));
}

aj_status* call_caught(const void* code, const char* what, aj_status* (*call)(void* it), void* it) {
  aj_status* s;
  try {
    s = call(it);
  } catch (...) {
    return thrown_by(code, what);
  }
  if (__builtin_expect(!s, 1)) return nullptr;
  look_at_returned(s, code);
  return name_plugin(s, code, what);
}

void tell(aj_status* s) {
  if (!s) return;
  log_message(0, "plugins", s->message);
  free_status(s);
}

void call_drop(void (*drop)(void*), void* self, const char* what) {
  if (!drop) return;
  try {
    drop(self);
  } catch (...) {
    tell(thrown_by(reinterpret_cast<const void*>(drop), what));
  }
}

}  // namespace adjoin

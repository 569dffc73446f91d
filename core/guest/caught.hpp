// core/guest/caught.hpp: calls of functions of a plugin's: what they let out, or fail with, is told
// with its name.
#pragma once
#include "core/base/status.hpp"

namespace adjoin {

// What the caller did wrong, or asked for: whoever names the op has said enough.
bool is_about_the_call(int32_t code);

// In a handler: what was thrown, as an error; `who` did it. The unwinding of a thread that is
// cancelled goes on.
aj_status* thrown(std::string_view who);

// In a handler: the plugin's function let it out.
aj_status* thrown_by(const void* code, const char* what);
// "; it is of plugin acme 0.1 (/opt/libaj_acme.so)", or nothing: behind a sentence about what that
// code did.
std::string of_plugin(const void* code);
// A first look at what a plugin's function returned. If that is no status the process crashes here,
// and the crash handler asks returned_by() whose it was; else that is NULL.
void look_at_returned(const aj_status* s, const void* code);
const void* returned_by();
// An error that a plugin's function returned, with the plugin's name.
aj_status* name_plugin(aj_status* steal, const void* code, const char* what);
// call(it) calls `code`, which may not throw; this is the last place to say whose it is. An error
// is told with the plugin's name.
aj_status* call_caught(const void* code, const char* what, aj_status* (*call)(void* it), void* it);
template <class R, class... A, class F>
aj_status* caught(R (*code)(A...), const char* what, F call) {
  return call_caught(
      reinterpret_cast<const void*>(code), what,
      [](void* it) -> aj_status* { return (*static_cast<F*>(it))(); }, &call);
}

// An error that nobody waits for: the log has it.
void tell(aj_status* steal);
// A function that cannot fail: destroy and drop. NULL does nothing.
void call_drop(void (*drop)(void*), void* self, const char* what);

}  // namespace adjoin

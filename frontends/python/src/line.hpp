// frontends/python/src/line.hpp: where in the user's program a recorded call stands, as a 32-bit
// number.
#pragma once

#include "py.hpp"

namespace adjoin::py {

struct LineEntry {
  PyCodeObject* code;  // held as long as the process lives
  int lasti;
  uint32_t id;
  bool ours;  // inside the package: the user's line is further out
};
extern LineEntry line_cache[1024];

LineEntry* line_miss(PyCodeObject* code, int lasti);

inline LineEntry* line_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  Py_DECREF(code);  // the frame holds it
  int lasti = PyFrame_GetLasti(frame);
  auto slot = ((reinterpret_cast<uintptr_t>(code) >> 5) ^ static_cast<unsigned>(lasti) * 7) & 1023;
  LineEntry* e = &line_cache[slot];
  if (likely(e->code == code && e->lasti == lasti)) return e;
  return line_miss(code, lasti);
}

// The line kept by the outermost module call of ours on this thread, 0 if there is none.
extern thread_local uint32_t call_site;

// Tells the core the line of the call that is about to be recorded, or queued on a device.
void note_line();

// Of the core: keys of tensors whose calls have a line though nothing is recorded. Work on other
// devices than the host may fail when the program is elsewhere, and errors name its line; who
// listens to calls wants that of each.
extern const uint64_t* line_keys;
inline bool wants_line(uint64_t keys) {
  return unlikely((keys & __atomic_load_n(line_keys, __ATOMIC_RELAXED)) != 0) ||
         (keys & kAutogradKey && autograd->grad_mode());
}

aj_status* describe_line(uint32_t line, aj_object** out);
PyObject* line_text(uint32_t line);

}  // namespace adjoin::py

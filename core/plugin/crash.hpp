// core/plugin/crash.hpp: when the process dies in the code of a plugin, says whose it was and in
// which op.
#pragma once

namespace adjoin {

// From now on, for signals that nobody has taken; ADJOIN_CRASH_HANDLER=0 leaves it out.
void crash_handler_install();
// A thread's own stack for the handler: that of an overflow has no room.
void crash_stack_begin();
void crash_stack_end();

namespace plugin {

// What this thread does for a plugin, as "loaded" or "drained", until it is set back; both live so
// long.
struct AtWork {
  const char *label, *what;
};
AtWork set_at_work(AtWork now);  // what it was
// A line, or a part of one: label NULL is no plugin's, "" goes on.
void say(const char* label, const char* what, const char* more = "", const char* end = "");

}  // namespace plugin
}  // namespace adjoin

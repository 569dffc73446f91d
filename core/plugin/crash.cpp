// core/plugin/crash.cpp: what can be done about a crash, an abort or an exit() in the code of a
// plugin: to name it.
#include "core/plugin/crash.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/tls.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/pins.hpp"
#include "core/op/op.hpp"

namespace adjoin {
namespace plugin {
namespace {

struct Signal {
  int number;
  const char* text;
};
constexpr Signal kSignals[] = {{SIGABRT, ": the process aborted"},
                               {SIGSEGV, ": the process crashed"},
                               {SIGBUS, ": the process crashed"},
                               {SIGILL, ": the process crashed"},
                               {SIGFPE, ": the process crashed"}};
constexpr char kNoStatus[] = ": what its function returned is no status";
constexpr size_t kStack = 64 << 10;  // of which an unwinder needs a part

constinit thread_local AtWork at_work
    __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr};
constinit thread_local void* stack __attribute__((tls_model("initial-exec"))) = nullptr;
std::atomic<bool> installed{false};

// The innermost plugin that this thread is in: memcpy, free() and exit() are called by somebody.
const char* label_on_stack() {
  const char* found = nullptr;
  auto look = [](_Unwind_Context* frame, void* to) {
    auto* label = static_cast<const char**>(to);
    *label = label_at(reinterpret_cast<const void*>(_Unwind_GetIP(frame)));
    return *label ? _URC_END_OF_STACK : _URC_NO_REASON;
  };
  _Unwind_Backtrace(look, &found);
  return found;
}

const void* place_of(void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  return (void)machine, nullptr;
#endif
}

void tell(const char* label, const char* what) {
  if (at_work.label) {
    say(at_work.label, what, " while it was being ", at_work.what);
    return say("", returned_by() ? kNoStatus : "", "", "\n");
  }
  const aj_op* op = tls.running_op;
  const Kernel* k = tls.running_kernel;
  if (!label && k && !k->provider.empty()) label = k->provider.c_str();
  if (!label && !op) return;  // nothing of ours is running
  say(label, label ? what : what + 2, op ? " in a call of " : "",
      op ? op->schema.name.c_str() : "");
  say("", returned_by() ? kNoStatus : "", "", "\n");
}

void on_crash(int number, siginfo_t*, void* context) {
  const char* what = "";
  for (const Signal& s : kSignals)
    if (s.number == number) what = s.text;
  const void* code = returned_by() ? returned_by() : place_of(context);
  const char* label = at_work.label ? at_work.label : label_at(code);
  tell(label ? label : label_on_stack(), what);
  raise(number);  // comes when this returns, to the default action: SA_RESETHAND
}

// Another thread may end the program while this one is in a call: that is nobody's fault.
void at_exit() {
  if (at_work.label)
    tell(nullptr, ": called exit()");
  else if (tls.running_op)
    if (const char* label = label_on_stack()) tell(label, ": called exit()");
}

}  // namespace

// write(), since this runs in signal handlers and while the process is going down.
void say(const char* label, const char* what, const char* more, const char* end) {
  const char* begin = !label ? "adjoin: " : *label ? "adjoin: plugin " : "";
  const char* parts[] = {begin, label ? label : "", what, more, end};
  for (const char* part : parts)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

AtWork set_at_work(AtWork now) { return std::exchange(at_work, now); }

}  // namespace plugin

void crash_stack_begin() {
  stack_t now;
  if (!plugin::installed || plugin::stack || sigaltstack(nullptr, &now) != 0 ||
      !(now.ss_flags & SS_DISABLE))
    return;
  void* memory = mmap(nullptr, plugin::kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t mine = {};
  mine.ss_sp = memory;
  mine.ss_size = plugin::kStack;
  if (sigaltstack(&mine, nullptr) == 0)
    plugin::stack = memory;
  else
    munmap(memory, plugin::kStack);
}

void crash_stack_end() {
  if (!plugin::stack) return;
  stack_t now;
  bool mine = sigaltstack(nullptr, &now) == 0 && now.ss_sp == plugin::stack;
  now.ss_flags = SS_DISABLE;
  if (mine) sigaltstack(&now, nullptr);
  munmap(std::exchange(plugin::stack, nullptr), plugin::kStack);
}

void crash_handler_install() {
  static const bool once = [] {
    std::atexit(plugin::at_exit);
    const char* wish = secure_getenv("ADJOIN_CRASH_HANDLER");
    if (wish && std::string_view(wish) == "0") return true;
    for (const plugin::Signal& s : plugin::kSignals) {
      struct sigaction before, action = {};
      // A program's own handler, a debugger's or a sanitizer's, is left alone.
      if (sigaction(s.number, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) ||
          before.sa_handler != SIG_DFL)
        continue;
      action.sa_sigaction = plugin::on_crash;
      action.sa_flags = static_cast<int>(SA_RESETHAND | SA_SIGINFO | SA_ONSTACK);
      if (sigaction(s.number, &action, nullptr) == 0) plugin::installed = true;
    }
    return true;
  }();
  (void)once;
  crash_stack_begin();
}

}  // namespace adjoin

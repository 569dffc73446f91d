// frontends/python/src/bus_error.cpp: names the file when a mapped one was cut short and a page
// that is gone is touched.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "pt.hpp"

namespace adjoin::py {
namespace {

// Only what a signal handler may call. Lines of the list are "begin-end rights offset device inode
// path".
class MapsReader {
 public:
  explicit MapsReader(int file) : file_(file) {}

  // The path of the mapping around an address, in a buffer of its own; NULL if there is none.
  const char* path_at(uintptr_t address) {
    while (next_line()) {
      char* at = line_;
      uintptr_t begin = hex(at), end = *at++ == '-' ? hex(at) : 0;
      if (begin <= address && address < end) return std::strchr(line_, '/');
    }
    return nullptr;
  }

 private:
  static uintptr_t hex(char*& at) {
    uintptr_t n = 0;
    for (;; ++at) {
      bool digit = *at >= '0' && *at <= '9', letter = *at >= 'a' && *at <= 'f';
      if (!digit && !letter) return n;
      n = n * 16 + static_cast<uintptr_t>(digit ? *at - '0' : *at - 'a' + 10);
    }
  }

  bool next_line() {
    for (size_t n = 0;; ++at_) {
      if (at_ == got_) {
        ssize_t more = read(file_, buffer_, sizeof buffer_);
        if (more <= 0) return false;
        at_ = 0, got_ = static_cast<size_t>(more);
      }
      bool end = buffer_[at_] == '\n';
      if (n < sizeof line_ - 1) line_[n++] = end ? '\0' : buffer_[at_];
      line_[n] = '\0';
      if (end) return ++at_, true;
    }
  }

  int file_;
  size_t at_ = 0, got_ = 0;
  char buffer_[1024], line_[4352];
};

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void tell(uintptr_t address) {
  MapsReader maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  const char* path = maps.path_at(address);
  if (!path) return;
  say("adjoin: bus error: a page of the mapped file '");
  say(path);
  say("' is gone: was the file cut short after it was loaded? (load(..., mmap=False) reads it)\n");
}

// Returning repeats the fault, which ends the process once the default action is back. Other
// threads that fault come here again and again meanwhile, so that the first can finish its words.
void on_bus_error(int, siginfo_t* info, void*) {
  static std::atomic_flag told = ATOMIC_FLAG_INIT;
  if (!told.test_and_set()) {
    tell(reinterpret_cast<uintptr_t>(info->si_addr));
    signal(SIGBUS, SIG_DFL);
    ::raise(SIGBUS);  // if somebody sent it, nothing repeats it
  }
}

}  // namespace

PyObject* watch_mapped_files(PyObject*, PyObject*) {
  static bool done = false;
  struct sigaction now;
  if (!std::exchange(done, true) && sigaction(SIGBUS, nullptr, &now) == 0 &&
      !(now.sa_flags & SA_SIGINFO) &&
      now.sa_handler ==
          SIG_DFL) {  // a handler of the program's own, a debugger's or a sanitizer's stays
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK);
    sigaction(SIGBUS, &action, nullptr);
  }
  Py_RETURN_NONE;
}

}  // namespace adjoin::py

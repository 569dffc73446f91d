// core/base/log.cpp: what libadjoin says on stderr, and when.
#include "core/base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/plain.hpp"

namespace adjoin {
namespace {

constexpr const char* kLevels[] = {"error", "warning", "info", "trace"};

}  // namespace

int log_limit() {
  static const int limit = [] {
    const char* text = secure_getenv("ADJOIN_LOG");
    for (int i = 0; text && i < 4; i++)
      if (!std::strcmp(text, kLevels[i])) return i;
    if (text && *text)
      std::fprintf(stderr,
                   "adjoin warning: log: ADJOIN_LOG is '%.100s', wanted error, warning, info or "
                   "trace; errors and warnings are shown\n",
                   text);
    return 1;
  }();
  return limit;
}

void log_message(int32_t level, std::string_view who, std::string_view message) {
  if (level > log_limit()) return;
  std::fprintf(stderr, "adjoin %s: %.*s: %.*s\n", kLevels[level < 0 || level > 3 ? 3 : level],
               int(who.size()), who.data(), int(message.size()), message.data());
}

int64_t patience_ns() {
  static const int64_t ns = [] {
    const char* given = secure_getenv("ADJOIN_WATCHDOG");
    std::string_view rest = given ? given : "5";
    size_t all = rest.size();
    double s = take_double(&rest);
    return rest.size() == all || !(s >= 0) ? int64_t(5e9) : int64_t(std::min(s, 1e9) * 1e9);
  }();
  return ns;
}

}  // namespace adjoin

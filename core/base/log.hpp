// core/base/log.hpp: what libadjoin says on stderr, and when.
#pragma once
#include <cstdint>
#include <string_view>

namespace adjoin {

// Levels: 0 error, 1 warning, 2 info, 3 trace.
void log_message(int32_t level, std::string_view who, std::string_view message);
int log_limit();  // the highest level that is shown: ADJOIN_LOG; the first call warns of a wrong
                  // one

// How long anybody is waited for in silence: 5 s, or ADJOIN_WATCHDOG seconds; 0: for ever.
int64_t patience_ns();

}  // namespace adjoin

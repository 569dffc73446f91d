// core/guest/line.hpp: the user's place in a source file, for messages.
#pragma once
#include <string>

#include "core/base/tls.hpp"
#include "core/guest/frontend.hpp"

namespace adjoin {

inline uint32_t current_line() { return tls.site ? tls.site : tls.line; }
// "train.py:41 in step"; "" for 0 and for lines that no frontend knows.
inline std::string line_text(uint32_t line) { return frontend_line(line); }

}  // namespace adjoin

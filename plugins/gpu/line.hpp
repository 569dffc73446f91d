// plugins/gpu/line.hpp: the user's line that queued some work: a number at once, text when somebody
// is told of it.
#ifndef ADJOIN_PLUGINS_GPU_LINE_HPP
#define ADJOIN_PLUGINS_GPU_LINE_HPP
#include <adjoin/kit/error.hpp>
#include <cstdint>
#include <string>

namespace adjoin::gpu {

inline uint32_t line_now() {
  uint32_t line = 0, site = 0;
  kit::core().get_line(&line, &site);
  return site ? site : line;
}

// "" where nobody knows. Asked under no lock: it may have to wait for the language's.
inline std::string line_text(uint32_t line) {
  if (!line || !AJ_HAS_FN(&kit::core(), aj_core, line_text)) return {};
  aj_object* text = nullptr;
  if (aj_status* s = kit::core().line_text(line, &text)) {
    kit::core().status_free(s);
    return {};
  }
  std::string place(kit::view_of(kit::core().string_get(text)));
  kit::core().release(text);
  return place;
}

// The same status with more to say.
inline aj_status* again(const aj_status* s, std::string_view more) {
  const aj_core& core = kit::core();
  return kit::make_status(core.status_code(s), kit::view_of(core.status_kind(s)),
                          kit::text(kit::view_of(core.status_message(s)), more));
}
inline aj_status* with_place(aj_status* steal, const std::string& where) {
  if (!steal || where.empty()) return steal;
  aj_status* told = again(steal, "; queued by " + where);
  kit::core().status_free(steal);
  return told;
}

}  // namespace adjoin::gpu
#endif

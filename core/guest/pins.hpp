// core/guest/pins.hpp: counts what points into a plugin's file, so that nothing is unmapped under
// it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace adjoin {

// What holds a function of a plugin; the order of kPinNames in pins.cpp.
enum class Holder : uint8_t {
  object,
  function,
  hook,
  node,
  memory,
  frontend,
  call,
  listener,
  kinds
};

// Nothing happens for NULL and for addresses outside of plugins. Lock-free: a look at each loaded
// plugin's range.
void pin(Holder what, const void* code);
void unpin(Holder what, const void* code);

// One pin, as a member of what holds the function.
class Pin {
 public:
  Pin() = default;
  template <class R, class... A>
  Pin(Holder what, R (*code)(A...)) : Pin(what, reinterpret_cast<const void*>(code)) {}
  Pin(Holder what, const void* code) : code_(code), what_(what) { pin(what_, code_); }
  Pin(Pin&& other) noexcept { *this = std::move(other); }
  Pin& operator=(Pin&& other) noexcept {
    std::swap(code_, other.code_);
    std::swap(what_, other.what_);
    return *this;
  }
  ~Pin() { unpin(what_, code_); }

 private:
  const void* code_ = nullptr;
  Holder what_ = Holder::call;
};

namespace plugin {

struct PinnedFile;  // one a plugin's file, to the end of the process

// The file that `inside` is mapped from is that plugin's from now on; label lives as long as the
// process.
PinnedFile* pins_begin(PinnedFile* known, const void* inside, const char* name, const char* label);
void pins_end(PinnedFile* file);  // it is going to be unmapped
std::string pins_text(
    const PinnedFile* file);  // "2 objects and 1 hook point into it"; empty: nothing does
const char* label_at(
    const void* code);  // whose code is that? NULL: no plugin's. Safe in a signal handler
std::string plugin_at(const void* code);  // its name

}  // namespace plugin
}  // namespace adjoin

// core/op/autocast.hpp: which arguments are cast around an op while a thread has autocast on.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/tls.hpp"
#include "core/op/op.hpp"

namespace adjoin {

// What becomes of an op's floating arguments other than float64.
enum class Cast : uint8_t { none, low, float32, widest, refused };

// A device's own lists, or none: then the rows' tags count.
struct AutocastRules {
  int dtype = AJ_DT_FLOAT16;  // unless the user says one
  bool own = false;
  std::unordered_map<std::string, Cast> casts;  // by name, without an overload
};
aj_status* read_autocast(std::string_view device, std::string_view text, AutocastRules* out);

// Both want the registry's lock.
void set_autocast_rules(std::string_view device, AutocastRules rules);
void mark_autocast(std::span<aj_op* const> ops);  // for every device type that has a name now

extern const Kernel autocast_kernel;  // serves every op at its key
aj_status* autocast(int32_t device_type, aj_autocast* before, const aj_autocast* next);
void autocast_thread_end();

// While nodes run: what they compute with was cast when it was recorded.
class AutocastPause {
 public:
  AutocastPause() : state_(tls.autocast) {
    if (__builtin_expect(state_ != nullptr, 0)) pause();
  }
  ~AutocastPause() {
    if (__builtin_expect(state_ || tls.autocast, 0)) resume();
  }
  AutocastPause(const AutocastPause&) = delete;

 private:
  void pause();
  void resume();
  AutocastState* state_;
};

}  // namespace adjoin

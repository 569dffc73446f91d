// plugins/gpu/vendor/device_times.hpp: when the device has worked and for whose call, as a tool of
// the vendor's says it: the service aj.device_times/DEVICE over what each plugin opens
// (tracer_...).
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_DEVICE_TIMES_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_DEVICE_TIMES_HPP
#include <adjoin/abi/device_times.h>

#include <adjoin/kit/plugin.hpp>
#include <string>

#include "libraries.hpp"

namespace adjoin::vendor {

void offer_device_times(kit::Registrar& plugin, const char* name);

// The plugin's own. What the tool tells comes through the functions below, on any thread, and
// all of it before tracer_stop() returns.
SharedLibrary& tracer_file();
std::string tracer_start();  // "" or why it cannot
void tracer_stop();
void tracer_enter(uint64_t id);  // work that this thread queues from now on is for that event
void tracer_leave();

// The tool's number of a call of its interface joins the two.
struct Work {
  uint32_t kind;
  uint64_t number;
  std::string name;  // as the compiler has it
  int32_t device;
  uint64_t stream, begin, end, bytes;  // times of the tool's clock
};
void clock_reads(uint64_t theirs);  // the tool's clock, now
void take_work(Work work);
void take_owner(uint64_t number, uint64_t event);

}  // namespace adjoin::vendor
#endif

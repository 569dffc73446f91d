// core/memory/memory.hpp: the cached memory of devices: what fills aj_core's memory entries, and
// what the core asks besides.
//
// device_alloc and device_free (core/device/device.hpp) are the way in.
#pragma once
#include <adjoin/abi/core.h>
#include <adjoin/abi/memory.h>

#include <string>

#include "core/device/device.hpp"

namespace adjoin {

aj_status* memory_stats(DLDevice device, aj_memory_stats* io);
aj_status* memory_release(DLDevice device);
aj_status* memory_limit(DLDevice device, uint64_t bytes);  // 0: the default again
aj_status* memory_reset_peak(DLDevice device);

extern const aj_memory memory_table;  // "x.memory"

// `p` is about to be used on a stream that is not the one it was allocated on: its reuse will wait
// for that stream. Nothing to do on host devices.
void memory_use(Device* d, void* p, void* stream);

// What an out-of-memory error says after its first line: in use, cached, limit, the ten largest
// owners.
std::string memory_report(Device* d);

uint64_t memory_in_use(Device* d);  // as memory_stats says it
// Who is told of memory that is given out (bytes > 0) or taken back; NULL: nobody. No lock is held.
using MemoryTold = void (*)(Device* d, void* data, int64_t bytes);
extern std::atomic<MemoryTold> memory_told;
void memory_tell(MemoryTold whom);
// Memory is short, or the user wants it back: drops what can be made again. NULL: nothing is kept.
extern std::atomic<void (*)()> memory_trim;

void memory_thread_end();
void memory_fork_prepare();
void memory_fork_parent();
void memory_fork_child();

}  // namespace adjoin

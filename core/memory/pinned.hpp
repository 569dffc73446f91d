// core/memory/pinned.hpp: memory of the host that devices copy from and to while the program goes
// on. What is freed is kept, and handed out again when no queued copy uses it any more.
#pragma once
#include "core/device/device.hpp"

namespace adjoin {

struct PinnedBlock {
  void* block;  // for pinned_give
  char* p;
  uint64_t bytes;
};
aj_status* pinned_take(Device* owner, uint64_t wanted, PinnedBlock* out);
void pinned_give(void* block);
bool pinned_find(const void* p);  // p may be inside of a block
// A copy was queued on a device's stream from or to the block around p.
aj_status* pinned_use(const void* p, Device* d, void* stream);
void pinned_release(int32_t device_type);  // what nobody uses goes back to the devices of the kind

}  // namespace adjoin

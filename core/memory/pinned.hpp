// core/memory/pinned.hpp: memory of the host that devices copy from and to while the program goes
// on. What is freed is kept, and handed out again when no queued copy uses it any more.
#pragma once
#include "core/device/device.hpp"

namespace adjoin {

// A copy of a host tensor in such memory, taken from the first device of a kind; t itself if it
// lies there already.
aj_status* tensor_pin(aj_tensor* t, int32_t device_type, aj_tensor** out);
int32_t tensor_pinned(const aj_tensor* t);

bool pinned_find(const void* p);  // p may be inside of a block
// A copy was queued on a device's stream from or to the block around p.
aj_status* pinned_use(const void* p, Device* d, void* stream);
void pinned_release(int32_t device_type);  // what nobody uses goes back to the devices of the kind

}  // namespace adjoin

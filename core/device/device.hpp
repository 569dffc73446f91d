// core/device/device.hpp: the devices of this process, by number and by name, and memory on them.
#pragma once
#include <adjoin/abi/core.h>
#include <adjoin/abi/device.h>

#include <atomic>
#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace adjoin {

constexpr int kMaxKinds = 23;      // device numbers 1..23; the key's bit is the number - 1
constexpr int32_t kMetaType = 24;  // shapes without data; bit 23
constexpr uint64_t kBackendKeys = (1ull << 24) - 1;

struct Device;
struct DeviceMemory;                  // the cache of one device
DeviceMemory* memory_new(Device* d);  // core/memory has it; NULL: too many devices are open

// One physical device of a kind: what Storage points at.
struct Device {
  DLDevice id;
  uint32_t flags;  // AJ_DEV_...
  uint32_t pad;
  aj_device_vtbl vtbl;  // a copy clamped to what the plugin filled
  const char* plugin;   // who provides it
  DeviceMemory* memory;
  void* default_stream;
  uint64_t key() const { return 1ull << (id.device_type - 1); }
  bool host() const { return flags & AJ_DEV_HOST_MEMORY; }
};

// Finds a device that is there already; NULL if not. Hot: an array look-up.
Device* device_at(DLDevice id);
// Finds or opens device `id.device_id` of a kind; says what is missing.
aj_status* device_open(DLDevice id, Device** out);
Device* meta_device();
// Of a kind, the open one with the lowest number; NULL if none is.
Device* device_open_already(int32_t type);

// Registers a kind (from a plugin's transaction). The number is the DLPack code where there is one
// and it is free. A second provider of a name becomes active if its priority is higher and no
// device of the kind is in use yet; the others are reached as "name@plugin", with a number of their
// own.
// again (or null): a plugin that was disabled may register what it had; tells whether it had it.
aj_status* device_kind_add(const aj_device_vtbl* v, std::string_view plugin, bool* again = nullptr);
void devices_end(
    std::string_view plugin);  // it is disabled: what it provides is not found any more
std::string device_summary(std::string_view plugin);        // a line a device, for people
std::string provider_device_open(std::string_view plugin);  // a name, or empty: none is
void device_kind_remove(std::string_view name, std::string_view plugin);  // rollback
aj_status* device_kind_find(std::string_view name,
                            int32_t* out_type);  // loads the plugin that provides it
std::string_view device_kind_name(int32_t type);
int32_t device_kind_peek(std::string_view name);  // 0 if not loaded; loads nothing
aj_status* device_kind_count(int32_t type, int32_t* out);
aj_status* default_host(Device** out);    // "cpu"
aj_status* default_device(Device** out);  // "cpu"; loads its plugin at the first use
// The host device with AJ_DEV_HOST_FALLBACK and the highest priority; loads providers of
// "device:cpu"-like names is not its job.
Device* host_fallback_device();
aj_status* set_device_provider(std::string_view device,
                               std::string_view plugin);  // policy; "" is by priority again
std::string device_text(DLDevice id);  // "cuda:0"; "cpu" for id 0 of a host device

// The rest is core/memory's, but for stream_wait_for.
// Memory: bytes may be 0 (a valid address comes back). `got` receives the size to hand to
// device_free.
aj_status* device_alloc(Device* d, uint64_t bytes, void** out, uint64_t* got);
void device_free(Device* d, void* p, uint64_t got);

// A copy of bytes between any two devices (staged through the host if neither can reach the other).
// It has finished when it returns, except between devices of one kind that reach each other: their
// streams then wait for it. queued: likewise where the host's memory is pinned.
struct Bytes {
  Device* device;
  void* data;  // an address or a handle
  uint64_t offset;
};
aj_status* device_copy(Bytes to, Bytes from, uint64_t bytes, bool queued = false);
aj_status* device_synchronize(Device* d);
// What is queued later on `stream` of d waits for what this thread has queued there.
aj_status* stream_follows(Device* d, void* stream);
aj_status* stream_wait_for(Device* d,
                           void* stream);  // the user can interrupt it; NULL: the whole device
aj_status* event_wait_for(Device* d, void* event);  // likewise

// The stream of this thread's next calls on a device; NULL is the device's own default stream.
aj_status* stream_current(DLDevice id, void** out_native);
aj_status* stream_set(DLDevice id, void* native);
inline aj_status* stream_for(Device* d, void** out_native) {
  *out_native = d->default_stream;
  return d->flags & AJ_DEV_SYNCHRONOUS ? nullptr : stream_current(d->id, out_native);
}
// Somebody has set a stream: from then on calls say which memory they use on which stream.
extern std::atomic<bool> streams_in_use;

void devices_fork_prepare();
void devices_fork_parent();
void devices_fork_child();

}  // namespace adjoin

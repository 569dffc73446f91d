// plugins/gpu/vendor/memory.cpp: memory of a GPU, copies in every direction, and memory shared
// between processes.
#include "memory.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "status.hpp"

namespace adjoin::vendor {
namespace {

bool ours(DLDevice d) {
  std::string_view name = kit::view_of(kit::core().device_name(d.device_type));
  return name.substr(0, name.find('@')) == kDevice;
}

// Two devices of a machine may reach each other's memory directly if both are told once. Where they
// cannot, the runtime goes through the host by itself.
void befriend(int32_t from, int32_t to) {
  static std::mutex lock;
  static std::map<std::pair<int32_t, int32_t>, bool> done;
  std::lock_guard held(lock);
  if (std::exchange(done[{from, to}], true)) return;
  int can = 0;
  if (runtime().DeviceCanAccessPeer(&can, from, to) != kSuccess || !can) return;
  On here(from);
  if (!here.failed()) (void)runtime().DeviceEnablePeerAccess(to, 0);
  (void)runtime().GetLastError();  // "already enabled", by somebody else in the process
}

// What another process's memory was opened as: the runtime maps whole allocations.
struct Opened {
  std::mutex lock;
  std::multimap<void*, void*> base;  // the same address for each time that it was opened
};
Opened& opened() {
  static auto* one = new Opened;
  return *one;
}

constexpr size_t kOffsetAt = 64;  // in a handle, behind the runtime's own

}  // namespace

aj_status* mem_alloc(void*, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  *out = nullptr;
  return on(dev, "mem_alloc", [&](const Runtime& r) {
    size_t n = bytes ? bytes : 1;
    if (kind == AJ_MEM_PINNED) return r.HostAlloc(out, n, kHostAllocPortable);
    if (kind == AJ_MEM_MANAGED) return r.MallocManaged(out, n, kMemAttachGlobal);
    return r.Malloc(out, n);
  });
}

aj_status* mem_free(void*, int32_t dev, void* p, uint64_t, uint32_t kind) {
  return on(dev, "mem_free",
            [&](const Runtime& r) { return kind == AJ_MEM_PINNED ? r.FreeHost(p) : r.Free(p); });
}

aj_status* mem_info(void*, int32_t dev, uint64_t* free_bytes, uint64_t* total_bytes) {
  return on(dev, "mem_info", [&](const Runtime& r) {
    size_t unused = 0, all = 0;
    Result result = r.MemGetInfo(&unused, &all);
    *free_bytes = unused, *total_bytes = all;
    return result;
  });
}

aj_status* copy(void*, const aj_copy* c) {
  bool to_us = ours(c->dst_device), from_us = ours(c->src_device);
  int32_t dev = to_us ? c->dst_device.device_id : c->src_device.device_id;
  if (aj_status* s = ready()) return s;
  if (to_us && from_us && c->src_device.device_id != dev) {
    befriend(dev, c->src_device.device_id);
    befriend(c->src_device.device_id, dev);
  }
  // Addresses are unique in the machine: the runtime sees from them where each side is.
  return on(dev, "copy", [&](const Runtime& r) {
    auto stream = static_cast<Stream>(c->stream);
    Result result = c->height == 1 ? r.MemcpyAsync(c->dst, c->src, c->width, kMemcpyDefault, stream)
                                   : r.Memcpy2DAsync(c->dst, c->dst_pitch, c->src, c->src_pitch,
                                                     c->width, c->height, kMemcpyDefault, stream);
    bool waits = !c->stream && !(c->flags & AJ_COPY_QUEUED);
    return result == kSuccess && waits ? r.StreamSynchronize(stream) : result;
  });
}

aj_status* fill(void*, int32_t dev, void* p, uint64_t offset, const void* pattern,
                uint64_t pattern_bytes, uint64_t bytes, void* stream) {
  if (pattern_bytes == 0)
    return kit::fail(AJ_INVALID_ARGUMENT, kDevice, ": fill: the pattern is empty");
  if (bytes == 0) return nullptr;
  return on(dev, "fill", [&](const Runtime& r) {
    auto queue = static_cast<Stream>(stream);
    auto* to = static_cast<char*>(p) + offset;
    auto* from = static_cast<const unsigned char*>(pattern);
    if (std::all_of(from, from + pattern_bytes, [&](unsigned char b) { return b == *from; }))
      return r.MemsetAsync(to, *from, bytes, queue);
    // The pattern once, then what is there already, so the number of copies is a logarithm.
    uint64_t done = std::min(pattern_bytes, bytes);
    Result result = r.MemcpyAsync(to, pattern, done, kMemcpyDefault, queue);
    while (result == kSuccess && done < bytes) {
      uint64_t n = std::min(done, bytes - done);
      result = r.MemcpyAsync(to + done, to, n, kMemcpyDefault, queue);
      done += n;
    }
    return result;
  });
}

aj_status* ipc_export(void*, int32_t dev, void* p, uint8_t out_handle[128]) {
  static_assert(sizeof(IpcHandle) <= kOffsetAt);
  return on(dev, "ipc_export", [&](const Runtime& r) {
    IpcHandle handle;
    void* base = p;
    Result result = begin_of_allocation(p, &base);
    if (result == kSuccess) result = r.IpcGetMemHandle(&handle, base);
    uint64_t offset = uint64_t(static_cast<char*>(p) - static_cast<char*>(base));
    std::memset(out_handle, 0, 128);
    std::memcpy(out_handle, &handle, sizeof handle);
    std::memcpy(out_handle + kOffsetAt, &offset, sizeof offset);
    return result;
  });
}

aj_status* ipc_open(void*, int32_t dev, const uint8_t handle[128], void** out) {
  return on(dev, "ipc_open", [&](const Runtime& r) {
    IpcHandle h;
    uint64_t offset = 0;
    void* base = nullptr;
    std::memcpy(&h, handle, sizeof h);
    std::memcpy(&offset, handle + kOffsetAt, sizeof offset);
    Result result = r.IpcOpenMemHandle(&base, h, kIpcLazyPeerAccess);
    if (result != kSuccess) return result;
    *out = static_cast<char*>(base) + offset;
    std::lock_guard held(opened().lock);
    opened().base.emplace(*out, base);
    return result;
  });
}

aj_status* ipc_close(void*, int32_t dev, void* p) {
  void* base = nullptr;
  {
    std::lock_guard held(opened().lock);
    auto node = opened().base.extract(p);
    if (node.empty())
      return kit::fail(AJ_NOT_FOUND, kDevice, ": ipc_close: this address was not opened here");
    base = node.mapped();
  }
  return on(dev, "ipc_close", [&](const Runtime& r) { return r.IpcCloseMemHandle(base); });
}

}  // namespace adjoin::vendor

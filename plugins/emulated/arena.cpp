// plugins/emulated/arena.cpp: one file of memory, mapped twice: for the kernels, and for nobody.
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace adjoin::emulated {

using kit::fail;
constexpr uint64_t kAlign = 512;  // as devices like it
constexpr uint64_t kPage = 4096;

Arena arena;

aj_status* Arena::open(int32_t devices, uint64_t bytes_each) {
  std::lock_guard held(lock_);
  if (file_ >= 0) return nullptr;
  each_ = (bytes_each + kPage - 1) / kPage * kPage;
  uint64_t own = each_ * uint64_t(devices);
  length_ = own + each_;  // behind the devices': what other processes show
  int file = memfd_create("adjoin-emulated", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(own)) != 0)
    return fail(AJ_UNAVAILABLE, "emulated: no file in memory of ", length_,
                " bytes: ", std::strerror(errno),
                "; ask for less: ADJOIN_OPTIONS_EMULATED=memory=N");
  void* reached =
      mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  void* shown =
      mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reached == MAP_FAILED || shown == MAP_FAILED)
    return fail(AJ_UNAVAILABLE, "emulated: no address space for ", length_,
                " bytes: ", std::strerror(errno),
                "; ask for less: ADJOIN_OPTIONS_EMULATED=memory=N");
  begin_ = reinterpret_cast<uintptr_t>(shown);
  shift_ = reinterpret_cast<uintptr_t>(reached) - begin_;
  regions_.resize(size_t(devices) + 1);
  for (size_t i = 0; i < regions_.size(); ++i) regions_[i].free[i * each_] = each_;
  file_ = file;
  return nullptr;
}

aj_status* Arena::take(int32_t device, uint64_t bytes, void** out) {
  std::lock_guard held(lock_);
  Region& r = regions_[size_t(device)];
  uint64_t wanted = (bytes / kAlign + 1) * kAlign;
  for (auto [at, room] : r.free) {
    if (room < wanted) continue;
    r.free.erase(at);
    if (room > wanted) r.free[at + wanted] = room - wanted;
    r.used += wanted;
    *out = reinterpret_cast<void*>(begin_ + at);
    return nullptr;
  }
  return fail(AJ_OUT_OF_MEMORY, "emulated:", device, ": out of memory: asked for ", bytes,
              " bytes, ", each_ - r.used, " of ", each_, " are free");
}

bool Arena::give(int32_t device, void* p, uint64_t bytes) {
  uint64_t at = reinterpret_cast<uintptr_t>(p) - begin_, length = (bytes / kAlign + 1) * kAlign;
  if (at >= length_) return false;
  forget(p, bytes);
  std::lock_guard held(lock_);
  Region& r = regions_[size_t(device)];
  r.used -= length;
  put(r, at, length);
  return true;
}

void Arena::put(Region& r, uint64_t at, uint64_t length) {
  auto next = r.free.lower_bound(at);
  if (next != r.free.end() && next->first == at + length) {
    length += next->second;
    next = r.free.erase(next);
  }
  if (next != r.free.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == at) {
      before->second += length;
      return;
    }
  }
  r.free[at] = length;
}

void Arena::forget(void* p, uint64_t bytes) {
  uint64_t at = reinterpret_cast<uintptr_t>(p) - begin_;
  uint64_t lo = (at + kPage - 1) / kPage * kPage, hi = (at + bytes) / kPage * kPage;
  if (lo < hi)
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(lo), off_t(hi - lo));
}

uint64_t Arena::used(int32_t device) {
  std::lock_guard held(lock_);
  return regions_[size_t(device)].used;
}

aj_status* Arena::show(const void* p, uint8_t handle[128]) {
  uint64_t at = reinterpret_cast<uintptr_t>(p) - begin_;
  if (file_ < 0 || at >= length_ - each_)
    return fail(AJ_INVALID_ARGUMENT,
                "emulated: ipc_export: this is no memory of an emulated device");
  std::lock_guard held(lock_);
  Region& r = regions_[at / each_];
  auto behind = r.free.lower_bound(at);
  uint64_t end = behind == r.free.end() ? (at / each_ + 1) * each_ : behind->first;
  Handle h{"ajemul1", getpid(), file_, at, end - at};
  std::memset(handle, 0, 128);
  std::memcpy(handle, &h, sizeof h);
  return nullptr;
}

aj_status* Arena::adopt(const uint8_t handle[128], void** out) {
  Handle h;
  std::memcpy(&h, handle, sizeof h);
  if (std::memcmp(h.magic, "ajemul1", 8) != 0)
    return fail(AJ_INVALID_ARGUMENT, "emulated: ipc_open: this is no handle of an emulated device");
  std::string name = kit::text("/proc/", h.process, "/fd/", h.file);
  int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return fail(AJ_UNAVAILABLE, "emulated: ipc_open: the memory of process ", h.process,
                " cannot be opened: ", std::strerror(errno), "; does the process still run?");
  std::lock_guard held(lock_);
  uint64_t page = h.offset / kPage * kPage,
           length = (h.offset - page + h.bytes + kPage - 1) / kPage * kPage;
  Region& r = regions_.back();
  auto room =
      std::find_if(r.free.begin(), r.free.end(), [&](auto& f) { return f.second >= length; });
  void* got = MAP_FAILED;
  uint64_t at = room == r.free.end() ? 0 : room->first;
  if (room != r.free.end())
    got = mmap(reinterpret_cast<void*>(begin_ + shift_ + at), length, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, off_t(page));
  close(file);
  if (got == MAP_FAILED)
    return fail(AJ_OUT_OF_MEMORY, "emulated: ipc_open: no address space for ", length,
                " bytes of process ", h.process,
                "; close other handles, or ask for more: "
                "ADJOIN_OPTIONS_EMULATED=memory=N");
  uint64_t left = room->second - length;
  r.free.erase(room);
  if (left) r.free[at + length] = left;
  adopted_[at] = length;
  *out = reinterpret_cast<void*>(begin_ + at + (h.offset - page));
  return nullptr;
}

aj_status* Arena::part(void* p) {
  uint64_t at = (reinterpret_cast<uintptr_t>(p) - begin_) / kPage * kPage;
  std::lock_guard held(lock_);
  auto node = adopted_.extract(at);
  if (node.empty())
    return fail(AJ_NOT_FOUND, "emulated: ipc_close: this address was not opened here");
  void* closed = mmap(reinterpret_cast<void*>(begin_ + shift_ + at), node.mapped(), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (closed == MAP_FAILED) {  // the other's memory is still there
    adopted_.insert(std::move(node));
    return fail(AJ_INTERNAL, "emulated: ipc_close: ", std::strerror(errno));
  }
  put(regions_.back(), at, node.mapped());
  return nullptr;
}

}  // namespace adjoin::emulated

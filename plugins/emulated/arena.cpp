// plugins/emulated/arena.cpp: one file of memory, mapped twice: for the kernels, and for nobody.
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>

namespace adjoin::emulated {

using kit::fail;
constexpr uint64_t kAlign = 512;  // as devices like it
constexpr uint64_t kPage = 4096;

Arena arena;

aj_status* Arena::open(int32_t devices, uint64_t bytes_each) {
  std::lock_guard held(lock_);
  if (file_ >= 0) return nullptr;
  each_ = (bytes_each + kPage - 1) / kPage * kPage;
  length_ = each_ * uint64_t(devices);
  int file = memfd_create("adjoin-emulated", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(length_)) != 0)
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
  regions_.resize(size_t(devices));
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
  auto next = r.free.lower_bound(at);
  if (next != r.free.end() && next->first == at + length) {
    length += next->second;
    next = r.free.erase(next);
  }
  if (next != r.free.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == at) {
      before->second += length;
      return true;
    }
  }
  r.free[at] = length;
  return true;
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

}  // namespace adjoin::emulated

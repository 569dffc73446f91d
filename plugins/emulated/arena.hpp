// plugins/emulated/arena.hpp: the address space of all emulated devices. What the host is given
// cannot be read or written by it; kernels reach the same memory `shift` bytes away.
#ifndef ADJOIN_PLUGINS_EMULATED_ARENA_HPP
#define ADJOIN_PLUGINS_EMULATED_ARENA_HPP
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

struct aj_status;

namespace adjoin::emulated {

class Arena {
 public:
  // Reserves address space; no memory is taken before it is written to.
  aj_status* open(int32_t devices, uint64_t bytes_each);

  aj_status* take(int32_t device, uint64_t bytes, void** out);
  bool give(int32_t device, void* p, uint64_t bytes);
  void forget(void* p, uint64_t bytes);  // the pages go, the range stays
  uint64_t used(int32_t device);

  // Memory shared between processes: a handle of an address here, what another process's handle
  // stands for, and the end of that.
  aj_status* show(const void* p, uint8_t handle[128]);
  aj_status* adopt(const uint8_t handle[128], void** out);
  aj_status* part(void* p);
  uint64_t size() const { return each_; }

  // Where kernels find what the host calls p; memory of the host is where it is.
  template <class T>
  T* reach(T* p) const {
    auto at = reinterpret_cast<uintptr_t>(p);
    return at - begin_ < length_ ? reinterpret_cast<T*>(at + shift_) : p;
  }

 private:
  struct Region {
    std::map<uint64_t, uint64_t> free;  // offset, bytes
    uint64_t used = 0;
  };
  struct Handle {
    char magic[8];
    int64_t process, file;
    uint64_t offset, bytes;
  };
  void put(Region& r, uint64_t at, uint64_t length);  // wants the lock
  std::mutex lock_;
  std::vector<Region> regions_;           // one a device, and one for memory of other processes
  std::map<uint64_t, uint64_t> adopted_;  // offset and length of what was mapped from elsewhere
  uintptr_t begin_ = 0, length_ = 0, shift_ = 0;
  uint64_t each_ = 0;
  int file_ = -1;
};

extern Arena arena;

}  // namespace adjoin::emulated
#endif

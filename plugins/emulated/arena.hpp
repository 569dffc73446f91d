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
  std::mutex lock_;
  std::vector<Region> regions_;
  uintptr_t begin_ = 0, length_ = 0, shift_ = 0;
  uint64_t each_ = 0;
  int file_ = -1;
};

extern Arena arena;

}  // namespace adjoin::emulated
#endif

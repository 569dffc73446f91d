// core/memory/segments.hpp: the large memory of one device: segments of equal chunks, cut into
// blocks, joined again when freed.
//
// Which chunks are warm (backed by real pages or device memory) is known per chunk, so a block
// keeps its warm half when it is split, joined or partly cooled. Every function wants the owner's
// lock.
#pragma once
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

struct aj_op;

namespace adjoin {

enum class Use : uint8_t { free, block, slab };

struct Chunk {
  uint32_t first = 0;     // index of the first chunk of this block
  uint32_t length = 0;    // chunks of the block; kept at its first and last chunk
  uint32_t freed_at = 0;  // tick
  uint32_t line = 0;      // at the first chunk of a used block: who asked
  const aj_op* op = nullptr;
  Use use = Use::free;
  bool warm = false;
  uint16_t slab_class = 0;
};

struct Segment {
  char* base;
  uint32_t chunks;
  void* stream;  // every block of it belongs to this stream
  void* raw;     // what the device gave
  uint64_t raw_bytes;
  std::vector<Chunk> chunk;
};

class Segments {
 public:
  struct Place {
    Segment* segment;
    uint32_t index;
    Chunk& chunk() const { return segment->chunk[index]; }
  };
  // Gives pages back to the system; false if it could not.
  using Release = bool (*)(void* self, void* p, uint64_t bytes);

  explicit Segments(uint64_t granule)  // a power of two
      : granule_(granule), granule_bits_(std::countr_zero(granule)) {}
  uint64_t granule() const { return granule_; }
  uint64_t used() const { return used_; }            // bytes in blocks and slabs
  uint64_t warm_free() const { return warm_free_; }  // free bytes that still hold memory
  uint64_t reserved() const { return reserved_; }

  // Best fit among the free blocks of the stream; a segment of NULL if none is long enough.
  Place take(void* stream, uint32_t chunks, Use use);
  void give(Place at, uint32_t now);
  Place find(const void* p);                                 // the block that holds p
  bool overlaps(const void* raw, uint64_t raw_bytes) const;  // with what was added
  void add(void* raw, uint64_t raw_bytes, void* stream, bool warm);

  // Cools free chunks: those freed before `before`, then the longest free ones until at most `keep`
  // bytes are warm.
  void cool(uint64_t keep, uint32_t before, Release release, void* self);
  // Memory of that stream (or pool) stays though it is free; from then on it need not.
  void keep(void* stream) { kept_.insert(stream); }
  void release_from(void* stream) { kept_.erase(stream); }
  // Gives up segments that are free as a whole, until at most `keep` warm bytes are free.
  void drop_free_segments(uint64_t keep, Release release, void* self);

  template <class F>
  void each_block(F f) const {  // f(const Chunk& first, bytes)
    for (auto& [base, s] : segments_)
      for (uint32_t i = 0; i < s->chunks; i += s->chunk[i].length)
        if (s->chunk[i].use == Use::block) f(s->chunk[i], s->chunk[i].length * granule_);
  }
  template <class F>
  void each_segment(F f) const {
    for (auto& [base, s] : segments_) f(*s);
  }

 private:
  struct Key {
    void* stream;
    uint32_t length;
    char* at;
    auto operator<=>(const Key&) const = default;
  };
  void list(Segment* s, uint32_t first, uint32_t length);  // as a free block
  void unlist(Segment* s, uint32_t first);

  uint64_t granule_, used_ = 0, warm_free_ = 0, reserved_ = 0;
  int granule_bits_;
  std::set<Key> free_;
  std::set<void*> kept_;
  std::map<char*, std::unique_ptr<Segment>> segments_;
  Segment* found_ = nullptr;  // by find(), last
};

}  // namespace adjoin

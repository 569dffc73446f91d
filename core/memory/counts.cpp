// core/memory/counts.cpp: interface "x.memory": what was counted of a device's memory, and its
// pieces.
#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/base/guarded.hpp"
#include "core/memory/cache.hpp"
#include "core/memory/capture.hpp"

namespace adjoin {
namespace {

aj_status* counted(DLDevice id, const char* who, Device** out) {
  AJ_TRY(device_open(id, out));
  if (DeviceMemory* m = (*out)->memory; m && (!m->host || m->direct)) return nullptr;
  return fail(
      AJ_UNIMPLEMENTED, who, ": the memory of ", id,
      " is the host's, whose small blocks are not counted one by one; memory_stats has its sums");
}

void say(const Tallies& t, uint64_t (&blocks)[3], uint64_t (&bytes)[3]) {
  for (auto [from, to] : {std::pair{&t.blocks, blocks}, {&t.bytes, bytes}}) {
    to[AJ_TALLY_NOW] = from->current;
    to[AJ_TALLY_PEAK] = from->peak;
    to[AJ_TALLY_ALL] = from->total;
  }
}

aj_status* counts(DLDevice device, aj_memory_counts* io) {
  Device* d;
  AJ_TRY(counted(device, "memory_counts", &d));
  DeviceMemory& m = *d->memory;
  aj_memory_counts all{};
  all.struct_size = io->struct_size;
  {
    std::lock_guard held(m.lock);
    poll_pending(m, false);
    say(m.small, all.small_blocks, all.small_bytes);
    say(m.large, all.large_blocks, all.large_bytes);
    say(m.given, all.blocks, all.bytes);
    say(m.taken, all.segments, all.segment_bytes);
    for (const Pending& p : m.pending) all.waiting_blocks++, all.waiting_bytes += p.got;
    all.retries = m.retries, all.refusals = m.refusals;
  }
  std::memcpy(io, &all, std::min<size_t>(io->struct_size, sizeof all));
  return nullptr;
}

struct Piece {
  uint32_t state;
  char* data;
  uint64_t bytes;
  void* stream;
  uint64_t pool;
  const aj_op* op;
  uint32_t line;
};

// Wants the lock.
std::vector<Piece> pieces_of(DeviceMemory& m) {
  std::vector<Piece> found;
  std::unordered_set<const void*> waiting, free;
  for (const Pending& p : m.pending) waiting.insert(p.p);
  for (auto& [stream, central] : m.central)
    for (auto& list : central.free) free.insert(list.begin(), list.end());
  m.segments.each_segment([&](const Segment& s) {
    auto pool = std::ranges::find_if(m.pools, [&](auto& p) { return p.get() == s.stream; });
    bool of_graph = pool != m.pools.end();
    auto add = [&](uint32_t state, char* at, uint64_t bytes, const Chunk* who) {
      if (Piece* last = found.empty() ? nullptr : &found.back(); state == AJ_PIECE_FREE && last &&
                                                                 last->state == state &&
                                                                 last->data + last->bytes == at) {
        last->bytes += bytes;
        return;
      }
      found.push_back({state, at, bytes, of_graph ? (*pool)->stream : s.stream,
                       of_graph ? reinterpret_cast<uint64_t>(pool->get()) : 0,
                       who ? who->op : nullptr, who ? who->line : 0});
    };
    auto used = [&](char* at) { return waiting.contains(at) ? AJ_PIECE_WAITING : AJ_PIECE_USED; };
    add(AJ_PIECE_SEGMENT, static_cast<char*>(s.raw), s.raw_bytes, nullptr);
    for (uint32_t i = 0; i < s.chunks; i += s.chunk[i].length) {
      const Chunk& c = s.chunk[i];
      char* at = s.base + i * m.segments.granule();
      uint64_t bytes = c.length * m.segments.granule();
      if (c.use != Use::slab) {
        bool is_free = c.use == Use::free;
        add(is_free ? AJ_PIECE_FREE : used(at), at, bytes, is_free ? nullptr : &c);
        continue;
      }
      uint64_t size = medium_size(c.slab_class);
      for (uint64_t k = 0; k < kSlab / size; k++)
        add(free.contains(at + k * size) ? AJ_PIECE_FREE : used(at + k * size), at + k * size, size,
            nullptr);
      if (uint64_t rest = bytes % size) add(AJ_PIECE_FREE, at + bytes - rest, rest, nullptr);
    }
  });
  return found;
}

aj_status* pieces(DLDevice device, void* self,
                  void (*piece)(void* self, const aj_memory_piece* p)) {
  Device* d;
  AJ_TRY(counted(device, "memory_pieces", &d));
  DeviceMemory& m = *d->memory;
  if (m.direct)
    return fail(AJ_UNIMPLEMENTED, "memory_pieces: each tensor on ", device,
                " has memory of its own from the device, so there are no pieces to list");
  std::vector<Piece> all;
  {
    std::lock_guard held(m.lock);
    poll_pending(m, false);
    all = pieces_of(m);
  }
  for (const Piece& p : all) {
    aj_memory_piece one{};
    one.struct_size = sizeof one;
    one.state = p.state, one.data = p.data, one.bytes = p.bytes;
    one.device = d->id, one.stream = p.stream;
    one.pool = p.pool, one.line = p.line;
    std::string_view op = p.op ? op_name(p.op) : "";
    one.op = {op.data(), op.size()};
    piece(self, &one);
  }
  return nullptr;
}

}  // namespace

const aj_memory memory_table = {
    .struct_size = sizeof(aj_memory),
    .minor = 0,
    .counts = guarded<counts>,
    .pieces = guarded<pieces>,
};

}  // namespace adjoin

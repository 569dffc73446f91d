// frontends/cli/conform/device.cpp: the device table called directly: properties, memory, copies in
// every direction, fill, idle memory, running out of it.
#include <algorithm>
#include <cstring>
#include <memory>

#include "checks.hpp"

namespace adjoin::cli::conform {
namespace {

using Bytes = std::vector<unsigned char>;

std::string told(aj_status* s) {
  if (!s) return {};
  std::string text(kit::view_of(kit::core().status_message(s)));
  kit::core().status_free(s);
  return text.empty() ? "a status without a message" : text;
}

// Bytes of a device; `offset` is used with handles alone.
struct Place {
  const void* p;
  DLDevice device;
  uint64_t offset = 0;
};
constexpr DLDevice kHost{kDLCPU, 0};

// Memory of the device through its table.
class Block {
 public:
  Block(Bench& bench, uint64_t bytes) : bench_(bench), bytes_(bytes) {
    const aj_device_vtbl& t = *bench.table;
    if (!t.mem_alloc || !t.mem_free || !t.copy)
      kit::raise(AJ_UNIMPLEMENTED, "mem_alloc, mem_free and copy are needed");
    kit::check(t.mem_alloc(t.self, bench.device.device_id, bytes, AJ_MEM_DEVICE, &p_));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    const aj_device_vtbl& t = *bench_.table;
    if (p_) told(t.mem_free(t.self, bench_.device.device_id, p_, bytes_, AJ_MEM_DEVICE));
  }
  char* get() const { return static_cast<char*>(p_); }

  // So many bytes behind its begin; nobody computes with a handle.
  Place at(uint64_t offset) const {
    if (bench_.table->flags & AJ_DEV_OPAQUE_POINTERS) return {p_, bench_.device, offset};
    return {get() + offset, bench_.device};
  }

  void write(const Bytes& from) const { copy(at(0), {from.data(), kHost}, from.size()); }
  Bytes read(size_t n) const {
    Bytes to(n);
    copy({to.data(), kHost}, at(0), n);
    return to;
  }
  void copy(Place to, Place from, uint64_t width, uint64_t height = 1, uint64_t dst_pitch = 0,
            uint64_t src_pitch = 0) const {
    aj_copy c{};
    c.struct_size = sizeof c;
    c.dst = const_cast<void*>(to.p), c.dst_device = to.device, c.dst_offset = to.offset;
    c.src = from.p, c.src_device = from.device, c.src_offset = from.offset;
    c.width = width, c.height = height;
    c.dst_pitch = dst_pitch ? dst_pitch : width, c.src_pitch = src_pitch ? src_pitch : width;
    kit::check(bench_.table->copy(bench_.table->self, &c));
  }

 private:
  Bench& bench_;
  uint64_t bytes_;
  void* p_ = nullptr;
};

Bytes pattern(size_t n, unsigned salt) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i)
    b[i] = static_cast<unsigned char>((i * 131 + i / 251 + salt) & 255);
  return b;
}

void properties(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  int32_t n = 0;
  v.expect("count", told(t.count(t.self, &n)));
  v.expect("count", n > 0 ? "" : "there is no device");
  if (!t.props) return v.skip("no props");
  struct {
    aj_device_props props;
    unsigned char guard[64];
  } room;
  std::memset(&room, 0x5a, sizeof room);
  room.props.struct_size = uint32_t(offsetof(aj_device_props, min_alignment));
  v.expect("props", told(t.props(t.self, 0, &room.props)));
  auto* tail = reinterpret_cast<unsigned char*>(&room) + offsetof(aj_device_props, min_alignment);
  bool clean = std::all_of(tail, room.guard + 64, [](unsigned char c) { return c == 0x5a; });
  v.expect("props with a shorter struct", clean ? "" : "it wrote behind struct_size");
  aj_device_props p{};
  p.struct_size = sizeof p;
  v.expect("props", told(t.props(t.self, 0, &p)));
  uint32_t align = p.min_alignment;
  v.expect("min_alignment",
           (align & (align - 1)) == 0 ? "" : kit::text(align, " is no power of 2"));
  v.expect("name", p.name[0] && std::memchr(p.name, 0, sizeof p.name) ? "" : "it has no name");
}

void memory(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  aj_device_props p{};
  p.struct_size = sizeof p;
  if (t.props) told(t.props(t.self, 0, &p));
  std::vector<std::unique_ptr<Block>> blocks;
  const size_t sizes[] = {1, 7, 64, 1000, 4096, 65'537, 1 << 20, (8 << 20) + 5};
  unsigned salt = 0;
  for (size_t n : sizes) {
    bench.begin(kit::text("mem_alloc of ", n, " bytes"));
    blocks.push_back(std::make_unique<Block>(bench, n));
    auto at = reinterpret_cast<uintptr_t>(blocks.back()->get());
    bool handle = t.flags & AJ_DEV_OPAQUE_POINTERS;
    bool fits = handle || p.min_alignment < 2 || at % p.min_alignment == 0;
    v.expect(kit::text("mem_alloc of ", n), !at ? "NULL came back" : fits ? "" : "not aligned");
    blocks.back()->write(pattern(n, ++salt));
  }
  salt = 0;
  for (size_t i = 0; i < blocks.size(); ++i)  // after all were written: none may lie in another
    v.expect(kit::text("contents of ", sizes[i], " bytes"),
             blocks[i]->read(sizes[i]) == pattern(sizes[i], ++salt) ? "" : "they have changed");
  if (!t.mem_info) return v.skip("no mem_info");
  uint64_t free_bytes = 0, total = 0;
  v.expect("mem_info", told(t.mem_info(t.self, bench.device.device_id, &free_bytes, &total)));
  v.expect("mem_info", free_bytes <= total && total ? "" : "free is more than total");
}

void copies(Bench& bench, Verdict& v) {
  constexpr size_t kBytes = 10'000;
  Block a(bench, kBytes), b(bench, kBytes);
  Bytes x = pattern(kBytes, 3), y = pattern(kBytes, 77);
  a.write(x), b.write(y);
  bench.begin("copy within the device");
  a.copy(b.at(100), a.at(7), 4001);
  Bytes wanted = y;
  std::copy_n(x.begin() + 7, 4001, wanted.begin() + 100);
  v.expect("copy of 4001 bytes within the device", b.read(kBytes) == wanted ? "" : "wrong bytes");
  v.expect("copy to the host", a.read(kBytes) == x ? "" : "the source has changed");
  for (int way = 0; way < 3; ++way) {
    const char* names[] = {"host to device", "device to host", "device to device"};
    std::string where = std::string("copy with a pitch, ") + names[way];
    bench.begin(where);
    b.write(y);
    Bytes host = y;
    constexpr uint64_t kWidth = 37, kHeight = 20, kTo = 100, kFrom = 53, kAt = 11;
    if (way == 0) a.copy(b.at(kAt), {x.data(), kHost}, kWidth, kHeight, kTo, kFrom);
    if (way == 1) a.copy({host.data(), kHost}, a.at(kAt), kWidth, kHeight, kTo, kFrom);
    if (way == 2) a.copy(b.at(kAt), a.at(kAt), kWidth, kHeight, kTo, kFrom);
    wanted = y;
    uint64_t to = way == 1 ? 0 : kAt, from = way == 0 ? 0 : kAt;  // the host's begin at their begin
    for (uint64_t r = 0; r < kHeight; ++r)
      std::copy_n(x.begin() + int64_t(from + r * kFrom), kWidth,
                  wanted.begin() + int64_t(to + r * kTo));
    v.expect(where, (way == 1 ? host : b.read(kBytes)) == wanted ? "" : "wrong bytes");
  }
  bench.begin("copy of nothing");
  b.write(y);
  a.copy(b.at(0), a.at(0), 0);
  a.copy(b.at(0), a.at(0), 16, 0);
  v.expect("copy of nothing", b.read(kBytes) == y ? "" : "it wrote");
}

void fills(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.fill) return v.skip("no fill");
  constexpr size_t kBytes = 4096;
  Block a(bench, kBytes);
  Place at = a.at(64);
  for (uint64_t width : {1, 2, 4, 8, 16})
    for (uint64_t bytes : {uint64_t(0), width, width * 37, uint64_t(1001)}) {
      std::string where = kit::text("fill of ", bytes, " bytes with ", width);
      bench.begin(where);
      Bytes before = pattern(kBytes, 5), with = pattern(width, 200), wanted = before;
      a.write(before);
      for (uint64_t i = 0; i < bytes; ++i) wanted[64 + i] = with[i % width];
      v.expect(where, told(t.fill(t.self, at.device.device_id, const_cast<void*>(at.p), at.offset,
                                  with.data(), width, bytes, nullptr)));
      kit::check(kit::core().device_synchronize(bench.device));
      v.expect(where, a.read(kBytes) == wanted ? "" : "wrong bytes");
    }
}

void idle(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.mem_idle) return v.skip("no mem_idle");
  constexpr size_t kBytes = 4 << 20;
  Block a(bench, kBytes);
  a.write(pattern(kBytes, 1));
  v.expect("mem_idle", told(t.mem_idle(t.self, bench.device.device_id, a.get(), kBytes)));
  a.write(pattern(kBytes, 9));
  v.expect("after mem_idle", a.read(kBytes) == pattern(kBytes, 9) ? "" : "the range is lost");
}

Tensor bytes_on(DLDevice device, int64_t n) {
  DLTensor like{};
  like.device = device, like.dtype = uint8, like.ndim = 1, like.shape = &n;
  aj_tensor* t = nullptr;
  kit::check(kit::core().tensor_empty(&like, 0, &t));
  return Tensor::steal(t);
}

std::string refuses(Bench& bench, int64_t bytes) {
  try {
    bytes_on(bench.device, bytes);
    return "the memory was given";
  } catch (const kit::Error& e) {
    return e.code() == AJ_OUT_OF_MEMORY ? "" : "the wrong kind of error: " + e.message();
  }
}

void out_of_memory(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  void* p = &bench;
  bench.begin("mem_alloc of 2^60 bytes");
  aj_status* s = t.mem_alloc(t.self, bench.device.device_id, 1ull << 60, AJ_MEM_DEVICE, &p);
  int32_t code = s ? kit::core().status_code(s) : AJ_OK;
  told(s);
  v.expect("mem_alloc of 2^60 bytes",
           code == AJ_OUT_OF_MEMORY ? "" : "the status is not out of memory");
  Tensor before = place(from_numbers(float32, {3}, {1, 2, 3}), bench.device, Lay::kDense).tensor;
  bench.begin("a tensor of 2^60 bytes");
  v.expect("a tensor of 2^60 bytes", refuses(bench, 1ll << 60));
  aj_memory_stats stats{};
  stats.struct_size = sizeof stats;
  kit::check(kit::core().memory_stats(bench.device, &stats));
  uint64_t limit = stats.limit;
  kit::check(kit::core().memory_limit(bench.device, stats.in_use + (32 << 20)));
  bench.begin("a tensor above the limit");
  v.expect("a tensor above the limit", refuses(bench, 256 << 20));
  kit::check(kit::core().memory_limit(bench.device, limit));
  bench.begin("a tensor afterwards");
  bytes_on(bench.device, 1 << 20);
  v.expect("tensors after running out of memory",
           difference(fetch(before), from_numbers(float32, {3}, {1, 2, 3}), 1, true));
}

uint64_t free_now(Bench& bench) {
  const aj_device_vtbl& t = *bench.table;
  uint64_t free_bytes = 0, total = 0;
  kit::check(t.mem_info(t.self, bench.device.device_id, &free_bytes, &total));
  return free_bytes;
}

// Others may use the device too: what is lost is lost every time.
std::string lost(Bench& bench) {
  constexpr uint64_t kBytes = 16 << 20;
  uint64_t gone = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    uint64_t before = free_now(bench);
    for (int i = 0; i < 4; ++i) Block(bench, kBytes);
    uint64_t after = free_now(bench);
    if (after + 2 * kBytes > before) return {};
    gone = before - after;
  }
  return kit::text("of 4 blocks of 16 MiB that were freed, ", gone, " bytes are still taken");
}

void accounting(Bench& bench, Verdict& v) {
  aj_memory_stats a{}, b{};
  a.struct_size = b.struct_size = sizeof a;
  bytes_on(bench.device, 1000);
  kit::check(kit::core().memory_stats(bench.device, &a));
  for (int i = 0; i < 50; ++i) bytes_on(bench.device, 5 << 20);
  kit::check(kit::core().memory_stats(bench.device, &b));
  v.expect("memory in use after 50 tensors", a.in_use == b.in_use ? "" : "not what it was before");
  v.expect("reuse", b.system_allocations <= a.system_allocations + 2
                        ? ""
                        : kit::text(b.system_allocations - a.system_allocations, " allocations"));
  v.expect("memory_release", told(kit::core().memory_release(bench.device)));
  const aj_device_vtbl& t = *bench.table;
  if (t.mem_info && !(t.flags & AJ_DEV_HOST_MEMORY)) v.expect("mem_free", lost(bench));
}

}  // namespace

void add_device_groups(std::vector<Group>& plan) {
  plan.push_back({"properties", "", "", properties});
  plan.push_back({"memory", "", "", memory});
  plan.push_back({"copies", "", "", copies});
  plan.push_back({"fill", "", "", fills});
  plan.push_back({"idle memory", "", "", idle});
  plan.push_back({"accounting", "", "", accounting});
  plan.push_back({"out of memory", "", "", out_of_memory});
}

}  // namespace adjoin::cli::conform

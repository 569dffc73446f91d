// locker.cpp: a device of one's own, the least that is one: memory that the host does not read, and
// copies. Every op runs on the host for it; `adjoin new-backend` writes one with kernels.
//
//     adjoin.load_plugin("./libaj_locker.so")
//     x = adjoin.randn(4, device="locker")
#include <adjoin/kit/kit.hpp>
#include <cstdlib>

namespace {

using namespace adjoin::kit;

// What it keeps is turned over, so that reading it on the host gives nonsense.
constexpr unsigned char kTurned = 0xFF;

aj_status* count(void*, int32_t* out) {
  *out = 1;
  return nullptr;
}
aj_status* props(void*, int32_t, aj_device_props* io) {
  aj_device_props known = {};
  known.struct_size = io->struct_size;
  known.min_alignment = 64;
  std::strcpy(known.name, "locker");
  std::memcpy(io, &known, std::min<size_t>(io->struct_size, sizeof known));
  return nullptr;
}
aj_status* mem_alloc(void*, int32_t, uint64_t bytes, uint32_t, void** out) {
  *out = bytes < UINT64_MAX - 64 ? std::aligned_alloc(64, (bytes + 64) / 64 * 64) : nullptr;
  return *out ? nullptr
              : fail(AJ_OUT_OF_MEMORY, "locker: out of memory: asked for ", bytes, " bytes");
}
aj_status* mem_free(void*, int32_t, void* p, uint64_t, uint32_t) {
  std::free(p);
  return nullptr;
}
aj_status* copy(void*, const aj_copy* c) {
  unsigned char turn = c->dst_device.device_type == c->src_device.device_type ? 0 : kTurned;
  for (uint64_t row = 0; row < c->height; ++row) {
    auto* to = static_cast<unsigned char*>(c->dst) + row * c->dst_pitch;
    auto* from = static_cast<const unsigned char*>(c->src) + row * c->src_pitch;
    for (uint64_t i = 0; i < c->width; ++i) to[i] = from[i] ^ turn;
  }
  return nullptr;
}
aj_status* fill(void*, int32_t, void* p, uint64_t offset, const void* pattern, uint64_t width,
                uint64_t bytes, void*) {
  auto* to = static_cast<unsigned char*>(p) + offset;
  auto* from = static_cast<const unsigned char*>(pattern);
  for (uint64_t i = 0; i < bytes; ++i) to[i] = from[i % width] ^ kTurned;
  return nullptr;
}

}  // namespace

AJ_PLUGIN(.name = "locker", .version = "1.0.0", .provides = "device:locker") {
  static const aj_device_vtbl table = {.struct_size = sizeof table,
                                       .flags = AJ_DEV_SYNCHRONOUS,
                                       .name = AJ_STR_LIT("locker"),
                                       .count = count,
                                       .props = props,
                                       .mem_alloc = mem_alloc,
                                       .mem_free = mem_free,
                                       .copy = copy,
                                       .fill = fill};
  plugin.device(table);
}

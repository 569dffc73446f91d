// plugins/reference/plugin.cpp: the device that every other one is compared with. It depends on
// nothing but the contract, and plain loops win over fast ones here.
#include <adjoin/kit/plugin.hpp>
#include <cstdlib>

namespace adjoin::reference {
namespace {

using kit::fail;
constexpr uint64_t kAlign = 64;  // a cache line, and the widest vector register

aj_status* count(void*, int32_t* out) {
  *out = 1;
  return nullptr;
}

aj_status* props(void*, int32_t, aj_device_props* io) {
  aj_device_props known = {};
  known.struct_size = io->struct_size;
  known.min_alignment = kAlign;
  known.multiprocessors = 1;
  std::memcpy(known.name, "plain loops", 12);
  std::memcpy(io, &known, std::min<size_t>(io->struct_size, sizeof known));
  return nullptr;
}

aj_status* mem_alloc(void*, int32_t, uint64_t bytes, uint32_t, void** out) {
  uint64_t padded = (bytes / kAlign + 1) * kAlign;  // never 0, so every tensor has an address
  *out = padded > bytes ? std::aligned_alloc(kAlign, padded) : nullptr;
  if (*out) return nullptr;
  return fail(AJ_OUT_OF_MEMORY, "reference: out of memory: asked for ", bytes, " bytes");
}

aj_status* mem_free(void*, int32_t, void* p, uint64_t, uint32_t) {
  std::free(p);
  return nullptr;
}

// Both ends are host memory: copies with another device are that device's business.
aj_status* copy(void*, const aj_copy* c) {
  for (uint64_t row = 0; row < c->height; ++row)
    std::memcpy(static_cast<char*>(c->dst) + row * c->dst_pitch,
                static_cast<const char*>(c->src) + row * c->src_pitch, c->width);
  return nullptr;
}

aj_status* fill(void*, int32_t, void* p, uint64_t offset, const void* pattern,
                uint64_t pattern_bytes, uint64_t bytes, void*) {
  if (pattern_bytes == 0)
    return fail(AJ_INVALID_ARGUMENT, "reference: the pattern to fill with is empty");
  for (uint64_t at = 0; at < bytes; at += pattern_bytes)
    std::memcpy(static_cast<char*>(p) + offset + at, pattern, std::min(pattern_bytes, bytes - at));
  return nullptr;
}

constexpr aj_device_vtbl device =
    [] {  // no streams, no events: this device has finished when a call returns
      aj_device_vtbl v = {};
      v.struct_size = sizeof v;
      v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
      v.name = AJ_STR_LIT("reference");
      v.count = count;
      v.props = props;
      v.mem_alloc = mem_alloc;
      v.mem_free = mem_free;
      v.copy = copy;
      v.fill = fill;
      return v;
    }();

}  // namespace
}  // namespace adjoin::reference

AJ_PLUGIN(.name = "reference", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "device:reference") {
  plugin.device(adjoin::reference::device);
  plugin.kernels("reference");
}

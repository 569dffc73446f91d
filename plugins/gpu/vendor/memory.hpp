// plugins/gpu/vendor/memory.hpp: memory, copies and memory shared between processes, as the
// device's table wants them.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_MEMORY_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_MEMORY_HPP
#include <adjoin/abi/device.h>

namespace adjoin::vendor {

aj_status* mem_alloc(void*, int32_t dev, uint64_t bytes, uint32_t kind, void** out);
aj_status* mem_free(void*, int32_t dev, void* p, uint64_t bytes, uint32_t kind);
aj_status* mem_info(void*, int32_t dev, uint64_t* free_bytes, uint64_t* total_bytes);
aj_status* copy(void*, const aj_copy* c);
aj_status* fill(void*, int32_t dev, void* p, uint64_t offset, const void* pattern,
                uint64_t pattern_bytes, uint64_t bytes, void* stream);
aj_status* ipc_export(void*, int32_t dev, void* p, uint8_t out_handle[128]);
aj_status* ipc_open(void*, int32_t dev, const uint8_t handle[128], void** out);
aj_status* ipc_close(void*, int32_t dev, void* p);

}  // namespace adjoin::vendor
#endif

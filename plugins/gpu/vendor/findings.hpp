// plugins/gpu/vendor/findings.hpp: what kernels of a captured graph find belongs to the graph.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_FINDINGS_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_FINDINGS_HPP
#include <cstdint>

namespace adjoin::vendor {

// Between the first two the stream's launches take places that nobody else gets until the third.
void capture_opens(int32_t device, void* stream);
void capture_closes(int32_t device, void* stream, void* graph);  // null: there is no graph
void graph_ends(int32_t device, void* graph);

}  // namespace adjoin::vendor
#endif

// plugins/gpu/vendor/workspace.hpp: memory that a library works with during one call.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_WORKSPACE_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_WORKSPACE_HPP
#include <adjoin/kit/view.hpp>

#include "status.hpp"

namespace adjoin::vendor {

// From the core's memory, so it is counted, it is given back where memory is short, and a graph
// that is captured keeps its own. What is queued may use it when the call is over: the core hands
// it out again on the thread's stream only. To be made under no lock: it may wait for others.
class Workspace {
 public:
  Workspace(DLDevice device, size_t bytes, Stream stream) : stream_(stream) {
    auto n = int64_t(bytes);
    if (n == 0) return;
    tensor_ = kit::new_tensor(device, kit::dtype_of<uint8_t>, kit::Span(&n, 1));
    void* current = nullptr;
    elsewhere_ = kit::core().stream_current(device, &current) || current != stream;
  }
  ~Workspace() {
    if (!tensor_) return;
    if (elsewhere_) (void)runtime().StreamSynchronize(stream_);
    kit::core().release(tensor_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return tensor_ ? kit::MutView(tensor_).bytes() : nullptr; }

 private:
  Stream stream_;
  aj_tensor* tensor_ = nullptr;
  bool elsewhere_ = false;  // than on the thread's stream
};

}  // namespace adjoin::vendor
#endif

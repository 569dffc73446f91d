// plugins/cuda/dnn.hpp: cuDNN, opened when first asked for, and the descriptors that its graphs are
// built from.
#ifndef ADJOIN_PLUGINS_CUDA_DNN_HPP
#define ADJOIN_PLUGINS_CUDA_DNN_HPP
#include <cudnn.h>

#include <adjoin/kit/error.hpp>
#include <span>

#include "../gpu/vendor/libraries.hpp"

namespace adjoin::vendor {

// Every function that is called, without its prefix cudnn.
#define AJ_CUDNN_FUNCTIONS_(F) \
  F(GetVersion)                \
  F(GetErrorString)            \
  F(Create)                    \
  F(SetStream)                 \
  F(CreateTensorDescriptor)    \
  F(SetTensorNdDescriptor)     \
  F(DestroyTensorDescriptor)   \
  F(AddTensor)                 \
  F(ConvolutionBackwardBias)   \
  F(BackendCreateDescriptor)   \
  F(BackendDestroyDescriptor)  \
  F(BackendFinalize)           \
  F(BackendSetAttribute)       \
  F(BackendGetAttribute)       \
  F(BackendExecute)

struct Dnn {
#define AJ_POINTER_(name) decltype(&cudnn##name) name;
  AJ_CUDNN_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  static const Dnn* find();  // null if there is none that can be used
};
const SharedLibrary& dnn_file();
inline const Dnn& dnn() { return *Dnn::find(); }

void must(cudnnStatus_t status, const char* doing);  // raises what the library says

// A part of a graph: attributes are set, then it is finalized.
class Part {
 public:
  explicit Part(cudnnBackendDescriptorType_t type) {
    must(dnn().BackendCreateDescriptor(type, &handle_), "a part of a graph");
  }
  Part(Part&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Part& operator=(Part&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Part() {
    if (handle_) (void)dnn().BackendDestroyDescriptor(handle_);
  }

  template <class T>
  Part& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    must(dnn().BackendSetAttribute(handle_, name, type, 1, &value), "an attribute");
    return *this;
  }
  Part& set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    must(dnn().BackendSetAttribute(handle_, name, CUDNN_TYPE_INT64, int64_t(values.size()),
                                   values.data()),
         "an attribute");
    return *this;
  }
  Part& set(cudnnBackendAttributeName_t name, const Part& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.handle_);
  }
  Part& finalize(const char* what) {
    must(try_finalize(), what);
    return *this;
  }
  cudnnStatus_t try_finalize() { return dnn().BackendFinalize(handle_); }
  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace adjoin::vendor
#endif

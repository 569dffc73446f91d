// plugins/onednn/library.hpp: libdnnl.so.2, opened when the first problem asks for it. Who has none
// loses what this plugin offers and nothing else.
#ifndef ADJOIN_PLUGINS_ONEDNN_LIBRARY_HPP
#define ADJOIN_PLUGINS_ONEDNN_LIBRARY_HPP
#include <oneapi/dnnl/dnnl.h>

#include <adjoin/kit/error.hpp>

static_assert(DNNL_VERSION_MAJOR == 2, "version 3 has other descriptors");

namespace adjoin::onednn {

// Every function that is called, without its prefix dnnl_.
#define AJ_DNNL_FUNCTIONS_(F)                    \
  F(version)                                     \
  F(engine_create)                               \
  F(stream_create)                               \
  F(get_effective_cpu_isa)                       \
  F(memory_desc_init_by_strides)                 \
  F(memory_desc_init_by_tag)                     \
  F(memory_desc_equal)                           \
  F(memory_desc_get_size)                        \
  F(memory_create)                               \
  F(memory_set_data_handle)                      \
  F(memory_destroy)                              \
  F(primitive_attr_create)                       \
  F(primitive_attr_set_scratchpad_mode)          \
  F(primitive_attr_set_post_ops)                 \
  F(primitive_attr_set_output_scales)            \
  F(primitive_attr_destroy)                      \
  F(post_ops_create)                             \
  F(post_ops_append_sum)                         \
  F(post_ops_append_eltwise)                     \
  F(post_ops_destroy)                            \
  F(primitive_desc_create)                       \
  F(primitive_desc_query)                        \
  F(primitive_desc_query_md)                     \
  F(primitive_desc_destroy)                      \
  F(primitive_create)                            \
  F(primitive_execute)                           \
  F(primitive_destroy)                           \
  F(reorder_primitive_desc_create)               \
  F(matmul_desc_init)                            \
  F(dilated_convolution_forward_desc_init)       \
  F(dilated_convolution_backward_data_desc_init) \
  F(dilated_convolution_backward_weights_desc_init)

struct Library {
#define AJ_POINTER_(name) decltype(&dnnl_##name) name;
  AJ_DNNL_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  dnnl_engine_t engine;
  bool bfloat16;                           // at the hardware's rate
  int (*omp_get_max_threads)() = nullptr;  // both null where it has no OpenMP
  void (*omp_set_num_threads)(int) = nullptr;

  static const Library* find();  // null if there is none that can be used; the log says why
};

// The library; to be used after find() has found it.
inline const Library* opened = nullptr;
inline const Library& dnnl() { return *opened; }

void must(dnnl_status_t status, const char* doing);  // raises

dnnl_stream_t stream();  // of the calling thread

// While it lives the library computes on the calling thread alone: work is cut by us.
class Alone {
 public:
  Alone() {
    if (!dnnl().omp_set_num_threads) return;
    before_ = dnnl().omp_get_max_threads();
    if (before_ != 1) dnnl().omp_set_num_threads(1);
  }
  ~Alone() {
    if (before_ != 1) dnnl().omp_set_num_threads(before_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  int before_ = 1;
};

}  // namespace adjoin::onednn
#endif

// plugins/ops_sparse/sparse.hpp: what a sparse tensor is made of, and the words that kernels and
// bodies share.
//
// A sparse tensor is a wrapper (adjoin/abi/wrap.h) whose payload is Parts. Functions over Parts see
// strided tensors alone and record nothing; what is to be recorded calls rows.
#pragma once
#include <adjoin/abi/wrap.h>

#include <adjoin/kit/grad.hpp>
#include <adjoin/kit/kernel.hpp>
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/memory.hpp>

namespace adjoin::ops::sparse {

struct Parts {
  Layout layout = Layout::sparse_coo;
  Sizes size;
  Tensor indices;  // COO: [sparse dimensions, n]. Compressed: where each row, or column, begins
  Tensor plain;    // compressed: the other index of each element
  Tensor values;   // [n, dense dimensions]; compressed: [n, blocks, dense dimensions]
  bool coalesced = false;  // COO: in order, each place once

  bool is_coo() const { return layout == Layout::sparse_coo; }
  // Dimensions of a stack of compressed matrices, all with as many elements; most kernels refuse
  // it.
  int64_t batch() const { return is_coo() ? 0 : indices.ndim() - 1; }
  int64_t sparse_dim() const { return is_coo() ? indices.size(0) : 2; }
  int64_t dense_dim() const { return int64_t(size.size()) - sparse_dim() - batch(); }
  int64_t count() const { return values.size(batch()); }
  DLDataType dtype() const { return values.dtype(); }
  Sizes sparse_size() const { return Sizes(size.begin(), size.begin() + batch() + sparse_dim()); }
  Sizes dense_size() const { return Sizes(size.begin() + batch() + sparse_dim(), size.end()); }
};

// payload.cpp
const Parts* maybe_parts(const Tensor& t);                     // nullptr: not sparse
const Parts& parts_of(const Tensor& t, std::string_view who);  // no stack of matrices
const Parts& any_parts_of(const Tensor& t, std::string_view who);
inline bool is_sparse(const Tensor& t) { return t.defined() && maybe_parts(t); }
Tensor wrapped(Parts parts, const Tensor& view_of = {});
std::string_view layout_name(Layout layout);
[[noreturn]] void refuse(std::string_view op, const Parts& p, std::string_view what);

// coo.cpp
Parts with_values(const Parts& p, Tensor values);  // the same places
Parts empty_coo(const Sizes& size, int64_t sparse_dim, DLDataType dtype, DLDevice device);
void check_coo(const Parts& p);
Tensor flat_places(const Tensor& indices, std::span<const int64_t> size);
Parts coalesced(const Parts& p);
Tensor dense_of(const Parts& p);
Parts coo_of_dense(const Tensor& t, int64_t sparse_dim);
Tensor values_at(const Parts& p,
                 const Tensor& indices);  // p's values there; zeros where it has none
Tensor values_at(const Tensor& dense, const Tensor& indices);
Parts repeated(const Parts& p, const Sizes& size);
bool same_places(const Parts& a, const Parts& b);

// compressed.cpp
void check_compressed(const Parts& p);
Tensor places(const Parts& p);  // the sparse coordinates of each value, in the order of values
Parts coo_of(const Parts& p);
Parts in_layout(const Parts& p, Layout layout, Ints blocks);
Parts laid_like(const Parts& p, const Parts& like);
Parts nothing_like(const Parts& p, Layout layout, DLDataType dtype, DLDevice device);
Parts transposed_name(const Parts& p);

// pointwise.cpp
Tensor scaled(const Tensor& t, const Scalar& alpha, DLDataType dtype);  // alpha t in that dtype

// shape.cpp
Tensor indices_of(const Tensor& like, const std::vector<int64_t>& list);

// rows.cpp
Tensor with_places(const Parts& p, const Tensor& values);  // the same places; recorded
Tensor values_like(const Tensor& g, const Parts& p);       // g at the places of p; recorded
Tensor summed_to(const Tensor& g, const Sizes& size);      // undoes broadcasting; recorded

// reduce.cpp
Tensor spread(const Tensor& g, const Parts& p, const Ints& dim);

// product.cpp
Tensor times_dense(const Parts& a, const Tensor& b);

// A kernel's result, instead of what the call may have lent: the core moves it there.
inline void give(aj_call* call, Tensor t) {
  call->rets[0] = aj_value{AJ_TENSOR, 0, {0}};
  call->rets[0].v.tensor = t.take();
}
template <class F>
aj_status* kernel(aj_call* call, F&& f) {
  return kit::guard(call, [&] { give(call, f(kit::Values(call->args))); });
}

// One that is registered at the key "sparse".
using Table = const kit::Kernel;
inline kit::Spec at(aj_kernel_fn fn) { return {fn, 0, 0}; }

}  // namespace adjoin::ops::sparse

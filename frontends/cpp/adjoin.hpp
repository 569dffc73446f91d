// adjoin/adjoin.hpp: Adjoin from C++: tensors, every op of the registry as a function, backward,
// plugins, files.
//
// Header-only C++20 over the C contract; link with -ladjoin and nothing else. Errors are
// adjoin::Error (code, kind, message). Namespaces are hidden: each shared library of a program has
// its own pointer to the tables.
#ifndef ADJOIN_ADJOIN_HPP
#define ADJOIN_ADJOIN_HPP
#include <adjoin/data.hpp>
#include <adjoin/joined.hpp>
#include <adjoin/kit/call.hpp>
#include <adjoin/kit/ops.hpp>
#include <adjoin/kit/tensor.hpp>
#include <adjoin/nn.hpp>
#include <adjoin/optim.hpp>
#include <adjoin/plugins.hpp>
#include <adjoin/safetensors.hpp>
#include <adjoin/state.hpp>
#include <adjoin/values.hpp>

namespace AJ_HIDDEN adjoin {

// The first of two devices that is there.
inline DLDevice device_or(std::string_view wanted, std::string_view otherwise) {
  try {
    DLDevice d = device(wanted);
    int32_t count = 0;
    kit::check(kit::env.core->device_count(d.device_type, &count));
    if (count > d.device_id) return d;
  } catch (const Error&) {
  }
  return device(otherwise);
}

inline void set_num_threads(int32_t n) { kit::check(kit::env.core->set_num_threads(n)); }
inline int32_t num_threads() { return kit::env.core->num_threads(); }

// Gradients of `outputs` (one element each) with respect to `inputs`; nothing is accumulated in
// .grad(). An input that is not reached gives an undefined tensor.
inline std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                                bool create_graph = false) {
  std::vector<aj_tensor*> roots, wanted, got(inputs.size());
  for (const Tensor& t : outputs) roots.push_back(t.get());
  for (const Tensor& t : inputs) wanted.push_back(t.get());
  aj_backward run{};
  run.struct_size = sizeof run;
  run.flags = AJ_BACKWARD_ALLOW_UNUSED |
              (create_graph ? AJ_BACKWARD_CREATE_GRAPH | AJ_BACKWARD_RETAIN_GRAPH : 0u);
  run.roots = roots.data(), run.nroots = uint32_t(roots.size());
  run.inputs = wanted.data(), run.ninputs = uint32_t(wanted.size());
  run.out = got.data();
  kit::check(kit::env.autograd->backward(&run));
  std::vector<Tensor> list;
  for (aj_tensor* t : got) list.push_back(Tensor::steal(t));
  return list;
}

}  // namespace adjoin
#endif

// adjoin/safetensors.hpp: reads and writes files of the safetensors format
// (https://github.com/huggingface/safetensors). The file is mapped privately: tensors read from it
// cost no copy.
#ifndef ADJOIN_SAFETENSORS_HPP
#define ADJOIN_SAFETENSORS_HPP
// clang-format off
#include "joined.hpp"  // before the kit
// clang-format on
#include "files/atomic.hpp"
#include "files/safetensors.hpp"

namespace AJ_HIDDEN adjoin {

inline std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  return files::read_safetensors(std::make_shared<files::Mapping>(path), path);
}

// Never a half file: see files/atomic.hpp.
inline void save_safetensors(const std::map<std::string, Tensor>& tensors,
                             const std::string& path) {
  files::AtomicFile file(path);
  files::write_safetensors(tensors, file);
  file.commit();
}

}  // namespace adjoin
#endif

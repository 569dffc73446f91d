// adjoin/state.hpp: files of tensors by their ending: .safetensors, and PyTorch's .pt where that
// reader is installed.
#ifndef ADJOIN_STATE_HPP
#define ADJOIN_STATE_HPP
#include <adjoin/joined.hpp>
#include <adjoin/safetensors.hpp>
#if __has_include(<adjoin/pt.hpp>)
#include <adjoin/pt.hpp>
#endif

namespace AJ_HIDDEN adjoin {

// net.load_state_dict(load("net.safetensors"));
inline std::map<std::string, Tensor> load(const std::string& path) {
  if (path.ends_with(".safetensors")) return load_safetensors(path);
#if __has_include(<adjoin/pt.hpp>)
  return load_pt(path);
#else
  kit::raise(AJ_UNIMPLEMENTED, "load: '", path, "': only .safetensors can be read");
#endif
}

// save(net.state_dict(), "net.safetensors");
inline void save(const std::map<std::string, Tensor>& tensors, const std::string& path) {
  if (path.ends_with(".safetensors")) return save_safetensors(tensors, path);
#if __has_include(<adjoin/pt.hpp>)
  save_pt(tensors, path);
#else
  kit::raise(AJ_UNIMPLEMENTED, "save: '", path, "': only .safetensors can be written");
#endif
}

}  // namespace adjoin
#endif

// adjoin/files/pickle_writer.hpp: writes pickles of protocol 2, of the opcodes that PyTorch's
// careful reader knows, and tensors in them under PyTorch's names.
#ifndef ADJOIN_FILES_PICKLE_WRITER_HPP
#define ADJOIN_FILES_PICKLE_WRITER_HPP
#include <adjoin/kit/error.hpp>
#include <bit>
#include <map>
#include <span>
#include <vector>

#include "storages.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x02") {}

  void op(char c) { out_ += c; }
  void none() { op('N'); }
  void boolean(bool b) { op(b ? '\x88' : '\x89'); }
  void integer(int64_t n) {
    if (n >= 0 && n < 256) return op('K'), raw(uint8_t(n));
    if (n >= 0 && n < 65536) return op('M'), raw(uint16_t(n));
    if (n == int32_t(n)) return op('J'), raw(int32_t(n));
    wide(n);
  }
  // Of nine bytes however small, so that it can be corrected later. Where its number begins.
  size_t wide(int64_t n) {
    op('\x8a'), raw(uint8_t(8)), raw(n);
    return out_.size() - 8;
  }
  void correct(size_t at, int64_t n) { std::memcpy(out_.data() + at, &n, 8); }
  void long_integer(std::string_view bytes) {  // little endian, two's complement
    if (bytes.size() < 256)
      op('\x8a'), raw(uint8_t(bytes.size()));
    else
      op('\x8b'), raw(int32_t(bytes.size()));
    out_ += bytes;
  }
  void real(double x) { op('G'), raw(__builtin_bswap64(std::bit_cast<uint64_t>(x))); }
  void text(std::string_view s) {
    if (s.size() > INT32_MAX)
      kit::raise(AJ_INVALID_ARGUMENT, "save: a string of ", uint64_t(s.size()),
                 " bytes is too long");
    op('X'), raw(uint32_t(s.size()));
    out_ += s;
  }
  // A text that is written once and remembered.
  void name(std::string_view s) {
    if (recall("s" + std::string(s))) return;
    text(s);
    remember("s" + std::string(s));
  }
  void global(std::string_view module, std::string_view name) {
    std::string key = kit::text("c", module, "\n", name);
    if (recall(key)) return;
    out_ += key += '\n';
    key.pop_back();
    remember(key);
  }
  void tuple(size_t n) {
    op(n == 0 ? ')' : n == 1 ? '\x85' : n == 2 ? '\x86' : n == 3 ? '\x87' : 't');
  }
  void integers(std::span<const int64_t> list) {
    if (list.size() > 3) op('(');
    for (int64_t n : list) integer(n);
    tuple(list.size());
  }

  // The object on the stack gets a number, by which get() brings it back.
  uint32_t put() {
    uint32_t n = memo_++;
    if (n < 256)
      op('q'), raw(uint8_t(n));
    else
      op('r'), raw(n);
    return n;
  }
  void get(uint32_t n) {
    if (n < 256)
      op('h'), raw(uint8_t(n));
    else
      op('j'), raw(n);
  }

  struct TensorPlace {
    std::string_view dtype, location;
    size_t storage;  // its number
    int64_t numel;   // of the storage
    int64_t offset;
    std::span<const int64_t> shape, strides;
    bool requires_grad;
    bool own;  // of the storage's own dtype, which has a name as a storage; else it is told
  };

  void rebuild_name(const TensorPlace& t) {
    global("torch._utils",
           t.own && storage_of_dtype(t.dtype) ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  }
  // The name of a storage. Where its numel stands.
  size_t storage(const TensorPlace& t) {
    const char* typed = t.own ? storage_of_dtype(t.dtype) : nullptr;
    op('(');
    name("storage");
    typed ? global("torch", typed) : global("torch.storage", "UntypedStorage");
    text(std::to_string(t.storage));
    name(t.location);
    size_t numel = wide(t.numel);
    out_ += "tQ";
    return numel;
  }
  // The arguments of the rebuilding function. Where the storage's numel stands.
  size_t rebuild_arguments(const TensorPlace& t) {
    const char* typed = t.own ? storage_of_dtype(t.dtype) : nullptr;
    op('(');
    size_t numel = storage(t);
    integer(t.offset);
    integers(t.shape);
    integers(t.strides);
    boolean(t.requires_grad);
    ordered_dict();
    if (!typed) global("torch", t.dtype);
    op('t');
    return numel;
  }
  size_t tensor(const TensorPlace& t) {
    rebuild_name(t);
    size_t numel = rebuild_arguments(t);
    op('R');
    return numel;
  }
  void ordered_dict() { global("collections", "OrderedDict"), out_ += ")R"; }

  const std::string& end() {
    op('.');
    return out_;
  }

 private:
  template <class T>
  void raw(T n) {
    out_.append(reinterpret_cast<const char*>(&n), sizeof n);
  }
  bool recall(const std::string& key) {
    auto found = names_.find(key);
    if (found != names_.end()) get(found->second);
    return found != names_.end();
  }
  void remember(const std::string& key) { names_[key] = put(); }

  std::string out_;
  uint32_t memo_ = 0;
  std::map<std::string, uint32_t> names_;
};

}  // namespace files
}  // namespace adjoin
#endif

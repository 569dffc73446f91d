// adjoin/safetensors.hpp: reads and writes the safetensors format (https://github.com/huggingface/safetensors): 8 bytes of
// header size, a JSON header, the bytes. The file is mapped privately: tensors read from it cost no copy. Every number in
// the header is checked against the file before it is used.
#ifndef ADJOIN_SAFETENSORS_HPP
#define ADJOIN_SAFETENSORS_HPP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include <adjoin/kit/ops.hpp>

namespace AJ_HIDDEN adjoin {
namespace files {

struct DTypeName {
  const char* name;
  DLDataType dtype;
};
inline constexpr DTypeName dtype_names[] = {
    {"BOOL", boolean}, {"U8", uint8}, {"I8", int8}, {"I16", int16}, {"I32", int32}, {"I64", int64}, {"U16", uint16},
    {"U32", uint32}, {"U64", uint64}, {"F16", float16}, {"BF16", bfloat16}, {"F32", float32}, {"F64", float64},
    {"C64", complex64}, {"C128", complex128}};

// A mapping that its tensors keep alive.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (file < 0 || fstat(file, &info) != 0) {
      if (file >= 0) close(file);
      kit::raise(AJ_NOT_FOUND, "load: cannot open '", path, "': ", std::strerror(errno));
    }
    size = size_t(info.st_size);
    void* p = size ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : nullptr;
    close(file);
    if (p == MAP_FAILED) kit::raise(AJ_OUT_OF_MEMORY, "load: cannot map '", path, "': ", std::strerror(errno));
    data = static_cast<char*>(p);
  }
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (data) munmap(data, size);
  }
  char* data = nullptr;
  size_t size = 0;
};

// As much JSON as the header needs: objects, strings, lists of whole numbers.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}
  bool eat(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!eat(c)) wrong();
  }
  std::string string() {
    need('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\') {
        if (at_ >= text_.size()) wrong();
        c = text_[at_++];
        if (c == 'u') wrong();  // names of tensors are plain
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
      }
      out += c;
    }
    need('"');
    return out;
  }
  uint64_t number() {
    eat(' ');
    uint64_t n = 0;
    size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(n, uint64_t(10), &n) || __builtin_add_overflow(n, uint64_t(text_[at_] - '0'), &n)) wrong();
      ++at_;
    }
    if (from == at_) wrong();
    return n;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> list;
    need('[');
    if (eat(']')) return list;
    do {
      uint64_t n = number();
      if (n > uint64_t(INT64_MAX)) wrong();
      list.push_back(int64_t(n));
    } while (eat(','));
    need(']');
    return list;
  }
  void skip_strings() {  // __metadata__
    need('{');
    if (eat('}')) return;
    do string(), need(':'), string();
    while (eat(','));
    need('}');
  }
  [[noreturn]] void wrong() { kit::raise(AJ_DATA_LOSS, "load: '", path_, "': the header is broken at byte ", uint64_t(at_ + 8)); }

 private:
  std::string_view text_;
  std::string path_;
  size_t at_ = 0;
};

struct Entry {
  std::string dtype;
  std::vector<int64_t> shape, offsets;
};

inline Entry read_entry(Header& h) {
  Entry e;
  h.need('{');
  do {
    std::string key = h.string();
    h.need(':');
    if (key == "dtype") e.dtype = h.string();
    else if (key == "shape") e.shape = h.numbers();
    else if (key == "data_offsets") e.offsets = h.numbers();
    else h.wrong();
  } while (h.eat(','));
  h.need('}');
  return e;
}

inline Tensor make_tensor(const std::string& name, const Entry& e, const std::shared_ptr<Mapping>& map, size_t begin) {
  const DTypeName* type = nullptr;
  for (const DTypeName& t : dtype_names)
    if (e.dtype == t.name) type = &t;
  uint64_t bytes = type ? type->dtype.bits / 8 : 0;
  bool fits = type && e.offsets.size() == 2 && e.shape.size() <= 64;
  for (int64_t n : e.shape) fits = fits && !__builtin_mul_overflow(bytes, uint64_t(n), &bytes);
  fits = fits && e.offsets[0] <= e.offsets[1] && uint64_t(e.offsets[1]) <= map->size - begin &&
         uint64_t(e.offsets[1] - e.offsets[0]) == bytes;
  if (!fits) kit::raise(AJ_DATA_LOSS, "load: tensor '", name, "': dtype, shape and place in the file do not agree");
  DLTensor like{map->data + begin + e.offsets[0], {kDLCPU, 0}, int32_t(e.shape.size()), type->dtype,
                const_cast<int64_t*>(e.shape.data()), nullptr, 0};
  if (reinterpret_cast<uintptr_t>(like.data) % (type->dtype.bits / 8)) {  // an odd header: bring it to an even place
    Tensor t = empty(e.shape, type->dtype);
    std::memcpy(t.data_ptr(), like.data, bytes);
    return t;
  }
  aj_tensor* t = nullptr;
  auto* keep = new std::shared_ptr<Mapping>(map);
  aj_status* s = kit::env.core->tensor_from_memory(&like, bytes, 0, keep,
      [](void* p) { delete static_cast<std::shared_ptr<Mapping>*>(p); }, &t);
  if (s) delete keep;
  kit::check(s);
  return Tensor::steal(t);
}

}  // namespace files

inline std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  auto map = std::make_shared<files::Mapping>(path);
  uint64_t header = 0;
  if (map->size >= 8) std::memcpy(&header, map->data, 8);
  if (map->size < 8 || header > map->size - 8 || header > 100'000'000)
    kit::raise(AJ_DATA_LOSS, "load: '", path, "': ", uint64_t(map->size), " bytes cannot hold a header of ", header);
  files::Header h({map->data + 8, size_t(header)}, path);
  std::map<std::string, Tensor> tensors;
  h.need('{');
  if (h.eat('}')) return tensors;
  do {
    std::string name = h.string();
    h.need(':');
    if (name == "__metadata__") {
      h.skip_strings();
      continue;
    }
    if (tensors.count(name)) h.wrong();
    tensors[name] = files::make_tensor(name, files::read_entry(h), map, size_t(header) + 8);
  } while (h.eat(','));
  h.need('}');
  return tensors;
}

// Writes a temporary file beside `path` and renames it: a crash midway loses nothing that was there.
inline void save_safetensors(const std::map<std::string, Tensor>& tensors, const std::string& path) {
  std::string header = "{";
  std::vector<Tensor> dense;
  uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const Tensor& t = dense.emplace_back(contiguous(tensor.detach()));
    const char* type = nullptr;
    for (const auto& n : files::dtype_names)
      if (n.dtype == t.dtype()) type = n.name;
    if (!type) kit::raise(AJ_WRONG_TYPE, "save: '", name, "' is ", t.dtype(), ", for which the format has no name");
    std::string sizes;
    for (int64_t n : t.shape()) sizes += (sizes.empty() ? "" : ",") + std::to_string(n);
    std::string quoted;
    for (char c : name) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    uint64_t bytes = uint64_t(t.numel()) * t.dtype().bits / 8;
    header += (header.size() > 1 ? "," : "") + kit::text("\"", quoted, "\":{\"dtype\":\"", type, "\",\"shape\":[", sizes,
                                                         "],\"data_offsets\":[", at, ",", at + bytes, "]}");
    at += bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string temporary = path + ".part" + std::to_string(getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) kit::raise(AJ_PERMISSION, "save: cannot write '", temporary, "': ", std::strerror(errno));
  uint64_t size = header.size();
  bool ok = std::fwrite(&size, 8, 1, file) == 1 && std::fwrite(header.data(), 1, header.size(), file) == header.size();
  for (const Tensor& t : dense) {
    std::vector<char> bytes(size_t(t.numel()) * t.dtype().bits / 8);
    if (bytes.empty()) continue;
    kit::check(kit::env.core->tensor_copy_bytes(t.get(), bytes.data(), bytes.size(), 1));
    ok = ok && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  }
  ok = std::fflush(file) == 0 && fsync(fileno(file)) == 0 && ok;
  ok = std::fclose(file) == 0 && ok;
  if (ok && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  std::string why = std::strerror(errno);
  std::remove(temporary.c_str());
  kit::raise(AJ_DATA_LOSS, "save: '", path, "': ", why);
}

}  // namespace adjoin
#endif

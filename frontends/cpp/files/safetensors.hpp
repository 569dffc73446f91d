// adjoin/files/safetensors.hpp: the safetensors format
// (https://github.com/huggingface/safetensors): 8 bytes of header size, a JSON header, the bytes.
// It may be a part of a file. Every number in the header is checked against the file before it is
// used.
#ifndef ADJOIN_FILES_SAFETENSORS_HPP
#define ADJOIN_FILES_SAFETENSORS_HPP
#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <map>

#include "memory.hpp"

namespace AJ_HIDDEN adjoin {
namespace files {

struct DTypeName {
  const char* name;
  DLDataType dtype;
};
inline constexpr DTypeName dtype_names[] = {
    {"BOOL", boolean}, {"U8", uint8},      {"I8", int8},        {"I16", int16},
    {"I32", int32},    {"I64", int64},     {"U16", uint16},     {"U32", uint32},
    {"U64", uint64},   {"F16", float16},   {"BF16", bfloat16},  {"F32", float32},
    {"F64", float64},  {"C64", complex64}, {"C128", complex128}};

// As much JSON as the header needs: objects, strings, lists of whole numbers.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}
  bool eat(char c) {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
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
        if (c == 'u') {
          unicode(out);
          continue;
        }
        size_t known = std::string_view("bfnrt").find(c);
        if (known != std::string_view::npos) c = "\b\f\n\r\t"[known];
      }
      out += c;
    }
    need('"');
    return out;
  }
  // \uXXXX, and the second half of a pair, as UTF-8.
  void unicode(std::string& out) {
    uint32_t c = hex4();
    if (c >= 0xd800 && c < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") wrong();
      at_ += 2;
      uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) wrong();
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out += char(lead[more] | c >> 6 * more);
    while (more--) out += char(0x80 | (c >> 6 * more & 63));
  }
  uint32_t hex4() {
    uint32_t c = 0;
    if (text_.size() - at_ < 4 ||
        std::from_chars(&text_[at_], &text_[at_] + 4, c, 16).ptr != &text_[at_] + 4)
      wrong();
    at_ += 4;
    return c;
  }
  uint64_t number() {
    eat(' ');
    uint64_t n = 0;
    size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(n, uint64_t(10), &n) ||
          __builtin_add_overflow(n, uint64_t(text_[at_] - '0'), &n))
        wrong();
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
  [[noreturn]] void wrong() {
    kit::raise(AJ_DATA_LOSS, "load: '", path_, "': the header is broken at byte ",
               uint64_t(at_ + 8));
  }

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
    if (key == "dtype")
      e.dtype = h.string();
    else if (key == "shape")
      e.shape = h.numbers();
    else if (key == "data_offsets")
      e.offsets = h.numbers();
    else
      h.wrong();
  } while (h.eat(','));
  h.need('}');
  return e;
}

// `file`: the part of the mapping that the format describes.
inline Tensor make_tensor(const std::string& name, const Entry& e,
                          const std::shared_ptr<Mapping>& map, std::string_view file,
                          size_t begin) {
  const DTypeName* type = nullptr;
  for (const DTypeName& t : dtype_names)
    if (e.dtype == t.name) type = &t;
  uint64_t bytes = type ? type->dtype.bits / 8 : 0;
  bool fits = type && e.offsets.size() == 2 && e.shape.size() <= 64;
  for (int64_t n : e.shape) fits = fits && !__builtin_mul_overflow(bytes, uint64_t(n), &bytes);
  fits = fits && e.offsets[0] <= e.offsets[1] && uint64_t(e.offsets[1]) <= file.size() - begin &&
         uint64_t(e.offsets[1] - e.offsets[0]) == bytes;
  if (!fits)
    kit::raise(AJ_DATA_LOSS, "load: tensor '", name,
               "': dtype, shape and place in the file do not agree");
  char* data = map->data + (file.data() - map->data) + begin + e.offsets[0];
  bool even = reinterpret_cast<uintptr_t>(data) % (type->dtype.bits / 8) == 0;
  auto home = even ? map : Mapping::of({data, bytes});  // another writer need not have aligned it
  return tensor_in(home, even ? data : home->data, e.shape, type->dtype);
}

inline std::map<std::string, Tensor> read_safetensors(const std::shared_ptr<Mapping>& map,
                                                      std::string_view file,
                                                      const std::string& path) {
  uint64_t header = 0;
  if (file.size() >= 8) std::memcpy(&header, file.data(), 8);
  if (file.size() < 8 || header > file.size() - 8 || header > 100'000'000)
    kit::raise(AJ_DATA_LOSS, "load: '", path, "': ", uint64_t(file.size()),
               " bytes cannot hold a header of ", header);
  Header h(file.substr(8, size_t(header)), path);
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
    tensors[name] = make_tensor(name, read_entry(h), map, file, size_t(header) + 8);
  } while (h.eat(','));
  h.need('}');
  return tensors;
}
inline std::map<std::string, Tensor> read_safetensors(const std::shared_ptr<Mapping>& map,
                                                      const std::string& path) {
  return read_safetensors(map, map->text(), path);
}

// A string of JSON.
inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (uint8_t(c) >= 32) {
      out += c;
      continue;
    }
    constexpr char digits[] = "0123456789abcdef";
    (out += "\\u00") += {digits[c >> 4], digits[c & 15]};
  }
  return out + '"';
}
// The widest elements come first, so that all are aligned. Sink: reserve(n) and write(data, n).
template <class Sink>
void write_safetensors(const std::map<std::string, Tensor>& tensors, Sink& file) {
  std::vector<std::pair<std::string_view, Tensor>> order;
  for (const auto& [name, tensor] : tensors) order.emplace_back(name, contiguous(tensor.detach()));
  std::stable_sort(order.begin(), order.end(),
                   [](auto& a, auto& b) { return a.second.dtype().bits > b.second.dtype().bits; });
  std::string header = "{";
  uint64_t at = 0;
  for (const auto& [name, t] : order) {
    const char* type = nullptr;
    for (const auto& n : dtype_names)
      if (n.dtype == t.dtype()) type = n.name;
    if (!type)
      kit::raise(AJ_WRONG_TYPE, "save: '", name, "' is ", t.dtype(),
                 ", for which the format has no name");
    std::string sizes;
    for (int64_t n : t.shape()) sizes += (sizes.empty() ? "" : ",") + std::to_string(n);
    uint64_t bytes = uint64_t(t.numel()) * t.dtype().bits / 8;
    header += (header.size() > 1 ? "," : "") +
              kit::text(quoted(name), ":{\"dtype\":\"", type, "\",\"shape\":[", sizes,
                        "],\"data_offsets\":[", at, ",", at + bytes, "]}");
    at += bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t size = header.size();
  file.reserve(8 + size + at);
  file.write(&size, 8);
  file.write(header.data(), header.size());
  for (const auto& [name, t] : order) {
    std::vector<char> bytes(size_t(t.numel()) * t.dtype().bits / 8);
    if (bytes.empty()) continue;
    kit::check(kit::env.core->tensor_copy_bytes(t.get(), bytes.data(), bytes.size(), 1));
    file.write(bytes.data(), bytes.size());
  }
}
}  // namespace files

}  // namespace adjoin
#endif

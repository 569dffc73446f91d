// tests/files/fuzz.cpp: damaged files for the readers: `fuzz [turns [seed]]`. Each turn takes a
// good file, changes bits, bytes, lengths and places, cuts and repeats, and reads it; an error that
// says what is wrong is as good as tensors. Wants sanitizers.
#include <sys/resource.h>

#include <random>

#include "joined.hpp"

namespace adjoin {
namespace {

struct Text {
  std::string data;
  void reserve(uint64_t) {}
  void write(const void* p, size_t n) { data.append(static_cast<const char*>(p), n); }
};

class Fuzzer {
 public:
  explicit Fuzzer(uint64_t seed) : random_(seed) {
    std::string pickle = good_pickle(), memory(96, '\x3f');
    pickles_ = {pickle, protocol_four(), protocol_zero()};
    Text zip;
    files::write_pt(zip, "x", pickle, {{memory.data(), 48}, {memory.data(), 10}, {nullptr, 0}});
    archive_ = zip.data;
    old_ = old_layout(memory);
    std::string header =
        R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"y":{"dtype":"I64","shape":[],"data_offsets":[24,32]},"\u00fc":{"dtype":"BOOL","shape":[0,4],"data_offsets":[32,32]}})";
    uint64_t size = header.size();
    safetensors_ =
        std::string(reinterpret_cast<const char*>(&size), 8) + header + memory.substr(0, 32);
  }

  void turn() {
    switch (below(4)) {
      case 0:
        return read_pt(damaged(archive_));
      case 1:
        return read_pt(damaged(old_));
      case 2:
        return read_pt(packed(damaged(pickles_[below(pickles_.size())])));
      default:
        return read_safetensors(damaged(safetensors_));
    }
  }
  size_t read = 0, refused = 0;

 private:
  uint64_t below(uint64_t n) { return random_() % n; }

  static std::string good_pickle() {
    files::PickleWriter out;
    int64_t shape[] = {3, 4}, turned[] = {4, 3}, strides[] = {4, 1}, other[] = {1, 4}, five[] = {5},
            one[] = {1}, none[] = {0};
    out.op('}'), out.op('(');
    out.text("a"), out.tensor({"float32", "cpu", 0, 12, 0, shape, strides, true, true});
    out.text("b"), out.tensor({"float32", "cpu", 0, 12, 0, turned, other, false, true});
    out.text("c"), out.tensor({"uint16", "cpu", 1, 10, 0, five, one, false, false});
    out.text("d"), out.tensor({"float64", "cuda:1", 2, 0, 0, none, one, false, true});
    out.text("e"), out.op(']'), out.op('('), out.integer(7), out.integer(1 << 20), out.real(1.5),
        out.none(), out.op('e');
    out.text("f"), out.global("torch", "Size"), out.integers(shape), out.tuple(1), out.op('R');
    out.text("g"), out.ordered_dict(), out.op('('), out.name("storage"), out.boolean(true),
        out.op('u');
    out.op('u');
    return out.end();
  }
  static std::string protocol_four() {
    constexpr char text[] =
        "\x80\x04\x95\x30\0\0\0\0\0\0\0}\x94(\x8c\x01"
        "a\x94\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x94\x85\x94R\x94\x8c\x01"
        "b\x8f(K\x01K\x02\x90"
        "\x8c\x01"
        "cC\x03xyz\x96\x02\0\0\0\0\0\0\0qq\x86(K\x01\x91)\x81}bu.";
    return {text, sizeof text - 1};
  }
  static std::string protocol_zero() {
    return "(dp0\nVa\np1\n(lp2\nI5\naI01\naL12345678901234567890L\naF1.5\naS'te\\x41xt'\naNasVb\n("
           "I1\nI2\ntp3\nsVc\nccollections\nOrderedDict\n(tRp4\ns(icopy\nx\nb0.";
  }
  static std::string old_layout(const std::string& memory) {
    constexpr char begin[] =
        "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.";
    std::string file(begin, sizeof begin - 1);
    files::PickleWriter object, keys;
    int64_t shape[] = {12}, stride[] = {1};
    object.tensor({"float32", "cpu", 0, 12, 0, shape, stride, false, true});
    file += object.end();
    keys.op(']'), keys.text("0"), keys.op('a');
    file += keys.end();
    int64_t count = 12;
    return file.append(reinterpret_cast<const char*>(&count), 8).append(memory, 0, 48);
  }

  std::string packed(const std::string& pickle) {
    Text zip;
    char memory[48] = {};
    files::write_pt(zip, "x", pickle, {{memory, 48}, {memory, 10}, {nullptr, 0}});
    return zip.data;
  }

  // Numbers at which arithmetic goes wrong.
  uint64_t number() {
    constexpr uint64_t odd[] = {0,
                                1,
                                2,
                                127,
                                128,
                                255,
                                256,
                                65535,
                                65536,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                0x100000000,
                                uint64_t(1) << 61,
                                uint64_t(1) << 62,
                                INT64_MAX,
                                uint64_t(1) << 63,
                                UINT64_MAX};
    return below(4) ? odd[below(std::size(odd))] + below(3) - 1 : random_();
  }

  std::string damaged(std::string file) {
    for (uint64_t times = 1 + below(2) * below(4); times--;) {
      if (file.empty()) file = "x";
      size_t at = below(file.size());
      switch (below(8)) {
        case 0:
          file[at] = char(file[at] ^ (1 << below(8)));
          break;
        case 1:
          file[at] = char(below(256));
          break;
        case 2:
          file.resize(at);
          break;
        case 3:
          file.erase(at, 1 + below(16));
          break;
        case 4:
          file.insert(at, file.substr(below(file.size()), 1 + below(64)));
          break;
        case 5: {
          uint64_t n = number();
          size_t bytes = std::min<size_t>(size_t(1) << below(4), file.size() - at);
          std::memcpy(&file[at], &n, bytes);
          break;
        }
        case 6:
          file[at] =
              "()]}NRbtuaehqrQ."
              "012cioBCXKMJGI\x81\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8f\x90\x91\x93\x94{}[]\",:\\"
                  [below(52)];
          break;
        default: {
          size_t end = file.size() - 1 -
                       below(std::min<size_t>(file.size(), 120));  // the directory of an archive
          file[end] = char(below(256));
        }
      }
    }
    return file;
  }

  template <class F>
  void attempt(F&& f) {
    try {
      f();
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }

  // What is found is looked at: every element of every tensor.
  static void use(const Tensor& t) {
    if (!t.defined() || t.numel() > 1000) return;
    Tensor dense = contiguous(t.detach());
    volatile char all = 0;
    for (size_t i = 0; i < size_t(t.numel()) * t.dtype().bits / 8; ++i)
      all = char(all + static_cast<const char*>(dense.data_ptr())[i]);
  }
  static void use(const PtValue& v, int depth) {
    use(v.t);
    for (const PtValue* item : v.items)
      if (depth < 8) use(*item, depth + 1);
  }

  void read_pt(const std::string& file) {
    auto map =
        files::Mapping::of(file);  // of its own size, so that a sanitizer sees each step beyond it
    attempt([&] {
      if (below(2)) {
        use(files::PtTree(map).root(), 0);
      } else {
        use(files::PtTree(map->text()).root(), 0);
      }
    });
  }
  void read_safetensors(const std::string& file) {
    auto map = files::Mapping::of(file);
    attempt([&] {
      for (auto& [name, t] : files::read_safetensors(map, "fuzz")) use(t);
    });
  }

  std::mt19937_64 random_;
  std::vector<std::string> pickles_;
  std::string archive_, old_, safetensors_;
};

}  // namespace
}  // namespace adjoin

int main(int argc, char** argv) {
  uint64_t turns = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000,
           seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  adjoin::Fuzzer fuzzer(seed);
  for (uint64_t i = 0; i < turns; ++i) fuzzer.turn();
  struct rusage used {};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%llu files: %zu read, %zu refused; at most %ld MB\n",
              static_cast<unsigned long long>(turns), fuzzer.read, fuzzer.refused,
              used.ru_maxrss / 1024);
  bool bounded = used.ru_maxrss < (2l << 20);  // of no file may come gigabytes
  return fuzzer.read && fuzzer.refused && bounded ? 0 : 1;
}

// adjoin/files/old_layout.hpp: `.pt` files from before the zip layout: pickles of a magic number, a
// version, facts of the writer's machine, the object, and the keys of the storages; then each
// storage's count of elements and its bytes.
#ifndef ADJOIN_FILES_OLD_LAYOUT_HPP
#define ADJOIN_FILES_OLD_LAYOUT_HPP
#include <unordered_map>

#include "pickle.hpp"
#include "storages.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

// Reads a pickle only for what it says of storages, and for its length.
class StorageCensus {
 public:
  struct Value {
    std::string_view text;
    uint32_t tuple = 0;  // 1 + its place among the tuples
    bool there = false;
    bool operator!() const { return !there; }
  };
  using Values = const std::vector<Value>&;

  Value none() { return some(); }
  Value boolean(bool) { return some(); }
  Value integer(int64_t) { return some(); }
  Value decimal(std::string_view) { return some(); }
  Value long_integer(std::string_view) { return some(); }
  Value real(double) { return some(); }
  Value text(std::string_view s) {
    texts.push_back(s);
    return {s, 0, true};
  }
  Value escaped_text(std::string_view s) { return text(s); }
  Value bytes(std::string_view) { return some(); }
  Value escaped_bytes(std::string_view) { return some(); }
  Value byte_array(std::string_view) { return some(); }
  Value tuple(Values items) {
    if (items.size() < 5 || items[0].text != "storage") return some();
    tuples_.push_back({items[1].text, items[2].text});
    return {{}, uint32_t(tuples_.size()), true};
  }
  Value frozen_set(Values) { return some(); }
  Value list() { return some(); }
  Value dict() { return some(); }
  Value set() { return some(); }
  void append(Value&, Values) {}
  void set_items(Value&, Values) {}
  void add(Value&, Values) {}
  std::string_view text_of(const Value& v) { return v.text; }
  Value global(std::string_view, std::string_view name) { return {name, 0, true}; }
  Value persistent(const Value& id) {
    if (id.tuple) bytes_of[tuples_[id.tuple - 1].key] = element_size(tuples_[id.tuple - 1].type);
    return some();
  }
  Value reduce(const Value&, const Value&) { return some(); }
  Value make(const Value&, const Value&, const Value&) { return some(); }
  void build(Value&, const Value&) {}

  std::unordered_map<std::string_view, uint64_t>
      bytes_of;  // an element of the storage of that key; 0: unknown
  std::vector<std::string_view> texts;

 private:
  struct Storage {
    std::string_view type, key;
  };
  static Value some() { return {{}, 0, true}; }
  std::vector<Storage> tuples_;
};

class OldLayout {
 public:
  static bool looks_so(std::string_view file) {
    size_t skip = file.size() > 2 && file[0] == '\x80' ? 2 : 0;
    return file.substr(std::min(skip, file.size()))
        .starts_with("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
  }

  explicit OldLayout(std::string_view file) {
    const char* begin = file.data();
    for (int i = 0; i < 3; ++i) cut(file);
    StorageCensus object, keys;
    pickle = cut(file, object);
    cut(file, keys);
    for (std::string_view key : keys.texts) {
      auto known = object.bytes_of.find(key);
      uint64_t size = known == object.bytes_of.end() ? 0 : known->second;
      int64_t n = 0;
      if (file.size() < 8) damaged();
      std::memcpy(&n, file.data(), 8);
      file.remove_prefix(8);
      if (size == 0 || n < 0 || uint64_t(n) > file.size() / size) damaged();
      storages[key] = file.substr(0, uint64_t(n) * size);
      file.remove_prefix(uint64_t(n) * size);
    }
    length = size_t(file.data() - begin);
  }

  std::string_view pickle;
  size_t length;  // of the file; what follows is another's
  std::unordered_map<std::string_view, std::string_view> storages;

 private:
  [[noreturn]] static void damaged() {
    kit::raise(AJ_DATA_LOSS,
               "load: the file ends before its storages do, or names one of unknown type; was it "
               "copied whole?");
  }
  static std::string_view cut(std::string_view& file, StorageCensus& census) {
    PickleMachine<StorageCensus> machine(file, census);
    machine.run();
    std::string_view found = file.substr(0, machine.position());
    file.remove_prefix(found.size());
    return found;
  }
  static void cut(std::string_view& file) {
    StorageCensus unused;
    cut(file, unused);
  }
};

}  // namespace files
}  // namespace adjoin
#endif

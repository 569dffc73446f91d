// adjoin/files/zip.hpp: zip archives of stored records: the directory of one that is in memory, and
// the bytes around the records of one that is being written, laid out as PyTorch lays it out: each
// record begins at a multiple of 64 bytes.
#ifndef ADJOIN_FILES_ZIP_HPP
#define ADJOIN_FILES_ZIP_HPP
#include <adjoin/kit/error.hpp>
#include <unordered_map>
#include <vector>

#include "crc32.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

struct Record {
  std::string_view name;
  uint64_t header, at, size;  // at: filled in by ZipDirectory::place
  uint32_t crc;
  uint16_t method;
};

// Every number is checked against the file before it is used. Views point into the file's bytes.
class ZipDirectory {
 public:
  static constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                            kEnd64 = 0x06064b50, kLocator = 0x07064b50;

  static bool looks_so(std::string_view file) {
    return file.size() >= 22 && file.substr(0, 4) == "PK\3\4";
  }

  explicit ZipDirectory(std::string_view file) : file_(file) {
    uint64_t end = find_end(), count = number<uint16_t>(end + 10),
             size = number<uint32_t>(end + 12), at = number<uint32_t>(end + 16);
    if (end >= 20 && number<uint32_t>(end - 20) == kLocator) {
      uint64_t end64 = number<uint64_t>(end - 12);
      need(end64, 56);
      if (number<uint32_t>(end64) != kEnd64)
        wrong("its 64-bit directory is not where it should be");
      count = number<uint64_t>(end64 + 32), size = number<uint64_t>(end64 + 40),
      at = number<uint64_t>(end64 + 48);
    }
    need(at, size);
    if (count > size / 46) wrong("its directory claims ", count, " records in ", size, " bytes");
    records_.reserve(count);
    for (uint64_t i = 0, p = at; i < count; ++i) p = take(p, at + size);
    for (size_t i = 0; i < records_.size(); ++i)
      if (!by_name_.emplace(records_[i].name, i).second)
        wrong("the record '", shown(records_[i].name), "' is there twice");
  }

  const std::vector<Record>& records() const { return records_; }

  // Tells the file's mapping of the headers that lie far apart, each of which is read for a record.
  template <class Mapping>
  void expect(const Mapping& map) const {
    constexpr uint64_t kFar = 256u << 10, kHeader = 512;  // the system reads about 128 KB around
    for (const Record& r : records_)
      if (r.size >= kFar) map.expect(r.header, kHeader);
  }

  const Record* find(std::string_view name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &records_[found->second];
  }

  // The bytes of a record, which are all inside of the file; their sum is compared if `check`. Who
  // writes without sums leaves 0.
  std::string_view bytes(const Record& r, bool check) const {
    if (r.method != 0)
      kit::raise(AJ_UNIMPLEMENTED, "load: the record '", shown(r.name),
                 "' is compressed; unpack the archive and pack it with `zip -0`");
    need(r.header, 30);
    if (number<uint32_t>(r.header) != kLocal)
      wrong("the record '", shown(r.name), "' is not where the directory says");
    uint64_t at = r.header + 30 + number<uint16_t>(r.header + 26) + number<uint16_t>(r.header + 28);
    need(at, r.size);
    std::string_view found = file_.substr(at, r.size);
    if (check && r.crc && crc32(0, found.data(), found.size()) != r.crc)
      wrong("the check sum of the record '", shown(r.name), "' is wrong");
    return found;
  }

  template <class... Part>
  [[noreturn]] static void wrong(const Part&... parts) {
    kit::raise(AJ_DATA_LOSS, "load: the zip archive is damaged: ", parts...);
  }

 private:
  static std::string_view shown(std::string_view name) { return name.substr(0, 100); }

  template <class T>
  T number(uint64_t at) const {  // who calls has asked need()
    T n;
    std::memcpy(&n, file_.data() + at, sizeof n);
    return n;
  }

  void need(uint64_t at, uint64_t n) const {
    if (at > file_.size() || n > file_.size() - at)
      wrong("bytes ", at, " to ", at, " + ", n, " are beyond its end at ", uint64_t(file_.size()),
            "; was it copied whole?");
  }

  uint64_t find_end() const {
    if (file_.size() < 22) wrong("it has ", uint64_t(file_.size()), " bytes");
    uint64_t last = file_.size() - 22, least = last > 65535 ? last - 65535 : 0;
    for (uint64_t at = last;; --at) {
      if (number<uint32_t>(at) == kEnd) return at;
      if (at == least) wrong("it has no directory at its end; was it copied whole?");
    }
  }

  uint64_t take(uint64_t p, uint64_t end) {
    if (end - p < 46 || number<uint32_t>(p) != kCentral)
      wrong("its directory is broken at byte ", p);
    uint64_t name = number<uint16_t>(p + 28), extra = number<uint16_t>(p + 30),
             comment = number<uint16_t>(p + 32);
    if (end - p - 46 < name + extra + comment) wrong("its directory is broken at byte ", p);
    Record r{file_.substr(p + 46, name), number<uint32_t>(p + 42), 0,
             number<uint32_t>(p + 24),   number<uint32_t>(p + 16), number<uint16_t>(p + 10)};
    uint64_t packed = number<uint32_t>(p + 20);
    widen(r, packed, p + 46 + name, extra);
    if (r.method == 0 && packed != r.size) wrong("the record '", shown(r.name), "' has two sizes");
    records_.push_back(r);
    return p + 46 + name + extra + comment;
  }

  // Numbers that do not fit into 32 bits stand in the extra field 1, in this order.
  void widen(Record& r, uint64_t& packed, uint64_t at, uint64_t n) const {
    for (uint64_t end = at + n; end - at >= 4;) {
      uint16_t tag = number<uint16_t>(at), bytes = number<uint16_t>(at + 2);
      at += 4;
      if (end - at < bytes) return;
      if (tag == 1) {
        uint64_t from = at, stop = at + bytes;
        for (uint64_t* field : {&r.size, &packed, &r.header}) {
          if (*field != 0xffffffffu) continue;
          if (stop - from < 8) wrong("the sizes of the record '", shown(r.name), "' are missing");
          *field = number<uint64_t>(from);
          from += 8;
        }
        return;
      }
      at += bytes;
    }
  }

  std::string_view file_;
  std::vector<Record> records_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

// What stands before, behind and after the records. Sizes are told before the bytes, sums after
// them.
class ZipWriter {
 public:
  static constexpr uint64_t kAlign = 64;

  // The header of the next record, `at` bytes from the archive's begin.
  std::string header(std::string_view name, uint64_t size, uint64_t at) {
    bool wide = size >= 0xffffffffu || at >= 0xffffffffu;
    std::string extra;
    if (wide) {
      put<uint16_t>(extra, 1), put<uint16_t>(extra, uint16_t((size >= 0xffffffffu ? 16 : 0) +
                                                             (at >= 0xffffffffu ? 8 : 0)));
      if (size >= 0xffffffffu) put<uint64_t>(extra, 0), put<uint64_t>(extra, 0);
      if (at >= 0xffffffffu) put<uint64_t>(extra, at);
    }
    uint64_t begin = at + 30 + name.size() + extra.size() + 4;
    auto padding = uint16_t((kAlign - begin % kAlign) % kAlign);
    extra += "FB";
    put<uint16_t>(extra, padding);
    extra.append(padding, 'Z');
    std::string out;
    put<uint32_t>(out, ZipDirectory::kLocal);
    put<uint16_t>(out, wide ? 45 : 0), put<uint16_t>(out, flags(size));
    out.append(6, '\0');  // stored, of no date; the sum comes later
    put<uint32_t>(out, 0);
    put<uint32_t>(out, size >= 0xffffffffu ? 0xffffffffu : 0),
        put<uint32_t>(out, size >= 0xffffffffu ? 0xffffffffu : 0);
    put<uint16_t>(out, uint16_t(name.size())), put<uint16_t>(out, uint16_t(extra.size()));
    (out += name) += extra;
    entries_.push_back({std::string(name), size, at, 0});
    return out;
  }

  // What follows the bytes of the last record.
  std::string descriptor(uint32_t crc) {
    Entry& e = entries_.back();
    e.crc = crc;
    std::string out;
    if (e.size == 0) return out;
    put<uint32_t>(out, 0x08074b50), put<uint32_t>(out, crc);
    for (int i = 0; i < 2; ++i)
      e.size >= 0xffffffffu ? put<uint64_t>(out, e.size) : put<uint32_t>(out, uint32_t(e.size));
    return out;
  }

  // The directory, `at` bytes from the archive's begin.
  std::string directory(uint64_t at) const {
    std::string out;
    for (const Entry& e : entries_) put_entry(out, e);
    uint64_t size = out.size(), n = entries_.size();
    put<uint32_t>(out, ZipDirectory::kEnd64);
    put<uint64_t>(out, 44), put<uint16_t>(out, 0x031e), put<uint16_t>(out, 45),
        put<uint64_t>(out, 0);
    put<uint64_t>(out, n), put<uint64_t>(out, n), put<uint64_t>(out, size), put<uint64_t>(out, at);
    put<uint32_t>(out, ZipDirectory::kLocator), put<uint32_t>(out, 0),
        put<uint64_t>(out, at + size), put<uint32_t>(out, 1);
    put<uint32_t>(out, ZipDirectory::kEnd), put<uint32_t>(out, 0);
    for (int i = 0; i < 2; ++i) put<uint16_t>(out, uint16_t(std::min<uint64_t>(n, 0xffff)));
    put<uint32_t>(out, narrow(size)), put<uint32_t>(out, narrow(at)), put<uint16_t>(out, 0);
    return out;
  }

 private:
  struct Entry {
    std::string name;
    uint64_t size, at;
    uint32_t crc;
  };

  static uint16_t flags(uint64_t size) {
    return size ? 0x0808 : 0x0800;
  }  // names are UTF-8; a descriptor follows
  static uint32_t narrow(uint64_t n) { return uint32_t(std::min<uint64_t>(n, 0xffffffffu)); }

  template <class T>
  static void put(std::string& out, T n) {
    out.append(reinterpret_cast<const char*>(&n), sizeof n);
  }

  static void put_entry(std::string& out, const Entry& e) {
    std::string extra;
    if (e.size >= 0xffffffffu) put<uint64_t>(extra, e.size), put<uint64_t>(extra, e.size);
    if (e.at >= 0xffffffffu) put<uint64_t>(extra, e.at);
    put<uint32_t>(out, ZipDirectory::kCentral), put<uint16_t>(out, 0);
    put<uint16_t>(out, extra.empty() ? 0 : 45), put<uint16_t>(out, flags(e.size));
    put<uint16_t>(out, 0), put<uint32_t>(out, 0), put<uint32_t>(out, e.crc);
    put<uint32_t>(out, narrow(e.size)), put<uint32_t>(out, narrow(e.size));
    put<uint16_t>(out, uint16_t(e.name.size())),
        put<uint16_t>(out, uint16_t(extra.empty() ? 0 : extra.size() + 4));
    out.append(10, '\0');  // no comment, one disk, no attributes
    put<uint32_t>(out, narrow(e.at));
    out += e.name;
    if (!extra.empty())
      put<uint16_t>(out, 1), put<uint16_t>(out, uint16_t(extra.size())), out += extra;
  }

  std::vector<Entry> entries_;
};

}  // namespace files
}  // namespace adjoin
#endif

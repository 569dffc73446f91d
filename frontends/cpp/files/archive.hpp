// adjoin/files/archive.hpp: writes a `.pt` archive: the records that PyTorch's reader looks for, in
// its order, then the storages.
#ifndef ADJOIN_FILES_ARCHIVE_HPP
#define ADJOIN_FILES_ARCHIVE_HPP
#include <bit>
#include <deque>
#include <span>

#include "zip.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

static_assert(std::endian::native == std::endian::little,
              "files are written in the order of the machine's bytes");

struct Bytes {
  const void* data;
  uint64_t size;
};

// Sink: write(data, n) and reserve(n), and where it has memory of its own to be filled, space() and
// advance(n). Small pieces are gathered, large ones go out from where they lie.
template <class Sink>
class Archive {
 public:
  Archive(Sink& sink, std::string root, bool sums)
      : sink_(sink), root_(std::move(root)), sums_(sums) {}

  void add(std::string_view name, const void* data, uint64_t size) {
    gathered_ += writer_.header(root_ + "/" + std::string(name), size, at());
    if (size < kLarge) {
      gathered_.append(static_cast<const char*>(data), size);
      const char* copy = gathered_.data() + gathered_.size() - size;
      gathered_ += writer_.descriptor(seal(sums_ ? crc32(0, copy, size) : 0));
    } else {
      flush();
      uint32_t crc = stream(static_cast<const char*>(data), size);
      gathered_ += writer_.descriptor(seal(crc));
    }
    if (gathered_.size() >= kPiece) flush();
  }

  void end() {
    gathered_ += writer_.directory(at());
    flush();
  }

  // Sums of all sums: two files with the same contents carry the same number.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  static constexpr bool kHasSpace = requires(Sink & s) { s.space(), s.advance(size_t(0)); };
  // A piece is summed and copied while it is in the processor's cache.
  static constexpr uint64_t kLarge = 64u << 10, kPiece = 512u << 10;

  uint64_t at() const { return written_ + gathered_.size(); }

  uint32_t seal(uint32_t crc) {
    fingerprint_ = (fingerprint_ ^ crc) * 0x9e3779b97f4a7c15u;
    fingerprint_ ^= fingerprint_ >> 29;
    return crc;
  }

  // By way of a copy: who trains on in other threads meanwhile changes what was not read yet, but
  // no sum becomes wrong.
  uint32_t stream(const char* data, uint64_t size) {
    uint32_t crc = 0;
    for (uint64_t n; size; data += n, size -= n) {
      std::span<char> to = space();
      n = std::min(size, uint64_t(to.size()));
      std::memcpy(to.data(), data, n);
      if (sums_) crc = crc32(crc, to.data(), n);
      hand_over(to.data(), n);
      written_ += n;
    }
    return crc;
  }

  std::span<char> space() {
    if constexpr (kHasSpace)
      if (std::span<char> own = sink_.space(); !own.empty()) return own;
    piece_.resize(kPiece);
    return piece_;
  }

  void hand_over(char* data, uint64_t n) {
    if constexpr (kHasSpace)
      if (data != piece_.data()) return sink_.advance(n);
    sink_.write(data, n);
  }

  void flush() {
    sink_.write(gathered_.data(), gathered_.size());
    written_ += gathered_.size();
    gathered_.clear();
  }

  Sink& sink_;
  std::string root_, gathered_, piece_;
  bool sums_;
  ZipWriter writer_;
  uint64_t written_ = 0, fingerprint_ = 0;
};

// A whole `.pt` file. The storages are numbered from 0.
template <class Sink>
void write_pt(Sink& sink, const std::string& root, std::string_view pickle,
              const std::vector<Bytes>& storages, bool sums = true) {
  uint64_t room = pickle.size() + 4096;
  for (const Bytes& s : storages) room += s.size + 2 * root.size() + 320;
  sink.reserve(room);
  Archive<Sink> archive(sink, root, sums);
  auto text = [&](std::string_view name, std::string_view value) {
    archive.add(name, value.data(), value.size());
  };
  text("data.pkl", pickle);
  text(".format_version", "1");
  text(".storage_alignment", std::to_string(ZipWriter::kAlign));
  text("byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i)
    archive.add("data/" + std::to_string(i), storages[i].data, storages[i].size);
  text("version", "3\n");
  std::string id = std::to_string(archive.fingerprint());
  text(".data/serialization_id", std::string(40 - id.size(), '0') + id);
  archive.end();
}

}  // namespace files
}  // namespace adjoin
#endif

// extensions/distributed/wire.hpp: frames between a process and the control server: a length, the
// kind, the number of the request, then fields.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace adjoin::distributed {

enum class Ask : uint8_t {  // from a process
  set,
  get,     // key, milliseconds
  add,     // key, by
  swap,    // key, expected, desired
  erase,   // key
  count,   // prefix
  join,    // world, rank, size, host, process number, whether a launcher watches it
  beat,    // what it does now
  waits,   // it has waited a while: group, how many collectives, then seq, fingerprint, description
           // of
           // each: those before it that it has not told of, and it
  tell,    // why it is about to end
  leave,   //
  ended,   // process number, host, how: from who started it
  where,   // what the others do
  report,  // everything about all worlds, with everybody's last works
  ring,    // the last works, a line each
  left,    // whether one is enough: who else of the world has ended in order, the first one first
};
enum class Say : uint8_t {  // from the server
  value,                    // text
  number,                   // number
  deadline,                 //
  lost,                     // why: the world is broken
  beat,                     // the server lives
  dump,                     // tell your last works
};

constexpr uint32_t kLargestFrame = 1u << 30;

class Frame {
 public:
  Frame(uint8_t kind, uint32_t id) {
    data_.resize(4);
    data_ += static_cast<char>(kind);
    number32(id);
  }
  explicit Frame(Ask kind, uint32_t id = 0) : Frame(uint8_t(kind), id) {}
  explicit Frame(Say kind, uint32_t id = 0) : Frame(uint8_t(kind), id) {}
  Frame& text(std::string_view s) {
    number32(uint32_t(s.size()));
    data_ += s;
    return *this;
  }
  Frame& number(int64_t n) {
    data_.append(reinterpret_cast<const char*>(&n), sizeof n);
    return *this;
  }
  // With its length in front.
  const std::string& bytes() {
    const uint32_t n = uint32_t(data_.size() - 4);
    std::memcpy(data_.data(), &n, sizeof n);
    return data_;
  }

 private:
  void number32(uint32_t n) { data_.append(reinterpret_cast<const char*>(&n), sizeof n); }
  std::string data_;
};

class Reader {
 public:
  explicit Reader(std::string_view body) : rest_(body) {
    kind = uint8_t(take(1)[0]);
    id = number32();
  }
  std::string text() { return std::string(take(number32())); }
  int64_t number() {
    int64_t n;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    return n;
  }
  uint8_t kind;
  uint32_t id;

 private:
  uint32_t number32() {
    uint32_t n;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    return n;
  }
  std::string_view take(size_t n) {
    if (n > rest_.size()) throw std::runtime_error("a frame of the control channel is cut short");
    std::string_view found = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return found;
  }
  std::string_view rest_;
};

// Cuts what arrives into frames.
class Inbox {
 public:
  void append(const char* data, size_t n) { held_.append(data, n); }
  // False: none is complete.
  bool next(std::string* body) {
    uint32_t n;
    if (held_.size() - at_ < sizeof n) return tidy();
    std::memcpy(&n, held_.data() + at_, sizeof n);
    if (n > kLargestFrame) throw std::runtime_error("no frame of the control channel");
    if (held_.size() - at_ - sizeof n < n) return tidy();
    body->assign(held_, at_ + sizeof n, n);
    at_ += sizeof n + n;
    return true;
  }

 private:
  bool tidy() {
    held_.erase(0, at_);
    at_ = 0;
    return false;
  }
  std::string held_;
  size_t at_ = 0;
};

}  // namespace adjoin::distributed

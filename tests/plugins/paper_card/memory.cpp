// tests/plugins/paper_card/memory.cpp: memory of the card, on the host. Behind each piece stands a
// page that nobody may touch; what was given back is never mapped again, so a late use is a fault.
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "card.hpp"

namespace paper {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256, kSoiled = size_t(1) << 20;
constexpr int kMostDevices = 16;

struct Piece {
  size_t bytes;
  char* map;
  size_t mapped;
  Kind kind;
  int device;
  bool given_back;
};
struct Table {
  std::mutex lock;
  std::map<const char*, Piece> pieces;
  size_t used[kMostDevices] = {};
  std::set<std::pair<int, int>> peers;
};
Table& table() {
  static auto* one = new Table;
  return *one;
}

// Wants the lock. The piece that p lies in, or one that it lay in.
std::map<const char*, Piece>::iterator find(const void* p) {
  auto& pieces = table().pieces;
  auto it = pieces.upper_bound(static_cast<const char*>(p));
  if (it == pieces.begin()) return pieces.end();
  --it;
  return static_cast<const char*>(p) < it->first + it->second.bytes ? it : pieces.end();
}

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

bool refused() { return is_due(orders.fail_alloc) || orders.full; }

}  // namespace

int allocate(void** out, size_t bytes, Kind kind) {
  if (int wrong = check_device()) return wrong;
  if (bytes == 0) return kInvalidValue;
  ++counts.allocations;
  Table& t = table();
  std::lock_guard held(t.lock);
  bool counted = kind == Kind::device;
  if (counted && (refused() || t.used[current_device] + bytes > size_t(orders.memory)))
    return ++counts.refused, kOutOfMemory;
  size_t pages = up(bytes, kPage), mapped = pages + kPage;
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return kOutOfMemory;
  auto* begin = static_cast<char*>(map);
  mprotect(begin + pages, kPage, PROT_NONE);
  char* p = begin + pages - up(bytes, kAlignment);
  std::memset(p, 0xa5, std::min(bytes, kSoiled));  // a card's memory is not zero
  if (counted) t.used[current_device] += bytes;
  t.pieces[p] = {bytes, begin, mapped, kind, current_device, false};
  *out = p;
  return kSuccess;
}

int release(void* p) {
  if (!p) return kSuccess;
  if (int wrong = check_device()) return wrong;
  Table& t = table();
  int device = -1;
  {
    std::lock_guard held(t.lock);
    auto it = t.pieces.find(static_cast<char*>(p));
    if (it == t.pieces.end() || it->second.given_back) return kInvalidValue;
    device = it->second.device;
  }
  wait_for_all(device);
  std::lock_guard held(t.lock);
  Piece& piece = t.pieces[static_cast<char*>(p)];
  piece.given_back = true;
  if (piece.kind == Kind::device) t.used[piece.device] -= piece.bytes;
  mmap(piece.map, piece.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
  return kSuccess;
}

int memory_info(size_t* unused, size_t* all) {
  if (int wrong = check_device()) return wrong;
  std::lock_guard held(table().lock);
  *all = size_t(orders.memory);
  *unused = *all - table().used[current_device];
  return kSuccess;
}

int range_of(void** base, size_t* bytes, const void* p) {
  std::lock_guard held(table().lock);
  auto it = find(p);
  if (it == table().pieces.end()) return kInvalidValue;
  *base = const_cast<char*>(it->first);
  *bytes = it->second.bytes;
  return kSuccess;
}

bool is_known(const void* p) {
  std::lock_guard held(table().lock);
  return find(p) != table().pieces.end();
}

int check_range(const void* p, size_t bytes) {
  std::lock_guard held(table().lock);
  auto it = find(p);
  if (it == table().pieces.end()) return kSuccess;
  auto offset = size_t(static_cast<const char*>(p) - it->first);
  return it->second.given_back || offset + bytes > it->second.bytes ? kInvalidValue : kSuccess;
}

int enable_peer(int device) {
  if (int wrong = check_device()) return wrong;
  if (device == current_device || device < 0 || device >= orders.devices) return kInvalidDevice;
  std::lock_guard held(table().lock);
  return table().peers.insert({current_device, device}).second ? kSuccess : kPeerAlreadyEnabled;
}

}  // namespace paper

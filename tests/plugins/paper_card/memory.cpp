// tests/plugins/paper_card/memory.cpp: memory of the card, on the host. Behind each piece stands a
// page that nobody may touch; what was given back is never mapped again, so a late use is a fault.
// It lies in a file without a name, where other processes find it by a handle.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

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
  off_t place = 0;  // of the map in the file
  int opened = 0;   // how often, if it is another process's
};
struct Handle {
  char magic[8];
  pid_t process;
  int file;
  off_t place;                  // of the map
  size_t mapped, begin, bytes;  // where the piece begins in it
};
static_assert(sizeof(Handle) <= 64);
struct Table {
  std::mutex lock;
  std::map<const char*, Piece> pieces;
  size_t used[kMostDevices] = {};
  std::set<std::pair<int, int>> peers;
  int file = memfd_create("card of paper", MFD_CLOEXEC);
  off_t end = 0;
  std::map<std::string, char*> opened;  // by handle
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

void close_map(const Piece& piece) {
  mmap(piece.map, piece.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
}

bool refused() { return is_due(orders.fail_alloc) || orders.full; }

}  // namespace

int allocate(void** out, size_t bytes, Kind kind) {
  if (int wrong = check_device()) return wrong;
  if (bytes == 0) return kInvalidValue;
  ++counts.allocations;
  Table& t = table();
  std::lock_guard held(t.lock);
  bool counted = kind == Kind::device;
  if (refused() || (counted && t.used[current_device] + bytes > size_t(orders.memory)))
    return ++counts.refused, kOutOfMemory;
  size_t pages = up(bytes, kPage), mapped = pages + kPage;
  off_t place = t.end;
  if (ftruncate(t.file, place + off_t(mapped)) != 0) return kOutOfMemory;
  void* map =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, t.file, place);
  if (map == MAP_FAILED) return kOutOfMemory;
  t.end += off_t(mapped);
  auto* begin = static_cast<char*>(map);
  mprotect(begin + pages, kPage, PROT_NONE);
  char* p = begin + pages - up(bytes, kAlignment);
  std::memset(p, 0xa5, std::min(bytes, kSoiled));  // a card's memory is not zero
  if (counted) t.used[current_device] += bytes;
  t.pieces[p] = {bytes, begin, mapped, kind, current_device, false, place};
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
    if (it == t.pieces.end() || it->second.given_back || it->second.opened) return kInvalidValue;
    device = it->second.device;
  }
  wait_for_all(device);
  std::lock_guard held(t.lock);
  Piece& piece = t.pieces[static_cast<char*>(p)];
  piece.given_back = true;
  if (piece.kind == Kind::device) t.used[piece.device] -= piece.bytes;
  close_map(piece);
  // Who has it open sees nothing of it either.
  fallocate(t.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece.place, off_t(piece.mapped));
  return kSuccess;
}

int show_memory(void* handle, void* p) {
  if (int wrong = check_device()) return wrong;
  Table& t = table();
  std::lock_guard held(t.lock);
  auto it = t.pieces.find(static_cast<char*>(p));
  if (it == t.pieces.end()) return kInvalidValue;
  const Piece& piece = it->second;
  if (piece.given_back || piece.opened || piece.kind != Kind::device) return kInvalidValue;
  Handle h{"paper01",  getpid(), t.file, piece.place, piece.mapped, size_t(it->first - piece.map),
           piece.bytes};
  std::memset(handle, 0, 64);
  std::memcpy(handle, &h, sizeof h);
  return kSuccess;
}

int open_memory(void** out, const void* handle) {
  if (int wrong = check_device()) return wrong;
  Handle h;
  std::memcpy(&h, handle, sizeof h);
  if (std::memcmp(h.magic, "paper01", 8) != 0 || h.process == getpid()) return kInvalidValue;
  Table& t = table();
  std::lock_guard held(t.lock);
  std::string name(static_cast<const char*>(handle), 64);
  if (auto it = t.opened.find(name); it != t.opened.end()) {
    ++t.pieces[it->second].opened;
    return *out = it->second, kSuccess;
  }
  std::string path = "/proc/" + std::to_string(h.process) + "/fd/" + std::to_string(h.file);
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return kInvalidValue;
  void* map =
      mmap(nullptr, h.mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, h.place);
  close(file);
  if (map == MAP_FAILED) return kOutOfMemory;
  auto* begin = static_cast<char*>(map);
  mprotect(begin + h.mapped - kPage, kPage, PROT_NONE);
  char* p = begin + h.begin;
  t.pieces[p] = {h.bytes, begin, h.mapped, Kind::device, current_device, false, h.place, 1};
  t.opened[name] = p;
  return *out = p, kSuccess;
}

int close_memory(void* p) {
  if (int wrong = check_device()) return wrong;
  Table& t = table();
  std::lock_guard held(t.lock);
  auto it = t.pieces.find(static_cast<char*>(p));
  if (it == t.pieces.end() || !it->second.opened) return kInvalidValue;
  if (--it->second.opened) return kSuccess;
  it->second.given_back = true;
  close_map(it->second);
  std::erase_if(t.opened, [&](const auto& known) { return known.second == p; });
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

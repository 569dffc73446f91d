// core/guest/rare/pins.cpp: ranges of the plugins that are mapped, and counts of what points into
// each.
#include "core/guest/pins.hpp"

#include <link.h>

#include <algorithm>
#include <atomic>

namespace adjoin {
namespace plugin {

constexpr int kKinds = int(Holder::kinds);
constexpr const char* kPinNames[kKinds][2] = {{"object of its types", "objects of its types"},
                                              {"function object", "function objects"},
                                              {"hook", "hooks"},
                                              {"node of a graph", "nodes of graphs"},
                                              {"tensor over its memory", "tensors over its memory"},
                                              {"frontend", "frontends"},
                                              {"call", "calls"},
                                              {"listener", "listeners"}};

struct PinnedFile {
  std::atomic<uintptr_t> begin{0}, size{0};
  std::atomic<int64_t> counts[kKinds]{};
  const char *name, *label;
  PinnedFile* next;
};

namespace {

std::atomic<PinnedFile*> files{nullptr};

// Two looks at `begin`: between them the file may be unmapped, and mapped elsewhere.
bool holds(const PinnedFile& f, uintptr_t at) {
  uintptr_t begin = f.begin.load();
  return at - begin < f.size.load() && f.begin.load() == begin;
}

PinnedFile* file_at(const void* code) {
  if (!code) return nullptr;
  for (PinnedFile* f = files.load(std::memory_order_acquire); f; f = f->next)
    if (holds(*f, reinterpret_cast<uintptr_t>(code))) return f;
  return nullptr;
}

struct Range {
  uintptr_t inside, begin, end;
};

int find_range(dl_phdr_info* info, size_t, void* to) {
  auto* range = static_cast<Range*>(to);
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& p = info->dlpi_phdr[i];
    if (p.p_type != PT_LOAD) continue;
    begin = std::min<uintptr_t>(begin, info->dlpi_addr + p.p_vaddr);
    end = std::max<uintptr_t>(end, info->dlpi_addr + p.p_vaddr + p.p_memsz);
  }
  if (range->inside < begin || range->inside >= end) return 0;
  range->begin = begin;
  range->end = end;
  return 1;
}

}  // namespace

PinnedFile* pins_begin(PinnedFile* f, const void* inside, const char* name, const char* label) {
  bool fresh = !f;
  if (fresh) f = new PinnedFile;
  f->name = name;
  f->label = label;
  Range range = {reinterpret_cast<uintptr_t>(inside), 0, 0};
  dl_iterate_phdr(find_range, &range);
  f->begin = range.begin;
  f->size = range.end - range.begin;
  if (fresh) {  // the load lock is held: nobody else adds
    f->next = files.load();
    files.store(f, std::memory_order_release);
  }
  return f;
}

void pins_end(PinnedFile* f) {
  if (f) f->size = 0;
}

std::string pins_text(const PinnedFile* f) {
  std::string text;
  int64_t all = 0;
  for (int i = 0; f && i < kKinds; i++) {
    int64_t n = f->counts[i].load();
    if (n <= 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + kPinNames[i][n != 1];
    all += n;
  }
  return text.empty() ? text : text + (all == 1 ? " points into it" : " point into it");
}

const char* label_at(const void* code) {
  const PinnedFile* f = file_at(code);
  return f ? f->label : nullptr;
}

std::string plugin_at(const void* code) {
  const PinnedFile* f = file_at(code);
  return f ? f->name : "";
}

}  // namespace plugin

void pin(Holder what, const void* code) {
  if (auto* f = plugin::file_at(code)) f->counts[int(what)].fetch_add(1);
}

void unpin(Holder what, const void* code) {
  if (auto* f = plugin::file_at(code)) f->counts[int(what)].fetch_sub(1);
}

}  // namespace adjoin

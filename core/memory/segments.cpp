// core/memory/segments.cpp: splitting, joining and cooling of large blocks.
#include "core/memory/segments.hpp"

#include <algorithm>

namespace adjoin {

void Segments::list(Segment* s, uint32_t first, uint32_t length) {
  Chunk &head = s->chunk[first], &tail = s->chunk[first + length - 1];
  head.use = tail.use = Use::free;
  head.length = tail.length = length;
  head.first = tail.first = first;
  free_.insert({s->stream, length, s->base + first * granule_});
}

void Segments::unlist(Segment* s, uint32_t first) {
  free_.erase({s->stream, s->chunk[first].length, s->base + first * granule_});
}

Segments::Place Segments::find(const void* p) {
  auto* at = static_cast<char*>(const_cast<void*>(p));
  auto index_in = [&](const Segment* s) { return uint64_t(at - s->base) >> granule_bits_; };
  if (!found_ || index_in(found_) >= found_->chunks) {  // below its base the index is huge
    auto it = segments_.upper_bound(at);
    if (it == segments_.begin()) return {nullptr, 0};
    Segment* s = std::prev(it)->second.get();
    if (index_in(s) >= s->chunks) return {nullptr, 0};
    found_ = s;
  }
  return {found_, found_->chunk[index_in(found_)].first};
}

Segments::Place Segments::take(void* stream, uint32_t chunks, Use use) {
  auto it = free_.lower_bound({stream, chunks, nullptr});
  if (it == free_.end() || it->stream != stream) return {nullptr, 0};
  Segment* s = std::prev(segments_.upper_bound(it->at))->second.get();
  auto first = uint32_t(uint64_t(it->at - s->base) / granule_);
  uint32_t length = it->length;
  free_.erase(it);
  if (length > chunks) list(s, first + chunks, length - chunks);
  for (uint32_t i = first; i < first + chunks; i++) {
    Chunk& c = s->chunk[i];
    if (c.warm) warm_free_ -= granule_;
    c.warm = true;
    c.use = use;
    c.first = first;
    c.length = chunks;
  }
  used_ += chunks * granule_;
  return {s, first};
}

void Segments::give(Place at, uint32_t now) {
  Segment* s = at.segment;
  uint32_t first = at.index, length = s->chunk[first].length;
  for (uint32_t i = first; i < first + length; i++) {
    s->chunk[i].use = Use::free;
    s->chunk[i].freed_at = now;
  }
  used_ -= length * granule_;
  warm_free_ += length * granule_;
  if (first + length < s->chunks && s->chunk[first + length].use == Use::free) {
    unlist(s, first + length);
    length += s->chunk[first + length].length;
  }
  if (first > 0 && s->chunk[first - 1].use == Use::free) {
    uint32_t before = s->chunk[first - 1].first;
    unlist(s, before);
    length += first - before;
    first = before;
  }
  list(s, first, length);
}

bool Segments::overlaps(const void* raw, uint64_t raw_bytes) const {
  auto* at = static_cast<char*>(const_cast<void*>(raw));
  auto after = segments_.lower_bound(at + raw_bytes);
  if (after == segments_.begin()) return false;
  const Segment& s = *std::prev(after)->second;
  return static_cast<char*>(s.raw) + s.raw_bytes > at;
}

void Segments::add(void* raw, uint64_t raw_bytes, void* stream, bool warm) {
  auto s = std::make_unique<Segment>();
  s->base = static_cast<char*>(raw);
  s->chunks = uint32_t(raw_bytes / granule_);
  s->stream = stream;
  s->raw = raw;
  s->raw_bytes = raw_bytes;
  s->chunk.resize(s->chunks);
  for (Chunk& c : s->chunk) c.warm = warm;
  reserved_ += s->chunks * granule_;
  if (warm) warm_free_ += s->chunks * granule_;
  list(s.get(), 0, s->chunks);
  segments_[s->base] = std::move(s);
}

void Segments::cool(uint64_t keep, uint32_t before, Release release, void* self) {
  struct Warm {
    uint32_t freed_at;
    char* at;
    Chunk* chunk;
  };
  std::vector<Warm> warm;
  for (auto& [stream, length, at] : free_) {
    Segment* s = std::prev(segments_.upper_bound(at))->second.get();
    auto first = uint32_t(uint64_t(at - s->base) / granule_);
    for (uint32_t i = first; i < first + length; i++)
      if (s->chunk[i].warm)
        warm.push_back({s->chunk[i].freed_at, s->base + i * granule_, &s->chunk[i]});
  }
  std::sort(warm.begin(), warm.end(), [](const Warm& a, const Warm& b) {
    return a.freed_at != b.freed_at ? a.freed_at < b.freed_at : a.at < b.at;
  });
  for (size_t i = 0; i < warm.size();) {
    size_t end = i;
    uint64_t left = warm_free_;
    while (end < warm.size() && (warm[end].freed_at < before || left > keep) &&
           warm[end].at == warm[i].at + (end - i) * granule_) {
      left -= granule_;
      end++;
    }
    if (end == i || !release(self, warm[i].at, (end - i) * granule_)) return;
    for (; i < end; i++) warm[i].chunk->warm = false;
    warm_free_ = left;
  }
}

void Segments::drop_free_segments(uint64_t keep, Release release, void* self) {
  for (auto it = segments_.begin(); it != segments_.end();) {
    Segment* s = it->second.get();
    if (warm_free_ <= keep && keep > 0) return;
    if (kept_.contains(s->stream) || s->chunk[0].use != Use::free ||
        s->chunk[0].length != s->chunks || !release(self, s->raw, s->raw_bytes)) {
      ++it;
      continue;
    }
    unlist(s, 0);
    for (const Chunk& c : s->chunk)
      if (c.warm) warm_free_ -= granule_;
    reserved_ -= s->chunks * granule_;
    if (s == found_) found_ = nullptr;
    it = segments_.erase(it);
  }
}

}  // namespace adjoin

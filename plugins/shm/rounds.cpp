// plugins/shm/rounds.cpp: sums are in the order of ranks, whatever the sizes.
#include "rounds.hpp"

#include <algorithm>
#include <cstring>

#include "region.hpp"

namespace adjoin::shm {
namespace {

// Below, waiting for a second round costs more than reading all halves.
constexpr size_t kReduceWhole = 16 * 1024;

size_t pieces(size_t count, size_t each) { return std::max<size_t>((count + each - 1) / each, 1); }

void copy(char* to, const char* from, size_t bytes) {
  if (to && from && to != from && bytes) std::memmove(to, from, bytes);
}

}  // namespace

Rounds::Rounds(const kit::comm::Request& request, int rank, int size)
    : request_(request),
      c_(request.get()),
      rank_(rank),
      size_(size),
      item_(request.item()),
      room_(kHalf / item_),
      room_of_part_(room_ / size_t(size)) {
  const size_t parts = pieces(c_.count, room_of_part_);
  switch (c_.kind) {
    case AJ_COLL_BARRIER:
      break;
    case AJ_COLL_ALL_REDUCE:
      whole_reduced_ = request.bytes() <= kReduceWhole || size == 1;
      // Of the first two parts a sum is made at once: it may stand where one of them does.
      keeps_own_ = c_.op != AJ_RED_PREMUL && (rank < 2 || request.in() != request.out());
      rounds_ = whole_reduced_ ? pieces(c_.count, room_) : 2 * pieces(c_.count, room_);
      break;
    case AJ_COLL_REDUCE_SCATTER:
    case AJ_COLL_SCATTER:
      rounds_ = parts;
      break;
    case AJ_COLL_ALL_TO_ALL:
      rounds_ = parts;
      for (int r = 0; r <= size; r++) in_at_.push_back(uint64_t(r) * c_.count);
      out_at_ = in_at_;
      break;
    case AJ_COLL_ALL_TO_ALL_V:  // the first round tells how many there are
      in_at_ = out_at_ = {0};
      for (int r = 0; r < size; r++) {
        in_at_.push_back(in_at_.back() + request.in_counts()[size_t(r)]);
        out_at_.push_back(out_at_.back() + request.out_counts()[size_t(r)]);
      }
      break;
    case AJ_COLL_ALL_GATHER_V: {
      const auto& counts = request.out_counts();
      rounds_ = pieces(*std::max_element(counts.begin(), counts.end()), room_);
      break;
    }
    default:
      rounds_ = pieces(c_.count, room_);
  }
}

Rounds::Span Rounds::piece(size_t of, size_t each, size_t number) const {
  const size_t first = std::min(of, number * each);
  return {first, std::min(of - first, each)};
}

Rounds::Span Rounds::part(Span whole, int rank) const {
  const size_t each = (whole.count + size_t(size_) - 1) / size_t(size_);
  const Span s = piece(whole.count, each, size_t(rank));
  return {whole.first + s.first, s.count};
}

void Rounds::give_scaled(char* half, const char* from, size_t count) const {
  copy(half, from, count * item_);
  if (kit::comm::reduces(c_) && c_.op == AJ_RED_PREMUL)
    kit::comm::scale(c_.dtype, half, count, c_.scale);
}

// All but the part that this process will reduce itself, unless that is to be scaled.
void Rounds::give_to_reduce(char* half, Span whole) const {
  if (whole_reduced_ || !keeps_own_)
    return give_scaled(half, request_.in() + whole.first * item_, whole.count);
  const Span mine = part(whole, rank_);
  const size_t before = mine.first - whole.first, after = before + mine.count;
  copy(half, request_.in() + whole.first * item_, before * item_);
  copy(half + after * item_, request_.in() + (whole.first + after) * item_,
       (whole.count - after) * item_);
}

void Rounds::give(char* half) {
  switch (c_.kind) {
    case AJ_COLL_BARRIER:
      return;
    case AJ_COLL_ALL_REDUCE: {
      if (whole_reduced_ || round_ % 2 == 0) {
        const Span s = piece(c_.count, room_, whole_reduced_ ? round_ : round_ / 2);
        return give_to_reduce(half, s);
      }
      const Span mine = part(piece(c_.count, room_, round_ / 2), rank_);
      return copy(half, request_.out() + mine.first * item_, mine.count * item_);
    }
    case AJ_COLL_REDUCE: {
      const Span s = piece(c_.count, room_, round_);
      return give_scaled(half, request_.in() + s.first * item_, s.count);
    }
    case AJ_COLL_ALL_TO_ALL_V:
      if (round_ == 0)
        return copy(half, reinterpret_cast<const char*>(request_.in_counts().data()),
                    size_t(size_) * sizeof(uint64_t));
      [[fallthrough]];
    case AJ_COLL_REDUCE_SCATTER:
    case AJ_COLL_SCATTER:
    case AJ_COLL_ALL_TO_ALL:
      return give_parts(half);
    default: {  // BROADCAST, ALL_GATHER, ALL_GATHER_V, GATHER: the same for everybody
      if (c_.kind == AJ_COLL_BROADCAST && rank_ != c_.peer) return;
      const Span s = piece(c_.count, room_, round_);
      return copy(half, request_.in() + s.first * item_, s.count * item_);
    }
  }
}

// For each process a part, at the same place of every half.
void Rounds::give_parts(char* half) {
  if (c_.kind == AJ_COLL_SCATTER && rank_ != c_.peer) return;
  const bool sizes_differ = c_.kind == AJ_COLL_ALL_TO_ALL_V;
  for (int to = 0; to < size_; to++) {
    const size_t r = size_t(to);
    const size_t count = sizes_differ ? request_.in_counts()[r] : c_.count;
    const size_t first = sizes_differ ? in_at_[r] : r * c_.count;
    const Span s = piece(count, room_of_part_, round_ - sizes_differ);
    give_scaled(half + r * room_of_part_ * item_, request_.in() + (first + s.first) * item_,
                s.count);
  }
}

std::vector<const char*> Rounds::behind(std::vector<const char*> halves, size_t count) const {
  for (const char*& half : halves) half += count * item_;
  return halves;
}

void Rounds::reduce_to(char* out, const std::vector<const char*>& parts, size_t count) const {
  if (!count) return;
  const kit::comm::Combine combine = kit::comm::combine_of(c_.dtype, c_.op);
  if (size_ == 1) return copy(out, parts[0], count * item_);
  combine(out, parts[0], parts[1], count);
  for (size_t r = 2; r < parts.size(); r++) combine(out, out, parts[r], count);
  if (c_.op == AJ_RED_AVG) kit::comm::scale(c_.dtype, out, count, 1.0 / size_);
}

void Rounds::take(const std::vector<const char*>& halves) {
  const size_t now = round_++;
  switch (c_.kind) {
    case AJ_COLL_BARRIER:
      return;
    case AJ_COLL_ALL_REDUCE: {
      const Span s = piece(c_.count, room_, whole_reduced_ ? now : now / 2);
      if (whole_reduced_) return reduce_to(request_.out() + s.first * item_, halves, s.count);
      if (now % 2 == 0) {
        const Span mine = part(s, rank_);
        std::vector<const char*> parts = behind(halves, mine.first - s.first);
        if (keeps_own_) parts[size_t(rank_)] = request_.in() + mine.first * item_;
        return reduce_to(request_.out() + mine.first * item_, parts, mine.count);
      }
      for (int r = 0; r < size_; r++)
        if (const Span theirs = part(s, r); r != rank_)
          copy(request_.out() + theirs.first * item_, halves[size_t(r)], theirs.count * item_);
      return;
    }
    case AJ_COLL_REDUCE: {
      const Span s = piece(c_.count, room_, now);
      if (rank_ == c_.peer) reduce_to(request_.out() + s.first * item_, halves, s.count);
      return;
    }
    case AJ_COLL_BROADCAST: {
      const Span s = piece(c_.count, room_, now);
      return copy(request_.out() + s.first * item_, halves[size_t(c_.peer)], s.count * item_);
    }
    case AJ_COLL_ALL_TO_ALL_V:
      if (now == 0) return take_counts(halves);
      [[fallthrough]];
    case AJ_COLL_REDUCE_SCATTER:
    case AJ_COLL_SCATTER:
    case AJ_COLL_ALL_TO_ALL:
      return take_parts(halves);
    default: {  // ALL_GATHER, ALL_GATHER_V, GATHER
      if (c_.kind == AJ_COLL_GATHER && rank_ != c_.peer) return;
      size_t first = 0;
      for (size_t r = 0; r < halves.size(); r++) {
        const size_t count = c_.kind == AJ_COLL_ALL_GATHER_V ? request_.out_counts()[r] : c_.count;
        const Span s = piece(count, room_, now);
        copy(request_.out() + (first + s.first) * item_, halves[r], s.count * item_);
        first += count;
      }
    }
  }
}

void Rounds::take_counts(const std::vector<const char*>& halves) {
  uint64_t most = 0;
  for (const char* half : halves) {
    const auto* counts = reinterpret_cast<const uint64_t*>(half);
    most = std::max(most, *std::max_element(counts, counts + size_));
  }
  rounds_ = 1 + (most ? pieces(most, room_of_part_) : 0);
}

void Rounds::take_parts(const std::vector<const char*>& halves) {
  const bool sizes_differ = c_.kind == AJ_COLL_ALL_TO_ALL_V;
  const size_t number = round_ - 1 - sizes_differ;
  const size_t mine = size_t(rank_) * room_of_part_;
  const Span s = piece(c_.count, room_of_part_, number);
  if (c_.kind == AJ_COLL_REDUCE_SCATTER)
    return reduce_to(request_.out() + s.first * item_, behind(halves, mine), s.count);
  if (c_.kind == AJ_COLL_SCATTER)
    return copy(request_.out() + s.first * item_, halves[size_t(c_.peer)] + mine * item_,
                s.count * item_);
  for (size_t r = 0; r < halves.size(); r++) {
    const size_t count = sizes_differ ? request_.out_counts()[r] : c_.count;
    const Span theirs = piece(count, room_of_part_, number);
    copy(request_.out() + (out_at_[r] + theirs.first) * item_, halves[r] + mine * item_,
         theirs.count * item_);
  }
}

}  // namespace adjoin::shm

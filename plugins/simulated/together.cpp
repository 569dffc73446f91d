// plugins/simulated/together.cpp: plain loops: whoever comes last moves everybody's bytes.
#include "together.hpp"

#include <cstring>

namespace adjoin::simulated {
namespace {

using kit::comm::Request;
using All = std::vector<Request*>;

void copy(void* to, const void* from, size_t bytes) {
  if (to && from && to != from && bytes) std::memmove(to, from, bytes);
}

// The reduction of `count` elements that begin at `first` in each process's input.
std::vector<char> reduced(const All& all, size_t first, size_t count) {
  const aj_coll& c = all[0]->get();
  const size_t item = all[0]->item();
  std::vector<char> sum(count * item), next(count * item);
  const kit::comm::Combine combine = kit::comm::combine_of(c.dtype, c.op);
  for (size_t r = 0; r < all.size(); r++) {
    std::vector<char>& part = r ? next : sum;
    copy(part.data(), all[r]->in() + first * item, part.size());
    if (c.op == AJ_RED_PREMUL) kit::comm::scale(c.dtype, part.data(), count, all[r]->get().scale);
    if (r) combine(sum.data(), sum.data(), next.data(), count);
  }
  if (c.op == AJ_RED_AVG) kit::comm::scale(c.dtype, sum.data(), count, 1.0 / double(all.size()));
  return sum;
}

void all_reduce(const All& all) {
  const std::vector<char> sum = reduced(all, 0, all[0]->get().count);
  for (Request* r : all) copy(r->out(), sum.data(), sum.size());
}
void reduce(const All& all, size_t root) {
  const std::vector<char> sum = reduced(all, 0, all[0]->get().count);
  copy(all[root]->out(), sum.data(), sum.size());
}
void reduce_scatter(const All& all) {
  const size_t count = all[0]->get().count;
  std::vector<std::vector<char>> sums;
  for (size_t r = 0; r < all.size(); r++) sums.push_back(reduced(all, r * count, count));
  for (size_t r = 0; r < all.size(); r++) copy(all[r]->out(), sums[r].data(), sums[r].size());
}

void gather(const All& all, Request& to) {
  const size_t bytes = all[0]->bytes();
  for (size_t r = 0; r < all.size(); r++) copy(to.out() + r * bytes, all[r]->in(), bytes);
}
void all_gather_v(const All& all) {
  for (Request* to : all) {
    char* at = to->out();
    for (size_t r = 0; r < all.size(); r++) {
      const size_t bytes = to->out_counts()[r] * to->item();
      copy(at, all[r]->in(), bytes);
      at += bytes;
    }
  }
}
void scatter(const All& all, const Request& from) {
  const std::vector<char> held(from.in(), from.in() + all.size() * from.bytes());
  for (size_t r = 0; r < all.size(); r++)
    copy(all[r]->out(), held.data() + r * from.bytes(), from.bytes());
}

// In and out may be the same memory.
void all_to_all(const All& all) {
  std::vector<std::vector<char>> given;
  std::vector<std::vector<size_t>>
      places;  // where a part begins, in bytes, and where the last ends
  for (Request* r : all) {
    std::vector<size_t> at = {0};
    for (size_t to = 0; to < all.size(); to++)
      at.push_back(at.back() +
                   (r->in_counts().empty() ? r->get().count : r->in_counts()[to]) * r->item());
    given.emplace_back(r->in(), r->in() + at.back());
    places.push_back(at);
  }
  for (size_t me = 0; me < all.size(); me++) {
    char* at = all[me]->out();
    for (size_t r = 0; r < all.size(); r++) {
      const size_t bytes = places[r][me + 1] - places[r][me];
      copy(at, given[r].data() + places[r][me], bytes);
      at += bytes;
    }
  }
}

}  // namespace

void together(const All& all) {
  const aj_coll& c = all[0]->get();
  const size_t root = size_t(c.peer);
  switch (c.kind) {
    case AJ_COLL_BARRIER:
      return;
    case AJ_COLL_BROADCAST:
      for (Request* r : all) copy(r->out(), all[root]->in(), all[root]->bytes());
      return;
    case AJ_COLL_ALL_REDUCE:
      return all_reduce(all);
    case AJ_COLL_REDUCE:
      return reduce(all, root);
    case AJ_COLL_ALL_GATHER:
      for (Request* r : all) gather(all, *r);
      return;
    case AJ_COLL_GATHER:
      return gather(all, *all[root]);
    case AJ_COLL_REDUCE_SCATTER:
      return reduce_scatter(all);
    case AJ_COLL_SCATTER:
      return scatter(all, *all[root]);
    case AJ_COLL_ALL_TO_ALL:
    case AJ_COLL_ALL_TO_ALL_V:
      return all_to_all(all);
    case AJ_COLL_ALL_GATHER_V:
      return all_gather_v(all);
    default: {  // a send and its receive, in either order
      const bool first_sends = c.kind == AJ_COLL_SEND;
      copy(all[first_sends]->out(), all[!first_sends]->in(), all[0]->bytes());
    }
  }
}

}  // namespace adjoin::simulated

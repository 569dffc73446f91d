// plugins/fuser/claim.cpp: which calls of a program can be one chain: neighbours along its edges of
// one index space, or of its rows (the last dimension 1), computed in one dtype.
#include <algorithm>
#include <unordered_map>

#include "function.hpp"

namespace adjoin::fuser {
namespace {

struct Cluster {
  uint32_t joined = kNone;  // to which it was added
  DLDataType compute{};     // code 0, bits 0: not known yet
  std::vector<int64_t> space;
  size_t nodes = 0;
};

// A value that a claimed call makes. inside: others of its cluster may read it.
struct Made {
  uint32_t cluster;
  bool inside;
};

bool is_row_of(const std::vector<int64_t>& row, const std::vector<int64_t>& space) {
  return row.size() == space.size() && !row.empty() && row.back() == 1 &&
         std::equal(row.begin(), row.end() - 1, space.begin());
}

// Many rows of one element? With such a sum the whole part would be declined when it runs.
bool many_of_one(const std::vector<int64_t>& shape) {
  return shape.back() == 1 &&
         std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n > 8; });
}

class Claiming {
 public:
  Claiming(const aj_graph* g, uint32_t* cluster) : g_(g), cluster_(cluster) {}

  void whole() {
    const uint32_t n = graphs->count(g_);
    for (uint32_t i = 0; i < n; ++i) take(i);
    for (uint32_t i = 0; i < n; ++i)
      if (cluster_[i]) cluster_[i] = find(cluster_[i] - 1) + 1;
  }

 private:
  uint32_t find(uint32_t c) {
    while (clusters_[c].joined != kNone) c = clusters_[c].joined;
    return c;
  }

  void take(uint32_t i) {
    const Node n(g_, i);
    DLDataType compute{};
    if (const auto f = folding(g_, n)) {
      const ValueType in = type_of(g_, f->value);
      if (in.shape.back() > kMostRow || many_of_one(in.shape)) return;
      std::vector<uint32_t> values = {f->value};
      // What a layer norm is scaled by comes from outside.
      for (uint32_t v : {f->weight, f->bias})
        if (v != kNone && made_.count(v)) return;
      const uint32_t c = place(values, in.shape, false, in.dtype);
      for (uint32_t v : {f->mean, f->rstd})
        if (v != kNone) made_[v] = {c, false};
      return claimed(i, n, c, f->keep || in.shape.size() == 1);
    }
    const auto chosen = element_wise(g_, n, &compute);
    if (!chosen) return;
    std::vector<uint32_t> values;
    for (const Input& in : chosen->inputs)
      if (in.value != kNone) values.push_back(in.value);
    const std::vector<int64_t> shape = type_of(g_, n.results[0] - 1).shape;
    if (shape.size() > kMostDims) return;
    claimed(i, n, place(values, shape, true, compute), true);
  }

  void claimed(uint32_t i, const Node& n, uint32_t c, bool inside) {
    cluster_[i] = c + 1;
    clusters_[c].nodes++;
    made_[n.results[0] - 1] = {c, inside};
  }

  // The cluster of a call that reads these values; several that fit become one.
  uint32_t place(const std::vector<uint32_t>& values, const std::vector<int64_t>& shape,
                 bool may_be_row, DLDataType compute) {
    uint32_t to = kNone;
    for (uint32_t v : values) {
      const auto made = made_.find(v), read = read_.find(v);
      if (made == made_.end() && read == read_.end()) continue;
      const uint32_t c = find(made != made_.end() ? made->second.cluster : read->second.cluster);
      if (c == to || !fits(c, values, shape, may_be_row, compute)) continue;
      if (to == kNone) {
        to = c;
      } else if (clusters_[c].space == clusters_[to].space &&
                 clusters_[c].nodes + clusters_[to].nodes < kMostNodes) {
        clusters_[c].joined = to;
        clusters_[to].nodes += clusters_[c].nodes;
        if (!clusters_[to].compute.bits) clusters_[to].compute = clusters_[c].compute;
      }
    }
    if (to == kNone) {
      to = uint32_t(clusters_.size());
      clusters_.push_back({kNone, {}, shape, 0});
    }
    if (!clusters_[to].compute.bits) clusters_[to].compute = compute;
    // Who else reads a whole tensor of others can do so in the same pass.
    for (uint32_t v : values)
      if (made_.find(v) == made_.end() && type_of(g_, v).shape == clusters_[to].space)
        read_[v] = {to, true};
    return to;
  }

  bool fits(uint32_t c, const std::vector<uint32_t>& values, const std::vector<int64_t>& shape,
            bool may_be_row, DLDataType compute) {
    const Cluster& k = clusters_[c];
    if (k.nodes >= kMostNodes) return false;
    if (k.compute.bits && compute.bits && !same(k.compute, compute)) return false;
    const bool row = may_be_row && shape != k.space && is_row_of(shape, k.space);
    if (!row && shape != k.space) return false;
    for (uint32_t v : values) {
      const auto made = made_.find(v);
      if (made == made_.end() || find(made->second.cluster) != c) continue;
      if (!made->second.inside) return false;
      // A row's value is made of rows' values.
      if (row && type_of(g_, v).shape == k.space) return false;
    }
    return true;
  }

  const aj_graph* g_;
  uint32_t* cluster_;
  std::vector<Cluster> clusters_;
  std::unordered_map<uint32_t, Made> made_, read_;
};

}  // namespace

aj_status* claim(void*, const aj_graph* g, uint32_t* cluster) {
  return guard("", [&] { Claiming(g, cluster).whole(); });
}

}  // namespace adjoin::fuser

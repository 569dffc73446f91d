// extensions/graph/passes/common.cpp: of equal calls one stays.
#include <numeric>
#include <unordered_map>

#include "passes.hpp"

namespace adjoin::graph {
namespace {

template <class T>
void put(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
void put_all(std::string& key, const std::vector<T>& values) {
  put(key, values.size());
  for (const T& v : values) put(key, v);
}

// What two calls have in common if they are equal, bit for bit.
std::string key_of(const Node& n) {
  std::string key;
  put(key, n.op);
  put(key, n.no_grad);
  for (const Arg& a : n.args) {
    put(key, a.kind), put(key, a.ref), put(key, a.tag), put(key, a.i);
    put(key, a.re), put(key, a.im), put(key, a.dtype);
    put(key, a.text.size());
    key += a.text;
    put_all(key, a.refs), put_all(key, a.ints), put_all(key, a.reals);
    put_all(key, a.bools), put_all(key, a.sizes);
  }
  return key;
}

class Merging {
 public:
  explicit Merging(Program& p) : p_(p), shared_(p), to_(p.values.size()) {
    std::iota(to_.begin(), to_.end(), 0u);
  }
  void whole() {
    std::unordered_map<std::string, const Node*> seen;
    for (Node& n : p_.body.nodes) {
      for (Arg& a : n.args) {
        if (a.kind == Arg::Kind::value || a.kind == Arg::Kind::device_of) a.ref = to_[a.ref];
        for (uint32_t& v : a.refs)
          if (v != kNone) v = to_[v];
      }
      if (!may(n)) continue;
      auto [known, fresh] = seen.emplace(key_of(n), &n);
      if (fresh) continue;
      for (size_t r = 0; r < n.results.size(); r++)
        for (size_t k = 0; k < n.results[r].values.size(); k++)
          to_[n.results[r].values[k]] = known->second->results[r].values[k];
    }
    replace(p_, to_);
    remove_dead(p_);
  }

 private:
  bool may(const Node& n) {
    if (!is_function(n)) return false;
    bool may = true;
    each_use(n, [&](uint32_t v) { may &= !shared_.is_written(v); });
    for (const Result& r : n.results)
      for (uint32_t v : r.values) may &= !shared_.is_written(v) && !shared_.is_result(v);
    return may;
  }

  Program& p_;
  Shared shared_;
  std::vector<uint32_t> to_;
};

}  // namespace

void merge_common(Program& p) { Merging(p).whole(); }

}  // namespace adjoin::graph

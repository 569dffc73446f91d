// extensions/graph/passes/constants.cpp: parameters that become constants, and what is made of
// constants alone.
#include <algorithm>
#include <numeric>
#include <set>

#include "../run.hpp"
#include "passes.hpp"

namespace adjoin::graph {
namespace {

constexpr uint64_t kMostBytes = 1u << 20;

uint64_t bytes_of_type(const Type& t) {
  uint64_t n = (t.dtype.bits + 7u) / 8u;
  for (int64_t size : t.shape)
    if (size < 0 || __builtin_mul_overflow(n, uint64_t(size), &n)) return ~uint64_t(0);
  return n;
}

Tensor copy_of_values(const Tensor& t) {
  static constinit Op clone("clone");
  const aj_value arg = value(t);
  return run_as<Tensor>(clone.get(), &arg, 1);
}

}  // namespace

void freeze(Program& p) {
  Shared shared(p);
  std::set<std::string> names;
  for (const Weight& w : p.weights)
    if (w.constant) names.insert(w.name);
  NoGradGuard off;
  for (Weight& w : p.weights) {
    if (w.constant) continue;
    if (shared.is_written(w.value))
      raise(AJ_PRECONDITION, "freeze: the program may write '", w.name,
            "', which a constant cannot be; trace the module after eval()");
    if (!w.tensor.defined())
      raise(AJ_PRECONDITION, "freeze: '", w.name, "' has no values; give them by set_weight first");
    w.tensor = copy_of_values(w.tensor.detach());
    w.constant = true;
    while (!names.insert(w.name).second) w.name += "_";
  }
}

void fold_constants(Program& p) {
  Shared shared(p);
  std::vector<Tensor> regs(p.values.size());
  for (const Weight& w : p.weights)
    if (w.constant && w.tensor.defined() && !shared.is_written(w.value)) regs[w.value] = w.tensor;
  NoGradGuard off;
  std::erase_if(p.body.nodes, [&](const Node& n) {
    if (!is_function(n) || n.results.size() != 1 || n.results[0].list ||
        n.results[0].values.size() != 1)
      return false;
    const uint32_t made = n.results[0].values[0];
    bool may = !shared.is_written(made) && !shared.is_result(made) &&
               bytes_of_type(p.values[made].type) <= kMostBytes;
    bool any = false;
    each_use(n, [&](uint32_t v) { may &= regs[v].defined(), any = true; });
    for (const Arg& a : n.args) may &= a.kind != Arg::Kind::device_of && a.sizes.empty();
    // Without an argument it is as fast to make it anew, on the device of the day.
    if (!may || !any) return false;
    run_statement(p, n, regs);
    add_constant(p, made, regs[made]);
    return true;
  });
  remove_dead(p);
}

}  // namespace adjoin::graph

// extensions/transform/loop.cpp: sample by sample, where nothing else serves; and the ledger of it.
#include <adjoin/kit/ops.hpp>
#include <deque>
#include <mutex>

#include "batch.hpp"

namespace adjoin::transform {
namespace {

struct Ledger {
  std::mutex lock;
  struct Line {
    std::string name;
    std::string_view reason;  // lives as long as the process
    uint64_t calls, samples, nanoseconds;
  };
  std::deque<Line> lines;
  std::atomic<bool> forbidden{false};
};
Ledger& ledger() {
  static auto* l = new Ledger;
  return *l;
}

std::string_view reason_of(const OpFacts& f) {
  return f.why.empty() ? "its body looks at values" : f.why;
}

void note(std::string_view name, std::string_view reason, uint64_t samples, uint64_t nanoseconds) {
  Ledger& l = ledger();
  std::lock_guard guard(l.lock);
  for (auto& line : l.lines) {
    if (line.name != name) continue;
    line.calls++, line.samples += samples, line.nanoseconds += nanoseconds;
    return;
  }
  l.lines.push_back({std::string(name), reason, 1, samples, nanoseconds});
}

Tensor slice_of(const Tensor& t, int64_t b) { return select(t, 0, b); }

// A batch of one, in place of none: ones where they are no places of anything.
Tensor one_sample(const Tensor& t) {
  std::vector<int64_t> sizes(t.shape().begin(), t.shape().end());
  sizes[0] = 1;
  return t.is_floating_point() || t.is_complex() ? new_ones(t, sizes) : new_zeros(t, sizes);
}

// The results of all samples, stacked; lists item by item.
void collect(Batch& b, std::vector<std::vector<Tensor>>& parts, uint32_t i, bool list,
             size_t items) {
  std::vector<Tensor> made;
  for (size_t j = 0; j < items; j++) {
    std::vector<Tensor> of;
    for (auto& sample : parts) of.push_back(sample[j]);
    made.push_back(stack(of, 0));
  }
  if (!list) return b.give(i, made[0]);
  std::vector<aj_value> values;
  for (const Tensor& t : made) values.push_back(value(t));
  aj_object* o = nullptr;
  check(core().list_new(values.data(), uint32_t(values.size()), &o));
  b.rets[i] = {AJ_LIST_OBJ, 0, {0}};
  b.rets[i].v.object = o;
}

// One sample's call; its results behind those of the samples before.
void call_sample(Batch& b, int64_t s, std::vector<std::vector<std::vector<Tensor>>>& results,
                 uint32_t* lists) {
  aj_value args[32], rets[8] = {};
  std::vector<Tensor> held;
  std::deque<std::vector<aj_tensor*>> own;
  for (uint32_t i = 0; i < b.call->nargs; i++) {
    args[i] = b.args[i];
    if (b.is_batched(i)) {
      held.push_back(slice_of(b.tensor(i), s));
      args[i].v.tensor = held.back().get();
    } else if (args[i].tag == AJ_TENSORS) {
      auto& list = own.emplace_back(args[i].v.tensors, args[i].v.tensors + args[i].aux);
      for (size_t j = 0; j < list.size(); j++) {
        if (!list[j] || b.batched[b.first(i) + j] != 0) continue;
        held.push_back(slice_of(Tensor::view(list[j]), s));
        list[j] = held.back().get();
      }
      args[i].v.tensors = list.data();
    }
  }
  const bool writes = b.call->rets[0].tag == AJ_TENSOR;
  if (writes) rets[0] = args[0];
  check(dispatch().call(b.facts.op, args, b.call->nargs, rets, b.facts.nresults));
  for (uint32_t i = 0; i < b.facts.nresults; i++) {
    auto& of = results[i].emplace_back();
    if (rets[i].tag == AJ_LIST_OBJ) {
      *lists |= 1u << i;
      of = take<std::vector<Tensor>>(rets[i]);
    } else if (rets[i].tag == AJ_TENSOR) {
      of.push_back(take<Tensor>(rets[i]));
    } else {
      drop(rets[i]);
      if (!b.in_place())
        raise(AJ_UNIMPLEMENTED, "vmap: its result is no tensor, and may differ between samples");
    }
  }
}

}  // namespace

Looping::Looping(std::string_view name, std::string_view reason, int64_t samples)
    : name_(name),
      reason_(reason),
      samples_(uint64_t(samples)),
      begin_(std::chrono::steady_clock::now()) {
  if (ledger().forbidden)
    raise(AJ_UNIMPLEMENTED, "vmap: it would be called sample by sample, because ", reason,
          ", and loops are errors now (func.loops)");
}

void Looping::done() const {
  const auto spent = std::chrono::steady_clock::now() - begin_;
  note(name_, reason_, samples_,
       uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()));
}

void rule_loop(Batch& b) {
  bool any = false;
  for (int32_t d : b.batched) any |= d == 0;
  if (!any && b.facts.random && b.level.randomness == AJ_RANDOM_DIFFERENT && b.is_tensor(0)) {
    b.set(0, b.spread(0), true);  // the draws differ
    any = true;
  }
  if (!any) {
    b.run();
    for (uint32_t i = 0; i < b.facts.nresults; i++) b.out_dims[i] = -1;
    return;
  }
  if (b.facts.random && b.level.randomness != AJ_RANDOM_DIFFERENT)
    raise_as(
        "RuntimeError", AJ_PRECONDITION,
        "vmap: the function draws random numbers, sample by sample: say randomness='different'");
  const Looping looping(b.facts.name, reason_of(b.facts), b.size());
  std::vector<std::vector<std::vector<Tensor>>> results(b.facts.nresults);
  uint32_t lists = 0;
  const int64_t n = b.size();
  if (n == 0) {  // nobody to ask for the shape: one sample of zeros tells it
    if (b.in_place()) return b.give(0, b.tensor(0));
    for (uint32_t i = 0; i < b.call->nargs; i++) {
      if (b.is_batched(i)) b.set(i, one_sample(b.tensor(i)), true);
      if (b.args[i].tag != AJ_TENSORS) continue;
      auto list = const_cast<aj_tensor**>(b.args[i].v.tensors);
      for (uint32_t j = 0; j < b.args[i].aux; j++) {
        if (!list[j] || b.batched[b.first(i) + j] != 0) continue;
        b.held.push_back(one_sample(Tensor::view(list[j])));
        list[j] = b.held.back().get();
      }
    }
    call_sample(b, 0, results, &lists);
  }
  for (int64_t s = 0; s < n; s++) call_sample(b, s, results, &lists);
  for (uint32_t i = 0; i < b.facts.nresults; i++) {
    if (i == 0 && b.in_place()) {
      b.give(0, b.tensor(0));
      continue;
    }
    collect(b, results[i], i, lists >> i & 1, results[i].empty() ? 0 : results[i][0].size());
    if (n == 0 && b.rets[i].tag == AJ_TENSOR)
      b.give(i, slice(b.result(i), 0, int64_t(0), int64_t(0)));
  }
  looping.done();
}

uint32_t loop_count() {
  std::lock_guard guard(ledger().lock);
  return uint32_t(ledger().lines.size());
}

aj_status* loop_at(uint32_t i, aj_loop* io) {
  return guard("transform: loop_at", [&] {
    std::lock_guard held(ledger().lock);
    if (i >= ledger().lines.size())
      raise(AJ_OUT_OF_RANGE, "loop ", i, " was asked for, there are ",
            uint64_t(ledger().lines.size()));
    const auto& line = ledger().lines[i];
    aj_loop l{sizeof l,        0, str(line.name), str(line.reason), line.calls, line.samples,
              line.nanoseconds};
    l.struct_size = io->struct_size;
    std::memcpy(io, &l, std::min<size_t>(io->struct_size, sizeof l));
  });
}

void loops_forbid(int32_t on) { ledger().forbidden = on != 0; }

}  // namespace adjoin::transform

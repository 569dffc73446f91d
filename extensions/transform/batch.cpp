// extensions/transform/batch.cpp: a call of a batch: payloads in, the op's rule, wrappers out.
#include "batch.hpp"

#include <adjoin/kit/ops.hpp>
#include <algorithm>

#include "origin.hpp"

namespace adjoin::transform {

Batch::Batch(Level& l, aj_call* c, const OpFacts& f) : level(l), call(c), facts(f) {
  auto take = [&](aj_tensor** t) {
    bool differs = false;
    const bool ours = at_level(*t, l);
    if (ours)
      held.push_back(current_value(*t, &differs));  // a write may replace the payload meanwhile
    batched.push_back(differs ? 0 : -1);
    if (ours) *t = held.back().get();
  };
  for (uint32_t i = 0; i < c->nargs; i++) {
    aj_value& v = args[i] = c->args[i];
    first_[i] = uint32_t(batched.size());
    if (v.tag == AJ_TENSOR) {
      take(&v.v.tensor);
    } else if (v.tag == AJ_TENSORS) {
      auto& list = lists.emplace_back(v.v.tensors, v.v.tensors + v.aux);
      for (aj_tensor*& t : list) take(&t);
      v.v.tensors = list.data();
    } else if (f.params[i].tensor()) {
      batched.push_back(-1);  // a number or None keeps its place
    }
  }
}

Batch::~Batch() {
  for (aj_value& v : rets) drop(v);
}

bool Batch::in_place() const { return facts.writes_first || call->rets[0].tag == AJ_TENSOR; }

void Batch::set(uint32_t i, const Tensor& t, bool is_batched) {
  held.push_back(t);
  args[i].v.tensor = t.get();
  batched[first_[i]] = is_batched ? 0 : -1;
}

void Batch::set_ints(uint32_t i, std::vector<int64_t> v) {
  ints.push_back(std::move(v));
  args[i] = value(ints.back());
}

Tensor spread(const Tensor& t, bool is_batched, int64_t size) {
  if (is_batched) return t;
  std::vector<int64_t> sizes(t.shape().begin(), t.shape().end());
  sizes.insert(sizes.begin(), size);
  return expand(t, sizes);
}

Tensor Batch::spread(uint32_t i) const {
  return transform::spread(tensor(i), is_batched(i), size());
}

Tensor aligned(const Tensor& t, bool is_batched, int64_t rank) {
  const int64_t own = t.ndim() - is_batched;
  if (own == rank || !is_batched) return t;
  std::vector<int64_t> sizes(t.shape().begin(), t.shape().end());
  sizes.insert(sizes.begin() + 1, size_t(rank - own), 1);
  return reshape(t, sizes);
}

void Batch::run() {
  for (aj_value& v : rets) drop(v);
  // In place: the payload is written, and handed back as result 0.
  if (call->rets[0].tag == AJ_TENSOR) {
    rets[0] = args[0];
    core().retain(rets[0].v.tensor);
    aj_value lent[8] = {};
    lent[0] = args[0];
    aj_status* s = dispatch().call(facts.op, args, call->nargs, lent, facts.nresults);
    check(s);
    for (uint32_t i = 0; i < facts.nresults; i++) drop(lent[i]);
    return;
  }
  check(dispatch().call(facts.op, args, call->nargs, rets, facts.nresults));
}

void Batch::give(uint32_t i, const Tensor& t, bool is_batched) {
  aj_value v = value(t);
  core().retain(t.get());
  drop(rets[i]);
  rets[i] = v;
  out_dims[i] = is_batched ? 0 : -1;
}

thread_local bool looked_at_values = false;
void note_look() { looked_at_values = true; }

namespace {

// A target that all samples share is about to be written with what differs between them.
void promote_target(Batch& b) {
  aj_tensor* target = b.call->args[0].v.tensor;
  if (!b.is_tensor(0) || b.is_batched(0)) return;
  const bool others =
      std::any_of(b.batched.begin() + 1, b.batched.end(), [](int32_t d) { return d == 0; });
  if (!others && !b.facts.draws) return;
  if (!at_level(target, b.level)) {
    note_look();
    raise(AJ_UNIMPLEMENTED,
          "vmap: a tensor that all samples share is written in place with values that differ "
          "between them; it has room for one: make it inside the function, or give it as an "
          "argument that is mapped");
  }
  {
    WithKey key;
    promote(target, b.level);
  }
  b.set(0, Tensor::borrow(payload_of(target)->value), true);
}

// The results as the level's tensors, into the call.
void hand_out(Batch& b, bool view) {
  aj_call* call = b.call;
  auto wrapped = [&](const Tensor& t, bool batched) {
    return make_wrapper(b.level, t, {}, batched, view ? call->args[0].v.tensor : nullptr);
  };
  for (uint32_t i = 0; i < b.facts.nresults; i++) {
    aj_value& v = b.rets[i];
    const bool batched = b.out_dims[i] == 0;
    if (v.tag == AJ_LIST_OBJ) {
      uint32_t n = 0;
      const aj_value* items = core().list_get(v.v.object, &n);
      std::vector<Tensor> made;
      for (uint32_t j = 0; j < n; j++) {
        made.push_back(wrapped(Tensor::view(items[j].v.tensor), batched));
        if (view && !batched) set_origin(made.back(), call, int32_t(j));
      }
      Body(call).ret(i, made);
    } else if (v.tag == AJ_TENSOR) {
      Tensor made = wrapped(Tensor::view(v.v.tensor), batched);
      if (view && !batched) set_origin(made, call, -1);
      call->rets[i] = value(made);
      made.take();
    } else {
      call->rets[i] = std::exchange(v, aj_value{});
    }
  }
}

// The op's body, on the wrappers: its calls come back here one by one.
aj_status* call_body(aj_call* call) {
  WithKey key;
  for (uint32_t i = 0; i < call->nrets; i++)
    if (call->rets[i].tag == AJ_TENSOR) call->rets[i].aux = 0;
  return lower_table->call_body(call->op, call->args, call->nargs, call->rets, call->nrets);
}

// Elementwise, where all is as it should be: payloads of the level of one rank and dtype, and
// numbers. What most calls are; nothing is prepared.
bool call_alike(Level& l, aj_call* call, const OpFacts& f) {
  if (f.rule != rule_align || f.nresults != 1 || call->rets[0].tag != AJ_NONE || call->nargs > 6 ||
      f.writes_first)
    return false;
  aj_value args[6];
  Tensor held[6];  // Python may let go of an argument's wrapper meanwhile
  const aj_tensor* like = nullptr;
  for (uint32_t i = 0; i < call->nargs; i++) {
    args[i] = call->args[i];
    if (args[i].tag == AJ_TENSORS) return false;
    if (args[i].tag != AJ_TENSOR) continue;
    const Payload* p = at_level(args[i].v.tensor, l);
    if (!p || !p->batched) return false;
    if (like && (like->dl.ndim != p->value->dl.ndim || !(like->dl.dtype == p->value->dl.dtype)))
      return false;
    like = p->value;
    held[i] = Tensor::borrow(p->value);
    args[i].v.tensor = p->value;
  }
  if (!like) return false;
  aj_value ret{};
  {
    Below below(l);
    check(dispatch().call(call->op, args, call->nargs, &ret, 1));
  }
  Tensor made = take<Tensor>(ret);
  Tensor wrapped = make_wrapper(l, made, {}, true);
  call->rets[0] = value(wrapped);
  wrapped.take();
  return true;
}

// A tensor of every level that is open: who writes to it may be of any.
Tensor lift_through(const Tensor& t, Level& l) {
  return lift(l.outer ? lift_through(t, *l.outer) : t, l);
}

}  // namespace

void call_batch(Level& l, aj_call* call) {
  const OpFacts& f = facts_of(call->op);
  if (call_alike(l, call, f)) return;
  if (f.refused) {
    looked_at_values = true;
    raise(AJ_UNIMPLEMENTED, "vmap: ", f.refused);
  }
  if (!f.rule && !f.loops.load(std::memory_order_relaxed)) {
    looked_at_values = false;
    aj_value given[8];
    std::copy_n(call->rets, call->nrets, given);
    aj_status* failed = call_body(call);
    const bool fresh =
        std::all_of(given, given + call->nrets, [](const aj_value& v) { return v.tag == AJ_NONE; });
    if (!failed || !looked_at_values || f.writes_first || !fresh) return check(failed);
    core().status_free(failed);  // the body looks at values: sample by sample it may
    std::copy_n(given, call->nrets, call->rets);
    f.loops = true;
  }
  Batch b(l, call, f);
  const bool in_place = b.in_place();
  const bool view = f.kind == "view";
  if (in_place) promote_target(b);
  {
    Below below(l);
    f.rule ? f.rule(b) : rule_loop(b);
  }
  if (!in_place) return hand_out(b, view);
  // The payload was written; the core has lent the wrapper, or takes argument 0.
  aj_tensor* target = call->args[0].v.tensor;
  const Payload* p = at_level(target, l);
  if (p && b.rets[0].tag == AJ_TENSOR && b.rets[0].v.tensor != p->value)
    raise(AJ_INTERNAL, "vmap: the rule made a new tensor where the old one is to be written");
  if (call->rets[0].tag != AJ_TENSOR && f.nresults) {
    call->rets[0] = value(Tensor::view(target));
    core().retain(target);
  }
}

void call_plain(Level& l, aj_call* call) {
  const OpFacts& f = facts_of(call->op);
  if (f.random) return check(call_body(call));  // what it draws into is the level's
  if (f.draws && l.kind == AJ_LEVEL_BATCH && l.randomness != AJ_RANDOM_SAME)
    raise_as("RuntimeError", AJ_PRECONDITION,
             l.randomness == AJ_RANDOM_ERROR
                 ? "vmap: the function draws random numbers: say randomness='same' or 'different'"
                 : "vmap: random numbers that differ between the samples are drawn into a tensor "
                   "that all share; make it inside the function");
  check(dispatch().redispatch(call->op, call->keys, call->args, call->nargs, call->rets,
                              call->nrets));
  if (!f.makes || call->rets[0].tag != AJ_TENSOR || is_wrapped(call->rets[0].v.tensor)) return;
  const Tensor& t = Tensor::view(call->rets[0].v.tensor);
  if (l.kind == AJ_LEVEL_DUAL && !t.is_floating_point() && !t.is_complex()) return;
  Tensor made = Tensor::steal(call->rets[0].v.tensor);
  call->rets[0].tag = AJ_NONE;
  Tensor lifted = lift_through(made, l);
  call->rets[0] = value(lifted);
  lifted.take();
}

}  // namespace adjoin::transform

// extensions/graph/lazy.cpp: a call in a lazy scope: is it the one that stood here before? Then its
// results are shown as they were then, and nothing is looked at.
#include "lazy.hpp"

#include <algorithm>

#include "value.hpp"

namespace adjoin::graph::lazily {

constexpr size_t kForks = 16;  // calls that are known after one

Known::Known() = default;
Known::~Known() = default;

Scope::Scope(std::shared_ptr<Memory> memory, uint32_t with, uint32_t most_calls,
             uint64_t most_bytes)
    : flags(with),
      memory_(std::move(memory)),
      most_calls_(most_calls),
      most_bytes_(most_bytes),
      at_(&memory_->root) {}

Deferred* Scope::mine(const aj_tensor* t) const {
  Deferred* d = deferred_of(t);
  return d && d->scope.get() == this && d->region == region_ ? d : nullptr;
}

void Scope::serve(aj_call* c) {
  std::lock_guard held(memory_->lock);
  memory_->stats.calls++;
  // What it takes is ours then, or strided.
  if (!at_->after.empty() && matches(*at_->after[0], c)) {
    memory_->stats.matched++, matched_++;
    return write_down(c, *at_->after[0]);
  }
  // What was carried out before is there, and what another scope holds is asked for.
  auto settle = [&](aj_tensor* t) {
    if (!has_strides(t) && t->keys & lazy_key && !mine(t)) make_strided(t);
  };
  each_tensor(c->args, c->nargs, settle);
  each_tensor(c->rets, c->nrets, settle);
  for (size_t i = 0; i < at_->after.size();
       i++) {  // the first again: who was settled may be an input
    if (!matches(*at_->after[i], c)) continue;
    if (i) std::swap(at_->after[i], at_->after[0]);
    memory_->stats.matched++, matched_++;
    return write_down(c, *at_->after[0]);
  }
  fresh_.clear(), numbers_now_.clear();
  Why why = Why::other;
  bool body = false;
  std::unique_ptr<Known> s = look(c, &why, &body);
  if (body) return by_body(c);
  if (!s) return now(c, why);
  if (at_->after.size() == kForks) at_->after.pop_back();
  at_->after.insert(at_->after.begin(), std::move(s));
  memory_->stats.kept++;
  write_down(c, *at_->after[0]);
}

// Carried out by eager's kernels, when those before it are.
void Scope::now(aj_call* c, Why why) {
  fresh_.clear(), numbers_now_.clear();
  const OpFacts& f = facts_of(c->op);
  const bool alias = f.kind == "view" || why == Why::alias;  // who reads no values
  bool pending = f.writes || (wrote_ && !alias);
  if (flags & AJ_LAZY_WRITES && !alias) memory_->apart = true;
  auto look = [&](aj_tensor* t) { pending |= !has_strides(t) && t->keys & lazy_key; };
  each_tensor(c->args, c->nargs, look);
  for (uint32_t i = 0; i < c->nrets; i++) pending |= c->rets[i].tag != AJ_NONE;
  if (pending) flush(why, c->op);
  each_tensor(c->args, c->nargs, settle_deferred);
  each_tensor(c->rets, c->nrets, settle_deferred);
  check(dispatch().redispatch(c->op, c->keys, c->args, c->nargs, c->rets, c->nrets));
}

// Is it memory that no argument has?
static bool is_new(const aj_call* c, const aj_tensor* t) {
  if (!has_strides(t)) return false;
  const uint64_t id = memory_of(t);
  bool found = false;
  each_tensor(c->args, c->nargs,
              [&](aj_tensor* arg) { found |= has_strides(arg) && memory_of(arg) == id; });
  return !found;
}

// What draws random numbers is made of calls that say which: they are drawn now, in order.
void Scope::by_body(aj_call* c) {
  struct Open {
    uint64_t include, exclude;
    Open() {
      dispatch().thread_keys(&include, &exclude);
      dispatch().set_thread_keys(include, exclude & ~lazy_key);
    }
    ~Open() { dispatch().set_thread_keys(include, exclude); }
  } open;
  fresh_.clear(), numbers_now_.clear();
  for (uint32_t i = 0; flags & AJ_LAZY_WRITES && i < c->nargs; i++)
    memory_->apart |= c->args[i].tag == AJ_GENERATOR;  // whose numbers nobody finds again
  check(lower_table->call_body(c->op, c->args, c->nargs, c->rets, c->nrets));
  for (uint32_t i = 0; flags & AJ_LAZY_WRITES && i < c->nrets; i++)
    if (c->rets[i].tag == AJ_TENSOR && is_new(c, c->rets[i].v.tensor))
      born_.push_back(Tensor::borrow(c->rets[i].v.tensor));
}

bool Scope::matches(Known& s, const aj_call* c) {
  if (s.node.op != c->op) return false;
  fresh_.clear(), numbers_now_.clear();
  if (s.default_dtype.bits && !(s.default_dtype == core().default_dtype())) return false;
  for (uint32_t i = 0; i < c->nargs; i++)
    if (!same_argument(s, i, c->args[i])) return false;
  for (uint32_t i = 0; i < c->nrets; i++) {
    const bool given = c->rets[i].tag == AJ_TENSOR;
    if (given != (s.rets[i].gives == Known::Gives::given)) return false;
    if (given && !same_tensor(s, c->rets[i].v.tensor, s.node.into[i])) return false;
  }
  return true;
}

bool Scope::may_take(const aj_tensor* t) const {
  constexpr uint64_t tape = 1ull << 33;
  return has_strides(t) && !(t->keys >> 24 & ~(tape >> 24)) &&
         t->dl.device.device_type == device_.device_type &&
         t->dl.device.device_id == device_.device_id;
}

bool Scope::same_tensor(const Known& s, aj_tensor* t, uint32_t ref) {
  if (!has_strides(t)) {
    const Deferred* d = mine(t);
    return d && d->value == ref;
  }
  if (ref < s.first) return slots_[ref].input.get() == t;
  const size_t k = ref - s.first;
  if (k > fresh_.size() || k >= s.values.size() || !s.values[k].input) return false;
  const Shown& v = s.values[k];
  if (k < fresh_.size()) return fresh_[k].get() == t;
  if (!calls_) device_ = t->dl.device;
  if (!may_take(t) || !(t->dl.dtype == v.type.dtype) ||
      !std::equal(t->dl.shape, t->dl.shape + t->dl.ndim, v.type.shape.begin(), v.type.shape.end()))
    return false;
  const bool free = t->obj.flags & AJ_TENSOR_FREE_ORDER;
  const bool ordered = free || t->obj.flags & AJ_TENSOR_DENSE;
  if (ordered != v.in_order || free != v.free ||
      (!ordered && !std::equal(v.strides.begin(), v.strides.end(), t->dl.strides)))
    return false;
  fresh_.push_back(Tensor::borrow(t));
  return true;
}

namespace {

bool same_constant(const Arg& a, const aj_value& v) {
  switch (v.tag) {
    case AJ_COMPLEX:
      return a.tag == AJ_COMPLEX && a.re == v.v.c128[0] && a.im == v.v.c128[1];
    case AJ_DTYPE:
      return a.tag == AJ_DTYPE && a.dtype == v.v.dtype;
    case AJ_DEVICE:
      return a.tag == AJ_DEVICE && a.i == (int64_t(v.v.device.device_type) << 32 |
                                           int64_t(uint32_t(v.v.device.device_id)));
    case AJ_STRING:
      return a.tag == AJ_STRING && a.text == std::string_view(v.v.str, v.aux);
    case AJ_INTS:
      return a.tag == AJ_INTS &&
             std::equal(a.ints.begin(), a.ints.end(), v.v.ints, v.v.ints + v.aux);
    case AJ_FLOATS:
      return a.tag == AJ_FLOATS && a.reals.size() == v.aux &&
             !std::memcmp(a.reals.data(), v.v.floats, v.aux * sizeof(double));
    case AJ_BOOLS:
      return a.tag == AJ_BOOLS &&
             std::equal(a.bools.begin(), a.bools.end(), v.v.bools, v.v.bools + v.aux);
    case AJ_STRING_OBJ:
    case AJ_COMPLEX_OBJ:
    case AJ_GENERATOR:
      return false;
    default:
      return a.tag == v.tag && a.i == v.v.i;  // None, and what lies in eight bytes
  }
}

}  // namespace

bool Scope::same_argument(Known& s, uint32_t i, const aj_value& v) {
  const Arg& a = s.node.args[i];
  if (v.tag == AJ_TENSOR) return a.kind == Arg::Kind::value && same_tensor(s, v.v.tensor, a.ref);
  if (v.tag == AJ_TENSORS) {
    if (a.kind != Arg::Kind::values || a.refs.size() != v.aux) return false;
    for (uint32_t j = 0; j < v.aux; j++) {
      aj_tensor* t = v.v.tensors[j];
      if (t ? !same_tensor(s, t, a.refs[j]) : a.refs[j] != kNone) return false;
    }
    return true;
  }
  if (a.kind != Arg::Kind::constant) return false;
  if (v.tag == AJ_FLOAT || v.tag == AJ_INT) {
    if (v.tag != a.tag) return false;
    const bool same =
        std::memcmp(&v.v, a.tag == AJ_INT ? static_cast<const void*>(&a.i) : &a.re, 8) == 0;
    const uint64_t bit = i < 64 && s.numbers_vary ? 1ull << i : 0;
    if (!same) {
      if (!bit) return false;
      s.varying |= bit;
    }
    if (s.varying & bit) numbers_now_.push_back({&s, i, v});
    return true;
  }
  return same_constant(a, v);
}

void Scope::write_down(aj_call* c, Known& s) {
  if (!calls_) device_ = c->device, default_dtype_ = core().default_dtype();
  slots_.resize(s.first + s.values.size());
  for (size_t k = 0; k < s.values.size(); k++) {
    Slot& slot = slots_[s.first + k];
    slot.shown = &s.values[k];
    if (k >= fresh_.size()) continue;
    bytes_ += uint64_t(fresh_[k].numel()) * (fresh_[k].dtype().bits / 8);
    slot.input = std::move(fresh_[k]);
  }
  fresh_.clear();
  numbers_.insert(numbers_.end(), numbers_now_.begin(), numbers_now_.end());
  numbers_now_.clear();
  at_ = &s;
  calls_++;
  // Who saved one for backward is told now.
  for (uint32_t v : s.outside) core().tensor_bump_version(slots_[v].input.get()), wrote_ = true;
  bytes_ += s.bytes;
  for (uint32_t i = 0; i < c->nrets; i++) {
    const Known::Ret& r = s.rets[i];
    const std::vector<uint32_t>& values = s.node.results[i].values;
    if (r.gives == Known::Gives::argument) {
      c->rets[i] = c->args[r.argument];
      c->rets[i].aux = 0;
      core().retain(c->rets[i].v.tensor);
    } else if (r.gives == Known::Gives::fresh) {
      Tensor made = show(c, shown(s, values[0]), values[0]);
      c->rets[i] = value(made);
      made.take();
    } else if (r.gives == Known::Gives::list) {
      std::vector<Tensor> made;
      for (uint32_t v : values) made.push_back(show(c, shown(s, v), v));
      Body(c).ret(i, made);
    }
  }
  if (calls_ >= most_calls_ || bytes_ >= most_bytes_) flush(Why::limit, c->op);
}

Tensor Scope::show(const aj_call* c, const Shown& v, uint32_t id) {
  aj_wrap w{};
  w.struct_size = sizeof w;
  w.key = lazy_key;
  w.like.device = device_;
  w.like.dtype = v.type.dtype;
  w.like.ndim = int32_t(v.type.shape.size());
  w.like.shape = const_cast<int64_t*>(v.type.shape.data());
  int64_t none = 0;  // of a tensor without dimensions: known, and none
  w.like.strides = !v.strides.empty()     ? const_cast<int64_t*>(v.strides.data())
                   : v.type.shape.empty() ? &none
                                          : nullptr;
  w.like.byte_offset = v.offset;
  if (v.base_arg != kNone) w.view_of = c->args[v.base_arg].v.tensor;
  w.payload = new_deferred({shared_from_this(), region_, id, nullptr});
  slots_[id].deferred = static_cast<Deferred*>(core().object_payload(w.payload));
  aj_tensor* made = nullptr;
  aj_status* s = wrap_table->tensor_wrap(&w, &made);
  core().release(w.payload);
  check(s);
  return Tensor::steal(made);
}

}  // namespace adjoin::graph::lazily

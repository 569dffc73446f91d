// core/op/autocast.cpp: the kernel at the autocast key: casts arguments, then lets the op
// run.
//
// Micikevicius et al., Mixed Precision Training, 2018: products in half precision, sums and
// exponentials in float32.
#include "core/op/autocast.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <shared_mutex>
#include <utility>

#include "core/op/call.hpp"
#include "core/op/registry_state.hpp"

namespace adjoin {

// A leaf's cast, good for as long as the leaf's memory and version are the same.
struct KeptCast {
  Ref leaf, cast;
  const void* data;
  uint64_t version;
  int dtype;
};

struct AutocastState {
  bool on[kMetaType + 1] = {};
  int8_t dtype[kMetaType + 1] = {};  // 0: the device's own choice
  bool keep = true;
  int32_t depth = 0;
  std::unordered_map<const aj_tensor*, KeptCast> kept;
};

namespace {

constexpr uint64_t kKey = 1ull << kAutocastBit;

std::map<std::string, AutocastRules, std::less<>>& all_rules() {
  static auto* rules = new std::map<std::string, AutocastRules, std::less<>>;
  return *rules;
}

// "name@plugin" follows the rules of "name".
const AutocastRules* rules_of(int32_t type) {
  std::string_view name = device_kind_name(type);
  auto found = all_rules().find(name.substr(0, name.find('@')));
  return found == all_rules().end() ? nullptr : &found->second;
}

Cast cast_named(std::string_view word) {
  return word == "low"       ? Cast::low
         : word == "float32" ? Cast::float32
         : word == "widest"  ? Cast::widest
         : word == "refused" ? Cast::refused
                             : Cast::none;
}

std::string_view next_word(std::string_view* text, std::string_view end = " ") {
  size_t from = std::min(text->find_first_not_of(end), text->size());
  text->remove_prefix(from);
  std::string_view word = text->substr(0, text->find_first_of(end));
  text->remove_prefix(word.size());
  return word;
}

Cast tagged(const aj_op* op) {
  constexpr std::string_view kTag = "autocast:";
  size_t at = op->tags.find(kTag);
  if (at == op->tags.npos) return Cast::none;
  std::string_view rest = std::string_view(op->tags).substr(at + kTag.size());
  return cast_named(next_word(&rest));
}

bool is_eligible(const aj_tensor* t, int32_t type) {
  if (!t || t->dl.device.device_type != type) return false;
  int d = priv(t).dtype;
  return d == AJ_DT_FLOAT16 || d == AJ_DT_BFLOAT16 || d == AJ_DT_FLOAT32;
}

aj_status* recorded_cast(aj_tensor* t, int dtype, Ref* out) {
  static const aj_op* op = find_op("to");
  aj_value args[] = {value(t), value(dt(dtype))}, ret = none();
  AJ_TRY(call(op, args, 2, &ret, 1));
  *out = Ref(ret.v.tensor);
  return nullptr;
}

// The arguments of one call, as they become.
class Casting {
 public:
  Casting(const aj_call* call, AutocastState* state, int low)
      : state_(state), type_(call->device.device_type), low_(low), nargs_(call->nargs) {
    std::copy_n(call->args, nargs_, args_);
  }
  const aj_value* args() const { return args_; }

  // f(tensor) for each that may be cast.
  template <class F>
  void each_eligible(F f) const {
    for (uint32_t i = 0; i < nargs_; i++) {
      const aj_value& v = args_[i];
      if (v.tag == AJ_TENSOR && is_eligible(v.v.tensor, type_)) f(v.v.tensor);
      for (uint32_t j = 0; v.tag == AJ_TENSORS && j < v.aux; j++)
        if (is_eligible(v.v.tensors[j], type_)) f(v.v.tensors[j]);
    }
  }

  int widest() const {
    int all = low_;
    each_eligible([&](const aj_tensor* t) {
      if (priv(t).dtype != low_) all = AJ_DT_FLOAT32;
    });
    return all;
  }

  aj_status* cast(int dtype) {
    for (uint32_t i = 0; i < nargs_; i++) {
      aj_value& v = args_[i];
      if (v.tag == AJ_TENSOR) AJ_TRY(one(&v.v.tensor, dtype));
      if (v.tag != AJ_TENSORS) continue;
      auto& list = lists_.emplace_back(v.v.tensors, v.v.tensors + v.aux);
      for (aj_tensor*& t : list) AJ_TRY(one(&t, dtype));
      v.v.tensors = list.data();
    }
    return nullptr;
  }

  // An op that can be told what to compute in needs no copy of its argument.
  void tell_dtype(int place) {
    if (args_[0].tag == AJ_TENSOR && is_eligible(args_[0].v.tensor, type_) &&
        args_[place].tag == AJ_NONE)
      args_[place] = value(dt(AJ_DT_FLOAT32));
  }

 private:
  aj_status* one(aj_tensor** t, int dtype) {
    if (!is_eligible(*t, type_) || priv(*t).dtype == dtype) return nullptr;
    constexpr uint32_t kLeaf = AJ_TENSOR_REQUIRES_GRAD | AJ_TENSOR_LEAF;
    bool keep = state_->keep && state_->depth > 0 && dtype == low_ &&
                priv(*t).dtype == AJ_DT_FLOAT32 &&
                ((*t)->obj.flags & (kLeaf | AJ_TENSOR_VIEW)) == kLeaf && (*t)->dl.data;
    if (keep) return kept(t, dtype);
    Ref made;
    AJ_TRY(recorded_cast(*t, dtype, &made));
    *t = made.get();
    held_.push_back(std::move(made));
    return nullptr;
  }

  aj_status* kept(aj_tensor** t, int dtype) {
    KeptCast& k = state_->kept[*t];
    bool same =
        k.cast && k.data == place(*t) && k.version == storage(*t).version && k.dtype == dtype;
    if (!same || (!tls.grad_off && !requires_grad(k.cast.get()))) {
      Ref made;
      AJ_TRY(recorded_cast(*t, dtype, &made));
      k = {Ref::borrow(*t), std::move(made), place(*t), storage(*t).version, dtype};
    }
    held_.push_back(Ref::borrow(k.cast.get()));
    *t = k.cast.get();
    return nullptr;
  }

  AutocastState* state_;
  int32_t type_;
  int low_;
  uint32_t nargs_;
  aj_value args_[32];
  std::vector<Ref> held_;
  std::list<std::vector<aj_tensor*>> lists_;
};

int low_dtype(const AutocastState* state, int32_t type) {
  if (state && state->dtype[type]) return state->dtype[type];
  std::shared_lock guard(registry().lock);
  const AutocastRules* rules = rules_of(type);
  return rules ? rules->dtype : AJ_DT_FLOAT16;
}

aj_status* run_cast(const aj_op* op, Cast cast, aj_call* call) {
  AutocastState* state = tls.autocast;
  int low = low_dtype(state, call->device.device_type);
  Casting c(call, state, low);
  if (cast == Cast::float32 && op->p_dtype >= 0) {
    c.tell_dtype(op->p_dtype);
  } else {
    AJ_TRY(c.cast(cast == Cast::low ? low : cast == Cast::widest ? c.widest() : AJ_DT_FLOAT32));
  }
  return redispatch(op, call->keys, c.args(), call->nargs, call->rets, call->nrets);
}

aj_status* autocast_call(void*, aj_call* call) {
  const aj_op* op = call->op;
  int32_t type = call->device.device_type;
  const AutocastState* state = tls.autocast;
  auto cast = Cast(op->autocast[type - 1]);
  bool writes = op->writes;
  for (uint32_t i = 0; i < call->nrets; i++) writes |= call->rets[i].tag != AJ_NONE;
  if (writes)  // memory of the caller's choice has the dtype of his choice
    return redispatch(op, call->keys, call->args, call->nargs, call->rets, call->nrets);
  if (!state || !state->on[type] || cast == Cast::none) {
    tls.exclude &= ~kKey;  // what the op is made of may be cast; the caller puts it back
    return redispatch(op, call->keys, call->args, call->nargs, call->rets, call->nrets);
  }
  if (cast == Cast::refused)
    return fail(AJ_PRECONDITION, op->schema.ident, ": its values do not fit ",
                dt(low_dtype(state, type)).name,
                ", and autocast is on; use the form that takes logits, or autocast(enabled=False) "
                "around it");
  return run_cast(op, cast, call);
}

// The thread's calls pass the key while it is on for some device.
void include_key(const AutocastState* s) {
  bool any = s && std::any_of(std::begin(s->on), std::end(s->on), [](bool on) { return on; });
  tls.include = any ? tls.include | kKey : tls.include & ~kKey;
}

AutocastState* state_now() {
  if (!tls.autocast) {
    register_thread();
    tls.autocast = new AutocastState;
  }
  return tls.autocast;
}

aj_status* set_state(AutocastState* s, int32_t type, const aj_autocast& next) {
  if (next.dtype.bits) {
    const DType* d = find_dtype(next.dtype);
    if (!d ||
        (d->index != AJ_DT_FLOAT16 && d->index != AJ_DT_BFLOAT16 && d->index != AJ_DT_FLOAT32))
      return fail(AJ_WRONG_TYPE, "autocast: ", next.dtype,
                  " is no dtype to compute in; float16, bfloat16 and float32 are");
    s->dtype[type] = int8_t(d->index);
  }
  s->on[type] = next.enabled != 0;
  s->keep = next.keep != 0;
  s->depth = std::max(next.depth, 0);
  include_key(s);
  if (s->depth == 0 && !s->kept.empty()) {
    auto gone = std::move(s->kept);  // whoever is told of a tensor's end may come back here
    s->kept.clear();
  }
  return nullptr;
}

}  // namespace

const Kernel autocast_kernel{autocast_call, nullptr, kKernelFallback, 0, 0, nullptr,
                             nullptr,       "",      "autocast",      0};

aj_status* read_autocast(std::string_view device, std::string_view text, AutocastRules* out) {
  while (!text.empty()) {
    std::string_view words = next_word(&text, ";");
    std::string_view what = next_word(&words);
    if (what == "dtype") {
      const DType* d = find_dtype(next_word(&words));
      if (!d)
        return fail(AJ_INVALID_ARGUMENT, "def_device: '", device,
                    "': autocast names an unknown dtype");
      out->dtype = d->index;
      continue;
    }
    Cast cast = cast_named(what);
    if (what.empty()) continue;
    if (cast == Cast::none)
      return fail(AJ_INVALID_ARGUMENT, "def_device: '", device, "': autocast has a list '", what,
                  "'; there are dtype, low, float32, widest and refused");
    out->own = true;
    for (std::string_view name = next_word(&words); !name.empty(); name = next_word(&words))
      out->casts[std::string(name)] = cast;
  }
  return nullptr;
}

void set_autocast_rules(std::string_view device, AutocastRules rules) {
  all_rules().insert_or_assign(std::string(device), std::move(rules));
}

void mark_autocast(std::span<aj_op* const> ops) {
  const AutocastRules* own[kMetaType];  // by device type; NULL: the tags count
  for (int32_t type = 1; type <= kMetaType; type++) {
    const AutocastRules* rules = rules_of(type);
    own[type - 1] = rules && rules->own ? rules : nullptr;
  }
  for (aj_op* op : ops) {
    std::string name =
        op->schema.space.empty() ? op->schema.ident : op->schema.space + "::" + op->schema.ident;
    Cast tag = tagged(op);
    bool any = false;
    for (size_t i = 0; i < kMetaType; i++) {
      Cast cast = tag;
      if (own[i]) {
        auto found = own[i]->casts.find(name);
        if (found != own[i]->casts.end())
          cast = found->second;
        else if (op->ours)  // a list knows our ops, not those of others
          cast = Cast::none;
      }
      op->autocast[i] = uint8_t(cast);
      any |= cast != Cast::none;
    }
    if (any) op->mask.fetch_or(kKey);
  }
}

aj_status* autocast(int32_t type, aj_autocast* before, const aj_autocast* next) {
  if (type < 1 || type > kMetaType)
    return fail(AJ_INVALID_ARGUMENT, "autocast: ", type, " is no device type");
  if (before) {
    const AutocastState* s = tls.autocast;
    aj_autocast now{before->struct_size, s && s->on[type], !s || s->keep, s ? s->depth : 0,
                    dt(low_dtype(s, type)).dl};
    std::memcpy(before, &now, std::min<size_t>(before->struct_size, sizeof now));
  }
  if (!next) return nullptr;
  if (next->struct_size < AJ_END_OF(aj_autocast, dtype))
    return fail(AJ_INVALID_ARGUMENT, "autocast: aj_autocast: struct_size is ", next->struct_size,
                ", at least ", uint64_t(AJ_END_OF(aj_autocast, dtype)), " is needed");
  AJ_TRY(check_words("autocast", "", 0, 0,
                     uint64_t(next->reserved.code | next->reserved.bits | next->reserved.lanes)));
  return set_state(state_now(), type, *next);
}

void autocast_thread_end() { delete std::exchange(tls.autocast, nullptr); }

void AutocastPause::pause() {
  tls.autocast = nullptr;
  tls.include &= ~kKey;
}

void AutocastPause::resume() {
  if (tls.autocast != state_)
    delete std::exchange(tls.autocast, state_);  // what a node's hook made
  include_key(state_);
}

}  // namespace adjoin

// core/call/slow.cpp: the rare branches of a call: settling arguments, odd devices, boxed kernels,
// writing forms.
#include "core/call/slow.hpp"

#include <algorithm>
#include <cstring>
#include <list>

#include "core/call/copy.hpp"
#include "core/call/output.hpp"
#include "core/guest/object.hpp"
#include "core/op/call.hpp"
#include "core/op/fallback_rules.hpp"
#include "core/op/kinds.hpp"
#include "core/op/registry.hpp"
#include "core/op/settings.hpp"
#include "core/op/waiting.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/record.hpp"
#include "core/tape/wrap.hpp"

namespace adjoin {

std::string tag_name(int32_t tag) {
  switch (tag) {
    case AJ_NONE:
      return "None";
    case AJ_BOOL:
      return "bool";
    case AJ_INT:
      return "int";
    case AJ_FLOAT:
      return "float";
    case AJ_COMPLEX:
      return "complex";
    case AJ_DTYPE:
      return "dtype";
    case AJ_DEVICE:
      return "device";
    case AJ_STRING:
      return "str";
    case AJ_INTS:
      return "list of int";
    case AJ_FLOATS:
      return "list of float";
    case AJ_BOOLS:
      return "list of bool";
    case AJ_TENSORS:
      return "list of Tensor";
    case AJ_TENSOR:
      return "Tensor";
    case AJ_STREAM:
      return "stream";
    case AJ_FUNCTION:
      return "function";
    case AJ_OBJECT:
      return "object";
    case AJ_STRING_OBJ:
      return "str";
    case AJ_LIST_OBJ:
      return "list";
    default:
      return text("value of tag ", tag);
  }
}

namespace {

struct Settling {
  const aj_op* op;
  Settled* s;
  int64_t* next;
  int64_t* room(size_t n) {
    if (next + n > s->ints + 64) return nullptr;
    int64_t* p = next;
    next += n;
    return p;
  }
};

aj_status* check_object(const aj_op* op, const Param& p, const aj_object* o) {
  if (o && o->type >= AJ_DYNAMIC_BEGIN && (p.type.empty() || view(type_name(o->type)) == p.type))
    return nullptr;
  return fail(AJ_WRONG_TYPE, op->schema.ident, ": argument '", p.name, "' is ",
              o ? text("an object of type '", type_name(o->type), "'") : "no object",
              "; an object of type '", p.type.empty() ? "any registered" : p.type, "' is wanted");
}

constexpr std::string_view kMayBeComplex[] = {"alpha", "beta", "value", "fill_value",
                                              "start", "end",  "step"};

// A complex number beside real tensors would lose its imaginary part, one for an order or a bound
// always does.
aj_status* check_complex(const aj_op* op, const Param& p, const aj_value& v, const aj_value* args,
                         uint32_t nargs) {
  if (v.v.c128[1] == 0) return nullptr;
  const aj_tensor* real = nullptr;
  bool fits = !op->ours || std::ranges::count(kMayBeComplex, p.name), complex = false;
  auto look = [&](const aj_tensor* t) {
    if (t) (dt(priv(t).dtype).cls == AJ_CLASS_COMPLEX ? complex = true : (real = t) != nullptr);
  };
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR) look(args[i].v.tensor);
    if (args[i].tag == AJ_TENSORS) std::for_each_n(args[i].v.tensors, args[i].aux, look);
    complex |= args[i].tag == AJ_DTYPE && args[i].v.dtype.code == kDLComplex;
    complex |= args[i].tag == AJ_COMPLEX && op->schema.params[i].base == AJ_PARAM_OPERAND;
  }
  if (fits && (complex || !real)) return nullptr;
  return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": argument '", p.name,
              "' is a complex number, which does not fit into ",
              fits ? real->dl.dtype : dt(default_dtype()).dl, "; give a real one",
              fits ? ", or complex tensors" : "");
}

// A value in another form that means the same: a whole number as a float, one number as a list.
aj_status* convert(Settling* st, const Param& p, aj_value* v) {
  if (p.base == AJ_PARAM_OBJECT && v->tag == AJ_OBJECT) return check_object(st->op, p, v->v.object);
  if (v->tag == AJ_COMPLEX_OBJ && !p.list &&
      (p.base == AJ_PARAM_SCALAR || p.base == AJ_PARAM_OPERAND)) {
    v->tag = AJ_COMPLEX;
    v->v.c128 = static_cast<const double*>(object_payload(v->v.object));
    return nullptr;
  }
  if (v->tag == AJ_COMPLEX && !p.list && p.base == AJ_PARAM_SCALAR)
    return nullptr;  // looked at when all are there
  bool number = v->tag == AJ_INT || v->tag == AJ_BOOL;
  if (p.base == AJ_PARAM_FLOAT && !p.list && number) {
    *v = value(double(v->v.i));
    return nullptr;
  }
  if (!p.list && v->tag == AJ_BOOL && (p.base == AJ_PARAM_INT || p.base == AJ_PARAM_SIZE)) {
    *v = value(int64_t(v->v.i));
    return nullptr;
  }
  if (!p.list && v->tag == AJ_INT && p.base == AJ_PARAM_BOOL) {
    *v = value(v->v.i != 0);
    return nullptr;
  }
  bool ints =
      p.list && (p.base == AJ_PARAM_INT || p.base == AJ_PARAM_DIM || p.base == AJ_PARAM_SIZE);
  if (ints && (v->tag == AJ_INT || v->tag == AJ_INTS)) {
    int64_t one = v->tag == AJ_INT ? v->v.i : v->aux == 1 ? v->v.ints[0] : 0;
    if (v->tag == AJ_INTS && (v->aux != 1 || p.list <= 1)) {
      if (p.list > 1 && !v->aux && (p.flags & AJ_PARAM_OPTIONAL)) {
        *v = aj_value{};  // an empty list of sizes is one that is not given
        return nullptr;
      }
      if (p.list > 1 && v->aux != uint32_t(p.list))
        return fail(AJ_INVALID_ARGUMENT, st->op->schema.ident, ": argument '", p.name, "' has ",
                    v->aux, " values; 1 or ", p.list, " are wanted");
      return nullptr;
    }
    size_t n = p.list > 0 ? size_t(p.list) : 1;
    int64_t* to = st->room(n);
    if (!to)
      return fail(AJ_INVALID_ARGUMENT, st->op->schema.ident, ": argument '", p.name,
                  "' is too long");
    for (size_t i = 0; i < n; i++) to[i] = one;
    *v = value(std::span<const int64_t>(to, n));
    return nullptr;
  }
  if (p.list && p.base == AJ_PARAM_FLOAT && v->tag == AJ_INTS) return nullptr;
  return fail(AJ_WRONG_TYPE, st->op->schema.ident, ": argument '", p.name, "' does not take ",
              tag_name(v->tag), "; its signature: ", st->op->schema.text);
}

aj_status* wrap_one(const aj_op* op, const Param& p, int64_t ndim, int64_t* d) {
  int64_t n = ndim + op->dim_extra;
  int64_t range = n ? n : 1;  // a 0-dim tensor takes 0 and -1
  if (*d < -range || *d >= range)
    return fail(AJ_OUT_OF_RANGE, op->schema.ident,
                ": Dimension out of range (expected to be in range of [", -range, ", ", range - 1,
                "], but got ", *d, "): argument '", p.name, "' of a tensor with ", ndim,
                " dimensions");
  if (*d < 0) *d += range;
  return nullptr;
}

}  // namespace

int64_t dims_of(const aj_value* args, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (args[i].tag == AJ_TENSOR) return args[i].v.tensor->dl.ndim;
    int64_t most = -1;
    if (args[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (const aj_tensor* t = args[i].v.tensors[j]) most = std::max(most, int64_t(t->dl.ndim));
    if (most >= 0) return most;
  }
  return 0;
}

namespace {

aj_status* wrap_dims(Settling* st, aj_value* args, uint32_t nargs) {
  const aj_op* op = st->op;
  for (uint32_t i = 0; i < nargs; i++)
    if (args[i].tag == AJ_TENSORS && !args[i].aux)
      return nullptr;  // the op says that none is given
  int64_t ndim = dims_of(args, nargs);
  for (uint32_t i = 0; i < nargs; i++) {
    const Param& p = op->schema.params[i];
    if (p.base != AJ_PARAM_DIM) continue;
    if (args[i].tag == AJ_INT) AJ_TRY(wrap_one(op, p, ndim, &args[i].v.i));
    if (args[i].tag != AJ_INTS) continue;
    uint32_t n = args[i].aux;
    if (n > uint32_t(kMaxDims))
      return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": ", n, " dimensions in ", p.name);
    int64_t* to = st->room(n);
    if (!to)
      return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": too many dimensions in ", p.name);
    for (uint32_t j = 0; j < n; j++) {
      to[j] = args[i].v.ints[j];
      AJ_TRY(wrap_one(op, p, ndim, &to[j]));
    }
    args[i].v.ints = to;
  }
  return nullptr;
}

aj_status* check_dtype(const aj_op* op, const Param& p, const aj_tensor* t) {
  if (!p.dtypes || !t || p.dtypes >> priv(t).dtype & 1) return nullptr;
  std::string wanted;
  for (int i = 0; i < AJ_DT_REGISTERED; i++)
    if (p.dtypes >> i & 1) wanted += (wanted.empty() ? "" : ", ") + std::string(dt(i).name);
  const bool one = !(p.dtypes & (p.dtypes - 1));  // an index, a condition: no other would serve
  return fail(one ? AJ_INVALID_ARGUMENT : AJ_UNIMPLEMENTED, op->schema.ident, ": argument '",
              p.name, "' is ", t->dl.dtype, "; it must be ", wanted, ": cast it with .to()");
}

// A place in a tensor may be given as int32, the same number as int64 serves; a condition as a byte
// that is 0 or not, but no mask. No place at all may be of any integers.
aj_status* widen(const aj_op* op, const Param& p, aj_value* v, Settled* s) {
  aj_tensor* t = v->v.tensor;
  if ((p.flags & AJ_PARAM_WRITTEN) || !t) return nullptr;
  int32_t to = AJ_DT_INT64;
  const int own = priv(t).dtype;
  const bool none = !priv(t).numel && p.dtypes == 1ull << to;
  if (own == AJ_DT_UINT8 && !none && op->kind == Kind::pointwise)
    to = AJ_DT_BOOL;
  else if (own != AJ_DT_INT32 && !(none && own == AJ_DT_UINT8))
    return nullptr;
  if (p.dtypes != 1ull << to) return nullptr;
  Ref wide;
  AJ_TRY(tape::cast(t, to, wide.out()));
  *v = value(wide.get());
  s->widened.push_back(std::move(wide));
  return nullptr;
}

}  // namespace

// A tensor, an object or a list that is promised and not there.
static bool lacks_pointer(const Param& p, const aj_value& v) {
  if (v.tag >= AJ_TENSOR) return !v.v.object;
  if (v.tag != AJ_TENSORS) return v.tag >= AJ_STRING && v.tag < AJ_TENSORS && v.aux && !v.v.ints;
  bool lacks = v.aux && !v.v.tensors;
  for (uint32_t j = 0; !lacks && j < v.aux; j++)
    lacks = !v.v.tensors[j] && !(p.flags & AJ_PARAM_OPTIONAL_ITEMS);
  return lacks;
}

aj_status* settle_arguments(const aj_op* op, const aj_value** args, uint32_t* nargs, uint32_t nrets,
                            Settled* s) {
  if (waits(op)) AJ_TRY(end_wait(op));
  const auto& params = op->schema.params;
  if (*nargs > params.size())
    return fail(AJ_WRONG_TYPE, op->schema.ident, ": ", *nargs, " arguments given, at most ",
                uint64_t(params.size()), " are possible: ", op->schema.text);
  if (nrets != op->nresults)
    return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": ", nrets,
                " results asked for, there are ", uint32_t(op->nresults));
  aj_value* to = s->few;
  if (params.size() > 24) {
    s->many.resize(params.size());
    to = s->many.data();
  }
  std::copy_n(*args, *nargs, to);
  Settling st{op, s, s->ints};
  for (size_t i = 0; i < params.size(); i++) {
    const Param& p = params[i];
    if (i >= *nargs || (to[i].tag == AJ_NONE && !(p.flags & AJ_PARAM_OPTIONAL))) {
      if (!(p.flags & AJ_PARAM_HAS_DEFAULT) && !(p.flags & AJ_PARAM_OPTIONAL))
        return fail(AJ_WRONG_TYPE, op->schema.ident, ": argument '", p.name,
                    "' is missing: ", op->schema.text);
      to[i] = p.value;
    }
    if (lacks_pointer(p, to[i]))
      return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": argument '", p.name, "' is ",
                  tag_name(to[i].tag), " with a NULL inside; what is absent is AJ_NONE");
    if (!(op->tags_ok[i] & tag_bit(to[i].tag))) AJ_TRY(convert(&st, p, &to[i]));
    if (p.base == AJ_PARAM_SIZE && to[i].tag == AJ_INT && to[i].v.i < 0)
      return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": the size ", p.name, " is ", to[i].v.i,
                  " but must be >= 0: it must be greater or equal to zero");
    if (op->checks_dtypes && to[i].tag == AJ_TENSOR) {
      AJ_TRY(widen(op, p, &to[i], s));
      AJ_TRY(check_dtype(op, p, to[i].v.tensor));
    }
    if (op->checks_dtypes && to[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < to[i].aux; j++) AJ_TRY(check_dtype(op, p, to[i].v.tensors[j]));
  }
  *args = to;
  *nargs = uint32_t(params.size());
  for (size_t i = 0; i < params.size(); i++)
    if (to[i].tag == AJ_COMPLEX && params[i].base == AJ_PARAM_SCALAR)
      AJ_TRY(check_complex(op, params[i], to[i], to, *nargs));
  return op->has_dims ? wrap_dims(&st, to, *nargs) : nullptr;
}

aj_status* one_backend(const aj_op* op, const aj_value* args, uint32_t nargs, uint64_t* keys) {
  Device* d;
  AJ_TRY(device_of(op, *keys, args, nargs, &d));
  if (!op->crosses_devices) AJ_TRY(check_devices(op, d, args, nargs));
  *keys = d->key();
  return nullptr;
}

aj_status* backend_without_tensors(const aj_op* op, const aj_value* args, uint32_t nargs,
                                   uint64_t* keys) {
  Device* d;
  AJ_TRY(device_of(op, 0, args, nargs, &d));
  *keys = d->key();
  return nullptr;
}

bool may_copy(const aj_op* op, const aj_value* args, uint32_t nargs) {
  Device* d;
  if (aj_status* bad = device_of(op, 0, args, nargs, &d)) return free_status(bad), false;
  FallbackPolicy policy =
      fallback_rule(op->schema.name, std::string(device_kind_name(d->id.device_type))).policy;
  return policy == FallbackPolicy::host || policy == FallbackPolicy::warn;
}

aj_status* missing_kernel(aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                          uint32_t nrets) {
  Device* d;
  AJ_TRY(device_of(op, 0, args, nargs, &d));
  return serve_missing(op, d, args, nargs, rets, nrets);
}

namespace {

// The arguments of a call with strided tensors in place of those without strides. Who is written is
// settled itself.
class Strided {
 public:
  aj_status* take(const aj_op* op, const aj_value* args, uint32_t nargs, const aj_value* rets,
                  uint32_t nrets) {
    std::copy_n(args, nargs, args_);
    for (uint32_t i = 0; i < nrets; i++)
      if (rets[i].tag == AJ_TENSOR) AJ_TRY(settle_memory(rets[i].v.tensor, op->schema.ident));
    for (uint32_t i = 0; i < nargs; i++) {
      bool written = op->schema.params[i].flags & AJ_PARAM_WRITTEN;
      if (args[i].tag == AJ_TENSOR) AJ_TRY(one(op, &args_[i].v.tensor, written));
      if (args[i].tag != AJ_TENSORS) continue;
      auto& list = lists_.emplace_back(args[i].v.tensors, args[i].v.tensors + args[i].aux);
      for (aj_tensor*& t : list)
        if (t) AJ_TRY(one(op, &t, written));
      args_[i].v.tensors = list.data();
    }
    return nullptr;
  }
  const aj_value* args() const { return args_; }

 private:
  aj_status* one(const aj_op* op, aj_tensor** t, bool written) {
    if (written) return settle_memory(*t, op->schema.ident);
    Ref values;
    AJ_TRY(strided_of(*t, op->schema.ident, values.out()));
    *t = values.get();
    held_.push_back(std::move(values));
    return nullptr;
  }
  aj_value args_[32];
  std::list<std::vector<aj_tensor*>> lists_;
  std::vector<Ref> held_;
};

// Tensors without strides whose keys have nothing for the op: its body, else the values.
aj_status* without_key(aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets,
                       uint32_t nrets) {
  if (op->has_body) return run_generic(op, &op->body_kernel, 0, args, nargs, rets, nrets);
  Strided strided;
  AJ_TRY(strided.take(op, args, nargs, rets, nrets));
  return redispatch(op, 0, strided.args(), nargs, rets, nrets);
}

// A tensor before it is written. A kernel at a key that passed it on has counted the write already.
struct Written {
  uint32_t version = 0, line = 0;
  Written() = default;
  explicit Written(aj_tensor* t) : version(storage(t).version), line(storage(t).writer_line) {}
  void count(uint64_t keys, aj_tensor* t) const {
    if (keys >> 24 && storage(t).version != version)
      storage(t).writer_line = line;
    else
      bump_version(t);
  }
};

// Who fails may have written before. A wrapper keeps no forms of its values, and its version stays.
void changed_in_vain(aj_tensor* t) {
  if (!(storage(t).flags & kStorageWrap)) contents_changed(storage(t));
}

// A kernel at a key made a new tensor where `target` was to be written. Above the tape the copy is
// a call, and recorded.
aj_status* move_into(const aj_call* call, aj_tensor* target, aj_value* ret, bool above) {
  static const aj_op* copy = find_op("copy_");
  const aj_op* op = call->op;
  aj_tensor* made = ret->v.tensor;
  Ref held(made);
  ret->v.tensor = target;
  retain(target);
  uint64_t key = target->keys & made->keys & kFunctionalKeys & ~(kAutogradKey | kWrapKey);
  aj_object* payload = key && !(key & (key - 1)) ? tensor_payload(made, key) : nullptr;
  if (payload && std::ranges::equal(shape(made), shape(target)) &&
      priv(made).dtype == priv(target).dtype)
    return tensor_set_payload(target, payload);
  if (is_strided(target)) AJ_TRY(fit_given(op, target, shape(made), call));
  if (!above) return copy_into(target, made);
  aj_value both[2] = {value(target), value(made)}, same = none();
  AJ_TRY(adjoin::call(copy, both, 2, &same, 1));
  return release_value(same), nullptr;
}

// A wrapper that shows another tensor's values must be known as its view: writes to it would be
// lost.
aj_status* check_view(const Kernel* k, const aj_call* call, const aj_value& made) {
  uint32_t n = 1;
  const aj_value* items = made.tag == AJ_LIST_OBJ ? list_get(made.v.object, &n) : &made;
  for (uint32_t i = 0; i < n; i++) {
    if (items[i].tag != AJ_TENSOR || is_strided(items[i].v.tensor) ||
        items[i].v.tensor->obj.flags & AJ_TENSOR_VIEW)
      continue;
    if (call->nargs && call->args[0].tag == AJ_TENSOR &&
        call->args[0].v.tensor == items[i].v.tensor)
      continue;
    return fail(
        AJ_INTERNAL, call->op->schema.ident, ": the kernel of plugin '", k->provider, "' at key '",
        k->key,
        "' gave a tensor that is no view of its argument; tensor_wrap makes one with view_of");
  }
  return nullptr;
}

bool takes(const Kernel* k, int compute, const aj_call* call) {
  if (k->dtypes && compute >= 0 && !(k->dtypes >> compute & 1)) return false;
  if (settings.deterministic && (k->flags & AJ_KERNEL_NONDETERMINISTIC)) return false;
  return !k->can_run || agrees(k, call);
}

// What result i is written into: what the caller gave, or the argument that it is.
aj_tensor* target_of(const aj_call* call, const aj_value* given, uint32_t i) {
  if (given[i].tag == AJ_TENSOR) return given[i].v.tensor;
  return i == 0 && call->op->schema.result_is_first && call->args[0].tag == AJ_TENSOR
             ? call->args[0].v.tensor
             : nullptr;
}

// A kernel above the tape left `target` in its slot. If no op has counted the write it was done by
// hand, which nobody recorded.
aj_status* left_above(const Kernel* k, const aj_call* call, aj_tensor* target,
                      const Written& before) {
  if (storage(target).version != before.version) return nullptr;
  bool rec = requires_grad(target);
  for (uint32_t i = 0; i < call->nargs; i++)
    rec |= call->args[i].tag == AJ_TENSOR && requires_grad(call->args[i].v.tensor);
  if (rec && !tls.grad_off && !(k->flags & kKernelFallback))
    return fail(AJ_UNIMPLEMENTED, call->op->schema.ident, ": the kernel of plugin '", k->provider,
                "' at key '", k->key,
                "' wrote past the tape, and a tensor requires grad; above the tape write by ops, "
                "or call it inside no_grad");
  bump_version(target);
  return nullptr;
}

// By field, as it was written a moment ago: one load across several stores waits until they, and
// all stores before them, are in the cache.
inline void put(aj_value* to, const aj_value& from) {
  to->tag = from.tag, to->aux = from.aux, to->v.u = from.v.u;
}

// Kernels at the key `top`. A tensor to be written is lent to the kernel's slot; what comes back in
// any slot is owned.
aj_status* run_once(const Kernel* k, int top, aj_call* call, const aj_value* given) {
  const aj_op* op = call->op;
  if (stack_is_short()) return leads_back(op, k);
  aj_value* rets = call->rets;
  const bool above = top > kAutogradBit;
  Written written[kMaxResults];
  for (uint32_t i = 0; i < call->nrets; i++) {
    put(&rets[i], given[i]);
    if (given[i].tag == AJ_TENSOR) rets[i].aux = AJ_VALUE_LENT;
    if (aj_tensor* t = target_of(call, given, i)) written[i] = Written(t);
  }
  const aj_op* outer = tls.running_op;
  __atomic_store_n(&tls.running_op, op, __ATOMIC_RELAXED);
  uint64_t before = tls.exclude;
  tls.exclude |= 1ull << top;  // a fallback that calls ops does not meet itself
  aj_status* s = run_kernel(op, k, call, 0);
  for (uint32_t i = 0; i < call->nrets; i++) {
    if (rets[i].tag != AJ_TENSOR) continue;
    // A kernel that fails owns nothing of it, whatever it has done with the mark.
    bool left = (s || rets[i].aux == AJ_VALUE_LENT) && given[i].tag == AJ_TENSOR &&
                rets[i].v.tensor == given[i].v.tensor;
    if (left) retain(rets[i].v.tensor);
    rets[i].aux = 0;
  }
  if (!s) s = check_results(op, k, call, rets, call->nrets);
  if (!s && op->kind == Kind::view && !op->has_body) s = check_view(k, call, rets[0]);
  for (uint32_t i = 0; !s && i < call->nrets; i++) {
    aj_tensor* target = target_of(call, given, i);
    if (!target || rets[i].tag != AJ_TENSOR) continue;
    if (rets[i].v.tensor != target)
      s = move_into(call, target, &rets[i], above);
    else if (above)
      s = left_above(k, call, target, written[i]);
  }
  tls.exclude = before;
  __atomic_store_n(&tls.running_op, outer, __ATOMIC_RELEASE);
  if (!s) return nullptr;
  for (uint32_t i = 0; i < call->nrets; i++) {
    release_value(rets[i]);
    rets[i] = none();
  }
  return s;
}

// Nobody takes the call: what the first who declined has said stands.
aj_status* first_word(aj_status* declined, aj_status* s) {
  if (declined && s && s->code == AJ_UNIMPLEMENTED) std::swap(declined, s);
  free_status(declined);
  return s;
}

aj_status* run_at_key(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                      aj_value* rets, uint32_t nrets) {
  uint64_t functional = keys & kFunctionalKeys & ~(kAutogradKey | kWrapKey);
  if (!functional) return without_key(op, args, nargs, rets, nrets);
  int top = 63 - __builtin_clzll(functional);
  const Kernel* k = op->table[top].load(std::memory_order_acquire);
  if (!k) k = resolve(op, top);
  uint64_t below = keys & ((1ull << top) - 1);
  if (top < kAutogradBit) below &= ~kAutogradKey;  // recorded by who called
  aj_status* declined = nullptr;
  aj_value given[kMaxResults];
  for (uint32_t i = 0; i < nrets; i++) put(&given[i], rets[i]);
  if (k) {
    Frame f(op, below, args, nargs, nrets);
    f.call.rets = rets;
    AJ_TRY(device_of(op, keys, args, nargs, &f.device));
    f.call.device = f.device->id;
    const int compute = compute_dtype(args, nargs);
    for (const Kernel* by; k; k = k->next) {
      if (!takes(k, compute, &f.call)) continue;
      aj_status* s = run_once(k, top, &f.call, given);
      if (!s || k->flags & kKernelFallback || !is_declined(s, &by)) return first_word(declined, s);
      declined ? free_status(s) : void(declined = s);
    }
    std::copy_n(given, nrets, rets);
  }
  aj_status* s = redispatch(op, below | (top < kAutogradBit ? 0 : keys & kAutogradKey), args, nargs,
                            rets, nrets);
  return first_word(declined, s);
}

// A key below the tape: recorded as run() does it.
aj_status* run_below(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets,
                     uint32_t nrets, bool rec) {
  if (!rec) return run_at_key(op, keys, args, nargs, rets, nrets);
  const Vjp* vjp = vjp_for(op, args, nargs);
  bool views = op->kind == Kind::view && op->infer;
  if (op->has_body && !vjp && !views)
    return run_generic(op, &op->body_kernel, 0, args, nargs, rets, nrets);  // it records by itself
  {
    NoGrad off;
    if (keys & kTransformKey) tls.grad_off = kOffByTape;
    AJ_TRY(run_at_key(op, keys, args, nargs, rets, nrets));
  }
  for (uint32_t i = 0; i < nrets; i++) {  // a view is recorded, though its kernel saw recording off
    if (rets[i].tag != AJ_TENSOR || args[0].tag != AJ_TENSOR) continue;
    uint8_t& made = priv(rets[i].v.tensor).view_kind;
    if (made == kViewNoGrad && priv(args[0].v.tensor).view_kind != kViewNoGrad) made = kView;
  }
  return views && !vjp ? record_view(op, args, nargs, rets, nrets)
                       : record(op, vjp, args, nargs, rets, nrets);
}

// Does an argument of the innermost level among them require grad? Those of levels around meet
// their tape when the call is made there.
bool innermost_requires(const aj_value* args, uint32_t nargs) {
  int32_t most = 0;
  bool requires_it = false;
  auto look = [&](const aj_tensor* t) {
    const int32_t level = t ? level_of(t) : -1;
    if (level > most) most = level, requires_it = false;
    if (level == most) requires_it |= requires_grad(t);
  };
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR) look(args[i].v.tensor);
    if (args[i].tag == AJ_TENSORS) std::for_each_n(args[i].v.tensors, args[i].aux, look);
  }
  return requires_it;
}

}  // namespace

aj_status* boxed(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs, aj_value* rets,
                 uint32_t nrets, bool writes) {
  uint64_t above = keys & kFunctionalKeys & ~kWrapKey;
  bool rec = keys & kAutogradKey;
  if (above >> (kAutogradBit + 1)) return run_at_key(op, keys, args, nargs, rets, nrets);
  if (keys & kTransformKey) rec = rec && innermost_requires(args, nargs);
  keys &= ~kAutogradKey;
  return writes ? call_writing(op, keys, args, nargs, rets, nrets, rec, run_below)
                : run_below(op, keys, args, nargs, rets, nrets, rec);
}

namespace {

// f(tensor) for every element of the lists that are written: fused steps over many parameters.
template <class F>
aj_status* for_written_lists(const aj_op* op, const aj_value* args, F f) {
  for (size_t i = 0; i < op->schema.params.size(); i++) {
    if (!(op->schema.params[i].flags & AJ_PARAM_WRITTEN) || args[i].tag != AJ_TENSORS) continue;
    for (uint32_t j = 0; j < args[i].aux; j++)
      if (aj_tensor* t = args[i].v.tensors[j]) AJ_TRY(f(t));
  }
  return nullptr;
}

template <class F>
void each_written(const aj_op* op, const aj_value* args, F f) {
  for (size_t i = 0; i < op->schema.params.size(); i++)
    if ((op->schema.params[i].flags & AJ_PARAM_WRITTEN) && args[i].tag == AJ_TENSOR)
      f(args[i].v.tensor);
  for_written_lists(op, args, [&](aj_tensor* t) -> aj_status* { return f(t), nullptr; });
}

// Such a step is no part of any history: where one is being recorded it is refused.
aj_status* check_written_lists(const aj_op* op, const aj_value* args) {
  return for_written_lists(op, args, [&](aj_tensor* t) -> aj_status* {
    if (!tls.grad_off && requires_grad(t))
      return fail(AJ_PRECONDITION, op->schema.ident,
                  ": a tensor that requires grad is being written in place; do it inside no_grad");
    return check_write(op, t);
  });
}

// The in-place form of a composite: the body records by itself on a copy, since it may save what is
// about to be overwritten; then its result is copied back, recorded too.
aj_status* body_in_place(aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets) {
  static const aj_op *copy = find_op("copy_"), *clone = find_op("clone");
  std::vector<aj_value> own(args, args + nargs);
  aj_value before = none(), made = none();
  AJ_TRY(call(clone, args, 1, &before, 1));
  own[0] = before;
  aj_status* s = call(op, own.data(), nargs, &made, 1);
  release_value(before);
  if (s) return s;
  aj_value both[2] = {args[0], made};
  s = check_cast(op, priv(made.v.tensor).dtype, args[0].v.tensor);
  if (!s) s = call(copy, both, 2, rets, 1);
  release_value(made);
  return s;
}

// Which element wins where several lie in one place would be a matter of the kernel.
aj_status* refuse_shared(const aj_op* op, const char* which) {
  return fail(AJ_INVALID_ARGUMENT, op->schema.ident,
              ": unsupported operation: more than one element of the written-to tensor refers to a "
              "single memory location: ",
              which, " has elements that share memory (an expanded tensor?); clone it first");
}

[[gnu::noinline]] aj_status* out_form(aj_op* op, uint64_t keys, const aj_value* args,
                                      uint32_t nargs, aj_value* rets, uint32_t nrets, bool rec,
                                      RunStep run) {
  bool any = rec;
  for (uint32_t i = 0; i < nrets; i++)
    if (rets[i].tag == AJ_TENSOR) {
      AJ_TRY(settle_memory(rets[i].v.tensor, op->schema.ident));
      any |= !tls.grad_off && requires_grad(rets[i].v.tensor);
      AJ_TRY(check_write(op, rets[i].v.tensor));
      if (overlaps_itself(rets[i].v.tensor)) return refuse_shared(op, "out");
    } else if (rets[i].tag != AJ_NONE) {
      return fail(AJ_WRONG_TYPE, op->schema.ident, ": out must be a tensor");
    }
  if (any)
    return fail(AJ_INVALID_ARGUMENT, op->schema.ident,
                ": out= cannot be differentiated, and an argument requires grad; use no_grad() or "
                "drop out=");
  aj_value given[kMaxResults];
  Written before[kMaxResults];
  std::copy_n(rets, nrets, given);
  for (uint32_t i = 0; i < nrets; i++)
    if (given[i].tag == AJ_TENSOR) before[i] = Written(given[i].v.tensor);
  aj_status* s = run(op, keys, args, nargs, rets, nrets, false);
  for (uint32_t i = 0; i < nrets; i++)
    if (given[i].tag == AJ_TENSOR)
      s ? changed_in_vain(given[i].v.tensor) : before[i].count(keys, given[i].v.tensor);
  return s;
}

// out= is the first argument of an op without an in-place form: the result is made apart and then
// written, when all has been read.
[[gnu::noinline]] aj_status* over_argument(aj_op* op, const aj_value* args, uint32_t nargs,
                                           aj_value* rets, uint32_t nrets, bool rec) {
  static const aj_op* copy = find_op("copy_");
  aj_tensor* target = args[0].v.tensor;
  if (rec)
    return fail(AJ_INVALID_ARGUMENT, op->schema.ident,
                ": out= cannot be differentiated, and an argument requires grad; use no_grad() or "
                "drop out=");
  AJ_TRY(check_write(op, target));
  if (overlaps_itself(target)) return refuse_shared(op, "out");
  aj_value made = none();
  if (nrets == 1) AJ_TRY(call(op, args, nargs, &made, 1));
  aj_status* s = nullptr;
  if (made.tag != AJ_TENSOR || !std::ranges::equal(shape(made.v.tensor), shape(target)))
    s = fail(AJ_INVALID_ARGUMENT, op->schema.ident,
             ": has no in-place form whose result has another shape; assign the result instead");
  if (!s) s = check_cast(op, priv(made.v.tensor).dtype, target);
  const aj_value both[2] = {args[0], made};
  if (!s) s = call(copy, both, 2, rets, 1);
  release_value(made);
  return s;
}

}  // namespace

aj_status* call_writing(aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                        aj_value* rets, uint32_t nrets, bool rec, RunStep run) {
  aj_tensor* target = op->schema.result_is_first ? args[0].v.tensor : nullptr;
  bool in_place = !target && nrets && rets[0].tag == AJ_TENSOR && args[0].tag == AJ_TENSOR &&
                  rets[0].v.tensor == args[0].v.tensor;
  if (in_place) {
    target = args[0].v.tensor;
    if (!op->in_place_ok) return over_argument(op, args, nargs, rets, nrets, rec);
  }
  bool out = false;
  for (uint32_t i = 0; i < nrets; i++) out |= rets[i].tag != AJ_NONE;
  if (!target && out) return out_form(op, keys, args, nargs, rets, nrets, rec, run);
  if (!target) {
    AJ_TRY(check_written_lists(op, args));
    if (aj_status* s = run(op, keys, args, nargs, rets, nrets, rec)) {
      each_written(op, args, changed_in_vain);
      return s;
    }
    // A recorded body has saved what its own ops wrote and read: their versions are the right ones
    // already.
    if (!rec || !op->has_body || vjp_for(op, args, nargs)) each_written(op, args, bump_version);
    return nullptr;
  }
  AJ_TRY(check_write(op, target));
  bool composite = op->has_body && !vjp_for(op, args, nargs);
  if ((in_place || !composite) && overlaps_itself(target) && !writes_one_number(op, args, nargs))
    return refuse_shared(op, "the tensor to write");
  if (composite && in_place && rec) return body_in_place(op, args, nargs, rets);
  if (composite && !in_place) return run(op, keys, args, nargs, rets, nrets, rec);
  PendingWrite pending;
  rec |= !tls.grad_off && write_concerns_base(target);
  if (rec) AJ_TRY(record_write_begin(op, args, nargs, target, &pending));
  uint8_t grad_off = tls.grad_off;
  if (rec)
    tls.grad_off |=
        keys & kTransformKey ? kOffByTape : uint8_t(1);  // a body serves here as a kernel
  const Written before(target);
  aj_status* s = run(op, keys, args, nargs, rets, nrets, false);
  tls.grad_off = grad_off;
  if (s) {
    if (rec) record_write_cancel(&pending);
    changed_in_vain(target);
    return s;
  }
  before.count(keys, target);
  return rec ? record_write_end(op, args, nargs, rets, nrets, &pending) : nullptr;
}

}  // namespace adjoin

// extensions/graph/lazy_look.cpp: a call that a lazy scope has not met: its dtypes and shapes are
// found by making it of tensors of the device "meta", which have no memory.
#include <algorithm>
#include <deque>

#include "lazy.hpp"
#include "value.hpp"

namespace adjoin::graph::lazily {
namespace {

DLDevice meta() {
  static const int32_t type = [] {
    int32_t found = 0;
    check(core().device_find(AJ_STR_LIT("meta"), &found));
    return found;
  }();
  return {DLDeviceType(type), 0};
}

struct Stand {  // of a device's own generator
  aj_object* generator = nullptr;
  uint64_t seed = 0, offset = 0;
  explicit Stand(DLDevice d) {
    if (aj_status* none = core().generator_default(d, &generator))
      core().status_free(none);
    else
      check(core().generator_get(generator, &seed, &offset));
  }
  ~Stand() { core().release(generator); }
  Stand(const Stand&) = delete;
  // Has it moved since? It stands where it stood again.
  bool moved() const {
    uint64_t s = seed, o = offset;
    if (generator) check(core().generator_get(generator, &s, &o));
    if (s == seed && o == offset) return false;
    check(core().generator_set(generator, seed, offset));
    return true;
  }
};

bool same_dims(const aj_tensor* t, const Type& type) {
  return t->dl.dtype == type.dtype &&
         std::equal(t->dl.shape, t->dl.shape + t->dl.ndim, type.shape.begin(), type.shape.end());
}

// May a number be another one without another shape, dtype or layout?
bool numbers_may_vary(const OpFacts& f) {
  static const std::string_view kinds[] = {"unary",        "unary_float", "unary_bool", "binary",
                                           "binary_float", "compare",     "pointwise"};
  return f.results.empty() ||
         std::find(std::begin(kinds), std::end(kinds), f.kind) != std::end(kinds);
}

// From outside, in C order?
bool is_dense(const aj_value& v) {
  return v.tag == AJ_TENSOR && has_strides(v.v.tensor) &&
         (v.v.tensor->obj.flags & (AJ_TENSOR_DENSE | AJ_TENSOR_FREE_ORDER)) == AJ_TENSOR_DENSE;
}

uint32_t flags_of(const aj_op* op) {
  aj_op_info info{};
  info.struct_size = sizeof info;
  check(dispatch().op_info(op, &info));
  return info.flags;
}

// One call under the looking glass.
class Looking {
 public:
  Looking(Known& s, const OpFacts& f, aj_call* c) : s_(s), f_(f), c_(c) {}

  std::vector<aj_value> args;
  std::deque<std::vector<aj_tensor*>> lists;
  std::vector<std::pair<const aj_tensor*, uint32_t>> twins;  // (twin, argument; kNone: of a list)

  // What result i is; false: it cannot be shown before it is there.
  bool result(uint32_t i, const aj_value& ret) {
    Known::Ret& r = s_.rets[i];
    Result& names = s_.node.results[i];
    if (r.gives == Known::Gives::given) return true;
    if (ret.tag == AJ_NONE) return true;
    if (ret.tag == AJ_LIST_OBJ) {
      uint32_t n = 0;
      const aj_value* items = core().list_get(ret.v.object, &n);
      r.gives = Known::Gives::list;
      names.list = true;
      for (uint32_t j = 0; j < n; j++)
        if (items[j].tag != AJ_TENSOR || !value(items[j].v.tensor, &names)) return false;
      return true;
    }
    if (ret.tag != AJ_TENSOR) return false;
    for (auto [twin, arg] : twins)
      if (twin == ret.v.tensor) {
        if (arg == kNone) return false;
        if (f_.writes_first && i == 0 && arg == 0) s_.node.into[0] = s_.node.args[0].ref;
        r.gives = Known::Gives::argument, r.argument = arg;
        return true;
      }
    r.gives = Known::Gives::fresh;
    return value(ret.v.tensor, &names);
  }

 private:
  bool value(aj_tensor* t, Result* names) {
    if (!has_strides(t) || t->dl.device.device_type != meta().device_type) return false;
    Shown v;
    v.type = {false, t->dl.dtype, {t->dl.shape, t->dl.shape + t->dl.ndim}};
    const uint64_t id = memory_of(t, &v.offset);
    if (!(t->obj.flags & AJ_TENSOR_FREE_ORDER))
      v.strides.assign(t->dl.strides, t->dl.strides + t->dl.ndim);
    v.in_order = t->obj.flags & AJ_TENSOR_DENSE;
    v.free = t->obj.flags & AJ_TENSOR_FREE_ORDER;
    v.twin = Tensor::borrow(t);
    uint64_t offset;
    for (auto [twin, arg] : twins) {
      if (memory_of(twin, &offset) != id) continue;
      if (arg == kNone) return false;
      v.base_arg = arg;
      break;
    }
    // A reshape that copies gives memory of its own; of no elements nobody can tell.
    if (v.base_arg == kNone && f_.kind == "view" && !core().tensor_numel(t)) return false;
    if (v.base_arg == kNone) {
      v.offset = 0;
      s_.bytes += uint64_t(core().tensor_numel(t)) * (t->dl.dtype.bits / 8);
    } else {
      v.base = s_.node.args[v.base_arg].ref;
    }
    names->values.push_back(s_.first + uint32_t(s_.values.size()));
    s_.values.push_back(std::move(v));
    return true;
  }

  Known& s_;
  const OpFacts& f_;
  aj_call* c_;
};

}  // namespace

// The value that an argument is; a strided tensor that was not met becomes an input.
uint32_t Scope::ref_of(Known& s, aj_tensor* t) {
  if (!has_strides(t)) {
    const Deferred* d = mine(t);
    return d ? d->value : kNone;
  }
  for (uint32_t v = 0; v < slots_.size(); v++)
    if (slots_[v].input.get() == t) return v;
  for (uint32_t k = 0; k < fresh_.size(); k++)
    if (fresh_[k].get() == t) return s.first + k;
  if (!may_take(t)) return kNone;
  Shown v;
  v.input = true;
  v.type = {false, t->dl.dtype, {t->dl.shape, t->dl.shape + t->dl.ndim}};
  const bool free = t->obj.flags & AJ_TENSOR_FREE_ORDER;
  v.in_order = free || t->obj.flags & AJ_TENSOR_DENSE;
  v.free = free;
  if (!v.in_order) v.strides.assign(t->dl.strides, t->dl.strides + t->dl.ndim);
  DLTensor like = t->dl;
  like.data = nullptr;
  like.byte_offset = 0;
  like.device = meta();
  if (v.in_order) like.strides = nullptr;
  aj_tensor* twin = nullptr;
  check(core().tensor_empty(&like, 0, &twin));
  v.twin = Tensor::steal(twin);
  fresh_.push_back(Tensor::borrow(t));
  s.values.push_back(std::move(v));
  return s.first + uint32_t(fresh_.size() - 1);
}

void Scope::find_outside(Known& s, const OpFacts& f) const {
  auto add = [&](uint32_t v) {
    if (v != kNone && shown(s, v).input) s.outside.push_back(v);
  };
  for (uint32_t v : s.node.into) add(v);
  for (size_t i = 0; f.writes && i < s.node.args.size(); i++) {
    if (!(f.params[i].flags & AJ_PARAM_WRITTEN) || (f.writes_first && i == 0)) continue;
    if (s.node.args[i].kind == Arg::Kind::value) add(s.node.args[i].ref);
    for (uint32_t v : s.node.args[i].refs) add(v);
  }
}

std::unique_ptr<Known> Scope::look(aj_call* c, Why* why, bool* by_body) {
  const OpFacts& f = facts_of(c->op);
  const uint32_t op_flags = flags_of(c->op);
  const bool composite = op_flags & AJ_INFO_COMPOSITE;
  *why = Why::other;
  if (f.kind == "view" && is_dense(c->args[0])) return nullptr;  // made at once, and never a copy
  if (op_flags & AJ_OP_ALLOCATES) return *why = Why::sizes, nullptr;
  if (c->nrets > 8 || c->device.device_type == meta().device_type) return nullptr;
  if (!calls_) device_ = c->device;
  if (c->device.device_type != device_.device_type || c->device.device_id != device_.device_id)
    return *why = Why::device, nullptr;
  for (const aj_param& p : f.params)
    if (p.base == AJ_PARAM_GENERATOR && composite) return *by_body = true, nullptr;

  auto s = std::make_unique<Known>();
  s->node.op = c->op;
  s->first = uint32_t(slots_.size());
  s->before = at_;
  s->numbers_vary = numbers_may_vary(f);
  core().get_line(&s->line, &s->site);
  Looking l(*s, f, c);
  auto twin_of = [&](aj_tensor* t, uint32_t arg, uint32_t* ref) -> aj_tensor* {
    *ref = ref_of(*s, t);
    if (*ref == kNone) return nullptr;
    aj_tensor* twin = shown(*s, *ref).twin.get();
    l.twins.emplace_back(twin, arg);
    return twin;
  };
  bool any = false;
  for (uint32_t i = 0; i < c->nargs; i++) {
    aj_value v = c->args[i];
    Arg a;
    const bool written = f.params[i].flags & AJ_PARAM_WRITTEN;
    bool outside = false;
    each_tensor(&v, 1, [&](aj_tensor* t) { outside |= has_strides(t), any = true; });
    if (written && outside && !(flags & AJ_LAZY_WRITES)) return *why = Why::write, nullptr;
    if (v.tag == AJ_TENSOR) {
      a.kind = Arg::Kind::value;
      v.v.tensor = twin_of(v.v.tensor, i, &a.ref);
      if (!v.v.tensor) return *why = Why::device, nullptr;
    } else if (v.tag == AJ_TENSORS) {
      a.kind = Arg::Kind::values;
      a.tag = AJ_TENSORS;
      auto& list = l.lists.emplace_back(v.v.tensors, v.v.tensors + v.aux);
      for (aj_tensor*& t : list) {
        a.refs.push_back(kNone);
        if (t && !(t = twin_of(t, kNone, &a.refs.back()))) return *why = Why::device, nullptr;
      }
      v.v.tensors = list.data();
    } else {
      if (v.tag == AJ_GENERATOR || (v.tag >= AJ_STREAM && v.tag != AJ_COMPLEX_OBJ)) return nullptr;
      a = constant_of(v, "lazy");
      if (v.tag == AJ_DEVICE) {
        a.i = int64_t(v.v.device.device_type) << 32 | int64_t(uint32_t(v.v.device.device_id));
        if (v.v.device.device_type != device_.device_type) return *why = Why::device, nullptr;
        v.v.device = meta();
      }
    }
    s->node.args.push_back(std::move(a));
    l.args.push_back(v);
  }
  if (!any) s->default_dtype = core().default_dtype();
  for (uint32_t i = 0; i < c->nargs && !any; i++)
    if (f.params[i].base == AJ_PARAM_DEVICE && l.args[i].tag == AJ_NONE) {
      l.args[i].tag = AJ_DEVICE;
      l.args[i].v.device = meta();
    }
  aj_value rets[8] = {};
  s->rets.resize(c->nrets);
  s->node.results.resize(c->nrets);
  s->node.into.assign(c->nrets, kNone);
  for (uint32_t i = 0; i < c->nrets; i++) {
    if (c->rets[i].tag == AJ_NONE) continue;
    if (c->rets[i].tag != AJ_TENSOR ||
        (has_strides(c->rets[i].v.tensor) && !(flags & AJ_LAZY_WRITES)))
      return *why = Why::write, nullptr;
    s->rets[i].gives = Known::Gives::given;
    rets[i] = value(Tensor::view(c->rets[i].v.tensor));
    rets[i].v.tensor = twin_of(c->rets[i].v.tensor, kNone, &s->node.into[i]);
    if (!rets[i].v.tensor) return *why = Why::write, nullptr;
  }
  struct Drop {
    aj_value* rets;
    uint32_t n;
    ~Drop() {
      for (uint32_t i = 0; i < n; i++) drop(rets[i]);
    }
  };
  {
    Below below;
    Stand own(c->device), theirs(meta());
    aj_status* failed = dispatch().redispatch(c->op, 0, l.args.data(), c->nargs, rets, c->nrets);
    const bool drew = own.moved() | theirs.moved();
    if (failed) return core().status_free(failed), nullptr;
    Drop drop_rets{rets, c->nrets};
    if (drew) {
      *by_body = composite;
      return nullptr;
    }
    for (auto [twin, arg] : l.twins) {
      bool found = false;
      for (uint32_t v = 0; v < s->first + s->values.size() && !found; v++) {
        const Shown* known = v < s->first ? slots_[v].shown : &s->values[v - s->first];
        found = known->twin.get() == twin && same_dims(twin, known->type);
      }
      if (!found) return nullptr;  // it was given another shape in place
    }
    for (uint32_t i = 0; i < c->nrets; i++)
      if (!l.result(i, rets[i])) return nullptr;
  }
  // A view of a tensor from outside is made at once, and so is the tensor itself.
  for (const Shown& v : s->values)
    if (v.base != kNone && shown(*s, v.base).input) return *why = Why::alias, nullptr;
  for (size_t i = 0; i < s->rets.size(); i++)
    if (s->rets[i].gives == Known::Gives::argument && s->node.into[i] == kNone &&
        shown(*s, s->node.args[s->rets[i].argument].ref).input)
      return *why = Why::alias, nullptr;
  if (flags & AJ_LAZY_WRITES) find_outside(*s, f);
  return s;
}

}  // namespace adjoin::graph::lazily

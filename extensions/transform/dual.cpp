// extensions/transform/dual.cpp: calls of tensors with a tangent.
//
// A tangent is never written while somebody else may hold it: the first write, and the first view
// that needs the order of memory of the value, give the dual one of its own. Views remember the
// call that made them, and make their tangent again from that of their base when it was replaced.
#include "dual.hpp"

#include <adjoin/kit/ops.hpp>
#include <map>

#include "origin.hpp"

namespace adjoin::transform {
namespace {

using namespace jvp;

aj_op_info info_of(const aj_op* op) {
  aj_op_info info{};
  info.struct_size = sizeof info;
  check(env.op->op_info(op, &info));
  return info;
}
std::string name_of(const aj_op* op) { return std::string(view_of(info_of(op).name)); }
std::string_view kind_of(const aj_op* op) { return view_of(info_of(op).kind); }

bool same_order(const Tensor& a, const Tensor& b) {
  if (!a.has_memory() || !b.has_memory()) return true;
  return std::ranges::equal(a.strides(), b.strides());
}

// Its own copy, in the order of memory of `like`.
Tensor copied(const Tensor& t, const Tensor& like) {
  if (!like.has_memory()) return clone(t);
  Tensor own = empty_strided(like.shape(), like.strides(), t.dtype(), t.device());
  static constinit kit::Op copy("copy_");
  const aj_value args[] = {value(own), value(t), value(false)};
  return kit::run(copy.get(), args, 3);
}

Payload& root_of(Payload& p) {
  Payload* at = &p;
  while (at->view) at = static_cast<Payload*>(core().object_payload(at->view->base));
  return *at;
}

// The dual, and what shares its memory, has a tangent of its own that lies as its value does.
void own_tangent(Payload& p) {
  Payload& root = root_of(p);
  const Tensor& value = Tensor::view(root.value);
  const Tensor& now = Tensor::view(root.tangent);
  if (root.owned && now.defined()) return;
  Tensor own = copied(now.defined() ? now : zeros_like(value), value);
  core().release(root.tangent);
  root.tangent = own.take();
  root.owned = true;
  root.generation++;
}

// A call's arguments with values in the places of duals, and their tangents.
struct Opened {
  std::vector<aj_value> args;
  std::vector<Tensor> tangents, keep;
  std::map<uint32_t, std::vector<aj_tensor*>> lists;

  Opened(const Rule& rule, Level& l, const aj_call* call)
      : args(call->args, call->args + call->nargs) {
    each_input(rule, call->args, call->nargs,
               [&](aj_tensor* t, uint32_t, uint32_t param, uint32_t item) {
                 Payload* p = at_level(t, l);
                 tangents.push_back(p ? tangent_of(*p) : Tensor());
                 if (!p) return;
                 if (args[param].tag == AJ_TENSOR) {
                   args[param].v.tensor = p->value;
                   return;
                 }
                 auto& list = lists[param];
                 if (list.empty()) {
                   list.assign(call->args[param].v.tensors,
                               call->args[param].v.tensors + call->args[param].aux);
                   args[param].v.tensors = list.data();
                 }
                 list[item] = p->value;
               });
  }
  bool moves() const {
    return std::ranges::any_of(tangents, [](const Tensor& t) { return t.defined(); });
  }
};

struct Owned {  // results
  std::vector<aj_value> values;
  explicit Owned(uint32_t n) : values(n) {}
  ~Owned() {
    for (aj_value& v : values) drop(v);
  }
  Owned(const Owned&) = delete;
};

// The arguments of a view's call, which may point to the caller's stack.
ViewOf* remembered(const aj_call* call, const Opened& in, aj_object* base, uint32_t result) {
  auto* v = new ViewOf{call->op, base, 0, result, {}, {}};
  core().retain(base);
  for (const aj_value& a : in.args) {
    v->args.push_back(a);
    if (a.tag == AJ_INTS) {
      auto& kept = v->ints.emplace_back(a.v.ints, a.v.ints + a.aux);
      v->args.back().v.ints = kept.data();
    }
  }
  v->args[0] = {};
  return v;
}

Tensor wrapped_view(Level& l, const aj_call* call, const Opened& in, aj_tensor* made,
                    uint32_t result) {
  aj_tensor* base = call->args[0].v.tensor;
  Tensor w = make_wrapper(l, Tensor::view(made), {}, false, base);
  Payload* p = payload_of(w.get());
  p->view = remembered(call, in, wrap_table->tensor_payload(base, transform_key), result);
  p->view->generation = ~uint64_t(0);  // made when somebody asks
  return w;
}

// The result as it is handed out: what may have a tangent is a dual, so that it can be written.
aj_value handed(Level& l, const aj_value& made, const Tensor& tangent) {
  if (made.tag != AJ_TENSOR || !can_move(made.v.tensor->dl.dtype)) {
    if (made.tag >= AJ_TENSOR) core().retain(const_cast<void*>(made.v.ptr));
    return made;
  }
  return {AJ_TENSOR,
          0,
          {.tensor = make_wrapper(l, Tensor::view(made.v.tensor), tangent, false).take()}};
}

template <class F>
aj_value each_handed(const aj_value& made, uint32_t* at, F&& f) {
  if (made.tag != AJ_LIST_OBJ) return f(made, (*at)++);
  uint32_t n = 0;
  const aj_value* items = core().list_get(made.v.object, &n);
  Owned all(n);
  for (uint32_t i = 0; i < n; i++) all.values[i] = f(items[i], (*at)++);
  aj_value list{AJ_LIST_OBJ, 0, {0}};
  check(core().list_new(all.values.data(), n, &list.v.object));
  return list;
}

// args[i] whose value the result is, itself.
aj_tensor* same_as_input(const Rule& rule, const aj_call* call, Level& l, const aj_tensor* made) {
  aj_tensor* found = nullptr;
  each_input(rule, call->args, call->nargs, [&](aj_tensor* t, uint32_t, uint32_t, uint32_t) {
    Payload* p = at_level(t, l);
    if (p && p->value == made) found = t;
  });
  return found;
}

// Is the result of an op of kind "view" one? Where none would do it is a copy.
bool shows_another(const aj_value& made) {
  if (made.tag != AJ_LIST_OBJ) return made.v.tensor->obj.flags & AJ_TENSOR_VIEW;
  uint32_t n = 0;
  const aj_value* items = core().list_get(made.v.object, &n);
  return n && items[0].v.tensor->obj.flags & AJ_TENSOR_VIEW;
}

// A result's tangent may be that of an argument, which is then no more its own.
void keep_apart(const Rule& rule, Level& l, const aj_call* call, std::span<const Tensor> out) {
  each_input(rule, call->args, call->nargs, [&](aj_tensor* t, uint32_t, uint32_t, uint32_t) {
    Payload* p = at_level(t, l);
    if (!p) return;
    Payload& root = root_of(*p);
    for (const Tensor& made : out)
      if (root.owned && made.defined() && may_share(made, Tensor::view(root.tangent)))
        root.owned = false;
  });
}

void run_new(const Rule& rule, Level& l, aj_call* call, const Opened& in) {
  Owned made(call->nrets);
  check(dispatch().call(call->op, in.args.data(), call->nargs, made.values.data(), call->nrets));
  const bool views = rule.how == How::view && shows_another(made.values[0]);
  // A view that has no derivative is one of the value; what an op makes new may be written.
  const bool still = rule.how == How::zero && call->nrets == 1 && made.values[0].tag == AJ_TENSOR &&
                     shows_another(made.values[0]) && kind_of(call->op) == "view";
  std::vector<Tensor> out(count_results(made.values.data(), call->nrets));
  if (!views && in.moves())
    differentiate(rule, {call->op, in.args.data(), made.values.data(), call->nargs, call->nrets,
                         in.tangents, out});
  keep_apart(rule, l, call, out);
  uint32_t at = 0;
  for (uint32_t i = 0; i < call->nrets; i++)
    call->rets[i] = each_handed(made.values[i], &at, [&](const aj_value& v, uint32_t n) {
      if (v.tag == AJ_TENSOR)
        if (aj_tensor* same = same_as_input(rule, call, l, v.v.tensor)) {
          core().retain(same);
          return aj_value{AJ_TENSOR, 0, {.tensor = same}};
        }
      if (still && v.tag == AJ_TENSOR) {
        core().retain(v.v.tensor);
        return v;
      }
      if (!views || v.tag != AJ_TENSOR) return handed(l, v, out[n]);
      return aj_value{AJ_TENSOR, 0, {.tensor = wrapped_view(l, call, in, v.v.tensor, n).take()}};
    });
}

// Does a tape of a level around look at what is done with t?
bool is_watched(const aj_tensor* t) {
  if (!t) return false;
  if (t->obj.flags & AJ_TENSOR_REQUIRES_GRAD) return true;
  if (!is_wrapped(t)) return false;
  const Payload* p = payload_of(t);
  return is_watched(p->value) || is_watched(p->tangent);
}
bool is_watched(const Opened& in) {
  if (!autograd().grad_mode()) return false;
  return std::ranges::any_of(in.tangents, [](const Tensor& t) { return is_watched(t.get()); }) ||
         std::ranges::any_of(in.args, [](const aj_value& v) {
           return v.tag == AJ_TENSOR && is_watched(v.v.tensor);
         });
}

// The tangent of a dual that was written is t. A tape that watches may have kept the old one.
void write_tangent(Payload& p, const Tensor& t, bool watched) {
  if (!t.defined() && !tangent_of(p).defined()) return;
  if (watched) root_of(p).owned = false;
  own_tangent(p);
  const Tensor mine = tangent_of(p);
  static constinit kit::Op copy("copy_"), zero("zero_");
  const aj_value args[] = {value(mine), value(t), value(false)};
  aj_value ret{};
  check(t.defined() ? dispatch().call(copy.get(), args, 3, &ret, 1)
                    : dispatch().call(zero.get(), args, 1, &ret, 1));
  drop(ret);
}

[[noreturn]] void refuse_write(const aj_op* op, const char* how) {
  raise(AJ_PRECONDITION, name_of(op), ": ", how,
        ": a tensor without a tangent cannot take one up. Make it from the dual (zeros_like, "
        "new_zeros, clone), or assign the result");
}

// The in-place form of an op, and ops that write their first argument.
void run_write(const Rule& rule, Level& l, aj_call* call, const Opened& in, bool first) {
  aj_tensor* target = call->args[0].v.tensor;
  Payload* p = at_level(target, l);
  if (!p && in.moves())
    refuse_write(call->op, "what is written has no tangent, what it is written from has one");
  Owned made(call->nrets);
  const bool watched = p && in.moves() && is_watched(in);
  if (!p || !in.moves()) {
    if (!first) made.values[0] = in.args[0];
    check(dispatch().call(call->op, in.args.data(), call->nargs, made.values.data(), call->nrets));
  } else if (first) {  // the derivative may look at what is overwritten
    const Tensor before = clone(Tensor::view(p->value));
    check(dispatch().call(call->op, in.args.data(), call->nargs, made.values.data(), call->nrets));
    std::vector<aj_value> args = in.args;
    args[0] = value(before);
    std::vector<Tensor> out(1);
    differentiate(rule, {call->op, args.data(), made.values.data(), call->nargs, call->nrets,
                         in.tangents, out});
    write_tangent(*p, out[0], watched);
  } else {
    std::vector<aj_value> args = in.args;
    Tensor before;  // what a tape keeps of it is not overwritten
    if (watched) before = clone(Tensor::view(p->value));
    for (aj_value& v : args)
      if (watched && v.tag == AJ_TENSOR && v.v.tensor == p->value) v = value(before);
    check(dispatch().call(call->op, args.data(), call->nargs, made.values.data(), call->nrets));
    std::vector<Tensor> out(count_results(made.values.data(), call->nrets));
    differentiate(rule, {call->op, args.data(), made.values.data(), call->nargs, call->nrets,
                         in.tangents, out});
    static constinit kit::Op copy("copy_");
    const aj_value both[] = {in.args[0], made.values[0], value(false)};
    aj_value same = in.args[0];
    check(dispatch().call(copy.get(), both, 3, &same, 1));
    drop(same);
    write_tangent(*p, out[0], watched);
  }
  if (call->rets[0].tag == AJ_TENSOR) return;  // it stays in its slot
  core().retain(target);
  call->rets[0] = {AJ_TENSOR, 0, {.tensor = target}};
}

// The op's composite on duals; its own ops come here.
void run_body(aj_call* call) {
  WithKey here;
  Owned made(call->nrets);
  check(lower_table->call_body(call->op, call->args, call->nargs, made.values.data(), call->nrets));
  if (call->rets[0].tag == AJ_TENSOR && made.values[0].tag == AJ_TENSOR &&
      made.values[0].v.tensor != call->rets[0].v.tensor) {
    static constinit kit::Op copy("copy_");
    const aj_value both[] = {call->rets[0], made.values[0], value(false)};
    aj_value same = call->rets[0];
    same.aux = 0;
    check(dispatch().call(copy.get(), both, 3, &same, 1));
    drop(same);
    return;
  }
  for (uint32_t i = 0; i < call->nrets; i++) call->rets[i] = std::exchange(made.values[i], {});
}

// What was made inside of the level, without a tangent, is its value.
Tensor outside(const Tensor& t, Level& l) {
  Payload* p = at_level(t.get(), l);
  if (!p) return t;
  if (p->tangent || p->view)
    raise(AJ_INVALID_ARGUMENT,
          "dual: the tensor has a tangent of this level; open another level for a second one");
  return Tensor::borrow(p->value);
}

std::string told(const Tensor& t) {
  const DLDevice d = t.device();
  return text(t.dtype(), " of shape ", Shape{t.dl().shape, t.ndim()}, " on ",
              view_of(core().device_name(d.device_type)), ":", d.device_id);
}

}  // namespace

bool may_share(const Tensor& a, const Tensor& b) {
  if (a.get() == b.get() || !a.has_memory() || !b.has_memory()) return true;
  void* data;
  uint64_t bytes, offset, ids[2];
  check(core().tensor_storage(a.get(), &data, &bytes, &offset, &ids[0]));
  check(core().tensor_storage(b.get(), &data, &bytes, &offset, &ids[1]));
  return ids[0] == ids[1];
}

Tensor tangent_of(Payload& p) {
  if (!p.view) return Tensor::borrow(p.tangent);
  auto& base = *static_cast<Payload*>(core().object_payload(p.view->base));
  const Tensor of_base = tangent_of(base);
  const uint64_t generation = root_of(p).generation;
  if (p.view->generation == generation && (p.tangent || !of_base.defined()))
    return Tensor::borrow(p.tangent);
  core().release(p.tangent);
  p.tangent = nullptr;
  p.view->generation = generation;
  if (!of_base.defined()) return {};
  ViewOf& v = *p.view;
  std::vector<aj_value> args = v.args;
  Tensor seen = of_base;
  if (rule_of(v.op).needs_order && !same_order(of_base, Tensor::view(base.value))) {
    own_tangent(base);
    return tangent_of(p);
  }
  args[0] = value(seen);
  aj_value made{};
  check(dispatch().call(v.op, args.data(), uint32_t(args.size()), &made, 1));
  each_result(&made, 1, [&](aj_tensor* t, uint32_t n) {
    if (n == v.result) core().retain(p.tangent = t);
  });
  drop(made);
  return Tensor::borrow(p.tangent);
}

void call_dual(Level& l, aj_call* call) {
  const Rule& rule = rule_of(call->op);
  if (call_plain_dual(rule, l, call)) return;
  const bool first = rule.writes_first;
  const bool in_place = !first && call->nrets && call->rets[0].tag == AJ_TENSOR && call->nargs &&
                        call->args[0].tag == AJ_TENSOR &&
                        call->rets[0].v.tensor == call->args[0].v.tensor;
  bool out = false;
  for (uint32_t i = 0; i < call->nrets && !first && !in_place; i++)
    out |= call->rets[i].tag == AJ_TENSOR;
  bool may_move = false;
  each_input(rule, call->args, call->nargs, [&](aj_tensor* t, uint32_t, uint32_t, uint32_t) {
    Payload* p = at_level(t, l);
    may_move |= p && (p->tangent || p->view);
  });
  if (out && may_move)
    raise(AJ_INVALID_ARGUMENT, name_of(call->op),
          ": out= cannot take up a tangent, and an argument has one; drop out=");
  if (rule.how == How::body && may_move) return run_body(call);
  Below below(l);
  const Opened in(rule, l, call);
  if (out) {
    for (uint32_t i = 0; i < call->nrets; i++) {
      Payload* p = call->rets[i].tag == AJ_TENSOR ? at_level(call->rets[i].v.tensor, l) : nullptr;
      if (p) refuse_write(call->op, "out= is a dual");
    }
    return check(dispatch().call(call->op, in.args.data(), call->nargs, call->rets, call->nrets));
  }
  if (first || in_place) return run_write(rule, l, call, in, first);
  run_new(rule, l, call, in);
}

aj_status* dual(aj_tensor* primal, aj_tensor* tangent, int32_t level, aj_tensor** out) {
  return guard("transform: dual", [&] {
    Level* l = find_level(level, "dual");
    const Tensor &x = Tensor::view(primal), &t = Tensor::view(tangent);
    if (!can_move(x.dtype()))
      raise(AJ_WRONG_TYPE, "dual: the tensor is ", x.dtype(),
            ", which has no derivative; a floating or complex one is wanted");
    if (t.defined() && (!std::ranges::equal(x.shape(), t.shape()) || !(x.dtype() == t.dtype()) ||
                        !(x.device() == t.device())))
      raise(AJ_INVALID_ARGUMENT, "dual: the tangent is ", told(t), ", the tensor ", told(x),
            "; they must agree");
    *out = make_wrapper(*l, outside(x, *l), t.defined() ? outside(t, *l) : t, false).take();
  });
}

aj_status* undual(aj_tensor* t, int32_t level, aj_tensor** primal, aj_tensor** tangent) {
  return guard("transform: undual", [&] {
    Level* l = find_level(level, "undual");
    Payload* p = at_level(t, *l);
    *tangent = nullptr;
    if (p) {
      Below below(*l);
      *tangent = tangent_of(*p).take();
    }
    core().retain(*primal = p ? p->value : t);
  });
}

}  // namespace adjoin::transform

// core/call/elsewhere.cpp: calls with copies of their arguments.
#include "core/call/elsewhere.hpp"

#include <vector>

#include "core/call/copy.hpp"
#include "core/guest/object.hpp"
#include "core/op/call.hpp"
#include "core/tape/record.hpp"

namespace adjoin {
namespace {

uint64_t bytes_in(const aj_tensor* t) { return uint64_t(priv(t).numel) * dt(priv(t).dtype).bytes; }

// On another device, without history.
aj_status* moved(aj_tensor* t, Device* d, aj_tensor** out) {
  Ref made;
  AJ_TRY(tensor_new(d, dt(priv(t).dtype), shape(t), made.out()));
  AJ_TRY(copy_into(made.get(), t));
  *out = made.take();
  return nullptr;
}

struct Arguments {
  std::vector<aj_value> args;
  std::vector<Ref> held;
  std::vector<std::vector<aj_tensor*>> lists;

  aj_status* copy(const Elsewhere& place, aj_tensor** t, uint64_t* bytes) {
    aj_tensor* made = nullptr;
    aj_status* s = place.there(*t, &made);
    held.emplace_back(made);
    if (!s && made != *t) *bytes += bytes_in(*t);
    *t = made;
    return s;
  }
  aj_status* take(const Elsewhere& place, const aj_value* given, uint32_t nargs, uint64_t* bytes) {
    lists.reserve(nargs);
    args.assign(given, given + nargs);
    for (aj_value& v : args) {
      place.change(&v);
      if (v.tag == AJ_TENSOR) AJ_TRY(copy(place, &v.v.tensor, bytes));
      if (v.tag != AJ_TENSORS) continue;
      auto& list = lists.emplace_back(v.v.tensors, v.v.tensors + v.aux);
      v.v.tensors = list.data();
      for (aj_tensor*& t : list)
        if (t) AJ_TRY(copy(place, &t, bytes));
    }
    return nullptr;
  }
};

aj_status* write_back(aj_tensor* to, aj_tensor* from, uint64_t* bytes) {
  if (to == from) return nullptr;
  *bytes += bytes_in(from);
  return copy_into(to, from);
}

aj_status* list_back(const Elsewhere& place, const aj_value& made, aj_value* ret, uint64_t* bytes) {
  uint32_t n;
  const aj_value* items = list_get(made.v.object, &n);
  std::vector<aj_value> back(items, items + n);
  std::vector<Ref> held;
  for (aj_value& v : back) {
    if (v.tag != AJ_TENSOR) continue;
    aj_tensor* copy = nullptr;
    aj_status* s = place.back(v.v.tensor, &copy);
    held.emplace_back(copy);
    AJ_TRY(s);
    *bytes += bytes_in(copy);
    v = value(copy);
  }
  *ret = {AJ_LIST_OBJ, 0, {0}};
  aj_object* list;
  AJ_TRY(list_new(back.data(), n, &list));
  ret->v.object = list;
  return nullptr;
}

// A result that the caller gets: the place that was given for it, the first argument, or a copy.
aj_status* result_back(const Elsewhere& place, const aj_op* op, uint32_t i, const aj_value* args,
                       aj_value* made, aj_value* ret, uint64_t* bytes) {
  if (made->tag == AJ_LIST_OBJ) return list_back(place, *made, ret, bytes);
  if (made->tag != AJ_TENSOR) {
    *ret = *made;
    *made = none();
    return nullptr;
  }
  aj_tensor* back = ret->tag == AJ_TENSOR                  ? ret->v.tensor
                    : i == 0 && op->schema.result_is_first ? args[0].v.tensor
                                                           : nullptr;
  if (ret->tag == AJ_TENSOR) AJ_TRY(write_back(back, made->v.tensor, bytes));
  if (back)
    retain(back);
  else
    AJ_TRY(place.back(made->v.tensor, &back));
  *bytes += ret->tag == AJ_TENSOR ? 0 : bytes_in(back);
  *ret = value(back);
  return nullptr;
}

}  // namespace

aj_status* OnHost::there(aj_tensor* t, aj_tensor** out) const { return moved(t, host_, out); }
aj_status* OnHost::back(aj_tensor* t, aj_tensor** out) const { return moved(t, home_, out); }
void OnHost::change(aj_value* v) const {
  if (v->tag == AJ_DEVICE) v->v.device = host_->id;
}

aj_status* call_elsewhere(const Elsewhere& place, aj_op* op, const aj_value* args, uint32_t nargs,
                          aj_value* rets, uint32_t nrets, uint64_t* in, uint64_t* out) {
  NoGrad off;
  Arguments there;
  AJ_TRY(there.take(place, args, nargs, in));
  std::vector<aj_value> made(nrets, none());
  AJ_TRY(call(op, there.args.data(), nargs, made.data(), nrets));
  aj_status* s = nullptr;
  for (uint32_t i = 0; i < nrets && !s; i++)
    s = result_back(place, op, i, args, &made[i], &rets[i], out);
  for (size_t i = 0; i < op->schema.params.size() && !s; i++) {
    if (!(op->schema.params[i].flags & AJ_PARAM_WRITTEN)) continue;
    const aj_value &to = args[i], &from = there.args[i];
    if (to.tag == AJ_TENSOR) s = write_back(to.v.tensor, from.v.tensor, out);
    if (to.tag != AJ_TENSORS) continue;
    for (uint32_t j = 0; j < to.aux && !s; j++)
      if (to.v.tensors[j]) s = write_back(to.v.tensors[j], from.v.tensors[j], out);
  }
  for (aj_value& v : made) release_value(v);
  return s;
}

namespace {

// What is only stored is computed wider. Results of the wider dtype go back, unless it was asked
// for.
class Wider : public Elsewhere {
 public:
  Wider(const aj_value* args, uint32_t nargs) {
    for (uint32_t i = 0; i < nargs; i++) {
      if (args[i].tag == AJ_TENSOR) see(priv(args[i].v.tensor).dtype);
      if (args[i].tag == AJ_TENSORS)
        for (uint32_t j = 0; j < args[i].aux; j++)
          if (args[i].v.tensors[j]) see(priv(args[i].v.tensors[j]).dtype);
      if (args[i].tag != AJ_DTYPE) continue;
      const DType* asked = find_dtype(args[i].v.dtype);
      if (asked) see(asked->index), asks_ = wider_of(asked->index) == asked->index;
    }
  }
  bool serves() const { return narrow_ >= 0; }
  aj_status* there(aj_tensor* t, aj_tensor** out) const override {
    const int dtype = priv(t).dtype, wide = wider_of(dtype);
    if (wide != dtype) return cast_to(t, dt(wide), out);
    retain(*out = t);
    return nullptr;
  }
  aj_status* back(aj_tensor* t, aj_tensor** out) const override {
    const int dtype = priv(t).dtype, wide = wider_of(narrow_);
    const int to = asks_                    ? dtype
                   : dtype == wide          ? narrow_
                   : dtype == real_of(wide) ? real_of(narrow_)
                                            : dtype;
    if (to != dtype) return cast_to(t, dt(to), out);
    retain(*out = t);
    return nullptr;
  }
  void change(aj_value* v) const override {
    if (v->tag != AJ_DTYPE) return;
    if (const DType* d = find_dtype(v->v.dtype)) v->v.dtype = dt(wider_of(d->index)).dl;
  }

 private:
  void see(int dtype) {
    if (wider_of(dtype) != dtype) narrow_ = dtype;
  }
  int narrow_ = -1;
  bool asks_ = false;
};

}  // namespace

bool call_wider(aj_op* op, const aj_value* args, uint32_t nargs, aj_value* rets, uint32_t nrets,
                aj_status** out) {
  Wider place(args, nargs);
  if (!place.serves()) return false;
  if (op->crosses_devices && op->schema.result_is_first) {  // copy_ itself
    if (args[1].tag != AJ_TENSOR || device(args[0].v.tensor)->host()) return false;
    *out = copy_by_host(args[0].v.tensor, args[1].v.tensor);
    if (!*out) retain(args[0].v.tensor), rets[0] = value(args[0].v.tensor);
    return true;
  }
  uint64_t in = 0, back = 0;
  *out = call_elsewhere(place, op, args, nargs, rets, nrets, &in, &back);
  return true;
}

}  // namespace adjoin

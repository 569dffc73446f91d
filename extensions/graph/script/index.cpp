// extensions/graph/script/index.cpp: x[key] and x[key] = value, of tensors, lists, texts and dicts.
#include <algorithm>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

// Python's slice.indices.
struct Steps {
  int64_t start, count, step;
};
Steps steps_of(const Slice& s, int64_t n) {
  const int64_t step = s.step.value_or(1);
  if (!step) value_error("slice step cannot be zero");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  auto at = [&](std::optional<int64_t> i, int64_t none) {
    if (!i) return none;
    return std::clamp(*i < 0 ? *i + n : *i, low, high);
  };
  const int64_t start = at(s.start, step > 0 ? low : high),
                stop = at(s.stop, step > 0 ? high : low);
  return {start, Range{start, stop, step}.count(), step};
}

std::vector<Value> picked(const std::vector<Value>& all, const Slice& s) {
  std::vector<Value> out;
  Steps at = steps_of(s, int64_t(all.size()));
  for (int64_t i = 0; i < at.count; i++) out.push_back(all[size_t(at.start + i * at.step)]);
  return out;
}

const Value& at_place(const std::vector<Value>& all, const Value& key, const char* what) {
  int64_t i = whole(key, what);
  if (i < 0) i += int64_t(all.size());
  if (i < 0 || i >= int64_t(all.size())) index_error(what, " index out of range");
  return all[size_t(i)];
}

Tensor as_tensor(Value v) { return std::move(std::get<Tensor>(v)); }

bool is_mask(const Tensor& t) { return t.dtype() == boolean || t.dtype() == uint8; }

// The plain part of a key makes a view; the tensors in it are collected by dimension.
struct Indexed {
  Tensor view;
  std::vector<Value> tensors;  // None: the whole dimension

  Indexed(const Tensor& t, const Value& key) : view(t), source_(t) {
    std::vector<Value> items{key};
    if (Tuple* all = in<Tuple>(key)) items = all->items;
    if (List* all = in<List>(key);
        all && all->items.size() < 32 &&
        std::any_of(all->items.begin(), all->items.end(), [](auto& v) { return !is_number(v); }))
      items = all->items;
    int64_t named = 0;
    for (const Value& v : items) named += consumes(v);
    if (named > t.ndim())
      index_error("index: too many indices: ", named, " for a tensor of ", t.ndim(), " dimensions");
    skip_ = t.ndim() - named;
    for (const Value& v : items) apply(v);
  }
  bool advanced() const { return !tensors.empty(); }

 private:
  static int64_t consumes(const Value& v) {
    if (is<None>(v) || is<Ellipsis>(v) || is<bool>(v)) return 0;
    if (auto* t = std::get_if<Tensor>(&v)) return is_mask(*t) ? t->ndim() : 1;
    return 1;
  }

  void apply(const Value& v) {
    auto* t = std::get_if<Tensor>(&v);
    if (is<int64_t>(v) || (t && !t->ndim() && !is_mask(*t))) {
      const int64_t i = whole(v, "index"), n = view.shape()[size_t(dim_)];
      if (i < -n || i >= n)
        index_error("index: ", i, " is out of range for dimension ", dim_, " of size ", n);
      view = as_tensor(call_named("select", {view, dim_, i}));
    } else if (Slice* s = in<Slice>(v)) {
      if (s->step.value_or(1) <= 0)
        value_error("index: the step of a slice must be positive; use flip()");
      const int64_t n = view.shape()[size_t(dim_)];
      Steps at = steps_of(*s, n);
      if (at.count != n || at.step != 1)
        view = as_tensor(call_named(
            "slice", {view, dim_, at.start, std::min(n, at.start + at.count * at.step), at.step}));
      dim_++;
    } else if (is<None>(v)) {
      view = as_tensor(call_named("unsqueeze", {view, dim_++}));
    } else if (is<Ellipsis>(v)) {
      if (std::exchange(ellipsis_, true)) index_error("index: only one ... can stand in an index");
      dim_ += skip_;
    } else if (is<bool>(v)) {
      view = as_tensor(call_named("unsqueeze", {view, dim_}));
      const Value as_bool = boolean;
      collect(tensor_of(list({v}), &as_bool, nullptr));
    } else if (t || holds<List>(v) || holds<Tuple>(v)) {
      Tensor index = t ? *t : tensor_of(v, nullptr, nullptr);
      if (!t && !index.numel()) index = as_tensor(converted(index, int64));
      if (index.dtype() == uint8) index = as_tensor(call_named("ne", {index, int64_t(0)}));
      if (index.is_floating_point() || index.is_complex())
        index_error(
            "index: tensors used as indices must be of an integer dtype or bool, this one is ",
            index.dtype(), "; use .long()");
      if (index.dtype() == boolean && !index.ndim()) {
        view = as_tensor(call_named("unsqueeze", {view, dim_}));
        index = as_tensor(call_named("unsqueeze", {index, int64_t(0)}));
      }
      collect(std::move(index));
    } else {
      index_error("index: numbers, slices, lists and tensors are indices, not ", type_name(v));
    }
  }

  void collect(Tensor t) {
    const int64_t wide = t.dtype() == boolean ? t.ndim() : 1;
    while (int64_t(tensors.size()) < dim_ - folded_) tensors.push_back(None{});
    for (int64_t i = 0; i < wide && t.dtype() == boolean; i++)
      if (t.shape()[size_t(i)] != view.shape()[size_t(dim_ + i)])
        index_error("index: the mask's size ", t.shape()[size_t(i)], " at dimension ", i,
                    " does not match the tensor's size ", view.shape()[size_t(dim_ + i)]);
    tensors.push_back(std::move(t));
    dim_ += wide;
    folded_ += wide - 1;
  }

  const Tensor& source_;
  int64_t dim_ = 0, skip_ = 0, folded_ = 0;
  bool ellipsis_ = false;
};

}  // namespace

Value index_tensor(const Tensor& t, const Value& key) {
  Indexed x(t, key);
  if (x.advanced()) return call_named("index", {x.view, list(x.tensors)});
  if (x.view.get() == t.get()) return call_named("alias", {t});
  return x.view;
}

void set_tensor(const Tensor& t, const Value& key, const Value& v) {
  Indexed x(t, key);
  const bool plain = is_number(v);
  if (!x.advanced()) {
    if (plain) {
      call_named("fill_", {x.view, v});
      return;
    }
    Value given = is<Tensor>(v) ? v : Value(tensor_of(v, nullptr, nullptr));
    const Tensor& from = std::get<Tensor>(given);
    // Leading sizes of 1 that the target lacks do not count.
    const int64_t more = from.ndim() - x.view.ndim();
    if (more > 0 && std::all_of(from.shape().begin(), from.shape().begin() + more,
                                [](int64_t n) { return n == 1; })) {
      std::vector<Value> shape;
      for (int64_t n : from.shape().subspan(size_t(more))) shape.emplace_back(n);
      given = call_named("reshape", {given, list(std::move(shape))});
    }
    call_named("copy_", {x.view, given});
    return;
  }
  auto* mask = x.tensors.size() == 1 ? std::get_if<Tensor>(&x.tensors[0]) : nullptr;
  if (plain && mask && mask->dtype() == boolean && mask->ndim() == x.view.ndim()) {
    call_named("masked_fill_", {x.view, *mask, v});
    return;
  }
  Value given = v;
  if (!is<Tensor>(v)) {
    const Value dtype = x.view.dtype(), at = x.view.device();
    given = tensor_of(v, &dtype, &at);
  }
  call_named("index_put_", {x.view, list(x.tensors), given});
}

Value item(Machine& m, const Value& self, const Value& key) {
  if (auto* t = std::get_if<Tensor>(&self)) return index_tensor(*t, key);
  Slice* s = in<Slice>(key);
  if (List* l = in<List>(self))
    return s ? list(picked(l->items, *s)) : at_place(l->items, key, "list");
  if (Tuple* t = in<Tuple>(self))
    return s ? tuple(picked(t->items, *s)) : at_place(t->items, key, "tuple");
  if (Dict* d = in<Dict>(self)) {
    if (Value* v = d->find(key)) return *v;
    raise_as("KeyError", AJ_NOT_FOUND, repr(key));
  }
  if (is<std::string>(self) || is<Range>(self)) {
    const std::vector<Value> all = items_of(self);
    if (!s) return at_place(all, key, is<Range>(self) ? "range" : "string");
    if (is<Range>(self)) return list(picked(all, *s));
    std::string out;
    for (const Value& v : picked(all, *s)) out += std::get<std::string>(v);
    return out;
  }
  if (const Function* f = m.special(self, "__getitem__")) return m.run(*f, {self, key}, {});
  if (Object* o = in<Object>(self); o && o->of->container != Class::Container::none) {
    std::vector<Value> all;
    for (auto& [name, v] : children(*o)) {
      if (is<std::string>(key) && name == std::get<std::string>(key)) return v;
      all.push_back(v);
    }
    if (is<std::string>(key)) raise_as("KeyError", AJ_NOT_FOUND, repr(key));
    return s ? list(picked(all, *s)) : at_place(all, key, "list");
  }
  type_error("'", type_name(self), "' object is not subscriptable");
}

void set_item(Machine& m, const Value& self, const Value& key, const Value& v) {
  if (auto* t = std::get_if<Tensor>(&self)) return set_tensor(*t, key, v);
  if (Dict* d = in<Dict>(self)) return d->set(key, v);
  if (List* l = in<List>(self)) {
    Slice* s = in<Slice>(key);
    if (!s) {
      const_cast<Value&>(at_place(l->items, key, "list assignment")) = v;
      return;
    }
    std::vector<Value> from = m.items(v);
    Steps at = steps_of(*s, int64_t(l->items.size()));
    if (at.step == 1) {
      l->items.erase(l->items.begin() + at.start, l->items.begin() + at.start + at.count);
      l->items.insert(l->items.begin() + at.start, from.begin(), from.end());
      return;
    }
    if (int64_t(from.size()) != at.count)
      value_error("attempt to assign sequence of size ", uint64_t(from.size()),
                  " to extended slice of size ", at.count);
    for (int64_t i = 0; i < at.count; i++)
      l->items[size_t(at.start + i * at.step)] = from[size_t(i)];
    return;
  }
  if (const Function* f = m.special(self, "__setitem__")) {
    m.run(*f, {self, key, v}, {});
    return;
  }
  type_error("'", type_name(self), "' object does not support item assignment");
}

}  // namespace adjoin::graph::script

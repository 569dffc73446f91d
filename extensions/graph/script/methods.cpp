// extensions/graph/script/methods.cpp: methods of lists, dicts, tuples and modules in containers.
#include <algorithm>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

std::vector<Value>& items_in(Call& c) { return in<List>(c.at(0))->items; }

int64_t place(const std::vector<Value>& items, const Value& v, const char* what) {
  int64_t i = whole(v, what);
  if (i < 0) i += int64_t(items.size());
  if (i < 0 || i >= int64_t(items.size())) index_error(what, " index out of range");
  return i;
}

bool matches(Machine& m, const Value& a, const Value& b) {
  if (same_object(a, b)) return true;
  std::vector<Value> args{a, b};
  Named none;
  Call c{m, "==", args, none};
  return m.is_true(find_builtin("eq")(c));
}

Value list_append(Call& c) { return items_in(c).push_back(c.at(1)), None{}; }
Value list_extend(Call& c) {
  std::vector<Value> more = c.machine.items(c.at(1));
  items_in(c).insert(items_in(c).end(), more.begin(), more.end());
  return None{};
}
Value list_insert(Call& c) {
  auto& l = items_in(c);
  int64_t i = whole(c.at(1), "insert"), n = int64_t(l.size());
  i = std::clamp<int64_t>(i < 0 ? i + n : i, 0, n);
  l.insert(l.begin() + i, c.at(2));
  return None{};
}
Value list_pop(Call& c) {
  auto& l = items_in(c);
  if (l.empty()) index_error("pop from empty list");
  const int64_t i = c.args.size() > 1 ? place(l, c.at(1), "pop") : int64_t(l.size()) - 1;
  Value v = std::move(l[size_t(i)]);
  l.erase(l.begin() + i);
  return v;
}
Value list_remove(Call& c) {
  auto& l = items_in(c);
  for (size_t i = 0; i < l.size(); i++)
    if (matches(c.machine, l[i], c.at(1))) return l.erase(l.begin() + std::ptrdiff_t(i)), None{};
  value_error("list.remove(x): x not in list");
}
Value list_clear(Call& c) { return items_in(c).clear(), None{}; }
Value list_copy(Call& c) { return list(items_in(c)); }
Value list_reverse(Call& c) {
  std::reverse(items_in(c).begin(), items_in(c).end());
  return None{};
}
Value list_sort(Call& c) { return items_in(c) = items_of(find_builtin("sorted")(c)), None{}; }
Value index_in(Call& c) {
  std::vector<Value> all = items_of(c.at(0));
  const int64_t n = int64_t(all.size());
  auto at = [&](size_t arg, int64_t none) {
    if (c.args.size() <= arg) return none;
    const int64_t k = whole(c.at(arg), "index");
    return std::clamp<int64_t>(k < 0 ? k + n : k, 0, n);
  };
  c.most(4);
  const size_t end = size_t(at(3, n));
  for (size_t i = size_t(at(2, 0)); i < end; i++)
    if (matches(c.machine, all[i], c.at(1))) return int64_t(i);
  value_error(repr(c.at(1)), " is not in ", type_name(c.at(0)));
}
Value count_in(Call& c) {
  int64_t n = 0;
  for (const Value& v : items_of(c.at(0))) n += matches(c.machine, v, c.at(1));
  return n;
}
Value size_numel(Call& c) {
  Value n = int64_t(1);
  for (const Value& v : items_of(c.at(0))) n = arithmetic('*', n, v);
  return n;
}
Value named_dict(Call& c) {
  auto d = std::make_shared<Dict>();
  Tuple* t = in<Tuple>(c.at(0));
  for (size_t i = 0; t->named && i < t->items.size(); i++) d->set(t->named->fields[i], t->items[i]);
  return d;
}
Value named_replace(Call& c) {
  Tuple* t = in<Tuple>(c.at(0));
  std::vector<Value> all = t->items;
  for (auto& [name, v] : c.named) {
    bool found = false;
    for (size_t i = 0; t->named && i < all.size(); i++)
      if (t->named->fields[i] == name) all[i] = v, found = true;
    if (!found) value_error("Got unexpected field names: ['", name, "']");
  }
  return tuple(std::move(all), t->named);
}

Dict& dict_in(Call& c) { return *in<Dict>(c.at(0)); }
[[noreturn]] void no_key(const Value& k) { raise_as("KeyError", AJ_NOT_FOUND, repr(k)); }

Value dict_keys(Call& c) { return list(items_of(c.at(0))); }
Value dict_values(Call& c) {
  std::vector<Value> out;
  for (auto& [k, v] : dict_in(c).items) out.push_back(v);
  return list(std::move(out));
}
Value dict_items(Call& c) {
  std::vector<Value> out;
  for (auto& [k, v] : dict_in(c).items) out.push_back(tuple({k, v}));
  return list(std::move(out));
}
Value dict_get(Call& c) {
  if (Value* v = dict_in(c).find(c.at(1))) return *v;
  const Value* none = c.find(2, "default");
  return none ? *none : Value(None{});
}
Value dict_setdefault(Call& c) {
  if (Value* v = dict_in(c).find(c.at(1))) return *v;
  Value v = c.args.size() > 2 ? c.at(2) : Value(None{});
  dict_in(c).set(c.at(1), v);
  return v;
}
Value dict_pop(Call& c) {
  if (Value* found = dict_in(c).find(c.at(1))) {
    Value v = *found;
    dict_in(c).erase(c.at(1));
    return v;
  }
  if (c.args.size() > 2) return c.at(2);
  no_key(c.at(1));
}
Value dict_popitem(Call& c) {
  Dict& d = dict_in(c);
  if (d.items.empty()) raise_as("KeyError", AJ_NOT_FOUND, "popitem(): dictionary is empty");
  auto [k, v] = d.items.back();
  d.erase(Value(k));
  return tuple({k, v});
}
Value dict_clear(Call& c) { return dict_in(c) = Dict(), None{}; }
Value dict_copy(Call& c) { return std::make_shared<Dict>(dict_in(c)); }
Value dict_update(Call& c) {
  if (c.args.size() > 1) {
    if (Dict* from = in<Dict>(c.at(1))) {
      for (auto& [k, v] : std::vector(from->items)) dict_in(c).set(k, v);
    } else {
      for (const Value& pair : c.machine.items(c.at(1))) {
        std::vector<Value> kv = items_of(pair);
        if (kv.size() != 2) value_error("update(): pairs are wanted");
        dict_in(c).set(kv[0], kv[1]);
      }
    }
  }
  for (auto& [k, v] : c.named) dict_in(c).set(k, v);
  return None{};
}

// Of modules: what stands in them.
Value module_values(Call& c) {
  std::vector<Value> out;
  for (auto& [name, v] : children(*in<Object>(c.at(0)))) out.push_back(v);
  return list(std::move(out));
}
Value module_keys(Call& c) {
  std::vector<Value> out;
  for (auto& [name, v] : children(*in<Object>(c.at(0)))) out.emplace_back(name);
  return list(std::move(out));
}
Value module_items(Call& c) {
  std::vector<Value> out;
  for (auto& [name, v] : children(*in<Object>(c.at(0)))) out.push_back(tuple({name, v}));
  return list(std::move(out));
}

struct Entry {
  std::string_view name;
  Builtin run;
};
constexpr Entry lists[] = {
    {"append", list_append}, {"extend", list_extend},   {"insert", list_insert},
    {"pop", list_pop},       {"remove", list_remove},   {"clear", list_clear},
    {"copy", list_copy},     {"reverse", list_reverse}, {"sort", list_sort},
    {"index", index_in},     {"count", count_in},
};
constexpr Entry tuples[] = {
    {"index", index_in},     {"count", count_in},         {"numel", size_numel},
    {"_asdict", named_dict}, {"_replace", named_replace},
};
constexpr Entry dicts[] = {
    {"keys", dict_keys},       {"values", dict_values},         {"items", dict_items},
    {"get", dict_get},         {"setdefault", dict_setdefault}, {"pop", dict_pop},
    {"popitem", dict_popitem}, {"clear", dict_clear},           {"copy", dict_copy},
    {"update", dict_update},
};
constexpr Entry modules[] = {
    {"values", module_values}, {"children", module_values}, {"modules_in", module_values},
    {"keys", module_keys},     {"items", module_items},     {"named_children", module_items},
};

template <size_t n>
Builtin found(const Entry (&table)[n], std::string_view name) {
  for (const Entry& e : table)
    if (e.name == name) return e.run;
  return nullptr;
}

}  // namespace

Builtin find_text_method(std::string_view name);  // texts.cpp

Builtin find_method(const Value& self, std::string_view name) {
  if (is<Tensor>(self)) return find_tensor_method(name);
  if (holds<List>(self)) return found(lists, name);
  if (holds<Dict>(self)) return found(dicts, name);
  if (holds<Tuple>(self)) return found(tuples, name);
  if (is<std::string>(self)) return find_text_method(name);
  if (auto* o = in<Object>(self); o && o->of->module) return found(modules, name);
  return nullptr;
}

}  // namespace adjoin::graph::script

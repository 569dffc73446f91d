// extensions/graph/script/builtins.cpp: operators, and Python's functions.
#include <algorithm>
#include <cmath>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Value by_name(const char* builtin, Machine& m, const Value& v) {
  std::vector<Value> args{v};
  Named none;
  Call c{m, builtin, args, none};
  return find_builtin(builtin)(c);
}
Value shown(Machine& m, const Value& v) { return by_name("repr", m, v); }
Value cut(Machine& m, const Value& v) { return is<double>(v) ? by_name("int", m, v) : v; }

// a + b: of numbers and tensors, or the method of a class.
template <char op, const char* dunder, const char* swapped>
Value binary(Call& c) {
  const Value &a = c.at(0), &b = c.at(1);
  if (const Function* f = c.machine.special(a, dunder)) return c.machine.run(*f, {a, b}, {});
  if (const Function* f = c.machine.special(b, swapped)) return c.machine.run(*f, {b, a}, {});
  if (op == '%' && is<std::string>(a)) {
    std::vector<Value> parts = holds<Tuple>(b) ? items_of(b) : std::vector<Value>{b};
    std::string out;
    size_t next = 0;
    const std::string& s = std::get<std::string>(a);
    for (size_t i = 0; i < s.size(); i++) {
      if (s[i] != '%') {
        out += s[i];
        continue;
      }
      const size_t from = ++i;
      while (i < s.size() && !is_letter(s[i]) && s[i] != '%') i++;
      if (i >= s.size()) value_error("incomplete format");
      if (s[i] == '%') {
        out += '%';
        continue;
      }
      if (s[from] == '(')
        raise_as("NotImplementedError", AJ_UNIMPLEMENTED,
                 "'%(name)s' is not in the subset that is scripted; use an f-string");
      if (next >= parts.size()) type_error("not enough arguments for format string");
      const Value& v = parts[next++];
      std::string spec = s.substr(from, i - from);
      const bool integral = std::string_view("diuxXo").find(s[i]) != std::string_view::npos;
      if (s[i] == 'a' || spec.find('*') != spec.npos || (integral && spec.find('.') != spec.npos))
        raise_as("NotImplementedError", AJ_UNIMPLEMENTED, "'%", spec, s.substr(i, 1),
                 "' is not in the subset that is scripted; use an f-string");
      const bool left = spec.starts_with("-");
      if (left) spec.erase(0, 1);
      const bool plain = s[i] == 's' || s[i] == 'r';
      if (plain)
        out += formatted(s[i] == 'r' ? shown(c.machine, v) : Value(c.machine.text_of(v)),
                         (left           ? "<"
                          : spec.empty() ? ""
                                         : ">") +
                             spec,
                         "");
      else if (s[i] == 'c')
        out +=
            formatted(is<std::string>(v) && length(v) == 1 ? v : Value(character(whole(v, "%c"))),
                      (left           ? "<"
                       : spec.empty() ? ""
                                      : ">") +
                          spec,
                      "");
      else
        out += formatted(s[i] == 'd' || s[i] == 'i' || s[i] == 'u' ? cut(c.machine, v) : v,
                         (left ? "<" : "") + spec + (s[i] == 'i' || s[i] == 'u' ? 'd' : s[i]), "");
    }
    if (next < parts.size()) type_error("not all arguments converted during string formatting");
    return out;
  }
  return arithmetic(op, a, b);
}

// a += b: in place where the value can be written.
template <char op, const char* dunder, const char* swapped, const char* in_place, const char* row>
Value assigned(Call& c) {
  const Value &a = c.at(0), &b = c.at(1);
  if (const Function* f = c.machine.special(a, in_place)) return c.machine.run(*f, {a, b}, {});
  if (is<Tensor>(a)) return call_named(row, {a, b});
  if (List* l = in<List>(a); l && op == '+') {
    std::vector<Value> more = c.machine.items(b);
    l->items.insert(l->items.end(), more.begin(), more.end());
    return a;
  }
  if (Dict* d = in<Dict>(a), *e = in<Dict>(b); d && e && op == '|') {
    for (auto& [k, v] : std::vector(e->items)) d->set(k, v);
    return a;
  }
  if (List* l = in<List>(a); l && op == '*') {
    l->items = items_of(arithmetic(op, a, b));
    return a;
  }
  return binary<op, dunder, swapped>(c);
}

#define OPERATOR(word, op, name, row)                                                  \
  constexpr char word##_dunder[] = "__" name "__", word##_swapped[] = "__r" name "__", \
                 word##_in_place[] = "__i" name "__", word##_row[] = row;              \
  constexpr Builtin word = binary<op, word##_dunder, word##_swapped>;                  \
  constexpr Builtin i##word =                                                          \
      assigned<op, word##_dunder, word##_swapped, word##_in_place, word##_row>;
OPERATOR(add, '+', "add", "add_")
OPERATOR(sub, '-', "sub", "sub_")
OPERATOR(mul, '*', "mul", "mul_")
OPERATOR(div, '/', "truediv", "div_")
OPERATOR(floordiv, 'f', "floordiv", "floor_divide_")
OPERATOR(mod, '%', "mod", "remainder_")
OPERATOR(pow, '^', "pow", "pow_")
OPERATOR(matmul, '@', "matmul", "matmul")
OPERATOR(both, '&', "and", "bitwise_and_")
OPERATOR(either, '|', "or", "bitwise_or_")
OPERATOR(differ, 'x', "xor", "bitwise_xor_")
OPERATOR(left, '<', "lshift", "bitwise_left_shift_")
OPERATOR(right, '>', "rshift", "bitwise_right_shift_")
#undef OPERATOR

Value neg(Call& c) {
  const Value& v = c.at(0);
  if (const Function* f = c.machine.special(v, "__neg__")) return c.machine.run(*f, {v}, {});
  if (is<Tensor>(v)) return call_named("neg", {v});
  if (is<double>(v)) return -std::get<double>(v);
  if (is<std::complex<double>>(v)) return -std::get<std::complex<double>>(v);
  return arithmetic('-', int64_t(0), v);
}
Value pos(Call& c) { return is<bool>(c.at(0)) ? Value(whole(c.at(0), "+")) : c.at(0); }
Value invert(Call& c) {
  if (is<Tensor>(c.at(0))) return call_named("bitwise_not", {c.at(0)});
  return ~whole(c.at(0), "~");
}
Value no(Call& c) { return !c.machine.is_true(c.at(0)); }

bool are_equal(Machine& m, const Value& a, const Value& b) {
  for (auto [x, y] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (const Function* f = m.special(*x, "__eq__")) return m.is_true(m.run(*f, {*x, *y}, {}));
  if (!(holds<List>(a) || holds<Tuple>(a) || holds<Dict>(a)) || a.index() != b.index())
    return equal(a, b);
  // What stands inside may be of a class that says what is equal.
  auto same = [&](const Value& x, const Value& y) {
    return same_object(x, y) || are_equal(m, x, y);
  };
  if (Dict* d = in<Dict>(a), *e = in<Dict>(b); d) {
    if (d->items.size() != e->items.size()) return false;
    for (auto& [k, v] : std::vector(d->items)) {
      Value* other = e->find(k);
      if (!other || !same(v, Value(*other))) return false;
    }
    return true;
  }
  if (Tuple* t = in<Tuple>(a), *u = in<Tuple>(b); t && apart(*t, *u)) return false;
  const std::vector<Value> x = items_of(a), y = items_of(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); i++)
    if (!same(x[i], y[i])) return false;
  return true;
}

Value eq(Call& c) {
  const Value &a = c.at(0), &b = c.at(1);
  for (auto [x, y] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (const Function* f = c.machine.special(*x, "__eq__")) return c.machine.run(*f, {*x, *y}, {});
  if ((is<Tensor>(a) && (is<Tensor>(b) || is_number(b))) || (is<Tensor>(b) && is_number(a)))
    return call_named("eq", {a, b});
  return are_equal(c.machine, a, b);
}
Value ne(Call& c) {
  const Value &a = c.at(0), &b = c.at(1);
  if (const Function* f = c.machine.special(a, "__ne__")) return c.machine.run(*f, {a, b}, {});
  if ((is<Tensor>(a) && (is<Tensor>(b) || is_number(b))) || (is<Tensor>(b) && is_number(a)))
    return call_named("ne", {a, b});
  return !are_equal(c.machine, a, b);
}

Value ordered(Call& c, const char* dunder, const char* swapped, const char* row, bool turned,
              bool negated) {
  const Value &a = c.at(0), &b = c.at(1);
  if (const Function* f = c.machine.special(a, dunder)) return c.machine.run(*f, {a, b}, {});
  if (const Function* f = c.machine.special(b, swapped)) return c.machine.run(*f, {b, a}, {});
  if (is<Tensor>(a) || is<Tensor>(b)) return call_named(row, {a, b});
  for (const Value* v : {&a, &b})  // NaN is neither less nor not less
    if (auto* d = std::get_if<double>(v); d && std::isnan(*d)) return false;
  return (turned ? less(b, a) : less(a, b)) != negated;
}
Value lt(Call& c) { return ordered(c, "__lt__", "__gt__", "lt", false, false); }
Value gt(Call& c) { return ordered(c, "__gt__", "__lt__", "gt", true, false); }
Value le(Call& c) { return ordered(c, "__le__", "__ge__", "le", true, true); }
Value ge(Call& c) { return ordered(c, "__ge__", "__le__", "ge", false, true); }

Value same(Call& c) { return same_object(c.at(0), c.at(1)); }
Value other(Call& c) { return !same_object(c.at(0), c.at(1)); }

bool contains(Machine& m, const Value& all, const Value& v) {
  if (const Function* f = m.special(all, "__contains__")) return m.is_true(m.run(*f, {all, v}, {}));
  if (Dict* d = in<Dict>(all)) return d->find(v) != nullptr;
  if (auto* s = std::get_if<std::string>(&all)) {
    if (!is<std::string>(v)) type_error("'in <string>' requires string as left operand");
    return s->find(std::get<std::string>(v)) != s->npos;
  }
  if (is<Tensor>(all)) return truth(call_named("any", {call_named("eq", {all, v})}));
  for (const Value& x : m.items(all))
    if (same_object(x, v) || are_equal(m, x, v)) return true;
  return false;
}
Value within(Call& c) { return contains(c.machine, c.at(1), c.at(0)); }
Value outside(Call& c) { return !contains(c.machine, c.at(1), c.at(0)); }

Value get_item(Call& c) { return item(c.machine, c.at(0), c.at(1)); }
Value put_item(Call& c) { return set_item(c.machine, c.at(0), c.at(1), c.at(2)), None{}; }

int64_t place(const Value& v, size_t n, const char* what) {
  int64_t i = whole(v, what);
  if (i < 0) i += int64_t(n);
  if (i < 0 || i >= int64_t(n)) index_error(what, " index out of range");
  return i;
}

Value drop_item(Call& c) {
  if (List* l = in<List>(c.at(0))) {
    if (Slice* s = in<Slice>(c.at(1))) {
      if (s->step && *s->step != 1) value_error("del of a slice with a step is not in the subset");
      const int64_t n = int64_t(l->items.size());
      auto at = [&](std::optional<int64_t> i, int64_t none) {
        return std::clamp<int64_t>(!i ? none : *i < 0 ? *i + n : *i, 0, n);
      };
      const int64_t from = at(s->start, 0), to = std::max(from, at(s->stop, n));
      l->items.erase(l->items.begin() + from, l->items.begin() + to);
    } else {
      l->items.erase(l->items.begin() + place(c.at(1), l->items.size(), "list"));
    }
  } else if (Dict* d = in<Dict>(c.at(0))) {
    if (!d->erase(c.at(1))) raise_as("KeyError", AJ_NOT_FOUND, repr(c.at(1)));
  } else if (const Function* f = c.machine.special(c.at(0), "__delitem__")) {
    c.machine.run(*f, {c.at(0), c.at(1)}, {});
  } else {
    type_error("'", type_name(c.at(0)), "' object doesn't support item deletion");
  }
  return None{};
}

Value make_slice(Call& c) {
  auto part = [&](size_t i) -> std::optional<int64_t> {
    if (is<None>(c.at(i))) return {};
    return whole(c.at(i), "slice");
  };
  return std::make_shared<Slice>(Slice{part(0), part(1), part(2)});
}

Value make_list(Call& c) { return list(c.args); }
Value make_tuple(Call& c) { return tuple(c.args); }
Value make_dict(Call& c) {
  auto d = std::make_shared<Dict>();
  for (size_t i = 0; i + 1 < c.args.size(); i += 2) d->set(c.args[i], c.args[i + 1]);
  return d;
}
Value make_named(Call& c) {  // (type, fields, values...)
  std::vector<std::string> fields;
  for (const Value& f : items_of(c.at(1))) fields.push_back(str_of(f));
  const Names* n = names(str_of(c.at(0)), fields);
  std::vector<Value> all(c.args.begin() + 2, c.args.end());
  if (all.size() != fields.size())
    type_error(n->type, ": ", uint64_t(fields.size()), " fields are wanted");
  return tuple(std::move(all), n);
}
Value append(Call& c) {  // of a comprehension
  in<List>(c.at(0))->items.push_back(c.at(1));
  return None{};
}
Value set_entry(Call& c) {
  in<Dict>(c.at(0))->set(c.at(1), c.at(2));
  return None{};
}
Value copy(Call& c) { return c.at(0); }

Value get_attribute(Call& c) {
  const std::string name = str_of(c.at(1));
  if (c.args.size() > 2 && !c.machine.has_attribute(c.at(0), name)) return c.at(2);
  return c.machine.attribute(c.at(0), name);
}
Value set_attribute(Call& c) {
  const std::string name = str_of(c.at(1));
  if (Object* o = in<Object>(c.at(0))) {
    if (o->of->properties.contains(name))
      if (const Function* f = o->of->method(name + ".setter"))
        return c.machine.run(*f, {c.at(0), c.at(2)}, {});
    o->set(name, c.at(2));
    return None{};
  }
  auto* t = std::get_if<Tensor>(&c.at(0));
  if (t && name == "requires_grad") return t->requires_grad_(c.machine.is_true(c.at(2))), None{};
  if (t && name == "grad")
    return t->set_grad(is<Tensor>(c.at(2)) ? std::get<Tensor>(c.at(2)) : Tensor()), None{};
  raise_as("AttributeError", AJ_INVALID_ARGUMENT, "'", type_name(c.at(0)),
           "' object has no attribute '", name, "' that can be set");
}
Value has_attribute(Call& c) { return c.machine.has_attribute(c.at(0), str_of(c.at(1))); }

Value invoke(Call& c) {
  Value callee = c.at(0);
  c.args.erase(c.args.begin());
  return c.machine.invoke(callee, std::move(c.args), std::move(c.named));
}

Value weight(Call& c) { return c.machine.weight(str_of(c.at(0))); }

// An op by its name, which is known when it is called.
Value call_op_of(Call& c) {
  const std::string name = str_of(c.at(0));
  std::vector<Value> args(c.args.begin() + 1, c.args.end());
  return call_named(name.c_str(), std::move(args), c.named);
}

// An op of nn, or of the top level, as a value.
Value op_value(Call& c) {
  bool in_place;
  const std::string name = str_of(c.at(0)), inner = "nn::" + name;
  return std::make_shared<Callee>(
      Callee{Callee::Kind::op, find_op(inner, &in_place) ? inner : name, None{}});
}

Value fail(Call& c) {  // (kind, message...)
  std::string message;
  if (c.args.size() > 2)
    message = repr(tuple({c.args.begin() + 1, c.args.end()}));
  else if (c.args.size() == 2)
    message = c.machine.text_of(c.args[1]);
  raise_as(str_of(c.at(0)), AJ_INVALID_ARGUMENT, message);
}

Value joined(Call& c) {  // an f-string
  std::string out;
  for (const Value& v : c.args) out += c.machine.text_of(v);
  return out;
}
Value format(Call& c) {  // (value, conversion, spec)
  const Value& v = c.at(0);
  const std::string how = str_of(c.at(1)), spec = str_of(c.at(2));
  if (how == "r") return formatted(shown(c.machine, v), spec, "");
  if (how == "s") return formatted(c.machine.text_of(v), spec, "");
  return formatted(v, spec, c.machine.text_of(v));
}

// Is the value of a kind, as it is? Nothing is converted, as admit() does for arguments.
bool is_of(const Value& v, const Kind& k) {
  const std::string& n = k.name;
  auto all = [](const std::vector<Value>& items, const Kind& one) {
    return std::all_of(items.begin(), items.end(),
                       [&](const Value& item) { return is_of(item, one); });
  };
  if (n == "Optional") return is<None>(v) || k.of.empty() || is_of(v, k.of[0]);
  if (n == "Union")
    return std::any_of(k.of.begin(), k.of.end(), [&](const Kind& one) { return is_of(v, one); });
  if (n == "int") return is_whole(v);
  if (n == "float") return is<double>(v);
  if (n == "complex") return is<std::complex<double>>(v);
  if (n == "device") return is<DLDevice>(v);
  if (n == "range") return is<Range>(v);
  if (n == "List") {
    auto* l = in<List>(v);
    return l && (k.of.empty() || all(l->items, k.of[0]));
  }
  if (n == "Dict") {
    auto* d = in<Dict>(v);
    return d && (k.of.size() != 2 || std::all_of(d->items.begin(), d->items.end(), [&](auto& at) {
                   return is_of(at.first, k.of[0]) && is_of(at.second, k.of[1]);
                 }));
  }
  if (n == "Tuple") {
    auto* t = in<Tuple>(v);
    if (!t || k.of.empty()) return t != nullptr;
    if (k.of.size() == 2 && k.of[1].name == "...") return all(t->items, k.of[0]);
    if (k.of.size() != t->items.size()) return false;
    for (size_t i = 0; i < k.of.size(); i++)
      if (!is_of(t->items[i], k.of[i])) return false;
    return true;
  }
  Value copy = v;
  return admit(copy, k);
}

// Is the value what a list of type names says?
Value is_instance(Call& c) {
  for (const Value& name : items_of(c.at(1)))
    if (is_of(c.at(0), read_kind(str_of(name)))) return true;
  return false;
}

struct Entry {
  std::string_view name;
  Builtin run;
};
constexpr Entry table[] = {
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div},
    {"floordiv", floordiv},
    {"mod", mod},
    {"pow", pow},
    {"matmul", matmul},
    {"and", both},
    {"or", either},
    {"xor", differ},
    {"lshift", left},
    {"rshift", right},
    {"iadd", iadd},
    {"isub", isub},
    {"imul", imul},
    {"idiv", idiv},
    {"ifloordiv", ifloordiv},
    {"imod", imod},
    {"ipow", ipow},
    {"imatmul", imatmul},
    {"iand", iboth},
    {"ior", ieither},
    {"ixor", idiffer},
    {"ilshift", ileft},
    {"irshift", iright},
    {"neg", neg},
    {"pos", pos},
    {"invert", invert},
    {"not", no},
    {"eq", eq},
    {"ne", ne},
    {"lt", lt},
    {"gt", gt},
    {"le", le},
    {"ge", ge},
    {"is", same},
    {"isnot", other},
    {"in", within},
    {"notin", outside},
    {"getitem", get_item},
    {"setitem", put_item},
    {"delitem", drop_item},
    {"slice", make_slice},
    {"list", make_list},
    {"tuple", make_tuple},
    {"dict", make_dict},
    {"named", make_named},
    {"append", append},
    {"entry", set_entry},
    {"copy", copy},
    {"getattr", get_attribute},
    {"setattr", set_attribute},
    {"hasattr", has_attribute},
    {"call", invoke},
    {"raise", fail},
    {"join", joined},
    {"weight", weight},
    {"find_op", op_value},
    {"op", call_op_of},
    {"format", format},
    {"isinstance", is_instance},
};

}  // namespace

Builtin find_function(std::string_view name);  // functions.cpp

Builtin find_builtin(std::string_view name) {
  for (const Entry& e : table)
    if (e.name == name) return e.run;
  return find_function(name);
}

}  // namespace adjoin::graph::script

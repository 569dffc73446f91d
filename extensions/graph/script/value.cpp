// extensions/graph/script/value.cpp: values compared, hashed, walked over.
#include "value.hpp"

#include <cmath>
#include <mutex>
#include <set>

#include "code.hpp"

namespace adjoin::graph::script {

const Names* names(const std::string& type, const std::vector<std::string>& fields) {
  static std::mutex lock;
  static std::map<std::pair<std::string, std::vector<std::string>>, std::unique_ptr<Names>> known;
  std::lock_guard held(lock);
  auto& found = known[{type, fields}];
  if (!found) {
    const bool enumerated = type.starts_with("enum ");
    found = std::make_unique<Names>(Names{enumerated ? type.substr(5) : type, fields, enumerated});
  }
  return found.get();
}

Value list(std::vector<Value> items) { return std::make_shared<List>(List{std::move(items)}); }
Value tuple(std::vector<Value> items, const Names* named) {
  return std::make_shared<Tuple>(Tuple{std::move(items), named});
}

std::string type_name(const Value& v) {
  static const char* const plain[] = {"nothing",  "NoneType", "bool",   "int",     "float",
                                      "complex",  "str",      "dtype",  "device",  "layout",
                                      "ellipsis", "range",    "Tensor", "list",    "tuple",
                                      "dict",     "object",   "slice",  "function"};
  if (auto* t = in<Tuple>(v); t && t->named) return t->named->type;
  if (auto* o = in<Object>(v)) return o->of->name;
  if (auto* t = std::get_if<Tag>(&v); t && t->tag == AJ_MEMORY_FORMAT) return "memory_format";
  return plain[v.index()];
}

bool is_whole(const Value& v) { return is<int64_t>(v) || is<bool>(v); }
bool is_number(const Value& v) {
  return is_whole(v) || is<double>(v) || is<std::complex<double>>(v);
}

int64_t whole(const Value& v, const char* who) {
  if (auto* i = std::get_if<int64_t>(&v)) return *i;
  if (auto* b = std::get_if<bool>(&v)) return *b;
  if (auto* t = std::get_if<Tensor>(&v)) {
    if (t->defined() && t->numel() == 1 && !t->is_floating_point() && !t->is_complex())
      return t->item<int64_t>();
  }
  type_error(who, ": an int is wanted, not ", type_name(v));
}

double real(const Value& v, const char* who) {
  if (auto* d = std::get_if<double>(&v)) return *d;
  if (is_whole(v)) return double(whole(v, who));
  if (auto* t = std::get_if<Tensor>(&v); t && t->defined() && t->numel() == 1 && !t->is_complex())
    return t->item<double>();
  type_error(who, ": a float is wanted, not ", type_name(v));
}

std::complex<double> complex_of(const Value& v) {
  if (auto* z = std::get_if<std::complex<double>>(&v)) return *z;
  return real(v, "complex");
}

bool apart(const Tuple& a, const Tuple& b) {
  const bool x = a.named && a.named->enumerated, y = b.named && b.named->enumerated;
  return x != y || (x && a.named != b.named);
}

bool same_object(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (Tuple* t = in<Tuple>(a); t && t->named && t->named->enumerated) return equal(a, b);
  return std::visit(
      [&]<class T>(const T& x) {
        const T& y = std::get<T>(b);
        if constexpr (requires { x.get(); })
          return x.get() == y.get();
        else
          return equal(a, b);
      },
      a);
}

namespace {

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (!same_object(a[i], b[i]) && !equal(a[i], b[i])) return false;
  return true;
}

bool equal_tensors(const Value& a, const Value& b) {
  auto number = [](const Value& v) {
    if (auto* t = std::get_if<Tensor>(&v)) return value(*t);
    if (is<double>(v)) return value(std::get<double>(v));
    return value(whole(v, "=="));
  };
  if (!(is<Tensor>(a) || is_number(a)) || !(is<Tensor>(b) || is_number(b))) return false;
  static Op eq("eq");
  aj_value args[2] = {number(a), number(b)};
  return kit::run(eq.get(), args, 2).item<bool>();
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (is_whole(a) && is_whole(b)) return whole(a, "==") == whole(b, "==");
  if (is_number(a) && is_number(b)) {
    if (is<double>(a) && is_whole(b)) return equal(b, a);
    if (is_whole(a) && is<double>(b)) {  // without rounding
      const double x = std::get<double>(b);
      return x >= -0x1p63 && x < 0x1p63 && std::trunc(x) == x && int64_t(x) == whole(a, "==");
    }
    return complex_of(a) == complex_of(b);
  }
  if (is<Tensor>(a) || is<Tensor>(b)) return equal_tensors(a, b);
  if (a.index() != b.index()) return false;
  if (auto* s = std::get_if<std::string>(&a)) return *s == std::get<std::string>(b);
  if (auto* d = std::get_if<DLDataType>(&a)) return *d == std::get<DLDataType>(b);
  if (auto* d = std::get_if<DLDevice>(&a)) return *d == std::get<DLDevice>(b);
  if (auto* t = std::get_if<Tag>(&a)) {
    const Tag& u = std::get<Tag>(b);
    return t->tag == u.tag && t->i == u.i;
  }
  if (is<Range>(a)) return equal_items(items_of(a), items_of(b));
  if (auto* l = in<List>(a)) return equal_items(l->items, in<List>(b)->items);
  if (auto* t = in<Tuple>(a))
    return !apart(*t, *in<Tuple>(b)) && equal_items(t->items, in<Tuple>(b)->items);
  if (auto* d = in<Dict>(a)) {
    Dict* e = in<Dict>(b);
    if (d->items.size() != e->items.size()) return false;
    for (auto& [k, v] : d->items) {
      Value* other = e->find(k);
      if (!other || !(same_object(v, *other) || equal(v, *other))) return false;
    }
    return true;
  }
  if (auto* c = in<Callee>(a)) return c->name == in<Callee>(b)->name;
  if (holds<Object>(a)) return in<Object>(a) == in<Object>(b);
  return true;  // None, ...
}

bool less(const Value& a, const Value& b) {
  if (is_whole(a) && is_whole(b)) return whole(a, "<") < whole(b, "<");
  if (is_number(a) && is_number(b) && !is<std::complex<double>>(a) &&
      !is<std::complex<double>>(b)) {
    // A whole number and a float are compared without rounding.
    if (is<double>(a) && is<double>(b)) return std::get<double>(a) < std::get<double>(b);
    const double x = std::get<double>(is<double>(a) ? a : b);
    const int64_t i = whole(is<double>(a) ? b : a, "<");
    if (!(x >= -0x1p63 && x < 0x1p63)) return is<double>(a) ? x < 0 : x > 0;
    const int64_t cut = int64_t(x);
    if (is<double>(a)) return cut != i ? cut < i : x < double(cut);
    return cut != i ? i < cut : x > double(cut);
  }
  if (is<std::string>(a) && is<std::string>(b))
    return std::get<std::string>(a) < std::get<std::string>(b);
  if ((holds<List>(a) && holds<List>(b)) || (holds<Tuple>(a) && holds<Tuple>(b))) {
    std::vector<Value> x = items_of(a), y = items_of(b);
    for (size_t i = 0; i < std::min(x.size(), y.size()); i++)
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    return x.size() < y.size();
  }
  if (is<Tensor>(a) || is<Tensor>(b)) return real(a, "<") < real(b, "<");
  type_error("'<' not supported between instances of '", type_name(a), "' and '", type_name(b),
             "'");
}

bool truth(const Value& v) {
  if (auto* b = std::get_if<bool>(&v)) return *b;
  if (auto* i = std::get_if<int64_t>(&v)) return *i != 0;
  if (auto* d = std::get_if<double>(&v)) return *d != 0;
  if (auto* z = std::get_if<std::complex<double>>(&v)) return *z != 0.0;
  if (auto* s = std::get_if<std::string>(&v)) return !s->empty();
  if (is<None>(v)) return false;
  if (auto* t = std::get_if<Tensor>(&v)) {
    if (t->numel() != 1)
      raise_as("RuntimeError", AJ_INVALID_ARGUMENT, "bool: a tensor of ", t->numel(),
               " elements is neither true nor false; use any() or all()");
    return t->item<bool>();
  }
  if (holds<List>(v) || holds<Tuple>(v) || holds<Dict>(v) || is<Range>(v)) return length(v) != 0;
  return true;
}

int64_t length(const Value& v) {
  if (auto* l = in<List>(v)) return int64_t(l->items.size());
  if (auto* t = in<Tuple>(v)) return int64_t(t->items.size());
  if (auto* d = in<Dict>(v)) return int64_t(d->items.size());
  if (auto* r = std::get_if<Range>(&v)) return r->count();
  if (auto* s = std::get_if<std::string>(&v)) {  // characters, not bytes
    int64_t n = 0;
    for (char c : *s) n += (uint8_t(c) & 0xc0) != 0x80;
    return n;
  }
  if (auto* t = std::get_if<Tensor>(&v)) {
    if (!t->ndim()) type_error("len() of a 0-d tensor");
    return t->shape()[0];
  }
  if (auto* o = in<Object>(v); o && o->of->container != Class::Container::none)
    return int64_t(children(*o).size());
  type_error("object of type '", type_name(v), "' has no len()");
}

std::vector<Value> items_of(const Value& v) {
  if (auto* l = in<List>(v)) return l->items;
  if (auto* t = in<Tuple>(v)) return t->items;
  std::vector<Value> out;
  if (auto* d = in<Dict>(v)) {
    for (auto& [k, x] : d->items) out.push_back(k);
    return out;
  }
  if (auto* r = std::get_if<Range>(&v)) {
    for (int64_t i = 0, n = r->count(); i < n; i++) out.emplace_back(r->start + i * r->step);
    return out;
  }
  if (auto* s = std::get_if<std::string>(&v)) {
    for (char c : *s)
      if ((uint8_t(c) & 0xc0) != 0x80)
        out.emplace_back(std::string(1, c));
      else if (!out.empty())
        std::get<std::string>(out.back()) += c;
    return out;
  }
  if (auto* t = std::get_if<Tensor>(&v)) {
    if (!t->ndim()) type_error("iteration over a 0-d tensor");
    static Op unbind("unbind");
    aj_value arg = value(*t);
    for (Tensor& x : run_as<std::vector<Tensor>>(unbind.get(), &arg, 1)) out.emplace_back(x);
    return out;
  }
  if (auto* o = in<Object>(v); o && o->of->container != Class::Container::none) {
    for (auto& [name, child] : children(*o))
      out.push_back(o->of->container == Class::Container::dict ? Value(name) : child);
    return out;
  }
  type_error("'", type_name(v), "' object is not iterable");
}

size_t Hash::operator()(const Value& v) const {
  if (is_whole(v)) return std::hash<int64_t>()(whole(v, "hash"));
  if (auto* d = std::get_if<double>(&v)) {
    if (*d >= -0x1p63 && *d < 0x1p63 && std::trunc(*d) == *d)
      return std::hash<int64_t>()(int64_t(*d));
    return std::hash<double>()(*d);
  }
  if (auto* s = std::get_if<std::string>(&v)) return std::hash<std::string>()(*s);
  if (is<None>(v)) return 1;
  if (auto* z = std::get_if<std::complex<double>>(&v))
    return z->imag() == 0 ? (*this)(Value(z->real()))
                          : (*this)(Value(z->real())) * 1000003 ^ (*this)(Value(z->imag()));
  if (auto* d = std::get_if<DLDataType>(&v)) return size_t(d->code) * 4096 + d->bits;
  if (auto* t = std::get_if<Tensor>(&v)) return std::hash<void*>()(t->get());
  if (auto* t = in<Tuple>(v)) {
    size_t h = 7;
    for (const Value& x : t->items) h = h * 1000003 ^ (*this)(x);
    return h;
  }
  if (auto* o = in<Object>(v)) return std::hash<void*>()(o);
  type_error("unhashable type: '", type_name(v), "'");
}

bool Equal::operator()(const Value& a, const Value& b) const {
  if (is<Tensor>(a) || is<Tensor>(b)) return same_object(a, b);
  return equal(a, b);
}

Value* Dict::find(const Value& key) {
  auto at = places_.find(key);
  return at == places_.end() ? nullptr : &items[at->second].second;
}

void Dict::set(const Value& key, Value v) {
  if (Value* old = find(key)) {
    *old = std::move(v);
    return;
  }
  places_.emplace(key, items.size());
  items.emplace_back(key, std::move(v));
}

bool Dict::erase(const Value& key) {
  auto at = places_.find(key);
  if (at == places_.end()) return false;
  const size_t place = at->second;
  places_.erase(at);
  items.erase(items.begin() + std::ptrdiff_t(place));
  for (auto& [k, p] : places_) p -= p > place;
  return true;
}

}  // namespace adjoin::graph::script

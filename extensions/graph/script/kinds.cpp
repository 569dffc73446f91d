// extensions/graph/script/kinds.cpp: annotations: what they say, and whether a value is so.
#include <algorithm>

#include "code.hpp"

namespace adjoin::graph::script {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  Kind whole() {
    Kind k = one(0);
    skip();
    if (at_ != text_.size()) wrong();
    return k;
  }

 private:
  [[noreturn]] void wrong() const {
    raise(AJ_INVALID_ARGUMENT, "the annotation '", text_, "' is not understood");
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  bool eat(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  Kind one(int depth) {
    if (depth > 32) wrong();
    skip();
    const size_t from = at_;
    while (at_ < text_.size() && text_[at_] != '[' && text_[at_] != ']' && text_[at_] != ',' &&
           text_[at_] != ' ')
      at_++;
    Kind k{std::string(text_.substr(from, at_ - from)), {}};
    if (k.name.empty()) wrong();
    if (!eat('[')) return k;
    while (!eat(']')) {
      if (!k.of.empty() && !eat(',')) wrong();
      if (k.of.empty() && k.name == "Tuple" && eat(']')) break;
      k.of.push_back(one(depth + 1));
    }
    return k;
  }
  std::string_view text_;
  size_t at_ = 0;
};

bool admit_all(std::vector<Value>& items, const Kind& k) {
  return std::all_of(items.begin(), items.end(), [&](Value& v) { return admit(v, k); });
}

bool admit_list(Value& v, const Kind& k) {
  if (Tuple* t = in<Tuple>(v)) v = list(t->items);
  List* l = in<List>(v);
  if (!l) return false;
  if (k.of.empty()) return true;
  // A list that fits stays itself: others may hold it.
  std::vector<Value> items = l->items;
  if (!admit_all(items, k.of[0])) return false;
  l->items = std::move(items);
  return true;
}

bool admit_tuple(Value& v, const Kind& k) {
  Tuple* t = in<Tuple>(v);
  if (!t) return false;
  if (k.of.empty()) return true;
  const bool any = k.of.size() == 2 && k.of[1].name == "...";
  if (!any && k.of.size() != t->items.size()) return false;
  std::vector<Value> items = t->items;
  for (size_t i = 0; i < items.size(); i++)
    if (!admit(items[i], k.of[any ? 0 : i])) return false;
  v = tuple(std::move(items), t->named);
  return true;
}

bool admit_dict(Value& v, const Kind& k) {
  Dict* d = in<Dict>(v);
  if (!d) return false;
  for (auto& [key, x] : d->items) {
    Value copy = key;
    if (k.of.size() == 2 && !(admit(copy, k.of[0]) && admit(x, k.of[1]))) return false;
  }
  return true;
}

}  // namespace

Kind read_kind(std::string_view text) { return text.empty() ? Kind() : Reader(text).whole(); }

bool admit(Value& v, const Kind& k) {
  const std::string& n = k.name;
  if (n.empty() || n == "Any") return true;
  if (n == "Optional") return is<None>(v) || k.of.empty() || admit(v, k.of[0]);
  if (n == "Union")
    return std::any_of(k.of.begin(), k.of.end(), [&](const Kind& one) {
      Value copy = v;
      if (!admit(copy, one)) return false;
      v = std::move(copy);
      return true;
    });
  if (n == "Tensor") return is<Tensor>(v);
  // A tensor without dimensions is a number where one is asked for.
  auto* t = std::get_if<Tensor>(&v);
  if (t && (n == "int" || n == "float") && !t->ndim() && !t->is_complex() &&
      (n == "float" || !t->is_floating_point()))
    v = n == "int" ? Value(whole(v, "int")) : Value(real(v, "float"));
  if (n == "int") return is<int64_t>(v) || is<bool>(v);
  if (n == "bool") return is<bool>(v);
  if (n == "str") return is<std::string>(v);
  if (n == "None") return is<None>(v);
  if (n == "float") {
    if (is_whole(v)) v = real(v, "float");
    return is<double>(v);
  }
  if (n == "complex") {
    if (is_number(v)) v = complex_of(v);
    return is<std::complex<double>>(v);
  }
  if (n == "number") return is_number(v);
  if (n == "List") return admit_list(v, k);
  if (n == "Tuple") return admit_tuple(v, k);
  if (n == "Dict") return admit_dict(v, k);
  if (n == "dtype") return is<DLDataType>(v);
  if (n == "device") {
    if (auto* s = std::get_if<std::string>(&v)) v = device(*s);
    return is<DLDevice>(v);
  }
  if (auto* o = in<Object>(v))
    return o->of->name == n ||
           std::find(o->of->bases.begin(), o->of->bases.end(), n) != o->of->bases.end();
  if (auto* t = in<Tuple>(v)) return t->named && t->named->type == n;
  return holds<Callee>(v) && n == "Callable";
}

std::vector<std::pair<std::string, Value>> children(const Object& o) {
  std::vector<std::pair<std::string, Value>> out;
  for (auto& [name, v] : o.fields) {
    Object* child = in<Object>(v);
    if ((child && child->of->module) ||
        (is<Tensor>(v) && o.of->container != Class::Container::none))
      out.emplace_back(name, v);
  }
  return out;
}

void weights_to_fields(Program& p) {
  for (const Unit::Place& at : p.script->places)
    at.object->set(at.field, p.weights[at.weight].tensor);
}

void fields_to_weights(Program& p) {
  for (const Unit::Place& at : p.script->places)
    if (Value* v = at.object->find(at.field))
      if (auto* t = std::get_if<Tensor>(v); t && t->defined()) {
        p.weights[at.weight].tensor = *t;
        p.values[p.weights[at.weight].value].type = {
            false, t->dtype(), {t->shape().begin(), t->shape().end()}};
      }
}

}  // namespace adjoin::graph::script

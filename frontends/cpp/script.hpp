// adjoin/script.hpp: scripted programs (adjoin.jit.script, jit.save), called with values:
//
//   adjoin::Script model("model.aj");
//   adjoin::Value found = model.call("forward", {x, 3, "mean"});
//   std::cout << found.text();
#ifndef ADJOIN_SCRIPT_HPP
#define ADJOIN_SCRIPT_HPP
// clang-format off
#include "program.hpp"  // before the kit
// clang-format on
#include <adjoin/abi/script.h>

namespace AJ_HIDDEN adjoin {

namespace detail {
inline const aj_scripts& scripts() {
  static const auto* found = static_cast<const aj_scripts*>(aj_get_interface("x.script", 1));
  if (!found)
    kit::raise(AJ_UNAVAILABLE,
               "script: libaj_graph.so is not found; it stands beside the plugins of libadjoin");
  return *found;
}
}  // namespace detail

// What Python has: None, a number, a text, a tensor, a list, tuple or dictionary of these.
class Value {
 public:
  Value() = default;  // None
  Value(bool b) : v_{AJ_BOOL, 0, {b}} {}
  Value(int64_t i) : v_{AJ_INT, 0, {i}} {}
  Value(int i) : Value(int64_t(i)) {}
  Value(double d) : v_{AJ_FLOAT, 0, {0}} { v_.v.f = d; }
  Value(std::string_view s) : v_{AJ_STRING_OBJ, 0, {0}} {
    kit::check(kit::env.core->string_new(kit::str(s), &v_.v.object));
  }
  Value(const char* s) : Value(std::string_view(s)) {}
  Value(const std::string& s) : Value(std::string_view(s)) {}
  Value(const Tensor& t) : v_{t.defined() ? AJ_TENSOR : AJ_NONE, 0, {0}} {
    v_.v.tensor = Tensor(t).take();
  }
  Value(const Value& other) : v_(other.v_) {
    if (v_.tag >= AJ_TENSOR) kit::env.core->retain(v_.v.object);
  }
  Value(Value&& other) noexcept : v_(std::exchange(other.v_, aj_value{})) {}
  Value& operator=(Value other) noexcept {
    std::swap(v_, other.v_);
    return *this;
  }
  ~Value() {
    if (v_.tag >= AJ_TENSOR) kit::env.core->release(v_.v.object);
  }
  static Value steal(aj_value v) {
    Value out;
    out.v_ = v;
    return out;
  }
  static Value list(const std::vector<Value>& items) { return made(AJ_VALUE_LIST, items); }
  static Value tuple(const std::vector<Value>& items) { return made(AJ_VALUE_TUPLE, items); }
  // Keys and values by turns.
  static Value dict(const std::vector<Value>& items) { return made(AJ_VALUE_DICT, items); }

  const aj_value& get() const { return v_; }
  bool is_none() const { return v_.tag == AJ_NONE; }
  bool to_bool() const { return scalar().to_bool(); }
  int64_t to_int() const { return scalar().to_int(); }
  double to_double() const { return scalar().to_double(); }
  std::string to_string() const {
    if (v_.tag != AJ_STRING_OBJ) kit::raise(AJ_WRONG_TYPE, "value: it is no text but ", text());
    return std::string(kit::view_of(kit::env.core->string_get(v_.v.object)));
  }
  Tensor to_tensor() const {
    if (v_.tag != AJ_TENSOR) kit::raise(AJ_WRONG_TYPE, "value: it is no tensor but ", text());
    return Tensor::borrow(v_.v.tensor);
  }
  // Of a list or tuple; of a dictionary, a named tuple or an object keys and values by turns.
  std::vector<Value> items() const {
    int32_t kind;
    aj_str name;
    const aj_value* all;
    uint32_t n;
    if (v_.tag != AJ_OBJECT) kit::raise(AJ_WRONG_TYPE, "value: it has no items: ", text());
    kit::check(detail::scripts().value_get(v_.v.object, &kind, &name, &all, &n));
    std::vector<Value> out;
    for (uint32_t i = 0; i < n; ++i) {
      if (all[i].tag >= AJ_TENSOR) kit::env.core->retain(all[i].v.object);
      out.push_back(steal(all[i]));
    }
    return out;
  }
  Value operator[](size_t i) const { return items().at(i); }
  Value operator[](std::string_view key) const {
    const std::vector<Value> all = items();
    for (size_t i = 0; i + 1 < all.size(); i += 2)
      if (all[i].v_.tag == AJ_STRING_OBJ && all[i].to_string() == key) return all[i + 1];
    kit::raise(AJ_NOT_FOUND, "value: there is no '", key, "' in ", text());
  }
  // As Python's repr; AJ_TEXT_BITS shows floats to the last bit.
  std::string text(uint32_t flags = 0) const {
    aj_object* o = nullptr;
    kit::check(detail::scripts().value_text(&v_, flags, &o));
    std::string shown(kit::view_of(kit::env.core->string_get(o)));
    kit::env.core->release(o);
    return shown;
  }

 private:
  static Value made(int32_t kind, const std::vector<Value>& items) {
    std::vector<aj_value> all;
    for (const Value& v : items) all.push_back(v.v_);
    aj_value v{AJ_OBJECT, 0, {0}};
    kit::check(detail::scripts().value_new(kind, aj_str{nullptr, 0}, all.data(),
                                           uint32_t(all.size()), &v.v.object));
    return steal(v);
  }
  Scalar scalar() const { return Scalar::of(v_); }

  aj_value v_{};
};

class Script {
 public:
  explicit Script(std::string_view path) : Script(Program(path)) {}
  explicit Script(Program p) : p_(std::move(p)) {
    if (!is(p_))
      kit::raise(AJ_WRONG_TYPE, "script: the program was captured, not scripted; run it as it is");
  }
  static bool is(const Program& p) { return detail::scripts().scripted(p.get()); }
  static Script parse(std::string_view text) { return Script(Program::parse(text)); }

  // name: "f"; of a module "forward", "layers.0.forward".
  Value call(std::string_view name, const std::vector<Value>& args = {}) const {
    std::vector<aj_value> given;
    for (const Value& v : args) given.push_back(v.get());
    aj_value ret{};
    kit::check(detail::scripts().call(p_.get(), kit::str(name), given.data(),
                                      uint32_t(given.size()), nullptr, 0, &ret));
    return Value::steal(ret);
  }
  Value get(std::string_view path) const {
    aj_value ret{};
    kit::check(detail::scripts().get(p_.get(), kit::str(path), &ret));
    return Value::steal(ret);
  }
  void set(std::string_view path, const Value& v) const {
    kit::check(detail::scripts().set(p_.get(), kit::str(path), &v.get()));
  }
  const Program& program() const { return p_; }

 private:
  Program p_;
};

}  // namespace adjoin
#endif

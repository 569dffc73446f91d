// extensions/graph/script/value.hpp: a value of a scripted program: what Python has under a name.
#pragma once
#include <complex>
#include <unordered_map>
#include <variant>

#include "../ir.hpp"

namespace adjoin::graph::script {

struct List;
struct Tuple;
struct Dict;
struct Object;
struct Slice;
struct Callee;

struct Unset {};  // a variable before its first assignment
struct None {};
struct Ellipsis {};
struct Range {
  int64_t start, stop, step;
  int64_t count() const {
    if (step > 0 ? start >= stop : start <= stop) return 0;
    const uint64_t span =
        step > 0 ? uint64_t(stop) - uint64_t(start) : uint64_t(start) - uint64_t(stop);
    const uint64_t by = step > 0 ? uint64_t(step) : -uint64_t(step);
    return int64_t((span - 1) / by + 1);
  }
};
struct Tag {  // AJ_LAYOUT, AJ_MEMORY_FORMAT
  int32_t tag;
  int64_t i;
};

using Value =
    std::variant<Unset, None, bool, int64_t, double, std::complex<double>, std::string, DLDataType,
                 DLDevice, Tag, Ellipsis, Range, Tensor, std::shared_ptr<List>,
                 std::shared_ptr<Tuple>, std::shared_ptr<Dict>, std::shared_ptr<Object>,
                 std::shared_ptr<Slice>, std::shared_ptr<Callee>>;

template <class T>
bool is(const Value& v) {
  return std::holds_alternative<T>(v);
}
template <class T>
bool holds(const Value& v) {
  return std::holds_alternative<std::shared_ptr<T>>(v);
}
template <class T>
T* in(const Value& v) {
  auto* p = std::get_if<std::shared_ptr<T>>(&v);
  return p ? p->get() : nullptr;
}

// The fields of a named tuple; kept as long as the process.
// A member of an enum is one, too: its type is written "enum Color".
struct Names {
  std::string type;
  std::vector<std::string> fields;
  bool enumerated = false;

  std::string written() const { return enumerated ? "enum " + type : type; }
};
const Names* names(const std::string& type, const std::vector<std::string>& fields);

struct List {
  std::vector<Value> items;
};
struct Tuple {
  std::vector<Value> items;
  const Names* named = nullptr;
};
struct Slice {
  std::optional<int64_t> start, stop, step;
};

struct Hash {
  size_t operator()(const Value& v) const;
};
struct Equal {
  bool operator()(const Value& a, const Value& b) const;
};

// In the order of insertion, as Python's.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  Value* find(const Value& key);
  void set(const Value& key, Value v);
  bool erase(const Value& key);

 private:
  std::unordered_map<Value, size_t, Hash, Equal> places_;
};

struct Class;
struct Object {
  const Class* of;
  std::vector<std::pair<std::string, Value>> fields;
  Value* find(std::string_view name) {
    for (auto& [n, v] : fields)
      if (n == name) return &v;
    return nullptr;
  }
  void set(std::string_view name, Value v) {
    if (Value* old = find(name))
      *old = std::move(v);
    else
      fields.emplace_back(name, std::move(v));
  }
};

// What is called: an op, a builtin, a function or a class of the program, a method of a value.
struct Callee {
  enum class Kind { op, builtin, function, type, method };
  Kind kind;
  std::string name;
  Value self;  // of a method
};

Value list(std::vector<Value> items);
Value tuple(std::vector<Value> items, const Names* named = nullptr);

std::string type_name(const Value& v);
bool is_number(const Value& v);                   // bool, int, float, complex
bool is_whole(const Value& v);                    // bool, int
int64_t whole(const Value& v, const char* who);   // also a tensor of one whole number
double real(const Value& v, const char* who);     // also a tensor of one number
std::complex<double> complex_of(const Value& v);  // a number

bool same_object(const Value& a, const Value& b);  // Python's `is`
bool apart(const Tuple& a, const Tuple& b);  // members of two enums, or of one and something else
bool equal(const Value& a, const Value& b);  // of all but objects of classes
bool less(const Value& a, const Value& b);
bool truth(const Value& v);
int64_t length(const Value& v);
// The items of what can be walked over, in a vector of their own.
std::vector<Value> items_of(const Value& v);

// As Python's repr and str. The bits of a tensor are told where `bits`.
std::string repr(const Value& v, bool bits = false);
std::string str_of(const Value& v);
std::string real_text(double x);

template <class... Part>
[[noreturn]] void type_error(const Part&... parts) {
  raise_as("TypeError", AJ_WRONG_TYPE, parts...);
}
template <class... Part>
[[noreturn]] void value_error(const Part&... parts) {
  raise_as("ValueError", AJ_INVALID_ARGUMENT, parts...);
}
template <class... Part>
[[noreturn]] void index_error(const Part&... parts) {
  raise_as("IndexError", AJ_OUT_OF_RANGE, parts...);
}

}  // namespace adjoin::graph::script

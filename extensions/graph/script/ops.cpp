// extensions/graph/script/ops.cpp: values become the arguments of an op, as Python's binding does
// it: by place or by name, the first overload that takes them.
#include <adjoin/kit/words.hpp>
#include <list>
#include <mutex>

#include "machine.hpp"
#include "signature.hpp"

namespace adjoin::graph::script {
namespace {

constexpr size_t kMostArgs = 40, kMostResults = 8;

bool takes_ints(const aj_param& p) {
  return p.base == AJ_PARAM_INT || p.base == AJ_PARAM_DIM || p.base == AJ_PARAM_SIZE;
}

Signature signature_of(const aj_op* op, const aj_op_info& info) {
  Signature s;
  s.op = op;
  s.facts = &facts_of(op);
  const std::string_view tags = view_of(info.tags);
  const auto& params = s.facts->params;
  for (size_t i = 0; i < params.size(); i++) {
    if (!(params[i].flags & AJ_PARAM_KEYWORD_ONLY)) s.positional = i + 1;
    s.generator |= params[i].base == AJ_PARAM_GENERATOR;
  }
  const size_t last = s.positional - 1;
  if (s.positional && params[last].list) {
    const bool named = has_word(tags, "varargs:" + std::string(view_of(params[last].name)));
    const bool after =
        last == 0 || (last == 1 && params[0].base <= AJ_PARAM_OPERAND && !params[0].list);
    if (named || (takes_ints(params[last]) && after && params[last].list == -1)) s.varargs = last;
  }
  s.factory = has_word(tags, "factory");
  s.method_only = has_word(tags, "method-only");
  s.function_only = has_word(tags, "function-only");
  s.in_place = info.flags & AJ_INFO_IN_PLACE;
  s.network = view_of(info.name).starts_with("nn::");
  return s;
}

// One call's arguments: what they point to lives here. Empty lists cost nothing.
struct Frame {
  aj_value args[kMostArgs];
  std::list<std::vector<int64_t>> ints;
  std::list<std::vector<double>> reals;
  std::list<std::vector<uint8_t>> bools;
  std::list<std::vector<aj_tensor*>> tensors;
  std::list<std::complex<double>> complexes;
  std::list<std::vector<Value>> held;
  bool in_place = false, wants_grad = false;
};

bool number(const Value& v, aj_value* out, Frame& f) {
  if (auto* b = std::get_if<bool>(&v)) return *out = value(*b), true;
  if (auto* i = std::get_if<int64_t>(&v)) return *out = value(*i), true;
  if (auto* d = std::get_if<double>(&v)) return *out = value(*d), true;
  if (auto* z = std::get_if<std::complex<double>>(&v)) {
    f.complexes.push_back(*z);
    *out = {AJ_COMPLEX, 0, {0}};
    out->v.c128 = reinterpret_cast<const double*>(&f.complexes.back());
    return true;
  }
  return false;
}

bool number_of_tensor(const Value& v, aj_value* out, Frame& f) {
  auto* t = std::get_if<Tensor>(&v);
  if (!t || t->ndim() || t->requires_grad()) return false;
  return number(tensor_items(*t), out, f);
}

bool int_of(const Value& v, int64_t* out) {
  if (auto* i = std::get_if<int64_t>(&v)) return *out = *i, true;
  auto* t = std::get_if<Tensor>(&v);
  if (!t || t->ndim() || t->is_floating_point() || t->is_complex() || t->dtype() == boolean)
    return false;
  *out = t->item<int64_t>();
  return true;
}

const std::vector<Value>* sequence(const Value& v, Frame& f) {
  if (auto* l = in<List>(v)) return &l->items;
  if (auto* t = in<Tuple>(v)) return &t->items;
  if (is<Range>(v)) return f.held.emplace_back(items_of(v)), &f.held.back();
  return nullptr;
}

bool list_argument(const aj_param& p, const Value& v, aj_value* out, Frame& f) {
  const std::vector<Value>* all = sequence(v, f);
  const size_t n = all ? all->size() : p.list > 0 ? size_t(p.list) : 1;
  auto at = [&](size_t i) -> const Value& { return all ? (*all)[i] : v; };
  *out = {AJ_NONE, uint32_t(n), {0}};
  if (p.base == AJ_PARAM_TENSOR || p.base == AJ_PARAM_OPERAND) {
    if (!all) return false;
    auto& list = f.tensors.emplace_back();
    for (const Value& x : *all) {
      auto* t = std::get_if<Tensor>(&x);
      if (!t && !(is<None>(x) && p.flags & AJ_PARAM_OPTIONAL_ITEMS)) return false;
      list.push_back(t ? t->get() : nullptr);
    }
    out->tag = AJ_TENSORS, out->v.tensors = list.data();
  } else if (takes_ints(p)) {
    auto& list = f.ints.emplace_back(n);
    for (size_t i = 0; i < n; i++)
      if (!int_of(at(i), &list[i])) return false;
    *out = value(Ints(list.data(), n));
    static const int64_t none = 0;
    if (!n) out->v.ints = &none;
  } else if (p.base == AJ_PARAM_FLOAT || p.base == AJ_PARAM_SCALAR) {
    auto& list = f.reals.emplace_back();
    for (size_t i = 0; i < n; i++) {
      if (!is_number(at(i)) || is<std::complex<double>>(at(i))) return false;
      list.push_back(real(at(i), "float"));
    }
    out->tag = AJ_FLOATS, out->v.floats = list.data();
  } else if (p.base == AJ_PARAM_BOOL) {
    auto& list = f.bools.emplace_back();
    for (size_t i = 0; i < n; i++) {
      if (!is<bool>(at(i))) return false;
      list.push_back(std::get<bool>(at(i)));
    }
    out->tag = AJ_BOOLS, out->v.bools = list.data();
  } else {
    return false;
  }
  return true;
}

bool argument(const aj_param& p, const Value& v, aj_value* out, Frame& f) {
  if (is<None>(v)) {
    *out = {};
    return p.flags & AJ_PARAM_OPTIONAL;
  }
  if (p.list) return list_argument(p, v, out, f);
  const Tensor* t = std::get_if<Tensor>(&v);
  switch (p.base) {
    case AJ_PARAM_TENSOR:
      return t && (*out = value(*t), true);
    case AJ_PARAM_OPERAND:
      return t ? (*out = value(*t), true) : number(v, out, f);
    case AJ_PARAM_SCALAR:
      return number(v, out, f) || number_of_tensor(v, out, f);
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      *out = {AJ_INT, 0, {0}};
      return int_of(v, &out->v.i);
    case AJ_PARAM_FLOAT:
      if (!number(v, out, f) && !number_of_tensor(v, out, f)) return false;
      if (out->tag == AJ_COMPLEX) return false;
      if (out->tag != AJ_FLOAT) *out = value(double(out->v.i));
      return true;
    case AJ_PARAM_BOOL:
      return is<bool>(v) && (*out = value(std::get<bool>(v)), true);
    case AJ_PARAM_STR: {
      auto* s = std::get_if<std::string>(&v);
      return s && (*out = value(std::string_view(*s)), true);
    }
    case AJ_PARAM_DTYPE:
      return is<DLDataType>(v) && (*out = value(std::get<DLDataType>(v)), true);
    case AJ_PARAM_DEVICE:
      if (auto* s = std::get_if<std::string>(&v)) return *out = value(device(*s)), true;
      return is<DLDevice>(v) && (*out = value(std::get<DLDevice>(v)), true);
    case AJ_PARAM_LAYOUT:
    case AJ_PARAM_MEMORY_FORMAT: {
      const int32_t tag = p.base == AJ_PARAM_LAYOUT ? AJ_LAYOUT : AJ_MEMORY_FORMAT;
      auto* given = std::get_if<Tag>(&v);
      return given && given->tag == tag && (*out = {tag, 0, {given->i}}, true);
    }
    default:
      return false;
  }
}

// What people coming from NumPy write.
std::string_view alias(std::string_view name) {
  if (name == "axis") return "dim";
  if (name == "keepdims") return "keepdim";
  if (name == "self" || name == "x") return "input";
  return name;
}

bool common(const Signature& s, std::string_view name, const Value& v, Frame& f) {
  if (name == "inplace" && (s.network || s.in_place)) return f.in_place = truth(v), true;
  if (!s.factory) return false;
  if (name == "requires_grad") return f.wants_grad = truth(v), true;
  if (name == "pin_memory") return true;
  if (name == "layout")
    return is<None>(v) || (is<Tag>(v) && std::get<Tag>(v).i == AJ_LAYOUT_STRIDED);
  return false;
}

// Do the arguments fit? `why` says which does not.
bool bind_arguments(const Signature& s, const std::vector<Value>& args, const Named& named,
                    Frame& f, std::string* why) {
  const auto& params = s.facts->params;
  const size_t n = params.size();
  if (n > kMostArgs) return false;
  bool given[kMostArgs] = {};
  size_t bound = args.size();
  if (s.varargs < n && args.size() > s.varargs) {
    bound = s.varargs + 1;
    Value rest = args[s.varargs];
    const bool alone =
        args.size() == bound && argument(params[s.varargs], rest, &f.args[s.varargs], f);
    if (!alone) {
      f.held.emplace_back(args.begin() + std::ptrdiff_t(s.varargs), args.end());
      rest = list(f.held.back());
      if (!argument(params[s.varargs], rest, &f.args[s.varargs], f))
        return *why = text("'", params[s.varargs].name, "'"), false;
    }
    given[s.varargs] = true;
  } else if (args.size() > s.positional) {
    return *why = text("it takes ", uint64_t(s.positional), " positional arguments"), false;
  }
  for (size_t i = 0; i < bound; i++) {
    if (given[i]) continue;
    if (!argument(params[i], args[i], &f.args[i], f))
      return *why = text("'", params[i].name, "' is ", type_name(args[i])), false;
    given[i] = true;
  }
  for (auto& [name, v] : named) {
    size_t at = 0;
    while (at < n && view_of(params[at].name) != name) at++;
    if (at == n)
      for (at = 0; at < n && view_of(params[at].name) != alias(name);) at++;
    if (at == n) {
      if (common(s, name, v, f)) continue;
      return *why = "there is no '" + name + "'", false;
    }
    if (given[at] || !argument(params[at], v, &f.args[at], f))
      return *why = text("'", name, given[at] ? "' is given twice" : "' is " + type_name(v)), false;
    given[at] = true;
  }
  for (size_t i = 0; i < n; i++) {
    if (given[i]) continue;
    if (!(params[i].flags & (AJ_PARAM_HAS_DEFAULT | AJ_PARAM_OPTIONAL)))
      return *why = text("'", params[i].name, "' is missing"), false;
    f.args[i] = params[i].flags & AJ_PARAM_HAS_DEFAULT ? params[i].value : aj_value{};
  }
  return true;
}

Value result(aj_value& v) {
  switch (v.tag) {
    case AJ_NONE:
      return None{};
    case AJ_TENSOR:
      return Tensor::steal(std::exchange(v, aj_value{}).v.tensor);
    case AJ_BOOL:
      return v.v.i != 0;
    case AJ_INT:
      return v.v.i;
    case AJ_FLOAT:
      return v.v.f;
    case AJ_DTYPE:
      return v.v.dtype;
    case AJ_DEVICE:
      return v.v.device;
    case AJ_COMPLEX_OBJ:
      return Scalar::of(v).to_complex();
    case AJ_STRING_OBJ:
      return std::string(view_of(core().string_get(v.v.object)));
    case AJ_LIST_OBJ: {
      uint32_t n = 0;
      const aj_value* items = core().list_get(v.v.object, &n);
      std::vector<Value> all;
      for (uint32_t i = 0; i < n; i++) {
        aj_value one = items[i];
        if (one.tag >= AJ_TENSOR) core().retain(const_cast<void*>(one.v.ptr));
        all.push_back(result(one));
        drop(one);
      }
      return tuple(std::move(all));
    }
    default:
      raise(AJ_UNIMPLEMENTED, "a scripted program has no value of tag ", v.tag);
  }
}

Value run(const Signature& s, Frame& f, bool in_place) {
  const auto& results = s.facts->results;
  if (results.size() > kMostResults)
    raise(AJ_UNIMPLEMENTED, s.facts->name, ": more than 8 results");
  struct Rets {
    aj_value v[kMostResults] = {};
    ~Rets() {
      for (aj_value& one : v) drop(one);
    }
  } rets;
  aj_value given[kMostResults] = {};
  if (in_place && f.args[0].tag == AJ_TENSOR) given[0] = f.args[0];
  std::copy(given, given + kMostResults, rets.v);
  aj_status* bad = dispatch().call(s.op, f.args, uint32_t(s.facts->params.size()), rets.v,
                                   uint32_t(results.size()));
  if (bad) {
    for (aj_value& v : rets.v) v = {};
    check(bad);
  }
  std::vector<Value> shown;
  std::vector<std::string> fields;
  for (size_t i = 0; i < results.size(); i++) {
    if (results[i].flags & AJ_PARAM_AUX) continue;
    shown.push_back(result(rets.v[i]));
    fields.emplace_back(view_of(results[i].name));
  }
  if (shown.empty()) return None{};
  if (shown.size() > 1) {
    std::string name = s.facts->name.substr(0, s.facts->name.find('.'));
    if (size_t at = name.find("::"); at != name.npos) name.replace(at, 2, "_");
    return tuple(std::move(shown), names(name, fields));
  }
  if (f.wants_grad) std::get<Tensor>(shown[0]).requires_grad_();
  return std::move(shown[0]);
}

}  // namespace

const std::vector<Signature>* find_op(std::string_view name, bool* in_place) {
  static std::mutex lock;
  static std::map<std::string, std::vector<Signature>, std::less<>> known;
  static uint32_t seen = 0;
  *in_place = false;
  std::lock_guard held(lock);
  auto sync = [] {
    for (uint32_t n = dispatch().op_count(); seen < n; seen++) {
      const aj_op* op = dispatch().op_at(seen);
      aj_op_info info{};
      info.struct_size = sizeof info;
      check(dispatch().op_info(op, &info));
      const std::string whole(view_of(info.name));
      const size_t space = whole.find("::"), from = space == whole.npos ? 0 : space + 2;
      const std::string base = whole.substr(0, whole.find('.', from));
      known[base].push_back(signature_of(op, info));
      if (base != whole) known[whole].push_back(signature_of(op, info));
    }
  };
  sync();
  auto find = [&](std::string_view n) {
    auto at = known.find(n);
    return at == known.end() ? nullptr : &at->second;
  };
  if (auto* op = find(name)) return op;
  if (dispatch().find_op(str(name))) {  // a plugin that has it was loaded
    sync();
    if (auto* op = find(name)) return op;
  }
  if (name.size() < 2 || name.back() != '_') return nullptr;
  auto* op = find(name.substr(0, name.size() - 1));
  *in_place = op != nullptr;
  return op;
}

Value call_op(const std::vector<Signature>& op, bool in_place, const char* name,
              std::vector<Value>& args, Named& named, bool any) {
  std::string why;
  const bool method = name[0] == '.';
  for (const Signature& s : op) {
    if (!any && (method ? s.function_only : s.method_only)) continue;
    if (in_place && !s.in_place) continue;
    Frame f;
    std::string reason;
    if (bind_arguments(s, args, named, f, &reason)) return run(s, f, in_place || f.in_place);
    why += (why.empty() ? "" : "; ") + s.facts->name + ": " + reason;
  }
  type_error(method ? name + 1 : name, "() does not take these arguments: ", why);
}

Value call_named(const char* name, std::vector<Value> args, Named named) {
  bool in_place;
  const auto* op = find_op(name[0] == '.' ? name + 1 : name, &in_place);
  if (!op) raise(AJ_NOT_FOUND, "there is no op '", name, "'");
  return call_op(*op, in_place, name, args, named, true);
}

}  // namespace adjoin::graph::script

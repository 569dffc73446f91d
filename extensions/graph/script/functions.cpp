// extensions/graph/script/functions.cpp: Python's functions, those of math, and what makes tensors
// of Python's numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <mutex>
#include <numeric>

#include "door.hpp"
#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

Value len(Call& c) {
  if (const Function* f = c.machine.special(c.at(0), "__len__"))
    return c.machine.run(*f, {c.at(0)}, {});
  return length(c.at(0));
}

Value range(Call& c) {
  c.most(3);
  const size_t n = c.args.size();
  Range r{0, whole(c.at(n > 1 ? 1 : 0), "range"), 1};
  if (n > 1) r.start = whole(c.at(0), "range");
  if (n > 2) r.step = whole(c.at(2), "range");
  if (!r.step) value_error("range() arg 3 must not be zero");
  return r;
}

Value enumerate(Call& c) {
  const Value* from = c.find(1, "start");
  int64_t i = from ? whole(*from, "enumerate") : 0;
  std::vector<Value> out;
  for (Value& v : c.machine.items(c.at(0))) out.push_back(tuple({i++, std::move(v)}));
  return list(std::move(out));
}

Value zip(Call& c) {
  std::vector<std::vector<Value>> all;
  size_t n = SIZE_MAX;
  for (const Value& v : c.args) {
    all.push_back(c.machine.items(v));
    n = std::min(n, all.back().size());
  }
  const Value* strict = c.find(SIZE_MAX, "strict");
  if (strict && truth(*strict))
    for (auto& one : all)
      if (one.size() != n) value_error("zip() arguments have different lengths");
  std::vector<Value> out;
  for (size_t i = 0; !all.empty() && i < n; i++) {
    std::vector<Value> row;
    for (auto& one : all) row.push_back(one[i]);
    out.push_back(tuple(std::move(row)));
  }
  return list(std::move(out));
}

Value to_int(Call& c) {
  c.most(2);
  if (c.args.empty()) return int64_t(0);
  if (const Function* f = c.machine.special(c.at(0), "__int__"))
    return c.machine.run(*f, {c.at(0)}, {});
  const Value& v = c.at(0);
  if (auto* s = std::get_if<std::string>(&v)) {
    const Value* said = c.find(1, "base");
    int base = said ? int(whole(*said, "int")) : 10;
    if (base != 0 && (base < 2 || base > 36))
      value_error("int() base must be >= 2 and <= 36, or 0");
    size_t from = s->find_first_not_of(" \t\n"), to = s->find_last_not_of(" \t\n");
    std::string digits = from == s->npos ? "" : s->substr(from, to - from + 1);
    const bool minus = digits.starts_with("-");
    if (minus || digits.starts_with("+")) digits.erase(0, 1);
    static constexpr std::pair<char, int> marks[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    for (auto [mark, of] : marks)
      if (digits.size() > 2 && digits[0] == '0' && (digits[1] | 32) == mark &&
          (base == of || !base))
        base = of, digits.erase(0, 2);
    if (!base)
      base = digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos
                 ? 37
                 : 10;
    if (base == 37 || digits.starts_with("-") || digits.starts_with("+"))
      digits.clear();  // 017, +-1
    if (minus && !digits.empty()) digits.insert(0, 1, '-');
    int64_t i = 0;
    const char* end = digits.data() + digits.size();
    auto read = std::from_chars(digits.data(), end, i, base);
    if (digits.empty() || read.ptr != end || read.ec != std::errc())
      value_error("invalid literal for int() with base ", said ? int(whole(*said, "int")) : 10,
                  ": ", repr(v));
    return i;
  }
  if (is_whole(v)) return whole(v, "int");
  if (auto* t = std::get_if<Tensor>(&v); t && t->numel() == 1 && !t->is_floating_point())
    return t->item<int64_t>();
  const double d = real(v, "int()");
  if (std::isnan(d)) value_error("cannot convert float NaN to integer");
  if (!(d > -0x1p63 && d < 0x1p63))
    raise_as("OverflowError", AJ_OUT_OF_RANGE, "cannot convert ", real_text(d),
             " to an int of 64 bits");
  return int64_t(d);
}

Value to_float(Call& c) {
  if (c.args.empty()) return 0.0;
  if (const Function* f = c.machine.special(c.at(0), "__float__"))
    return c.machine.run(*f, {c.at(0)}, {});
  if (auto* s = std::get_if<std::string>(&c.at(0))) {
    size_t from = s->find_first_not_of(" \t\n"), to = s->find_last_not_of(" \t\n");
    std::string t = from == s->npos ? "" : s->substr(from, to - from + 1);
    if (t.starts_with("+") && !t.starts_with("+-")) t.erase(0, 1);
    double d = 0;
    auto read = std::from_chars(t.data(), t.data() + t.size(), d);
    if (read.ec == std::errc::result_out_of_range && read.ptr == t.data() + t.size()) {
      const size_t e = t.find_first_of("eE"), first = t.find_first_of("123456789.");
      const bool small = e != t.npos ? t[e + 1] == '-' : t[first] == '.';
      return std::copysign(small ? 0.0 : INFINITY, t[0] == '-' ? -1.0 : 1.0);
    }
    if (t.empty() || read.ptr != t.data() + t.size())
      value_error("could not convert string to float: ", repr(c.at(0)));
    return d;
  }
  return real(c.at(0), "float()");
}
Value to_bool(Call& c) { return !c.args.empty() && c.machine.is_true(c.at(0)); }
Value to_complex(Call& c) {
  if (c.args.size() == 2)
    return std::complex<double>(real(c.at(0), "complex"), real(c.at(1), "complex"));
  return c.args.empty() ? std::complex<double>() : complex_of(c.at(0));
}
Value to_str(Call& c) { return c.args.empty() ? std::string() : c.machine.text_of(c.at(0)); }
Value show(Call& c) {
  if (const Function* f = c.machine.special(c.at(0), "__repr__"))
    return c.machine.run(*f, {c.at(0)}, {});
  return repr(c.at(0));
}
Value to_list(Call& c) {
  return list(c.args.empty() ? std::vector<Value>() : c.machine.items(c.at(0)));
}
Value to_tuple(Call& c) {
  return tuple(c.args.empty() ? std::vector<Value>() : c.machine.items(c.at(0)));
}
Value to_dict(Call& c) {
  auto d = std::make_shared<Dict>();
  if (!c.args.empty()) {
    if (Dict* from = in<Dict>(c.at(0)))
      *d = *from;
    else
      for (const Value& pair : c.machine.items(c.at(0))) {
        std::vector<Value> kv = items_of(pair);
        if (kv.size() != 2) value_error("dict(): pairs are wanted");
        d->set(kv[0], kv[1]);
      }
  }
  for (auto& [k, v] : c.named) d->set(k, v);
  return d;
}

Value absolute(Call& c) {
  const Value& v = c.at(0);
  if (const Function* f = c.machine.special(v, "__abs__")) return c.machine.run(*f, {v}, {});
  if (is<Tensor>(v)) return call_named("abs", {v});
  if (is<double>(v)) return std::fabs(std::get<double>(v));
  if (is<std::complex<double>>(v)) return std::abs(std::get<std::complex<double>>(v));
  const int64_t i = whole(v, "abs");
  return i < 0 ? arithmetic('-', int64_t(0), i) : Value(i);
}

bool smaller(Machine& m, const Value& a, const Value& b) {
  if (const Function* f = m.special(a, "__lt__")) return m.is_true(m.run(*f, {a, b}, {}));
  return less(a, b);
}

Value key_of(Call& c, const Value& v) {
  const Value* key = c.find(SIZE_MAX, "key");
  return key && !is<None>(*key) ? c.machine.invoke(*key, {v}, {}) : v;
}

Value extreme(Call& c, bool least) {
  std::vector<Value> all = c.args.size() == 1 ? c.machine.items(c.at(0)) : c.args;
  if (all.empty()) {
    if (const Value* none = c.find(SIZE_MAX, "default")) return *none;
    value_error(least ? "min" : "max", "() arg is an empty sequence");
  }
  size_t best = 0;
  Value key = key_of(c, all[0]);
  for (size_t i = 1; i < all.size(); i++) {
    Value k = key_of(c, all[i]);
    if (least ? smaller(c.machine, k, key) : smaller(c.machine, key, k)) best = i, key = k;
  }
  return all[best];
}
Value min(Call& c) { return extreme(c, true); }
Value max(Call& c) { return extreme(c, false); }

Value sum(Call& c) {
  c.most(2);
  const Value* from = c.find(1, "start");
  Value total = from ? *from : Value(int64_t(0));
  for (const Value& v : c.machine.items(c.at(0))) {
    std::vector<Value> args{total, v};
    Named none;
    Call add{c.machine, "sum", args, none};
    total = find_builtin("add")(add);
  }
  return total;
}
Value any(Call& c) {
  for (const Value& v : c.machine.items(c.at(0)))
    if (c.machine.is_true(v)) return true;
  return false;
}
Value all(Call& c) {
  for (const Value& v : c.machine.items(c.at(0)))
    if (!c.machine.is_true(v)) return false;
  return true;
}

Value sorted(Call& c) {
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value& v : c.machine.items(c.at(0))) pairs.emplace_back(key_of(c, v), v);
  const Value* down = c.find(SIZE_MAX, "reverse");
  const bool turned = down && truth(*down);
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return turned ? smaller(c.machine, b.first, a.first) : smaller(c.machine, a.first, b.first);
  });
  std::vector<Value> out;
  for (auto& [k, v] : pairs) out.push_back(v);
  return list(std::move(out));
}
Value reversed(Call& c) {
  std::vector<Value> out = c.machine.items(c.at(0));
  std::reverse(out.begin(), out.end());
  return list(std::move(out));
}

// To a multiple of a power of ten, to the even one where two are as near.
Value tens(int64_t i, int64_t n) {
  constexpr int64_t kMost = 1'000'000'000'000'000'000;
  if (n > 18) {
    const bool up = n == 19 && (i > 5 * kMost || i < -5 * kMost);
    return up ? arithmetic('*', kMost, int64_t(10)) : Value(int64_t(0));
  }
  int64_t by = 1;
  for (int64_t k = 0; k < n; k++) by *= 10;
  int64_t q = i / by;
  const int64_t rest = std::abs(i % by), half = by / 2;
  if (n && (rest > half || (rest == half && q % 2))) q += i < 0 ? -1 : 1;
  return arithmetic('*', q, by);
}
double tens(double d, int64_t n) {
  char room[64];
  auto written = [&](int digits) {  // behind the first one
    const auto how = std::chars_format::scientific;
    return std::to_chars(room, room + sizeof room, std::fabs(d), how, digits).ptr;
  };
  *written(40) = 0;
  const char* e = std::strchr(room, 'e');
  const int64_t digits = std::atoi(e + 1) - n;
  double out = 0;
  if (d == 0 || digits > 40) return d;
  if (digits >= 0) {
    std::from_chars(room, written(int(digits)), out);
  } else if (digits == -1 && std::string_view(room, size_t(e - room)) >
                                 "5.0000000000000000000000000000000000000000") {
    const std::string one = "1e" + text(n);
    std::from_chars(one.data(), one.data() + one.size(), out);
  }
  return std::copysign(out, d);
}

// To even where it is halfway, judged by the decimal digits, as CPython does.
Value round(Call& c) {
  const Value& v = c.at(0);
  const Value* digits = c.find(1, "ndigits");
  if (is<Tensor>(v)) return call_named("round", {v});
  if (!digits || is<None>(*digits)) {
    if (is_whole(v)) return whole(v, "round");
    const double d = std::nearbyint(real(v, "round"));
    if (!(d > -0x1p63 && d < 0x1p63))
      raise_as("OverflowError", AJ_OUT_OF_RANGE, "cannot convert ", real_text(d), " to an int");
    return int64_t(d);
  }
  const int64_t n = whole(*digits, "round");
  if (is_whole(v) && n >= 0) return whole(v, "round");
  const double d = real(v, "round");
  if (is_whole(v)) return tens(whole(v, "round"), -n);
  if (n > 323 || !std::isfinite(d)) return v;
  if (n < 0) return tens(d, -n);
  char room[700];
  const char* end =
      std::to_chars(room, room + sizeof room, d, std::chars_format::fixed, int(n)).ptr;
  double out = d;
  std::from_chars(room, end, out);
  return out;
}

Value div_mod(Call& c) {
  return tuple({arithmetic('f', c.at(0), c.at(1)), arithmetic('%', c.at(0), c.at(1))});
}
Value power(Call& c) {
  c.most(3);
  if (c.args.size() < 3 || is<None>(c.at(2))) return arithmetic('^', c.at(0), c.at(1));
  int64_t a = whole(c.at(0), "pow"), n = whole(c.at(1), "pow");
  const int64_t by = whole(c.at(2), "pow");
  if (!by) value_error("pow() 3rd argument cannot be 0");
  if (n < 0)
    value_error("pow(): a negative power with a modulus is not in the subset that is scripted");
  __int128 out = 1, factor = a % by;
  for (; n; n >>= 1, factor = factor * factor % by)
    if (n & 1) out = out * factor % by;
  return arithmetic('%', int64_t(out % by), by);
}

Value ord(Call& c) {
  const std::string s = str_of(c.at(0));
  if (length(s) != 1)
    type_error("ord() expected a character, but string of length ", length(s), " found");
  const auto byte = [&](size_t i) { return uint8_t(s[i]); };
  if (s.size() == 1) return int64_t(byte(0));
  int64_t code = byte(0) & (0xff >> (s.size() + 1));
  for (size_t i = 1; i < s.size(); i++) code = code << 6 | (byte(i) & 0x3f);
  return code;
}
Value chr(Call& c) { return character(whole(c.at(0), "chr")); }
Value based(Call& c) {  // hex, bin, oct
  const std::string who = c.who;
  const Value i = whole(c.at(0), who.c_str());
  return formatted(i, who == "hex" ? "#x" : who == "bin" ? "#b" : "#o", "");
}

std::mutex printing;  // of the two that follow
aj_script_print printer = nullptr;
void* printed_by = nullptr;

Value print(Call& c) {
  const Value *sep = c.find(SIZE_MAX, "sep"), *end = c.find(SIZE_MAX, "end");
  const std::string between = sep ? str_of(*sep) : " ", last = end ? str_of(*end) : "\n";
  std::vector<std::string> texts(c.args.size());
  std::unique_lock lock(printing);
  const aj_script_print to = printer;
  void* self = printed_by;
  lock.unlock();
  std::vector<aj_value> items;
  for (size_t i = 0; i < texts.size(); i++) {
    if (const auto* t = std::get_if<Tensor>(&c.args[i]); t && to) {
      items.push_back(value(*t));
      continue;
    }
    texts[i] = c.machine.text_of(c.args[i]);
    items.push_back({AJ_STRING, uint32_t(texts[i].size()), {.str = texts[i].data()}});
  }
  if (to) {
    check(to(self, items.data(), uint32_t(items.size()), str(between), str(last)));
    return None{};
  }
  for (size_t i = 0; i < texts.size(); i++) std::cout << (i ? between : "") << texts[i];
  std::cout << last << std::flush;
  return None{};
}
Value type_of(Call& c) { return type_name(c.at(0)); }
Value identity(Call& c) { return c.at(0); }

// math
template <double (*f)(double)>
Value math(Call& c) {
  const double x = real(c.at(0), c.who), y = f(x);
  if (std::isnan(y) && !std::isnan(x)) value_error("math domain error");
  if (std::isinf(y) && std::isfinite(x))
    raise_as("OverflowError", AJ_OUT_OF_RANGE, "math range error");
  return y;
}
double logarithm(double x) {
  if (x <= 0) value_error("math domain error");
  return std::log(x);
}
Value log(Call& c) {
  if (c.args.size() == 2)
    return arithmetic('/', logarithm(real(c.at(0), "log")), logarithm(real(c.at(1), "log")));
  return logarithm(real(c.at(0), "log"));
}
template <int mode>
Value rounded(Call& c) {
  if (is_whole(c.at(0))) return whole(c.at(0), "floor");
  const double x = real(c.at(0), "floor");
  const double y = mode < 0 ? std::floor(x) : mode > 0 ? std::ceil(x) : std::trunc(x);
  if (!(y > -0x1p63 && y < 0x1p63))
    raise_as("OverflowError", AJ_OUT_OF_RANGE, "cannot convert ", real_text(y), " to an int");
  return int64_t(y);
}
template <double (*f)(double, double)>
Value math2(Call& c) {
  c.most(2);
  const double x = real(c.at(0), c.who), y = real(c.at(1), c.who), out = f(x, y);
  if (std::isnan(out) && !std::isnan(x) && !std::isnan(y)) value_error("math domain error");
  if (std::isinf(out) && std::isfinite(x) && std::isfinite(y)) {
    if (x == 0) value_error("math domain error");
    raise_as("OverflowError", AJ_OUT_OF_RANGE, "math range error");
  }
  return out;
}
double two(double x) { return std::log2(x > 0 ? x : NAN); }
double ten(double x) { return std::log10(x > 0 ? x : NAN); }
double hypotenuse(double x, double y) { return double(std::hypot(static_cast<long double>(x), y)); }
double radians(double x) { return x * (M_PI / 180); }
double degrees(double x) { return x * (180 / M_PI); }
Value is_nan(Call& c) { return bool(std::isnan(real(c.at(0), "isnan"))); }
Value is_inf(Call& c) { return bool(std::isinf(real(c.at(0), "isinf"))); }
Value is_finite(Call& c) { return bool(std::isfinite(real(c.at(0), "isfinite"))); }
Value gcd(Call& c) {
  int64_t out = 0;
  for (const Value& v : c.args) out = std::gcd(out, whole(v, "gcd"));
  return out;
}
Value factorial(Call& c) {
  const int64_t n = whole(c.at(0), "factorial");
  if (n < 0) value_error("factorial() not defined for negative values");
  Value out = int64_t(1);
  for (int64_t i = 2; i <= n; i++) out = arithmetic('*', out, i);
  return out;
}
Value product(Call& c) {
  const Value* start = c.find(SIZE_MAX, "start");
  Value out = start ? *start : Value(int64_t(1));
  for (const Value& v : c.machine.items(c.at(0))) out = arithmetic('*', out, v);
  return out;
}

Value make_tensor(Call& c) {
  Tensor t = tensor_of(c.at(0), c.find(1, "dtype"), c.find(2, "device"));
  if (const Value* grad = c.find(SIZE_MAX, "requires_grad"); grad && truth(*grad))
    t.requires_grad_();
  return t;
}
Value is_tensor(Call& c) { return is<Tensor>(c.at(0)); }
Value default_dtype(Call&) { return core().default_dtype(); }
Value grad_enabled(Call&) { return autograd().grad_mode() != 0; }

// What autocast does in this thread on a kind of device; "cuda" where none is said.
aj_autocast autocast_of(Call& c) {
  const Value* v = c.find(0, "device_type");
  const std::string name = v ? str_of(*v) : "cuda";
  int32_t kind = 0;
  aj_autocast now{};
  now.struct_size = sizeof now;
  if (aj_status* s = core().device_find(str(name), &kind))
    core().status_free(s);  // a device that is not there casts nothing
  else
    check(dispatch().autocast(kind, &now, nullptr));
  return now;
}
Value autocast_enabled(Call& c) { return autocast_of(c).enabled != 0; }
Value autocast_dtype(Call& c) {
  const aj_autocast now = autocast_of(c);
  return now.dtype.bits ? now.dtype : DLDataType{kDLFloat, 16, 1};
}
Value make_device(Call& c) {
  if (is<DLDevice>(c.at(0))) return c.at(0);
  std::string name = str_of(c.at(0));
  if (c.args.size() > 1) name += ":" + str_of(c.at(1));
  return device(name);
}
Value numel(Call& c) { return std::get<Tensor>(c.at(0)).numel(); }

// finfo(dtype): only what people ask of it.
Value float_info(Call& c) {
  const DLDataType d = c.args.empty() ? core().default_dtype() : std::get<DLDataType>(c.at(0));
  static const std::vector<std::string> fields{"bits", "eps",  "max",
                                               "min",  "tiny", "smallest_normal"};
  double eps, max, tiny;
  if (d == float64)
    eps = 0x1p-52, max = 0x1.fffffffffffffp1023, tiny = 0x1p-1022;
  else if (d == float32)
    eps = 0x1p-23, max = 0x1.fffffep127, tiny = 0x1p-126;
  else if (d == bfloat16)
    eps = 0x1p-7, max = 0x1.fep127, tiny = 0x1p-126;
  else if (d == float16)
    eps = 0x1p-10, max = 65504, tiny = 0x1p-14;
  else
    type_error("finfo: a float dtype is wanted, not ", text(d));
  return tuple({int64_t(d.bits), eps, max, -max, tiny, tiny}, names("finfo", fields));
}
Value int_info(Call& c) {
  const DLDataType d = std::get<DLDataType>(c.at(0));
  static const std::vector<std::string> fields{"bits", "max", "min"};
  if (d.code != kDLInt && !(d.code == kDLUInt && d.bits < 64))
    type_error("iinfo: an integer dtype is wanted, not ", text(d));
  const int64_t max =
      d.code == kDLInt ? int64_t(~uint64_t(0) >> (65 - d.bits)) : (int64_t(1) << d.bits) - 1;
  return tuple({int64_t(d.bits), max, d.code == kDLInt ? -max - 1 : 0}, names("iinfo", fields));
}

struct Entry {
  std::string_view name;
  Builtin run;
};
constexpr Entry functions[] = {
    {"len", len},
    {"range", range},
    {"enumerate", enumerate},
    {"zip", zip},
    {"int", to_int},
    {"float", to_float},
    {"bool", to_bool},
    {"complex", to_complex},
    {"str", to_str},
    {"repr", show},
    {"to_list", to_list},
    {"to_tuple", to_tuple},
    {"to_dict", to_dict},
    {"abs", absolute},
    {"min", min},
    {"max", max},
    {"sum", sum},
    {"any", any},
    {"all", all},
    {"sorted", sorted},
    {"reversed", reversed},
    {"round", round},
    {"divmod", div_mod},
    {"power", power},
    {"ord", ord},
    {"chr", chr},
    {"hex", based},
    {"bin", based},
    {"oct", based},
    {"print", print},
    {"type_name", type_of},
    {"identity", identity},
    {"math.sqrt", math<std::sqrt>},
    {"math.exp", math<std::exp>},
    {"math.log", log},
    {"math.log2", math<two>},
    {"math.log10", math<ten>},
    {"math.log1p", math<std::log1p>},
    {"math.expm1", math<std::expm1>},
    {"math.sin", math<std::sin>},
    {"math.cos", math<std::cos>},
    {"math.tan", math<std::tan>},
    {"math.asin", math<std::asin>},
    {"math.acos", math<std::acos>},
    {"math.atan", math<std::atan>},
    {"math.sinh", math<std::sinh>},
    {"math.cosh", math<std::cosh>},
    {"math.tanh", math<std::tanh>},
    {"math.erf", math<std::erf>},
    {"math.erfc", math<std::erfc>},
    {"math.gamma", math<std::tgamma>},
    {"math.lgamma", math<std::lgamma>},
    {"math.fabs", math<std::fabs>},
    {"math.asinh", math<std::asinh>},
    {"math.acosh", math<std::acosh>},
    {"math.atanh", math<std::atanh>},
    {"math.remainder", math2<std::remainder>},
    {"math.radians", math<radians>},
    {"math.degrees", math<degrees>},
    {"math.floor", rounded<-1>},
    {"math.ceil", rounded<1>},
    {"math.trunc", rounded<0>},
    {"math.pow", math2<std::pow>},
    {"math.atan2", math2<std::atan2>},
    {"math.fmod", math2<std::fmod>},
    {"math.hypot", math2<hypotenuse>},
    {"math.copysign", math2<std::copysign>},
    {"math.isnan", is_nan},
    {"math.isinf", is_inf},
    {"math.isfinite", is_finite},
    {"math.gcd", gcd},
    {"math.factorial", factorial},
    {"math.prod", product},
    {"tensor", make_tensor},
    {"is_tensor", is_tensor},
    {"is_grad_enabled", grad_enabled},
    {"autocast_enabled", autocast_enabled},
    {"autocast_dtype", autocast_dtype},
    {"get_default_dtype", default_dtype},
    {"device", make_device},
    {"numel", numel},
    {"finfo", float_info},
    {"iinfo", int_info},
};

}  // namespace

Builtin find_function(std::string_view name) {
  for (const Entry& e : functions)
    if (e.name == name) return e.run;
  return nullptr;
}

std::string character(int64_t i) {
  if (i < 0 || i > 0x10ffff) value_error("chr() arg not in range(0x110000)");
  std::string s;
  if (i < 0x80)
    s += char(i);
  else if (i < 0x800)
    s += char(0xc0 | i >> 6), s += char(0x80 | (i & 63));
  else if (i < 0x10000)
    s += char(0xe0 | i >> 12), s += char(0x80 | (i >> 6 & 63)), s += char(0x80 | (i & 63));
  else
    s += char(0xf0 | i >> 18), s += char(0x80 | (i >> 12 & 63)), s += char(0x80 | (i >> 6 & 63)),
        s += char(0x80 | (i & 63));
  return s;
}

void print_to(aj_script_print print, void* self) {
  std::lock_guard lock(printing);
  printer = print, printed_by = self;
}

}  // namespace adjoin::graph::script

// extensions/graph/script/format.cpp: format() of a value by Python's little language.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0;
  bool alternate = false, grouped = false, zeros = false, signs = false;
  char group = ',';
  int64_t width = 0, precision = -1;
};

Spec read(std::string_view s) {
  Spec out;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  bool filled = false;
  size_t first = 1;  // bytes of the first character
  while (first < s.size() && (uint8_t(s[first]) & 0xc0) == 0x80) first++;
  if (s.size() > first && is_align(s[first])) {
    out.fill = s.substr(0, first), out.align = s[first], filled = true;
    s.remove_prefix(first + 1);
  } else if (!s.empty() && is_align(s[0])) {
    out.align = s[0];
    s.remove_prefix(1);
  }
  auto eat = [&](char c) { return !s.empty() && s[0] == c && (s.remove_prefix(1), true); };
  for (char c : {'+', '-', ' '})
    if (eat(c)) {
      out.sign = c, out.signs = true;
      break;
    }
  out.alternate = eat('#');
  if (!filled && eat('0')) {
    out.fill = "0", out.zeros = !out.align;
    if (!out.align) out.align = '=';
  }
  auto number = [&](int64_t& to) {
    auto end = std::from_chars(s.data(), s.data() + s.size(), to).ptr;
    s.remove_prefix(size_t(end - s.data()));
    if (to > 100'000) value_error("format: a width of ", to, " is too large");
  };
  number(out.width);
  if (eat(',')) out.grouped = true;
  if (eat('_')) out.grouped = true, out.group = '_';
  if (eat('.')) {
    if (s.empty() || s[0] < '0' || s[0] > '9') value_error("Format specifier missing precision");
    number(out.precision = 0);
  }
  if (!s.empty()) {
    out.type = s[0];
    s.remove_prefix(1);
  }
  if (!s.empty()) value_error("Invalid format specifier");
  return out;
}

// A mark between each three digits, each four of binary ones; zeros in front up to a width.
std::string grouped(std::string digits, const Spec& f, int64_t width) {
  const bool four = f.type && std::string_view("bxXo").find(f.type) != std::string_view::npos;
  const size_t size = four ? 4 : 3;
  size_t end = digits.find_first_not_of(four ? "0123456789abcdefABCDEF" : "0123456789");
  if (end == digits.npos) end = digits.size();
  if (f.align == '=' && f.fill == "0") {
    const int64_t rest = int64_t(digits.size() - end), step = int64_t(size) + 1;
    const auto wide = [&](int64_t n) { return n + (n - 1) / (step - 1) + rest; };
    for (int64_t n = int64_t(end); wide(n) < width; n++) digits.insert(0, 1, '0'), end++;
  }
  for (size_t at = end; at > size; digits.insert(at, 1, f.group)) at -= size;
  return digits;
}

char upper(char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; }

std::string fixed(double x, char type, int64_t precision) {
  const bool large = type >= 'A' && type <= 'Z';
  if (std::isnan(x)) return large ? "NAN" : "nan";
  if (std::isinf(x)) return large ? "INF" : "inf";
  const char low = type >= 'A' && type <= 'Z' ? char(type + 32) : type;
  const auto how = low == 'f'   ? std::chars_format::fixed
                   : low == 'e' ? std::chars_format::scientific
                                : std::chars_format::general;
  std::string out(size_t(400 + precision), '\0');
  out.resize(size_t(std::to_chars(out.data(), out.data() + out.size(), x, how, int(precision)).ptr -
                    out.data()));
  if (low != type)
    for (char& c : out) c = upper(c);
  return out;
}

std::string whole_digits(const Spec& f, uint64_t n, int64_t width) {
  const int base = f.type == 'x' || f.type == 'X' ? 16 : f.type == 'b' ? 2 : f.type == 'o' ? 8 : 10;
  char room[80];
  std::string out(room, std::to_chars(room, room + sizeof room, n, base).ptr);
  if (f.type == 'X')
    for (char& c : out) c = upper(c);
  return f.grouped ? grouped(out, f, width) : out;
}

// The shortest of both notations, with a point: an exponent is written sooner than by 'g'.
std::string general(double x, int64_t precision) {
  std::string out = fixed(x, 'e', precision - 1);
  if (!std::isfinite(x)) return out;
  const size_t e = out.find('e');
  const int64_t exponent = std::atoi(out.c_str() + e + 1);
  if (exponent >= -4 && exponent < precision - 1) {
    out = fixed(x, 'g', precision);
    return out.find_first_of(".e") == out.npos ? out + ".0" : out;
  }
  size_t end = e;
  if (out.find('.') < e) {
    while (out[end - 1] == '0') end--;
    if (out[end - 1] == '.') end--;
  }
  return out.substr(0, end) + out.substr(e);
}

std::string real_digits(const Spec& f, double x, int64_t width) {
  const int64_t precision = f.precision < 0 ? 6 : f.precision;
  std::string out;
  switch (f.type) {
    case 0:
      if (f.precision < 0) {
        out = real_text(x);
      } else {  // as g, with a point
        out = general(x, std::max<int64_t>(1, precision));
      }
      break;
    case '%':
      out = fixed(x * 100, 'f', precision) + "%";
      break;
    case 'n':
      out = fixed(x, 'g', precision);
      break;
    default:
      out = fixed(x, f.type, precision);
  }
  return f.grouped && std::isfinite(x) ? grouped(out, f, width) : out;
}

std::string padded(const Spec& f, const std::string& sign, const std::string& body, char align) {
  const int64_t missing = f.width - length(sign) - length(body);
  auto fill = [&](int64_t n) {
    std::string out;
    for (int64_t i = 0; i < n; i++) out += f.fill;
    return out;
  };
  if (missing <= 0) return sign + body;
  if (align == '<') return sign + body + fill(missing);
  if (align == '^') return fill(missing / 2) + sign + body + fill(missing - missing / 2);
  if (align == '=') return sign + fill(missing) + body;
  return fill(missing) + sign + body;
}

}  // namespace

std::string formatted(const Value& given, std::string_view spec, std::string_view text) {
  if (spec.empty()) return text.empty() ? str_of(given) : std::string(text);
  const Spec f = read(spec);
  Value v = given;
  if (auto* t = std::get_if<Tensor>(&v)) {
    if (t->ndim()) type_error("unsupported format string passed to Tensor.__format__");
    v = tensor_items(*t);
  }
  const bool letters = f.type && std::string_view("eEfFgG%").find(f.type) != std::string_view::npos;
  auto sign_of = [&](bool minus) {
    return std::string(minus ? "-" : f.sign == '-' ? "" : std::string(1, f.sign));
  };
  if (is<double>(v) || (is_whole(v) && letters)) {
    if (f.type && !letters && f.type != 'n')
      value_error("Unknown format code '", std::string(1, f.type), "' for object of type 'float'");
    const double x = real(v, "format");
    if (f.alternate) value_error("format: '#' of a float is not in the subset that is scripted");
    const std::string sign = sign_of(std::signbit(x) && !std::isnan(x));
    return padded(f, sign, real_digits(f, std::fabs(x), f.width - int64_t(sign.size())),
                  f.align ? f.align : '>');
  }
  if (is_whole(v)) {
    const int64_t i = whole(v, "format");
    if (f.type && std::string_view("bcdoxXn").find(f.type) == std::string_view::npos)
      value_error("Unknown format code '", std::string(1, f.type), "' for object of type 'int'");
    if (f.precision >= 0) value_error("Precision not allowed in integer format specifier");
    if (f.type == 'c') return padded(f, "", character(i), f.align ? f.align : '>');
    std::string sign = sign_of(i < 0);
    if (f.alternate && f.type && std::string_view("boxX").find(f.type) != std::string_view::npos)
      (sign += '0') += f.type;
    return padded(
        f, sign,
        whole_digits(f, i < 0 ? -uint64_t(i) : uint64_t(i), f.width - int64_t(sign.size())),
        f.align ? f.align : '>');
  }
  if (!is<std::string>(v) &&
      !(in<Tuple>(v) && in<Tuple>(v)->named && in<Tuple>(v)->named->enumerated))
    type_error("unsupported format string passed to ", type_name(v), ".__format__");
  if (f.type && f.type != 's')
    value_error("Unknown format code '", std::string(1, f.type), "' for object of type '",
                type_name(v), "'");
  std::string body = is<std::string>(v) ? std::get<std::string>(v) : str_of(v);
  if (f.precision >= 0) {
    std::vector<Value> letters_of = items_of(body);
    body.clear();
    for (size_t i = 0; i < letters_of.size() && int64_t(i) < f.precision; i++)
      body += std::get<std::string>(letters_of[i]);
  }
  if (f.signs) value_error("Sign not allowed in string format specifier");
  if (f.grouped) value_error("Cannot specify '", std::string(1, f.group), "' with 's'.");
  if (f.align == '=' && !f.zeros)
    value_error("'=' alignment not allowed in string format specifier");
  return padded(f, "", body, f.align && !f.zeros ? f.align : '<');
}

}  // namespace adjoin::graph::script

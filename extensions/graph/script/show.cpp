// extensions/graph/script/show.cpp: values as Python's repr and str show them.
#include <charconv>
#include <cmath>

#include "code.hpp"
#include "value.hpp"

namespace adjoin::graph::script {
namespace {

// The bytes of a character that repr() escapes: other spaces, ends of lines, marks that nobody
// sees.
size_t unseen(std::string_view s) {
  auto at = [&](size_t i) { return i < s.size() ? uint8_t(s[i]) : 0; };
  if (at(0) == 0xc2) return at(1) <= 0xa0 || at(1) == 0xad ? 2 : 0;
  const bool general =
      at(0) == 0xe2 && at(1) == 0x80 && (at(2) <= 0x8f || (at(2) >= 0xa8 && at(2) <= 0xaf));
  const bool more = at(0) == 0xe2 && at(1) == 0x81 && at(2) >= 0x9f && at(2) <= 0xaf;
  const bool wide = s.starts_with("\xe3\x80\x80") || s.starts_with("\xef\xbb\xbf") ||
                    s.starts_with("\xe1\x9a\x80");
  return general || more || wide ? 3 : 0;
}

std::string quoted(const std::string& s) {
  const bool twice = s.find('\'') != s.npos && s.find('"') == s.npos;
  const char mark = twice ? '"' : '\'';
  std::string out(1, mark);
  constexpr char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < s.size(); i++) {
    const char c = s[i];
    if (c == mark || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (uint8_t(c) < 32 || c == 127)
      ((out += "\\x") += digits[uint8_t(c) >> 4]) += digits[c & 15];
    else if (size_t n = unseen(std::string_view(s).substr(i)); n == 2) {
      ((out += "\\x") += digits[uint8_t(s[i + 1]) >> 4]) += digits[s[i + 1] & 15];
      i += 1;
    } else if (n == 3) {
      const int code = (c & 15) << 12 | (s[i + 1] & 63) << 6 | (s[i + 2] & 63);
      out += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) out += digits[code >> shift & 15];
      i += 2;
    } else {
      out += c;
    }
  }
  return out + mark;
}

std::string joined(const std::vector<Value>& items, bool bits) {
  std::string out;
  for (const Value& v : items) out += (out.empty() ? "" : ", ") + repr(v, bits);
  return out;
}

// dtype, shape and the elements; floats as their bits are.
std::string tensor_text(const Tensor& t, bool bits) {
  std::string out = text("tensor(", t.dtype(), Shape{t.shape().data(), t.ndim()});
  static Op to_op("to"), reshape_op("reshape");
  const bool whole = !t.is_floating_point() && !t.is_complex();
  aj_value args[2] = {value(t), value(whole ? int64 : float64)};
  if (t.is_complex()) return out + ")";
  Tensor wide = kit::run(to_op.get(), args, 2);
  const int64_t minus = -1;
  aj_value shaped[2] = {value(wide), value(Ints(&minus, 1))};
  Tensor flat = kit::run(reshape_op.get(), shaped, 2).detach();
  const int64_t n = flat.numel(), shown = bits ? n : std::min<int64_t>(n, 64);
  for (int64_t i = 0; i < shown; i++) {
    out += ' ';
    if (whole) {
      out += text(flat.data<int64_t>()[i]);
    } else if (bits) {
      char room[64];
      const double x = flat.data<double>()[i];
      out.append(room, std::to_chars(room, room + sizeof room, x, std::chars_format::hex).ptr);
    } else {
      out += real_text(flat.data<double>()[i]);
    }
  }
  return out + (shown < n ? " ...)" : ")");
}

}  // namespace

std::string real_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char room[40];
  std::string s(room,
                std::to_chars(room, room + sizeof room, x, std::chars_format::scientific).ptr);
  const size_t e = s.find('e');
  const int exponent = std::atoi(s.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return s;
  s.assign(room, std::to_chars(room, room + sizeof room, x, std::chars_format::fixed).ptr);
  return s.find('.') == s.npos ? s + ".0" : s;
}

std::string repr(const Value& v, bool bits) {
  if (is<Unset>(v)) return "unset";
  if (is<None>(v)) return "None";
  if (auto* b = std::get_if<bool>(&v)) return *b ? "True" : "False";
  if (auto* i = std::get_if<int64_t>(&v)) return text(*i);
  if (auto* d = std::get_if<double>(&v)) return real_text(*d);
  if (auto* s = std::get_if<std::string>(&v)) return quoted(*s);
  if (auto* z = std::get_if<std::complex<double>>(&v)) {
    auto part = [](double x) {
      std::string s = real_text(x);
      return s.ends_with(".0") ? s.substr(0, s.size() - 2) : s;
    };
    const std::string im = part(z->imag()) + "j";
    if (z->real() == 0 && !std::signbit(z->real())) return im;
    return "(" + part(z->real()) + (im[0] == '-' ? "" : "+") + im + ")";
  }
  if (auto* d = std::get_if<DLDataType>(&v)) return text("adjoin.", *d);
  if (auto* d = std::get_if<DLDevice>(&v)) {
    std::string name(view_of(core().device_name(d->device_type)));
    std::string out = "device(type='" + name + "'";
    return name == "cpu" && d->device_id == 0 ? out + ")"
                                              : text(out, ", index=", d->device_id, ")");
  }
  if (is<Ellipsis>(v)) return "Ellipsis";
  if (auto* r = std::get_if<Range>(&v))
    return r->step == 1 ? text("range(", r->start, ", ", r->stop, ")")
                        : text("range(", r->start, ", ", r->stop, ", ", r->step, ")");
  if (auto* t = std::get_if<Tensor>(&v)) return tensor_text(*t, bits);
  if (auto* l = in<List>(v)) return "[" + joined(l->items, bits) + "]";
  if (auto* t = in<Tuple>(v)) {
    if (t->named && t->named->enumerated && t->items.size() == 2)
      return "<" + t->named->type + "." + str_of(t->items[0]) + ": " + repr(t->items[1], bits) +
             ">";
    if (!t->named) return "(" + joined(t->items, bits) + (t->items.size() == 1 ? ",)" : ")");
    std::string out = t->named->type + "(";
    for (size_t i = 0; i < t->items.size(); i++)
      out += (i ? ", " : "") + t->named->fields[i] + "=" + repr(t->items[i], bits);
    return out + ")";
  }
  if (auto* d = in<Dict>(v)) {
    std::string out;
    for (auto& [k, x] : d->items)
      out += (out.empty() ? "" : ", ") + repr(k, bits) + ": " + repr(x, bits);
    return "{" + out + "}";
  }
  if (auto* o = in<Object>(v)) {
    std::string out;
    for (auto& [name, x] : o->fields) out += (out.empty() ? "" : ", ") + name + "=" + repr(x, bits);
    return o->of->name + "(" + out + ")";
  }
  if (auto* c = in<Callee>(v)) return "<function " + c->name + ">";
  if (auto* s = in<Slice>(v)) {
    auto part = [](const std::optional<int64_t>& i) { return i ? text(*i) : std::string("None"); };
    return "slice(" + part(s->start) + ", " + part(s->stop) + ", " + part(s->step) + ")";
  }
  return type_name(v);
}

std::string str_of(const Value& v) {
  if (auto* s = std::get_if<std::string>(&v)) return *s;
  if (auto* t = in<Tuple>(v); t && t->named && t->named->enumerated && !t->items.empty())
    return t->named->type + "." + str_of(t->items[0]);
  if (auto* d = std::get_if<DLDevice>(&v)) {
    std::string name(view_of(core().device_name(d->device_type)));
    return name == "cpu" && d->device_id == 0 ? name : text(name, ":", d->device_id);
  }
  return repr(v);
}

}  // namespace adjoin::graph::script

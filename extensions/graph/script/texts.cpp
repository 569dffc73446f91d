// extensions/graph/script/texts.cpp: methods of str. Upper and lower case are those of ASCII.
#include <algorithm>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

const std::string& self(Call& c) { return std::get<std::string>(c.at(0)); }
const std::string& text_at(Call& c, size_t i) {
  auto* s = std::get_if<std::string>(&c.at(i));
  if (!s) type_error(c.who, "(): a str is wanted, not ", type_name(c.at(i)));
  return *s;
}
bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c) || uint8_t(c) > 127; }
char upper_of(char c) { return is_lower(c) ? char(c - 32) : c; }
char lower_of(char c) { return is_upper(c) ? char(c + 32) : c; }

Value upper(Call& c) {
  std::string s = self(c);
  std::transform(s.begin(), s.end(), s.begin(), upper_of);
  return s;
}
Value lower(Call& c) {
  std::string s = self(c);
  std::transform(s.begin(), s.end(), s.begin(), lower_of);
  return s;
}
Value capitalize(Call& c) {
  std::string s = std::get<std::string>(lower(c));
  if (!s.empty()) s[0] = upper_of(s[0]);
  return s;
}
Value title(Call& c) {
  std::string s = self(c);
  bool inside = false;
  for (char& x : s) {
    x = inside ? lower_of(x) : upper_of(x);
    inside = is_letter(x);
  }
  return s;
}
Value swapcase(Call& c) {
  std::string s = self(c);
  for (char& x : s) x = is_upper(x) ? lower_of(x) : upper_of(x);
  return s;
}

std::string stripped(Call& c, bool left, bool right) {
  const std::string& s = self(c);
  const bool chars = c.args.size() > 1 && !is<None>(c.at(1));
  auto goes = [&](char x) { return chars ? text_at(c, 1).find(x) != std::string::npos : blank(x); };
  size_t from = 0, to = s.size();
  while (left && from < to && goes(s[from])) from++;
  while (right && to > from && goes(s[to - 1])) to--;
  return s.substr(from, to - from);
}
Value strip(Call& c) { return stripped(c, true, true); }
Value lstrip(Call& c) { return stripped(c, true, false); }
Value rstrip(Call& c) { return stripped(c, false, true); }

Value split(Call& c) {
  const std::string& s = self(c);
  const Value *by = c.find(1, "sep"), *most = c.find(2, "maxsplit");
  int64_t left = most ? whole(*most, "split") : -1;
  std::vector<Value> out;
  if (!by || is<None>(*by)) {
    for (size_t i = 0; i < s.size();) {
      while (i < s.size() && blank(s[i])) i++;
      if (i == s.size()) break;
      size_t end = i;
      while (end < s.size() && (left == 0 || !blank(s[end]))) end++;
      if (left == 0)
        while (end > i && blank(s[end - 1])) end--;
      out.emplace_back(s.substr(i, end - i));
      if (left-- == 0) break;
      i = end;
    }
    return list(std::move(out));
  }
  const std::string sep = str_of(*by);
  if (sep.empty()) value_error("empty separator");
  size_t from = 0;
  for (size_t at; left-- != 0 && (at = s.find(sep, from)) != s.npos; from = at + sep.size())
    out.emplace_back(s.substr(from, at - from));
  out.emplace_back(s.substr(from));
  return list(std::move(out));
}
Value splitlines(Call& c) {
  const std::string& s = self(c);
  std::vector<Value> out;
  for (size_t from = 0; from < s.size();) {
    size_t end = std::min(s.find('\n', from), s.size());
    out.emplace_back(s.substr(from, end - from));
    from = end + 1;
  }
  return list(std::move(out));
}
Value join(Call& c) {
  std::string out;
  bool first = true;
  for (const Value& v : c.machine.items(c.at(1))) {
    if (!is<std::string>(v))
      type_error("sequence item: expected str instance, ", type_name(v), " found");
    out += (first ? "" : self(c)) + std::get<std::string>(v);
    first = false;
  }
  return out;
}
Value replace(Call& c) {
  std::string s = self(c);
  const std::string &from = text_at(c, 1), &to = text_at(c, 2);
  int64_t left = c.args.size() > 3 ? whole(c.at(3), "replace") : -1;
  if (from.empty()) value_error("replace(): an empty text is not in the subset");
  for (size_t at = 0; left-- != 0 && (at = s.find(from, at)) != s.npos; at += to.size())
    s.replace(at, from.size(), to);
  return s;
}
Value startswith(Call& c) {
  for (const Value& v : holds<Tuple>(c.at(1)) ? items_of(c.at(1)) : std::vector<Value>{c.at(1)})
    if (self(c).starts_with(str_of(v))) return true;
  return false;
}
Value endswith(Call& c) {
  for (const Value& v : holds<Tuple>(c.at(1)) ? items_of(c.at(1)) : std::vector<Value>{c.at(1)})
    if (self(c).ends_with(str_of(v))) return true;
  return false;
}
// Places are characters.
Value place(const std::string& s, size_t at) {
  return at == s.npos ? Value(int64_t(-1)) : Value(length(s.substr(0, at)));
}
Value find(Call& c) { return place(self(c), self(c).find(text_at(c, 1))); }
Value rfind(Call& c) { return place(self(c), self(c).rfind(text_at(c, 1))); }
Value index(Call& c) {
  Value v = find(c);
  if (equal(v, int64_t(-1))) value_error("substring not found");
  return v;
}
Value count(Call& c) {
  const std::string& what = text_at(c, 1);
  if (what.empty()) return length(c.at(0)) + 1;
  int64_t n = 0;
  for (size_t at = 0; (at = self(c).find(what, at)) != std::string::npos; at += what.size()) n++;
  return n;
}
template <bool (*f)(char)>
Value every(Call& c) {
  const std::string& s = self(c);
  return !s.empty() && std::all_of(s.begin(), s.end(), f);
}
bool either(char c) { return is_letter(c) || is_digit(c); }
template <bool (*yes)(char), bool (*no)(char)>
Value cased(Call& c) {
  const std::string& s = self(c);
  return std::any_of(s.begin(), s.end(), yes) && std::none_of(s.begin(), s.end(), no);
}
Value filled(Call& c) {  // ljust, rjust, center
  const std::string who = c.who;
  const std::string fill = c.args.size() > 2 ? text_at(c, 2) : " ";
  const char* align = who == "ljust" ? "<" : who == "rjust" ? ">" : "^";
  return formatted(c.at(0), fill + align + text(whole(c.at(1), c.who)), "");
}
Value zfill(Call& c) {
  const std::string& s = self(c);
  const bool sign = s.starts_with("-") || s.starts_with("+");
  std::string zeros;
  for (int64_t n = whole(c.at(1), "zfill") - length(c.at(0)); n > 0; n--) zeros += '0';
  return (sign ? s.substr(0, 1) : "") + zeros + s.substr(sign);
}

// "{} {1:>5} {name!r}".format(...)
Value format(Call& c) {
  const std::string& s = self(c);
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < s.size(); i++) {
    if ((s[i] == '{' || s[i] == '}') && i + 1 < s.size() && s[i + 1] == s[i]) {
      out += s[i++];
      continue;
    }
    if (s[i] != '{') {
      out += s[i];
      continue;
    }
    const size_t end = s.find('}', i);
    if (end == s.npos) value_error("expected '}' before end of string");
    std::string field = s.substr(i + 1, end - i - 1), spec, how;
    i = end;
    if (size_t at = field.find(':'); at != field.npos)
      spec = field.substr(at + 1), field.resize(at);
    if (size_t at = field.find('!'); at != field.npos) how = field.substr(at + 1), field.resize(at);
    const Value* v = nullptr;
    if (field.empty())
      v = &c.at(next++);
    else if (is_digit(field[0]))
      v = &c.at(1 + size_t(std::atoi(field.c_str())));
    else if (!(v = c.find(SIZE_MAX, field)))
      raise_as("KeyError", AJ_NOT_FOUND, repr(field));
    out += how == "r" ? formatted(repr(*v), spec, "")
                      : formatted(how == "s" ? Value(c.machine.text_of(*v)) : *v, spec,
                                  c.machine.text_of(*v));
  }
  return out;
}
Value partition(Call& c) {
  const size_t at = self(c).find(text_at(c, 1));
  if (at == std::string::npos) return tuple({self(c), std::string(), std::string()});
  return tuple({self(c).substr(0, at), text_at(c, 1), self(c).substr(at + text_at(c, 1).size())});
}
Value removed(Call& c) {  // removeprefix, removesuffix
  const std::string &s = self(c), &part = text_at(c, 1);
  if (std::string_view(c.who) == "removeprefix")
    return s.starts_with(part) ? s.substr(part.size()) : s;
  return s.ends_with(part) ? s.substr(0, s.size() - part.size()) : s;
}

struct Entry {
  std::string_view name;
  Builtin run;
};
constexpr Entry table[] = {
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"swapcase", swapcase},
    {"strip", strip},
    {"lstrip", lstrip},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitlines},
    {"join", join},
    {"replace", replace},
    {"startswith", startswith},
    {"endswith", endswith},
    {"find", find},
    {"rfind", rfind},
    {"index", index},
    {"count", count},
    {"isdigit", every<is_digit>},
    {"isalpha", every<is_letter>},
    {"isalnum", every<either>},
    {"isspace", every<blank>},
    {"isupper", cased<is_upper, is_lower>},
    {"islower", cased<is_lower, is_upper>},
    {"ljust", filled},
    {"rjust", filled},
    {"center", filled},
    {"zfill", zfill},
    {"format", format},
    {"partition", partition},
    {"removeprefix", removed},
    {"removesuffix", removed},
};

}  // namespace

Builtin find_text_method(std::string_view name) {
  for (const Entry& e : table)
    if (e.name == name) return e.run;
  return nullptr;
}

}  // namespace adjoin::graph::script

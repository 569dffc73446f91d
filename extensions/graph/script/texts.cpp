// extensions/graph/script/texts.cpp: methods of str. What asks for the case or the kind of letters
// beyond ASCII is refused: that needs tables which programs do not carry.
#include <algorithm>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

const std::string& self(Call& c) { return std::get<std::string>(c.at(0)); }
const std::string& text_of(Call& c, const Value& v) {
  auto* s = std::get_if<std::string>(&v);
  if (!s) type_error(c.who, "(): a str is wanted, not ", type_name(v));
  return *s;
}
const std::string& text_at(Call& c, size_t i) { return text_of(c, c.at(i)); }
const std::string& plain(Call& c) {
  const std::string& s = self(c);
  if (std::any_of(s.begin(), s.end(), [](char x) { return uint8_t(x) > 127; }))
    raise_as("NotImplementedError", AJ_UNIMPLEMENTED, c.who, "(): ", repr(c.at(0)),
             " has characters beyond ASCII, whose kinds and cases scripted programs do not know");
  return s;
}

// The bytes of the white space that begins here; 0: there is none.
size_t blank(std::string_view s) {
  if (s.empty()) return 0;
  if (s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r') || (s[0] >= 28 && s[0] <= 31)) return 1;
  if (uint8_t(s[0]) < 0xc2) return 0;
  for (std::string_view wide : {"\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\xa8",
                                "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"})
    if (s.starts_with(wide)) return wide.size();
  return s.size() > 2 && s.starts_with("\xe2\x80") && uint8_t(s[2]) <= 0x8a ? 3 : 0;
}
// The bytes of the end of a line that begins here.
size_t line_end(std::string_view s) {
  if (s.starts_with("\r\n")) return 2;
  if (s[0] >= '\n' && s[0] <= '\r') return 1;
  if (s[0] >= 28 && s[0] <= 30) return 1;
  if (s.starts_with("\xc2\x85")) return 2;
  return s.starts_with("\xe2\x80\xa8") || s.starts_with("\xe2\x80\xa9") ? 3 : 0;
}
// Where a character begins: the bytes of it; where the one before the place begins.
size_t size_at(std::string_view s, size_t i) {
  size_t end = i + 1;
  while (end < s.size() && (uint8_t(s[end]) & 0xc0) == 0x80) end++;
  return end - i;
}
size_t before(std::string_view s, size_t i) {
  do i--;
  while (i && (uint8_t(s[i]) & 0xc0) == 0x80);
  return i;
}
// The byte at which a character stands.
size_t byte_of(std::string_view s, int64_t character) {
  size_t i = 0;
  while (i < s.size() && character-- > 0) i += size_at(s, i);
  return i;
}

bool is_space(char c) { return blank({&c, 1}) == 1; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c); }
char upper_of(char c) { return is_lower(c) ? char(c - 32) : c; }
char lower_of(char c) { return is_upper(c) ? char(c + 32) : c; }

Value upper(Call& c) {
  std::string s = plain(c);
  std::transform(s.begin(), s.end(), s.begin(), upper_of);
  return s;
}
Value lower(Call& c) {
  std::string s = plain(c);
  std::transform(s.begin(), s.end(), s.begin(), lower_of);
  return s;
}
Value capitalize(Call& c) {
  std::string s = std::get<std::string>(lower(c));
  if (!s.empty()) s[0] = upper_of(s[0]);
  return s;
}
Value title(Call& c) {
  std::string s = plain(c);
  bool inside = false;
  for (char& x : s) {
    x = inside ? lower_of(x) : upper_of(x);
    inside = is_letter(x);
  }
  return s;
}
Value swapcase(Call& c) {
  std::string s = plain(c);
  for (char& x : s) x = is_upper(x) ? lower_of(x) : upper_of(x);
  return s;
}

std::string stripped(Call& c, bool left, bool right) {
  const std::string& s = self(c);
  const Value* given = c.find(1, "chars");
  const std::string* chars = given && !is<None>(*given) ? &text_of(c, *given) : nullptr;
  auto goes = [&](size_t i) {
    if (!chars) return blank(std::string_view(s).substr(i)) != 0;
    const std::string_view one = std::string_view(s).substr(i, size_at(s, i));
    for (size_t k = 0; k < chars->size(); k += size_at(*chars, k))
      if (one == std::string_view(*chars).substr(k, size_at(*chars, k))) return true;
    return false;
  };
  size_t from = 0, to = s.size();
  while (left && from < to && goes(from)) from += size_at(s, from);
  while (right && to > from && goes(before(s, to))) to = before(s, to);
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
    const std::string_view all = s;
    for (size_t i = 0; i < s.size();) {
      while (size_t n = blank(all.substr(i))) i += n;
      if (i == s.size()) break;
      size_t end = i;
      while (end < s.size() && (left == 0 || !blank(all.substr(end)))) end += size_at(s, end);
      out.emplace_back(s.substr(i, end - i));
      if (left-- == 0) break;
      i = end;
    }
    return list(std::move(out));
  }
  const std::string& sep = text_of(c, *by);
  if (sep.empty()) value_error("empty separator");
  size_t from = 0;
  for (size_t at; left-- != 0 && (at = s.find(sep, from)) != s.npos; from = at + sep.size())
    out.emplace_back(s.substr(from, at - from));
  out.emplace_back(s.substr(from));
  return list(std::move(out));
}
Value rsplit(Call& c) {
  const std::string& s = self(c);
  const Value *by = c.find(1, "sep"), *most = c.find(2, "maxsplit");
  int64_t left = most ? whole(*most, "rsplit") : -1;
  std::vector<Value> out;
  size_t end = s.size();
  if (!by || is<None>(*by)) {
    auto space = [&](size_t i) { return blank(std::string_view(s).substr(before(s, i))) != 0; };
    for (;;) {
      while (end && space(end)) end = before(s, end);
      if (!end) break;
      size_t from = end;
      while (from && (left == 0 || !space(from))) from = before(s, from);
      out.emplace_back(s.substr(from, end - from));
      if (left-- == 0) break;
      end = from;
    }
  } else {
    const std::string& sep = text_of(c, *by);
    if (sep.empty()) value_error("empty separator");
    for (size_t at;
         left-- != 0 && end >= sep.size() && (at = s.rfind(sep, end - sep.size())) != s.npos;
         end = at)
      out.emplace_back(s.substr(at + sep.size(), end - at - sep.size()));
    out.emplace_back(s.substr(0, end));
  }
  std::reverse(out.begin(), out.end());
  return list(std::move(out));
}
Value splitlines(Call& c) {
  const std::string& s = self(c);
  const Value* kept = c.find(1, "keepends");
  const bool keep = kept && truth(*kept);
  std::vector<Value> out;
  for (size_t from = 0; from < s.size();) {
    size_t end = from, n = 0;
    while (end < s.size() && !(n = line_end(std::string_view(s).substr(end))))
      end += size_at(s, end);
    out.emplace_back(s.substr(from, end - from + (keep ? n : 0)));
    from = end + n;
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
  if (from.empty()) {  // between all characters
    std::string out;
    for (const Value& one : items_of(c.at(0))) {
      if (left-- != 0)
        out += to;
      else
        left = 0;
      out += std::get<std::string>(one);
    }
    return left != 0 ? out + to : out;
  }
  for (size_t at = 0; left-- != 0 && (at = s.find(from, at)) != s.npos; at += to.size())
    s.replace(at, from.size(), to);
  return s;
}
// The bytes of self between the characters that two arguments name.
struct Part {
  std::string_view text;
  size_t from;
  bool none;  // the places lie apart: not even an empty text is between them
};
Part part_of(Call& c, size_t first) {
  const std::string& s = self(c);
  if (c.args.size() <= first) return {s, 0, false};
  const int64_t n = length(c.at(0));
  auto at = [&](size_t i, int64_t none) {
    if (c.args.size() <= i || is<None>(c.at(i))) return none;
    const int64_t k = whole(c.at(i), c.who);
    return std::max<int64_t>(0, k < 0 ? k + n : k);
  };
  c.most(first + 2);
  const int64_t from = at(first, 0), to = std::min(n, at(first + 1, n));
  if (from > to) return {{}, 0, true};
  const size_t begin = byte_of(s, from);
  return {std::string_view(s).substr(begin, byte_of(s, to) - begin), begin, false};
}

template <bool (*fits)(std::string_view, std::string_view)>
Value at_end(Call& c) {
  const Part in = part_of(c, 2);
  for (const Value& v : holds<Tuple>(c.at(1)) ? items_of(c.at(1)) : std::vector<Value>{c.at(1)})
    if (!in.none && fits(in.text, text_of(c, v))) return true;
  return false;
}
bool starts(std::string_view s, std::string_view with) { return s.starts_with(with); }
bool ends(std::string_view s, std::string_view with) { return s.ends_with(with); }

// Places are characters.
template <bool last>
Value find(Call& c) {
  const Part in = part_of(c, 2);
  const std::string& what = text_at(c, 1);
  const size_t at = last ? in.text.rfind(what) : in.text.find(what);
  if (in.none || at == in.text.npos) return int64_t(-1);
  return length(self(c).substr(0, in.from + at));
}
template <bool last>
Value index(Call& c) {
  Value v = find<last>(c);
  if (equal(v, int64_t(-1))) value_error("substring not found");
  return v;
}
Value count(Call& c) {
  const Part in = part_of(c, 2);
  const std::string& what = text_at(c, 1);
  if (in.none) return int64_t(0);
  if (what.empty()) return length(std::string(in.text)) + 1;
  int64_t n = 0;
  for (size_t at = 0; (at = in.text.find(what, at)) != in.text.npos; at += what.size()) n++;
  return n;
}
template <bool (*f)(char)>
Value every(Call& c) {
  const std::string& s = plain(c);
  return !s.empty() && std::all_of(s.begin(), s.end(), f);
}
bool either(char c) { return is_letter(c) || is_digit(c); }
template <bool (*yes)(char), bool (*no)(char)>
Value cased(Call& c) {
  const std::string& s = plain(c);
  return std::any_of(s.begin(), s.end(), yes) && std::none_of(s.begin(), s.end(), no);
}
bool shown(char c) { return c >= ' ' && c < 127; }
Value is_title(Call& c) {
  bool inside = false, any = false;
  for (char x : plain(c)) {
    if (is_letter(x) && is_upper(x) == inside) return false;
    inside = is_letter(x);
    any |= inside;
  }
  return any;
}
Value is_name(Call& c) {
  const std::string& s = plain(c);
  return !s.empty() && !is_digit(s[0]) &&
         std::all_of(s.begin(), s.end(), [](char x) { return either(x) || x == '_'; });
}
Value is_printable(Call& c) {
  const std::string& s = plain(c);
  return std::all_of(s.begin(), s.end(), shown);
}
Value is_ascii(Call& c) {
  const std::string& s = self(c);
  return std::none_of(s.begin(), s.end(), [](char x) { return uint8_t(x) > 127; });
}
Value filled(Call& c) {  // ljust, rjust, center
  c.most(3);
  const std::string_view who = c.who;
  const std::string fill = c.args.size() > 2 ? text_at(c, 2) : " ";
  if (length(fill) != 1) type_error("The fill character must be exactly one character long");
  const int64_t width = whole(c.at(1), c.who), missing = width - length(c.at(0));
  if (missing <= 0) return c.at(0);
  const int64_t left = who == "ljust"   ? 0
                       : who == "rjust" ? missing
                                        : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; i++) out += fill;
  out += self(c);
  for (int64_t i = left; i < missing; i++) out += fill;
  return out;
}
Value expandtabs(Call& c) {
  const Value* size = c.find(1, "tabsize");
  const int64_t n = size ? whole(*size, "expandtabs") : 8;
  std::string out;
  int64_t column = 0;
  for (const Value& v : items_of(c.at(0))) {
    const std::string& one = std::get<std::string>(v);
    if (one == "\t") {
      const int64_t more = n > 0 ? n - column % n : 0;
      out.append(size_t(more), ' ');
      column += more;
    } else {
      out += one;
      column = one == "\n" || one == "\r" ? 0 : column + 1;
    }
  }
  return out;
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
  bool counted = false, numbered = false;
  for (size_t i = 0; i < s.size(); i++) {
    if ((s[i] == '{' || s[i] == '}') && i + 1 < s.size() && s[i + 1] == s[i]) {
      out += s[i++];
      continue;
    }
    if (s[i] == '}') value_error("Single '}' encountered in format string");
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
    if (field.find_first_of(".[{") != field.npos || spec.find('{') != spec.npos || how == "a")
      raise_as(
          "NotImplementedError", AJ_UNIMPLEMENTED, "format: '{", field,
          "}' is not in the subset that is scripted; take the part out before, or use an f-string");
    if (!how.empty() && how != "r" && how != "s")
      value_error("Unknown conversion specifier '", how, "'");
    const Value* v = nullptr;
    if (field.empty() || is_digit(field[0])) {
      (field.empty() ? counted : numbered) = true;
      if (counted && numbered)
        value_error(
            "cannot switch between automatic field numbering and manual field specification");
      const size_t k = field.empty() ? next++ : 1 + size_t(std::atoi(field.c_str()));
      if (k >= c.args.size())
        index_error("Replacement index ", uint64_t(k - 1),
                    " out of range for positional args tuple");
      v = &c.args[k];
    } else if (!(v = c.find(SIZE_MAX, field))) {
      raise_as("KeyError", AJ_NOT_FOUND, repr(field));
    }
    out += how == "r" ? formatted(repr(*v), spec, "")
                      : formatted(how == "s" ? Value(c.machine.text_of(*v)) : *v, spec,
                                  c.machine.text_of(*v));
  }
  return out;
}
template <bool last>
Value partition(Call& c) {
  if (text_at(c, 1).empty()) value_error("empty separator");
  const size_t at = last ? self(c).rfind(text_at(c, 1)) : self(c).find(text_at(c, 1));
  if (at == std::string::npos)
    return last ? tuple({std::string(), std::string(), self(c)})
                : tuple({self(c), std::string(), std::string()});
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
    {"startswith", at_end<starts>},
    {"endswith", at_end<ends>},
    {"find", find<false>},
    {"rfind", find<true>},
    {"index", index<false>},
    {"rindex", index<true>},
    {"count", count},
    {"isdigit", every<is_digit>},
    {"isalpha", every<is_letter>},
    {"isalnum", every<either>},
    {"isspace", every<is_space>},
    {"isdecimal", every<is_digit>},
    {"isnumeric", every<is_digit>},
    {"istitle", is_title},
    {"isidentifier", is_name},
    {"isprintable", is_printable},
    {"isascii", is_ascii},
    {"casefold", lower},
    {"expandtabs", expandtabs},
    {"rsplit", rsplit},
    {"isupper", cased<is_upper, is_lower>},
    {"islower", cased<is_lower, is_upper>},
    {"ljust", filled},
    {"rjust", filled},
    {"center", filled},
    {"zfill", zfill},
    {"format", format},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
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

// core/op/schema.cpp: reads a signature. The grammar stands in abi/op.h.
#include <charconv>
#include <cstring>

#include "core/base/dtype.hpp"
#include "core/base/plain.hpp"
#include "core/op/call.hpp"
#include "core/op/op.hpp"

namespace adjoin {
namespace {

struct Reader {
  std::string_view all;
  size_t at = 0;

  void blank() {
    while (at < all.size() && is_blank(all[at])) at++;
  }
  bool eat(std::string_view word) {
    blank();
    if (all.substr(at, word.size()) != word) return false;
    at += word.size();
    return true;
  }
  char peek() {
    blank();
    return at < all.size() ? all[at] : 0;
  }
  std::string_view ident() {
    blank();
    size_t from = at;
    while (at < all.size() && (is_letter(all[at]) || is_digit(all[at]) || all[at] == '_')) at++;
    return all.substr(from, at - from);
  }
  aj_status* wrong(std::string_view wanted) {
    return fail(AJ_INVALID_ARGUMENT, "schema '", all, "': expected ", wanted, " at '",
                all.substr(std::min(at, all.size())), "'");
  }
};

struct Base {
  std::string_view name;
  int32_t base;
};
constexpr Base kBases[] = {
    {"Tensor", AJ_PARAM_TENSOR},
    {"Operand", AJ_PARAM_OPERAND},
    {"Scalar", AJ_PARAM_SCALAR},
    {"int", AJ_PARAM_INT},
    {"dim", AJ_PARAM_DIM},
    {"size", AJ_PARAM_SIZE},
    {"float", AJ_PARAM_FLOAT},
    {"bool", AJ_PARAM_BOOL},
    {"str", AJ_PARAM_STR},
    {"dtype", AJ_PARAM_DTYPE},
    {"device", AJ_PARAM_DEVICE},
    {"layout", AJ_PARAM_LAYOUT},
    {"memory_format", AJ_PARAM_MEMORY_FORMAT},
    {"Generator", AJ_PARAM_GENERATOR},
    {"Stream", AJ_PARAM_STREAM},
    {"Function", AJ_PARAM_FUNCTION},
    {"Object", AJ_PARAM_OBJECT},
};

aj_status* read_dtypes(Reader& r, uint64_t* mask) {
  do {
    std::string_view word = r.ident();
    uint64_t bits = 0;
    for (int i = 0; i < AJ_DT_REGISTERED; i++) {
      const DType& d = dtypes[i];
      if (!d.name) continue;
      bool in = word == d.name || (word == "integral" && d.cls == AJ_CLASS_INTEGER) ||
                (word == "floating" && d.cls == AJ_CLASS_FLOAT) ||
                (word == "complex" && d.cls == AJ_CLASS_COMPLEX) ||
                (word == "real" && d.cls <= AJ_CLASS_FLOAT);
      if (in) bits |= 1ull << i;
    }
    if (!bits) return r.wrong("a dtype");
    *mask |= bits;
  } while (r.eat("|") || r.eat(","));
  return r.eat(">") ? nullptr : r.wrong("'>'");
}

aj_status* read_type(Reader& r, Param* p) {
  std::string_view word = r.ident();
  p->base = -1;
  for (const Base& b : kBases)
    if (b.name == word) p->base = b.base;
  if (p->base < 0) return r.wrong("a type (Tensor, Operand, Scalar, int, ...)");
  if (p->base == AJ_PARAM_OBJECT && r.eat("<")) {
    p->type = r.ident();
    while (r.eat("::")) p->type += "::" + std::string(r.ident());
    if (p->type.empty() || !r.eat(">")) return r.wrong("a type's name and '>'");
  }
  if (r.eat("<")) AJ_TRY(read_dtypes(r, &p->dtypes));
  if (r.eat("(")) {
    std::string_view letter = r.ident();
    if (letter.empty()) return r.wrong("the letter of an alias");
    p->alias = letter[0];
    p->flags |= AJ_PARAM_ALIASED;
    if (r.eat("!")) p->flags |= AJ_PARAM_WRITTEN;
    if (!r.eat(")")) return r.wrong("')'");
  }
  bool optional = r.eat("?");
  if (r.eat("[")) {
    p->list = -1;
    if (is_digit(r.peek())) {
      std::string_view size = r.ident();
      std::from_chars(size.data(), size.data() + size.size(), p->list);
    }
    if (!r.eat("]")) return r.wrong("']'");
    if (p->base >= AJ_PARAM_STREAM)
      return r.wrong("no list: of streams, functions and objects there are none");
    if (optional) p->flags |= AJ_PARAM_OPTIONAL_ITEMS;
    if (r.eat("?")) p->flags |= AJ_PARAM_OPTIONAL;
  } else if (optional) {
    p->flags |= AJ_PARAM_OPTIONAL;
  }
  return nullptr;
}

aj_status* read_string(Reader& r, Param* p) {
  char quote = r.all[r.at++];
  size_t from = r.at;
  while (r.at < r.all.size() && r.all[r.at] != quote) r.at++;
  if (r.at == r.all.size()) return r.wrong("the end of a string");
  auto kept = std::make_shared<std::string>(r.all.substr(from, r.at++ - from));
  p->value = {AJ_STRING, uint32_t(kept->size()), {0}};
  p->value.v.str = kept->c_str();
  p->keep = kept;
  return nullptr;
}

aj_status* read_number(Reader& r, aj_value* v) {
  r.blank();
  const char* from = r.all.data() + r.at;
  std::string_view rest = r.all.substr(r.at);
  double f = take_double(&rest);
  size_t n = r.all.size() - r.at - rest.size();
  if (n == 0) return r.wrong("a value");
  int64_t i = 0;
  auto [end, error] = std::from_chars(from + (*from == '+'), from + n, i);
  *v = end == from + n && error == std::errc() ? value(i) : value(f);
  r.at += n;
  return nullptr;
}

aj_status* read_list(Reader& r, Param* p) {
  auto kept = std::make_shared<std::vector<int64_t>>();
  while (r.peek() != ']') {
    aj_value v;
    AJ_TRY(read_number(r, &v));
    if (v.tag != AJ_INT) return r.wrong("whole numbers in a list");
    kept->push_back(v.v.i);
    r.eat(",");
  }
  r.eat("]");
  p->value = value(std::span<const int64_t>(*kept));
  p->keep = kept;
  return nullptr;
}

// A single number stands for a fixed-length list; a number in a float's place is a float.
void settle(Param* p) {
  if (p->value.tag == AJ_INT && p->list > 0) {
    auto kept = std::make_shared<std::vector<int64_t>>(size_t(p->list), p->value.v.i);
    p->value = value(std::span<const int64_t>(*kept));
    p->keep = kept;
  } else if (p->value.tag == AJ_INT && p->base == AJ_PARAM_FLOAT) {
    p->value = value(double(p->value.v.i));
  }
}

aj_status* read_default(Reader& r, Param* p) {
  p->flags |= AJ_PARAM_HAS_DEFAULT;
  p->value = none();
  char c = r.peek();
  if (r.eat("None")) return nullptr;
  if (r.eat("True"))
    p->value = value(true);
  else if (r.eat("False"))
    p->value = value(false);
  else if (c == '\'' || c == '"')
    return read_string(r, p);
  else if (r.eat("["))
    return read_list(r, p);
  else if (p->base == AJ_PARAM_DTYPE || p->base == AJ_PARAM_MEMORY_FORMAT ||
           p->base == AJ_PARAM_LAYOUT) {
    std::string_view word = r.ident();
    if (const DType* d = find_dtype(word))
      p->value = value(*d);
    else if (p->base == AJ_PARAM_MEMORY_FORMAT)
      p->value = {AJ_MEMORY_FORMAT,
                  0,
                  {word == "preserve_format" ? AJ_FORMAT_PRESERVE : AJ_FORMAT_CONTIGUOUS}};
    else if (p->base == AJ_PARAM_LAYOUT)
      p->value = {AJ_LAYOUT, 0, {AJ_LAYOUT_STRIDED}};
    else
      return r.wrong("a dtype");
  } else {
    AJ_TRY(read_number(r, &p->value));
  }
  settle(p);
  return nullptr;
}

aj_status* read_params(Reader& r, Schema* s) {
  bool keyword_only = false;
  while (!r.eat(")")) {
    if (r.eat("*")) {
      keyword_only = true;
    } else {
      Param p;
      p.value = none();
      AJ_TRY(read_type(r, &p));
      p.name = r.ident();
      if (p.name.empty()) return r.wrong("a parameter's name");
      for (const Param& other : s->params)
        if (other.name == p.name) return r.wrong("a name that no other parameter has");
      if (keyword_only) p.flags |= AJ_PARAM_KEYWORD_ONLY;
      if (r.eat("=")) AJ_TRY(read_default(r, &p));
      s->writes |= (p.flags & AJ_PARAM_WRITTEN) != 0;
      s->params.push_back(std::move(p));
    }
    if (!r.eat(",") && r.peek() != ')') return r.wrong("',' or ')'");
  }
  return nullptr;
}

aj_status* read_result(Reader& r, Schema* s) {
  Param p;
  p.value = none();
  if (r.eat("aux ")) p.flags |= AJ_PARAM_AUX;
  AJ_TRY(read_type(r, &p));
  p.name = r.ident();
  s->results.push_back(std::move(p));
  return nullptr;
}

}  // namespace

aj_status* parse_schema(std::string_view text, Schema* s) {
  Reader r{text};
  s->text = text;
  std::string first(r.ident());
  if (r.eat("::")) {
    s->space = first;
    first = r.ident();
  }
  s->ident = first;
  if (r.eat(".")) s->overload = r.ident();
  if (s->ident.empty()) return r.wrong("a name");
  s->name = (s->space.empty() ? "" : s->space + "::") + s->ident +
            (s->overload.empty() ? "" : "." + s->overload);
  if (!r.eat("(")) return r.wrong("'('");
  AJ_TRY(read_params(r, s));
  if (!r.eat("->")) return r.wrong("'->'");
  if (r.eat("(")) {
    while (!r.eat(")")) {
      AJ_TRY(read_result(r, s));
      if (!r.eat(",") && r.peek() != ')') return r.wrong("',' or ')'");
    }
  } else {
    AJ_TRY(read_result(r, s));
  }
  r.blank();
  if (r.at != text.size()) return r.wrong("the end");
  s->result_is_first = s->writes && !s->params.empty() && (s->params[0].flags & AJ_PARAM_WRITTEN) &&
                       !s->results.empty() && s->results[0].alias == s->params[0].alias;
  return nullptr;
}

std::string_view op_name(const aj_op* op) { return op->schema.name; }

}  // namespace adjoin

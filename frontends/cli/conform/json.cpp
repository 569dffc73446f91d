// frontends/cli/conform/json.cpp: a reader of JSON by recursive descent.
#include "json.hpp"

#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace adjoin::cli::conform {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json whole() {
    Json value = any(0);
    space();
    if (at_ != text_.size()) wrong("the end");
    return value;
  }

 private:
  [[noreturn]] void wrong(const char* wanted) const {
    throw std::runtime_error("json: at byte " + std::to_string(at_) + " " + wanted +
                             " was wanted: " + std::string(text_.substr(at_, 40)));
  }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view word) {
    space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void need(std::string_view word, const char* wanted) {
    if (!take(word)) wrong(wanted);
  }

  Json any(int depth) {
    if (depth > 64) wrong("less depth");
    Json v;
    if (take("null")) return v;
    if (take("true") || take("false")) {
      v.kind = Json::kBool;
      v.yes = text_[at_ - 2] == 'u';
      return v;
    }
    space();
    char c = at_ < text_.size() ? text_[at_] : 0;
    if (c == '"') {
      v.kind = Json::kText;
      v.text = string();
    } else if (c == '[') {
      v.kind = Json::kList;
      list(v, depth);
    } else if (c == '{') {
      v.kind = Json::kObject;
      object(v, depth);
    } else {
      number(v);
    }
    return v;
  }

  void list(Json& v, int depth) {
    need("[", "'['");
    if (take("]")) return;
    do v.items.push_back(any(depth + 1));
    while (take(","));
    need("]", "',' or ']'");
  }

  void object(Json& v, int depth) {
    need("{", "'{'");
    if (take("}")) return;
    do {
      space();
      std::string key = string();
      need(":", "':'");
      v.members.push_back({std::move(key), any(depth + 1)});
    } while (take(","));
    need("}", "',' or '}'");
  }

  void number(Json& v) {
    for (auto [word, value] : {std::pair<const char*, double>{"NaN", std::nan("")},
                               {"Infinity", INFINITY},
                               {"-Infinity", -INFINITY}})
      if (take(word)) {
        v.kind = Json::kFloat;
        v.real = value;
        return;
      }
    size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
    std::string digits(text_.substr(at_, std::min(end, text_.size()) - at_));
    if (digits.empty()) wrong("a value");
    at_ += digits.size();
    if (digits.find_first_of(".eE") == digits.npos) {
      v.kind = Json::kInt;
      v.whole = std::strtoll(digits.c_str(), nullptr, 10);
    } else {
      v.kind = Json::kFloat;
      v.real = std::strtod(digits.c_str(), nullptr);
    }
  }

  std::string string() {
    if (at_ >= text_.size() || text_[at_] != '"') wrong("'\"'");
    ++at_;
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        out += text_[at_++];
        continue;
      }
      if (++at_ >= text_.size()) break;
      char c = text_[at_++];
      if (c == 'u')
        out += unicode();
      else
        out += c == 'n'   ? '\n'
               : c == 't' ? '\t'
               : c == 'r' ? '\r'
               : c == 'b' ? '\b'
               : c == 'f' ? '\f'
                          : c;
    }
    if (at_ >= text_.size()) wrong("the string's end");
    ++at_;
    return out;
  }

  std::string unicode() {
    if (at_ + 4 > text_.size()) wrong("four digits");
    auto code = uint32_t(std::strtoul(std::string(text_.substr(at_, 4)).c_str(), nullptr, 16));
    at_ += 4;
    if (code < 0x80) return {char(code)};
    if (code < 0x800) return {char(0xc0 | code >> 6), char(0x80 | (code & 63))};
    return {char(0xe0 | code >> 12), char(0x80 | (code >> 6 & 63)), char(0x80 | (code & 63))};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  for (const Member& m : members)
    if (m.name == name) return &m.value;
  return nullptr;
}

Json parse_json(std::string_view text) { return Reader(text).whole(); }

}  // namespace adjoin::cli::conform

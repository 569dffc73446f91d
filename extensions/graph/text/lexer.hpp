// extensions/graph/text/lexer.hpp: the words of a program's text.
#pragma once
#include "../ir.hpp"

namespace adjoin::graph {

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  template <class... Part>
  [[noreturn]] void wrong(const Part&... parts) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); i++)
      text_[i] == '\n' ? (line++, column = 1) : column++;
    raise(AJ_INVALID_ARGUMENT, "program, line ", uint64_t(line), ", column ", uint64_t(column),
          ": ", parts...);
  }

  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool eat(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    // A word ends where no letter follows.
    if (is_name(word.back()) && at_ + word.size() < text_.size() &&
        is_name(text_[at_ + word.size()]))
      return false;
    at_ += word.size();
    return true;
  }
  void need(std::string_view word) {
    if (!eat(word)) wrong("'", word, "' is wanted, there is ", seen());
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool looks(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  // A name of an op, a function, a dtype: letters, digits, _ . and :: inside.
  std::string name() {
    skip();
    size_t from = at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '.' || colons())) at_++;
    if (from == at_) wrong("a name is wanted, there is ", seen());
    return std::string(text_.substr(from, at_ - from));
  }
  // A parameter's name before `=`; nothing is taken if it is none.
  std::string keyword() {
    skip();
    size_t at = at_;
    while (at < text_.size() && is_name(text_[at])) at++;
    if (at == at_ || text_.substr(at, 1) != "=") return {};
    std::string found(text_.substr(at_, at - at_));
    at_ = at + 1;
    return found;
  }
  std::string string() {
    need("\"");
    std::string out;
    for (;; at_++) {
      if (at_ >= text_.size()) wrong("the text has no end");
      char c = text_[at_];
      if (c == '"') break;
      if (c != '\\') {
        out += c;
        continue;
      }
      char next = at_ + 1 < text_.size() ? text_[++at_] : '\0';
      if (next == 'n') {
        out += '\n';
      } else if (next == 'x') {
        uint8_t byte = 0;
        const char* from = text_.data() + at_ + 1;
        if (text_.size() - at_ < 3 || std::from_chars(from, from + 2, byte, 16).ptr != from + 2)
          wrong("\\x needs two digits");
        out += char(byte);
        at_ += 2;
      } else if (next == '"' || next == '\\') {
        out += next;
      } else {
        wrong("there is no \\", std::string_view(&next, 1), " in texts");
      }
    }
    at_++;
    return out;
  }
  int64_t integer() {
    skip();
    int64_t n = 0;
    auto [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
    if (bad != std::errc()) wrong("a whole number is wanted, there is ", seen());
    at_ = size_t(end - text_.data());
    return n;
  }
  // What a number's text is: digits, a sign, a point, an exponent; or inf, nan.
  std::string_view number() {
    skip();
    size_t at = at_;
    if (text_.substr(at, 1) == "-") at++;
    if (text_.substr(at, 3) == "inf" || text_.substr(at, 3) == "nan") return taken(at + 3);
    size_t digits = at;
    while (at < text_.size() &&
           (is_digit(text_[at]) || text_[at] == '.' || text_[at] == 'e' ||
            ((text_[at] == '-' || text_[at] == '+') && at > digits && text_[at - 1] == 'e')))
      at++;
    if (at == digits || !is_digit(text_[digits])) return {};
    return taken(at);
  }
  double real() {
    std::string_view s = number();
    double x = 0;
    if (s.empty() || std::from_chars(s.data(), s.data() + s.size(), x).ptr != s.data() + s.size())
      wrong("a number is wanted, there is ", s.empty() ? seen() : std::string(s));
    return x;
  }
  std::string seen() {
    skip();
    if (at_ >= text_.size()) return "the end";
    std::string_view s = text_.substr(at_, 20);
    return "'" + std::string(s.substr(0, s.find('\n'))) + "'";
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

 private:
  std::string_view taken(size_t end) {
    std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    return found;
  }
  bool colons() {
    if (text_.substr(at_, 2) != "::") return false;
    at_++;
    return true;
  }
  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      at_++;
    if (at_ < text_.size() && text_[at_] == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') at_++;
      skip();
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace adjoin::graph

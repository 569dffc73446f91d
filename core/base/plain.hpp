// core/base/plain.hpp: reads numbers and letters the same under every locale: a program that we are
// a guest of may have set one.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace adjoin {

// The number that a text begins with, and what follows it; nothing is taken where it begins with
// none.
inline double take_double(std::string_view* text) {
  double v = 0;
  std::string_view digits = *text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (error == std::errc()) text->remove_prefix(size_t(end - text->data()));
  return v;
}
inline double read_double(std::string_view text) {
  return take_double(&text);
}  // 0: it begins with none

// As "%.Nf" prints.
inline std::string fixed_text(double v, int digits) {
  char text[400];  // the largest double has 309 digits before its point
  return {text, std::to_chars(text, text + sizeof text, v, std::chars_format::fixed, digits).ptr};
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

}  // namespace adjoin

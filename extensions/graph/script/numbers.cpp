// extensions/graph/script/numbers.cpp: Python's arithmetic of numbers; that of tensors is the ops'.
#include <bit>
#include <cmath>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

[[noreturn]] void too_large() {
  raise_as("OverflowError", AJ_OUT_OF_RANGE,
           "a whole number of a scripted program has 64 bits, this one needs more; use floats");
}
[[noreturn]] void by_zero(const char* what) {
  raise_as("ZeroDivisionError", AJ_INVALID_ARGUMENT, what, " by zero");
}

int64_t floor_of(int64_t a, int64_t b) {
  if (!b) by_zero("integer division or modulo");
  if (b == -1) {
    int64_t out;
    if (__builtin_sub_overflow(int64_t(0), a, &out)) too_large();
    return out;
  }
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
int64_t rest_of(int64_t a, int64_t b) {
  if (!b) by_zero("integer division or modulo");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r && ((r < 0) != (b < 0)) ? r + b : r;
}

// Both, as CPython computes them.
void divide(double a, double b, double* floor, double* rest) {
  if (b == 0) by_zero("float floor division");
  double mod = std::fmod(a, b), div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) mod += b, div -= 1;
  } else {
    mod = std::copysign(0.0, b);
  }
  if (div != 0) {
    *floor = std::floor(div);
    if (div - *floor > 0.5) *floor += 1;
  } else {
    *floor = std::copysign(0.0, a / b);
  }
  *rest = mod;
}

// a / b, rounded once: both may have more bits than a double.
double quotient(int64_t a, int64_t b) {
  constexpr int64_t kExact = int64_t(1) << 53;
  if (!b) by_zero("division");
  if (a >= -kExact && a <= kExact && b >= -kExact && b <= kExact) return double(a) / double(b);
  const uint64_t x = a < 0 ? -uint64_t(a) : uint64_t(a), y = b < 0 ? -uint64_t(b) : uint64_t(b);
  const int shift = std::max(0, 56 - int(std::bit_width(x)) + int(std::bit_width(y)));
  const unsigned __int128 wide = static_cast<unsigned __int128>(x) << shift;
  const uint64_t q = uint64_t(wide / y) | (wide % y != 0);
  const double out = std::ldexp(double(q), -shift);
  return (a < 0) != (b < 0) ? -out : out;
}

using Complex = std::complex<double>;

// Quotients and powers of complex numbers as CPython computes them.
Complex quotient(Complex a, Complex b) {
  if (b == 0.0) by_zero("complex division");
  if (std::isnan(b.real()) || std::isnan(b.imag())) return {NAN, NAN};
  if (std::fabs(b.real()) >= std::fabs(b.imag())) {
    const double ratio = b.imag() / b.real(), by = b.real() + b.imag() * ratio;
    return {(a.real() + a.imag() * ratio) / by, (a.imag() - a.real() * ratio) / by};
  }
  const double ratio = b.real() / b.imag(), by = b.real() * ratio + b.imag();
  return {(a.real() * ratio + a.imag()) / by, (a.imag() * ratio - a.real()) / by};
}
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
Complex power(Complex a, Complex b) {
  if (b.imag() == 0 && std::floor(b.real()) == b.real() && std::fabs(b.real()) <= 100) {
    Complex out(1, 0), square = a;
    for (int n = int(std::fabs(b.real())), bit = 1; bit <= n; bit <<= 1) {
      if (n & bit) out = product(out, square);
      square = product(square, square);
    }
    return b.real() > 0 ? out : quotient(Complex(1, 0), out);
  }
  if (a == 0.0) {
    if (b.imag() != 0 || b.real() < 0) by_zero("0.0 to a negative or complex power: division");
    return 0.0;
  }
  const double size = std::hypot(a.real(), a.imag()), angle = std::atan2(a.imag(), a.real());
  double length = std::pow(size, b.real()), phase = angle * b.real();
  if (b.imag() != 0) {
    length /= std::exp(angle * b.imag());
    phase += b.imag() * std::log(size);
  }
  const Complex out(length * std::cos(phase), length * std::sin(phase));
  if (std::isinf(out.real()) || std::isinf(out.imag()))
    raise_as("OverflowError", AJ_OUT_OF_RANGE, "complex exponentiation");
  return out;
}

Value power(int64_t a, int64_t n) {
  if (n < 0) {
    if (!a) by_zero("0.0 cannot be raised to a negative power: division");
    return std::pow(double(a), double(n));
  }
  int64_t out = 1;
  while (n) {
    if (n & 1 && __builtin_mul_overflow(out, a, &out)) too_large();
    n >>= 1;
    if (n && __builtin_mul_overflow(a, a, &a)) too_large();
  }
  return out;
}

Value of_wholes(char op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case '+':
      if (__builtin_add_overflow(a, b, &out)) too_large();
      return out;
    case '-':
      if (__builtin_sub_overflow(a, b, &out)) too_large();
      return out;
    case '*':
      if (__builtin_mul_overflow(a, b, &out)) too_large();
      return out;
    case '/':
      return quotient(a, b);
    case 'f':
      return floor_of(a, b);
    case '%':
      return rest_of(a, b);
    case '^':
      return power(a, b);
    case '&':
      return a & b;
    case '|':
      return a | b;
    case 'x':
      return a ^ b;
    case '<':
      if (b < 0) value_error("negative shift count");
      if (a && (b > 62 || (a << b) >> b != a)) too_large();
      return b > 62 ? 0 : a << b;
    default:
      if (b < 0) value_error("negative shift count");
      return a >> std::min<int64_t>(b, 63);
  }
}

Value of_reals(char op, double a, double b) {
  double floor, rest;
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      if (b == 0) by_zero("float division");
      return a / b;
    case 'f':
      divide(a, b, &floor, &rest);
      return floor;
    case '%':
      divide(a, b, &floor, &rest);
      return rest;
    default:
      if (a == 0 && b < 0 && std::isfinite(b))
        by_zero("0.0 cannot be raised to a negative power: division");
      if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::trunc(b) != b)
        return power(Complex(a), Complex(b));
      const double out = std::pow(a, b);
      if (std::isinf(out) && std::isfinite(a) && std::isfinite(b))
        raise_as("OverflowError", AJ_OUT_OF_RANGE, "(34, 'Numerical result out of range')");
      return out;
  }
}

Value of_complexes(char op, std::complex<double> a, std::complex<double> b) {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return product(a, b);
    case '/':
      return quotient(a, b);
    default:
      return power(a, b);
  }
}

const char* op_name(char op) {
  switch (op) {
    case '+':
      return "add";
    case '-':
      return "sub";
    case '*':
      return "mul";
    case '/':
      return "div";
    case 'f':
      return "floor_divide";
    case '%':
      return "remainder";
    case '^':
      return "pow";
    case '@':
      return "matmul";
    case '&':
      return "bitwise_and";
    case '|':
      return "bitwise_or";
    case 'x':
      return "bitwise_xor";
    case '<':
      return "bitwise_left_shift";
    default:
      return "bitwise_right_shift";
  }
}

Value repeated(const std::vector<Value>& items, int64_t n, bool as_tuple) {
  std::vector<Value> out;
  for (int64_t i = 0; i < n; i++) out.insert(out.end(), items.begin(), items.end());
  return as_tuple ? tuple(std::move(out)) : list(std::move(out));
}

// Texts, lists, tuples: + and *.
bool of_sequences(char op, const Value& a, const Value& b, Value* out) {
  if (op == '+') {
    if (is<std::string>(a) && is<std::string>(b))
      return *out = std::get<std::string>(a) + std::get<std::string>(b), true;
    const auto several = [](const Value& v) { return holds<List>(v) || holds<Tuple>(v); };
    if (!several(a) || !several(b)) return false;
    std::vector<Value> all = items_of(a);
    for (Value& v : items_of(b)) all.push_back(std::move(v));
    const bool both = holds<Tuple>(a) && holds<Tuple>(b);  // else a list, as TorchScript makes one
    *out = both ? tuple(std::move(all)) : list(std::move(all));
    return true;
  }
  if (op != '*') return false;
  if (is_whole(a) && !is_whole(b)) return of_sequences(op, b, a, out);
  if (!is_whole(b)) return false;
  const int64_t n = std::max<int64_t>(0, whole(b, "*"));
  if (auto* s = std::get_if<std::string>(&a)) {
    std::string all;
    for (int64_t i = 0; i < n; i++) all += *s;
    return *out = std::move(all), true;
  }
  if (!holds<List>(a) && !holds<Tuple>(a)) return false;
  *out = repeated(items_of(a), n, holds<Tuple>(a));
  return true;
}

}  // namespace

Value arithmetic(char op, const Value& a, const Value& b) {
  if (is<int64_t>(a) && is<int64_t>(b))
    return of_wholes(op, std::get<int64_t>(a), std::get<int64_t>(b));
  if (is<Tensor>(a) || is<Tensor>(b)) return call_named(op_name(op), {a, b});
  if (is<bool>(a) && is<bool>(b) && (op == '&' || op == '|' || op == 'x'))
    return whole(of_wholes(op, std::get<bool>(a), std::get<bool>(b)), "&") != 0;
  if (is_whole(a) && is_whole(b) && op != '@') return of_wholes(op, whole(a, "+"), whole(b, "+"));
  const bool numbers = is_number(a) && is_number(b) && std::string_view("+-*/f%^").find(op) < 7;
  if (numbers && !is<std::complex<double>>(a) && !is<std::complex<double>>(b))
    return of_reals(op, real(a, "+"), real(b, "+"));
  if (numbers && op != 'f' && op != '%') return of_complexes(op, complex_of(a), complex_of(b));
  Value out;
  if (of_sequences(op, a, b, &out)) return out;
  if (Dict* x = in<Dict>(a), *y = in<Dict>(b); op == '|' && x && y) {
    auto both = std::make_shared<Dict>(*x);
    for (auto& [k, v] : y->items) both->set(k, v);
    return both;
  }
  type_error("unsupported operand type(s) for ", op_name(op), ": '", type_name(a), "' and '",
             type_name(b), "'");
}

}  // namespace adjoin::graph::script

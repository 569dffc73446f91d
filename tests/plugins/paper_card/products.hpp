// tests/plugins/paper_card/products.hpp: matrix products by loops, as the paper libraries count
// them: columns first.
#ifndef ADJOIN_TESTS_PAPER_CARD_PRODUCTS_HPP
#define ADJOIN_TESTS_PAPER_CARD_PRODUCTS_HPP
#include <complex>

#include "card.hpp"
#include "numbers.hpp"

namespace paper {

enum { kF32 = 0, kF64 = 1, kF16 = 2, kC32 = 4, kC64 = 5, kBF16 = 14 };  // cudaDataType_t

struct Product {
  int turn_a = 0, turn_b = 0;  // as it is, transposed, conjugated too
  bool tf32 = false;
  const void* bias = nullptr;  // a number for each row
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};

inline double turned(double x, int) { return x; }
template <class T>
std::complex<T> turned(std::complex<T> x, int turn) {
  return turn == 2 ? std::conj(x) : x;
}

// Columns first, as the library counts.
template <class T, class Sum, class Scale>
void multiply(const Product& p, Scale alpha, Scale beta, const Layout& la, const T* a,
              const Layout& lb, const T* b, const Layout& lc, const T* c, const Layout& ld, T* d) {
  uint64_t inner = p.turn_a ? la.rows : la.columns;
  for (int64_t s = 0; s < ld.batch; ++s)
    for (uint64_t j = 0; j < ld.columns; ++j)
      for (uint64_t i = 0; i < ld.rows; ++i) {
        Sum sum = 0;
        for (uint64_t k = 0; k < inner; ++k) {
          Sum x = a[s * la.stride + int64_t(p.turn_a ? i : k) * la.ld + int64_t(p.turn_a ? k : i)];
          Sum y = b[s * lb.stride + int64_t(p.turn_b ? k : j) * lb.ld + int64_t(p.turn_b ? j : k)];
          if constexpr (std::is_same_v<T, float>)
            if (p.tf32) x = as_tf32(float(x)), y = as_tf32(float(y));
          sum += Sum(turned(x, p.turn_a)) * Sum(turned(y, p.turn_b));
        }
        Sum result = Sum(alpha) * sum;
        if (p.bias) result += Sum(static_cast<const T*>(p.bias)[i]);
        if (beta != Scale(0))
          result += Sum(beta) * Sum(c[s * lc.stride + int64_t(j) * lc.ld + int64_t(i)]);
        d[s * ld.stride + int64_t(j) * ld.ld + int64_t(i)] = T(result);
      }
}

inline bool fits(const Product& p, const Layout& a, const Layout& b, const Layout& d) {
  for (const Layout* l : {&a, &b, &d})
    if (l->rows == 0 || l->columns == 0 || l->ld < int64_t(l->rows) || l->batch != d.batch ||
        l->type != d.type)
      return false;
  return (p.turn_a ? a.columns : a.rows) == d.rows &&
         (p.turn_b ? b.rows : b.columns) == d.columns &&
         (p.turn_a ? a.rows : a.columns) == (p.turn_b ? b.columns : b.rows);
}

// Queues it; -1: of no such type.
template <class Before>
int queue_product(Stream* stream, const Product& p, const void* alpha, const void* a,
                  const Layout& la, const void* b, const Layout& lb, const void* beta,
                  const void* c, const Layout& lc, void* d, const Layout& ld, Before before) {
  auto queue = [&]<class T, class Sum, class Scale>() {
    Scale by, plus;
    std::memcpy(&by, alpha, sizeof by);
    std::memcpy(&plus, beta, sizeof plus);
    auto work = [=] {
      if (idle_now) return;
      before();
      multiply<T, Sum, Scale>(p, by, plus, la, static_cast<const T*>(a), lb,
                              static_cast<const T*>(b), lc, static_cast<const T*>(c), ld,
                              static_cast<T*>(d));
    };
    return submit(stream, traced(Task::kernel, "product of paper", 0, stream, work));
  };
  ++counts.products;
  std::string text = "product " + std::to_string(ld.type);
  for (uint64_t n : {ld.rows, ld.columns, p.turn_a ? la.rows : la.columns, uint64_t(ld.batch)})
    text += " " + std::to_string(n);
  note(text);
  using C32 = std::complex<float>;
  using C64 = std::complex<double>;
  switch (ld.type) {
    case kF32:
      return queue.template operator()<float, double, float>();
    case kF64:
      return queue.template operator()<double, double, double>();
    case kF16:
      return queue.template operator()<Half, double, float>();
    case kBF16:
      return queue.template operator()<BFloat16, double, float>();
    case kC32:
      return queue.template operator()<C32, C64, C32>();
    case kC64:
      return queue.template operator()<C64, C64, C64>();
    default:
      return -1;
  }
}

}  // namespace paper
#endif

// plugins/cpu/product/gemm.hpp: C = alpha op(A) op(B) + beta C, by whichever provider of
// "aj.blas/cpu" is best for the problem.
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_GEMM_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_GEMM_HPP
#include <adjoin/abi/service.h>

#include <adjoin/kit/dtype.hpp>
#include <string>

namespace adjoin::cpu {

// What is multiplied: row-major, strides in elements.
template <class T>
struct Matrix {
  const T* data;
  int64_t ld;
  bool transposed = false;  // the element (i, j) lies at [j * ld + i]
  Matrix rows(int64_t from) const {
    return {data + (transposed ? from : from * ld), ld, transposed};
  }
  Matrix columns(int64_t from) const {
    return {data + (transposed ? from * ld : from), ld, transposed};
  }
};

// C = alpha op(A) op(B) + beta C + bias.
template <class T>
struct Gemm {
  int64_t m, n, k;
  Matrix<T> a, b;
  T* c;
  int64_t ldc;
  kit::Math<T> alpha = kit::Math<T>(1), beta = kit::Math<T>(0);
  const T* bias = nullptr;  // (with alpha 1 and beta 0) one number a column
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  aj_tensor* b_tensor = nullptr;  // (optional) what b lies in: packed forms of it may be kept
};

// On the calling thread. T: float, double, complex, integers (our own loops; they wrap).
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<T> a, Matrix<T> b, T beta, T* c,
          int64_t ldc);

// Can half types be multiplied as they are? Else the caller widens them.
bool multiplies_halves();

// Over the pool: C is cut, k never. by_shape: the bits do not depend on the number of threads.
template <class T>
void multiply(const Gemm<T>& g, bool by_shape);

// The same by one provider where it can; null: by our own code.
template <class T>
void multiply_by(const aj_blas* who, const Gemm<T>& g, bool by_shape);

// By our own code, on the calling thread.
template <class T>
void own_product(const Gemm<T>& g);
bool has_vectors(DLDataType dtype);

// Our own code, and a library as providers. wish: "" is whichever is found, else one of kLibraries
// or a path.
extern const aj_blas own_blas;
const aj_blas* library_blas(const std::string& wish);
inline constexpr const char* kLibraries[] = {"openblas", "blis", "mkl", "blas"};

}  // namespace adjoin::cpu
#endif

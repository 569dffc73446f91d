// plugins/gpu/kernels/hot/product.cuh: matrix products by tiles in shared memory; operands are read
// by their strides, so a transposed one costs nothing.
#include <adjoin/kit/linear.hpp>
#include <optional>

#include "../../element.cuh"
#include "../../tile.cuh"

namespace adjoin::gpu {
namespace {

using products = stored_numeric;

// C[m, n] = alpha A[m, k] B[k, n] + beta D, for each of `batch`; strides in elements.
template <class T>
struct Product {
  const T *a, *b, *d;  // d: NULL if there is none
  T* c;
  int64_t batch, m, n, k;
  Divisor tiles_m, tiles_n;
  int64_t a_batch, a_row, a_column, b_batch, b_row, b_column, d_row, d_column, c_batch, c_row,
      c_column;
  Accumulator<T> alpha, beta;
  bool scaled;  // alpha is not 1
};

template <class T>
AJ_GLOBAL void product_kernel(AJ_ARGUMENT Product<T> p) {
  using A = Accumulator<T>;
  int64_t tasks = p.batch * p.tiles_m.size * p.tiles_n.size;
  for (int64_t task = block_x(); task < tasks; task += blocks_x()) {
    int64_t image = task, column0 = p.tiles_n.split(&image) * kTile,
            row0 = p.tiles_m.split(&image) * kTile;
    const T *a = p.a + image * p.a_batch, *b = p.b + image * p.b_batch;
    A sum[kOwn][kOwn];
    clear(sum);
    multiply_tile<T>(
        p.k,
        [&](int row, int64_t k) {
          return row0 + row < p.m ? a[(row0 + row) * p.a_row + k * p.a_column] : T(0);
        },
        [&](int64_t k, int column) {
          return column0 + column < p.n ? b[k * p.b_row + (column0 + column) * p.b_column] : T(0);
        },
        sum);
    for_own<T>(sum, [&](int i, int j, A value) {
      int64_t row = row0 + i, column = column0 + j;
      if (row >= p.m || column >= p.n) return;
      if (p.scaled) value = scalar::Mul()(p.alpha, value);
      if (p.d)
        value = scalar::Add()(value,
                              scalar::Mul()(p.beta, A(p.d[row * p.d_row + column * p.d_column])));
      p.c[image * p.c_batch + row * p.c_row + column * p.c_column] = cast<T>(value);
    });
  }
}

// A tensor of the wanted dtype, as matrices over its own strides.
template <class T>
struct Matrices {
  const T* data;
  int64_t batch, row, column;
  explicit Matrices(TensorView t)
      : data(reach(t.data<T>())),
        batch(t.ndim() == 3 ? t.stride(0) : 0),
        row(t.ndim() > 1 ? t.stride(-2) : 0),
        column(t.stride(-1)) {}
};

template <class T>
void run(const aj_call* call, Product<T> p) {
  p.tiles_m = (p.m + kTile - 1) / kTile;
  p.tiles_n = (p.n + kTile - 1) / kTile;
  launch_blocks<&product_kernel<T>>(call, p.batch * p.tiles_m.size * p.tiles_n.size, kTileThreads,
                                    p);
}

template <class T>
Product<T> plain_product(TensorView a, TensorView b, MutView out) {
  Product<T> p = {};
  Matrices<T> x(a), y(b), z(out);
  p.a = x.data, p.a_batch = x.batch, p.a_row = x.row, p.a_column = x.column;
  p.b = y.data, p.b_batch = y.batch, p.b_row = y.row, p.b_column = y.column;
  p.c = const_cast<T*>(z.data), p.c_batch = z.batch, p.c_row = z.row, p.c_column = z.column;
  p.batch = a.ndim() == 3 ? a.size(0) : 1;
  p.m = a.size(-2), p.k = a.size(-1), p.n = b.size(-1);
  p.alpha = p.beta = Accumulator<T>(1);
  return p;
}

void bmm(Args args) {
  TensorView a = args.tensor(0);
  visit<products>(a.dtype(), [&]<class T>() {
    run(args.call(), plain_product<T>(a, args.tensor(1), args.result(0)));
  });
}

void addmm(Args args) {
  TensorView c = args.tensor(0), a = args.tensor(1);
  visit<products>(a.dtype(), [&]<class T>() {
    using A = Accumulator<T>;
    auto p = plain_product<T>(a, args.tensor(2), args.result(0));
    std::optional<Plain<T>> made;
    p.beta = number<A>(args[3]), p.alpha = number<A>(args[4]);
    p.scaled = !(p.alpha == A(1));
    if (!(p.beta == A(0))) {  // what is multiplied by zero may be uninitialised
      if (foreign(args.call(), c)) made.emplace(args.call(), c);
      p.d = made ? made->data() : reach(c.data<T>());
      p.d_row = c.ndim() == 2 && c.size(0) != 1 ? c.stride(0) : 0;
      p.d_column = c.ndim() && c.size(-1) != 1 ? c.stride(-1) : 0;
    }
    run(args.call(), p);
  });
}

void linear(Args args) {
  TensorView x = args.tensor(0), w = args.tensor(1), bias = args.tensor(2);
  MutView out = args.result(0);
  int64_t n = w.ndim() == 2 ? w.size(0) : 1, k = w.size(-1),
          m = k ? x.numel() / k : out.numel() / std::max<int64_t>(n, 1);
  want_row(bias, n);
  visit<products>(x.dtype(), [&]<class T>() {
    Plain<T> a(args.call(), x), b(args.call(), w), c(args.call(), out);
    Product<T> p = {};
    p.a = a.data(), p.a_row = k, p.a_column = 1;
    p.b = b.data(), p.b_row = 1, p.b_column = k;
    p.c = c.data(), p.c_row = n, p.c_column = 1;
    p.batch = 1, p.m = m, p.n = n, p.k = k;
    p.alpha = p.beta = Accumulator<T>(1);
    Plain<T> add(args.call(), bias);
    if (bias) p.d = add.data(), p.d_column = bias.numel() == 1 ? 0 : 1;
    run(args.call(), p);
    c.commit();
  });
}

}  // namespace

AJ_KERNELS(product_kernels) = {
    {"mm", custom<bmm, products>},
    {"bmm", custom<bmm, products>},
    {"addmm", custom<addmm, products>},
    {"nn::linear", custom<linear, products>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

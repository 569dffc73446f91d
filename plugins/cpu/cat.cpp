// plugins/cpu/cat.cpp: joining tensors along a dimension, by rows of bytes.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>

#include "convert_rows.hpp"
#include "rows.hpp"
#include "tables.hpp"

namespace adjoin::cpu {
namespace {

// Rows of a few bytes, which a call of memcpy() each would cost more than they do.
void columns(char* to, int64_t step, const char* from, int64_t bytes, int64_t lo, int64_t hi) {
  auto move = [&]<class T>(T) {
    int64_t each = bytes / int64_t(sizeof(T));
    for (int64_t o = lo; o < hi; ++o)
      for (int64_t k = 0; k < each; ++k)
        std::memcpy(to + o * step + k * int64_t(sizeof(T)),
                    from + (o * each + k) * int64_t(sizeof(T)), sizeof(T));
  };
  if (bytes % 8 == 0)
    move(uint64_t());
  else if (bytes % 4 == 0)
    move(uint32_t());
  else
    move(char());
}

void cat(Args args) {
  MutView out = args.result(0);
  int64_t dim = args.integer(1), at = 0, size = bytes_of(out.dtype());
  Lines whole(out.shape(), dim);
  auto join = [&](char* to) {
    for (aj_tensor* each : args.tensors(0)) {
      TensorView t(each);
      if (t.ndim() == 1 && t.size(0) == 0) continue;  // an empty vector goes with everything
      Lines l(t.shape(), dim);
      auto rows = [&](const char* from) {
        int64_t bytes = l.size * l.inner * size, step = whole.size * whole.inner * size,
                begin = at * l.inner * size;
        bool past = bytes >= 1024 && 2 * out.numel() * size >= stream_bytes();
        parallel_for(l.outer, grain_of(l.size * l.inner), [&](int64_t lo, int64_t hi) {
          if (bytes <= 16) return columns(to + begin, step, from, bytes, lo, hi);
          for (int64_t o = lo; o < hi; ++o)
            if (past)
              stream_row(to + o * step + begin, from + o * bytes, bytes);
            else
              copy_neighbours(to + o * step + begin, from + o * bytes, int64_t(bytes));
          if (past) end_streaming();
        });
      };
      if (t.dense())
        rows(t.bytes());
      else
        visit<stored>(t.dtype(),
                      [&]<class T>() { rows(reinterpret_cast<const char*>(Dense<T>(t).data())); });
      at += l.size;
    }
  };
  if (out.dense()) return join(out.bytes());
  visit<stored>(out.dtype(), [&]<class T>() {
    Dense<T> to(out);
    join(reinterpret_cast<char*>(to.data()));
    to.commit();
  });
}

}  // namespace

const Kernel cat_kernels[] = {
    {"cat_same", custom<cat>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

// plugins/cpu/cat.cpp: joining tensors along a dimension, by rows of bytes.
#include <adjoin/kit/geometry.hpp>
#include <adjoin/kit/parallel.hpp>

#include "tables.hpp"

namespace adjoin::cpu {
namespace {

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
        parallel_for(l.outer, grain_of(l.size * l.inner), [&](int64_t lo, int64_t hi) {
          for (int64_t o = lo; o < hi; ++o)
            std::memcpy(to + o * step + begin, from + o * bytes, bytes);
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

// plugins/cpu/index/scatter.cpp: gather and scatter.
#include <adjoin/kit/scalar.hpp>
#include <cstring>

#include "index_lines.hpp"
#include "index_rows.hpp"
#include "vector/stored.hpp"
#include "vector/stream.hpp"

namespace adjoin::cpu {
namespace {

template <class T>
void read_part(void* named, void* beside, const IndexPart& p) {
  const T* from = static_cast<const T*>(named);
  T* to = static_cast<T*>(beside);
  each_of<true>(
      p, [=](int64_t place, int64_t at) { to[at] = from[place]; },
      [=](int64_t place) { __builtin_prefetch(from + place); },
      [=](int64_t at) { __builtin_prefetch(to + at, 1); });
}

template <class T>
void write_part(void* named, void* beside, const IndexPart& p) {
  T* to = static_cast<T*>(named);
  const T* from = static_cast<const T*>(beside);
  each_of<true>(
      p, [=](int64_t place, int64_t at) { to[place] = from[at]; },
      [=](int64_t place) { __builtin_prefetch(to + place, 1); },
      [=](int64_t at) { __builtin_prefetch(from + at); });
}

void gather(Args args) {
  TensorView x = args.tensor(0), index = args.tensor(2);
  MutView out = args.result(0);
  const int64_t dim = args.integer(1) + (args.integer(1) < 0 ? x.ndim() : 0);
  if (x.dense() && out.dense() && index.numel() && names_rows(index, out.shape(), x.shape(), dim)) {
    const Lines l(x.shape(), dim);
    const std::vector<int64_t> rows = named_rows(index, dim, l.size);
    return copy_rows(out.bytes(), x.bytes(), rows.data(), l.outer, l.size, int64_t(rows.size()),
                     l.inner * bytes_of(x.dtype()));
  }
  IndexLines lines(index, dim, x.shape(), x.strides(), out.strides());
  const PartWork read = visit_size(x.dtype(), []<class T>() -> PartWork { return read_part<T>; });
  lines.each([&](const IndexPart& p) { read(const_cast<char*>(x.bytes()), out.bytes(), p); },
             false);
}

void scatter(Args args) {
  TensorView x = args.tensor(0), source;
  MutView out = args.result(0);
  alignas(16) char element[16];
  if (args[3].tag == AJ_TENSOR)
    source = args.tensor(3);
  else
    visit<stored>(x.dtype(), [&]<class T>() {
      *reinterpret_cast<T*>(element) = cast<T>(number<Math<T>>(args[3]));
    });
  IndexLines lines(args.tensor(2), args.integer(1), x.shape(), out.strides(),
                   source ? source.strides() : Span());
  const PartWork write = visit_size(x.dtype(), []<class T>() -> PartWork { return write_part<T>; });
  // Lines that are the output's are copied while they lie in the cache.
  const bool copies = x.get() != out.get() && x.dense() && out.dense() && lines.whole();
  if (!copies) start_from(x, out);
  char* from = source ? const_cast<char*>(source.bytes()) : element;
  const int64_t line = lines.size() * bytes_of(x.dtype());
  lines.each(
      [&](const IndexPart& p) {
        const int64_t begin = p.first * line;
        if (copies) copy_neighbours(out.bytes() + begin, x.bytes() + begin, p.lines * line);
        write(out.bytes(), from, p);
      },
      copies);
}

}  // namespace

AJ_KERNELS(scatter_kernels) = {
    {"gather", custom<gather>},
    {"scatter", custom<scatter>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

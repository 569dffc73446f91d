// plugins/gpu/vendor/transforms.cpp: kernels of Fourier transforms: each makes descriptions of a
// call's tensors and gives them to a service of its device. Where none serves, the kernels decline,
// and transforms are products of matrices.
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/plans.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>

#include "fourier.hpp"
#include "fourier_library.hpp"

namespace adjoin::vendor {
namespace {

using kit::Args;
using Dims = std::vector<int64_t>;
constexpr size_t kMostDims = 3;  // of one description

aj_str slot() {
  static const std::string name = std::string("aj.fft/") + kDevice;
  return kit::str(name);
}

void* data(const Tensor& t) { return kit::MutView(t.get()).bytes(); }
Tensor argument(const Args& args, uint32_t i) { return Tensor::borrow(args.tensor(i).get()); }
Tensor result(const Args& args, uint32_t i) { return Tensor::borrow(args.result(i).get()); }
DLDataType real_part_of(DLDataType d) {
  return {kDLFloat, uint8_t(d.code == kDLComplex ? d.bits / 2 : d.bits), 1};
}
bool is_aligned(const Tensor& t) {
  const uint64_t complex = real_part_of(t.dtype()).bits / 4;
  return reinterpret_cast<uintptr_t>(data(t)) % complex == 0;
}

struct How {
  int32_t kind;
  bool forward;
  double scale;
  int64_t last;  // the real elements of the last of the dimensions
};

// False where the other dimensions are not one row of arrays.
bool describe(const Tensor& in, const Tensor& out, std::span<const int64_t> dims, const How& how,
              aj_fft_desc* to) {
  aj_fft_desc& d = *to = {};
  d.struct_size = sizeof d, d.kind = how.kind, d.dtype = real_part_of(in.dtype());
  d.device = in.device(), d.forward = how.forward, d.scale = how.scale;
  d.rank = int32_t(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) {
    d.sizes[k] = k + 1 == dims.size() ? how.last : in.size(dims[k]);
    d.stride_in[k] = in.stride(dims[k]), d.stride_out[k] = out.stride(dims[k]);
  }
  struct Other {
    int64_t size, in, out;
  };
  std::vector<Other> others;
  for (int64_t i = 0; i < in.ndim(); ++i)
    if (in.size(i) != 1 && std::ranges::find(dims, i) == dims.end())
      others.push_back({in.size(i), in.stride(i), out.stride(i)});
  std::ranges::sort(others, [](const Other& a, const Other& b) { return a.out > b.out; });
  d.batch = d.batch_in = d.batch_out = 1;
  for (size_t i = others.size(); i-- > 0;) {
    const Other& o = others[i];
    if (i + 1 == others.size())
      d.batch_in = o.in, d.batch_out = o.out;
    else if (o.in != d.batch_in * d.batch || o.out != d.batch_out * d.batch)
      return false;
    d.batch *= o.size;
  }
  return true;
}

const aj_fft* offer_for(const aj_fft_desc& d) {
  const aj_services& all = kit::services();
  for (uint32_t i = 0; i < all.count(slot()); ++i) {
    aj_service_def def = {};
    def.struct_size = sizeof def;
    kit::check(all.at(slot(), i, &def));
    auto* table = static_cast<const aj_fft*>(def.table);
    if (table->score(table->self, &d) > 0) return table;
  }
  return nullptr;
}

bool served(const Args& args, const Tensor& in, const Tensor& out, std::span<const int64_t> dims,
            const How& how) {
  static auto* plans = new kit::Plans;  // never destroyed: threads may still compute at exit
  aj_fft_desc d;
  if (!describe(in, out, dims, how, &d) || !is_aligned(in) || !is_aligned(out)) return false;
  const aj_fft* table = offer_for(d);
  if (!table) return false;
  const kit::Plans::Held plan = plans->get(table, d, kit::services().revision());
  kit::check(table->run(table->self, plan.get(), data(in), 0, data(out), 0, args.call()->stream));
  return true;
}

// Where the tensors lie in another way than a service takes, it gets copies without gaps, the
// dimensions last.
void transform(const Args& args, const Tensor& in, const Tensor& out, std::span<const int64_t> dims,
               const How& how) {
  if (served(args, in, out, dims, how)) return;
  Dims order;
  for (int64_t i = 0; i < in.ndim(); ++i)
    if (std::ranges::find(dims, i) == dims.end()) order.push_back(i);
  const auto first = int64_t(order.size());
  order.insert(order.end(), dims.begin(), dims.end());
  const Tensor seen = permute(out, order), from = permute(in, order);
  Tensor copied = empty(from.shape(), in.dtype(), in.device());
  copy_(copied, from);
  const Tensor made = empty(seen.shape(), out.dtype(), out.device());
  Dims last(dims.size());
  for (size_t k = 0; k < last.size(); ++k) last[k] = first + int64_t(k);
  if (!served(args, copied, made, last, how))
    kit::raise(AJ_UNIMPLEMENTED, "no service of ", kit::view_of(slot()), " takes a transform of ",
               ops::shown(in), " of ", in.dtype());
  copy_(seen, made);
}

// Complex numbers along any number of dimensions, the last first.
void along_all(const Args& args, Tensor in, const Tensor& out, std::span<const int64_t> dims,
               bool forward, double scale) {
  for (size_t end = dims.size(); end > 0; in = out, scale = 1) {
    const size_t begin = end > kMostDims ? end - kMostDims : 0;
    const auto group = dims.subspan(begin, end - begin);
    transform(args, in, out, group, {AJ_FFT_COMPLEX, forward, scale, in.size(group.back())});
    end = begin;
  }
}

// As C order has them: the transform's result does not depend on their order.
Dims sorted(std::span<const int64_t> dims, bool last_stays) {
  Dims d(dims.begin(), dims.end());
  std::sort(d.begin(), d.end() - last_stays);
  return d;
}

void c2c(Args args) {
  NoGradGuard off;
  const Tensor x = argument(args, 0), y = result(args, 0);
  if (y.numel() == 0) return;
  along_all(args, x, y, sorted(args.ints(1), false), args.flag(2), args.real(3));
}

void r2c(Args args) {
  NoGradGuard off;
  const Tensor x = argument(args, 0), y = result(args, 0);
  if (y.numel() == 0) return;
  const Dims dims = sorted(args.ints(1), true);
  const bool half = args.flag(2), forward = args.flag(3);
  const double scale = args.real(4);
  if (!half) return along_all(args, to(x, y.dtype()), y, dims, forward, scale);
  const auto all = std::span<const int64_t>(dims);
  const size_t begin = all.size() > kMostDims ? all.size() - kMostDims : 0;
  const auto group = all.subspan(begin);
  transform(args, x, y, group, {AJ_FFT_TO_HALF, forward, scale, x.size(group.back())});
  along_all(args, y, y, all.first(begin), forward, 1);
}

void c2r(Args args) {
  NoGradGuard off;
  Tensor x = argument(args, 0);
  const Tensor y = result(args, 0);
  if (y.numel() == 0) return;
  const Dims dims = sorted(args.ints(1), true);
  const auto all = std::span<const int64_t>(dims);
  const bool forward = args.flag(3);
  if (all.size() > 1) {
    const Tensor between = empty(x.shape(), x.dtype(), x.device());
    along_all(args, x, between, all.first(all.size() - 1), forward, 1);
    x = between;
  }
  transform(args, x, y, all.last(1), {AJ_FFT_FROM_HALF, forward, args.real(4), args.integer(2)});
}

// Of no dimension it is a product.
int32_t can_run(void*, const aj_call* call) {
  const bool some = call->nargs > 1 && call->args[1].tag != AJ_NONE && call->args[1].aux > 0;
  return some && (FourierLibrary::find() || kit::services().count(slot()) > 1);
}

template <auto F, class Set>
constexpr kit::Spec kTransform = {&kit::plain_kernel<F>, Set::own_mask, 0, can_run};

}  // namespace

// At a priority of its own, so it does not announce itself.
const kit::Kernel transform_kernels[] = {
    {"_::fft_c2c", kTransform<c2c, kit::complexes>},
    {"_::fft_r2c", kTransform<r2c, kit::floating>},
    {"_::fft_c2r", kTransform<c2r, kit::complexes>},
    {nullptr, {}},
};

}  // namespace adjoin::vendor

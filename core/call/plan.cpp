// core/call/plan.cpp: iteration plans and how they are cut for threads.
#include "core/call/plan.hpp"

#include <adjoin/kit/narrow.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/call/output.hpp"
#include "core/guest/frontend.hpp"
#include "core/memory/capture.hpp"
#include "core/op/call.hpp"
#include "core/thread/pool.hpp"

namespace adjoin {

void Plan::walk(std::span<const int64_t> shape, int nops) {
  int n = int(shape.size());
  plan.ndim = uint32_t(std::max(n, 1));
  sizes[0] = 1;
  for (int d = 0; d < n; d++) sizes[d] = shape[size_t(n - 1 - d)];
  for (int i = 0; i < nops; i++) {
    strides[i][0] = 0;
    const aj_tensor* t = ops[i].tensor;
    int m = t ? t->dl.ndim : 0;
    int64_t bytes = t ? dt(priv(t).dtype).bytes : 0;
    for (int d = 0; d < n; d++)
      strides[i][d] = d < m && t->dl.shape[m - 1 - d] != 1 ? t->dl.strides[m - 1 - d] * bytes : 0;
  }
}

// Insertion sort of dimensions [from, to) by one operand's strides, others breaking ties: few
// dimensions, mostly in order.
void Plan::sort_dims(int from, int to, int by) {
  auto before = [&](int a, int b) {
    if (strides[by][a] != strides[by][b] && strides[by][a] && strides[by][b])
      return std::abs(strides[by][a]) < std::abs(strides[by][b]);
    for (uint32_t i = 0; i < plan.nops; i++) {
      int64_t x = std::abs(strides[i][a]), y = std::abs(strides[i][b]);
      if (x && y && x != y) return x < y;
    }
    return false;
  };
  for (int i = from + 1; i < to; i++)
    for (int j = i; j > from && before(j, j - 1); j--) {
      std::swap(sizes[j], sizes[j - 1]);
      for (uint32_t o = 0; o < plan.nops; o++) std::swap(strides[o][j], strides[o][j - 1]);
    }
}

// Joins neighbours that every operand walks as one; never across the border between reduced and
// kept dimensions.
void Plan::coalesce(int border) {
  int out = 0, n = int(plan.ndim), reduced = int(plan.nreduced), new_reduced = reduced;
  for (int d = 1; d < n; d++) {
    bool join = d != border;
    if (join && sizes[d] != 1 && sizes[out] != 1)
      for (uint32_t o = 0; o < plan.nops && join; o++)
        join = strides[o][d] == strides[o][out] * sizes[out];
    if (join) {
      if (sizes[out] == 1)
        for (uint32_t o = 0; o < plan.nops; o++) strides[o][out] = strides[o][d];
      sizes[out] *= sizes[d];
      if (d < reduced) new_reduced--;
    } else {
      out++;
      sizes[out] = sizes[d];
      for (uint32_t o = 0; o < plan.nops; o++) strides[o][out] = strides[o][d];
    }
  }
  plan.ndim = uint32_t(out + 1);
  plan.nreduced = uint32_t(new_reduced);
}

void Plan::finish(bool ordered) {
  plan.numel = 1;
  for (uint32_t d = 0; d < plan.ndim; d++) plan.numel *= sizes[d];
  bool one = plan.ndim == 1, same = true;
  for (uint32_t i = 0; i < plan.nops; i++) {
    const aj_operand& o = ops[i];
    if (o.tensor) {
      one &= strides[i][0] == o.dtype.bits / 8 || sizes[0] <= 1;
      same &= adjoin::same(o.dtype, plan.compute);
    } else if (o.data == nullptr) {
      strides[i][0] = 0;
    }
  }
  plan.flags = one * uint32_t(AJ_PLAN_FLAT) | same * uint32_t(AJ_PLAN_SAME_DTYPE) |
               ordered * uint32_t(AJ_PLAN_ORDERED) | last_is_number();
}

namespace {

template <class T>
void put(char* to, T v) {
  std::memcpy(to, &v, sizeof v);
}

uint16_t bfloat16_bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if (f != f) return uint16_t(u >> 16 | 0x40);
  return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// Not every compiler has the type for every processor. Rounded once, from the double.
uint16_t float16_bits(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double size = std::abs(v);
  if (v != v) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;  // half way above the largest
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto steps =
      uint16_t(std::nearbyint(std::ldexp(size, 10 - exponent)));  // 2048 carries into the exponent
  return sign | uint16_t(((exponent + 14) << 10) + steps);
}

double from_float16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                     : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -size : size;
}

template <class To>
To integer(const aj_value& v, double f) {
  if (v.tag == AJ_INT || v.tag == AJ_BOOL) return To(v.v.i);
  return std::abs(f) < 9.2e18 ? To(int64_t(f)) : To(f > 0 ? INT64_MAX : INT64_MIN);
}

}  // namespace

void store_number(char* to, int dtype, const aj_value& v) {
  double re = v.tag == AJ_FLOAT ? v.v.f : v.tag == AJ_COMPLEX ? v.v.c128[0] : double(v.v.i);
  double im = v.tag == AJ_COMPLEX ? v.v.c128[1] : 0;
  switch (dtype) {
    case AJ_DT_BOOL:
      return put(to, uint8_t(re != 0 || im != 0));
    case AJ_DT_UINT8:
      return put(to, integer<uint8_t>(v, re));
    case AJ_DT_INT8:
      return put(to, integer<int8_t>(v, re));
    case AJ_DT_INT16:
    case AJ_DT_UINT16:
      return put(to, integer<int16_t>(v, re));
    case AJ_DT_INT32:
    case AJ_DT_UINT32:
      return put(to, integer<int32_t>(v, re));
    case AJ_DT_INT64:
    case AJ_DT_UINT64:
      return put(to, integer<int64_t>(v, re));
    case AJ_DT_FLOAT16:
      return put(to, float16_bits(re));
    case AJ_DT_BFLOAT16:
      return put(to, bfloat16_bits(float(re)));
    case AJ_DT_FLOAT32:
      return put(to, float(re));
    case AJ_DT_FLOAT64:
      return put(to, re);
    case AJ_DT_COMPLEX64:
      put(to, float(re));
      return put(to + 4, float(im));
    case AJ_DT_COMPLEX128:
      put(to, re);
      return put(to + 8, im);
    default:
      if (kit::is_narrow(dt(dtype).dl))
        return kit::to_narrow(to, dt(dtype).dl, {float(re), float(im)});
      return put(to, uint64_t(0));  // dtypes of plugins take no numbers
  }
}

aj_value read_number(const aj_tensor* t, double* c) {
  const void* p = t->dl.data;
  auto get = [&]<class T>(T v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (priv(t).dtype) {
    case AJ_DT_BOOL:
      return value(get(uint8_t()) != 0);
    case AJ_DT_UINT8:
      return value(int64_t(get(uint8_t())));
    case AJ_DT_INT8:
      return value(int64_t(get(int8_t())));
    case AJ_DT_INT16:
      return value(int64_t(get(int16_t())));
    case AJ_DT_INT32:
      return value(int64_t(get(int32_t())));
    case AJ_DT_INT64:
      return value(get(int64_t()));
    case AJ_DT_UINT16:
      return value(int64_t(get(uint16_t())));
    case AJ_DT_UINT32:
      return value(int64_t(get(uint32_t())));
    case AJ_DT_UINT64:
      return value(int64_t(get(uint64_t())));
    case AJ_DT_FLOAT16:
      return value(from_float16(get(uint16_t())));
    case AJ_DT_BFLOAT16: {
      uint32_t u = uint32_t(get(uint16_t())) << 16;
      float f;
      std::memcpy(&f, &u, 4);
      return value(double(f));
    }
    case AJ_DT_FLOAT32:
      return value(double(get(float())));
    case AJ_DT_FLOAT64:
      return value(get(double()));
    case AJ_DT_COMPLEX64: {
      float f[2];
      std::memcpy(f, p, 8);
      c[0] = f[0], c[1] = f[1];
      break;
    }
    case AJ_DT_COMPLEX128:
      std::memcpy(c, p, 16);
      break;
    default:
      if (!kit::is_narrow(t->dl.dtype)) return none();
      const kit::Complex64 z = kit::from_narrow(t->dl.dtype, static_cast<const char*>(p));
      if (priv(t).dtype != AJ_DT_COMPLEX32) return value(double(z.re));
      c[0] = z.re, c[1] = z.im;
  }
  aj_value v{AJ_COMPLEX, 0, {0}};
  v.v.c128 = c;
  return v;
}

uint64_t plan_estimate_ns(const aj_op* op, const aj_plan& p) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < p.nops; i++)
    if (p.ops[i].tensor) bytes += p.ops[i].dtype.bits / 8;
  return uint64_t(p.numel) * (bytes * 100 + op->cost) / 1000;
}

namespace {

struct Cut {
  const aj_op* op;
  const Kernel* kernel;
  aj_call* call;
  Plan* whole;
  int dim;
};

// One part: the plan restricted to [lo, hi) of one dimension.
aj_status* run_part(void* self, int64_t lo, int64_t hi) {
  const Cut& cut = *static_cast<const Cut*>(self);
  const Plan& w = *cut.whole;
  aj_operand ops[kMaxOperands];
  int64_t sizes[kMaxDims];
  std::copy_n(w.sizes, w.plan.ndim, sizes);
  sizes[cut.dim] = hi - lo;
  for (uint32_t i = 0; i < w.plan.nops; i++) {
    ops[i] = w.ops[i];
    if (ops[i].tensor) ops[i].data = static_cast<char*>(ops[i].data) + lo * w.strides[i][cut.dim];
    if (reinterpret_cast<uintptr_t>(ops[i].data) % 64)
      ops[i].flags &= ~uint32_t(AJ_OPERAND_ALIGNED64);
  }
  aj_plan part = w.plan;
  part.sizes = sizes;
  part.ops = ops;
  part.numel = w.sizes[cut.dim] ? w.plan.numel / w.sizes[cut.dim] * (hi - lo) : 0;
  int64_t below = 1;
  for (int d = 0; d < cut.dim; d++) below *= w.sizes[d];
  part.first_index = w.plan.first_index + lo * below;
  aj_call call = *cut.call;  // the core's own copy, of its own struct
  call.plan = &part;
  return cut.kernel->fn(cut.kernel->self, &call);
}

}  // namespace

aj_status* run_plan(const aj_op* op, const Kernel* k, aj_call* call, Device* d, Plan* p) {
  call->plan = &p->plan;
  call->device = d->id;
  AJ_TRY(set_stream(d, call));
  if (call->flags & AJ_CALL_META) return nullptr;
  if (p->plan.numel == 0 && p->plan.nreduced == 0) return nullptr;
  if (__builtin_expect(asked_with_plan(op, k), 0) && !agrees(k, call))
    return kernel_declines(op, k, call);
  uint64_t ns = plan_estimate_ns(op, p->plan);
  bool cut = (k->flags & AJ_KERNEL_INNER) && (d->flags & AJ_DEV_HOST_THREADS) && ns > 6000 &&
             worth_threads(ns);
  if (!cut) return run_kernel(op, k, call, ns);
  int dim = int(p->plan.ndim) - 1;
  if (!(p->plan.flags & AJ_PLAN_ORDERED))
    for (int i = int(p->plan.ndim) - 1; i > 0; i--)
      if (p->sizes[i] > p->sizes[dim]) dim = i;
  int64_t want =
      std::max<int64_t>(1, int64_t(double(p->sizes[dim]) * 20000.0 / double(ns)));  // 20 us a part
  int64_t grain = dim == 0 ? (want + 63) / 64 * 64 : want;
  grain = std::max<int64_t>(grain, dim == 0 ? 64 : 1);
  Cut c{op, k, call, p, dim};
  void* parked = ns > 50000 ? frontend_park() : nullptr;
  aj_status* s = parallel_for(p->sizes[dim], grain, run_part, &c);
  if (ns > 50000) frontend_unpark(parked);
  return __builtin_expect(!s, 1) ? nullptr : kernel_failed(op, k, call, s);
}

}  // namespace adjoin

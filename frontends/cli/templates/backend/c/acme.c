/* acme.c: a device of its own for Adjoin, in C: memory, copies, fifty kernels.
 *
 * Its memory is the host's and its kernels run on the calling thread, so that it works at once.
 * Replace, in this order: mem_alloc, mem_free, copy and fill by the device's own (drop the flag
 * AJ_DEV_HOST_MEMORY then); kernels, one after the other; streams and events last (drop
 * AJ_DEV_SYNCHRONOUS). ./check.sh tells after every step what still conforms. */
#include <adjoin/abi/plugin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("acme", "0.1.0", "", "", "device:acme", "iface:aj.op>=0");

static const aj_core* core;

static aj_status* fail(int32_t code, const char* what) {
  aj_str none = {"", 0}, message = {what, strlen(what)};
  return core->status_new(code, none, message, __FILE__, 0);
}

/* The device. */

enum { kAlign = 64 };

static aj_status* count(void* self, int32_t* out) {
  (void)self;
  *out = 1;
  return 0;
}

static aj_status* props(void* self, int32_t dev, aj_device_props* io) {
  aj_device_props known;
  (void)self, (void)dev;
  memset(&known, 0, sizeof known);
  known.struct_size = io->struct_size;
  known.min_alignment = kAlign;
  known.multiprocessors = 1;
  snprintf(known.name, sizeof known.name, "acme on the host");
  memcpy(io, &known, io->struct_size < sizeof known ? io->struct_size : sizeof known);
  return 0;
}

static aj_status* mem_alloc(void* self, int32_t dev, uint64_t bytes, uint32_t kind, void** out) {
  (void)self, (void)dev, (void)kind;
  *out = 0;
  /* the address that malloc gave stands before the aligned one */
  char* raw = bytes < ((uint64_t)1 << 48) ? malloc((size_t)bytes + kAlign + sizeof(void*)) : 0;
  if (!raw) return fail(AJ_OUT_OF_MEMORY, "acme: out of memory");
  char* p = (char*)(((uintptr_t)raw + sizeof(void*) + kAlign - 1) / kAlign * kAlign);
  memcpy(p - sizeof(void*), &raw, sizeof raw);
  *out = p;
  return 0;
}

static aj_status* mem_free(void* self, int32_t dev, void* p, uint64_t bytes, uint32_t kind) {
  char* raw;
  (void)self, (void)dev, (void)bytes, (void)kind;
  if (!p) return 0;
  memcpy(&raw, (char*)p - sizeof(void*), sizeof raw);
  free(raw);
  return 0;
}

/* To, from and within the device: c->dst_device and c->src_device tell which. */
static aj_status* copy(void* self, const aj_copy* c) {
  (void)self;
  for (uint64_t row = 0; row < c->height; ++row)
    memcpy((char*)c->dst + row * c->dst_pitch, (const char*)c->src + row * c->src_pitch, c->width);
  return 0;
}

static aj_status* fill(void* self, int32_t dev, void* p, uint64_t offset, const void* pattern,
                       uint64_t width, uint64_t bytes, void* stream) {
  (void)self, (void)dev, (void)stream;
  if (!width) return fail(AJ_INVALID_ARGUMENT, "acme: the pattern to fill with is empty");
  for (uint64_t at = 0; at < bytes; at += width)
    memcpy((char*)p + offset + at, pattern, width < bytes - at ? width : bytes - at);
  return 0;
}

/* Kernels of single elements. A plan tells how to walk: outputs first, strides in bytes, the
 * innermost dimension first. Without AJ_KERNEL_CASTS operands have the compute dtype. */

enum {
  kF32 = 1 << AJ_DT_FLOAT32,
  kF64 = 1 << AJ_DT_FLOAT64,
  kI64 = 1 << AJ_DT_INT64,
  kI32 = 1 << AJ_DT_INT32,
  kU8 = 1 << AJ_DT_UINT8,
  kBool = 1 << AJ_DT_BOOL,
  kFloats = kF32 | kF64,
  kReals = kFloats | kI64 | kI32,
  kAll = kReals | kU8 | kBool
};

typedef struct Walk {
  const aj_plan* plan;
  int64_t index[64];
  char* at[8];
} Walk;

static void begin(Walk* w, const aj_plan* p) {
  w->plan = p;
  memset(w->index, 0, sizeof w->index);
  for (uint32_t k = 0; k < p->nops; ++k) w->at[k] = p->ops[k].data;
}
/* The next element; a number has no strides. */
static void step(Walk* w) {
  const aj_plan* p = w->plan;
  for (uint32_t d = 0; d < p->ndim; ++d) {
    int carry = ++w->index[d] == p->sizes[d];
    for (uint32_t k = 0; k < p->nops; ++k)
      if (p->ops[k].strides && w->at[k])
        w->at[k] += p->ops[k].strides[d] * (carry ? 1 - p->sizes[d] : 1);
    if (!carry) return;
    w->index[d] = 0;
  }
}

static int same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits; }

/* A line for a kernel. */
/* clang-format off */
#define EACH(T, R, EXPRESSION)                                             \
  for (int64_t i = 0; i < p->numel; ++i, step(&w)) {                       \
    typedef T Type;                                                        \
    Type x = *(const T*)w.at[1], y = p->nops > 2 ? *(const T*)w.at[2] : 0; \
    Type z = p->nops > 3 ? *(const T*)w.at[3] : 0;                         \
    (void)y, (void)z;                                                      \
    *(R*)w.at[0] = (R)(EXPRESSION);                                        \
  }
#define KERNEL(NAME, CASES)                           \
  static aj_status* NAME(void* self, aj_call* call) { \
    const aj_plan* p = call->plan;                    \
    Walk w;                                           \
    (void)self;                                       \
    begin(&w, p);                                     \
    CASES return 0;                                   \
  }
#define IS(CODE, BITS) if (p->compute.code == CODE && p->compute.bits == BITS)
#define FLOATS(F, D) IS(kDLFloat, 32) EACH(float, float, F) else EACH(double, double, D)
#define WHOLE(T_OUT, E)                                \
  IS(kDLInt, 64) EACH(int64_t, T_OUT(int64_t), E) else \
  IS(kDLInt, 32) EACH(int32_t, T_OUT(int32_t), E) else \
  IS(kDLFloat, 32) EACH(float, T_OUT(float), E) else   \
  IS(kDLFloat, 64) EACH(double, T_OUT(double), E)
#define FLOATS_TO_BOOL(E)                      \
  IS(kDLFloat, 32) EACH(float, unsigned char, E) \
  else EACH(double, unsigned char, E)
#define ITSELF(T) T
#define TRUTH(T) unsigned char
#define BYTES(T_OUT, E) else EACH(unsigned char, T_OUT(unsigned char), E)

#define MATH(NAME) KERNEL(k_##NAME, FLOATS(NAME##f(x), NAME(x)))
MATH(exp) MATH(log) MATH(log1p) MATH(sqrt) MATH(sin) MATH(cos) MATH(tanh)
KERNEL(k_rsqrt, FLOATS(1 / sqrtf(x), 1 / sqrt(x)))
KERNEL(k_sigmoid, FLOATS(1 / (1 + expf(-x)), 1 / (1 + exp(-x))))
KERNEL(k_reciprocal, FLOATS(1 / x, 1 / x))
KERNEL(k_floor, FLOATS(floorf(x), floor(x)))
KERNEL(k_quotient, FLOATS(x / y, x / y))
KERNEL(k_pow, FLOATS(powf(x, y), pow(x, y)))
KERNEL(k_lerp, FLOATS(z < 0.5f ? x + z * (y - x) : y - (y - x) * (1 - z),
                      z < 0.5 ? x + z * (y - x) : y - (y - x) * (1 - z)))
KERNEL(k_isnan, FLOATS_TO_BOOL(x != x))
KERNEL(k_abs, WHOLE(ITSELF, x < 0 ? -x : x + 0))
KERNEL(k_neg, WHOLE(ITSELF, -x))
KERNEL(k_square, WHOLE(ITSELF, x * x))
KERNEL(k_relu, WHOLE(ITSELF, x < 0 ? 0 : x))
KERNEL(k_mul, WHOLE(ITSELF, x * y) BYTES(ITSELF, x && y))
KERNEL(k_maximum, WHOLE(ITSELF, x != x || x > y ? x : y))
KERNEL(k_minimum, WHOLE(ITSELF, x != x || x < y ? x : y))
KERNEL(k_eq, WHOLE(TRUTH, x == y) BYTES(TRUTH, x == y))
KERNEL(k_ne, WHOLE(TRUTH, x != y) BYTES(TRUTH, x != y))
KERNEL(k_lt, WHOLE(TRUTH, x < y) BYTES(TRUTH, x < y))
KERNEL(k_le, WHOLE(TRUTH, x <= y) BYTES(TRUTH, x <= y))
KERNEL(k_gt, WHOLE(TRUTH, x > y) BYTES(TRUTH, x > y))
KERNEL(k_ge, WHOLE(TRUTH, x >= y) BYTES(TRUTH, x >= y))
KERNEL(k_not, WHOLE(TRUTH, !x) BYTES(TRUTH, !x))
KERNEL(k_and, WHOLE(TRUTH, x && y) BYTES(TRUTH, x && y))
KERNEL(k_or, WHOLE(TRUTH, x || y) BYTES(TRUTH, x || y))
static double last_number(const aj_call* c);
/* clang-format on */

/* alpha of add and sub, value of addcmul and addcdiv: the last argument of the call. */
static double last_number(const aj_call* c) {
  const aj_value* v = &c->args[c->nargs - 1];
  return v->tag == AJ_FLOAT ? v->v.f : v->tag == AJ_NONE ? 1 : (double)v->v.i;
}
static aj_status* k_div(void* self, aj_call* call) {
  if (call->args[2].tag != AJ_NONE) return fail(AJ_UNIMPLEMENTED, "acme rounds no quotients");
  return k_quotient(self, call);
}
/* A line for a kernel. */
/* clang-format off */
#define SCALED(NAME, E)                                               \
  static aj_status* NAME(void* self, aj_call* call) {                 \
    const aj_plan* p = call->plan;                                    \
    double by = last_number(call);                                    \
    Walk w;                                                           \
    (void)self;                                                       \
    if (p->compute.code == kDLInt && by != floor(by))                 \
      return fail(AJ_INVALID_ARGUMENT, "alpha must be whole, as the tensors"); \
    begin(&w, p);                                                     \
    WHOLE(ITSELF, E)                                                  \
    return 0;                                                         \
  }
SCALED(k_add, x + (Type)by * y)
SCALED(k_sub, x - (Type)by * y)
SCALED(k_addcmul, x + (Type)by * (y * z))
SCALED(k_addcdiv, x + (Type)by * (y / z))
static double read_number(const char* p, DLDataType t);
/* clang-format on */

/* copy_, fill_: any dtype into any other; the same one byte by byte. */
static double read_number(const char* p, DLDataType t) {
  if (t.code == kDLFloat) return t.bits == 32 ? *(const float*)p : *(const double*)p;
  if (t.code == kDLInt)
    return t.bits == 64   ? (double)*(const int64_t*)p
           : t.bits == 32 ? *(const int32_t*)p
           : t.bits == 16 ? *(const int16_t*)p
                          : *(const int8_t*)p;
  return *(const unsigned char*)p;
}
/* What lies outside of the integers, or is no number, becomes the least one. */
static int64_t whole(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static void write_number(char* p, DLDataType t, double x) {
  if (t.code == kDLFloat && t.bits == 32)
    *(float*)p = (float)x;
  else if (t.code == kDLFloat)
    *(double*)p = x;
  else if (t.code == kDLInt && t.bits == 64)
    *(int64_t*)p = whole(x);
  else if (t.code == kDLInt && t.bits == 32)
    *(int32_t*)p = x >= -0x1p31 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
  else if (t.code == kDLInt && t.bits == 16)
    *(int16_t*)p = (int16_t)whole(x);
  else if (t.code == kDLInt)
    *(int8_t*)p = (int8_t)whole(x);
  else
    *(unsigned char*)p = t.code == kDLBool ? x != 0 : (unsigned char)whole(x);
}
static int plain(DLDataType t) {
  return (t.code == kDLFloat && t.bits >= 32) || t.code == kDLInt || t.code == kDLBool ||
         (t.code == kDLUInt && t.bits == 8);
}
static aj_status* assign(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  DLDataType to = p->ops[0].dtype, from = p->ops[1].dtype;
  Walk w;
  (void)self;
  begin(&w, p);
  if (!same(to, from) && (!plain(to) || !plain(from)))
    return fail(AJ_UNIMPLEMENTED, "acme casts no halves and no complex numbers");
  for (int64_t i = 0; i < p->numel; ++i, step(&w)) {
    if (same(to, from))
      memcpy(w.at[0], w.at[1], to.bits / 8);
    else
      write_number(w.at[0], to, read_number(w.at[1], from));
  }
  return 0;
}
static aj_status* where(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  Walk w;
  (void)self;
  begin(&w, p);
  for (int64_t i = 0; i < p->numel; ++i, step(&w))
    memcpy(w.at[0], w.at[*w.at[1] ? 2 : 3], p->compute.bits / 8);
  return 0;
}

/* Reductions: the innermost nreduced dimensions are gone through for every output. self says what
 * is computed. */

static int64_t offset_of(const aj_plan* p, const aj_operand* o, uint32_t d, uint32_t last,
                         int64_t i) {
  int64_t at = 0;
  for (; d < last; i /= p->sizes[d++]) at += i % p->sizes[d] * o->strides[d];
  return at;
}
static aj_status* reduce(void* self, aj_call* call) {
  const aj_plan* p = call->plan;
  const aj_operand *out = &p->ops[0], *in = &p->ops[p->nout];
  int64_t n = 1, kept = 1;
  char what = *(const char*)self; /* s sum, m mean, > amax, < amin, A argmax, a argmin */
  for (uint32_t d = 0; d < p->ndim; ++d) *(d < p->nreduced ? &n : &kept) *= p->sizes[d];
  for (int64_t k = 0; k < kept; ++k) {
    const char* from = (const char*)in->data + offset_of(p, in, p->nreduced, p->ndim, k);
    char* to = (char*)out->data + offset_of(p, out, p->nreduced, p->ndim, k);
    double total = 0, best = 0;
    int64_t sum = 0, at = -1;
    for (int64_t i = 0; i < n; ++i) {
      const char* one = from + offset_of(p, in, 0, p->nreduced, i);
      double x = read_number(one, in->dtype);
      int better = what == '>' || what == 'A' ? x > best : x < best;
      total += x;
      if (in->dtype.code == kDLInt && in->dtype.bits == 64) sum += *(const int64_t*)one;
      if (at < 0 || (best == best && (x != x || better))) best = x, at = i;
    }
    if (what == 'A' || what == 'a')
      *(int64_t*)to = at;
    else if (what == 's' && out->dtype.code == kDLInt)
      *(int64_t*)to = sum;
    else
      write_number(to, out->dtype, what == 's' ? total : what == 'm' ? total / (double)n : best);
  }
  return 0;
}

/* Kernels of whole tensors. get and put go by the element's place in C order, whatever the strides.
 */

static char* place(const aj_tensor* t, int64_t i) {
  const DLTensor* l = &t->dl;
  int64_t at = 0;
  for (int32_t d = l->ndim - 1; d >= 0; i /= l->shape[d--]) at += i % l->shape[d] * l->strides[d];
  return (char*)l->data + l->byte_offset + at * (l->dtype.bits / 8);
}
static double get(const aj_tensor* t, int64_t i) { return read_number(place(t, i), t->dl.dtype); }
static void put(aj_tensor* t, int64_t i, double x) { write_number(place(t, i), t->dl.dtype, x); }
static int64_t numel(const aj_tensor* t) { return core->tensor_numel(t); }
static int64_t size(const aj_tensor* t, int32_t d) {
  return t->dl.shape[d < 0 ? d + t->dl.ndim : d];
}
static aj_tensor* arg(const aj_call* c, int i) {
  return c->args[i].tag == AJ_TENSOR ? c->args[i].v.tensor : 0;
}
static aj_tensor* ret(const aj_call* c, int i) { return c->rets[i].v.tensor; }
static double real(const aj_call* c, int i) {
  return c->args[i].tag == AJ_FLOAT ? c->args[i].v.f : (double)c->args[i].v.i;
}

static aj_status* matrix_product(void* self, aj_call* c) {
  aj_tensor *a = arg(c, 0), *b = arg(c, 1), *out = ret(c, 0);
  int64_t m = size(a, -2), k = size(a, -1), n = size(b, -1), all = numel(out);
  (void)self;
  for (int64_t o = 0; o < all; ++o) {
    double total = 0;
    for (int64_t i = 0; i < k; ++i)
      total += get(a, o / n * k + i) * get(b, (o / n / m * k + i) * n + o % n);
    put(out, o, total);
  }
  return 0;
}

/* A small image and a big one: tap k of position p of the small one lies at p stride - pad + k
 * dilation of the big one. Forward writes the small one, transposed the big one. */
static aj_status* convolution(void* self, aj_call* c) {
  aj_tensor *x = arg(c, 0), *w = arg(c, 1), *bias = arg(c, 2), *out = ret(c, 0);
  int back = c->args[6].v.i != 0, dims = w->dl.ndim - 2;
  aj_tensor *small = back ? x : out, *big = back ? out : x;
  int64_t groups = c->args[8].v.i, near = size(w, 0) / groups, far = size(w, 1);
  int64_t taps = 1, ps = 1, pb = 1, total = numel(out);
  double* sum = calloc((size_t)total + 1, sizeof *sum);
  (void)self;
  if (!sum) return fail(AJ_OUT_OF_MEMORY, "convolution: no memory for the sums");
  for (int d = 0; d < dims; ++d)
    taps *= size(w, 2 + d), ps *= size(small, 2 + d), pb *= size(big, 2 + d);
  for (int64_t s = 0; s < size(x, 0) * groups * near * ps; ++s)
    for (int64_t k = 0; k < taps; ++k) {
      int64_t q = 0, step_q = 1, p = s % ps, t = k, channel = s / ps;
      for (int d = dims - 1; d >= 0; --d) {
        int64_t at = p % size(small, 2 + d) * c->args[3].v.ints[d] - c->args[4].v.ints[d] +
                     t % size(w, 2 + d) * c->args[5].v.ints[d];
        if (at < 0 || at >= size(big, 2 + d)) q = -1;
        if (q < 0) break;
        q += at * step_q, step_q *= size(big, 2 + d);
        p /= size(small, 2 + d), t /= size(w, 2 + d);
      }
      for (int64_t b = 0; b < far && q >= 0; ++b) {
        int64_t e = (channel / near * far + b) * pb + q;
        double by = get(w, (channel % (groups * near) * far + b) * taps + k);
        sum[back ? e : s] += get(x, back ? s : e) * by;
      }
    }
  for (int64_t i = 0; i < total; ++i)
    put(out, i, sum[i] + (bias ? get(bias, i / (back ? pb : ps) % size(out, 1)) : 0));
  free(sum);
  return 0;
}

static aj_status* max_pool(void* self, aj_call* c) {
  aj_tensor *x = arg(c, 0), *out = ret(c, 0), *where_ = ret(c, 1);
  const int64_t *kernel = c->args[1].v.ints, *pad = c->args[3].v.ints,
                *dilation = c->args[4].v.ints;
  const int64_t* stride = c->args[2].aux ? c->args[2].v.ints : kernel;
  int64_t h = size(x, -2), w = size(x, -1), oh = size(out, -2), ow = size(out, -1),
          all = numel(out);
  (void)self;
  for (int64_t o = 0; o < all; ++o) {
    double best = 0;
    int64_t at = -1;
    for (int64_t k = 0; k < kernel[0] * kernel[1]; ++k) {
      int64_t i = o / ow % oh * stride[0] - pad[0] + k / kernel[1] * dilation[0];
      int64_t j = o % ow * stride[1] - pad[1] + k % kernel[1] * dilation[1];
      if (i < 0 || j < 0 || i >= h || j >= w) continue;
      double v = get(x, (o / ow / oh * h + i) * w + j);
      if (at < 0 || v > best || v != v) best = v, at = i * w + j;
    }
    put(out, o, best);
    *(int64_t*)place(where_, o) = at;
  }
  return 0;
}

/* input, weight, bias, running mean and variance, training, momentum, eps -> out, mean, 1 /
 * deviation */
static aj_status* batch_norm(void* self, aj_call* c) {
  aj_tensor *x = arg(c, 0), *weight = arg(c, 1), *bias = arg(c, 2), *out = ret(c, 0);
  int64_t channels = size(x, 1), inner = 1, all = numel(x);
  int training = c->args[5].v.i != 0;
  double each, momentum = real(c, 6);
  (void)self;
  for (int32_t d = 2; d < x->dl.ndim; ++d) inner *= size(x, d);
  each = (double)(size(x, 0) * inner);
  for (int64_t k = 0; k < channels; ++k) {
    double mean = 0, var = 0, rstd;
    if (training) {
      for (int64_t i = 0; i < all; ++i)
        if (i / inner % channels == k) mean += get(x, i) / each;
      for (int64_t i = 0; i < all; ++i)
        if (i / inner % channels == k) var += (get(x, i) - mean) * (get(x, i) - mean) / each;
    } else {
      mean = get(arg(c, 3), k), var = get(arg(c, 4), k);
    }
    rstd = 1 / sqrt(var + real(c, 7));
    for (int64_t i = 0; i < all; ++i)
      if (i / inner % channels == k)
        put(out, i,
            (get(x, i) - mean) * rstd * (weight ? get(weight, k) : 1) + (bias ? get(bias, k) : 0));
    if (numel(ret(c, 1))) put(ret(c, 1), k, mean);
    if (numel(ret(c, 2))) put(ret(c, 2), k, rstd);
    for (int r = 3; r < 5; ++r)
      if (training && arg(c, r)) {
        double now = r == 3 ? mean : var * each / (each - 1), before = get(arg(c, r), k);
        put(arg(c, r), k, before + momentum * (now - before));
      }
  }
  return 0;
}

/* Lines along a dimension: outer * inner of them, their elements `inner` apart. self: log or not.
 */
static aj_status* softmax(void* self, aj_call* c) {
  aj_tensor *x = arg(c, 0), *out = ret(c, 0);
  int64_t inner = 1, all = numel(x), n;
  int32_t dim = (int32_t)c->args[1].v.i;
  if (dim < 0) dim += x->dl.ndim;
  for (int32_t d = dim + 1; d < x->dl.ndim; ++d) inner *= size(x, d);
  n = x->dl.ndim ? size(x, dim) : 1;
  for (int64_t i = 0; i < all; ++i) {
    int64_t first = i / (inner * n) * inner * n + i % inner;
    double top = -INFINITY, total = 0, d;
    for (int64_t k = 0; k < n; ++k) top = fmax(top, get(x, first + k * inner));
    for (int64_t k = 0; k < n; ++k) total += exp(get(x, first + k * inner) - top);
    d = get(x, i) - top;
    put(out, i, self ? d - log(total) : exp(d) / total);
  }
  return 0;
}

/* gather: out[i] = x[named by index[i]]; scatter_add (self): out[named by index[i]] += source[i].
 */
static aj_status* gather(void* self, aj_call* c) {
  aj_tensor *x = arg(c, 0), *index = arg(c, 2), *out = ret(c, 0), *source = self ? arg(c, 3) : 0;
  int32_t dim = (int32_t)c->args[1].v.i, n = x->dl.ndim;
  int64_t all = numel(index);
  if (dim < 0) dim += n;
  for (int64_t i = 0; i < all; ++i) {
    int64_t k = *(const int64_t*)place(index, i);
    if (k < 0 || k >= (n ? size(x, dim) : 1))
      return fail(AJ_OUT_OF_RANGE, "an index is out of range for its dimension");
  }
  if (source && numel(x) && place(x, 0) != place(out, 0))
    for (int64_t i = 0; i < numel(x); ++i) put(out, i, get(x, i));
  for (int64_t i = 0; i < all; ++i) {
    int64_t at = 0, from = 0, step_at = 1, step_from = 1, rest = i;
    for (int32_t d = n - 1; d >= 0; rest /= size(index, d--)) {
      int64_t k = rest % size(index, d);
      at += (d == dim ? *(const int64_t*)place(index, i) : k) * step_at, step_at *= size(x, d);
      if (source) from += k * step_from, step_from *= size(source, d);
    }
    if (source)
      put(out, at, get(out, at) + get(source, from));
    else
      memcpy(place(out, i), place(x, at), x->dl.dtype.bits / 8);
  }
  return 0;
}

static const struct {
  const char* op;
  aj_kernel_fn fn;
  uint64_t dtypes;
  uint32_t flags;
  const char* self;
} kernels[] = {
    {"copy_", assign, 0, AJ_KERNEL_CASTS, 0},
    {"fill_", assign, 0, AJ_KERNEL_CASTS, 0},
    {"where", where, kAll, 0, 0},
    {"abs", k_abs, kReals, 0, 0},
    {"neg", k_neg, kReals, 0, 0},
    {"square", k_square, kReals, 0, 0},
    {"relu", k_relu, kReals, 0, 0},
    {"exp", k_exp, kFloats, 0, 0},
    {"log", k_log, kFloats, 0, 0},
    {"log1p", k_log1p, kFloats, 0, 0},
    {"sqrt", k_sqrt, kFloats, 0, 0},
    {"rsqrt", k_rsqrt, kFloats, 0, 0},
    {"sin", k_sin, kFloats, 0, 0},
    {"cos", k_cos, kFloats, 0, 0},
    {"tanh", k_tanh, kFloats, 0, 0},
    {"sigmoid", k_sigmoid, kFloats, 0, 0},
    {"reciprocal", k_reciprocal, kFloats, 0, 0},
    {"floor", k_floor, kFloats, 0, 0},
    {"isnan", k_isnan, kFloats, 0, 0},
    {"logical_not", k_not, kAll, 0, 0},
    {"logical_and", k_and, kAll, 0, 0},
    {"logical_or", k_or, kAll, 0, 0},
    {"add", k_add, kReals, 0, 0},
    {"sub", k_sub, kReals, 0, 0},
    {"mul", k_mul, kReals | kBool, 0, 0},
    {"div", k_div, kFloats, 0, 0},
    {"pow", k_pow, kFloats, 0, 0},
    {"lerp", k_lerp, kFloats, 0, 0},
    {"addcmul", k_addcmul, kFloats, 0, 0},
    {"addcdiv", k_addcdiv, kFloats, 0, 0},
    {"maximum", k_maximum, kReals, 0, 0},
    {"minimum", k_minimum, kReals, 0, 0},
    {"eq", k_eq, kAll, 0, 0},
    {"ne", k_ne, kAll, 0, 0},
    {"lt", k_lt, kAll, 0, 0},
    {"le", k_le, kAll, 0, 0},
    {"gt", k_gt, kAll, 0, 0},
    {"ge", k_ge, kAll, 0, 0},
    {"sum", reduce, kFloats | kI64, 0, "s"},
    {"mean", reduce, kFloats, 0, "m"},
    {"amax", reduce, kFloats, 0, ">"},
    {"amin", reduce, kFloats, 0, "<"},
    {"argmax", reduce, kFloats, 0, "A"},
    {"argmin", reduce, kFloats, 0, "a"},
    {"mm", matrix_product, kFloats, 0, 0},
    {"bmm", matrix_product, kFloats, 0, 0},
    {"convolution", convolution, kFloats, 0, 0},
    {"max_pool2d_with_indices", max_pool, kFloats, 0, 0},
    {"batch_norm_stats", batch_norm, kFloats, 0, 0},
    {"softmax", softmax, kFloats, 0, 0},
    {"log_softmax", softmax, kFloats, 0, "log"},
    {"gather", gather, 0, 0, 0},
    {"scatter_add", gather, kFloats, 0, "add"},
};

/* Before the plugin is disabled or unloaded: end threads, wait for the device. Here nothing runs outside of calls. */
AJ_EXPORT aj_status* aj_plugin_drain_v1(void);
AJ_EXPORT aj_status* aj_plugin_drain_v1(void) { return 0; }

AJ_PLUGIN_INIT {
  static aj_device_vtbl device;
  const aj_dispatch* op = env->query("aj.op", 1);
  core = env->core;
  if (!op) return fail(AJ_UNIMPLEMENTED, "acme: this libadjoin has no interface aj.op");
  memset(&device, 0, sizeof device);
  device.struct_size = sizeof device;
  device.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
  device.name = AJ_STR_LIT("acme");
  device.count = count, device.props = props;
  device.mem_alloc = mem_alloc, device.mem_free = mem_free;
  device.copy = copy, device.fill = fill;
  aj_status* bad = env->def_device(env->registrar, &device);
  for (size_t i = 0; !bad && i < sizeof kernels / sizeof *kernels; ++i) {
    aj_kernel_def k;
    memset(&k, 0, sizeof k);
    k.struct_size = sizeof k;
    k.flags = kernels[i].flags;
    k.op.data = kernels[i].op, k.op.len = strlen(kernels[i].op);
    k.key = device.name;
    k.dtypes = kernels[i].dtypes;
    k.fn = kernels[i].fn;
    k.self = (void*)kernels[i].self;
    bad = op->def_kernel(env->registrar, &k);
  }
  return bad;
}

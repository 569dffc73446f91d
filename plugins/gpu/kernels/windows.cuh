// plugins/gpu/kernels/windows.cuh: maxima of windows over volumes, columns of patches, and what
// adds them back. What meets at one place is added in one order.
#include <adjoin/kit/geometry.hpp>

#include "../runs.cuh"

namespace adjoin::gpu {
namespace {

using maxable = Join<reals, halves>;

// Where the windows of one dimension lie: evenly; by parts of the input; or at pseudorandom
// distances (Graham, Fractional Max-Pooling, 2014).
enum class Rule : int32_t { kEven, kAdaptive, kFractional };
struct WindowsOf {
  Rule rule;
  int64_t in;
  Divisor out;
  int64_t kernel, stride, padding;
  Divisor dilation;

  // The window's first place, and how many it has; in F, so that everybody cuts alike.
  template <class F>
  AJ_HD int64_t at(int64_t o, F sample, int64_t* count) const {
    if (rule == Rule::kAdaptive) {
      int64_t low = out.quotient(o * in);
      *count = out.quotient((o + 1) * in + out.size - 1) - low;
      return low;
    }
    if (rule == Rule::kFractional) {
      *count = kernel;
      if (o + 1 == out.size) return in - kernel;
      F step = F(in - kernel) / F(out.size - 1),
        s = sample >= F(0) && sample <= F(1) ? sample : F(0);
      int64_t low = int64_t((F(o) + s) * step) - int64_t(s * step);
      return low < 0 ? 0 : low > in - kernel ? in - kernel : low;
    }
    int64_t low = o * stride - padding,
            skip = low < 0 ? dilation.quotient(dilation.size - 1 - low) : 0;
    int64_t end = low < in ? dilation.quotient(in - 1 - low) + 1 : 0;
    end = end < kernel ? end : kernel;
    *count = end > skip ? end - skip : 0;
    return low + skip * dilation.size;
  }
  AJ_HD int64_t step() const { return rule == Rule::kEven ? dilation.size : 1; }
};

template <class T>
struct MaxWindows {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  WindowsOf w[3];
  const T* x;
  const double* samples;  // NULL, or three of every plane
  T* best;
  int64_t* found;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t plane = i, first[3], count[3], o[3];
    for (int d = 2; d >= 0; --d) o[d] = w[d].out.split(&plane);
    for (int d = 0; d < 3; ++d)
      first[d] = w[d].template at<F>(o[d], samples ? F(samples[plane * 3 + d]) : F(0), &count[d]);
    const T* volume = x + plane * w[0].in * w[1].in * w[2].in;
    Math<T> top = Math<T>(0);
    int64_t place = -1;
    for (int64_t a = 0; a < count[0]; ++a)
      for (int64_t b = 0; b < count[1]; ++b)
        for (int64_t c = 0; c < count[2]; ++c) {
          int64_t row = (first[0] + a * w[0].step()) * w[1].in + first[1] + b * w[1].step();
          int64_t at = row * w[2].in + first[2] + c * w[2].step();
          Math<T> v = Math<T>(volume[at]);
          if (place < 0 || v > top || scalar::is_nan(v)) top = v, place = at;
        }
    best[i] = cast<T>(top);
    found[i] = place;
  }
};
void max_windows(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  std::string_view rule = args.string(2);
  bool fractional = rule == "fractional", even = rule == "even";
  visit<maxable>(x.dtype(), [&]<class T>() {
    Plain<T> from(call, x), best(call, out);
    Plain<int64_t> found(call, args.result(1));
    Plain<double> samples(call, fractional ? args.tensor(7) : TensorView());
    MaxWindows<T> f = {{}, from.data(), samples.data(), best.data(), found.data()};
    for (int d = 0; d < 3; ++d) {
      f.w[d] = {Rule::kAdaptive, x.size(d - 3), out.size(d - 3), 1, 1, 0, 1};
      if (fractional) f.w[d].rule = Rule::kFractional;
      if (even) f.w[d].rule = Rule::kEven;
      if (even || fractional) f.w[d].kernel = args.ints(3)[size_t(d)];
      if (even)
        f.w[d].stride = args.ints(4)[size_t(d)], f.w[d].padding = args.ints(5)[size_t(d)],
        f.w[d].dilation = args.ints(6)[size_t(d)];
    }
    each(call, out.numel(), f);
    best.commit();
    found.commit();
  });
}

template <class T>
struct ScatterPlanes {
  using State = Math<T>;
  const T* grad;
  const int64_t* where;
  State* out;
  int64_t places, dim;
  Divisor some;
  Fault* fault;
  AJ_DEVICE int64_t operator()(int64_t i) const {
    int64_t at = checked(where[i], places, dim, fault);
    return at < 0 ? at : some.quotient(i) * places + at;
  }
  AJ_DEVICE State value(int64_t i, int64_t) const { return State(grad[i]); }
  AJ_DEVICE State join(State a, State b) const { return State(a + b); }
  AJ_DEVICE void put(int64_t at, int64_t, State s) const { out[at] = State(out[at] + s); }
};
int64_t places_of(TensorView t) { return t.size(-1) * t.size(-2) * t.size(-3); }
void scatter_planes(Args args) {
  TensorView grad = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  if (out.numel() == 0) return;
  int64_t places = places_of(TensorView(out.get())), some = places_of(grad);
  visit<maxable>(grad.dtype(), [&]<class T>() {
    Plain<T> from(call, grad);
    Plain<int64_t> where(call, args.tensor(1));
    Plain<Math<T>> to(call, out);
    fill_zero(call, to.data(), out.numel() * int64_t(sizeof(Math<T>)));
    join_all(call, out.numel() / places, some,
             ScatterPlanes<T>{from.data(), where.data(), to.data(), places, out.ndim() - 1, some,
                              fault_of(call)});
    to.commit();
  });
}

struct Patches {
  Divisor in[2], out[2], kernel[2], stride[2];
  int64_t dilation[2], pad[2];
  Patches(Args args, uint32_t at, int64_t height, int64_t width) : in{height, width} {
    for (size_t d = 0; d < 2; ++d) {
      kernel[d] = args.ints(at)[d], dilation[d] = args.ints(at + 1)[d];
      pad[d] = args.ints(at + 2)[d], stride[d] = args.ints(at + 3)[d];
      int64_t reach = dilation[d] * (kernel[d].size - 1) + 1;
      out[d] = (in[d].size + 2 * pad[d] - reach) / stride[d].size + 1;
    }
  }
  // The window that has a place as its tap; -1: none.
  AJ_HD int64_t window(int d, int64_t place, int64_t tap) const {
    int64_t from = place + pad[d] - tap * dilation[d];
    if (from < 0) return -1;
    Quotient q = stride[d].divided(from);
    return q.rest == 0 && q.whole < out[d].size ? q.whole : -1;
  }
};
template <class T>
struct Cut {
  Patches p;
  const T* x;
  T* columns;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t plane = i, ow = p.out[1].split(&plane), oh = p.out[0].split(&plane),
            kw = p.kernel[1].split(&plane), kh = p.kernel[0].split(&plane);
    int64_t h = oh * p.stride[0].size - p.pad[0] + kh * p.dilation[0];
    int64_t w = ow * p.stride[1].size - p.pad[1] + kw * p.dilation[1];
    bool inside = h >= 0 && w >= 0 && h < p.in[0].size && w < p.in[1].size;
    columns[i] = inside ? x[(plane * p.in[0].size + h) * p.in[1].size + w] : T(0);
  }
};
template <class T>
struct AddBack {
  Patches p;
  const T* columns;
  T* image;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t plane = i, w = p.in[1].split(&plane), h = p.in[0].split(&plane);
    Math<T> sum = Math<T>(0);
    for (int64_t kh = 0; kh < p.kernel[0].size; ++kh) {
      int64_t oh = p.window(0, h, kh);
      if (oh < 0) continue;
      for (int64_t kw = 0; kw < p.kernel[1].size; ++kw) {
        int64_t ow = p.window(1, w, kw);
        if (ow < 0) continue;
        int64_t tap = (plane * p.kernel[0].size + kh) * p.kernel[1].size + kw;
        sum = Math<T>(sum + Math<T>(columns[(tap * p.out[0].size + oh) * p.out[1].size + ow]));
      }
    }
    image[i] = cast<T>(sum);
  }
};
void patches(Args args) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Patches p(args, 1, x.size(2), x.size(3));
  visit<stored>(x.dtype(), [&]<class T>() {
    Plain<T> from(call, x), to(call, out);
    each(call, out.numel(), Cut<T>{p, from.data(), to.data()});
    to.commit();
  });
}
void patches_backward(Args args) {
  TensorView g = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  Patches p(args, 2, out.size(2), out.size(3));
  visit<maxable>(g.dtype(), [&]<class T>() {
    Plain<T> from(call, g), to(call, out);
    each(call, out.numel(), AddBack<T>{p, from.data(), to.data()});
    to.commit();
  });
}

}  // namespace

AJ_KERNELS(windows_kernels) = {
    {"_::max_windows", custom<max_windows, maxable>},
    {"_::patches", custom<patches, stored>},
    {"_::patches_backward", custom<patches_backward, maxable>},
    {"_::scatter_planes", custom<scatter_planes, maxable>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

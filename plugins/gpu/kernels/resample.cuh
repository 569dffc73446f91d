// plugins/gpu/kernels/resample.cuh: images resized and averaged: each output is a sum over the
// inputs that its row, column and slice take.
#include <adjoin/kit/resample.hpp>
#include <bit>
#include <map>
#include <mutex>

#include "../element.cuh"

namespace adjoin::gpu {
namespace {

// What output o of one dimension takes: places from[start[o]] to from[start[o + 1]], by weights.
struct Axis {
  int64_t in;
  Divisor out;
  const int64_t *start, *from;
  const double* weight;
};

template <class T>
struct Resample {
  using A = Math<T>;
  Axis axis[3];
  const T* x;
  T* to;
  AJ_DEVICE A row(const T* line, int64_t o) const {
    const Axis& a = axis[2];
    A sum = A(0);
    for (int64_t k = a.start[o]; k < a.start[o + 1]; ++k)  // a weight of zero hides an infinity
      if (a.weight[k] != 0) sum += A(a.weight[k]) * A(line[a.from[k]]);
    return sum;
  }
  AJ_DEVICE void operator()(int64_t i) const {
    const Axis &depth = axis[0], &height = axis[1], &width = axis[2];
    int64_t rest = i, w = width.out.split(&rest), h = height.out.split(&rest),
            d = depth.out.split(&rest);
    A sum = A(0);
    for (int64_t j = depth.start[d]; j < depth.start[d + 1]; ++j) {
      if (depth.weight[j] == 0) continue;
      const T* slice = x + (rest * depth.in + depth.from[j]) * height.in * width.in;
      A part = A(0);
      for (int64_t k = height.start[h]; k < height.start[h + 1]; ++k)
        if (height.weight[k] != 0)
          part += A(height.weight[k]) * row(slice + height.from[k] * width.in, w);
      sum += A(depth.weight[j]) * part;
    }
    to[i] = cast<T>(sum);
  }
};

// Three tables in memory of the device, by one copy.
struct Tables {
  std::vector<int64_t> words;
  size_t start[3], from[3], weight[3];
  int64_t outputs[3];

  void add(int d, const Taps& taps, double scale) {
    outputs[d] = taps.size();
    start[d] = words.size();
    words.insert(words.end(), taps.start.begin(), taps.start.end());
    from[d] = words.size();
    words.insert(words.end(), taps.index.begin(), taps.index.end());
    weight[d] = words.size();
    for (double w : taps.weight) words.push_back(std::bit_cast<int64_t>(w * scale));
  }
  Axis axis(int d, int64_t in, const int64_t* at) const {
    return {in, outputs[d], at + start[d], at + from[d],
            reinterpret_cast<const double*>(at + weight[d])};
  }
};

aj_tensor* upload(const aj_call* call, std::vector<int64_t>& words) {
  auto count = int64_t(words.size());
  aj_tensor* room = new_tensor(call->device, dtype_of<int64_t>, Span(&count, 1));
  aj_status* s = core().tensor_copy_bytes(room, words.data(), uint64_t(count) * 8, 0);
  if (s) core().release(room);
  check(s);
  return room;
}

// A graph's tables: they are there before it runs, and stay, for whoever captures the same once
// more. They are copied beside the capture, on the default stream.
aj_tensor* kept_for_graphs(const aj_call* call, std::vector<int64_t>& words) {
  static auto* lock = new std::mutex;
  static auto* all = new std::map<std::pair<int32_t, std::vector<int64_t>>, aj_tensor*>;
  std::lock_guard held(*lock);
  aj_tensor*& kept = (*all)[{call->device.device_id, words}];
  if (kept) return kept;
  struct Default {  // while it lives
    const aj_call* call;
    explicit Default(const aj_call* c) : call(c) { check(core().stream_set(c->device, nullptr)); }
    ~Default() { (void)core().stream_set(call->device, call->stream); }
  } default_stream(call);
  return kept = upload(call, words);
}

// make(dimension, inputs, outputs) gives the taps of the last `dims` dimensions.
template <class Make>
void resize_by(Args args, bool backward, int64_t dims, Make make, double scale = 1) {
  TensorView x = args.tensor(0);
  MutView out = args.result(0);
  const aj_call* call = args.call();
  if (out.numel() == 0) return;
  Tables tables;
  int64_t in[3];
  for (int d = 0; d < 3; ++d) {
    int64_t at = d - 3 + dims;  // of the dimensions that are resized
    in[d] = at < 0 ? 1 : x.size(at - dims);
    int64_t to = at < 0 ? 1 : out.size(at - dims);
    Taps taps = at < 0 ? average_taps(1, 1, 1, 1, 0, true, false)
                       : make(at, backward ? to : in[d], backward ? in[d] : to);
    tables.add(d, backward ? taps.transposed(to) : taps, d == 2 ? scale : 1);
  }
  bool captured = call->flags & AJ_CALL_CAPTURING;
  aj_tensor* room = captured ? kept_for_graphs(call, tables.words) : upload(call, tables.words);
  std::unique_ptr<aj_tensor, void (*)(aj_tensor*)> freed(captured ? nullptr : room,
                                                         [](aj_tensor* t) { core().release(t); });
  const auto* words = reach(MutView(room).data<int64_t>());
  visit<stored_floating>(x.dtype(), [&]<class T>() {
    Plain<T> from(call, x), to(call, out);
    Resample<T> f = {{}, from.data(), to.data()};
    for (int d = 0; d < 3; ++d) f.axis[d] = tables.axis(d, in[d], words);
    each(call, out.numel(), f);
    to.commit();
  });
}

template <bool Backward>
void resample(Args args) {
  resize_by(args, Backward, int64_t(args[4].aux), resampling_taps_of(args));
}

template <bool Backward>
void average(Args args) {
  double scale = args.none(6) ? 1 : 1 / double(args.integer(6));
  resize_by(args, Backward, 3, average_taps_of(args), scale);
}

}  // namespace

AJ_KERNELS(resample_kernels) = {
    {"_::average", custom<average<false>, stored_floating>},
    {"_::average_backward", custom<average<true>, stored_floating>},
    {"_::resample", custom<resample<false>, stored_floating>},
    {"_::resample_backward", custom<resample<true>, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

// plugins/onednn/halves.cpp: convolutions of bfloat16 by oneDNN, cut into images.
//
// The library multiplies bfloat16 from channels-last images, summing in float32. A user's planes
// are turned as a whole: they are half as large as those of float32, and the core's copy is quick.
#include "halves.hpp"

#include <adjoin/kit/call.hpp>
#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/prepared.hpp>

#include "piece.hpp"

namespace adjoin::onednn {
namespace {

using namespace kit;

void copy(const Tensor& to, const Tensor& from) {
  static constinit Op op("copy_");
  const aj_value args[] = {value(to), value(from), value(false)};
  run_into(op.get(), args, 3, to);
}

// Is C order the order of channels-last as well?
bool either_order(TensorView t) {
  int64_t pixels = 1;
  for (int64_t d = 2; d < t.ndim(); ++d) pixels *= t.size(d);
  return t.dense() && (t.size(1) == 1 || pixels == 1);
}

Tensor channels_last_like(TensorView t) {
  std::vector<int64_t> strides(size_t(t.ndim()));
  int64_t step = t.size(1);
  strides[1] = 1;
  for (int64_t d = t.ndim() - 1; d > 1; step *= t.size(d--)) strides[size_t(d)] = step;
  strides[0] = step;
  DLTensor like = t.get()->dl;
  like.data = nullptr, like.byte_offset = 0, like.strides = strides.data();
  aj_tensor* out = nullptr;
  check(core().tensor_empty(&like, 0, &out));
  return Tensor::steal(out);
}

// A tensor's images as channels-last: its own memory, or a copy that commit() writes back.
class Last {
 public:
  explicit Last(TensorView t, bool written = false) : user_(t.get()) {
    if (channels_last(t) || either_order(t)) {
      data_ = const_cast<char*>(t.bytes());
      return;
    }
    copy_ = channels_last_like(t);
    data_ = MutView(copy_.get()).bytes();
    if (!written) copy(copy_, Tensor::view(user_));
  }
  char* data() const { return data_; }
  void commit() const {
    if (copy_.defined()) copy(Tensor::view(user_), copy_);
  }

 private:
  aj_tensor* user_;
  Tensor copy_;
  char* data_;
};

constexpr int64_t kHalf = 2;  // bytes

Tensor room(size_t bytes) {
  int64_t shape[1] = {int64_t(bytes)};
  return Tensor::steal(new_tensor({kDLCPU, 0}, uint8, shape));
}
char* address(const Tensor& t) { return MutView(t.get()).bytes(); }

class Halves {
 public:
  // weight: the user's, or where its gradient is written.
  Halves(const ConvGeometry& g, TensorView weight, bool deterministic)
      : g_(g), weight_(weight), strides_(weight_strides(weight)) {
    int64_t parts = std::min<int64_t>(g.batch, deterministic ? 4 : core().num_threads());
    images_ = (g.batch + parts - 1) / parts;
    parts_ = (g.batch + images_ - 1) / images_;
  }
  void run(Direction direction, const Last& from, const Last& to, const float* bias) const;
  void to_weight(const Last& big, const Last& small) const;

 private:
  Piece piece(Direction direction, int64_t images, bool bias) const {
    Piece p = {direction, Order::last, bias, images, g_.groups, g_.small_c, g_.big_c, &g_};
    p.type = dnnl_bf16;
    return p;
  }
  int64_t count(int64_t part) const { return std::min(images_, g_.batch - part * images_); }
  int64_t bytes(Direction of) const {  // of an image
    return kHalf * g_.groups *
           (of == Direction::to_small ? g_.small_c * g_.small_pixels()
                                      : g_.big_c * g_.big_pixels());
  }
  Tensor pack(const Piece& p) const {
    Tensor made = room(weight_bytes(p));
    reorder_weight(p, const_cast<char*>(weight_.bytes()), strides_.at, address(made));
    return made;
  }

  const ConvGeometry& g_;
  TensorView weight_;
  WeightStrides strides_;
  int64_t images_, parts_;  // of a part; parts
};

void Halves::run(Direction direction, const Last& from, const Last& to, const float* bias) const {
  Alone alone;
  Direction other = direction == Direction::to_small ? Direction::to_big : Direction::to_small;
  int64_t in = bytes(other), out = bytes(direction);
  Piece whole = piece(direction, images_, bias);
  Tensor packed = prepared(weight_, weight_key(whole).span(), [&] { return pack(whole); });
  if (!packed.defined()) packed = pack(whole);
  parallel_for(parts_, 1, [&](int64_t lo, int64_t hi) {
    Alone alone;
    for (; lo < hi; ++lo) {
      Piece p = piece(direction, count(lo), bias);
      Tensor own = packed;
      if (!(weight_key(p) == weight_key(whole))) own = pack(p);  // fewer images may want another
      const char *x = from.data() + lo * images_ * in, *w = address(own);
      char* y = to.data() + lo * images_ * out;
      bias ? primitive_of(p).run({x, w, bias, y}) : primitive_of(p).run({x, w, y});
    }
  });
}

// Parts of the images have sums of their own, in float32, added in order.
void Halves::to_weight(const Last& big, const Last& small) const {
  Alone alone;
  int64_t in = bytes(Direction::to_big), out = bytes(Direction::to_small);
  Piece whole = piece(Direction::to_weight, images_, false);
  std::vector<Tensor> sums{size_t(parts_)};
  parallel_for(parts_, 1, [&](int64_t lo, int64_t hi) {
    Alone alone;
    for (; lo < hi; ++lo) {
      Piece p = piece(Direction::to_weight, count(lo), false);
      Tensor sum = room(weight_bytes(p));
      primitive_of(p).run(
          {big.data() + lo * images_ * in, small.data() + lo * images_ * out, address(sum)});
      sums[size_t(lo)] = std::move(sum);
    }
  });
  for (int64_t k = 1; k < parts_; ++k) {
    Piece p = piece(Direction::to_weight, count(k), false);
    bool same = weight_key(p) == weight_key(whole);
    Tensor moved = same ? sums[size_t(k)] : room(weight_bytes(whole));
    if (!same) reorder_layout(p, address(sums[size_t(k)]), whole, address(moved));
    auto* to = reinterpret_cast<float*>(address(sums[0]));
    auto* from = reinterpret_cast<const float*>(address(moved));
    parallel_for(int64_t(weight_bytes(whole) / sizeof(float)), 1 << 14,
                 [&](int64_t lo, int64_t hi) {
                   for (; lo < hi; ++lo) to[lo] += from[lo];
                 });
  }
  reorder_weight(whole, const_cast<char*>(weight_.bytes()), strides_.at, address(sums[0]));
}

ConvGeometry geometry(Args args, TensorView small, TensorView big, TensorView w) {
  return ConvGeometry(small, big, w, args.ints(3), args.ints(4), args.ints(5), args.integer(8));
}

// Channels' biases where the primitive adds none, and their gradients, by the core's own ops.
void add_bias(const Tensor& to, const Tensor& bias) {
  static constinit Op add("add"), reshape("reshape");
  std::vector<int64_t> shape(size_t(to.ndim()), 1);
  shape[1] = -1;
  const aj_value turned[] = {value(bias), value(Ints(shape))};
  Tensor row = kit::run(reshape.get(), turned, 2);
  const aj_value args[] = {value(to), value(row)};
  run_into(add.get(), args, 2, to);
}

void sum_to_bias(const Tensor& grad, const Tensor& to) {
  static constinit Op sum("sum");
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < grad.ndim(); ++d)
    if (d != 1) dims.push_back(d);
  const aj_value args[] = {value(grad), value(Ints(dims))};
  run_into(sum.get(), args, 2, to);
}

}  // namespace

void convolution_of_halves(Args args) {
  NoGradGuard off;
  TensorView x = args.tensor(0), w = args.tensor(1);
  MutView out = args.result(0);
  bool transposed = args.flag(6);
  ConvGeometry g = geometry(args, transposed ? x : out, transposed ? out : x, w);
  Last in(x), to(out, true);
  std::optional<Dense<float>> bias;
  if (args.tensor(2) && !transposed) bias.emplace(args.tensor(2));
  Halves conv(g, w, args.call()->flags & AJ_CALL_DETERMINISTIC);
  conv.run(transposed ? Direction::to_big : Direction::to_small, in, to,
           bias ? bias->data() : nullptr);
  to.commit();
  aj_tensor *target = out.get(), *row = args.tensor(2).get();
  if (row && transposed) add_bias(Tensor::view(target), Tensor::view(row));
}

void convolution_backward_of_halves(Args args) {
  NoGradGuard off;
  TensorView grad = args.tensor(0), x = args.tensor(1), w = args.tensor(2);
  bool transposed = args.flag(6), fixed = args.call()->flags & AJ_CALL_DETERMINISTIC;
  ConvGeometry g = geometry(args, transposed ? x : grad, transposed ? grad : x, w);
  Last dy(grad);
  if (args.bit(9, 0)) {
    Last dx(args.result(0), true);
    Direction back = transposed ? Direction::to_small : Direction::to_big;
    Halves(g, w, fixed).run(back, dy, dx, nullptr);
    dx.commit();
  }
  if (args.bit(9, 1)) {
    Last in(x);
    Halves conv(g, args.result(1), fixed);
    transposed ? conv.to_weight(dy, in) : conv.to_weight(in, dy);
  }
  if (args.bit(9, 2)) {
    aj_tensor *from = grad.get(), *to = args.result(2).get();
    sum_to_bias(Tensor::view(from), Tensor::view(to));
  }
}

}  // namespace adjoin::onednn

// plugins/onednn/convolution.cpp: convolutions of float32 by oneDNN, cut into images and channels.
//
// Its kernels are fastest on channels-last images. A user's planes are turned part by part, while
// they are in the cache; channels-last images are used where they lie.
#include "convolution.hpp"

#include <adjoin/kit/layout.hpp>
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/prepared.hpp>
#include <algorithm>
#include <cstring>
#include <optional>

#include "bias.hpp"
#include "halves.hpp"
#include "images.hpp"

namespace adjoin::onednn {
namespace {

using namespace kit;

// A tensor as Images: its own memory where that is dense in either order.
class Held {
 public:
  explicit Held(TensorView t, bool written = false) {
    int64_t pixels = 1;
    for (int64_t d = 2; d < t.ndim(); ++d) pixels *= t.size(d);
    images_ = {nullptr, Order::planes, t.size(0), t.size(1), pixels};
    if (channels_last(t)) {
      images_.order = Order::last;
      images_.data = const_cast<float*>(t.data<float>());
      return;
    }
    written ? dense_.emplace(MutView(t.get())) : dense_.emplace(t);
    images_.data = dense_->data();
  }
  const Images& operator*() const { return images_; }
  const Images* operator->() const { return &images_; }
  void commit() {
    if (dense_) dense_->commit();
  }

 private:
  Images images_;
  std::optional<Dense<float>> dense_;
};

constexpr int64_t kFew = 1 << 18;  // floats: what of a part should stay in the second-level cache

// How one of the three products is cut. By shape alone in the deterministic mode.
struct Cut {
  Order order;
  int64_t images, slices;  // images of a part; slices of the result's channels, or of the groups
};

class Convolution {
 public:
  Convolution(const ConvGeometry& g, Weight weight, bool deterministic)
      : g_(g),
        weight_(weight),
        deterministic_(deterministic),
        threads_(deterministic ? 4 : core().num_threads()) {}

  void to_small(const Images& big, const float* bias, const Images& small) const {
    run(Direction::to_small, big, small, bias);
  }
  void to_big(const Images& small, const Images& big) const {
    turns() ? to_big_forward(small, big) : run(Direction::to_big, small, big, nullptr);
  }
  void to_weight(const Images& big, const Images& small) const;

 private:
  bool turns() const;
  void to_big_forward(const Images& small, const Images& big) const;
  int64_t weight_size() const { return g_.groups * g_.small_c * g_.big_c * g_.taps(); }
  Cut cut(Direction direction, const Images& from, const Images& to) const;
  Piece piece(Direction direction, const Cut& cut, int64_t images, bool bias) const;
  Weight slice_of_weight(Direction direction, const Piece& piece, int64_t slice) const;
  void run(Direction direction, const Images& from, const Images& to, const float* bias) const;

  const ConvGeometry& g_;
  Weight weight_;
  bool deterministic_;
  int64_t threads_;
};

// With stride 1 the way back is a convolution too, by the kernel turned round. Where the big image
// has few channels the library is faster at that.
bool Convolution::turns() const {
  if (g_.groups != 1 || g_.kernel[0] * g_.big[0] * g_.small[0] != 1 || g_.taps() < 9 ||
      weight_size() > kFew || g_.big_c < 8 || g_.big_c > 32)
    return false;
  for (int d = 1; d < 3; ++d)
    if (g_.stride[d] != 1 || g_.dilation[d] * (g_.kernel[d] - 1) < g_.pad[d]) return false;
  return true;
}

void Convolution::to_big_forward(const Images& small, const Images& big) const {
  ConvGeometry back = g_;
  std::swap(back.small_c, back.big_c);
  for (int d = 1; d < 3; ++d) {
    std::swap(back.small[d], back.big[d]);
    back.pad[d] = g_.dilation[d] * (g_.kernel[d] - 1) - g_.pad[d];
  }
  Scratch turned(weight_size());
  const int64_t rows = g_.kernel[1], columns = g_.kernel[2], *s = weight_.stride;
  float* to = turned.data();
  for (int64_t c = 0; c < g_.big_c; ++c)
    for (int64_t o = 0; o < g_.small_c; ++o)
      for (int64_t i = rows; i-- > 0;)
        for (int64_t j = columns; j-- > 0;)
          *to++ = weight_.data[o * s[0] + c * s[1] + i * s[3] + j * s[4]];
  Weight w = {turned.data(), {g_.small_c * g_.taps(), g_.taps(), g_.taps(), columns, 1}, {}};
  Convolution(back, w, deterministic_).run(Direction::to_small, small, big, nullptr);
}

Cut Convolution::cut(Direction direction, const Images& from, const Images& to) const {
  bool pointwise =
      g_.taps() == 1 && g_.stride[0] * g_.stride[1] * g_.stride[2] == 1 && g_.groups == 1;
  bool planes = from.order == Order::planes && to.order == Order::planes;
  Cut cut = {Order::last, from.batch, 1};
  // Products of planes as they are; and a trap: channels-last gradients of a few channels.
  if (planes && direction != Direction::to_weight && pointwise && from.pixels >= 64)
    cut.order = Order::planes;
  if (planes && direction == Direction::to_big && g_.big_c < 8 && g_.groups == 1)
    cut.order = Order::planes;
  int64_t channels = g_.groups > 1                    ? g_.groups
                     : direction == Direction::to_big ? g_.big_c
                                                      : g_.small_c;
  bool heavy = weight_size() > kFew;
  // A slice of a heavy weight stays in the second-level cache between packing and use.
  int64_t slices = std::max(threads_, heavy ? weight_size() / (kFew / 2) : 1);
  if (slices > 1 && (direction == Direction::to_weight || heavy || from.batch < threads_))
    for (cut.slices = slices; cut.slices > 1; --cut.slices)
      if (channels % cut.slices == 0 && channels / cut.slices >= 16) break;
  if (direction == Direction::to_weight) return cut;
  if (cut.slices == 1) cut.images = (from.batch + threads_ - 1) / threads_;
  if (!heavy) {
    int64_t most = std::max<int64_t>(1, kFew / std::max<int64_t>(1, from.each() + to.each()));
    int64_t parts = (cut.images + most - 1) / most;
    cut.images = (cut.images + parts - 1) / parts;
  }
  return cut;
}

Piece Convolution::piece(Direction direction, const Cut& cut, int64_t images, bool bias) const {
  Piece p = {direction, cut.order, bias, images, g_.groups, g_.small_c, g_.big_c, &g_};
  (g_.groups > 1 ? p.groups : direction == Direction::to_big ? p.big_c : p.small_c) /= cut.slices;
  return p;
}

Weight Convolution::slice_of_weight(Direction direction, const Piece& p, int64_t slice) const {
  Weight w = weight_;
  if (g_.groups == 1 && direction == Direction::to_big)
    w.data += slice * p.big_c * w.stride[1];
  else
    w.data += slice * p.small_channels() * w.stride[0];
  return w;
}

int64_t floats_of(const dnnl_memory_desc_t& layout) {
  return int64_t(dnnl().memory_desc_get_size(&layout) + 255) / 256 * 64;
}

// Fewer images may want another layout.
bool same_weight(const Piece& a, const Piece& b) {
  dnnl_memory_desc_t layout = weight_layout(a);
  return dnnl().memory_desc_equal(&layout, &weight_layout(b));
}

// Weights of every slice as the pieces want them, or the user's own; null where they are packed
// only at their use.
class Packed {
 public:
  template <class SliceOf>
  Packed(const Piece& p, int64_t slices, SliceOf slice_of, bool at_use) {
    plain_ = is_plain(p, slice_of(0));
    each_ = floats_of(weight_layout(p));
    for (int64_t i = 0; i < slices; ++i) users_.push_back(slice_of(i).data);
    // Contents that are used again and again have been packed before.
    if (!plain_ && p.direction != Direction::to_weight) kept_ = keep(p, slices, slice_of);
    if (!plain_ && !at_use && !kept_.defined()) memory_ = Scratch(each_ * slices);
  }
  float* operator[](int64_t slice) const {
    if (plain_) return users_[size_t(slice)];
    if (kept_.defined()) return MutView(kept_.get()).data<float>() + slice * each_;
    return memory_ ? memory_.data() + slice * each_ : nullptr;
  }
  bool plain() const { return plain_; }
  bool ready() const { return plain_ || kept_.defined(); }

 private:
  template <class SliceOf>
  Tensor keep(const Piece& p, int64_t slices, SliceOf slice_of) const {
    Key key = weight_key(p);
    key.add(int64_t(p.direction)), key.add(slices);
    return prepared(slice_of(0).tensor, key.span(), [&] {
      int64_t shape[1] = {each_ * slices};
      Tensor made = Tensor::steal(new_tensor({kDLCPU, 0}, dtype_of<float>, shape));
      float* to = MutView(made.get()).data<float>();
      parallel_for(slices, 1, [&](int64_t lo, int64_t hi) {
        Alone alone;
        for (; lo < hi; ++lo) convert_weight(p, slice_of(lo), to + lo * each_);
      });
      return made;
    });
  }

  bool plain_;
  int64_t each_;
  std::vector<float*> users_;
  Scratch memory_;
  Tensor kept_;
};

void Convolution::run(Direction direction, const Images& from, const Images& to,
                      const float* bias) const {
  Alone alone;
  Cut cut = this->cut(direction, from, to);
  Piece whole = piece(direction, cut, cut.images, bias);
  bool by_group = g_.groups > 1;
  int64_t reads = direction == Direction::to_big ? whole.small_channels() : whole.big_channels(),
          writes = direction == Direction::to_big ? whole.big_channels() : whole.small_channels();
  auto slice_of = [&](int64_t i) { return slice_of_weight(direction, whole, i); };
  int64_t parts = (from.batch + cut.images - 1) / cut.images;
  Packed weights(whole, cut.slices, slice_of, parts == 1);
  bool direct = from.fits(cut.order, reads), shared = !direct && cut.slices > 1 && !by_group;
  Scratch turned(shared ? from.batch * from.each() : 0);
  // What several pieces read, first.
  int64_t packs = weights.ready() || parts == 1 ? 0 : cut.slices, turns = shared ? from.batch : 0;
  parallel_for(packs + turns, 1, [&](int64_t lo, int64_t hi) {
    Alone alone;
    for (; lo < hi; ++lo)
      if (lo < packs)
        convert_weight(whole, slice_of(lo), weights[lo]);
      else
        from.gather(lo - packs, 1, 0, from.channels, cut.order,
                    turned.data() + (lo - packs) * from.each());
  });
  parallel_for(parts * cut.slices, 1, [&](int64_t lo, int64_t hi) {
    Alone alone;
    Scratch in, out, packed;
    for (; lo < hi; ++lo) {
      int64_t slice = lo % cut.slices, first = lo / cut.slices * cut.images,
              n = std::min(cut.images, from.batch - first);
      Piece p = piece(direction, cut, n, bias);
      const float *x = from.data + first * from.each(), *w = nullptr;
      float* y = to.data + first * to.each();
      if (shared) {
        x = turned.data() + first * from.each();
      } else if (!direct) {
        if (!in) in = Scratch(cut.images * reads * from.pixels);
        from.gather(first, n, by_group ? slice * reads : 0, reads, cut.order, in.data());
        x = in.data();
      }
      if (n == cut.images || same_weight(p, whole)) w = weights[slice];
      if (!w) {
        if (!packed) packed = Scratch(floats_of(weight_layout(p)));
        convert_weight(p, slice_of(slice), packed.data());
        w = packed.data();
      }
      bool straight = to.fits(cut.order, writes);
      if (!straight) {
        if (!out) out = Scratch(cut.images * writes * to.pixels);
        y = out.data();
      }
      if (bias)
        primitive_of(p).run({x, w, bias + slice * writes, y});
      else
        primitive_of(p).run({x, w, y});
      if (!straight) to.scatter(first, n, slice * writes, writes, cut.order, y);
    }
  });
}

void Convolution::to_weight(const Images& big, const Images& small) const {
  Alone alone;
  Cut cut = this->cut(Direction::to_weight, big, small);
  Piece p = piece(Direction::to_weight, cut, big.batch, false);
  bool by_group = g_.groups > 1;
  auto slice_of = [&](int64_t i) { return slice_of_weight(Direction::to_weight, p, i); };
  Packed weights(p, cut.slices, slice_of, true);
  int64_t reads = p.big_channels(), others = p.small_channels();
  bool direct = big.fits(cut.order, reads), small_direct = small.fits(cut.order, others);
  // A slice's images, one behind the other; what all slices read stands there once.
  int64_t copies = by_group ? cut.slices : 1;
  Scratch x(direct ? 0 : big.batch * big.each()), y(small_direct ? 0 : big.batch * small.each());
  auto x_of = [&](int64_t s) {
    return direct ? big.data : x.data() + s * big.batch * reads * big.pixels;
  };
  auto y_of = [&](int64_t s) {
    return small_direct ? small.data : y.data() + s * big.batch * others * small.pixels;
  };
  parallel_for(big.batch, 1, [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      for (int64_t s = 0; s < copies && !direct; ++s)
        big.gather(lo, 1, s * reads, reads, cut.order, x_of(s) + lo * reads * big.pixels);
      for (int64_t s = 0; s < cut.slices && !small_direct; ++s)
        small.gather(lo, 1, s * others, others, cut.order, y_of(s) + lo * others * small.pixels);
    }
  });
  parallel_for(cut.slices, 1, [&](int64_t lo, int64_t hi) {
    Alone alone;
    Scratch packed(weights.plain() ? 0 : floats_of(weight_layout(p)));
    for (; lo < hi; ++lo) {
      float* w = weights.plain() ? weights[lo] : packed.data();
      primitive_of(p).run({x_of(by_group ? lo : 0), y_of(lo), w});
      if (!weights.plain()) convert_weight(p, slice_of(lo), w);
    }
  });
}

Weight weight_of(TensorView w, float* data) {
  Weight out = {data, {}, w};
  std::copy_n(weight_strides(w).at, 5, out.stride);
  return out;
}

void convolution(Args args) {
  if (!same(args.tensor(0).dtype(), dtype_of<float>)) return convolution_of_halves(args);
  TensorView x = args.tensor(0), w = args.tensor(1);
  MutView out = args.result(0);
  bool transposed = args.flag(6);
  ConvGeometry g(transposed ? x : out, transposed ? out : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  Held in(x), to(out, true);
  std::optional<Dense<float>> bias;
  if (args.tensor(2)) bias.emplace(args.tensor(2));
  Convolution conv(g, weight_of(w, const_cast<float*>(w.data<float>())),
                   args.call()->flags & AJ_CALL_DETERMINISTIC);
  if (transposed) {
    conv.to_big(*in, *to);
    if (bias) add_bias(*to, bias->data());
  } else {
    conv.to_small(*in, bias ? bias->data() : nullptr, *to);
  }
  to.commit();
}

void convolution_backward(Args args) {
  if (!same(args.tensor(0).dtype(), dtype_of<float>)) return convolution_backward_of_halves(args);
  TensorView grad = args.tensor(0), x = args.tensor(1), w = args.tensor(2);
  bool transposed = args.flag(6), fixed = args.call()->flags & AJ_CALL_DETERMINISTIC;
  ConvGeometry g(transposed ? x : grad, transposed ? grad : x, w, args.ints(3), args.ints(4),
                 args.ints(5), args.integer(8));
  Held dy(grad);
  if (args.bit(9, 0)) {
    Held dx(args.result(0), true);
    Convolution conv(g, weight_of(w, const_cast<float*>(w.data<float>())), fixed);
    transposed ? conv.to_small(*dy, nullptr, *dx) : conv.to_big(*dy, *dx);
    dx.commit();
  }
  if (args.bit(9, 1)) {
    Held in(x);
    MutView dw = args.result(1);
    Convolution conv(g, weight_of(dw, dw.data<float>()), fixed);
    transposed ? conv.to_weight(*dy, *in) : conv.to_weight(*in, *dy);
  }
  if (args.bit(9, 2)) {
    Dense<float> db(args.result(2));
    sum_to_bias(*dy, db.data());
    db.commit();
  }
}

// Float32 or bfloat16, none empty, whose sizes follow from each other as the library sees it.
bool serves(TensorView small, TensorView big, TensorView w, Span stride, Span pad, Span dilation) {
  int64_t n = w.ndim() - 2;
  if (n < 1 || n > 3 || !Library::find()) return false;
  bool half = same(w.dtype(), dtype_of<BFloat16>);
  if (half && !dnnl().bfloat16) return false;
  for (TensorView t : {small, big, w})
    if (!same(t.dtype(), half ? dtype_of<BFloat16> : dtype_of<float>) || t.numel() == 0 ||
        t.numel() > 1 << 30)
      return false;
  // Groups of few channels, as planes: `cpu` has a direct method, fast where pixels are neighbours.
  int64_t groups = big.size(1) / std::max<int64_t>(1, w.size(1));
  bool few = groups > 1 && w.size(1) <= 8 && w.size(0) <= 8 * groups;
  if (few && !half && !channels_last(small) && !channels_last(big)) return false;
  // Groups of a few channels have no fast kernel in three dimensions there.
  if (n == 3 && w.size(1) != big.size(1) && w.size(1) % 16 != 0) return false;
  // A large weight for few pixels: products read it where it lies.
  if (!half && w.size(1) == big.size(1) && few_pixels(small.numel() / small.size(1), w.numel()))
    return false;
  for (int64_t d = 0; d < n; ++d) {
    int64_t reach = dilation[d] * (w.size(d + 2) - 1) + 1,
            room = big.size(d + 2) + 2 * pad[d] - reach;
    if (room < 0 || room / stride[d] + 1 != small.size(d + 2)) return false;
    if (pad[d] >= reach || reach > 1 << 20 || stride[d] > 1 << 20) return false;
  }
  return true;
}

int32_t can_run(void*, const aj_call* call) {
  Args args(call);
  TensorView x = args.tensor(0), out(call->rets[0].v.tensor);
  bool transposed = args.flag(6);
  return serves(transposed ? x : out, transposed ? out : x, args.tensor(1), args.ints(3),
                args.ints(4), args.ints(5));
}

int32_t can_run_backward(void*, const aj_call* call) {
  Args args(call);
  TensorView grad = args.tensor(0), x = args.tensor(1);
  bool transposed = args.flag(6);
  return serves(transposed ? x : grad, transposed ? grad : x, args.tensor(2), args.ints(3),
                args.ints(4), args.ints(5));
}

}  // namespace

const Kernel convolution_kernels[] = {
    {"convolution",
     {&plain_kernel<convolution>, Types<float, BFloat16>::own_mask,
      AJ_KERNEL_CALL_DEPENDENT | AJ_KERNEL_CHANNELS_LAST, &can_run}},
    {"convolution_backward",
     {&plain_kernel<convolution_backward>, Types<float, BFloat16>::own_mask,
      AJ_KERNEL_CALL_DEPENDENT, &can_run_backward}},
    {nullptr, {}},
};

}  // namespace adjoin::onednn

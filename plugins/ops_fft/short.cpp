// plugins/ops_fft/short.cpp: transforms of short pieces of a signal that overlap, and back.
#include <adjoin/kit/losses.hpp>
#include <adjoin/kit/make.hpp>
#include <cmath>

namespace adjoin::ops {

namespace {

// How pieces are cut; (n_fft, hop_length, win_length) are the call's arguments 1, 2, 3.
struct Pieces {
  int64_t n, hop, window;
  explicit Pieces(const kit::Body& b) : n(b.integer(1)) {
    want(n >= 1, "n_fft must be at least 1, it is ", n);
    hop = b.given(2) ? b.integer(2) : n / 4;
    window = b.given(3) ? b.integer(3) : n;
    want(hop >= 1, "hop_length must be at least 1, it is ", hop);
    want(window >= 1 && window <= n, "win_length must be between 1 and n_fft (", n, "), it is ",
         window);
  }

  // The window with zeros on both sides, of n elements; undefined where it would be ones.
  Tensor weights(const Tensor& given, const Tensor& like) const {
    if (!given.defined() && window == n) return {};
    if (given.defined())
      want(given.ndim() == 1 && given.size(0) == window, "window must have win_length (", window,
           ") elements in one dimension, its shape is ", shown(given));
    Tensor w = given.defined() ? given : filled(like, {window}, 1, real_of(like.dtype()));
    const int64_t left = (n - window) / 2;
    return window == n ? w : constant_pad_nd(w, {left, n - window - left});
  }
};

void want_floating(const Tensor& t) {
  want(t.is_floating_point() || t.is_complex(),
       "floating-point or complex numbers are wanted, the tensor is ", t.dtype(),
       "; cast it with .to(float32)");
}

}  // namespace

// (input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
// return_complex, align_to_window)
aj_status* stft_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Pieces p(b);
    const Tensor &given = b.tensor(0), &window = b.tensor(4);
    want_floating(given);
    want(given.ndim() == 1 || given.ndim() == 2,
         "a signal or a batch of them is wanted, the shape is ", shown(given));
    const bool complex = given.is_complex() || (window.defined() && window.is_complex());
    const bool half = b.given(8) ? b.flag(8) : !complex, center = b.flag(5);
    want(!half || !complex, "of complex numbers there is no half spectrum; pass onesided=False");
    want(complex || b.given(9),
         "return_complex must be given where the signal is real; True gives ",
         "complex numbers, False their parts");
    want(!center || !b.given(10), "align_to_window goes with center=False alone");
    Tensor x = given.ndim() == 1 ? unsqueeze(given, 0) : given;
    if (center) {
      x = in_own_name([&] {
        Tensor planes = unsqueeze(x, 1);
        return squeeze(pad(planes, {p.n / 2, p.n / 2}, b.text(6)), 1);
      });
    } else if (b.given(10) && b.flag(10)) {
      const int64_t left = (p.n - p.window) / 2;
      x = constant_pad_nd(x, {left, p.n - p.window - left});
    }
    want(x.size(1) >= p.n, "a signal of ", x.size(1), " elements is shorter than n_fft, ", p.n);
    Tensor frames = unfold(x, 1, p.n, p.hop), weights = p.weights(window, x);
    if (weights.defined()) frames = frames * weights;
    const double scale = b.flag(7) ? 1 / std::sqrt(double(p.n)) : 1;
    Tensor out = in_own_name([&] {
      return frames.is_complex() ? fft_c2c(frames, {2}, true, scale)
                                 : fft_r2c(frames, {2}, half, true, scale);
    });
    out = transpose(out, 1, 2);
    if (given.ndim() == 1) out = squeeze(out, 0);
    b.ret(0, b.given(9) && !b.flag(9) ? view_as_real(out) : out);
  });
}

// (input, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
// return_complex)
aj_status* istft_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Pieces p(b);
    const Tensor &given = b.tensor(0), &window = b.tensor(4);
    if (!given.is_complex())
      kit::raise(AJ_UNIMPLEMENTED, "complex numbers are wanted, as stft gives them with ",
                 "return_complex=True; the tensor is ", given.dtype());
    want(given.ndim() == 2 || given.ndim() == 3,
         "frequencies and pieces are wanted, and a batch before them; the shape is ", shown(given));
    want(given.numel() > 0, "there is nothing to transform, the shape is ", shown(given));
    Tensor x = given.ndim() == 2 ? unsqueeze(given, 0) : given;
    const bool half = b.given(7) ? b.flag(7) : x.size(1) != p.n;
    const bool center = b.flag(5), complex = b.flag(9);
    const int64_t frequencies = half ? p.n / 2 + 1 : p.n;
    want(x.size(1) == frequencies, "of n_fft ", p.n, " there are ", frequencies,
         " frequencies, the tensor has ", x.size(1));
    want(p.hop <= p.window, "hop_length ", p.hop, " is longer than win_length ", p.window);
    want(!complex || !half, "of half spectra the signal is real; pass onesided=False");
    want(complex || !window.defined() || !window.is_complex(),
         "the window is complex, so the signal is; pass return_complex=True");
    x = transpose(x, 1, 2);
    const double scale = b.flag(6) ? 1 / std::sqrt(double(p.n)) : 1 / double(p.n);
    Tensor pieces = in_own_name([&] {
      if (complex) return fft_c2c(x, {2}, false, scale);
      Tensor first = half ? x : slice(x, 2, 0, p.n / 2 + 1);
      return fft_c2r(first, {2}, p.n, false, scale);
    });
    Tensor weights = p.weights(window, x);
    if (weights.defined()) pieces = pieces * weights;
    const int64_t count = x.size(1), whole = p.n + p.hop * (count - 1);
    if (!weights.defined()) weights = filled(x, {p.n}, 1, real_of(x.dtype()));
    Tensor squares = expand(square(weights), {1, count, p.n});
    Tensor sums = unfold_backward(pieces, {x.size(0), whole}, 1, p.n, p.hop);
    Tensor shares = unfold_backward(squares, {1, whole}, 1, p.n, p.hop);
    const int64_t start = center ? p.n / 2 : 0;
    int64_t end = center ? whole - p.n / 2 : whole, behind = 0;
    if (b.given(8)) {
      end = start + b.integer(8);
      behind = std::max<int64_t>(0, end - whole);
    }
    end = std::min(end, whole);
    want(end > start, "no element of the signal is left between ", start, " and ", end);
    sums = slice(sums, 1, start, end), shares = slice(shares, 1, start, end);
    if (has_values(shares) && !(b.call()->flags & AJ_CALL_CAPTURING)) {
      const double least = amin(abs(shares), {0, 1}, false).number().to_double();
      want(least > 1e-11, "windows do not cover the whole signal: the least sum of their squares ",
           "is ", least, "; take a shorter hop_length, or center=True");
    }
    Tensor out = sums / shares;
    if (behind) out = constant_pad_nd(out, {0, behind});
    b.ret(0, given.ndim() == 2 ? squeeze(out, 0) : out);
  });
}

}  // namespace adjoin::ops

// plugins/cpu/train/rnn.cpp: a recurrent layer: one product for the inputs of all steps, then a
// step at a time: the state's product with packed weights, and the gates, both in blocks of units
// that threads take. Backward likewise; the weights' gradients are products over all steps at its
// end.
#include "rnn.hpp"

#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/view.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "cpu/product/gemm.hpp"
#include "vector/stored.hpp"

namespace adjoin::cpu {
namespace {

// Memory from the caching allocator: its pages are warm.
template <class T>
class Scratch {
 public:
  Scratch(DLDevice device, int64_t n)
      : tensor_(new_tensor(device, dtype_of<T>, std::array<int64_t, 1>{std::max<int64_t>(n, 1)})) {}
  ~Scratch() { core().release(tensor_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return MutView(tensor_).data<T>(); }

 private:
  aj_tensor* tensor_;
};

Cell cell_of(std::string_view mode) {
  return mode == "LSTM"       ? Cell::lstm
         : mode == "GRU"      ? Cell::gru
         : mode == "RNN_TANH" ? Cell::tanh
                              : Cell::relu;
}

// Steps in the order of the recurrence; a step is rows of the sequence.
class Steps {
 public:
  Steps(Span sizes, bool reverse) : sizes_(sizes), start_(sizes.size()), reverse_(reverse) {
    for (size_t t = 0; t < sizes.size(); ++t) start_[t] = rows, rows += sizes[t];
  }
  int64_t count() const { return int64_t(sizes_.size()); }
  int64_t batch() const { return sizes_.empty() ? 0 : sizes_[0]; }
  int64_t size(int64_t i) const { return sizes_[at(i)]; }
  int64_t start(int64_t i) const { return start_[at(i)]; }
  // Where row r of the state stood before step i: in `all`, or still at the beginning.
  template <class T>
  const T* before(int64_t i, int64_t r, const T* all, const T* first, int64_t width) const {
    bool begun = i > 0 && r < size(i - 1);
    return begun ? all + (start(i - 1) + r) * width : first + r * width;
  }
  int64_t rows = 0;

 private:
  size_t at(int64_t i) const { return size_t(reverse_ ? count() - 1 - i : i); }
  Span sizes_;
  std::vector<int64_t> start_;
  bool reverse_;
};

// What forward and backward share: sizes, and weight_hh cut in panels of units.
template <class T>
struct Layer {
  Layer(Args args, uint32_t sizes, TensorView hx, TensorView input)
      : kind(cell_of(args.string(sizes + 1))),
        steps(args.ints(sizes), args.flag(sizes + 2)),
        hidden(hx.size(1)),
        features(input.size(1)),
        gates(kind == Cell::lstm  ? 4
              : kind == Cell::gru ? 3
                                  : 1),
        kept(gates > 1 ? 4 : 1),
        blocks((hidden + vectors.width - 1) / vectors.width),
        device(input.device()),
        by_shape(args.call()->flags & AJ_CALL_DETERMINISTIC) {}

  int64_t from(int64_t block) const { return block * vectors.width; }
  int64_t to(int64_t block) const { return std::min(hidden, from(block) + vectors.width); }

  // f(lo, hi) for blocks of units; a small step is done by one thread.
  template <class F>
  void each_block(int64_t batch, F f) const {
    constexpr int64_t small = 200'000;  // multiply-adds: less time than waking a thread
    bool alone = gates * batch * hidden * hidden < small;
    alone ? f(int64_t(0), blocks) : parallel_for(blocks, 1, f);
  }
  void product(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t ldc) const {
    multiply(Gemm<T>{m, n, k, a, b, c, ldc}, by_shape);
  }

  const RnnVectors<T>& vectors = rnn_vectors<T>();
  Cell kind;
  Steps steps;
  int64_t hidden, features, gates, kept, blocks;
  DLDevice device;
  bool by_shape;
};

template <class T>
void copy_rows(MutView to, const T* from) {
  Dense<T> out(to);
  std::copy_n(from, to.numel(), out.data());
  out.commit();
}

template <class T>
class Forward : Layer<T> {
  using L = Layer<T>;

 public:
  static constexpr uint32_t kInput = 0;
  explicit Forward(Args args)
      : L(args, 7, args.tensor(1), args.tensor(0)),
        args_(args),
        x_(args.tensor(0)),
        hx_(args.tensor(1)),
        w_(args.tensor(4)),
        out_(args.result(0)),
        gates_(args.result(3)),
        cells_(args.result(4)),
        bias_(size_t((L::gates + 1) * L::hidden), T(0)),
        at_once_(L::steps.count() == 1 && L::steps.rows >= 16 && L::steps.rows <= 256),
        panels_(L::device, L::gates * L::blocks * (L::hidden + (at_once_ ? L::features : 0)) *
                               L::vectors.width),
        state_(L::device, 2 * L::steps.batch() * L::hidden) {
    if (args.tensor(2)) cx_.emplace(args.tensor(2));
  }

  void run() {
    add_biases();
    if (at_once_)
      pack(Dense<T>(args_.tensor(3)).data(), L::features, input_panel(0, 0));
    else
      input_product();
    pack(w_.data(), L::hidden, panel(0, 0));
    int64_t state = L::steps.batch() * L::hidden;
    T *now = state_.data(), *next = now + state;
    std::copy_n(hx_.data(), state, now);
    for (int64_t i = 0; i < L::steps.count(); ++i, std::swap(now, next))
      L::each_block(L::steps.size(i), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo) step(i, lo, now, next);
      });
    out_.commit();
    gates_.commit();
    cells_.commit();
    copy_rows(args_.result(1), now);
    if (cx_) last_cells();
  }

 private:
  // Of the candidate of a GRU the second bias stands apart.
  void add_biases() {
    if (!args_.tensor(5)) return;
    Dense<T> a(args_.tensor(5)), b(args_.tensor(6));
    int64_t n = L::hidden, all = L::gates * n, apart = L::kind == Cell::gru ? 2 * n : all;
    for (int64_t j = 0; j < all; ++j) bias_[j] = j < apart ? a[j] + b[j] : a[j];
    for (int64_t j = apart; j < all; ++j) bias_[j + n] = b[j];
  }
  T* rows() { return L::gates > 1 ? gates_.data() : out_.data(); }
  int64_t row_length() const { return L::kept * L::hidden; }

  void input_product() {
    Dense<T> w(args_.tensor(3));
    int64_t ld = std::max<int64_t>(L::features, 1);
    L::product(L::steps.rows, L::gates * L::hidden, L::features, {x_.data(), ld, false},
               {w.data(), ld, true}, rows(), row_length());
  }
  T* panel(int64_t gate, int64_t block) {
    return panels_.data() + (gate * L::blocks + block) * L::hidden * L::vectors.width;
  }
  // Of weight_ih, behind all those.
  T* input_panel(int64_t gate, int64_t block) {
    return panel(L::gates, 0) + (gate * L::blocks + block) * L::features * L::vectors.width;
  }
  void pack(const T* weights, int64_t k, T* to) {
    const int64_t n = L::hidden, width = L::vectors.width;
    parallel_for(L::gates * L::blocks, grain_of(k * width), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) {
        int64_t gate = lo / L::blocks, block = lo % L::blocks;
        L::vectors.pack(k, n, weights + gate * n * k, 1, k, L::from(block), to + lo * k * width);
      }
    });
  }
  void step(int64_t i, int64_t block, const T* now, T* next) {
    int64_t n = L::hidden, from = L::from(block), to = L::to(block), ld = row_length(),
            batch = L::steps.size(i), start = L::steps.start(i);
    for (int64_t gate = 0; gate < L::gates; ++gate) {
      bool apart = L::kind == Cell::gru && gate == 2;
      if (at_once_)
        L::vectors.multiply(batch, L::features, x_.data() + start * L::features, L::features,
                            input_panel(gate, block), to - from, false,
                            rows() + start * ld + gate * n + from, ld);
      L::vectors.multiply(batch, n, now, n, panel(gate, block), to - from, !apart,
                          rows() + start * ld + (apart ? 3 : gate) * n + from, ld);
    }
    CellRow<T> r = {n, from, to, bias_.data(), bias_.data() + 3 * n};
    for (int64_t k = 0; k < batch; ++k) {
      int64_t at = start + k;
      r.gates = gates_.data() + at * ld;
      r.h = out_.data() + at * n;
      r.h_before = now + k * n;
      r.state = next + k * n;
      if (cx_) {
        r.c = cells_.data() + at * n;
        r.c_before = L::steps.before(i, k, cells_.data(), cx_->data(), n);
      }
      L::vectors.forward(L::kind, r);
    }
    for (int64_t k = batch; k < L::steps.batch(); ++k)
      std::copy(now + k * n + from, now + k * n + to, next + k * n + from);
  }
  void last_cells() {
    int64_t n = L::hidden;
    Dense<T> out(args_.result(2));
    for (int64_t k = 0; k < L::steps.batch(); ++k) {
      int64_t i = L::steps.count();
      while (i > 1 && L::steps.size(i - 1) <= k) --i;
      std::copy_n(L::steps.before(i, k, cells_.data(), cx_->data(), n), n, out.data() + k * n);
    }
    out.commit();
  }

  Args args_;
  Dense<T> x_, hx_, w_, out_, gates_, cells_;
  std::optional<Dense<T>> cx_;
  std::vector<T> bias_;
  bool at_once_;  // one step, of a cell: the inputs are multiplied as the state is
  Scratch<T> panels_, state_;
};

template <class T>
class Backward : Layer<T> {
  using L = Layer<T>;

 public:
  static constexpr uint32_t kInput = 3;
  explicit Backward(Args args)
      : L(args, 13, args.tensor(4), args.tensor(3)),
        args_(args),
        grad_(args.tensor(0)),
        hx_(args.tensor(4)),
        w_(args.tensor(7)),
        out_(args.tensor(10)),
        gates_(args.tensor(11)),
        cells_(args.tensor(12)),
        width_(L::gates * L::hidden),
        apart_(L::kind == Cell::gru),
        panels_(L::device, L::blocks * width_ * L::vectors.width),
        carried_(L::device, 2 * L::steps.batch() * L::hidden),
        d_gates_(L::device, (apart_ ? 2 : 1) * L::steps.rows * width_) {
    if (args.tensor(5)) cx_.emplace(args.tensor(5));
    dh_ = carried_.data();
    dc_ = dh_ + L::steps.batch() * L::hidden;
    d_input_ = d_gates_.data();
    d_hidden_ = d_input_ + (apart_ ? L::steps.rows * width_ : 0);
  }

  void run() {
    int64_t state = L::steps.batch() * L::hidden;
    Dense<T> last_h(args_.tensor(1));
    std::copy_n(last_h.data(), state, dh_);
    if (cx_) std::copy_n(Dense<T>(args_.tensor(2)).data(), state, dc_);
    const int64_t last = needs(1) ? -1 : 0;  // nobody may ask what goes back to hx
    if (L::steps.count() - 1 > last) pack();
    for (int64_t i = L::steps.count() - 1; i >= last; --i)
      L::each_block(L::steps.batch(), [&](int64_t lo, int64_t hi) {
        for (; lo < hi; ++lo) step(i, lo);
      });
    if (needs(1)) copy_rows(args_.result(1), dh_);
    if (needs(2) && cx_) copy_rows(args_.result(2), dc_);
    input_gradient();
    weight_gradients();
    bias_gradients();
  }

 private:
  bool needs(uint32_t i) const { return args_.bit(16, i); }
  T* panel(int64_t block) { return panels_.data() + block * width_ * L::vectors.width; }
  void pack() {
    int64_t n = L::hidden;
    parallel_for(L::blocks, grain_of(width_ * L::vectors.width), [&](int64_t lo, int64_t hi) {
      for (; lo < hi; ++lo) L::vectors.pack(width_, n, w_.data(), n, 1, L::from(lo), panel(lo));
    });
  }
  // What step i + 1 sends back to its state, then the gates of step i.
  void step(int64_t i, int64_t block) {
    int64_t n = L::hidden, from = L::from(block), to = L::to(block);
    if (i + 1 < L::steps.count())
      L::vectors.multiply(L::steps.size(i + 1), width_, d_hidden_ + L::steps.start(i + 1) * width_,
                          width_, panel(block), to - from, apart_, dh_ + from, n);
    if (i < 0) return;
    CellGrad<T> r = {n, from, to};
    for (int64_t k = 0; k < L::steps.size(i); ++k) {
      int64_t at = L::steps.start(i) + k;
      r.gates = gates_.data() + at * 4 * n;
      r.h = out_.data() + at * n;
      r.h_before = L::steps.before(i, k, out_.data(), hx_.data(), n);
      if (cx_) {
        r.c = cells_.data() + at * n;
        r.c_before = L::steps.before(i, k, cells_.data(), cx_->data(), n);
      }
      r.grad = grad_.data() + at * n;
      r.dh = dh_ + k * n;
      r.dc = dc_ + k * n;
      r.d_input = d_input_ + at * width_;
      r.d_hidden = d_hidden_ + at * width_;
      L::vectors.backward(L::kind, r);
    }
  }
  void input_gradient() {
    if (!needs(0)) return;
    Dense<T> w(args_.tensor(6)), dx(args_.result(0));
    int64_t ld = std::max<int64_t>(L::features, 1);
    L::product(L::steps.rows, L::features, width_, {d_input_, width_, false}, {w.data(), ld, false},
               dx.data(), ld);
    dx.commit();
  }
  void weight_gradients() {
    int64_t n = L::hidden, rows = L::steps.rows, ld = std::max<int64_t>(L::features, 1);
    if (needs(3)) {
      Dense<T> x(args_.tensor(3)), dw(args_.result(3));
      L::product(width_, L::features, rows, {d_input_, width_, true}, {x.data(), ld, false},
                 dw.data(), ld);
      dw.commit();
    }
    if (!needs(4)) return;
    Scratch<T> states(L::device, rows * n);
    for (int64_t i = 0; i < L::steps.count(); ++i)
      for (int64_t k = 0; k < L::steps.size(i); ++k)
        std::copy_n(L::steps.before(i, k, out_.data(), hx_.data(), n), n,
                    states.data() + (L::steps.start(i) + k) * n);
    Dense<T> dw(args_.result(4));
    L::product(width_, n, rows, {d_hidden_, width_, true}, {states.data(), n, false}, dw.data(), n);
    dw.commit();
  }
  void bias_gradients() {
    for (uint32_t i : {0u, 1u}) {
      if (!needs(5 + i) || !args_.tensor(8 + i)) continue;
      Dense<T> db(args_.result(5 + i));
      sum_rows(i ? d_hidden_ : d_input_, db.data());
      db.commit();
    }
  }
  // Leaves of 64 rows are added in order, then the leaves.
  void sum_rows(const T* from, T* to) {
    constexpr int64_t leaf = 64, columns = 256;
    parallel_for(width_, columns, [&](int64_t lo, int64_t hi) {
      for (; lo < hi; lo += columns) {
        int64_t n = std::min(columns, hi - lo);
        double all[columns] = {};
        for (int64_t r = 0; r < L::steps.rows; r += leaf) {
          T part[columns] = {};
          for (int64_t k = r; k < std::min(r + leaf, L::steps.rows); ++k)
            for (int64_t j = 0; j < n; ++j) part[j] += from[k * width_ + lo + j];
          for (int64_t j = 0; j < n; ++j) all[j] += double(part[j]);
        }
        for (int64_t j = 0; j < n; ++j) to[lo + j] = T(all[j]);
      }
    });
  }

  Args args_;
  Dense<T> grad_, hx_, w_, out_, gates_, cells_;
  std::optional<Dense<T>> cx_;
  int64_t width_;
  bool apart_;
  Scratch<T> panels_, carried_, d_gates_;
  T *dh_, *dc_, *d_input_, *d_hidden_;
};

template <template <class> class Pass>
void rnn_pass(Args args) {
  TensorView input = args.tensor(Pass<float>::kInput);
  visit_math<floating>(input.dtype(), [&]<class T>() { Pass<T>(args).run(); });
}

}  // namespace

AJ_KERNELS(rnn_kernels) = {
    {"rnn_layer", custom<rnn_pass<Forward>, stored_floating>},
    {"rnn_layer_backward", custom<rnn_pass<Backward>, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::cpu

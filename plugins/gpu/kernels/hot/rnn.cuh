// plugins/gpu/kernels/hot/rnn.cuh: a recurrent layer. The inputs of all steps are one product; then
// one launch goes through the steps, a block for some sequences: they do not wait for each other.
// Backward likewise; the weights' gradients are products over all steps at its end.
#include <adjoin/kit/call.hpp>
#include <vector>

#include "../../cells.cuh"
#include "../../element.cuh"
#include "../../pack.cuh"

namespace adjoin::gpu {
namespace {

constexpr int kSteps = 256;  // of a launch
constexpr int kStage = 512;  // elements of a row that are in shared memory at once
constexpr int kMany = 4;     // sequences of a block, where there are many

// Steps in the order of a launch, and one more: what comes after the last one.
struct Steps {
  int32_t count, batch;
  bool first, last;  // of the launches of a layer
  int32_t size[kSteps + 1];
  int64_t start[kSteps + 1];
};

template <class T, int N>
struct alignas(sizeof(T) * N) Some {
  T at[N];
};

// Rows of x [rows, depth] times w [depth, columns]: calls put(row, column, sum). The whole block
// calls it; where there are fewer columns than threads, these share the depth.
template <int Rows, int N, class X, class T, class Put>
AJ_DEVICE void multiply_rows(const X* x, int rows, int depth, const T* w, int columns,
                             const Put& put) {
  using M = Math<T>;
  AJ_SHARED M staged[Rows][kStage];
  AJ_SHARED M parts[kThreads * Rows * N];
  int me = int(thread_x()), packs = columns / N;
  int across = packs < int(threads_x()) ? packs : int(threads_x());
  int groups = int(threads_x()) / across, group = me / across, lane = me - group * across;
  for (int begin = 0; begin < packs; begin += across) {
    bool works = group < groups && begin + lane < packs;
    int column = (begin + lane) * N;
    M sum[Rows][N];
    for (int r = 0; r < Rows; ++r)
      for (int j = 0; j < N; ++j) sum[r][j] = M(0);
    for (int k0 = 0; k0 < depth; k0 += kStage) {
      int n = depth - k0 < kStage ? depth - k0 : kStage;
      sync_block();
      for (int r = 0; r < Rows; ++r)
        for (int k = me; k < n; k += int(threads_x()))
          staged[r][k] = r < rows ? M(x[int64_t(r) * depth + k0 + k]) : M(0);
      sync_block();
      if (!works) continue;
      const T* from = w + int64_t(k0) * columns + column;
      auto load = [&](int k) {
        return *reinterpret_cast<const Some<T, N>*>(from + int64_t(k) * columns);
      };
      auto add = [&](int k, const Some<T, N>& pack) {
        for (int r = 0; r < Rows; ++r)
          for (int j = 0; j < N; ++j) sum[r][j] += staged[r][k] * M(pack.at[j]);
      };
      int k = group;
      for (; k + 3 * groups < n; k += 4 * groups) {  // four loads under way
        Some<T, N> a = load(k), b = load(k + groups), c = load(k + 2 * groups),
                   d = load(k + 3 * groups);
        add(k, a), add(k + groups, b), add(k + 2 * groups, c), add(k + 3 * groups, d);
      }
      for (; k < n; k += groups) add(k, load(k));
    }
    if (groups > 1) {
      for (int r = 0; r < Rows; ++r)
        for (int j = 0; j < N; ++j) parts[(r * N + j) * int(kThreads) + me] = sum[r][j];
      sync_block();
      for (int g = 1; group == 0 && g < groups; ++g)
        for (int r = 0; r < Rows; ++r)
          for (int j = 0; j < N; ++j)
            sum[r][j] += parts[(r * N + j) * int(kThreads) + me + g * across];
    }
    if (works && group == 0)
      for (int r = 0; r < Rows; ++r)
        for (int j = 0; j < N; ++j)
          if (r < rows) put(r, column + j, sum[r][j]);
  }
  sync_block();
}

template <class T>
struct Forward {
  using M = Math<T>;
  Steps steps;
  Cell kind;
  int32_t hidden;
  const T *x, *w, *bias, *hx, *cx;  // x: the inputs' share; w: [hidden, gates]; some may be NULL
  T *out, *hn, *cn;
  M *gates, *cells, *h, *c, *sums;  // h, c: [batch, hidden]; sums: of a plain cell, likewise
};

template <class T, int Rows, int N>
AJ_GLOBAL void rnn_forward_kernel(AJ_ARGUMENT Forward<T> p) {
  using M = Math<T>;
  int n = p.hidden, width = gates_of(p.kind) * n, me = int(thread_x());
  for (int row0 = int(block_x()) * Rows; row0 < p.steps.batch; row0 += int(blocks_x()) * Rows) {
    int rows = p.steps.batch - row0 < Rows ? p.steps.batch - row0 : Rows;
    int64_t state = int64_t(row0) * n;
    if (p.steps.first)
      for (int64_t i = state + me; i < state + int64_t(rows) * n; i += threads_x()) {
        p.h[i] = M(p.hx[i]);
        if (p.c) p.c[i] = M(p.cx[i]);
      }
    for (int step = 0; step < p.steps.count; ++step) {
      int active = p.steps.size[step] - row0 < rows ? p.steps.size[step] - row0 : rows;
      if (active <= 0) continue;
      int64_t line = p.steps.start[step] + row0;
      multiply_rows<Rows, N>(p.h + state, active, n, p.w, width, [&](int r, int column, M sum) {
        M x = M(p.x[(line + r) * width + column]);
        if (p.bias) sum += M(p.bias[column]);
        bool apart = p.kind == Cell::gru && column >= 2 * n;
        M* to = p.gates ? p.gates + (line + r) * 4 * n + column
                        : p.sums + state + int64_t(r) * n + column;
        *to = apart ? x : x + sum;
        if (apart) to[n] = sum;
      });
      for (int r = 0; r < active; ++r)
        for (int j = me; j < n; j += int(threads_x())) {
          int64_t at = state + int64_t(r) * n + j, element = (line + r) * n + j;
          M* gates = p.gates ? p.gates + (line + r) * 4 * n + j : p.sums + at;
          M h = cell_forward(p.kind, gates, n, p.h[at], p.c ? p.c + at : nullptr);
          p.h[at] = h;
          p.out[element] = T(h);
          if (p.c) p.cells[element] = p.c[at];
        }
      sync_block();
    }
    if (p.steps.last)
      for (int64_t i = state + me; i < state + int64_t(rows) * n; i += threads_x()) {
        p.hn[i] = T(p.h[i]);
        if (p.c) p.cn[i] = T(p.c[i]);
      }
  }
}

template <class T>
struct Backward {
  using M = Math<T>;
  Steps steps;  // the last one first
  Cell kind;
  int32_t hidden;
  const T *grad, *grad_hn, *grad_cn, *hx, *cx, *out, *w;  // w: [gates, hidden]
  const M *gates, *cells;
  T *d_input, *d_hidden, *states;  // of the gates; the state before each step
  M *dh, *dc;                      // [batch, hidden]
  T *dhx, *dcx;                    // may be NULL
};

template <class T, int Rows, int N>
AJ_GLOBAL void rnn_backward_kernel(AJ_ARGUMENT Backward<T> p) {
  using M = Math<T>;
  int n = p.hidden, width = gates_of(p.kind) * n, me = int(thread_x());
  for (int row0 = int(block_x()) * Rows; row0 < p.steps.batch; row0 += int(blocks_x()) * Rows) {
    int rows = p.steps.batch - row0 < Rows ? p.steps.batch - row0 : Rows;
    int64_t state = int64_t(row0) * n;
    if (p.steps.first)
      for (int64_t i = state + me; i < state + int64_t(rows) * n; i += threads_x()) {
        p.dh[i] = M(p.grad_hn[i]);
        if (p.dc) p.dc[i] = M(p.grad_cn[i]);
      }
    sync_block();
    for (int step = 0; step < p.steps.count; ++step) {
      int active = p.steps.size[step] - row0 < rows ? p.steps.size[step] - row0 : rows;
      if (active <= 0) continue;
      int64_t line = p.steps.start[step] + row0;
      for (int r = 0; r < active; ++r) {
        bool begun = row0 + r < p.steps.size[step + 1];
        int64_t before = (p.steps.start[step + 1] + row0 + r) * n;
        for (int j = me; j < n; j += int(threads_x())) {
          int64_t at = state + int64_t(r) * n + j, element = (line + r) * n + j;
          CellGradient<M> g = {};
          g.h = M(p.out[element]);
          g.h_before = begun ? M(p.out[before + j]) : M(p.hx[at]);
          g.dh = p.dh[at] + M(p.grad[element]);
          if (p.dc) {
            g.c = p.cells[element];
            g.c_before = begun ? p.cells[before + j] : M(p.cx[at]);
            g.dc = p.dc[at];
          }
          cell_backward(p.kind, p.gates ? p.gates + (line + r) * 4 * n + j : nullptr, n, &g);
          p.states[element] = T(g.h_before);
          p.dh[at] = g.dh;
          if (p.dc) p.dc[at] = g.dc;
          int64_t to = (line + r) * width + j;
          for (int k = 0; k < 4; ++k)
            if (k < gates_of(p.kind)) p.d_input[to + int64_t(k) * n] = T(g.d[k]);
          if (p.kind == Cell::gru)
            for (int k = 0; k < 3; ++k)
              p.d_hidden[to + int64_t(k) * n] = T(k == 2 ? g.d_apart : g.d[k]);
        }
      }
      sync_block();
      multiply_rows<Rows, N>(
          p.d_hidden + line * width, active, width, p.w, n,
          [&](int r, int column, M sum) { p.dh[state + int64_t(r) * n + column] += sum; });
    }
    if (p.steps.last)
      for (int64_t i = state + me; i < state + int64_t(rows) * n; i += threads_x()) {
        if (p.dhx) p.dhx[i] = T(p.dh[i]);
        if (p.dcx) p.dcx[i] = T(p.dc[i]);
      }
  }
}

// Of a call: steps in the order of the recurrence.
class Sequence {
 public:
  Sequence(Args args, uint32_t sizes)
      : kind(cell_of(args.string(sizes + 1))), reverse_(args.flag(sizes + 2)) {
    for (int64_t size : args.ints(sizes)) {
      start_.push_back(rows);
      size_.push_back(size);
      rows += size;
    }
    if (reverse_) {
      std::reverse(start_.begin(), start_.end());
      std::reverse(size_.begin(), size_.end());
    }
  }

  // launch(steps) for as many steps as an argument holds.
  template <class Launch>
  void each_part(int64_t batch, bool backward, const Launch& launch) const {
    int64_t all = int64_t(size_.size());
    for (int64_t begin = 0; begin < all; begin += kSteps) {
      Steps s = {};
      s.count = int32_t(std::min<int64_t>(kSteps, all - begin));
      s.batch = int32_t(batch);
      s.first = begin == 0, s.last = begin + s.count == all;
      for (int64_t i = 0; i <= s.count && begin + i < all; ++i) {
        size_t at = size_t(backward ? all - 1 - begin - i : begin + i);
        s.size[i] = int32_t(size_[at]), s.start[i] = start_[at];
      }
      launch(s);
    }
  }
  Cell kind;
  int64_t rows = 0;

 private:
  bool reverse_;
  std::vector<int64_t> start_, size_;
};

// Columns of a thread: of one sequence, and of many.
template <class T>
constexpr int kColumns = int(kPack<T>);
template <class T>
constexpr int kManyColumns = kColumns<T> < 4 ? kColumns<T> : 4;

// A block for one sequence, or for more where there are more than processors; packs of the columns
// where these are whole.
template <class T, auto One, auto Many, auto Single, class P>
void launch_rows(const aj_call* call, int64_t batch, int64_t columns, const T* w, const P& p) {
  constexpr int64_t kProcessors = 128;
  bool packs = columns % kPack<T> == 0 && aligned(w);
  if (!packs)
    launch_blocks<Single>(call, batch, kThreads, p);
  else if (batch <= kProcessors)
    launch_blocks<One>(call, batch, kThreads, p);
  else
    launch_blocks<Many>(call, (batch + kMany - 1) / kMany, kThreads, p);
}

// An op on the device, beneath the tape and autocast, into a tensor that is there or a new one.
template <class... V>
Tensor apply(Op& op, const Tensor& to, const V&... values) {
  const aj_value args[] = {value(values)...};
  aj_value ret = to.defined() ? value(to) : aj_value{};
  check(env.op->redispatch(op.get(), 0, args, sizeof...(V), &ret, 1));
  return take<Tensor>(ret);
}
Tensor turned(const Tensor& t) {
  static constinit Op op("t");
  return apply(op, Tensor(), t);
}
Tensor tensor_in(Args args, uint32_t i) { return Tensor::borrow(args.tensor(i).get()); }
Tensor result_of(Args args, uint32_t i) { return Tensor::borrow(args.result(i).get()); }

void rnn_layer(Args args) {
  static constinit Op linear("nn::linear");
  const aj_call* call = args.call();
  Sequence s(args, 7);
  TensorView hx = args.tensor(1), cx = args.tensor(2);
  int64_t batch = hx.size(0), hidden = hx.size(1);
  if (batch * hidden == 0) return;
  Tensor x = apply(linear, Tensor(), tensor_in(args, 0), tensor_in(args, 3), tensor_in(args, 5));
  Tensor w = turned(tensor_in(args, 4));
  visit<stored_floating>(args.tensor(0).dtype(), [&]<class T>() {
    using M = Math<T>;
    Plain<T> given(call, TensorView(x.get())), weight(call, TensorView(w.get())),
        bias(call, args.tensor(6)), h0(call, hx), c0(call, cx), out(call, args.result(0)),
        hn(call, args.result(1)), cn(call, args.result(2));
    Plain<M> gates(call, args.result(3)), cells(call, args.result(4));
    Buffer<M> h(call, batch * hidden), c(call, cx ? batch * hidden : 0), sums(call, batch * hidden);
    bool keeps = gates_of(s.kind) > 1;
    Forward<T> p = {{},           s.kind,        int32_t(hidden),
                    given.data(), weight.data(), bias.data(),
                    h0.data(),    c0.data(),     out.data(),
                    hn.data(),    cn.data(),     keeps ? gates.data() : nullptr,
                    cells.data(), h.data(),      cx ? c.data() : nullptr,
                    sums.data()};
    s.each_part(batch, false, [&](const Steps& steps) {
      p.steps = steps;
      launch_rows<T, &rnn_forward_kernel<T, 1, kColumns<T>>,
                  &rnn_forward_kernel<T, kMany, kManyColumns<T>>, &rnn_forward_kernel<T, 1, 1>>(
          call, batch, gates_of(s.kind) * hidden, p.w, p);
    });
    for (Plain<T>* each : {&out, &hn, &cn}) each->commit();
    for (Plain<M>* each : {&gates, &cells}) each->commit();
  });
}

void rnn_layer_backward(Args args) {
  static constinit Op mm("mm"), sum("sum");
  const aj_call* call = args.call();
  Sequence s(args, 13);
  TensorView hx = args.tensor(4), cx = args.tensor(5);
  DLDataType dtype = args.tensor(3).dtype();
  int64_t batch = hx.size(0), hidden = hx.size(1), width = gates_of(s.kind) * hidden;
  auto needs = [&](uint32_t i) { return args.bit(16, i); };
  bool apart = s.kind == Cell::gru;
  auto made = [&](int64_t columns) {
    const int64_t shape[] = {s.rows, columns};
    return Tensor::steal(new_tensor(call->device, dtype, shape));
  };
  Tensor d_input = made(width), d_hidden = apart ? made(width) : d_input, states = made(hidden);
  visit<stored_floating>(dtype, [&]<class T>() {
    using M = Math<T>;
    if (batch * hidden == 0) return;
    Plain<T> grad(call, args.tensor(0)), hn(call, args.tensor(1)), cn(call, args.tensor(2)),
        h0(call, hx), c0(call, cx), out(call, args.tensor(10)), weight(call, args.tensor(7)),
        dhx(needs(1) ? Plain<T>(call, args.result(1)) : Plain<T>(call, TensorView())),
        dcx(needs(2) && cx ? Plain<T>(call, args.result(2)) : Plain<T>(call, TensorView()));
    Plain<M> gates(call, args.tensor(11)), cells(call, args.tensor(12));
    Buffer<M> dh(call, batch * hidden), dc(call, cx ? batch * hidden : 0);
    auto memory = [](const Tensor& t) { return reach(MutView(t.get()).template data<T>()); };
    Backward<T> p = {{},
                     s.kind,
                     int32_t(hidden),
                     grad.data(),
                     hn.data(),
                     cn.data(),
                     h0.data(),
                     c0.data(),
                     out.data(),
                     weight.data(),
                     gates.data(),
                     cells.data(),
                     memory(d_input),
                     memory(d_hidden),
                     memory(states),
                     dh.data(),
                     cx ? dc.data() : nullptr,
                     dhx.data(),
                     dcx.data()};
    s.each_part(batch, true, [&](const Steps& steps) {
      p.steps = steps;
      launch_rows<T, &rnn_backward_kernel<T, 1, kColumns<T>>,
                  &rnn_backward_kernel<T, kMany, kManyColumns<T>>, &rnn_backward_kernel<T, 1, 1>>(
          call, batch, hidden, p.w, p);
    });
    dhx.commit();
    dcx.commit();
  });
  if (needs(0)) apply(mm, result_of(args, 0), d_input, tensor_in(args, 6));
  if (needs(3)) apply(mm, result_of(args, 3), turned(d_input), tensor_in(args, 3));
  if (needs(4)) apply(mm, result_of(args, 4), turned(d_hidden), states);
  const std::vector<int64_t> steps = {0};
  if (needs(5) && args.tensor(8)) apply(sum, result_of(args, 5), d_input, steps);
  if (needs(6) && args.tensor(9)) apply(sum, result_of(args, 6), d_hidden, steps);
}

}  // namespace

AJ_KERNELS(rnn_kernels) = {
    {"rnn_layer", custom<rnn_layer, stored_floating>},
    {"rnn_layer_backward", custom<rnn_layer_backward, stored_floating>},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

// plugins/ops_sequences/ctc.cpp: connectionist temporal classification (Graves et al., 2006): the
// sum over all alignments of a labelling, step by step over time and for all sequences at once.
#include <adjoin/kit/host.hpp>
#include <adjoin/kit/losses.hpp>
#include <algorithm>
#include <limits>

namespace adjoin::ops {
namespace {

// The logarithm of nothing, finite so that derivatives are numbers.
constexpr double kNever = -1e30;

std::vector<int64_t> on_host(const Tensor& t, std::string_view name, int64_t n) {
  want(is_integral(t) && t.dtype() != boolean, name, " must be integers, they are ", t.dtype());
  want(t.numel() == n, name, " must hold ", n, " numbers, one for each sequence: ", shown(t));
  Tensor here = contiguous(to(t, int64, DLDevice{kDLCPU, 0}));
  return {here.data<int64_t>(), here.data<int64_t>() + n};
}

void want_range(int64_t x, int64_t low, int64_t high, std::string_view name) {
  if (x < low || x > high)
    kit::raise(AJ_OUT_OF_RANGE, name, " must be from ", low, " to ", high, ", one is ", x);
}

struct Labels {
  std::vector<int64_t> steps, counts;
  Tensor padded;  // (N, S)

  Labels(const Tensor& x, const kit::Body& b) {
    int64_t n = x.size(1), classes = x.size(2), blank = b.integer(4);
    const Tensor& targets = b.tensor(1);
    steps = on_host(b.tensor(2), "input_lengths", n);
    counts = on_host(b.tensor(3), "target_lengths", n);
    int64_t longest = 0, all = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      want_range(steps[i], 0, x.size(0), "input_lengths");
      want_range(counts[i], 0, targets.ndim() == 2 ? targets.size(1) : targets.numel(),
                 "target_lengths");
      longest = std::max(longest, counts[i]);
      all = plus(all, counts[i]);
    }
    bool rows = targets.ndim() == 2;
    want(rows || targets.ndim() == 1, "targets must be (N, S) or one after the other, they are ",
         shown(targets));
    want(rows ? targets.size(0) == n && longest <= targets.size(1) : all == targets.numel(),
         "targets of shape ", shown(targets), " do not hold what target_lengths say");
    want(blank >= 0 && blank < classes, "blank must be from 0 to ", classes - 1, ", it is ", blank);
    std::vector<int64_t> given = on_host(targets, "targets", targets.numel()), table;
    int64_t first = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t s = 0; s < longest; ++s) {
        bool inside = s < counts[size_t(i)];
        int64_t label = inside ? given[size_t(rows ? i * targets.size(1) + s : first + s)] : blank;
        want_range(label, 0, classes - 1, "targets");
        table.push_back(label);
      }
      first += counts[size_t(i)];
    }
    padded = indices_from_host(x, table, {n, longest});
  }
};

// -log p(labels) for each of the sequences of x (T, N, C).
Tensor losses_of(const Tensor& x, const Labels& l, int64_t blank) {
  int64_t n = x.size(1), s = l.padded.size(1), states = 2 * s + 1;
  Tensor blanks = filled(x, {n, s}, blank, int64), last = filled(x, {n, 1}, blank, int64);
  Tensor labels = cat({reshape(stack({blanks, l.padded}, 2), {n, 2 * s}), last}, 1);
  Tensor scores = gather(x, 2, expand(unsqueeze(labels, 0), {x.size(0), n, states}));
  // Two labels follow each other without a blank between them if they differ.
  Tensor skips = logical_and(
      ne(labels, blank),
      ne(labels,
         states > 2 ? constant_pad_nd(cut(labels, 1, 0, states - 2), {2, 0}, blank) : labels));
  // Before the first state two that never are, so that a move is a view.
  Tensor wide = constant_pad_nd(zeros_of(x, {n, 1}), {2, states - 1}, kNever);
  auto moved = [&](int64_t by) { return cut(wide, 1, 2 - by, 2 - by + states); };
  Tensor never = number_of(x, kNever);
  Tensor lengths = indices_from_host(x, l.steps, {n, 1});
  const int64_t shortest = l.steps.empty() ? 0 : std::ranges::min(l.steps);
  const std::vector<Tensor> at_step = unbind(scores, 0);
  for (int64_t t = 0; t < x.size(0); ++t) {
    Tensor alpha = moved(0);
    Tensor next =
        logaddexp(logaddexp(alpha, moved(1)), where(skips, moved(2), never)) + at_step[size_t(t)];
    if (t >= shortest) next = where(gt(lengths, t), next, alpha);
    wide = constant_pad_nd(next, {2, 0}, kNever);
  }
  Tensor alpha = moved(0);
  std::vector<int64_t> ends, before;
  for (int64_t count : l.counts) {
    ends.push_back(2 * count);
    before.push_back(std::max<int64_t>(2 * count - 1, 0));
  }
  Tensor end = gather(alpha, 1, indices_from_host(x, ends, {n, 1}));
  Tensor other = where(gt(indices_from_host(x, l.counts, {n, 1}), 0),
                       gather(alpha, 1, indices_from_host(x, before, {n, 1})), never);
  Tensor loss = -squeeze(logaddexp(end, other), {1});
  return where(gt(loss, -kNever / 10), number_of(loss, std::numeric_limits<double>::infinity()),
               loss);
}

}  // namespace

aj_status* ctc_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& given = b.tensor(0);
    std::string_view how = b.text(5);
    check_reduction(how);
    want(given.ndim() == 2 || given.ndim() == 3,
         "log_probs must be (T, N, C) or (T, C), its shape is ", shown(given));
    want(given.is_floating_point(), "log_probs must be floating-point, it is ", given.dtype());
    Tensor x = given.ndim() == 2 ? unsqueeze(given, 1) : given;
    x = to(x, wide(x.dtype()));
    Labels labels(x, b);
    Tensor each = losses_of(x, labels, b.integer(4));
    if (b.flag(6))
      each = where(eq(each, std::numeric_limits<double>::infinity()), number_of(each, 0), each);
    if (how == "mean") {
      std::vector<double> by(labels.counts.begin(), labels.counts.end());
      for (double& n : by) n = std::max(n, 1.0);
      each = each / numbers_from_host(each, by, {int64_t(by.size())}, each.dtype());
    } else if (how == "none" && given.ndim() == 2) {
      each = squeeze(each, {0});
    }
    b.ret(0, to(reduced(each, how), given.dtype()));
  });
}

}  // namespace adjoin::ops

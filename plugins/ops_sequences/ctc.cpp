// plugins/ops_sequences/ctc.cpp: connectionist temporal classification (Graves et al., 2006): the
// sum over all alignments of a labelling, step by step over time and for all sequences at once.
#include <adjoin/kit/grad.hpp>
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
  Tensor states;  // (N, 2 S + 1): a blank, the first label, a blank, ...
  Tensor skips;   // (N, 2 S + 1): may a path come from two states before?

  Labels(const Tensor& x, const kit::Body& b) {
    int64_t n = x.size(1), classes = x.size(2), blank = b.integer(4);
    const Tensor& targets = b.tensor(1);
    steps = on_host(b.tensor(2), "input_lengths", n);
    counts = on_host(b.tensor(3), "target_lengths", n);
    int64_t longest = 1, all = 0;
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
    want(rows ? targets.size(0) == n : all == targets.numel(), "targets of shape ", shown(targets),
         " do not hold what target_lengths say");
    want(blank >= 0 && blank < classes, "blank must be from 0 to ", classes - 1, ", it is ", blank);
    std::vector<int64_t> given = on_host(targets, "targets", targets.numel());
    const int64_t width = 2 * longest + 1;
    std::vector<int64_t> table(size_t(n * width), blank), differs(size_t(n * width), 0);
    int64_t first = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t before = blank;
      for (int64_t s = 0; s < counts[size_t(i)]; ++s) {
        int64_t label = given[size_t(rows ? i * targets.size(1) + s : first + s)];
        want_range(label, 0, classes - 1, "targets");
        const auto at = size_t(i * width + 2 * s + 1);
        table[at] = label;
        // Two labels follow each other without a blank between them if they differ.
        differs[at] = s > 0 && label != before && label != blank;
        before = label;
      }
      first += counts[size_t(i)];
    }
    states = indices_from_host(x, table, {n, width});
    skips = ne(indices_from_host(x, differs, {n, width}), 0);
  }
};

// -log p(labels) for each of the sequences of x (T, N, C).
Tensor losses_of(const Tensor& x, const Labels& l) {
  int64_t n = x.size(1), states = l.states.size(1), width = states + 2;
  Tensor paths =
      ctc_paths(gather(x, 2, expand(unsqueeze(l.states, 0), {x.size(0), n, states})), l.skips);
  // A path ends with the last label or the blank behind it; without labels the former never is.
  std::vector<int64_t> ends(size_t(2 * n));
  for (int64_t i = 0; i < n; ++i) {
    const auto at = size_t(i);
    ends[at] = (l.steps[at] * n + i) * width + 2 + 2 * l.counts[at];
    ends[at + size_t(n)] = ends[at] - 1;
  }
  Tensor last = index_select(reshape(paths, {-1}), 0, indices_from_host(x, ends, {2 * n}));
  last = reshape(last, {2, n});
  Tensor loss = -logaddexp(select(last, 0, 0), select(last, 0, 1));
  return where(gt(loss, -kNever / 10), number_of(loss, std::numeric_limits<double>::infinity()),
               loss);
}

}  // namespace

// Row 0 of the result is before the first step, and before the first state are two that never are.
aj_status* ctc_paths_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &scores = b.tensor(0), &skips = b.tensor(1);
    want(scores.ndim() == 3 && std::ranges::equal(scores.shape().subspan(1), skips.shape()),
         "scores must be (T, N, S) and skips (N, S), they are ", shown(scores), " and ",
         shown(skips));
    const int64_t steps = scores.size(0), states = scores.size(2);
    Tensor out = constant_pad_nd(clamp_min(scores, kNever), {2, 0, 0, 0, 1, 0}, kNever);
    fill_(cut(cut(out, 0, 0, 1), 2, 2, 3), 0);
    auto behind = [&](int64_t by) { return unbind(cut(out, 2, 2 - by, 2 - by + states), 0); };
    const std::vector<Tensor> stays = behind(0), moves = behind(1), jumps = behind(2);
    const Tensor never = number_of(scores, kNever);
    for (size_t t = 0; t < size_t(steps); ++t)
      add_(stays[t + 1], logaddexp(logaddexp(stays[t], moves[t]), where(skips, jumps[t], never)));
    b.ret(0, out);
  });
}

// From the last step to the first: what a state passes on, it got from up to three before it, in
// the shares that these had of its sum.
aj_status* ctc_paths_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor &out = d.tensor(0), &skips = d.tensor(1);
    const int64_t steps = out.size(0) - 1, n = out.size(1), states = out.size(2) - 2;
    if (steps == 0) return d.set(0, zeros_of(out, {0, n, states}));
    const std::vector<Tensor> given = unbind(cut(d.grad(0), 2, 2, 2 + states), 0);
    Tensor before = cut(out, 0, 1, steps);
    auto behind = [&](int64_t by) { return cut(before, 2, 2 - by, 2 - by + states); };
    Tensor shares = softmax(
        stack({behind(0), behind(1), where(skips, behind(2), number_of(out, kNever))}, 0), 0);
    auto passed = [&](int64_t by) {  // of a state to that `by` behind it
      return constant_pad_nd(cut(select(shares, 0, by), 2, by, states), {0, by});
    };
    const std::vector<Tensor> to = unbind(stack({passed(0), passed(1), passed(2)}, 1), 0);
    std::vector<Tensor> sums(static_cast<size_t>(steps));
    sums.back() = given.back();
    for (size_t t = sums.size() - 1; t > 0; --t) {
      Tensor next = constant_pad_nd(sums[t], {0, 2});
      next = as_strided(next, {3, n, states}, {1, states + 2, 1});
      sums[t - 1] = given[t] + sum(to[t - 1] * next, {0});
    }
    d.set(0, stack(sums, 0));
  });
}

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
    Tensor each = losses_of(x, labels);
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

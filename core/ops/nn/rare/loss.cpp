// core/ops/nn/rare/loss.cpp: losses out of pointwise ops, gathers and sums.
#include <adjoin/kit/losses.hpp>
#include <cmath>

namespace adjoin::ops {
namespace {

// Shapes that differ broadcast, as PyTorch does with a warning.
struct Pair {
  explicit Pair(const kit::Body& b) : input(b.tensor(0)), target(b.tensor(1)) {
    if (std::ranges::equal(input.shape(), target.shape())) return;
    Sizes shape = broadcast(input.shape(), target.shape());
    static constexpr std::string_view who = "loss";
    std::string text = kit::text("input is ", shown(input), ", target is ", shown(target),
                                 ": they broadcast to ", shown(shape), "; give both one shape");
    kit::env.core->log(1, kit::str(who), kit::str(text));
    input = expand(input, shape);
    target = expand(target, shape);
  }
  Tensor input, target;
};

void check_classes(const Tensor& input, const Tensor& target, int64_t dim) {
  Sizes shape = sizes_of(input);
  shape.erase(shape.begin() + dim);
  if (std::ranges::equal(target.shape(), shape)) return;
  bool batches =
      input.ndim() > 1 && target.ndim() == input.ndim() - 1 && input.size(0) != target.size(0);
  const bool vectors = input.ndim() == 1 && target.ndim() == 1;
  kit::raise_as(batches || vectors ? "ValueError" : "RuntimeError", AJ_INVALID_ARGUMENT,
                "input is ", shown(input), ", so target must have shape ", shown(shape),
                ", it has ", shown(target));
}

Tensor to_classes(const Tensor& t) {
  want(t.dtype() == int64 || t.dtype() == uint8, "target classes must be int64, they are ",
       t.dtype(), "; use target.long()");
  return t.dtype() == int64 ? t : to(t, int64);
}

// Whether a look at targets on the host finds none that is ignored; elsewhere one waits for no
// look.
bool counts_all(const Tensor& target, int64_t ignore) {
  if (!target.has_memory() || target.device().device_type != kDLCPU || !target.is_contiguous())
    return false;
  const DLTensor& dl = target.get()->dl;
  const void* data = static_cast<const char*>(dl.data) + dl.byte_offset;
  const auto* first = static_cast<const int64_t*>(data);
  return std::find(first, first + target.numel(), ignore) == first + target.numel();
}

// Class dimension last but one kept in place: [C] or [N, C, ...] with target [] or [N, ...].
struct Classes {
  Classes(const Tensor& input, const Tensor& given, const Tensor& weight, int64_t ignored)
      : ignore(ignored) {
    dim = input.ndim() == 1 ? 0 : 1;
    want(input.ndim() >= 1, "input must have a dimension of classes, it is a number");
    classes = input.size(dim);
    check_classes(input, given, dim);
    want(!weight.defined() || (weight.ndim() == 1 && weight.size(0) == classes),
         "weight must have one element for each of the ", classes, " classes");
    if (weight.defined())
      want(weight.dtype() == input.dtype(), "expected scalar type ", input.dtype(), " but found ",
           weight.dtype(), ": weight must have input's dtype; cast it with .to(input.dtype)");
    target = to_classes(given);
    safe = target;
    if (!counts_all(target, ignore)) {
      kept = ne(target, ignore);
      // An ignored class may lie anywhere: class 0 stands in for it and counts nothing.
      safe = where(kept, target, number_of(target, 0));
    }
    if (!weight.defined()) return;
    counts = checked([&] { return index_select(weight, 0, reshape(safe, {-1})); });
    counts = unignored(reshape(counts, target.shape()));
  }
  // Zero where the class is ignored.
  Tensor unignored(const Tensor& each) const {
    return kept.defined() ? where(kept, each, number_of(each, 0)) : each;
  }
  Tensor picked(const Tensor& t) const {
    return checked([&] { return squeeze(gather(t, dim, unsqueeze(safe, dim)), {dim}); });
  }

  // The mean over what counts.
  Tensor average(const Tensor& each) const {
    if (!counts.defined() && !kept.defined()) return mean(each);
    return sum(each) / sum(counts.defined() ? counts : kept);
  }

  int64_t dim, classes, ignore;
  // kept: undefined when none is ignored; counts: when every class counts 1
  Tensor target, kept, safe, counts;

 private:
  template <class F>
  Tensor checked(F&& f) const {
    try {
      return f();
    } catch (const kit::Error& e) {
      if (e.code() != AJ_OUT_OF_RANGE) throw;
      raise_target(target, classes, ignore, "ignore_index");
    }
  }
};

Tensor nll(const Tensor& input, const Classes& c, std::string_view how) {
  check_reduction(how);
  Tensor picked = c.picked(input);
  Tensor each = c.unignored(c.counts.defined() ? picked * c.counts : picked);
  return -(how == "none" ? each : how == "sum" ? sum(each) : c.average(each));
}

}  // namespace

aj_status* nll_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, nll(b.tensor(0), Classes(b.tensor(0), b.tensor(1), b.tensor(2), b.integer(3)),
                 b.text(4)));
  });
}

namespace {

Tensor probability_cross_entropy(const Tensor& input, Tensor target, const Tensor& weight,
                                 std::string_view how, double smoothing) {
  int64_t dim = input.ndim() == 1 ? 0 : 1, classes = input.size(dim);
  want(target.ndim() == input.ndim() || input.ndim() == 0,
       "target classes must be int64, they are ", target.dtype(), " of shape ", shown(target),
       "; use target.long(), or probabilities of input's shape ", shown(input));
  want(std::ranges::equal(input.shape(), target.shape()), "probabilities must have input's shape ",
       shown(input), ", target has ", shown(target));
  if (smoothing > 0) target = target * (1 - smoothing) + smoothing / double(classes);
  Tensor each = log_softmax(input, dim) * target;
  if (weight.defined()) {
    Sizes shape(size_t(input.ndim()), 1);
    shape[dim] = classes;
    each = each * view(weight, shape);
  }
  Tensor losses = -sum(each, {dim});
  check_reduction(how);
  if (how == "none") return losses;
  if (how == "sum") return sum(losses);
  const int64_t rows = input.numel() / std::max<int64_t>(classes, 1);
  return sum(losses) / double(rows);
}

}  // namespace

aj_status* cross_entropy_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &input = b.tensor(0), &target = b.tensor(1), &weight = b.tensor(2);
    std::string_view how = b.text(4);
    double smoothing = b.real(5);
    want(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0 and 1: ", smoothing);
    want(input.ndim() >= 1, "input must have a dimension of classes, it is a number");
    if (target.is_floating_point())
      return b.ret(0, probability_cross_entropy(input, target, weight, how, smoothing));
    if (input.ndim() == 2 && input.numel() > 0 && !weight.defined() && smoothing == 0 &&
        (input.dtype() == float32 || input.dtype() == float64)) {
      check_reduction(how);
      check_classes(input, target, 1);
      return b.ret(0, in_own_name([&] {
                     return std::get<0>(softmax_nll(input, to_classes(target), b.integer(3), how));
                   }));
    }
    Classes c(input, target, weight, b.integer(3));
    Tensor logs = log_softmax(input, c.dim), hard = nll(logs, c, how);
    if (smoothing == 0) return b.ret(0, hard);
    Tensor all = logs;
    if (weight.defined()) {
      Sizes shape(size_t(input.ndim()), 1);
      shape[c.dim] = c.classes;
      all = logs * view(weight, shape);
    }
    Tensor even = c.unignored(-sum(all, {c.dim}));
    if (how == "mean")
      even = c.average(even);
    else if (how == "sum")
      even = sum(even);
    b.ret(0, hard * (1 - smoothing) + even * (smoothing / double(c.classes)));
  });
}

aj_status* mse_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Pair p(b);
    Tensor d = p.input - p.target;
    b.ret(0, reduced(d.requires_grad() ? d * d : mul_(d, d), b.text(2)));
  });
}

aj_status* l1_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Pair p(b);
    b.ret(0, reduced(abs(p.input - p.target), b.text(2)));
  });
}

aj_status* smooth_l1_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Pair p(b);
    double beta = b.real(3);
    want(beta >= 0, "beta must not be negative: ", beta);
    if (beta == 0) return b.ret(0, reduced(abs(p.input - p.target), b.text(2)));
    b.ret(0, reduced(huber_each(p.input, p.target, beta, 1 / beta), b.text(2)));
  });
}

aj_status* huber_loss_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Pair p(b);
    double delta = b.real(3);
    want(delta > 0, "delta must be positive: ", delta);
    b.ret(0, reduced(huber_each(p.input, p.target, delta, 1), b.text(2)));
  });
}

// Logarithms are cut at -100, so a sure wrong answer costs 100, not infinity.
aj_status* bce_each_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    b.ret(0, -(target * clamp(log(x), -100) + (1 - target) * clamp(log1p(-x), -100)));
  });
}

namespace {

void want_one_shape(const Tensor& input, const Tensor& target) {
  if (!std::ranges::equal(input.shape(), target.shape()))
    kit::raise_as("ValueError", AJ_INVALID_ARGUMENT, "input is ", shown(input), ", target is ",
                  shown(target), ": give both one shape");
  want(!is_integral(target), "target must be of floats, it is ", target.dtype(),
       "; use target.to(input.dtype)");
}

}  // namespace

aj_status* binary_cross_entropy_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    want_one_shape(x, target);
    {
      NoGradGuard off;
      // Samples of a batch are not looked at: that would take them one by one.
      bool looks = x.has_memory() && has_values(x) && !(b.call()->flags & AJ_CALL_CAPTURING);
      bool inside = !looks || all(logical_and(ge(x, 0), le(x, 1))).item<bool>();
      want(inside, "input must lie between 0 and 1, it reaches from ",
           inside ? 0 : amin(x).item<double>(), " to ", inside ? 0 : amax(x).item<double>(),
           "; use binary_cross_entropy_with_logits for scores");
    }
    Tensor each = bce_each(x, target);
    if (b.given(2)) each = each * b.tensor(2);
    b.ret(0, reduced(each, b.text(3)));
  });
}

aj_status* binary_cross_entropy_with_logits_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &x = b.tensor(0), &target = b.tensor(1);
    want_one_shape(x, target);
    Tensor each;
    if (b.given(4)) {
      Tensor one = softplus(-x, 1, HUGE_VAL);  // the loss where the target is 1
      each = (1 - target) * x + (1 + (b.tensor(4) - 1) * target) * one;
    } else {
      each = bce_logits_each(x, target);
    }
    if (b.given(2)) each = each * b.tensor(2);
    b.ret(0, reduced(each, b.text(3)));
  });
}

aj_status* kl_div_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Pair p(b);
    std::string_view how = b.text(2);
    Tensor each = b.flag(3) ? exp(p.target) * (p.target - p.input)
                            : xlogy(p.target, p.target) - p.target * p.input;
    if (how != "batchmean") return b.ret(0, reduced(each, how));
    want(p.input.ndim() > 0, "'batchmean' needs a batch: input is a number");
    b.ret(0, sum(each) / double(p.input.size(0)));
  });
}

}  // namespace adjoin::ops

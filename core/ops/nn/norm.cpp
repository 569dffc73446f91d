// core/ops/nn/norm.cpp: normalizations: shapes, layers, and gradients that can be differentiated
// again.
#include <adjoin/kit/make.hpp>
#include <adjoin/kit/order.hpp>

namespace adjoin::ops {
namespace {

void check_channels(const Tensor& t, int64_t channels, std::string_view name) {
  want(!t.defined() || (t.ndim() == 1 && t.size(0) == channels), name, " must have shape [",
       channels, "], it has ", t.defined() ? shown(t) : kit::Shape{});
}

Sizes all_but(int64_t ndim, int64_t kept) {
  Sizes dims;
  for (int64_t d = 0; d < ndim; ++d)
    if (d != kept) dims.push_back(d);
  return dims;
}

// A vector of channels as it stands against t.
Tensor along(const Tensor& v, const Tensor& t, int64_t dim) {
  Sizes shape(size_t(t.ndim()), 1);
  shape[dim] = v.numel();
  return view(v, shape);
}

// Each channel by its weight, and its bias added.
Tensor scaled_and_moved(Tensor t, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) t = t * along(weight, t, 1);
  return bias.defined() ? t + along(bias, t, 1) : t;
}

// Somebody may ask for a derivative: what a tensor of a transform stands for is not known here.
bool recording(std::initializer_list<const Tensor*> tensors) {
  const bool on = kit::env.autograd->grad_mode();
  return std::any_of(tensors.begin(), tensors.end(), [on](const Tensor* t) {
    return t->defined() && ((on && t->requires_grad()) || !t->has_memory());
  });
}

void check_normalized(const Tensor& t, Ints normalized) {
  int64_t k = int64_t(normalized.size());
  want(k > 0 && k <= t.ndim() && std::ranges::equal(t.shape().last(size_t(k)), normalized),
       "normalized_shape ", shown(normalized), " is not how the shape ", shown(t),
       " of input ends");
}

// The part that batch and layer norm share: out of t, its statistics over dims and the gradient of
// the scaled result.
struct Normalized {
  Normalized(const Tensor& t, const Sizes& dims, double eps) : dims(dims) {
    Tensor centred = t - mean(t, dims, true);
    rstd = rsqrt(mean(centred * centred, dims, true) + eps);
    hat = centred * rstd;
  }
  Tensor gradient(const Tensor& g) const {
    return rstd * (g - mean(g, dims, true) - hat * mean(g * hat, dims, true));
  }
  Sizes dims;
  Tensor rstd, hat;
};

Tensor in(const Tensor& t, DLDataType dtype) { return t.dtype() == dtype ? t : to(t, dtype); }

// How many values stand along dimensions.
int64_t seen(const Tensor& t, const Sizes& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n = times(n, t.size(d));
  return n;
}

}  // namespace

aj_status* batch_norm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    want(t.ndim() >= 2, "input must have batch and channels, its shape is ", shown(t));
    int64_t n = t.size(1);
    check_channels(c.tensor(1), n, "weight");
    check_channels(c.tensor(2), n, "bias");
    check_channels(c.tensor(3), n, "running_mean");
    check_channels(c.tensor(4), n, "running_var");
    bool training = c.flag(5);
    want(training || (c.given(3) && c.given(4)),
         "running_mean and running_var are needed when not training");
    Sizes stats{training ? n : 0};
    c.out_in_order(0, t.dtype(), t.shape(), t);
    c.out(1, statistics_dtype(t.dtype()), stats);
    c.out(2, statistics_dtype(t.dtype()), stats);
  });
}

namespace {

void check_batch_norm_backward(const kit::Values& c) {
  const Tensor& t = c.tensor(1);
  want(t.ndim() >= 2, "input must have batch and channels, its shape is ", shown(t));
  want_shape(c.tensor(0), "grad", t.shape());
  want_dtype(c.tensor(0), "grad", t.dtype());
  constexpr std::string_view kNames[] = {"weight", "running_mean", "running_var", "mean", "rstd"};
  bool training = c.flag(7);
  for (uint32_t i = 2; i < (training ? 7 : 5); ++i)
    check_channels(c.tensor(i), t.size(1), kNames[i - 2]);
  want(training || (c.given(3) && c.given(4)),
       "running_mean and running_var are needed when not training");
  three_needs(c.bools(9));
}

}  // namespace

aj_status* batch_norm_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(1);
    check_batch_norm_backward(c);
    Bools needs = c.bools(9);
    DLDataType dtype = c.given(2) ? c.tensor(2).dtype() : t.dtype();
    Sizes none{0}, channels{t.size(1)};
    needs[0] ? c.out_in_order(0, t.dtype(), t.shape(), t) : c.out(0, t.dtype(), none);
    c.out(1, dtype, needs[1] ? channels : none);
    c.out(2, dtype, needs[2] ? channels : none);
  });
}

// Runs when this derivative is itself recorded; the saved mean and rstd depend on input, so they
// are made again.
aj_status* batch_norm_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(1), &weight = b.tensor(2);
    check_batch_norm_backward(b);
    want(b.flag(7), "only statistics of the batch have this derivative");
    Bools needs = b.bools(9);
    DLDataType dtype = statistics_dtype(t.dtype());
    Tensor g = in(b.tensor(0), dtype);
    Normalized n(in(t, dtype), all_but(t.ndim(), 1), b.real(8));
    Tensor scaled = weight.defined() ? g * along(weight, t, 1) : g, nothing = zeros_of(t, {0});
    b.ret(0, needs[0] ? in(n.gradient(scaled), t.dtype()) : nothing);
    DLDataType of_weight = weight.defined() ? weight.dtype() : t.dtype();
    b.ret(1, in(needs[1] ? sum(g * n.hat, n.dims) : nothing, of_weight));
    b.ret(2, in(needs[2] ? sum(g, n.dims) : nothing, of_weight));
  });
}

namespace {

// With the statistics constant it is one product and one sum, of any derivative.
Tensor with_constants(const Tensor& t, const Tensor& mean, const Tensor& var, const Tensor& weight,
                      const Tensor& bias, double eps) {
  Tensor scale = rsqrt(in(var, statistics_dtype(t.dtype())) + eps);
  if (weight.defined()) scale = scale * weight;
  Tensor shift = -(mean * scale);
  if (bias.defined()) shift = shift + bias;
  return in(t * along(scale, t, 1) + along(shift, t, 1), t.dtype());
}

// The primitive may write its statistics, so a call counts as a change of them; when not training
// it is none.
Tensor unwatched(const Tensor& t) {
  if (!t.defined()) return t;
  aj_tensor* data = nullptr;
  kit::check(kit::env.autograd->data(t.get(), &data));
  return Tensor::steal(data);
}

}  // namespace

aj_status* batch_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor t = brought_together(b.tensor(0));
    const Tensor &mean = b.tensor(1), &var = b.tensor(2), &weight = b.tensor(3),
                 &bias = b.tensor(4);
    bool training = b.flag(5);
    if (t.ndim() == 1 && !t.numel()) return b.ret(0, clone(t));  // as PyTorch
    want(t.ndim() >= 2, "input must have batch and channels, its shape is ", shown(t));
    if (training && seen(t, all_but(t.ndim(), 1)) == 1)
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                    "training wants more than one value per channel: input is ", shown(t));
    if (!training && mean.defined() && var.defined() && recording({&t, &weight, &bias})) {
      check_channels(mean, t.size(1), "running_mean");
      check_channels(var, t.size(1), "running_var");
      return b.ret(0, with_constants(t, mean, var, weight, bias, b.real(7)));
    }
    Tensor m = training ? mean : unwatched(mean), v = training ? var : unwatched(var);
    const double momentum = t.numel() ? b.real(6) : 0;  // nothing was seen, nothing is learned
    b.ret(0, in_own_name([&] {
            return std::get<0>(
                batch_norm_stats(t, weight, bias, m, v, training, momentum, b.real(7)));
          }));
  });
}

aj_status* layer_norm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Ints normalized = c.ints(1);
    check_normalized(t, normalized);
    for (uint32_t i = 2; i < 4; ++i)
      want(!c.given(i) || std::ranges::equal(c.tensor(i).shape(), normalized),
           i == 2 ? "weight" : "bias", " must have shape ", shown(normalized), ", it has ",
           c.given(i) ? shown(c.tensor(i)) : kit::Shape{});
    Sizes stats = sizes_of(t);
    std::fill(stats.end() - int64_t(normalized.size()), stats.end(), 1);
    c.out(0, t.dtype(), t.shape());
    c.out(1, statistics_dtype(t.dtype()), stats);
    c.out(2, statistics_dtype(t.dtype()), stats);
  });
}

namespace {

void check_layer_norm_backward(const kit::Values& c) {
  const Tensor& t = c.tensor(1);
  check_normalized(t, c.ints(2));
  want_shape(c.tensor(0), "grad", t.shape());
  want_dtype(c.tensor(0), "grad", t.dtype());
  Sizes stats = sizes_of(t);
  std::fill(stats.end() - int64_t(c.ints(2).size()), stats.end(), 1);
  want_shape(c.tensor(3), "mean", stats);
  want_shape(c.tensor(4), "rstd", stats);
  for (uint32_t i = 5; i < 7; ++i)
    if (c.given(i)) want_shape(c.tensor(i), i == 5 ? "weight" : "bias", c.ints(2));
  three_needs(c.bools(7));
}

}  // namespace

aj_status* layer_norm_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(1);
    check_layer_norm_backward(c);
    Bools needs = c.bools(7);
    DLDataType dtype = c.given(5) ? c.tensor(5).dtype() : t.dtype();
    auto where = [](bool needed, std::span<const int64_t> shape) {
      return needed ? Sizes(shape) : Sizes{0};
    };
    c.out(0, t.dtype(), where(needs[0], t.shape()));
    c.out(1, dtype, where(needs[1], c.ints(2)));
    c.out(2, dtype, where(needs[2], c.ints(2)));
  });
}

// As that of batch norm; eps is not an argument here, so it is worked out of the saved rstd as a
// constant.
aj_status* layer_norm_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(1), &weight = b.tensor(5);
    check_layer_norm_backward(b);
    Bools needs = b.bools(7);
    DLDataType dtype = statistics_dtype(t.dtype());
    int64_t k = int64_t(b.ints(2).size());
    Sizes last, first;
    for (int64_t d = 0; d < t.ndim(); ++d) (d < t.ndim() - k ? first : last).push_back(d);
    Tensor g = in(b.tensor(0), dtype), x = in(t, dtype), eps;
    {
      NoGradGuard off;
      Tensor centred = x.detach() - b.tensor(3), rstd = b.tensor(4).detach();
      eps = reciprocal(rstd * rstd) - mean(centred * centred, last, true);
    }
    Tensor centred = x - mean(x, last, true),
           rstd = rsqrt(mean(centred * centred, last, true) + eps), hat = centred * rstd;
    Tensor scaled = weight.defined() ? g * weight : g, nothing = zeros_of(t, {0});
    if (needs[0]) {
      Tensor made =
          rstd * (scaled - mean(scaled, last, true) - hat * mean(scaled * hat, last, true));
      b.ret(0, in(made, t.dtype()));
    } else {
      b.ret(0, nothing);
    }
    auto total = [&](const Tensor& all) { return first.empty() ? all : sum(all, first); };
    DLDataType of_weight = weight.defined() ? weight.dtype() : t.dtype();
    b.ret(1, in(needs[1] ? total(g * hat) : nothing, of_weight));
    b.ret(2, in(needs[2] ? total(g) : nothing, of_weight));
  });
}

aj_status* layer_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    b.ret(0, in_own_name([&] {
            return std::get<0>(
                layer_norm_stats(b.tensor(0), b.ints(1), b.tensor(2), b.tensor(3), b.real(4)));
          }));
  });
}

namespace {

void check_groups(const Tensor& t, int64_t groups) {
  want(!t.is_complex(), "real numbers are wanted, input is ", t.dtype());
  want(t.ndim() >= 2, "input must have batch and channels, its shape is ", shown(t));
  want(groups > 0 && t.size(1) % groups == 0, "the ", t.size(1),
       " channels of input must be divisible by num_groups ", groups);
  for (int64_t d = 1; d < t.ndim(); ++d)
    want(t.size(d) > 0, "input of shape ", shown(t),
         " has no elements to take a mean of; only the batch may be empty");
}

// Rows of one group each.
Tensor by_groups(const Tensor& t, int64_t groups) {
  int64_t each = t.numel() / std::max<int64_t>(times(t.size(0), groups), 1);
  return reshape(t, {t.size(0), groups, each});
}

Tensor group_normalized(const Tensor& t, int64_t groups, const Tensor& weight, const Tensor& bias,
                        double eps) {
  return std::get<0>(group_norm_stats(t, groups, weight, bias, eps));
}

}  // namespace

aj_status* group_norm_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    check_groups(t, c.integer(1));
    check_channels(c.tensor(2), t.size(1), "weight");
    check_channels(c.tensor(3), t.size(1), "bias");
    Sizes stats{t.size(0), c.integer(1)};
    c.out_in_order(0, t.dtype(), t.shape(), t);
    c.out(1, statistics_dtype(t.dtype()), stats);
    c.out(2, statistics_dtype(t.dtype()), stats);
  });
}

aj_status* group_norm_stats_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &weight = b.tensor(2), &bias = b.tensor(3);
    check_groups(t, b.integer(1));
    DLDataType dtype = statistics_dtype(t.dtype());
    Tensor rows = by_groups(in(t, dtype), b.integer(1)), middle = mean(rows, {2}, true);
    Tensor centred = rows - middle;
    Tensor rstd = rsqrt(mean(centred * centred, {2}, true) + b.real(4));
    Tensor out = reshape(centred * rstd, t.shape());
    out = scaled_and_moved(out, weight, bias);
    b.ret(0, in_order_of(t, in(out, t.dtype())));
    b.ret(1, squeeze(middle, 2));
    b.ret(2, squeeze(rstd, 2));
  });
}

namespace {

void check_group_norm_backward(const kit::Values& c) {
  const Tensor& t = c.tensor(1);
  check_groups(t, c.integer(2));
  want_shape(c.tensor(0), "grad", t.shape());
  want_dtype(c.tensor(0), "grad", t.dtype());
  Sizes stats{t.size(0), c.integer(2)};
  want_shape(c.tensor(3), "mean", stats);
  want_shape(c.tensor(4), "rstd", stats);
  for (uint32_t i = 5; i < 7; ++i)
    check_channels(c.tensor(i), t.size(1), i == 5 ? "weight" : "bias");
  three_needs(c.bools(7));
}

}  // namespace

aj_status* group_norm_backward_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(1);
    check_group_norm_backward(c);
    Bools needs = c.bools(7);
    DLDataType dtype = c.given(5) ? c.tensor(5).dtype() : t.dtype();
    Sizes none{0}, channels{t.size(1)};
    c.out(0, t.dtype(), needs[0] ? Sizes(t.shape()) : none);
    c.out(1, dtype, needs[1] ? channels : none);
    c.out(2, dtype, needs[2] ? channels : none);
  });
}

// As that of layer norm.
aj_status* group_norm_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(1), &weight = b.tensor(5);
    check_group_norm_backward(b);
    Bools needs = b.bools(7);
    DLDataType dtype = statistics_dtype(t.dtype());
    int64_t groups = b.integer(2);
    Tensor g = in(b.tensor(0), dtype), rows = by_groups(in(t, dtype), groups), eps;
    {
      NoGradGuard off;
      Tensor centred = rows.detach() - unsqueeze(b.tensor(3), 2);
      Tensor rstd = unsqueeze(b.tensor(4).detach(), 2);
      eps = reciprocal(rstd * rstd) - mean(centred * centred, {2}, true);
    }
    Tensor centred = rows - mean(rows, {2}, true),
           rstd = rsqrt(mean(centred * centred, {2}, true) + eps), hat = centred * rstd;
    Tensor scaled = by_groups(weight.defined() ? g * along(weight, t, 1) : g, groups);
    Tensor made = rstd * (scaled - mean(scaled, {2}, true) - hat * mean(scaled * hat, {2}, true));
    Sizes dims = all_but(t.ndim(), 1);
    Tensor nothing = zeros_of(t, {0});
    DLDataType kept = weight.defined() ? weight.dtype() : t.dtype();
    b.ret(0, needs[0] ? in(reshape(made, t.shape()), t.dtype()) : nothing);
    b.ret(1, in(needs[1] ? sum(g * reshape(hat, t.shape()), dims) : nothing, kept));
    b.ret(2, in(needs[2] ? sum(g, dims) : nothing, kept));
  });
}

aj_status* group_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    check_groups(b.tensor(0), b.integer(1));
    b.ret(0, in_own_name([&] {
            return group_normalized(brought_together(b.tensor(0)), b.integer(1), b.tensor(2),
                                    b.tensor(3), b.real(4));
          }));
  });
}

aj_status* instance_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &mean_ = b.tensor(1), &var_ = b.tensor(2);
    double momentum = b.real(6), eps = b.real(7);
    want(t.ndim() >= 3, "input must have batch, channels and places, its shape is ", shown(t));
    if (!b.flag(5))
      return b.ret(0, batch_norm(t, mean_, var_, b.tensor(3), b.tensor(4), false, momentum, eps));
    Sizes places;
    for (int64_t d = 2; d < t.ndim(); ++d) places.push_back(d);
    if (seen(t, places) == 1)
      kit::raise_as("ValueError", AJ_INVALID_ARGUMENT,
                    "more than one value per channel is wanted: input is ", shown(t));
    if (!t.numel()) return b.ret(0, scaled_and_moved(clone(t), b.tensor(3), b.tensor(4)));
    if (mean_.defined() && var_.defined()) {
      NoGradGuard off;
      // They are no results: neither a tape nor a tangent follows them.
      auto still = [](const Tensor& each) {
        return adjoin::call("view.dtype", each, each.dtype());
      };
      Tensor x = still(t), m = still(mean_), v = still(var_);
      copy_(m, m * (1 - momentum) + mean(mean(x, places), {0}) * momentum);
      copy_(v, v * (1 - momentum) + mean(var(x, places), {0}) * momentum);
    }
    b.ret(0, in_own_name(
                 [&] { return group_normalized(t, t.size(1), b.tensor(3), b.tensor(4), eps); }));
  });
}

aj_status* rms_norm_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &weight = b.tensor(2);
    check_normalized(t, b.ints(1));
    DLDataType dtype = statistics_dtype(t.dtype());
    Sizes dims;
    for (int64_t d = t.ndim() - int64_t(b.ints(1).size()); d < t.ndim(); ++d) dims.push_back(d);
    double eps = b.given(3)                                ? b.real(3)
                 : dtype == float64 || dtype == complex128 ? 2.220446049250313e-16
                                                           : 1.1920928955078125e-07;
    Tensor x = in(t, dtype), made = in(x * rsqrt(mean(x * x, dims, true) + eps), t.dtype());
    b.ret(0, weight.defined() ? made * weight : made);
  });
}

aj_status* normalize_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    Tensor length = clamp(vector_norm(t, b.scalar(1), {b.integer(2)}, true), b.real(3));
    b.ret(0, t / expand(length, t.shape()));
  });
}

aj_status* cosine_similarity_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    Sizes shape = broadcast(b.tensor(0).shape(), b.tensor(1).shape());
    Tensor x = expand(b.tensor(0), shape), y = expand(b.tensor(1), shape);
    int64_t d = wrap_dim(b.integer(2), int64_t(shape.size()));
    double eps = b.real(3);
    want(eps >= 0, "eps must not be negative, it is ", eps);
    auto unit = [&](const Tensor& t) {  // clamped without losing the derivative of the length
      Tensor length = vector_norm(t, 2, {d}, true);
      return t / clamp(length, eps);
    };
    b.ret(0, sum(unit(x) * unit(y), {d}));
  });
}

}  // namespace adjoin::ops

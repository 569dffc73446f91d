// plugins/ops_sparse/pointwise.cpp: element-wise ops: of one tensor where 0 stays 0, sums,
// products, quotients.
#include "register.hpp"
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

// What an op makes of the values alone, with its other arguments as they are.
Tensor on_values(const aj_op* op, const aj_value* args, uint32_t nargs, const Tensor& values) {
  std::vector<aj_value> mine(args, args + nargs);
  mine[0] = kit::value(values);
  return kit::run(op, mine.data(), nargs);
}

// An op that maps 0 to 0. Sums of what stands at one place come first: it need not be linear.
aj_status* unary(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    Parts p = coalesced(any_parts_of(v.tensor(0), "input"));
    return wrapped(with_values(p, on_values(call->op, call->args, call->nargs, p.values)));
  });
}

// floor_divide: 0 stays 0 whatever number it is divided by.
aj_status* by_number(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    Operand n = v.operand(1);
    want(v.operand(0).is_tensor() && is_sparse(v.operand(0).tensor()) &&
             (!n.is_tensor() || (n.tensor().has_memory() && n.tensor().ndim() == 0)),
         "a sparse tensor is divided by numbers; call to_dense() first");
    Parts p = coalesced(any_parts_of(v.tensor(0), "input"));
    return wrapped(with_values(p, on_values(call->op, call->args, call->nargs, p.values)));
  });
}

// For powers: x ** n is 0 at 0 where n is above 0.
aj_status* power(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    want(is_sparse(v.operand(0).tensor()), "exponents are not sparse; call to_dense() first");
    Operand n = v.operand(1);
    want(!n.is_tensor() && !n.number().is_complex() && n.number().to_double() > 0,
         "a sparse tensor is raised to numbers above 0; call to_dense() first");
    Parts p = coalesced(parts_of(v.tensor(0), "input"));
    return wrapped(with_values(p, on_values(call->op, call->args, call->nargs, p.values)));
  });
}

Tensor expanded(const Tensor& dense, const Sizes& size) {
  return std::ranges::equal(dense.shape(), size) ? dense : expand(dense, size);
}

// The elements of a strided tensor at p's places, as p's values lie.
Tensor at_places(const Tensor& dense, const Parts& p) {
  return reshape(values_at(expanded(dense, p.size), places(p)), p.values.shape());
}

// s * d has the places of s.
Parts times(const Parts& s, const Operand& d) {
  if (!d.is_tensor() || d.tensor().ndim() == 0) return with_values(s, s.values * d);
  const Parts whole = repeated(s, broadcast(s.size, d.tensor().shape()));
  return with_values(whole, whole.values * at_places(d.tensor(), whole));
}

// COO: places of one kind.
void want_alike(const Parts& a, const Parts& b) {
  want(a.sparse_dim() == b.sparse_dim(), "sparse tensors of ", a.sparse_dim(), " and ",
       b.sparse_dim(), " sparse dimensions are given; they must be equal");
}

// A sparse tensor without dimensions is one number.
Tensor number_of(const Parts& p) {
  Tensor values = coalesced(p).values;
  return values.numel() ? reshape(values, {}) : zeros({}, values.dtype(), values.device());
}

Parts times(const Parts& a, const Parts& b) {
  if (a.size != b.size) {
    if (b.size.empty()) return with_values(a, a.values * number_of(b));
    if (a.size.empty()) return with_values(b, number_of(a) * b.values);
    const Sizes size = broadcast(a.size, b.size);
    return times(repeated(a, size), repeated(b, size));
  }
  if (!a.is_coo() && same_places(a, b)) return with_values(a, a.values * b.values);
  const Parts x = coalesced(coo_of(a)), y = coalesced(coo_of(b));
  want_alike(x, y);
  Tensor flat = flat_places(x.indices, x.size), other = flat_places(y.indices, y.size);
  Tensor common = reshape(nonzero(isin(flat, other, true)), {-1});
  Parts made = x;
  made.indices = index_select(x.indices, 1, common);
  made.values = index_select(x.values, 0, common) * values_at(y, made.indices);
  return laid_like(made, a);
}

aj_status* div_kernel(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    Operand a = v.operand(0), b = v.operand(1);
    const Parts* x = a.is_tensor() ? maybe_parts(a.tensor()) : nullptr;
    want(
        x && !(b.is_tensor() && maybe_parts(b.tensor())),
        "what is divided by must not be sparse, its zeros have no quotient; call to_dense() first");
    Parts p = v.given(2) ? coalesced(*x) : *x;
    if (b.is_tensor() && b.tensor().ndim()) {
      want(broadcast(p.size, b.tensor().shape()) == p.size, "sizes ", shown(p.size), " and ",
           shown(b.tensor()), " are given; the second must fit the first");
      Tensor by = at_places(b.tensor(), p);
      return wrapped(with_values(p, v.given(2) ? div(p.values, by, v.text(2)) : p.values / by));
    }
    return wrapped(with_values(p, on_values(call->op, call->args, call->nargs, p.values)));
  });
}

}  // namespace

Tensor scaled(const Tensor& given, const Scalar& alpha, DLDataType dtype) {
  Tensor t = to(given, dtype);
  if (alpha == Scalar(1)) return t;
  want(t.is_complex() || !alpha.is_complex(), "alpha is complex, the result has ", dtype);
  want(t.is_complex() || t.is_floating_point() || alpha.is_integer(),
       "alpha is a fraction: ", alpha.to_double(), ", the result has ", dtype);
  return to(mul(t, alpha), dtype);
}

namespace {

DLDataType common(DLDataType a, DLDataType b) {
  DLDataType dtype;
  kit::check(kit::core().dtype_promote(a, b, &dtype));
  return dtype;
}

Parts csr_plus(const Parts& a, const Parts& b, const Scalar& alpha) {
  Parts made = a;
  const DLDataType dtype = common(a.dtype(), b.dtype());
  Tensor more = scaled(b.values, alpha, dtype);
  std::tie(made.indices, made.plain, made.values) =
      csr_add(a.indices, a.plain, contiguous(to(a.values, dtype)), to(b.indices, a.indices.dtype()),
              to(b.plain, a.plain.dtype()), contiguous(more));
  return made;
}

// Without order: elements of both, one after the other.
Parts plus(const Parts& a, const Parts& b, const Scalar& alpha) {
  want(a.size == b.size, "sparse tensors of sizes ", shown(a.size), " and ", shown(b.size),
       " are given; they must be equal");
  const DLDataType dtype = common(a.dtype(), b.dtype());
  if (!a.is_coo() || !b.is_coo()) {
    if (a.layout == b.layout && same_places(a, b))
      return with_values(a, a.values + scaled(b.values, alpha, dtype));
    if (a.layout == Layout::sparse_csr && b.layout == a.layout && a.dense_dim() == 0 && !a.batch())
      return csr_plus(a, b, alpha);
    return laid_like(coalesced(plus(coo_of(a), coo_of(b), alpha)), a);
  }
  Tensor more = scaled(b.values, alpha, dtype);
  if (a.indices.get() == b.indices.get()) return with_values(a, a.values + more);
  want_alike(a, b);
  Parts made = a;
  made.indices = cat({a.indices, b.indices}, 1);
  made.values = cat({a.values, more}, 0);
  made.coalesced = false;
  // What was in order stays so; else sums of many steps would only grow.
  return a.coalesced && b.coalesced ? coalesced(made) : made;
}

void want_castable(DLDataType from, DLDataType into) {
  want(kit::env.core->dtype_can_cast(from, into), "result type ", from,
       " can't be cast to the desired output type ", into);
}

// A strided tensor and a sparse one: `into` is written where it is given.
Tensor plus(const Tensor& dense, const Parts& given, const Scalar& alpha, bool in_place) {
  const Parts p = coo_of(given);
  Sizes both = broadcast(dense.shape(), p.size);
  want(std::ranges::equal(both, p.size) && std::ranges::equal(both, dense.shape()), "shapes ",
       shown(dense), " and ", shown(p.size),
       " are given; a sparse tensor is added to one of its shape");
  const DLDataType both_of = common(dense.dtype(), p.dtype()),
                   dtype = in_place ? dense.dtype() : both_of;
  want_castable(both_of, dtype);
  Tensor values = to(scaled(p.values, alpha, both_of), dtype);
  Tensor sum =
      in_place ? dense : contiguous(dense.dtype() == dtype ? clone(dense) : to(dense, dtype));
  if (p.count() == 0) return sum;
  if (!sum.is_contiguous())
    return copy_(sum, plus(contiguous(sum), with_values(p, values), 1, true));
  const int64_t places = product(p.sparse_size());
  Tensor rows = reshape(sum, {places, places ? sum.numel() / places : 0});
  index_add_(rows, 0, flat_places(p.indices, p.size), reshape(values, {p.count(), rows.size(1)}));
  return sum;
}

// A strided tensor becomes a product that is sparse.
Tensor become(const Tensor& dense, const Parts& made) {
  want(std::ranges::equal(made.size, dense.shape()), "the product has shape ", shown(made.size),
       ", which does not fit into ", shown(dense));
  want_castable(common(made.dtype(), dense.dtype()), dense.dtype());
  zero_(dense);
  return plus(dense, made, 1, true);
}

aj_status* mul_kernel(void*, aj_call* call) {
  return kernel(call, [&](const kit::Values& v) {
    Operand a = v.operand(0), b = v.operand(1);
    const Parts *x = a.is_tensor() ? maybe_parts(a.tensor()) : nullptr,
                *y = b.is_tensor() ? maybe_parts(b.tensor()) : nullptr;
    if (!x && a.is_tensor() && call->rets[0].tag == AJ_TENSOR &&
        call->rets[0].v.tensor == a.tensor().get())
      return become(a.tensor(), coalesced(coo_of(times(*y, a))));
    return wrapped(x && y ? times(*x, *y) : x ? times(*x, b) : times(*y, a));
  });
}

aj_status* sum_of(aj_call* call, double sign) {
  return kernel(call, [&](const kit::Values& v) {
    Operand a = v.operand(0), b = v.operand(1);
    Scalar alpha = v.scalar(2);
    if (sign < 0) alpha = -alpha;
    const Parts *x = a.is_tensor() ? maybe_parts(a.tensor()) : nullptr,
                *y = b.is_tensor() ? maybe_parts(b.tensor()) : nullptr;
    want((a.is_tensor() && b.is_tensor()),
         "a number is not added to a sparse tensor, whose zeros would go; "
         "call to_dense() first");
    want(sign > 0 || a.tensor().dtype() != boolean || b.tensor().dtype() != boolean,
         "truth values have no difference; use logical_xor() of dense ones");
    if (x && y) return wrapped(plus(*x, *y, alpha));
    if (y) {
      const bool in_place =
          call->rets[0].tag == AJ_TENSOR && call->rets[0].v.tensor == a.tensor().get();
      return plus(a.tensor(), *y, alpha, in_place);
    }
    // s + alpha d: the strided one is scaled.
    return plus(scaled(b.tensor(), alpha, common(x->dtype(), b.tensor().dtype())), *x, 1, false);
  });
}
aj_status* add_kernel(void*, aj_call* call) { return sum_of(call, 1); }
aj_status* sub_kernel(void*, aj_call* call) { return sum_of(call, -1); }

}  // namespace

// With 0 they give 0, and their other arguments are numbers. Each is a kernel, and where it has a
// derivative one of its own.
constexpr const char* kZeroKeepers[] = {
    "abs",   "relu",  "sgn",   "sign",   "sin",     "tan",     "asin",       "atan",  "sinh",
    "tanh",  "asinh", "atanh", "sqrt",   "expm1",   "log1p",   "erf",        "floor", "ceil",
    "round", "trunc", "frac",  "square", "rad2deg", "deg2rad", "nan_to_num", "conj",  "erfinv"};
constexpr const char* kQuestions[] = {"isnan", "isinf", "signbit", "isposinf", "isneginf"};

Table pointwise_kernels[] = {{"mul", at(mul_kernel)},
                             {"div", at(div_kernel)},
                             {"add", at(add_kernel)},
                             {"sub", at(sub_kernel)},
                             {"pow", at(power)},
                             {"floor_divide", at(by_number)},
                             {nullptr, {}}};

namespace {

bool recording() { return kit::autograd().grad_mode(); }

// The gradient of an op on values: the op again, recorded, and back through it. What it gives can
// be differentiated.
Tensor through(const aj_op* op, const aj_value* args, uint32_t nargs, const Tensor& values,
               const Tensor& g) {
  Tensor from = recording() && values.requires_grad() ? values : values.detach().requires_grad_();
  const bool more = recording();
  Tensor made;
  const int32_t before = kit::autograd().set_grad_mode(1);
  try {
    made = on_values(op, args, nargs, from);
  } catch (...) {
    kit::autograd().set_grad_mode(before);
    throw;
  }
  kit::autograd().set_grad_mode(before);
  aj_tensor *root = made.get(), *grad = g.get(), *input = from.get(), *out = nullptr;
  aj_backward run{};
  run.struct_size = sizeof run;
  run.flags = AJ_BACKWARD_ZERO_UNUSED | (more ? AJ_BACKWARD_CREATE_GRAPH : 0);
  run.roots = &root;
  run.grads = &grad;
  run.inputs = &input;
  run.out = &out;
  run.nroots = run.ninputs = 1;
  kit::check(kit::autograd().backward(&run));
  return Tensor::steal(out);
}

struct Known {  // what a derivative of an op of one tensor needs to run it again
  const aj_op* op;
  uint32_t nargs;
};

aj_status* unary_vjp(void* self, aj_grad_call* call) {
  return kit::derive(call, [&](kit::Grad& d) {
    if (!d.grad(0).defined() || !d.need(0)) return;
    const auto* known = static_cast<const Known*>(self);
    const Tensor& input = d.tensor(0);
    Tensor s = any_parts_of(input, "input").is_coo() ? coalesce(input) : input;
    const Parts& p = any_parts_of(s, "input");
    Tensor made =
        through(known->op, call->saved, known->nargs, _values(s), values_like(d.grad(0), p));
    d.set(0, with_places(p, made));
  });
}

}  // namespace

void define_kernels(kit::Registrar& plugin) {
  for (const kit::Kernel* table :
       {pointwise_kernels, shape_kernels, slice_kernels, product_kernels, reduce_kernels})
    plugin.kernels("sparse", table);
  auto one = [&](const char* name) {
    const kit::Kernel table[] = {{name, at(unary)}, {nullptr, {}}};
    plugin.kernels("sparse", table);
  };
  one("neg");
  for (const char* name : kZeroKeepers) one(name);
  for (const char* name : kQuestions) one(name);
}

namespace {

void define_unary_vjp(const aj_plugin_env* env, const char* name) {
  const aj_op* op = kit::dispatch().find_op(kit::str(name));
  aj_op_info info{};
  info.struct_size = sizeof info;
  kit::check(kit::dispatch().op_info(op, &info));
  auto* known = new Known{op, info.nparams};  // for as long as the process runs
  std::vector<aj_save> save;
  for (uint32_t i = 0; i < info.nparams; ++i) save.push_back({AJ_SAVE_ARG, int32_t(i), 0});
  define_vjp(env, name, save.data(), uint32_t(save.size()), unary_vjp, known);
}

// saved: both arguments.
aj_status* mul_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined()) return;
    for (uint32_t i : {0, 1}) {
      if (!d.need(i)) continue;
      Operand other = d.operand(1 - i);
      Tensor whole;  // a sparse factor as broadcasting has repeated it
      if (other.is_tensor() && is_sparse(other.tensor()) && is_sparse(g) &&
          !std::ranges::equal(other.tensor().shape(), g.shape())) {
        const bool number = other.tensor().ndim() == 0;
        other = whole = number ? sparse_to_dense(other.tensor(), false)
                               : sparse_repeat(other.tensor(), sizes_of(g));
      }
      Tensor made = g * kit::conj(other);
      const bool sparse = is_sparse(d.tensor(i));
      if (sparse && !std::ranges::equal(made.shape(), d.tensor(i).shape())) {
        const Parts p = coalesced(any_parts_of(d.tensor(i), "argument"));  // it was repeated
        made = with_places(p, values_like(summed_to(made, p.size), p));
      }
      d.set(i, !sparse && is_sparse(made) ? sparse_to_dense(made, false) : made);
    }
  });
}

// saved: input and other, other a number or strided; rounding_mode.
aj_status* div_vjp(void*, aj_grad_call* call) {
  return kit::derive(call, [](kit::Grad& d) {
    const Tensor& g = d.grad(0);
    if (!g.defined()) return;
    want(!d.given(2), "there is no derivative of a rounded quotient of sparse tensors");
    Operand other = d.operand(1);
    if (d.need(0)) d.set(0, g / kit::conj(other));
    if (!d.need(1)) return;
    const Tensor& o = other.tensor();
    d.set(1, -sparse_to_dense(g * kit::conj(d.tensor(0)), false) / kit::conj(o * o));
  });
}

}  // namespace

void define_derivatives(const aj_plugin_env* env) {
  for (const char* name : kZeroKeepers) define_unary_vjp(env, name);
  define_unary_vjp(env, "pow");
  static const aj_save three[] = {{AJ_SAVE_ARG, 0, 0}, {AJ_SAVE_ARG, 1, 0}, {AJ_SAVE_ARG, 2, 0}};
  define_vjp(env, "mul", three, 2, mul_vjp, nullptr);
  define_vjp(env, "div", three, 3, div_vjp, nullptr);
  define_product_vjps(env);
  define_slice_vjps(env);
  define_reduce_vjps(env);
}

}  // namespace adjoin::ops::sparse

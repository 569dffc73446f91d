// plugins/fuser/function.cpp: calls of ops as functions of the steps: names, and what arguments
// choose, as the eager kernels choose it.
#include "function.hpp"

#include <algorithm>
#include <cmath>

namespace adjoin::fuser {
namespace {

enum class How { plain, logic, scaled, power, division, clamp, gelu, numbers, value };
struct Row {
  std::string_view op;
  const char* function;
  How how = How::plain;
  uint8_t inputs = 1;   // tensors or numbers, the first arguments
  uint8_t numbers = 0;  // fields: the arguments behind them
};

constexpr Row kRows[] = {
    {"abs", "abs"},
    {"neg", "neg"},
    {"square", "square"},
    {"reciprocal", "reciprocal"},
    {"floor", "floor"},
    {"ceil", "ceil"},
    {"trunc", "trunc"},
    {"relu", "relu"},
    {"sqrt", "sqrt"},
    {"rsqrt", "rsqrt"},
    {"log", "log"},
    {"log2", "log2"},
    {"log10", "log10"},
    {"log1p", "log1p"},
    {"sin", "sin"},
    {"cos", "cos"},
    {"tan", "tan"},
    {"exp", "exp"},
    {"exp2", "exp2"},
    {"expm1", "expm1"},
    {"tanh", "tanh"},
    {"sigmoid", "sigmoid"},
    {"nn::silu", "silu"},
    {"erf", "erf"},
    {"erfc", "erfc"},
    {"nn::gelu", "gelu", How::gelu},
    {"isnan", "isnan"},
    {"isinf", "isinf"},
    {"isfinite", "isfinite"},
    {"nn::leaky_relu", "leaky_relu", How::numbers, 1, 1},
    {"nn::elu", "elu", How::numbers, 1, 1},
    {"nn::softplus", "softplus", How::numbers, 1, 2},
    {"add", "add", How::scaled, 2},
    {"sub", "sub", How::scaled, 2},
    {"mul", "mul", How::plain, 2},
    {"div", "div", How::division, 2},
    {"maximum", "maximum", How::plain, 2},
    {"minimum", "minimum", How::plain, 2},
    {"relu_backward", "relu_backward", How::plain, 2},
    {"pow", "power", How::power, 2},
    {"eq", "eq", How::plain, 2},
    {"ne", "ne", How::plain, 2},
    {"lt", "lt", How::plain, 2},
    {"le", "le", How::plain, 2},
    {"gt", "gt", How::plain, 2},
    {"ge", "ge", How::plain, 2},
    {"logical_and", "mask_and", How::logic, 2},
    {"logical_or", "mask_or", How::logic, 2},
    {"logical_xor", "mask_xor", How::logic, 2},
    {"logical_not", "mask_not", How::logic, 1},
    {"bitwise_and", "mask_and", How::logic, 2},
    {"bitwise_or", "mask_or", How::logic, 2},
    {"bitwise_xor", "mask_xor", How::logic, 2},
    {"bitwise_not", "mask_not", How::logic, 1},
    {"where", "where", How::plain, 3},
    {"clamp", "clamp", How::clamp, 3},
    {"lerp", "lerp", How::plain, 3},
    {"addcmul", "addcmul", How::value, 3, 1},
    {"addcdiv", "addcdiv", How::value, 3, 1},
    {"_::tanh_backward", "tanh_slope", How::plain, 2},
    {"_::sigmoid_backward", "sigmoid_slope", How::plain, 2},
    {"_::silu_backward", "silu_slope", How::plain, 2},
};

const Row* row_of(std::string_view op) {
  for (const Row& r : kRows)
    if (r.op == op) return &r;
  return nullptr;
}

bool is_real(const aj_value& v) { return v.tag == AJ_INT || v.tag == AJ_FLOAT || v.tag == AJ_BOOL; }
double real(const aj_value& v) { return v.tag == AJ_FLOAT ? v.v.f : double(v.v.i); }
bool given(const Node& n, uint32_t i) {
  return n.refs[i] != AJ_GRAPH_CONSTANT || n.args[i].tag != AJ_NONE;
}

// What kernels ask of a number after it became one of the computing type.
bool is_number(const Input& in, bool single, double wanted) {
  return in.value == kNone && (single ? double(float(in.number)) : in.number) == wanted;
}

bool choose(const Node& n, const Row& r, bool single, Chosen* c) {
  c->function = r.function;
  switch (r.how) {
    case How::plain:
    case How::logic:
      return true;
    case How::scaled: {
      if (n.nargs <= 2) return true;
      if (n.refs[2] || !is_real(n.args[2])) return false;
      const double alpha = real(n.args[2]);
      if ((single ? double(float(alpha)) : alpha) == 1) return true;
      c->function = "add_scaled";
      c->numbers[0] = r.op == "sub" ? -alpha : alpha;
      return true;
    }
    case How::power:
      c->function = is_number(c->inputs[1], single, 2)     ? "first_squared"
                    : is_number(c->inputs[1], single, 3)   ? "first_cubed"
                    : is_number(c->inputs[1], single, -1)  ? "first_inverse"
                    : is_number(c->inputs[1], single, 0.5) ? "first_root"
                                                           : "power";
      return true;
    case How::division:
      return n.nargs <= 2 || !given(n, 2) ||
             (n.args[2].tag == AJ_STRING && n.args[2].aux == 0 && !n.refs[2]);
    case How::clamp:
      c->flags = true;
      c->numbers[0] = given(n, 1), c->numbers[1] = given(n, 2);
      return true;
    case How::gelu:
      if (n.nargs > 1 && (n.refs[1] || n.args[1].tag != AJ_STRING)) return false;
      if (n.nargs > 1 && std::string_view(n.args[1].v.str, n.args[1].aux) == "tanh")
        c->function = "gelu_tanh";
      return true;
    case How::numbers:
    case How::value:
      for (uint8_t k = 0; k < r.numbers; ++k) {
        const uint32_t at = r.inputs + k;
        if (at >= n.nargs || n.refs[at] || !is_real(n.args[at])) return false;
        c->numbers[k] = real(n.args[at]);
      }
      return true;
  }
  return false;
}

bool is_compute(DLDataType d) { return same(d, dtype_of<float>) || same(d, dtype_of<double>); }

}  // namespace

Node::Node(const aj_graph* g, uint32_t i) : aj_graph_node{} {
  struct_size = sizeof(aj_graph_node);
  check(graphs->node(g, i, this));
}

ValueType type_of(const aj_graph* g, uint32_t value) {
  DLTensor t{};
  const uint32_t* symbols = nullptr;
  check(graphs->type(g, value, &t, &symbols));
  ValueType made = {t.dtype, {t.shape, t.shape + t.ndim}};
  for (size_t d = 0; d < made.shape.size(); ++d)
    if (symbols[d]) made.shape[d] = -int64_t(symbols[d]);
  return made;
}

std::optional<Chosen> element_wise(const aj_graph* g, const Node& n, DLDataType* compute) {
  const Row* r = n.op && !(n.flags & AJ_NODE_EFFECT) ? row_of(n.op_name()) : nullptr;
  if (!r || n.nresults != 1 || !n.results[0]) return {};
  Chosen c;
  bool found = false, masks = false, numbers = false;
  for (uint32_t k = 0; k < r->inputs; ++k) {
    Input in;
    if (k >= n.nargs || !given(n, k)) {
      if (r->how != How::clamp) return {};
    } else if (n.refs[k] == AJ_GRAPH_OTHER) {
      return {};
    } else if (n.refs[k]) {
      in.value = n.refs[k] - 1;
      const DLDataType d = type_of(g, in.value).dtype;
      if (same(d, dtype_of<bool>)) {
        masks |= !(k == 0 && r->op == "where");
      } else {
        if (!is_compute(d) || (found && !same(d, *compute))) return {};
        found = true, *compute = d;
      }
    } else {
      if (!is_real(n.args[k])) return {};
      in.number = real(n.args[k]);
      // An integer that a double cannot hold is another number to the kernel.
      if (n.args[k].tag == AJ_INT && int64_t(in.number) != n.args[k].v.i) return {};
      numbers = true;
    }
    c.inputs.push_back(in);
  }
  const DLDataType result = type_of(g, n.results[0] - 1).dtype;
  if (r->how == How::logic) {
    // Of bools alone; which floats they go with is their neighbours' matter.
    if (found || numbers || !same(result, dtype_of<bool>)) return {};
    *compute = {};
  } else if (!found || (masks && (r->inputs == 3 || r->how == How::power))) {
    return {};
  }
  if (r->op == "where" &&
      (c.inputs[0].value == kNone || !same(type_of(g, c.inputs[0].value).dtype, dtype_of<bool>)))
    return {};
  if (!same(result, dtype_of<bool>) && !same(result, *compute)) return {};
  if (!choose(n, *r, same(*compute, dtype_of<float>), &c)) return {};
  return c;
}

namespace {

bool is_int(const Node& n, uint32_t i, int64_t one, int64_t other) {
  return !n.refs[i] && n.args[i].tag == AJ_INT && (n.args[i].v.i == one || n.args[i].v.i == other);
}

// softmax and layer norms of the last dimension.
std::optional<Folding> of_row(const aj_graph* g, const Node& n) {
  const std::string_view op = n.op_name();
  if (!n.refs[0] || n.refs[0] == AJ_GRAPH_OTHER) return {};
  Folding f{};
  f.value = n.refs[0] - 1;
  f.keep = true;
  const ValueType in = type_of(g, f.value), out = type_of(g, n.results[0] - 1);
  const auto last = int64_t(in.shape.size()) - 1;
  if (!is_compute(in.dtype) || !same(in.dtype, out.dtype) || last < 0) return {};
  if (op == "softmax" || op == "log_softmax") {
    if (!is_int(n, 1, last, -1) || n.refs[2] || n.args[2].tag != AJ_NONE) return {};
    f.fold = op == "softmax" ? Fold::softmax : Fold::log_softmax;
    return f;
  }
  if ((op != "nn::layer_norm" && op != "layer_norm_stats") || n.nargs != 5) return {};
  f.fold = Fold::layer_norm;
  auto row = in.shape;
  row.back() = 1;
  for (uint32_t k = 1; k < n.nresults; ++k) {
    if (!n.results[k]) continue;
    const ValueType told = type_of(g, n.results[k] - 1);
    if (!same(told.dtype, in.dtype) || told.shape != row) return {};
    (k == 1 ? f.mean : f.rstd) = n.results[k] - 1;
  }
  if (n.refs[1] || n.args[1].tag != AJ_INTS || n.args[1].aux != 1 ||
      n.args[1].v.ints[0] != in.shape.back() || n.refs[4] || n.args[4].tag != AJ_FLOAT)
    return {};
  f.eps = n.args[4].v.f;
  // Both or none: of one alone the kernel makes the other.
  for (uint32_t k : {2u, 3u}) {
    if (n.refs[k] == AJ_GRAPH_OTHER || (n.refs[k] == 0) != (n.refs[2] == 0)) return {};
    if (!n.refs[k]) {
      if (n.args[k].tag != AJ_NONE) return {};
      continue;
    }
    if (!same(type_of(g, n.refs[k] - 1).dtype, in.dtype)) return {};
    (k == 2 ? f.weight : f.bias) = n.refs[k] - 1;
  }
  return f;
}

}  // namespace

std::optional<Folding> folding(const aj_graph* g, const Node& n) {
  if (!n.op || n.flags & AJ_NODE_EFFECT || !n.results[0] || n.nargs < 3) return {};
  if (n.nresults != (n.op_name() == "layer_norm_stats" ? 3u : 1u)) return {};
  if (auto row = of_row(g, n)) return row;
  const std::string_view op = n.op_name();
  Folding f{};
  if (op == "sum")
    f.fold = Fold::sum;
  else if (op == "mean")
    f.fold = Fold::mean;
  else if (op == "amax")
    f.fold = Fold::largest;
  else if (op == "amin")
    f.fold = Fold::least;
  else
    return {};
  if (!n.refs[0] || n.refs[0] == AJ_GRAPH_OTHER) return {};
  f.value = n.refs[0] - 1;
  const ValueType in = type_of(g, f.value), out = type_of(g, n.results[0] - 1);
  const auto last = int64_t(in.shape.size()) - 1;
  if (!is_compute(in.dtype) || !same(in.dtype, out.dtype) || last < 0) return {};
  if (n.refs[1] || n.args[1].tag != AJ_INTS || n.args[1].aux != 1) return {};
  if (n.args[1].v.ints[0] != last && n.args[1].v.ints[0] != -1) return {};
  if (n.refs[2] || n.args[2].tag != AJ_BOOL) return {};
  f.keep = n.args[2].v.i != 0;
  for (uint32_t k = 3; k < n.nargs; ++k)
    if (n.refs[k] || (n.args[k].tag != AJ_NONE &&
                      !(n.args[k].tag == AJ_DTYPE && same(n.args[k].v.dtype, in.dtype))))
      return {};
  return f;
}

}  // namespace adjoin::fuser

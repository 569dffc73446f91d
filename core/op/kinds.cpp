// core/op/kinds.cpp: the closed list of kinds, and what an op's schema and tags mean to the call
// path.
#include "core/op/kinds.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/dtype.hpp"
#include "core/op/numbers.hpp"

namespace adjoin {
using kit::has_word;

namespace {

struct KindRow {
  const char* name;
  Kind kind;
  RunFn run;
};
const KindRow kKinds[] = {
    {"unary", Kind::unary, run_pointwise},
    {"unary_float", Kind::unary_float, run_pointwise},
    {"unary_bool", Kind::unary_bool, run_pointwise},
    {"binary", Kind::binary, run_pointwise},
    {"binary_float", Kind::binary_float, run_pointwise},
    {"compare", Kind::compare, run_pointwise},
    {"pointwise", Kind::pointwise, run_pointwise},
    {"reduce", Kind::reduce, run_reduce},
    {"reduce_float", Kind::reduce_float, run_reduce},
    {"reduce_bool", Kind::reduce_bool, run_reduce},
    {"reduce_index", Kind::reduce_index, run_reduce},
    {"scan", Kind::scan, run_scan},
    {"view", Kind::view, run_view},
    {"linear", Kind::linear, run_generic},
    {"custom", Kind::custom, run_generic},
};

int64_t number_after(std::string_view tags, std::string_view word, int64_t otherwise) {
  if (!has_word(tags, word)) return otherwise;
  return std::atoll(std::string(tags.substr(tags.find(word) + word.size())).c_str());
}

int8_t place_of(const Schema& s, std::string_view name) {
  for (size_t i = 0; i < s.params.size(); i++)
    if (s.params[i].name == name) return int8_t(i);
  return -1;
}

// Which tags a parameter takes without a conversion.
uint32_t tags_of(const Param& p) {
  uint32_t m = p.flags & AJ_PARAM_OPTIONAL ? tag_bit(AJ_NONE) : 0;
  if (p.list) {
    switch (p.base) {
      case AJ_PARAM_TENSOR:
      case AJ_PARAM_OPERAND:
        return m | tag_bit(AJ_TENSORS);
      case AJ_PARAM_FLOAT:
        return m | tag_bit(AJ_FLOATS);
      case AJ_PARAM_BOOL:
        return m | tag_bit(AJ_BOOLS);
      default:
        return m | (p.list > 1 ? 0 : tag_bit(AJ_INTS));  // a list of fixed length is looked at
    }
  }
  uint32_t number = tag_bit(AJ_BOOL) | tag_bit(AJ_INT) | tag_bit(AJ_FLOAT) | tag_bit(AJ_COMPLEX);
  switch (p.base) {
    case AJ_PARAM_TENSOR:
      return m | tag_bit(AJ_TENSOR);
    case AJ_PARAM_OPERAND:
      return m | tag_bit(AJ_TENSOR) | number;
    case AJ_PARAM_SCALAR:
      return m | (number & ~tag_bit(AJ_COMPLEX));  // looked at: are the tensors complex?
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      return m | tag_bit(AJ_INT);
    case AJ_PARAM_FLOAT:
      return m | tag_bit(AJ_FLOAT);
    case AJ_PARAM_BOOL:
      return m | tag_bit(AJ_BOOL);
    case AJ_PARAM_STR:
      return m | tag_bit(AJ_STRING);
    case AJ_PARAM_DTYPE:
      return m | tag_bit(AJ_DTYPE);
    case AJ_PARAM_DEVICE:
      return m | tag_bit(AJ_DEVICE);
    case AJ_PARAM_LAYOUT:
      return m | tag_bit(AJ_LAYOUT);
    case AJ_PARAM_MEMORY_FORMAT:
      return m | tag_bit(AJ_MEMORY_FORMAT);
    case AJ_PARAM_STREAM:
      return m | tag_bit(AJ_STREAM);
    case AJ_PARAM_FUNCTION:
      return m | tag_bit(AJ_FUNCTION);
    case AJ_PARAM_OBJECT:
      return m;  // looked at: of which type it is
    default:
      return m | tag_bit(AJ_GENERATOR);
  }
}

// Which tags a kernel may give for a result. What refers to memory of somebody comes back as an
// object.
uint32_t tags_given(const Param& p) {
  uint32_t refers = tag_bit(AJ_COMPLEX) | tag_bit(AJ_STRING) | tag_bit(AJ_INTS) |
                    tag_bit(AJ_FLOATS) | tag_bit(AJ_BOOLS) | tag_bit(AJ_TENSORS);
  uint32_t m = p.flags & AJ_PARAM_OPTIONAL ? tag_bit(AJ_NONE) : 0,
           anything = ~(tag_bit(AJ_NONE) | refers);
  if (p.list) return m | (p.base == AJ_PARAM_TENSOR ? tag_bit(AJ_LIST_OBJ) : anything);
  switch (p.base) {
    case AJ_PARAM_TENSOR:
      return m | tag_bit(AJ_TENSOR);
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      return m | tag_bit(AJ_INT);
    case AJ_PARAM_FLOAT:
      return m | tag_bit(AJ_FLOAT);
    case AJ_PARAM_BOOL:
      return m | tag_bit(AJ_BOOL);
    default:
      return m | anything;
  }
}

// Which of an op's calls run_pointwise may serve at once: where the result's dtype follows from the
// operands' class alone.
void set_alike(aj_op* op) {
  const Schema& s = op->schema;
  op->alike_bool = op->kind == Kind::unary_bool || op->kind == Kind::compare;
  bool straight = op->kind <= Kind::pointwise && op->noperands && op->noperands <= 3 &&
                  !op->fixed_operands && !op->ordered && !op->crosses_devices && !s.writes &&
                  s.results.size() == 1 && (!s.results[0].dtypes || op->alike_bool) &&
                  op->operands[0] == 0;
  bool to_float = op->kind == Kind::unary_float || op->kind == Kind::binary_float;
  op->alike_classes = !straight ? 0
                      : to_float
                          ? 1u << AJ_CLASS_FLOAT
                          : 1u << AJ_CLASS_BOOL | 1u << AJ_CLASS_INTEGER | 1u << AJ_CLASS_FLOAT;
  if (op->flags & kCountsBool) op->alike_classes &= uint8_t(~(1u << AJ_CLASS_BOOL));
  // run_planned sees whether whole numbers can take the factor; sums of two ask their own kernels.
  bool factor = std::ranges::any_of(s.params, [](auto& p) { return p.base == AJ_PARAM_SCALAR; });
  if (factor && op->noperands > 2) op->alike_classes &= uint8_t(~(1u << AJ_CLASS_INTEGER));
  // What run_plan would take them for is too little to park a frontend's lock or to wake another
  // thread: four operands of 8 bytes at most, see plan_estimate_ns.
  op->alike_most = uint32_t(std::min<uint64_t>(4096, 6000000 / (uint64_t(op->cost) + 100 * 8 * 4)));
}

aj_status* nothing(void*, aj_call*) { return nullptr; }

void read_tags(aj_op* op) {
  op->ordered =
      has_word(op->tags, "ordered") || op->kind == Kind::scan || op->kind == Kind::reduce_index;
  op->real_result = has_word(op->tags, "real_result");
  op->flags &= ~kNumberFlags;
  if (has_word(op->tags, "out:exact")) op->flags |= kOutExact;
  if (has_word(op->tags, "numbers:exact")) op->flags |= kNumbersExact;
  if (has_word(op->tags, "numbers:clamped")) op->flags |= kNumbersClamped;
  if (has_word(op->tags, "bool:int64")) op->flags |= kCountsBool;
  op->dim_extra = uint8_t(number_after(op->tags, "dim:", 0));
  op->cost = uint32_t(number_after(op->tags, "cost:", op->kind == Kind::unary_float ? 2000 : 250));
  op->crosses_devices = has_word(op->tags, "crosses-devices");
  bool by_element =
      op->kind <= Kind::pointwise || (op->kind >= Kind::reduce && op->kind <= Kind::reduce_bool);
  op->keeps_order = (by_element && !op->ordered) || has_word(op->tags, "layout:keep");
}

// What each parameter takes, and which are operands.
void read_params(aj_op* op) {
  const Schema& s = op->schema;
  op->noperands = 0;
  op->fixed_operands = false;
  op->has_dims = op->checks_dtypes = false;
  op->dim_params = op->size_params = 0;
  op->tensor_params = 0;
  for (size_t i = 0; i < s.params.size(); i++) {
    const Param& p = s.params[i];
    bool tensor = p.base == AJ_PARAM_TENSOR || p.base == AJ_PARAM_OPERAND;
    if (tensor && i < 64) op->tensor_params |= 1ull << i;
    op->has_dims |= p.base == AJ_PARAM_DIM;
    if (p.base == AJ_PARAM_DIM) op->dim_params |= 1u << i;
    if (p.base == AJ_PARAM_SIZE && !p.list) op->size_params |= 1u << i;
    op->dtypes_ok[i] = tensor && p.dtypes ? p.dtypes : ~uint64_t{0};
    op->checks_dtypes |= tensor && p.dtypes != 0;
    op->tags_ok[i] = tags_of(p);
    bool output = i == 0 && s.result_is_first;
    if (tensor && !p.list && !output && op->noperands < 15) {
      op->operands[op->noperands++] = uint8_t(i);
      op->fixed_operands |= p.dtypes != 0;
    }
  }
  op->has_look = op->has_dims || op->size_params || op->checks_dtypes;
}

}  // namespace

const Kernel meta_kernel{nothing, nullptr, AJ_KERNEL_CASTS, 0, 0, nullptr, nullptr, "", "meta", 0};

uint64_t alike_dtypes(const aj_op* op, const Kernel& k) {
  uint64_t found = 0;
  for (const DType& t : dtypes) {
    const bool taken = !k.dtypes || k.dtypes >> work_dtype(&k, t.index) & 1;
    if (t.name && op->alike_classes >> t.cls & 1 && taken) found |= 1ull << t.index;
  }
  return found;
}

bool has_own_shapes(const aj_op* op) { return op->kind <= Kind::scan; }

RunFn kind_run(Kind kind) {
  static_assert(std::size(kKinds) == size_t(Kind::custom) + 1);  // in the order of the enum
  return kKinds[int(kind)].run;
}

aj_status* set_kind(aj_op* op) {
  const Schema& s = op->schema;
  if (s.params.size() > 32)
    return fail(AJ_INVALID_ARGUMENT, s.name, ": ", uint64_t(s.params.size()),
                " parameters; at most 32 are possible");
  bool needs_tensor = op->kind_name != "custom" && op->kind_name != "linear";
  for (const KindRow& k : kKinds)
    if (op->kind_name == k.name) {
      op->kind = k.kind;
      op->run = k.run;
      bool first = !s.params.empty() && !s.params[0].list && s.params[0].base <= AJ_PARAM_OPERAND;
      if (needs_tensor && (!first || s.results.empty() || s.results[0].base != AJ_PARAM_TENSOR))
        return fail(AJ_INVALID_ARGUMENT, s.name, ": kind '", k.name,
                    "' needs a tensor first and a tensor as result; use custom");
      if (s.results.size() > size_t(kMaxResults))
        return fail(AJ_INVALID_ARGUMENT, s.name, ": ", uint64_t(s.results.size()),
                    " results; at most ", kMaxResults, " are possible");
      if (!op->infer && !op->body && !(op->flags & AJ_OP_ALLOCATES) && !has_own_shapes(op) &&
          !(s.result_is_first && s.results.size() == 1))
        return fail(AJ_INVALID_ARGUMENT, s.name, ": kind '", k.name,
                    "' needs infer or body, which say the shapes");
      return nullptr;
    }
  return fail(AJ_INVALID_ARGUMENT, s.name, ": unknown kind '", op->kind_name,
              "'; unary, binary, reduce, view, custom, ...");
}

void init_op(aj_op* op) {
  const Schema& s = op->schema;
  for (auto& entry : op->table) entry.store(nullptr, std::memory_order_relaxed);
  op->mask = 0;
  op->vjp = nullptr;
  op->keyed_vjps = nullptr;
  op->nparams = uint16_t(s.params.size());
  op->nresults = uint16_t(s.results.size());
  op->writes = s.writes;
  op->ours = op->provider.empty();
  op->has_body = op->body != nullptr;
  op->body_kernel = Kernel{
      op->body, op->self,   kKernelBody | AJ_KERNEL_CASTS, 0, 0, nullptr, nullptr, op->provider,
      "",       op->nparams};
  read_tags(op);
  op->p_dim = place_of(s, "dim");
  op->p_keepdim = place_of(s, "keepdim");
  op->p_dtype = place_of(s, "dtype");
  op->p_rounding = place_of(s, "rounding_mode");
  op->grad_results = 0;
  for (size_t i = 0; i < s.results.size() && i < size_t(kMaxResults); i++)
    op->results_ok[i] = tags_given(s.results[i]);
  for (size_t i = 0; i < s.results.size(); i++)
    if (s.results[i].base == AJ_PARAM_TENSOR && !(s.results[i].flags & AJ_PARAM_AUX))
      op->grad_results |= 1u << i;
  read_params(op);
  bool pointwise = op->kind <= Kind::pointwise || op->kind == Kind::scan;
  bool first_tensor =
      !s.params.empty() &&
      (s.params[0].base == AJ_PARAM_TENSOR || s.params[0].base == AJ_PARAM_OPERAND) &&
      !s.params[0].list;
  bool one_result =
      s.results.size() == 1 && s.results[0].base == AJ_PARAM_TENSOR && !s.results[0].list;
  op->in_place_ok = first_tensor && one_result && !s.writes && !(op->flags & AJ_OP_NO_IN_PLACE) &&
                    op->kind != Kind::view && (pointwise || has_word(op->tags, "in-place"));
  set_alike(op);
}

}  // namespace adjoin

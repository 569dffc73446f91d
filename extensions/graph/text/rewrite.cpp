// extensions/graph/text/rewrite.cpp: inputs of a program that others than its recorder decide on:
// numbers of its calls, and tensors of which it was given views.
#include "../rewrite.hpp"

#include <algorithm>

#include "../value.hpp"

namespace adjoin::graph {
namespace {

// The place of a parameter; kNone: the call has no constant number there.
uint32_t number_at(const Node& n, std::string_view parameter) {
  if (n.what != Node::What::call) return kNone;
  const OpFacts& f = facts_of(n.op);
  for (uint32_t i = 0; i < n.args.size(); i++) {
    const int32_t base = f.params[i].base, tag = n.args[i].tag;
    if (view_of(f.params[i].name) == parameter)
      return n.args[i].kind == Arg::Kind::constant && n.args[i].sizes.empty() &&
                     ((base == AJ_PARAM_INT && tag == AJ_INT) ||
                      (base == AJ_PARAM_FLOAT && tag == AJ_FLOAT))
                 ? i
                 : kNone;
  }
  return kNone;
}

void only_calls(const Program& p) {
  if (p.script || p.plan.load())
    raise(AJ_PRECONDITION, p.name, ": a program that has run, or is scripted, is not rewritten");
}

void new_input(Program& p, const Type& type) {
  const uint32_t v = p.add(type);
  p.values[v].told = type.shape;
  p.body.inputs.insert(p.body.inputs.end() - (p.draw != kNone), v);
}

Arg integer(int64_t i) {
  Arg a;
  a.tag = AJ_INT, a.i = i;
  return a;
}
Arg integers(std::vector<int64_t> list) {
  Arg a;
  a.tag = AJ_INTS, a.ints = std::move(list);
  return a;
}

}  // namespace

void find_number(const Program& p, std::string_view parameter, uint32_t* call, aj_value* value,
                 uint32_t* first) {
  const std::vector<Node>& nodes = p.body.nodes;
  uint32_t i = *call;
  while (i < nodes.size() && number_at(nodes[i], parameter) == kNone) i++;
  *call = *first = kNone;
  if (i >= nodes.size()) return;
  *call = i;
  *value = value_of(nodes[i].args[number_at(nodes[i], parameter)]);
  const Arg& a = nodes[i].args[0];
  const uint32_t v = a.kind == Arg::Kind::values && !a.refs.empty() ? a.refs[0]
                     : a.kind == Arg::Kind::value                   ? a.ref
                                                                    : kNone;
  const auto at = std::find(p.body.inputs.begin(), p.body.inputs.end(), v);
  if (v != kNone && at != p.body.inputs.end()) *first = uint32_t(at - p.body.inputs.begin());
}

void lift(Program& p, uint32_t call, std::string_view parameter, uint32_t input) {
  only_calls(p);
  const uint32_t at = call < p.body.nodes.size() ? number_at(p.body.nodes[call], parameter) : kNone;
  if (at == kNone || input > p.tensor_inputs())
    raise(AJ_OUT_OF_RANGE, p.name, ": call ", call, " has no number '", parameter,
          "', or there is no input ", input);
  Arg& a = p.body.nodes[call].args[at];
  const DLDataType dtype{uint8_t(a.tag == AJ_INT ? kDLInt : kDLFloat), 64, 1};
  const Type type{true, dtype, {}};
  if (input == p.tensor_inputs()) new_input(p, type);
  const uint32_t v = p.body.inputs[input];
  if (!(p.values[v].type == type))
    raise(AJ_INVALID_ARGUMENT, p.name, ": input ", input, " is ", print_type(p, p.values[v].type),
          ", the number '", parameter, "' is ", print_type(p, type));
  a = Arg::of(v);
}

void make_view(Program& p, uint32_t input, uint32_t base, const DLTensor& from,
               const DLTensor& as) {
  only_calls(p);
  if (input >= p.tensor_inputs() || base >= p.tensor_inputs())
    raise(AJ_OUT_OF_RANGE, p.name, ": there is no input ", std::max(input, base));
  const uint32_t v = p.body.inputs[input];
  const bool fresh = base + 1 == p.tensor_inputs();
  const Type type{false, from.dtype, {from.shape, from.shape + from.ndim}};
  const Type base_type = fresh ? type : p.values[p.body.inputs[base + (base >= input)]].type;
  int64_t all = 1, mine = 1;
  for (int64_t n : type.shape) all *= n;
  std::vector<int64_t> sizes(as.shape, as.shape + as.ndim);
  std::vector<int64_t> strides(as.strides, as.strides + as.ndim);
  bool dense = true;  // in C order
  for (int32_t d = as.ndim; d-- > 0; mine *= as.shape[d]) dense &= strides[size_t(d)] == mine;
  const auto skip = int64_t(as.byte_offset);
  if (!(base_type == type) || !(p.values[v].type == Type{false, from.dtype, sizes}) || skip > all)
    raise(AJ_INVALID_ARGUMENT, p.name, ": input ", input, " is ", print_type(p, p.values[v].type),
          ", which is no such view of ", print_type(p, base_type));
  p.body.inputs.erase(p.body.inputs.begin() + input);
  if (fresh) new_input(p, type);
  const uint32_t b = p.body.inputs[base];
  std::vector<Node> made;
  auto call = [&](std::string_view name, std::vector<Arg> args, uint32_t result) {
    Node n;
    n.op = dispatch().find_op(str(name));
    n.args = std::move(args);
    n.results = {{{result}, false}};
    trim(facts_of(n.op), n.args);
    made.push_back(std::move(n));
    return result;
  };
  if (dense && !type.shape.empty() && mine && skip % mine == 0 &&
      std::equal(sizes.begin(), sizes.end(), type.shape.begin() + 1, type.shape.end())) {
    call("select", {Arg::of(b), integer(0), integer(skip / mine)}, v);
  } else {
    const uint32_t flat =
        call("reshape", {Arg::of(b), integers({-1})}, p.add({false, from.dtype, {all}}));
    const uint32_t rest =
        call("narrow", {Arg::of(flat), integer(0), integer(skip), integer(all - skip)},
             p.add({false, from.dtype, {all - skip}}));
    call("as_strided", {Arg::of(rest), integers(sizes), integers(strides)}, v);
  }
  p.body.nodes.insert(p.body.nodes.begin(), std::make_move_iterator(made.begin()),
                      std::make_move_iterator(made.end()));
}

}  // namespace adjoin::graph

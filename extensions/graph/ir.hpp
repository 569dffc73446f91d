// extensions/graph/ir.hpp: a program: values, calls of ops, blocks, and the tensors that it keeps.
#pragma once
#include <adjoin/abi/program.h>
#include <adjoin/abi/wrap.h>

#include <adjoin/kit/call.hpp>
#include <map>
#include <memory>
#include <optional>

namespace adjoin::graph {

using namespace kit;

inline constexpr uint32_t kNone = ~0u;

// A sum of products of symbols, as b*t*2 + 1: what a size, or a number made of sizes, is.
struct Size {
  struct Term {
    std::vector<uint32_t> symbols;  // of Program::symbols, in order; none: the number itself
    int64_t by;
    bool operator==(const Term&) const = default;
  };
  std::vector<Term> terms;  // those with symbols first
  bool operator==(const Size&) const = default;
  int64_t at(const int64_t* symbols) const;  // raises where it is no number of 64 bits
};

// A tensor of this dtype and shape. Inputs may also be no tensors: the generator that random
// numbers are drawn from, which has no dtype; or a number for calls, an int64 or float64, given in
// a tensor of one element. A size below 0 is -1 - i: the i-th of Program::sizes.
struct Type {
  bool other = false;  // it is no tensor
  DLDataType dtype{};
  std::vector<int64_t> shape;
  bool draws() const { return other && !dtype.bits; }
  bool number() const { return other && dtype.bits; }
  bool operator==(const Type& o) const {
    return other == o.other && dtype == o.dtype && shape == o.shape;
  }
};

struct Value {
  std::string name;  // without the %
  Type type;
  std::vector<int64_t>
      told;  // the shape as others see it: -1 where it is known when the program runs
};

// An argument of a call: a value, values, or a constant.
struct Arg {
  enum class Kind { constant, value, values, device_of };
  Kind kind = Kind::constant;
  uint32_t ref = kNone;        // value, device_of
  std::vector<uint32_t> refs;  // values; kNone: an absent one

  // A constant. What its aj_value points to lies here.
  int32_t tag = AJ_NONE;
  int64_t i = 0;
  double re = 0, im = 0;
  DLDataType dtype{};
  std::string text;
  std::vector<int64_t> ints;
  std::vector<double> reals;
  std::vector<uint8_t> bools;
  std::vector<uint32_t>
      sizes;  // of AJ_INT and AJ_INTS, by item: one of Program::sizes, or kNone; empty: none

  static Arg of(uint32_t value) {
    Arg a;
    a.kind = Kind::value;
    a.ref = value;
    return a;
  }
  bool operator==(const Arg&) const = default;
};

// What one result of a call is called: a value, a list of values, or nothing (None).
struct Result {
  std::vector<uint32_t> values;
  bool list = false;
  bool operator==(const Result&) const = default;
};

namespace script {
struct Unit;        // see script/code.hpp
struct ScriptCall;  // see script/lower.hpp
}  // namespace script

struct Node;
struct Block {
  std::vector<uint32_t> inputs;
  std::vector<Node> nodes;
  std::vector<uint32_t> results;
};

// A call of an op, or a statement with blocks: `if` has one argument and two blocks, `while`
// carries its arguments through a condition and a body. `scripted`, a call of scripted code, stands
// in captures alone: such a program becomes a scripted one.
struct Node {
  enum class What { call, branch, loop, detach, scripted };
  What what = What::call;
  const aj_op* op = nullptr;
  std::vector<Arg> args;  // trailing ones that have their default are left out
  std::vector<Result> results;
  std::vector<uint32_t> into;  // by result, the value that is written; empty: none is
  bool no_grad = false;
  bool keep = false;  // it draws random numbers or writes, and its op does not say so
  uint32_t line = 0;  // of `lines`; 0: not known
  std::vector<Block> blocks;
  std::shared_ptr<const script::ScriptCall> scripted;
};

struct Weight {
  uint32_t value;
  std::string name;
  bool constant = false;
  Tensor tensor;  // undefined in a program that was read from text
};

struct Plan;  // see run.hpp

struct Program {
  std::string name = "forward", form_in, form_out;
  std::vector<std::string> symbols;  // sizes that are known when the program runs
  std::vector<Size> sizes;           // no two are alike
  std::vector<Value> values;
  std::vector<Weight> weights;
  Block body;
  std::vector<std::string> lines{""};
  uint32_t draw = kNone;                 // the input that is a generator: the last one
  std::shared_ptr<script::Unit> script;  // in the place of a body: functions over variables

  std::atomic<std::shared_ptr<const Plan>> plan;
  std::atomic<uint64_t> nodes{0}, passes{0}, groups{0}, fused{0};

  uint32_t add(Type type, std::string called = {}) {
    if (called.empty()) called = std::to_string(values.size());
    values.push_back({std::move(called), std::move(type), {}});
    return uint32_t(values.size() - 1);
  }
  uint32_t size(Size s) {
    for (uint32_t i = 0; i < sizes.size(); i++)
      if (sizes[i] == s) return i;
    sizes.push_back(std::move(s));
    return uint32_t(sizes.size() - 1);
  }
  uint32_t tensor_inputs() const { return uint32_t(body.inputs.size()) - (draw != kNone); }
};

// The symbol that a size is; kNone: it is more.
inline uint32_t alone(const Size& s) {
  const bool is = s.terms.size() == 1 && s.terms[0].by == 1 && s.terms[0].symbols.size() == 1;
  return is ? s.terms[0].symbols[0] : kNone;
}

// What the registry says of an op, asked once.
struct OpFacts {
  std::string name;
  std::string kind;
  std::vector<aj_param> params, results;
  bool writes_first = false;  // result 0 is argument 0, written
  bool writes = false;        // it writes any argument
  bool draws = false;         // it takes a generator
};
const OpFacts& facts_of(const aj_op* op);

// Text. parse raises with line and column; print gives what parse reads.
std::string print(const Program& p);
std::string print_type(const Program& p, const Type& t);
std::string print_size(const Program& p, const Size& s);
void parse(std::string_view text, Program& into);
// Raises where a value is used before it is there, or an op does not take what it gets.
void verify(const Program& p);

// One program of several, which were captured with other sizes: samples[i] has the values of the
// symbols in the i-th. Raises where they differ in more than numbers made of these sizes.
std::unique_ptr<Program> generalize(const std::vector<const Program*>& programs,
                                    const std::vector<std::vector<int64_t>>& samples,
                                    const std::vector<std::string>& symbols);

// Calls whose results nobody uses, and that have no effect, go.
void remove_dead(Program& p);
bool has_effect(const Node& n);
// Calls f(value) for every value that the node reads, in its blocks too.
template <class F>
void each_use(const Node& n, const F& f) {
  for (const Arg& a : n.args) {
    if (a.kind == Arg::Kind::value || a.kind == Arg::Kind::device_of) f(a.ref);
    if (a.kind == Arg::Kind::values)
      for (uint32_t r : a.refs)
        if (r != kNone) f(r);
  }
  for (uint32_t r : n.into)
    if (r != kNone) f(r);
  for (const Block& b : n.blocks) {
    for (const Node& inner : b.nodes) each_use(inner, f);
    for (uint32_t r : b.results) f(r);
  }
}

// A counted program, as others hold it.
aj_object* object_of(std::unique_ptr<Program> p);

void save(const Program& p, const std::string& path);
void load(const std::string& path, Program& into);

extern const aj_wrappers* wrap_table;
extern uint64_t capture_key;

}  // namespace adjoin::graph

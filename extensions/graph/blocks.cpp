// extensions/graph/blocks.cpp: blocks of a capture: what an `if` or a loop chooses while the
// program runs. A block is captured by being run once; then the statement is carried out by the
// interpreter, as it will be later.
#include "recording.hpp"
#include "run.hpp"

namespace adjoin::graph {

void Recording::open() {
  open_.push_back({{}, uint32_t(program_->values.size()), detached_.size()});
}

// What a loop carries, inside of it. The first block that is open has the inputs.
Tensor Recording::carry(aj_tensor* t) {
  if (open_.empty()) raise(AJ_PRECONDITION, "carry: no block is open");
  Tensor real;
  ref_of(t, &real);
  const uint32_t v = add(type_of(t));
  open_.back().block.inputs.push_back(v);
  return show(std::move(real), v, nullptr);
}

void Recording::close(aj_tensor* const* results, uint32_t count) {
  if (open_.empty()) raise(AJ_PRECONDITION, "close: no block is open");
  for (uint32_t i = 0; i < count; i++) {
    Tensor real;
    block().results.push_back(ref_of(results[i], &real));
  }
  // What was detached inside is not known outside.
  for (; detached_.size() > open_.back().aliases; detached_.pop_back())
    aliases_.erase(detached_.back());
  closed_.push_back(std::move(open_.back().block));
  open_.pop_back();
}

// A write to what stands outside would happen at capture, whether the block is chosen or not.
void Recording::refuse_outside(uint32_t v) const {
  if (open_.empty() || v == kNone) return;
  bool own = v >= open_.back().first;
  for (const Weight& w : program_->weights) own &= w.value != v;
  for (uint32_t input : open_.back().block.inputs) own &= input != v;
  if (!own)
    raise(AJ_UNIMPLEMENTED, "trace: ", where(),
          "a block of cond or while_loop writes a tensor from outside in place; return the new "
          "value instead");
}

void Recording::branch(aj_tensor* decides, aj_tensor** out, uint32_t n) {
  if (closed_.size() < 2 || closed_.back().results.size() != n)
    raise(AJ_PRECONDITION, "branch: two blocks with as many results are wanted first");
  Node node;
  node.what = Node::What::branch;
  Tensor real;
  node.args.push_back(Arg::of(ref_of(decides, &real)));
  node.blocks = {std::move(closed_[closed_.size() - 2]), std::move(closed_.back())};
  closed_.resize(closed_.size() - 2);
  const auto& first = node.blocks[0].results;
  const auto& second = node.blocks[1].results;
  for (uint32_t i = 0; i < n; i++) {
    if (first.size() != n || !(program_->values[first[i]].type == program_->values[second[i]].type))
      raise(AJ_INVALID_ARGUMENT, "cond: result ", i, " is ",
            first.size() == n ? print_type(*program_, program_->values[first[i]].type) : "missing",
            " in one branch and ", print_type(*program_, program_->values[second[i]].type),
            " in the other; they must be alike");
    node.results.push_back({{add(Type(program_->values[first[i]].type))}, false});
  }
  run_node(std::move(node), out);
}

void Recording::loop(aj_tensor* const* carried, uint32_t n, aj_tensor** out) {
  if (closed_.size() < 2 || closed_.back().results.size() != n)
    raise(AJ_PRECONDITION,
          "loop: a condition's block and a body with as many results as are carried come first");
  Node node;
  node.what = Node::What::loop;
  node.blocks = {std::move(closed_[closed_.size() - 2]), std::move(closed_.back())};
  closed_.resize(closed_.size() - 2);
  node.blocks[1].inputs = node.blocks[0].inputs;
  for (uint32_t i = 0; i < n; i++) {
    Tensor real;
    node.args.push_back(Arg::of(ref_of(carried[i], &real)));
    const Type& in = program_->values[node.args[i].ref].type;
    const Type& made = program_->values[node.blocks[1].results[i]].type;
    if (!(in == made))
      raise(AJ_INVALID_ARGUMENT, "while_loop: value ", i, " is ", print_type(*program_, in),
            " at first and ", print_type(*program_, made), " after a turn; it must stay alike");
    node.results.push_back({{add(Type(in))}, false});
  }
  run_node(std::move(node), out);
}

void Recording::run_node(Node n, aj_tensor** out) {
  std::vector<Tensor> regs(program_->values.size());
  for (size_t v = 0; v < shown_.size(); v++) {
    aj_tensor* t = shown_[v].get();
    regs[v] = is_traced(t) ? Tensor::borrow(payload_of(t)->real) : shown_[v];
  }
  for (auto& [alias, v] : aliases_)
    regs[v] = is_traced(alias) ? Tensor::borrow(payload_of(alias)->real) : Tensor::borrow(alias);
  {
    uint64_t include, exclude;
    dispatch().thread_keys(&include, &exclude);
    dispatch().set_thread_keys(include & ~capture_key, exclude);
    NoGradGuard off;
    try {
      run_statement(*program_, n, regs);
    } catch (...) {
      dispatch().set_thread_keys(include, exclude);
      throw;
    }
    dispatch().set_thread_keys(include, exclude);
  }
  n.no_grad = grad_ && !autograd().grad_mode();
  for (size_t i = 0; i < n.results.size(); i++) {
    const uint32_t v = n.results[i].values[0];
    out[i] = show(regs[v], v, nullptr).take();
  }
  line_ = site_ = 0;
  emit(std::move(n));
}

}  // namespace adjoin::graph

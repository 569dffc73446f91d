// extensions/graph/generalize.cpp: programs of one function that were captured with other sizes
// become one. Where a number differs between them it is a sum of products of the sizes, which the
// samples determine; the last sample only checks.
#include <algorithm>
#include <cmath>

#include "value.hpp"

namespace adjoin::graph {
namespace {

class Generalizing {
 public:
  Generalizing(const std::vector<const Program*>& programs,
               const std::vector<std::vector<int64_t>>& samples,
               const std::vector<std::string>& symbols)
      : programs_(programs), samples_(samples), unknowns_(size_t(1) << symbols.size()) {
    into_ = std::make_unique<Program>();
    const Program& p = *programs[0];
    into_->name = p.name, into_->form_in = p.form_in, into_->form_out = p.form_out;
    into_->symbols = symbols;
    into_->weights = p.weights;
    into_->lines = p.lines;
    into_->draw = p.draw;
  }

  std::unique_ptr<Program> whole() {
    const Program& first = *programs_[0];
    std::vector<const Block*> bodies;
    for (const Program* p : programs_) {
      if (p->values.size() != first.values.size() || p->weights.size() != first.weights.size() ||
          p->form_in != first.form_in || p->form_out != first.form_out)
        differ("how many calls there are");
      bodies.push_back(&p->body);
    }
    for (size_t v = 0; v < first.values.size(); v++)
      into_->values.push_back({first.values[v].name, type(v), {}});
    for (size_t i = 0; i < first.weights.size(); i++) weight(i);
    into_->body = block(bodies);
    verify(*into_);
    return std::move(into_);
  }

 private:
  [[noreturn]] void differ(std::string_view what) const {
    const std::string at =
        line_ && line_ < into_->lines.size() ? " (" + into_->lines[line_] + ")" : "";
    raise(AJ_UNIMPLEMENTED, "trace: ", what, " differs with the sizes", at,
          ": a program with dynamic sizes makes the same calls for all of them; leave this "
          "dimension fixed, or "
          "trace a program for each size");
  }
  template <class F>
  auto all_same(std::string_view what, const F& of) const {
    auto value = of(0);
    for (size_t i = 1; i < programs_.size(); i++)
      if (!(of(i) == value)) differ(what);
    return value;
  }

  // What the numbers are, one of each program: a number, or a size.
  bool fit(const std::vector<int64_t>& numbers, Size* out) const {
    if (std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == numbers[0]; }))
      return false;
    // Solve for a factor of each product of symbols, by elimination.
    const size_t n = unknowns_;
    std::vector<std::vector<double>> m(n, std::vector<double>(n + 1));
    for (size_t i = 0; i < n; i++) {
      for (size_t j = 0; j < n; j++) m[i][j] = double(product(samples_[i], j));
      m[i][n] = double(numbers[i]);
    }
    for (size_t c = 0; c < n; c++) {
      size_t pivot = c;
      for (size_t r = c + 1; r < n; r++)
        if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
      std::swap(m[c], m[pivot]);
      if (m[c][c] == 0) differ("a size");
      for (size_t r = 0; r < n; r++) {
        if (r == c) continue;
        const double by = m[r][c] / m[c][c];
        for (size_t k = c; k <= n; k++) m[r][k] -= by * m[c][k];
      }
    }
    Size s;
    for (size_t j = n; j-- > 0;) {
      const auto by = int64_t(std::llround(m[j][n] / m[j][j]));
      if (by) s.terms.push_back({symbols_of(j), by});
    }
    for (size_t i = 0; i < numbers.size(); i++)
      if (s.at(samples_[i].data()) != numbers[i])
        differ("a number that is no sum of products of sizes");
    *out = std::move(s);
    return true;
  }
  static int64_t product(const std::vector<int64_t>& symbols, size_t mask) {
    int64_t p = 1;
    for (size_t i = 0; i < symbols.size(); i++)
      if (mask >> i & 1) p *= symbols[i];
    return p;
  }
  static std::vector<uint32_t> symbols_of(size_t mask) {
    std::vector<uint32_t> list;
    for (uint32_t i = 0; mask >> i; i++)
      if (mask >> i & 1) list.push_back(i);
    return list;
  }

  Type type(size_t v) {
    Type t = programs_[0]->values[v].type;
    auto of = [&](size_t i) -> const Type& { return programs_[i]->values[v].type; };
    all_same("a dtype", [&](size_t i) {
      return std::make_tuple(of(i).other, of(i).dtype.code, of(i).dtype.bits, of(i).shape.size());
    });
    for (size_t d = 0; d < t.shape.size(); d++) {
      std::vector<int64_t> numbers;
      for (size_t i = 0; i < programs_.size(); i++) numbers.push_back(of(i).shape[d]);
      if (Size s; fit(numbers, &s)) t.shape[d] = -1 - int64_t(into_->size(std::move(s)));
    }
    return t;
  }

  void weight(size_t w) const {
    static constinit Op equal("equal");
    const Weight& first = programs_[0]->weights[w];
    all_same("a parameter", [&](size_t i) {
      return std::make_pair(programs_[i]->weights[w].name, programs_[i]->weights[w].value);
    });
    for (const Program* p : programs_) {
      const aj_value both[] = {value(first.tensor), value(p->weights[w].tensor)};
      if (both[0].v.tensor != both[1].v.tensor &&
          (!(type_of(both[0]) == type_of(both[1])) || !run_as<bool>(equal.get(), both, 2)))
        differ(text("the constant '", first.name, "', a tensor that was not made by calls,"));
    }
  }
  static Type type_of(const aj_value& v) {
    const DLTensor& t = v.v.tensor->dl;
    return {false, t.dtype, {t.shape, t.shape + t.ndim}};
  }

  Arg argument(const std::vector<const Arg*>& args) {
    Arg a = *args[0];
    auto but_numbers = [](Arg b) {
      b.i = 0, std::fill(b.ints.begin(), b.ints.end(), 0);
      return b;
    };
    all_same("an argument", [&](size_t i) { return but_numbers(*args[i]); });
    auto sized = [&](auto of, size_t item, size_t count) {
      std::vector<int64_t> numbers;
      for (const Arg* b : args) numbers.push_back(of(*b));
      Size s;
      if (!fit(numbers, &s)) return false;
      a.sizes.resize(count, kNone);
      a.sizes[item] = into_->size(std::move(s));
      return true;
    };
    if (a.tag == AJ_INT) {
      if (sized([](const Arg& b) { return b.i; }, 0, 1)) a.i = 0;
    } else {
      all_same("an argument", [&](size_t i) { return args[i]->i; });
    }
    for (size_t k = 0; k < a.ints.size(); k++)
      if (sized([&](const Arg& b) { return b.ints[k]; }, k, a.ints.size())) a.ints[k] = 0;
    return a;
  }

  Block block(const std::vector<const Block*>& blocks) {
    Block made;
    made.inputs = blocks[0]->inputs;
    made.results = all_same("a result", [&](size_t i) { return blocks[i]->results; });
    all_same("how many calls there are", [&](size_t i) { return blocks[i]->nodes.size(); });
    for (size_t k = 0; k < blocks[0]->nodes.size(); k++) {
      std::vector<const Node*> nodes;
      for (const Block* b : blocks) nodes.push_back(&b->nodes[k]);
      made.nodes.push_back(node(nodes));
    }
    return made;
  }

  Node node(const std::vector<const Node*>& nodes) {
    const Node& first = *nodes[0];
    line_ = first.line;
    all_same("the call that is made", [&](size_t i) {
      const Node& n = *nodes[i];
      return std::make_tuple(n.what, n.op, n.into, n.no_grad, n.args.size(), n.blocks.size());
    });
    all_same("a result", [&](size_t i) { return nodes[i]->results; });
    Node made = first;
    for (size_t a = 0; a < first.args.size(); a++) {
      std::vector<const Arg*> args;
      for (const Node* n : nodes) args.push_back(&n->args[a]);
      made.args[a] = argument(args);
    }
    for (size_t b = 0; b < first.blocks.size(); b++) {
      std::vector<const Block*> blocks;
      for (const Node* n : nodes) blocks.push_back(&n->blocks[b]);
      made.blocks[b] = block(blocks);
    }
    return made;
  }

  const std::vector<const Program*>& programs_;
  const std::vector<std::vector<int64_t>>& samples_;
  size_t unknowns_;
  std::unique_ptr<Program> into_;
  uint32_t line_ = 0;
};

}  // namespace

std::unique_ptr<Program> generalize(const std::vector<const Program*>& programs,
                                    const std::vector<std::vector<int64_t>>& samples,
                                    const std::vector<std::string>& symbols) {
  return Generalizing(programs, samples, symbols).whole();
}

}  // namespace adjoin::graph

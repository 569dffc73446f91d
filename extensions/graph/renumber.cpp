// extensions/graph/renumber.cpp: a program got other numbers in some calls. Its plan takes them
// over, and of its parts only those are compiled again that hold such a call.
#include <algorithm>

#include "seen.hpp"
#include "value.hpp"

namespace adjoin::graph {

bool renumber(const Program& p, Plan& plan, const std::vector<const Node*>& changed) {
  auto is = [&](const Step& s) {
    return std::find(changed.begin(), changed.end(), s.node) != changed.end();
  };
  auto take = [&](Step& s) {
    for (size_t i = 0; is(s) && i < s.node->args.size(); i++)
      if (const Arg& a = s.node->args[i]; a.kind == Arg::Kind::constant && a.sizes.empty())
        s.args[i] = value_of(a);
  };
  for (Sequence* body : {&plan.free.body, &plan.taped.body, &plan.plain.body}) {
    std::for_each(body->steps.begin(), body->steps.end(), take);
    for (Group& g : body->groups) std::for_each(g.steps.begin(), g.steps.end(), take);
    for (Part& part : body->parts) {
      const Step* first = body->steps.data() + part.first;
      if (std::none_of(first, first + part.count, is)) continue;
      Seen seen{&p, {}, part.inputs, part.outputs, {}, {}};
      for (size_t i = 0; i < part.count; i++) seen.nodes.push_back(first[i].node);
      aj_object* made = nullptr;
      if (aj_status* s = part.compiler->compile(part.compiler->self, seen.graph(), &made)) {
        core().status_free(s);
        return false;
      }
      part.program = {made, [](aj_object* o) { core().release(o); }};
    }
  }
  return true;
}

}  // namespace adjoin::graph

// extensions/graph/passes/arrange.cpp: what compilers claim becomes parts, and each part's calls
// stand together.
//
// Calls move over others, but never over a statement that writes, draws or has blocks: between two
// of these is a region of its own. In a region a part takes a call if nothing that the call needs
// depends on the part from outside of it; what depends on which part is a mask of 64 bits, which a
// region has no more parts than. Where the order is to stay, a region is calls that stand together.
// A part runs when its last call has what it needs. So a call that waits for others starts a part
// of its own where the calls before it have arguments to free: sums of gradients are made one by
// one.
#include <algorithm>
#include <queue>

#include "../seen.hpp"
#include "passes.hpp"

namespace adjoin::graph {

const aj_services* service_table;

namespace {

bool is_barrier(const Node& n) {
  return n.what == Node::What::branch || n.what == Node::What::loop || has_effect(n) || n.keep;
}

// May its result show an argument's memory? A part's results are new and dense, so no compiler gets
// such a call, whatever it claims: what reads the result would find other strides than eager's.
bool may_show(const Program& p, const Node& n) {
  const OpFacts& f = facts_of(n.op);
  for (size_t i = 0; i < n.args.size(); i++) {
    if (!(f.params[i].flags & AJ_PARAM_ALIASED) || n.args[i].kind != Arg::Kind::value) continue;
    const DLDataType from = p.values[n.args[i].ref].type.dtype;
    for (const Result& r : n.results)
      for (uint32_t v : r.values)
        if (p.values[v].type.dtype == from) return true;
  }
  return false;
}

struct Offer {
  const aj_compiler* compiler;
  std::string name;
};

std::vector<Offer> offers_for(int32_t device_type) {
  std::vector<Offer> offers;
  const std::string slot = "aj.compiler/" + std::string(view_of(core().device_name(device_type)));
  const uint32_t n = service_table->count(str(slot));
  for (uint32_t i = 0; i < n; i++) {
    aj_service_def d{};
    d.struct_size = sizeof d;
    check(service_table->at(str(slot), i, &d));
    const auto* c = static_cast<const aj_compiler*>(d.table);
    if (c->struct_size >= sizeof(aj_compiler)) offers.push_back({c, std::string(view_of(d.name))});
  }
  return offers;
}

void log_once(const std::string& who, aj_status* status) {
  const bool declines = core().status_code(status) == AJ_UNIMPLEMENTED;
  if (!declines) {
    const std::string said = text("compiler '", who, "': ", view_of(core().status_message(status)),
                                  "; its calls are made one by one");
    core().log(1, AJ_STR_LIT("graph"), str(said));
  }
  core().status_free(status);
}

class Arranging {
 public:
  Arranging(const Program& p, const Block& b, int32_t device_type, bool in_order,
            std::vector<Offer> offers)
      : p_(p),
        b_(b),
        device_type_(device_type),
        in_order_(in_order),
        offers_(std::move(offers)),
        claimed_(b.nodes.size()),
        part_(b.nodes.size(), kNone),
        made_by_(p.values.size(), kNone),
        uses_(p.values.size()) {}

  Arranged whole() {
    claims();
    for (const Node& n : b_.nodes) each_use(n, [&](uint32_t v) { uses_[v]++; });
    for (uint32_t v : b_.results) uses_[v]++;
    for (size_t i = 0; i < b_.nodes.size(); i++)
      for (const Result& r : b_.nodes[i].results)
        for (uint32_t v : r.values) made_by_[v] = uint32_t(i);
    for (size_t i = 0; i < b_.nodes.size();) {
      if (is_barrier(b_.nodes[i])) {
        out_.order.push_back(uint32_t(i++));
        continue;
      }
      size_t end = i;
      open_.clear(), by_key_.clear();
      for (; end < b_.nodes.size() && !is_barrier(b_.nodes[end]) && together(i, end); end++)
        if (!assign(i, end)) break;
      sort(i, end);
      i = end;
    }
    make();
    return std::move(out_);
  }

 private:
  struct Claim {
    uint32_t offer = kNone, cluster = 0;
  };
  // A part while its region is looked at.
  struct Open {
    Claim key;
    bool no_grad;
    uint64_t needs;  // parts that it depends on
    std::vector<uint32_t> nodes;
  };

  // May the two be in one region?
  bool together(size_t i, size_t j) const {
    const Claim &a = claimed_[i], &b = claimed_[j];
    return !in_order_ || (a.offer == b.offer && a.cluster == b.cluster &&
                          b_.nodes[i].no_grad == b_.nodes[j].no_grad);
  }

  void claims() {
    std::vector<uint32_t> cluster(b_.nodes.size());
    for (uint32_t o = 0; o < offers_.size(); o++) {
      Seen seen{&p_, {}, {}, {}, {}, {}};
      for (const Node& n : b_.nodes) seen.nodes.push_back(&n);
      std::fill(cluster.begin(), cluster.end(), 0);
      const aj_compiler& c = *offers_[o].compiler;
      if (aj_status* s = c.claim(c.self, seen.graph(), cluster.data())) {
        log_once(offers_[o].name, s);
        continue;
      }
      for (size_t i = 0; i < cluster.size(); i++)
        if (cluster[i] && claimed_[i].offer == kNone && b_.nodes[i].what == Node::What::call &&
            !may_show(p_, b_.nodes[i]))
          claimed_[i] = {o, cluster[i]};
    }
  }

  // The parts that these need, and those that they need.
  uint64_t all_of(uint64_t mask) const {
    for (uint64_t left = mask, more; left; left = more & ~mask, mask |= more) {
      more = 0;
      for (; left; left &= left - 1) more |= open_[size_t(__builtin_ctzll(left))].needs;
    }
    return mask;
  }

  // Would the part wait for an argument of the call, and keep more alive until then than it makes?
  bool holds_up(const Node& n, size_t begin, size_t i, uint32_t part) const {
    const std::vector<uint32_t>& nodes = open_[part].nodes;
    bool waits = false;
    each_use(n, [&](uint32_t v) {
      const uint32_t by = made_by_[v];
      waits |= by != kNone && by > nodes.back() && by < i && part_[by] != part && !shows_only(by);
    });
    if (!waits) return false;
    std::map<uint32_t, uint32_t> here;  // uses of what is made outside of the part
    for (uint32_t k : nodes)
      each_use(b_.nodes[k], [&](uint32_t v) {
        const uint32_t by = made_by_[v];
        if (by != kNone && (by < begin || part_[by] != part)) here[v]++;
      });
    return std::count_if(here.begin(), here.end(),
                         [&](const auto& use) { return uses_[use.first] == use.second; }) > 1;
  }
  bool shows_only(uint32_t node) const {
    const Node& n = b_.nodes[node];
    return n.what == Node::What::call && facts_of(n.op).kind == "view";
  }

  // False: the region has as many parts as it can have, and ends here.
  bool assign(size_t begin, size_t i) {
    const Node& n = b_.nodes[i];
    const Claim& key = claimed_[i];
    const auto known = by_key_.find({key.offer, key.cluster});
    const uint32_t mine = key.offer != kNone && known != by_key_.end() ? known->second : kNone;
    uint64_t needs = 0;  // from outside of the part
    bool reads_mine = false;
    each_use(n, [&](uint32_t v) {
      const uint32_t by = made_by_[v];
      if (by == kNone || by < begin || by >= i) return;
      if (part_[by] == kNone)
        needs |= needs_[by];
      else if (part_[by] != mine)
        needs |= uint64_t(1) << part_[by];
      else
        reads_mine = true;
    });
    needs = all_of(needs);
    needs_.resize(b_.nodes.size());
    if (key.offer == kNone) {
      needs_[i] = needs;
      return true;
    }
    if (mine != kNone && !(needs >> mine & 1) && open_[mine].no_grad == n.no_grad &&
        !holds_up(n, begin, i, mine)) {
      open_[mine].needs |= needs;
      open_[mine].nodes.push_back(uint32_t(i));
      part_[i] = mine;
      return true;
    }
    if (open_.size() == 64) return false;
    if (reads_mine) needs = all_of(needs | uint64_t(1) << mine);
    part_[i] = uint32_t(open_.size());
    by_key_[{key.offer, key.cluster}] = part_[i];
    open_.push_back({key, n.no_grad, needs, {uint32_t(i)}});
    return true;
  }

  // Statements begin .. end in an order in which parts stand together; else as they were.
  void sort(size_t begin, size_t end) {
    // A unit is a part, or a statement that is in none; it is called by its first statement.
    auto unit = [&](size_t i) {
      return part_[i] == kNone ? uint32_t(i) : open_[part_[i]].nodes[0];
    };
    std::vector<std::vector<uint32_t>> next(end - begin);
    std::vector<uint32_t> waits(end - begin);
    for (size_t i = begin; i < end; i++)
      each_use(b_.nodes[i], [&](uint32_t v) {
        const uint32_t by = made_by_[v];
        if (by == kNone || by < begin || by >= end || unit(by) == unit(i)) return;
        next[unit(by) - begin].push_back(unit(i));
        waits[unit(i) - begin]++;
      });
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (size_t i = begin; i < end; i++)
      if (unit(i) == i && !waits[i - begin]) ready.push(uint32_t(i));
    while (!ready.empty()) {
      const uint32_t u = ready.top();
      ready.pop();
      if (part_[u] == kNone) {
        out_.order.push_back(u);
      } else {
        const Open& o = open_[part_[u]];
        Part part;
        part.first = out_.order.size(), part.count = o.nodes.size();
        part.compiler = offers_[o.key.offer].compiler;
        part.name = offers_[o.key.offer].name;
        out_.parts.push_back(std::move(part));
        out_.order.insert(out_.order.end(), o.nodes.begin(), o.nodes.end());
      }
      for (uint32_t w : next[u - begin])
        if (--waits[w - begin] == 0) ready.push(w);
    }
  }

  // Programs of the parts; those that have none are left to the calls.
  void make() {
    std::vector<uint32_t> inside(p_.values.size());
    std::vector<bool> own(p_.values.size());
    std::vector<uint32_t> known(p_.values.size());  // of which part it is an input
    uint32_t number = 0;
    std::erase_if(out_.parts, [&](Part& part) {
      Seen seen{&p_, {}, {}, {}, {}, {}};
      for (size_t k = 0; k < part.count; k++) {
        const Node& n = b_.nodes[out_.order[part.first + k]];
        seen.nodes.push_back(&n);
        for (const Result& r : n.results)
          for (uint32_t v : r.values) own[v] = true;
      }
      number++;
      for (const Node* n : seen.nodes)
        each_use(*n, [&](uint32_t v) {
          if (own[v]) {
            inside[v]++;
          } else if (known[v] != number) {
            known[v] = number;
            seen.inputs.push_back(v);
          }
        });
      for (const Node* n : seen.nodes)
        for (const Result& r : n->results)
          for (uint32_t v : r.values) {
            if (uses_[v] > inside[v]) seen.outputs.push_back(v);
            inside[v] = 0, own[v] = false;
          }
      part.no_grad = seen.nodes[0]->no_grad;
      part.by_element = std::all_of(seen.nodes.begin(), seen.nodes.end(), [](const Node* n) {
        return is_element_wise(facts_of(n->op).kind);
      });
      part.inputs = seen.inputs, part.outputs = seen.outputs;
      for (uint32_t v : part.inputs) part.input_types.push_back(p_.values[v].type);
      for (uint32_t v : part.outputs) part.output_types.push_back(p_.values[v].type);
      if (part.inputs.size() + part.outputs.size() > kMostPorts || part.outputs.empty())
        return true;
      aj_object* made = nullptr;
      if (aj_status* s = part.compiler->compile(part.compiler->self, seen.graph(), &made)) {
        log_once(part.name, s);
        return true;
      }
      part.program = {made, [](aj_object* o) { core().release(o); }};
      part.device_type = device_type_;
      return false;
    });
  }

  const Program& p_;
  const Block& b_;
  int32_t device_type_;
  bool in_order_;
  std::vector<Offer> offers_;
  std::vector<Claim> claimed_;
  std::vector<uint32_t> part_, made_by_, uses_;
  std::vector<uint64_t> needs_;
  std::vector<Open> open_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> by_key_;
  Arranged out_;
};

}  // namespace

Arranged arrange(const Program& p, const Block& b, int32_t device_type, bool in_order) {
  std::vector<Offer> offers = offers_for(device_type);
  if (offers.empty()) {
    Arranged as_it_is;
    for (uint32_t i = 0; i < b.nodes.size(); i++) as_it_is.order.push_back(i);
    return as_it_is;
  }
  return Arranging(p, b, device_type, in_order, std::move(offers)).whole();
}

}  // namespace adjoin::graph

// core/tape/walk.cpp: what a pass holds: claiming what leads from the roots, letting go on
// error.
#include <algorithm>
#include <unordered_set>

#include "core/tape/engine.hpp"

namespace adjoin {
namespace {

bool earlier(const Node* a, const Node* b) { return a->seq < b->seq; }

}  // namespace

void slots_release(void* slot, uint32_t nresults) {
  if (!slot) return;
  if (nresults == 1) return release(static_cast<aj_tensor*>(slot));
  auto** all = static_cast<aj_tensor**>(slot);
  for (uint32_t i = 0; i < nresults; i++) release(all[i]);
  delete[] all;
}

void NodeStack::grow() {
  Node** bigger = new Node*[room_ * 2];
  std::copy_n(data_, n_, bigger);
  if (data_ != few_) delete[] data_;
  data_ = bigger;
  room_ *= 2;
}

void NodeStack::push_ready(Node* n) {
  push(n);
  if (n_ > 1) std::push_heap(data_, data_ + n_, earlier);
}

Node* NodeStack::pop_ready() {
  if (n_ > 1) std::pop_heap(data_, data_ + n_, earlier);
  return pop();
}

void Run::visit(const Edge& e, NodeStack* next) {
  if (!e.target) return;
  if (e.flags & kEdgeLeaf) {
    Meta* m = priv(static_cast<aj_tensor*>(e.target)).meta;
    claim(m);
    ++*deps_of(m);
    return;
  }
  Node* n = static_cast<Node*>(e.target);
  if (claim(n)) next->push(n);
  ++*deps_of(n);
}

void Run::walk() {
  NodeStack next;
  for (uint32_t i = 0; i < nroots_; i++) visit(root(i).edge, &next);
  while (!next.empty()) {
    Node* n = next.pop();
    const Edge* e = n->edges();
    for (uint32_t i = 0; i < n->nedges; i++) visit(e[i], &next);
  }
}

// A node is needed if one of its edges leads to an input; what is not needed is let go.
void Run::mark_needed(std::span<Node* const> order, std::span<Meta* const> leaves) {
  for (const Wanted& w : wanted_) {
    uint32_t* d =
        w.leaf ? deps_of(static_cast<Meta*>(w.target)) : deps_of(static_cast<Node*>(w.target));
    if (d) *d |= kCaptured;
  }
  for (Node* n : order)  // targets come before what leads to them
    for (uint32_t i = 0; i < n->nedges; i++)
      if (uint32_t* d = deps_of(n->edges()[i]); d && (*d & (kNeeded | kCaptured)))
        *deps_of(n) |= kNeeded;
  for (Node* n : order)
    if (!(*deps_of(n) & (kNeeded | kCaptured))) unclaim(n);
  for (Meta* m : leaves)
    if (!(*deps_of(m) & kCaptured)) unclaim(m);
  for (Node* n : order) {
    uint32_t* mine = deps_of(n);
    if (!mine || !(*mine & kNeeded)) continue;
    for (uint32_t i = 0; i < n->nedges; i++)
      if (uint32_t* d = deps_of(n->edges()[i])) ++*d;
  }
  for (uint32_t i = 0; i < nroots_; i++)
    if (uint32_t* d = deps_of(root(i).edge)) ++*d;
}

void Run::walk_restricted() {
  struct Frame {
    Node* n;
    uint32_t next;
  };
  std::vector<Frame> stack;
  std::vector<Node*> order;
  std::vector<Meta*> leaves;
  auto enter = [&](const Edge& e) {
    if (!e.target) return;
    if (e.flags & kEdgeLeaf) {
      Meta* m = priv(static_cast<aj_tensor*>(e.target)).meta;
      if (claim(m)) leaves.push_back(m);
    } else if (claim(static_cast<Node*>(e.target))) {
      stack.push_back({static_cast<Node*>(e.target), 0});
    }
  };
  for (uint32_t i = 0; i < nroots_; i++) {
    enter(root(i).edge);
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next < f.n->nedges) {
        enter(f.n->edges()[f.next++]);
      } else {
        order.push_back(f.n);
        stack.pop_back();
      }
    }
  }
  mark_needed(order, leaves);
}

// Frees everything that this run holds. Nodes that have run are passed through: what they lead to
// may still be held.
void Run::abandon() {
  std::unordered_set<void*> seen;
  std::vector<Node*> next;
  auto enter = [&](const Edge& e) {
    if (!e.target || !seen.insert(e.target).second) return;
    auto drop = [&](auto* t) {
      if (t->run.load() != id_) return;
      slots_release(t->slot, results_of(t));
      unclaim(t);
    };
    if (e.flags & kEdgeLeaf) return drop(priv(static_cast<aj_tensor*>(e.target)).meta);
    drop(static_cast<Node*>(e.target));
    next.push_back(static_cast<Node*>(e.target));
  };
  for (uint32_t i = 0; i < nroots_; i++) enter(root(i).edge);
  while (!next.empty()) {
    Node* n = next.back();
    next.pop_back();
    for (uint32_t i = 0; i < n->nedges; i++) enter(n->edges()[i]);
  }
  if (side_)
    for (auto& [target, s] : *side_) slots_release(s.slot, s.nresults);
}

}  // namespace adjoin

// frontends/python/src/reach.cpp: what the results of a function depend on, by their history.
#include <algorithm>
#include <memory>
#include <vector>

#include "methods.hpp"
#include "node.hpp"
#include "tensor.hpp"
#include "trees.hpp"

namespace adjoin::py {
namespace {

// Nodes, each once and held, by open addressing. The few of a small function take no memory from
// the heap: this runs at every call of a derivative.
class Nodes {
 public:
  Nodes() = default;
  Nodes(const Nodes&) = delete;

  // False: it is there already.
  bool add(HeldNode node) {
    if (2 * ++count_ > size_) grow();
    HeldNode& place = find(places_, size_, node.get());
    if (place) return --count_, false;
    place = std::move(node);
    return true;
  }

 private:
  static constexpr size_t kFew = 64;

  static HeldNode& find(HeldNode* places, size_t size, aj_node* node) {
    auto at = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9e3779b97f4a7c15u >> 32;
    while (places[at &= size - 1] && places[at].get() != node) ++at;
    return places[at];
  }
  void grow() {
    auto more = std::make_unique<HeldNode[]>(2 * size_);
    for (size_t i = 0; i < size_; ++i)
      if (places_[i]) find(more.get(), 2 * size_, places_[i].get()) = std::move(places_[i]);
    many_ = std::move(more);
    places_ = many_.get();
    size_ *= 2;
  }

  HeldNode few_[kFew];
  std::unique_ptr<HeldNode[]> many_;
  HeldNode* places_ = few_;
  size_t size_ = kFew, count_ = 0;
};

// The nodes below tensors, one after the other, until a leaf is found that is not among `own`.
class Walk {
 public:
  explicit Walk(PyObject* own) : own_(size_t(PyList_GET_SIZE(own))) {
    std::transform(PySequence_Fast_ITEMS(own), PySequence_Fast_ITEMS(own) + own_.size(),
                   own_.begin(), tensor_of);
    std::sort(own_.begin(), own_.end());
  }
  // False with an error set, if the core could not say.
  bool from(aj_tensor* t) {
    if (found_ || !requires_grad(t)) return true;
    HeldNode node;
    uint32_t result = 0;
    if (failed(autograd->tensor_node(t, node.out(), &result))) return false;
    if (node) return add(std::move(node)), below();
    found_ = !is_own(t);
    return true;
  }
  bool found() const { return found_; }

 private:
  bool is_own(aj_tensor* t) const { return std::binary_search(own_.begin(), own_.end(), t); }
  void add(HeldNode held) {
    aj_node* node = held.get();
    if (!seen_.add(std::move(held))) return;
    if (aj_tensor* leaf = autograd->node_variable(node))
      found_ |= requires_grad(leaf) && !is_own(leaf);
    else
      left_.push_back(node);
  }
  bool below() {
    while (!left_.empty() && !found_) {
      aj_node* n = left_.back();
      left_.pop_back();
      for (uint32_t i = 0; i < autograd->node_edges(n) && !found_; ++i) {
        HeldNode next;
        uint32_t result = 0;
        if (failed(autograd->node_edge(n, i, next.out(), &result))) return false;
        if (next) add(std::move(next));
      }
    }
    return true;
  }

  std::vector<aj_tensor*> own_;
  Nodes seen_;
  std::vector<aj_node*> left_;
  bool found_ = false;
};

bool are_two(PyObject* const* args, Py_ssize_t n) {
  if (n == 2 && PyList_Check(args[1])) return true;
  PyErr_SetString(PyExc_TypeError, "a tree and a list of tensors are wanted");
  return false;
}

// tree_reaches(tree, leaves): does a tensor of the tree depend on a leaf that is not in the list?
PyObject* tree_reaches(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return are_two(args, n) ? answer(any_tensor(args[0], reaches, args[1])) : nullptr;
}

// tree_freed(tree, leaves): without history, but for tensors that depend on another leaf.
PyObject* tree_freed(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return are_two(args, n) ? mapped(args[0], freed, args[1]) : nullptr;
}

PyMethodDef functions[] = {
    {"tree_reaches", method(tree_reaches), METH_FASTCALL, nullptr},
    {"tree_freed", method(tree_freed), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

int reaches(PyObject* t, void* leaves) {
  Walk walk(static_cast<PyObject*>(leaves));
  return walk.from(tensor_of(t)) ? walk.found() : -1;
}

PyObject* freed(PyObject* t, void* leaves) {
  const int found = reaches(t, leaves);
  return found < 0 ? nullptr : found ? Py_NewRef(t) : detached(t, nullptr);
}

int init_reach(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py

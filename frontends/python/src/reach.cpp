// frontends/python/src/reach.cpp: what the results of a function depend on, by their history.
#include <unordered_set>
#include <vector>

#include "methods.hpp"
#include "node.hpp"
#include "tensor.hpp"
#include "trees.hpp"

namespace adjoin::py {
namespace {

// The nodes below tensors, one after the other, until a leaf is found that is not among `own`.
class Walk {
 public:
  explicit Walk(PyObject* own) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(own); ++i)
      own_.insert(tensor_of(PyList_GET_ITEM(own, i)));
  }
  // False with an error set, if the core could not say.
  bool from(aj_tensor* t) {
    if (found_ || !requires_grad(t)) return true;
    HeldNode node;
    uint32_t result = 0;
    if (failed(autograd->tensor_node(t, node.out(), &result))) return false;
    if (node) return add(std::move(node)), below();
    found_ = !own_.contains(t);
    return true;
  }
  bool found() const { return found_; }

 private:
  void add(HeldNode node) {
    if (!seen_.insert(node.get()).second) return;
    if (aj_tensor* leaf = autograd->node_variable(node.get()))
      found_ |= requires_grad(leaf) && !own_.contains(leaf);
    else
      left_.push_back(node.get());
    held_.push_back(std::move(node));
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

  std::unordered_set<const aj_tensor*> own_;
  std::unordered_set<aj_node*> seen_;
  std::vector<HeldNode> held_;  // keeps what `seen_` names
  std::vector<aj_node*> left_;
  bool found_ = false;
};

// Does a tensor depend on a leaf that is not in the list? -1 with an error set.
int reaches(PyObject* t, void* leaves) {
  Walk walk(static_cast<PyObject*>(leaves));
  return walk.from(tensor_of(t)) ? walk.found() : -1;
}

PyObject* freed(PyObject* t, void* leaves) {
  const int found = reaches(t, leaves);
  return found < 0 ? nullptr : found ? Py_NewRef(t) : detached(t, nullptr);
}

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

int init_reach(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py

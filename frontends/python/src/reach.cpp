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
int reaches(PyObject* t, PyObject* leaves) {
  Walk walk(leaves);
  return walk.from(tensor_of(t)) ? walk.found() : -1;
}

struct Asked {
  PyObject* leaves;
  bool any = false;
};

PyObject* with_two(PyObject* const* args, Py_ssize_t n, const char* name, Leaf leaf, Asked* asked) {
  if (n != 2 || !PyList_Check(args[1]))
    return PyErr_Format(PyExc_TypeError, "%s: a tree and a list of tensors are wanted", name);
  asked->leaves = args[1];
  return mapped(args[0], leaf, asked);
}

// tree_reaches(tree, leaves): does a tensor of the tree depend on a leaf that is not in the list?
PyObject* tree_reaches(PyObject*, PyObject* const* args, Py_ssize_t n) {
  Asked asked = {};
  auto look = [](PyObject* t, void* self) -> PyObject* {
    auto& a = *static_cast<Asked*>(self);
    const int found = a.any ? 1 : reaches(t, a.leaves);
    a.any |= found > 0;
    return found < 0 ? nullptr : Py_NewRef(t);
  };
  Ref same(with_two(args, n, "tree_reaches", look, &asked));
  return same ? PyBool_FromLong(asked.any) : nullptr;
}

// tree_freed(tree, leaves): without history, but for tensors that depend on another leaf.
PyObject* tree_freed(PyObject*, PyObject* const* args, Py_ssize_t n) {
  Asked asked = {};
  auto free = [](PyObject* t, void* self) -> PyObject* {
    const int found = reaches(t, static_cast<Asked*>(self)->leaves);
    if (found) return found < 0 ? nullptr : Py_NewRef(t);
    aj_tensor* made = nullptr;
    return failed(autograd->detach(tensor_of(t), &made)) ? nullptr : wrap(made);
  };
  return with_two(args, n, "tree_freed", free, &asked);
}

PyMethodDef functions[] = {
    {"tree_reaches", method(tree_reaches), METH_FASTCALL, nullptr},
    {"tree_freed", method(tree_freed), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

int init_reach(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace adjoin::py

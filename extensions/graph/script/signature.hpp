// extensions/graph/script/signature.hpp: how an op of the registry is called.
#pragma once
#include "../ir.hpp"

namespace adjoin::graph::script {

struct Signature {
  const aj_op* op = nullptr;
  const OpFacts* facts = nullptr;
  size_t positional = 0;
  size_t varargs = SIZE_MAX;  // the list that takes all further arguments
  bool factory = false, method_only = false, function_only = false, in_place = false;
  bool network = false;  // of nn: takes inplace=
  bool generator = false;
};

}  // namespace adjoin::graph::script

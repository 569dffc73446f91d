// core/op/waiting.hpp: ops that wait for their plugin. The file of an op pack says in its section
// .adjoin.ops what its ops are; they are in the registry from then on, and the first call of one
// loads the pack. Nobody who lists, binds or calls ops can tell them from others.
#pragma once
#include <string>
#include <string_view>

#include "core/op/registry.hpp"

namespace adjoin {

inline bool waits(const aj_op* op) { return op->nresults == kWaits; }

// One line of the section: "SCHEMA\tKIND\tTAGS\tWORDS\tDOC". WORDS are what the definition has
// besides: "allocates no-in-place body-records" (aj_op_def.flags), "infer", "body", "vjp" (a
// derivative of its own), "no-grad". A line without tabs, or of an op that is there, adds nothing.
void wait_for(std::string_view line, const std::string& plugin);

// Loads the plugin of an op that waits; an error if it does not define the op.
aj_status* end_wait(const aj_op* op);

// For a transaction's end, under the registry's lock: the op that waited for this definition, or
// NULL; whether it is as the file said; and the functions into the ops that waited, which are given
// back: their results are set when all else is there.
const aj_op* waited(const aj_op* now);
aj_status* check_promise(const aj_op* now);
std::vector<aj_op*> keep_promises(std::vector<aj_op*>* ops);

}  // namespace adjoin

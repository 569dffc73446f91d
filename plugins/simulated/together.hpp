// plugins/simulated/together.hpp: a collective of all its processes at once, in rank order.
#pragma once

#include <adjoin/kit/collective.hpp>
#include <vector>

namespace adjoin::simulated {

// What each process has started, by rank; of a send and its receive those two.
void together(const std::vector<kit::comm::Request*>& all);

}  // namespace adjoin::simulated

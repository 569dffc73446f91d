// plugins/simulated/together.hpp: a collective of all its processes at once, in rank order.
#pragma once

#include <vector>

#include "../comm/request.hpp"

namespace adjoin::simulated {

// What each process has started, by rank; of a send and its receive those two.
void together(const std::vector<comm::Request*>& all);

}  // namespace adjoin::simulated

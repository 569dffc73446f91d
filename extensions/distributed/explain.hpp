// extensions/distributed/explain.hpp: `adjoin explain-hang`: where each process of a job stands.
#pragma once

#include <string>
#include <vector>

namespace adjoin::distributed {

int explain_hang(const std::vector<std::string>& words);

}  // namespace adjoin::distributed

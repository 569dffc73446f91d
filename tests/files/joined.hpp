// tests/files/joined.hpp: the file formats of the C++ frontend, as a test inside of the tree
// includes them.
#pragma once
#include <adjoin/abi/capi.h>

#include <adjoin/kit/env.hpp>

namespace adjoin {
namespace AJ_HIDDEN kit {
inline const bool joined = (bind(aj_get_interface), true);
}
}  // namespace adjoin

#include "../../frontends/cpp/pt.hpp"
#include "../../frontends/cpp/safetensors.hpp"

namespace adjoin {
using kit::Error;
}

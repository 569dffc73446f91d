// core/call/lower.hpp: the interface "x.lower": what transforms of functions need of a call.
#pragma once
#include <adjoin/abi/transform.h>

namespace adjoin {
extern const aj_lower lower_table;
}

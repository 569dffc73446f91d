// core/tape/table.hpp: the interface "aj.autograd".
#pragma once
#include <adjoin/abi/autograd.h>

namespace adjoin {
extern const aj_autograd autograd_table;
}

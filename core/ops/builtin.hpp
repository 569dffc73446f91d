// core/ops/builtin.hpp: the rows of core/ops/*.toml, as opgen.py made them.
#pragma once
#include <adjoin/abi/op.h>

namespace adjoin {
aj_status* register_builtin_ops(aj_registrar* r);
}

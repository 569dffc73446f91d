// core/tape/held.hpp: what hangs on tensors and nodes alone, for collectors of cycles.
#pragma once

namespace adjoin {

const void* tape_table();  // "x.tape"

}  // namespace adjoin

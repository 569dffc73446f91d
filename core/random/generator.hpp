// core/random/generator.hpp: where random ops get their place in the Philox stream (the numbers are
// the kit's philox.hpp).
#pragma once
#include <adjoin/abi/core.h>

#include "core/base/status.hpp"

namespace adjoin {

aj_status* generator_new(DLDevice device,
                         aj_object** out);  // seeded like the default one when nobody has seeded it
aj_status* generator_default(DLDevice device, aj_object** out);  // out owns a reference
aj_status* generator_get(aj_object* g, uint64_t* seed, uint64_t* offset);
aj_status* generator_set(aj_object* g, uint64_t seed, uint64_t offset);
// The place of the next `blocks` blocks of 4 words; g NULL: the default of the CPU.
aj_status* generator_draw(aj_object* g, uint64_t blocks, uint64_t* seed, uint64_t* offset);
aj_status* manual_seed(uint64_t seed);
// Whose numbers these are; {} of what is no generator.
DLDevice generator_device(aj_object* g);

}  // namespace adjoin

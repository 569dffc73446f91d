// plugins/shadow/watch.hpp: the function at the key "shadow", and what it is told to do.
#ifndef ADJOIN_PLUGINS_SHADOW_WATCH_HPP
#define ADJOIN_PLUGINS_SHADOW_WATCH_HPP
#include <adjoin/abi/op.h>

#include <string>

#include "compare.hpp"

namespace adjoin::shadow {

void configure(std::string device, Limits limits);
int64_t compared();  // calls since configure
int64_t left_out();

aj_status* watch(void*, aj_call* call);

}  // namespace adjoin::shadow
#endif

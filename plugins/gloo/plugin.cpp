// plugins/gloo/plugin.cpp: libaj_gloo.so: the service aj.comm/cpu.
#include <adjoin/kit/engine.hpp>
#include <adjoin/kit/plugin.hpp>

#include "comm.hpp"

namespace adjoin::gloo_engine {
namespace {

const aj_comm table = kit::comm::Table<Comm>::of({"gloo", 4});

}  // namespace
}  // namespace adjoin::gloo_engine

AJ_PLUGIN(.name = "gloo", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/cpu;service:aj.comm/cpu/gloo") {
  plugin.service("aj.comm/cpu", "gloo", &adjoin::gloo_engine::table, 0);
  plugin.service("aj.comm/cpu/gloo", "gloo", &adjoin::gloo_engine::table, 0);
}

// plugins/shm/plugin.cpp: libaj_shm.so: the service aj.comm/cpu for the processes of one machine.
#include <adjoin/kit/engine.hpp>
#include <adjoin/kit/plugin.hpp>

#include "comm.hpp"

namespace adjoin::shm {
namespace {

const aj_comm table = kit::comm::Table<Comm>::of({"shm", 3});

}  // namespace
}  // namespace adjoin::shm

AJ_PLUGIN(.name = "shm", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/cpu;service:aj.comm/cpu/shm") {
  plugin.service("aj.comm/cpu", "shm", &adjoin::shm::table, -10);
  plugin.service("aj.comm/cpu/shm", "shm", &adjoin::shm::table, -10);
}

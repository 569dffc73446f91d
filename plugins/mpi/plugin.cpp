// plugins/mpi/plugin.cpp: libaj_mpi.so: the service aj.comm/cpu for processes that mpirun has
// started.
#include <adjoin/kit/engine.hpp>
#include <adjoin/kit/plugin.hpp>

#include "comm.hpp"

namespace adjoin::mpi {
namespace {

const aj_comm table = kit::comm::Table<Comm>::of({"mpi", 3});

}  // namespace
}  // namespace adjoin::mpi

AJ_PLUGIN(.name = "mpi", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/cpu;service:aj.comm/cpu/mpi") {
  plugin.service("aj.comm/cpu", "mpi", &adjoin::mpi::table, -20);
  plugin.service("aj.comm/cpu/mpi", "mpi", &adjoin::mpi::table, -20);
}

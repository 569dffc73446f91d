// plugins/faulty/orders.hpp: which faults are ordered, and when they come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace adjoin::faulty {

struct Order {
  int rank = -1;     // -1: all
  int64_t seq = -1;  // of a collective; -1: all
  std::string what;
  int64_t number = 0;
};

struct Orders {
  std::string engine = "gloo";
  std::vector<Order> all;

  // ADJOIN_FAULTY as it is now: "shm,1:5:kill,*:3:delay=200": an engine, then RANK:NUMBER:FAULT.
  // Raises what is wrong with it.
  static Orders read();
  const Order* find(int rank, uint64_t seq) const;
};

}  // namespace adjoin::faulty

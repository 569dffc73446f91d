// frontends/cli/conform/comm.hpp: is an engine for collectives (abi/comm.h) right?
#pragma once

#include <adjoin/abi/comm.h>

#include <complex>
#include <memory>
#include <string>
#include <vector>

namespace adjoin::cli::conform {

using Number = std::complex<double>;

// One collective of all ranks: what each gives, and what each must get.
struct CollectiveCase {
  int32_t kind, op;
  DLDataType dtype;
  uint64_t count;
  int32_t root;
  bool in_place;
  uint32_t id;

  Number given(int rank, size_t i) const;  // element i of what the rank gives
  size_t in_size(int rank, int n) const;   // elements; 0: NULL
  size_t out_size(int rank, int n) const;
  // Elements for and from each rank, of the kinds that have them.
  std::vector<uint64_t> in_counts(int rank, int n) const, out_counts(int rank, int n) const;
  std::vector<Number> wanted(int rank, int n) const;
  std::string name(int n) const;
  bool same(Number got, Number wanted) const;  // within what the dtype can tell apart
};

// All that an engine says it can do, in n processes.
std::vector<CollectiveCase> collective_cases(const aj_comm_caps& caps, int n);
void write_number(DLDataType dtype, void* at, size_t i, Number value);
Number read_number(DLDataType dtype, const void* at, size_t i);

int conform_comm(const std::vector<std::string>& words);

// Keys and values of one process.
std::unique_ptr<aj_store, void (*)(aj_store*)> local_store();

}  // namespace adjoin::cli::conform

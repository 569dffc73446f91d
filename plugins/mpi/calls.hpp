// plugins/mpi/calls.hpp: each kind of collective in MPI's words, without waiting. All of it is
// called by one thread.
#pragma once

#include <mpi.h>

#include <adjoin/kit/collective.hpp>
#include <deque>
#include <memory>
#include <vector>

namespace adjoin::mpi {

// Raises what MPI says of a code that is none of success.
void check(int code, const char* what);

// One collective or transfer on its way.
class Call {
 public:
  Call(MPI_Comm comm, int rank, int size, const kit::comm::Request& request);
  // Whether it is done; never waits. A collective that other processes do not agree on never is.
  bool advance();

 private:
  enum class At { begin, agree, pieces, stuck, done };
  void begin_transfer();
  void begin_agreement();
  void begin_piece();
  void begin_whole();
  void end_reduction(size_t first, size_t count);
  const char* scaled(size_t first, size_t count);  // what the process gives to a reduction
  int small(uint64_t n) const;

  MPI_Comm comm_;
  const int rank_, size_;
  const kit::comm::Request& request_;
  const aj_coll& c_;
  const size_t item_;
  At at_ = At::begin;
  MPI_Request running_ = MPI_REQUEST_NULL;
  uint32_t mine_[2], least_[2];  // the fingerprint and its complement; their minima
  size_t next_ = 0, piece_ = 0;  // elements: where the next piece begins, and how long the last was
  std::vector<char> held_;
  std::vector<int> counts_[2], places_[2];
};

}  // namespace adjoin::mpi

// plugins/mpi/calls.cpp: large reductions and broadcasts go in pieces: MPI would make a copy of the
// whole.
#include "calls.hpp"

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <map>

namespace adjoin::mpi {

using kit::raise;

namespace {

constexpr size_t kPiece = 4 << 20;  // bytes
constexpr int kOps = AJ_RED_PREMUL + 1;

// MPI gives a reduction no memory of its own: one function for each dtype and op.
constexpr DLDataType kDtypes[] = {
    kit::dtype_of<bool>,      kit::dtype_of<uint8_t>,        kit::dtype_of<int8_t>,
    kit::dtype_of<int16_t>,   kit::dtype_of<int32_t>,        kit::dtype_of<int64_t>,
    kit::dtype_of<kit::Half>, kit::dtype_of<kit::BFloat16>,  kit::dtype_of<float>,
    kit::dtype_of<double>,    kit::dtype_of<kit::Complex64>, kit::dtype_of<kit::Complex128>,
    kit::dtype_of<uint16_t>,  kit::dtype_of<uint32_t>,       kit::dtype_of<uint64_t>};
constexpr size_t kCombines = std::size(kDtypes) * kOps;
kit::comm::Combine combines[kCombines];

template <size_t N>
void combine(void* in, void* inout, int* n, MPI_Datatype*) {
  combines[N](inout, in, inout, size_t(*n));  // lower ranks stand first
}

template <size_t... N>
constexpr std::array<MPI_User_function*, sizeof...(N)> functions(std::index_sequence<N...>) {
  return {combine<N>...};
}
constexpr auto kFunctions = functions(std::make_index_sequence<kCombines>());

MPI_Op op_of(DLDataType dtype, int32_t op) {
  static MPI_Op made[kCombines];
  size_t d = 0;
  while (!kit::same(kDtypes[d], dtype)) d++;
  const size_t at = d * kOps + size_t(op);
  if (!combines[at]) {
    combines[at] = kit::comm::combine_of(dtype, op);
    check(MPI_Op_create(kFunctions[at], 1, &made[at]), "MPI_Op_create");
  }
  return made[at];
}

MPI_Datatype cell_of(size_t bytes) {
  static std::map<size_t, MPI_Datatype> made;
  auto found = made.find(bytes);
  if (found != made.end()) return found->second;
  MPI_Datatype t;
  check(MPI_Type_contiguous(int(bytes), MPI_BYTE, &t), "MPI_Type_contiguous");
  check(MPI_Type_commit(&t), "MPI_Type_commit");
  return made[bytes] = t;
}

}  // namespace

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(code, text, &n);
  raise(AJ_UNAVAILABLE, what, ": ", std::string_view(text, size_t(n)));
}

Call::Call(MPI_Comm comm, int rank, int size, const kit::comm::Request& request)
    : comm_(comm),
      rank_(rank),
      size_(size),
      request_(request),
      c_(request.get()),
      item_(request.item()),
      mine_{c_.fingerprint, ~c_.fingerprint} {}

int Call::small(uint64_t n) const {
  if (n > uint64_t(INT_MAX))
    raise(AJ_UNIMPLEMENTED, "a part of ", n, " elements; MPI counts up to ", INT_MAX);
  return int(n);
}

bool Call::advance() {
  for (;;) {
    if (at_ == At::stuck) return false;
    if (at_ == At::done) return true;
    int over = 1;
    if (running_ != MPI_REQUEST_NULL)
      check(MPI_Test(&running_, &over, MPI_STATUS_IGNORE), "MPI_Test");
    if (!over) return false;
    switch (at_) {
      case At::begin:
        if (kit::comm::is_transfer(c_))
          begin_transfer();
        else
          begin_agreement();
        break;
      case At::agree:
        if (least_[0] != mine_[0] || least_[1] != mine_[1]) {
          at_ = At::stuck;
          break;
        }
        at_ = At::pieces;
        begin_piece();
        break;
      case At::pieces:
        end_reduction(next_ - piece_, piece_);
        begin_piece();
        break;
      default:
        break;
    }
  }
}

void Call::begin_transfer() {
  const int tag = int(c_.fingerprint & 0x7fffffff), bytes = small(request_.bytes());
  if (c_.kind == AJ_COLL_SEND)
    check(MPI_Isend(request_.in(), bytes, MPI_BYTE, c_.peer, tag, comm_, &running_), "MPI_Isend");
  else
    check(MPI_Irecv(request_.out(), bytes, MPI_BYTE, c_.peer, tag, comm_, &running_), "MPI_Irecv");
  at_ = At::pieces;
  next_ = c_.count;
}

void Call::begin_agreement() {
  check(MPI_Iallreduce(mine_, least_, 2, MPI_UINT32_T, MPI_MIN, comm_, &running_),
        "MPI_Iallreduce");
  at_ = At::agree;
}

// A reduction takes what lies in the result, or in memory of ours.
const char* Call::scaled(size_t first, size_t count) {
  const char* from = request_.in() + first * item_;
  if (c_.op != AJ_RED_PREMUL) return from;
  held_.assign(from, from + count * item_);
  kit::comm::scale(c_.dtype, held_.data(), count, c_.scale);
  return held_.data();
}

void Call::begin_piece() {
  const bool sizes_differ = c_.kind == AJ_COLL_ALL_GATHER_V || c_.kind == AJ_COLL_ALL_TO_ALL_V;
  if (c_.kind == AJ_COLL_BARRIER || (!sizes_differ && next_ == c_.count)) {
    at_ = At::done;
    return;
  }
  if (sizes_differ && next_) {
    at_ = At::done;
    return;
  }
  piece_ = std::min<size_t>(c_.count - next_, kPiece / item_);
  const size_t first = next_, bytes = first * item_;
  const int n = int(piece_);
  MPI_Datatype cell = cell_of(item_);
  switch (c_.kind) {
    case AJ_COLL_BROADCAST: {
      if (rank_ == c_.peer && request_.in() != request_.out() && request_.out())
        std::memcpy(request_.out() + bytes, request_.in() + bytes, piece_ * item_);
      void* at =
          rank_ == c_.peer ? const_cast<char*>(request_.in()) + bytes : request_.out() + bytes;
      check(MPI_Ibcast(at, n, cell, c_.peer, comm_, &running_), "MPI_Ibcast");
      break;
    }
    case AJ_COLL_ALL_REDUCE: {
      const char* from = scaled(first, piece_);
      char* to = request_.out() + bytes;
      check(MPI_Iallreduce(from == to ? MPI_IN_PLACE : from, to, n, cell, op_of(c_.dtype, c_.op),
                           comm_, &running_),
            "MPI_Iallreduce");
      break;
    }
    case AJ_COLL_REDUCE: {
      const char* from = scaled(first, piece_);
      char* to = rank_ == c_.peer ? request_.out() + bytes : nullptr;
      check(MPI_Ireduce(from == to ? MPI_IN_PLACE : from, to, n, cell, op_of(c_.dtype, c_.op),
                        c_.peer, comm_, &running_),
            "MPI_Ireduce");
      break;
    }
    default:
      begin_whole();
      return;
  }
  next_ += piece_;
}

void Call::begin_whole() {
  MPI_Datatype cell = cell_of(item_);
  const int n = small(c_.count);
  const char* in = request_.in();
  char* out = request_.out();
  piece_ = 0;
  switch (c_.kind) {
    case AJ_COLL_REDUCE_SCATTER:
      piece_ = c_.count;
      check(MPI_Ireduce_scatter_block(scaled(0, c_.count * size_t(size_)), out, n, cell,
                                      op_of(c_.dtype, c_.op), comm_, &running_),
            "MPI_Ireduce_scatter_block");
      break;
    case AJ_COLL_ALL_GATHER: {
      const bool there = in == out + size_t(rank_) * request_.bytes();
      check(MPI_Iallgather(there ? MPI_IN_PLACE : in, n, cell, out, n, cell, comm_, &running_),
            "MPI_Iallgather");
      break;
    }
    case AJ_COLL_GATHER:
      check(MPI_Igather(in, n, cell, out, n, cell, c_.peer, comm_, &running_), "MPI_Igather");
      break;
    case AJ_COLL_SCATTER:
      check(MPI_Iscatter(in, n, cell, out, n, cell, c_.peer, comm_, &running_), "MPI_Iscatter");
      break;
    case AJ_COLL_ALL_TO_ALL:
      check(MPI_Ialltoall(in == out ? MPI_IN_PLACE : in, n, cell, out, n, cell, comm_, &running_),
            "MPI_Ialltoall");
      break;
    default: {
      const std::vector<uint64_t>* given[] = {&request_.in_counts(), &request_.out_counts()};
      for (int side = 0; side < 2; side++) {
        int place = 0;
        for (uint64_t count : *given[side]) {
          counts_[side].push_back(small(count));
          places_[side].push_back(place);
          place = small(uint64_t(place) + count);
        }
      }
      if (c_.kind == AJ_COLL_ALL_GATHER_V)
        check(MPI_Iallgatherv(in, counts_[1][size_t(rank_)], cell, out, counts_[1].data(),
                              places_[1].data(), cell, comm_, &running_),
              "MPI_Iallgatherv");
      else
        check(MPI_Ialltoallv(in, counts_[0].data(), places_[0].data(), cell, out, counts_[1].data(),
                             places_[1].data(), cell, comm_, &running_),
              "MPI_Ialltoallv");
    }
  }
  next_ = std::max<size_t>(c_.count, 1);
}

void Call::end_reduction(size_t first, size_t count) {
  if (!kit::comm::reduces(c_) || c_.op != AJ_RED_AVG || !count) return;
  if (c_.kind == AJ_COLL_REDUCE && rank_ != c_.peer) return;
  if (c_.kind == AJ_COLL_REDUCE_SCATTER) first = 0;
  kit::comm::scale(c_.dtype, request_.out() + first * item_, count, 1.0 / size_);
}

}  // namespace adjoin::mpi

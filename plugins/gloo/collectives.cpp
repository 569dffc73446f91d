// plugins/gloo/collectives.cpp: each kind of collective in Gloo's words.
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>

#include <adjoin/kit/combine.hpp>
#include <adjoin/kit/dtype.hpp>
#include <cstring>

#include "comm.hpp"

namespace adjoin::gloo_engine {

using kit::raise;
using kit::comm::combine_of;
using kit::comm::scale;

namespace {

// Gloo asks for a type to know its size.
template <size_t N>
struct Cell {
  char bytes[N];
};

template <class F>
void by_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(static_cast<Cell<1>*>(nullptr));
    case 2:
      return f(static_cast<Cell<2>*>(nullptr));
    case 4:
      return f(static_cast<Cell<4>*>(nullptr));
    case 8:
      return f(static_cast<Cell<8>*>(nullptr));
    case 16:
      return f(static_cast<Cell<16>*>(nullptr));
    default:
      raise(AJ_UNIMPLEMENTED, "gloo moves no elements of ", bytes, " bytes");
  }
}

void barrier(const Context& context, const aj_coll& c) {
  ::gloo::BarrierOptions o(context);
  o.setTag(c.fingerprint);
  ::gloo::barrier(o);
}

// Slots of messages of our own lie above those of Gloo's collectives.
uint64_t transfer_slot(const aj_coll& c) { return uint64_t{0xff} << 48 | c.fingerprint; }
uint64_t exchange_slot(const aj_coll& c) { return uint64_t{0xfe} << 48 | c.fingerprint; }

// Each process sends to each other one all that it has: a sum takes the time of one message, a ring
// of two takes that of two. Sums are in the order of ranks.
void reduce_by_exchange(const Context& context, const aj_coll& c, void* out, uint64_t count) {
  const size_t bytes = count * size_t(kit::bytes_of(c.dtype));
  const size_t me = size_t(context->rank), all = size_t(context->size);
  static thread_local std::vector<char> held;  // of the communicator's thread
  if (held.size() < all * bytes) held.resize(all * bytes);
  auto part = [&](size_t rank) { return held.data() + rank * bytes; };
  std::memcpy(part(me), out, bytes);
  const auto buffer = context->createUnboundBuffer(held.data(), all * bytes);
  for (size_t r = 0; r < all; r++)
    if (r != me) buffer->recv(int(r), exchange_slot(c), r * bytes, bytes);
  for (size_t r = 0; r < all; r++)
    if (r != me) buffer->send(int(r), exchange_slot(c), me * bytes, bytes);
  for (size_t r = 1; r < all; r++)
    if (!buffer->waitRecv()) raise(AJ_ABORTED, "the receive was broken off");
  const auto combine = combine_of(c.dtype, c.op);
  combine(out, part(0), part(1), count);
  for (size_t r = 2; r < all; r++) combine(out, out, part(r), count);
  for (size_t r = 1; r < all; r++)
    if (!buffer->waitSend()) raise(AJ_ABORTED, "the send was broken off");
}

// Up to so many bytes from the others, and among so few: above, what is sent twice costs more.
constexpr uint64_t kExchanged = 256u << 10, kExchangers = 8;
constexpr uint64_t kBcubeBelow = 16u << 20;  // where a ring of four and more is slower

template <class T>
void all_reduce(const Context& context, const aj_coll& c, const void* in, void* out,
                uint64_t count) {
  ::gloo::AllreduceOptions o(context);
  if (in != out) std::memcpy(out, in, count * sizeof(T));
  if (c.op == AJ_RED_PREMUL) scale(c.dtype, out, count, c.scale);
  const uint64_t others = uint64_t(context->size) - 1;
  if (others && others < kExchangers && others * count * sizeof(T) <= kExchanged) {
    reduce_by_exchange(context, c, out, count);
    if (c.op == AJ_RED_AVG) scale(c.dtype, out, count, 1.0 / context->size);
    return;
  }
  o.setOutput(static_cast<T*>(out), count);
  o.setReduceFunction(combine_of(c.dtype, c.op));
  o.setTag(c.fingerprint);
  if (context->size >= 4 && count * sizeof(T) < kBcubeBelow)
    o.setAlgorithm(::gloo::AllreduceOptions::Algorithm::BCUBE);
  ::gloo::allreduce(o);
  if (c.op == AJ_RED_AVG) scale(c.dtype, out, count, 1.0 / context->size);
}

template <class T>
void reduce(const Context& context, const aj_coll& c) {
  std::vector<T> sum(c.count);
  all_reduce<T>(context, c, c.in, sum.data(), c.count);
  if (context->rank == c.peer) std::memcpy(c.out, sum.data(), c.count * sizeof(T));
}

template <class T>
void reduce_scatter(const Context& context, const aj_coll& c) {
  const uint64_t all = c.count * uint64_t(context->size);
  std::vector<T> sum(all);
  all_reduce<T>(context, c, c.in, sum.data(), all);
  std::memcpy(c.out, sum.data() + c.count * uint64_t(context->rank), c.count * sizeof(T));
}

template <class T>
void broadcast(const Context& context, const aj_coll& c) {
  ::gloo::BroadcastOptions o(context);
  if (context->rank == c.peer && c.in != c.out) std::memcpy(c.out, c.in, c.count * sizeof(T));
  o.setOutput(static_cast<T*>(c.out), c.count);
  o.setRoot(c.peer);
  o.setTag(c.fingerprint);
  ::gloo::broadcast(o);
}

template <class T>
T* cells(const void* p) {
  return static_cast<T*>(const_cast<void*>(p));
}

template <class T>
void all_gather(const Context& context, const aj_coll& c) {
  ::gloo::AllgatherOptions o(context);
  o.setInput(cells<T>(c.in), c.count);
  o.setOutput(cells<T>(c.out), c.count * uint64_t(context->size));
  o.setTag(c.fingerprint);
  ::gloo::allgather(o);
}

template <class T>
void all_gather_v(const Context& context, const aj_coll& c) {
  ::gloo::AllgathervOptions o(context);
  o.setInput(cells<T>(c.in), c.count);
  o.setOutput(cells<T>(c.out), std::vector<size_t>(c.out_counts, c.out_counts + context->size));
  o.setTag(c.fingerprint);
  ::gloo::allgatherv(o);
}

template <class T>
void gather(const Context& context, const aj_coll& c) {
  ::gloo::GatherOptions o(context);
  o.setInput(cells<T>(c.in), c.count);
  if (context->rank == c.peer) o.setOutput(cells<T>(c.out), c.count * uint64_t(context->size));
  o.setRoot(c.peer);
  o.setTag(c.fingerprint);
  ::gloo::gather(o);
}

template <class T>
void scatter(const Context& context, const aj_coll& c) {
  ::gloo::ScatterOptions o(context);
  if (context->rank == c.peer) {
    std::vector<T*> parts;
    for (int i = 0; i < context->size; i++) parts.push_back(cells<T>(c.in) + c.count * uint64_t(i));
    o.setInputs(parts, c.count);
  }
  o.setOutput(cells<T>(c.out), c.count);
  o.setRoot(c.peer);
  o.setTag(c.fingerprint);
  ::gloo::scatter(o);
}

template <class T>
void all_to_all(const Context& context, const aj_coll& c) {
  ::gloo::AlltoallOptions o(context);
  const uint64_t all = c.count * uint64_t(context->size);
  o.setInput(cells<T>(c.in), all);
  o.setOutput(cells<T>(c.out), all);
  o.setTag(c.fingerprint);
  ::gloo::alltoall(o);
}

template <class T>
void all_to_all_v(const Context& context, const aj_coll& c) {
  ::gloo::AlltoallvOptions o(context);
  T nothing{};  // Gloo wants an address of empty memory, too
  o.setInput(c.in ? cells<T>(c.in) : &nothing,
             std::vector<int64_t>(c.in_counts, c.in_counts + context->size));
  o.setOutput(c.out ? cells<T>(c.out) : &nothing,
              std::vector<int64_t>(c.out_counts, c.out_counts + context->size));
  o.setTag(c.fingerprint);
  ::gloo::alltoallv(o);
}

template <class T>
void run_typed(const Context& context, const aj_coll& c) {
  switch (c.kind) {
    case AJ_COLL_BROADCAST:
      return broadcast<T>(context, c);
    case AJ_COLL_ALL_REDUCE:
      return all_reduce<T>(context, c, c.in, c.out, c.count);
    case AJ_COLL_REDUCE:
      return reduce<T>(context, c);
    case AJ_COLL_ALL_GATHER:
      return all_gather<T>(context, c);
    case AJ_COLL_ALL_GATHER_V:
      return all_gather_v<T>(context, c);
    case AJ_COLL_GATHER:
      return gather<T>(context, c);
    case AJ_COLL_REDUCE_SCATTER:
      return reduce_scatter<T>(context, c);
    case AJ_COLL_SCATTER:
      return scatter<T>(context, c);
    case AJ_COLL_ALL_TO_ALL:
      return all_to_all<T>(context, c);
    case AJ_COLL_ALL_TO_ALL_V:
      return all_to_all_v<T>(context, c);
    default:
      raise(AJ_UNIMPLEMENTED, "gloo has no collective of kind ", c.kind);
  }
}

}  // namespace

void run_collective(const Context& context, const aj_coll& c) {
  const bool sizes_differ = c.kind == AJ_COLL_ALL_GATHER_V || c.kind == AJ_COLL_ALL_TO_ALL_V;
  // Nothing is moved, but all come together, and see by the tag whether they mean the same.
  if (c.kind == AJ_COLL_BARRIER || (c.count == 0 && !sizes_differ)) return barrier(context, c);
  by_size(size_t(kit::bytes_of(c.dtype)), [&]<class T>(T*) { run_typed<T>(context, c); });
}

void run_transfer(const Context& context, const aj_coll& c) {
  char nothing = 0;  // of no elements a byte is moved
  const uint64_t bytes = c.count * uint64_t(kit::bytes_of(c.dtype));
  void* memory = c.kind == AJ_COLL_SEND ? const_cast<void*>(c.in) : c.out;
  auto buffer = bytes ? context->createUnboundBuffer(memory, bytes)
                      : context->createUnboundBuffer(&nothing, 1);
  const uint64_t slot = transfer_slot(c);
  if (c.kind == AJ_COLL_SEND) {
    buffer->send(c.peer, slot);
    if (!buffer->waitSend()) raise(AJ_ABORTED, "the send was broken off");
  } else {
    buffer->recv(c.peer, slot);
    if (!buffer->waitRecv()) raise(AJ_ABORTED, "the receive was broken off");
  }
}

}  // namespace adjoin::gloo_engine

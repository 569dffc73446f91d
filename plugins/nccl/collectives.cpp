// plugins/nccl/collectives.cpp: each kind of collective in NCCL's words; what it has not is made
// of sends, receives and broadcasts in one of its groups.
#include <adjoin/kit/combine.hpp>
#include <adjoin/kit/dtype.hpp>
#include <cstring>

#include "comm.hpp"

namespace adjoin::nccl_engine {

using kit::raise;

namespace {

uint32_t index_of(DLDataType dtype) {
  aj_dtype_info info = {};
  info.struct_size = sizeof info;
  kit::check(kit::core().dtype_info(dtype, &info));
  return info.index;
}

bool is_floating(uint32_t index) {
  return index == AJ_DT_FLOAT16 || index == AJ_DT_BFLOAT16 || index == AJ_DT_FLOAT32 ||
         index == AJ_DT_FLOAT64;
}

// One element: a factor in a dtype of floats.
void write_factor(DLDataType dtype, double factor, void* to) {
  switch (index_of(dtype)) {
    case AJ_DT_FLOAT32: {
      const float f = float(factor);
      std::memcpy(to, &f, sizeof f);
      return;
    }
    case AJ_DT_FLOAT64:
      std::memcpy(to, &factor, sizeof factor);
      return;
    default: {
      const uint16_t one = index_of(dtype) == AJ_DT_FLOAT16 ? 0x3c00 : 0x3f80;
      std::memcpy(to, &one, sizeof one);
      kit::comm::scale(dtype, to, 1, factor);
    }
  }
}

class Call {
 public:
  Call(const Context& context, const aj_coll& c)
      : nccl_(Nccl::get()),
        x_(context),
        c_(c),
        item_(size_t(kit::bytes_of(c.dtype))),
        in_(static_cast<const char*>(c.in)),
        out_(static_cast<char*>(c.out)) {}

  Result run() {
    switch (c_.kind) {
      case AJ_COLL_BARRIER:
        return nccl_.AllReduce(x_.scratch, x_.scratch, 1, kInt8, kMax, x_.handle, x_.stream);
      case AJ_COLL_BROADCAST:
        return nccl_.Broadcast(in_ ? in_ : out_, out_, bytes(), kInt8, c_.peer, x_.handle,
                               x_.stream);
      case AJ_COLL_ALL_REDUCE:
      case AJ_COLL_REDUCE:
      case AJ_COLL_REDUCE_SCATTER:
        return reduce();
      case AJ_COLL_ALL_GATHER:
        return nccl_.AllGather(in_, out_, bytes(), kInt8, x_.handle, x_.stream);
      case AJ_COLL_SEND:
        return nccl_.Send(in_, bytes(), kInt8, c_.peer, x_.handle, x_.stream);
      case AJ_COLL_RECV:
        return nccl_.Recv(out_, bytes(), kInt8, c_.peer, x_.handle, x_.stream);
      default:
        return grouped();
    }
  }

 private:
  size_t bytes() const { return c_.count * item_; }
  static bool goes(Result r) { return r == kSuccess || r == kInProgress; }

  Result reduce() {
    const int dtype = number_of(index_of(c_.dtype));
    if (dtype < 0) raise(AJ_UNIMPLEMENTED, kEngine, " does not compute in this dtype");
    constexpr int ops[] = {kSum, kAverage, kProduct, kMin, kMax};
    int op = c_.op == AJ_RED_PREMUL ? 0 : ops[c_.op];
    if (c_.op == AJ_RED_PREMUL) {
      double factor = 0;
      write_factor(c_.dtype, c_.scale, &factor);
      constexpr int kOnHost = 1;
      if (Result r = nccl_.RedOpCreatePreMulSum(&op, &factor, dtype, kOnHost, x_.handle)) return r;
    }
    const Result r =
        c_.kind == AJ_COLL_ALL_REDUCE
            ? nccl_.AllReduce(in_, out_, c_.count, dtype, op, x_.handle, x_.stream)
        : c_.kind == AJ_COLL_REDUCE
            ? nccl_.Reduce(in_, out_ ? out_ : const_cast<char*>(in_), c_.count, dtype, op, c_.peer,
                           x_.handle, x_.stream)
            : nccl_.ReduceScatter(in_, out_, c_.count, dtype, op, x_.handle, x_.stream);
    if (c_.op == AJ_RED_PREMUL) nccl_.RedOpDestroy(op, x_.handle);
    return r;
  }

  Result grouped() {
    if (Result r = nccl_.GroupStart()) return r;
    const Result r = parts();
    const Result end = nccl_.GroupEnd();
    return goes(r) ? end : r;
  }

  Result send(const char* from, size_t n, int to) {
    return n ? nccl_.Send(from, n, kInt8, to, x_.handle, x_.stream) : kSuccess;
  }
  Result receive(char* to, size_t n, int from) {
    return n ? nccl_.Recv(to, n, kInt8, from, x_.handle, x_.stream) : kSuccess;
  }

  Result parts() {
    Result r = kSuccess;
    const char* from = in_;
    char* to = out_;
    for (int i = 0; i < x_.size && goes(r); i++) {
      switch (c_.kind) {
        case AJ_COLL_GATHER:
          if (i == 0) r = send(in_, bytes(), c_.peer);
          if (x_.rank == c_.peer && goes(r)) r = receive(to, bytes(), i);
          to += bytes();
          break;
        case AJ_COLL_SCATTER:
          if (i == 0) r = receive(out_, bytes(), c_.peer);
          if (x_.rank == c_.peer && goes(r)) r = send(from, bytes(), i);
          from += bytes();
          break;
        case AJ_COLL_ALL_GATHER_V: {
          const size_t n = c_.out_counts[i] * item_;
          if (n)
            r = nccl_.Broadcast(i == x_.rank ? in_ : to, to, n, kInt8, i, x_.handle, x_.stream);
          to += n;
          break;
        }
        default: {  // all_to_all, with parts of one size or of several
          const size_t sent = c_.in_counts ? c_.in_counts[i] * item_ : bytes();
          const size_t got = c_.out_counts ? c_.out_counts[i] * item_ : bytes();
          r = send(from, sent, i);
          if (goes(r)) r = receive(to, got, i);
          from += sent, to += got;
        }
      }
    }
    return r;
  }

  const Nccl& nccl_;
  const Context& x_;
  const aj_coll& c_;
  const size_t item_;
  const char* in_;
  char* out_;
};

constexpr uint64_t bit(int n) { return uint64_t{1} << n; }

}  // namespace

Result queue_collective(const Context& context, const aj_coll& c) { return Call(context, c).run(); }

void capabilities(aj_comm_caps& io) {
  const Nccl& nccl = Nccl::get();
  io.flags = 0;
  io.kinds = bit(AJ_COLL_ALL_TO_ALL_V + 1) - 1;
  if (!nccl.Send || !nccl.Recv)
    for (int kind : {AJ_COLL_SEND, AJ_COLL_RECV, AJ_COLL_GATHER, AJ_COLL_SCATTER,
                     AJ_COLL_ALL_TO_ALL, AJ_COLL_ALL_TO_ALL_V})
      io.kinds &= ~bit(kind);
  for (uint32_t dtype = 0; dtype < 32; dtype++) {
    if (number_of(dtype) < 0) continue;
    for (int op : {AJ_RED_SUM, AJ_RED_PROD, AJ_RED_MIN, AJ_RED_MAX})
      io.dtypes[op] |= bit(int(dtype));
    if (!is_floating(dtype)) continue;
    if (nccl.version >= 21000) io.dtypes[AJ_RED_AVG] |= bit(int(dtype));
    if (nccl.RedOpCreatePreMulSum && nccl.RedOpDestroy) io.dtypes[AJ_RED_PREMUL] |= bit(int(dtype));
  }
  io.engine = kit::str(engine_text());
  io.path = kit::str(library_path());
}

}  // namespace adjoin::nccl_engine

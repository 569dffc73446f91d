// abi/kit/collective.hpp: a collective that an engine keeps: the counts are its own.
#ifndef ADJOIN_KIT_COLLECTIVE_HPP
#define ADJOIN_KIT_COLLECTIVE_HPP

#include <adjoin/abi/comm.h>

#include <adjoin/kit/combine.hpp>
#include <vector>

namespace adjoin::kit::comm {

constexpr uint64_t kAllKinds = (uint64_t{1} << (AJ_COLL_ALL_TO_ALL_V + 1)) - 1;

inline bool is_transfer(const aj_coll& c) {
  return c.kind == AJ_COLL_SEND || c.kind == AJ_COLL_RECV;
}
inline bool reduces(const aj_coll& c) {
  return c.kind == AJ_COLL_ALL_REDUCE || c.kind == AJ_COLL_REDUCE ||
         c.kind == AJ_COLL_REDUCE_SCATTER;
}
// Raises where nobody waits yet.
inline void refuse_wrong(const aj_coll* c, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (reduces(c[i])) combine_of(c[i].dtype, c[i].op);
}
inline void all_reductions(aj_comm_caps& io) {
  io.kinds = kAllKinds;
  for (int32_t op = AJ_RED_SUM; op <= AJ_RED_PREMUL; op++) io.dtypes[op] = combines(op);
}

class Request {
 public:
  Request(const aj_coll& c, int size) : c_(c) {
    if (c.in_counts) in_.assign(c.in_counts, c.in_counts + size);
    if (c.out_counts) out_.assign(c.out_counts, c.out_counts + size);
  }
  const aj_coll& get() const { return c_; }
  size_t item() const { return size_t(kit::bytes_of(c_.dtype)); }
  size_t bytes() const { return c_.count * item(); }
  const std::vector<uint64_t>& in_counts() const { return in_; }
  const std::vector<uint64_t>& out_counts() const { return out_; }
  const char* in() const { return static_cast<const char*>(c_.in); }
  char* out() const { return static_cast<char*>(c_.out); }

 private:
  aj_coll c_;
  std::vector<uint64_t> in_, out_;
};

}  // namespace adjoin::kit::comm
#endif

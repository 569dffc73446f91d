// plugins/nccl/nccl.hpp: the interface of NCCL that is used, which is RCCL's, too.
#pragma once

#include <cstddef>
#include <string>

#include "streams.hpp"

namespace adjoin::nccl_engine {

#ifdef AJ_RCCL
inline constexpr char kEngine[] = "rccl", kLibrary[] = "RCCL";
#else
inline constexpr char kEngine[] = "nccl", kLibrary[] = "NCCL";
#endif

// Numbers, structs and prototypes as the library's binary interface has them.
enum Result : int { kSuccess = 0, kInProgress = 7 };
enum Number : int { kInt8 = 0, kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };
struct Id {
  char bytes[128];
};
struct Config {  // as version 2.14 has it; newer ones read its size
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};
using Handle = struct Opaque*;

// F(name, parameters): without these the library is of no use
#define AJ_NCCL_NEEDED_(F)                                                 \
  F(GetVersion, (int*))                                                    \
  F(GetUniqueId, (Id*))                                                    \
  F(CommInitRank, (Handle*, int, Id, int))                                 \
  F(CommGetAsyncError, (Handle, Result*))                                  \
  F(CommAbort, (Handle))                                                   \
  F(CommDestroy, (Handle))                                                 \
  F(AllReduce, (const void*, void*, size_t, int, int, Handle, Stream))     \
  F(Broadcast, (const void*, void*, size_t, int, int, Handle, Stream))     \
  F(Reduce, (const void*, void*, size_t, int, int, int, Handle, Stream))   \
  F(AllGather, (const void*, void*, size_t, int, Handle, Stream))          \
  F(ReduceScatter, (const void*, void*, size_t, int, int, Handle, Stream)) \
  F(GroupStart, ())                                                        \
  F(GroupEnd, ())
// and these an older one may lack
#define AJ_NCCL_NEWER_(F)                                  \
  F(CommInitRankConfig, (Handle*, int, Id, int, Config*))  \
  F(CommFinalize, (Handle))                                \
  F(Send, (const void*, size_t, int, int, Handle, Stream)) \
  F(Recv, (void*, size_t, int, int, Handle, Stream))       \
  F(RedOpCreatePreMulSum, (int*, void*, int, int, Handle)) \
  F(RedOpDestroy, (int, Handle))

struct Nccl {
#define AJ_POINTER_(name, parameters) Result(*name) parameters = nullptr;
  AJ_NCCL_NEEDED_(AJ_POINTER_)
  AJ_NCCL_NEWER_(AJ_POINTER_)
#undef AJ_POINTER_
  const char* (*GetErrorString)(Result) = nullptr;
  const char* (*GetLastError)(Handle) = nullptr;  // or NULL
  int version = 0;                                // 22809 is 2.28.9

  // The library; raises where there is none, with what was tried.
  static const Nccl& get();
};
// "nccl 2.28.9", and the file.
const std::string& engine_text();
const std::string& library_path();

// The library's number of a dtype, by its AJ_DT_ index; -1: it has none.
int number_of(uint32_t index);

}  // namespace adjoin::nccl_engine

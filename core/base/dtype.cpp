// core/base/dtype.cpp: the table of dtypes. Promotion is PyTorch's: the higher category wins, then
// the wider.
#include "core/base/dtype.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "core/base/transaction.hpp"

namespace adjoin {

DType dtypes[64] = {
    {{kDLBool, 8, 1}, AJ_DT_BOOL, AJ_CLASS_BOOL, 1, 1, "bool"},
    {{kDLUInt, 8, 1}, AJ_DT_UINT8, AJ_CLASS_INTEGER, 1, 1, "uint8"},
    {{kDLInt, 8, 1}, AJ_DT_INT8, AJ_CLASS_INTEGER, 1, 1, "int8"},
    {{kDLInt, 16, 1}, AJ_DT_INT16, AJ_CLASS_INTEGER, 2, 1, "int16"},
    {{kDLInt, 32, 1}, AJ_DT_INT32, AJ_CLASS_INTEGER, 4, 1, "int32"},
    {{kDLInt, 64, 1}, AJ_DT_INT64, AJ_CLASS_INTEGER, 8, 1, "int64"},
    {{kDLFloat, 16, 1}, AJ_DT_FLOAT16, AJ_CLASS_FLOAT, 2, 1, "float16"},
    {{kDLBfloat, 16, 1}, AJ_DT_BFLOAT16, AJ_CLASS_FLOAT, 2, 1, "bfloat16"},
    {{kDLFloat, 32, 1}, AJ_DT_FLOAT32, AJ_CLASS_FLOAT, 4, 1, "float32"},
    {{kDLFloat, 64, 1}, AJ_DT_FLOAT64, AJ_CLASS_FLOAT, 8, 1, "float64"},
    {{kDLComplex, 64, 1}, AJ_DT_COMPLEX64, AJ_CLASS_COMPLEX, 8, 1, "complex64"},
    {{kDLComplex, 128, 1}, AJ_DT_COMPLEX128, AJ_CLASS_COMPLEX, 16, 1, "complex128"},
    {{kDLUInt, 16, 1}, AJ_DT_UINT16, AJ_CLASS_INTEGER, 2, 0, "uint16"},
    {{kDLUInt, 32, 1}, AJ_DT_UINT32, AJ_CLASS_INTEGER, 4, 0, "uint32"},
    {{kDLUInt, 64, 1}, AJ_DT_UINT64, AJ_CLASS_INTEGER, 8, 0, "uint64"},
    {{kDLFloat8_e4m3fn, 8, 1}, AJ_DT_FLOAT8_E4M3FN, AJ_CLASS_FLOAT, 1, 0, "float8_e4m3fn"},
    {{kDLFloat8_e5m2, 8, 1}, AJ_DT_FLOAT8_E5M2, AJ_CLASS_FLOAT, 1, 0, "float8_e5m2"},
    {{kDLFloat8_e4m3fnuz, 8, 1}, AJ_DT_FLOAT8_E4M3FNUZ, AJ_CLASS_FLOAT, 1, 0, "float8_e4m3fnuz"},
    {{kDLFloat8_e5m2fnuz, 8, 1}, AJ_DT_FLOAT8_E5M2FNUZ, AJ_CLASS_FLOAT, 1, 0, "float8_e5m2fnuz"},
    {{kDLFloat8_e8m0fnu, 8, 1}, AJ_DT_FLOAT8_E8M0FNU, AJ_CLASS_FLOAT, 1, 0, "float8_e8m0fnu"},
    {{kDLComplex, 32, 1}, AJ_DT_COMPLEX32, AJ_CLASS_COMPLEX, 4, 1, "complex32"},
};

namespace {

std::mutex register_lock;
std::atomic<int> registered{AJ_DT_REGISTERED};
std::atomic<bool> hidden[64];  // taken back with the init that registered it; tensors may have it
std::atomic<int> default_index{AJ_DT_FLOAT32};

bool unsigned_small(int i) { return i == AJ_DT_UINT8; }

int promote_integers(int a, int b) {
  if (a == b) return a;
  if (!dtypes[a].promotes || !dtypes[b].promotes) return -1;
  if (unsigned_small(a) ||
      unsigned_small(b)) {  // uint8 with a signed dtype needs one that holds both
    int other = unsigned_small(a) ? b : a;
    return other == AJ_DT_INT8 ? int(AJ_DT_INT16) : other;
  }
  return a > b ? a : b;
}

int promote_floats(int a, int b) {
  if (a == b) return a;
  bool halves =
      (a == AJ_DT_FLOAT16 && b == AJ_DT_BFLOAT16) || (a == AJ_DT_BFLOAT16 && b == AJ_DT_FLOAT16);
  if (halves) return AJ_DT_FLOAT32;
  return a > b ? a : b;
}

}  // namespace

bool same(DLDataType a, DLDataType b) { return std::memcmp(&a, &b, sizeof a) == 0; }

const DType* find_dtype(DLDataType d) {
  if (d.lanes != 1) return nullptr;
  switch (d.code << 8 | d.bits) {
    case kDLBool << 8 | 8:
      return &dtypes[AJ_DT_BOOL];
    case kDLUInt << 8 | 8:
      return &dtypes[AJ_DT_UINT8];
    case kDLInt << 8 | 8:
      return &dtypes[AJ_DT_INT8];
    case kDLInt << 8 | 16:
      return &dtypes[AJ_DT_INT16];
    case kDLInt << 8 | 32:
      return &dtypes[AJ_DT_INT32];
    case kDLInt << 8 | 64:
      return &dtypes[AJ_DT_INT64];
    case kDLFloat << 8 | 16:
      return &dtypes[AJ_DT_FLOAT16];
    case kDLBfloat << 8 | 16:
      return &dtypes[AJ_DT_BFLOAT16];
    case kDLFloat << 8 | 32:
      return &dtypes[AJ_DT_FLOAT32];
    case kDLFloat << 8 | 64:
      return &dtypes[AJ_DT_FLOAT64];
    case kDLComplex << 8 | 64:
      return &dtypes[AJ_DT_COMPLEX64];
    case kDLComplex << 8 | 128:
      return &dtypes[AJ_DT_COMPLEX128];
    case kDLUInt << 8 | 16:
      return &dtypes[AJ_DT_UINT16];
    case kDLUInt << 8 | 32:
      return &dtypes[AJ_DT_UINT32];
    case kDLUInt << 8 | 64:
      return &dtypes[AJ_DT_UINT64];
    case kDLFloat8_e4m3fn << 8 | 8:
      return &dtypes[AJ_DT_FLOAT8_E4M3FN];
    case kDLFloat8_e5m2 << 8 | 8:
      return &dtypes[AJ_DT_FLOAT8_E5M2];
    case kDLFloat8_e4m3fnuz << 8 | 8:
      return &dtypes[AJ_DT_FLOAT8_E4M3FNUZ];
    case kDLFloat8_e5m2fnuz << 8 | 8:
      return &dtypes[AJ_DT_FLOAT8_E5M2FNUZ];
    case kDLFloat8_e8m0fnu << 8 | 8:
      return &dtypes[AJ_DT_FLOAT8_E8M0FNU];
    case kDLComplex << 8 | 32:
      return &dtypes[AJ_DT_COMPLEX32];
  }
  for (int i = AJ_DT_REGISTERED; i < registered.load(std::memory_order_acquire); i++)
    if (same(dtypes[i].dl, d)) return &dtypes[i];
  return nullptr;
}

const DType* find_dtype(std::string_view name) {
  for (int i = 0; i < registered.load(std::memory_order_acquire); i++)
    if (dtypes[i].name && name == dtypes[i].name && !hidden[i]) return &dtypes[i];
  return nullptr;
}

int complex_of(int i) {
  if (dtypes[i].cls == AJ_CLASS_COMPLEX) return i;
  return i == AJ_DT_FLOAT64 ? AJ_DT_COMPLEX128 : AJ_DT_COMPLEX64;
}

int real_of(int i) {
  switch (i) {
    case AJ_DT_COMPLEX32:
      return AJ_DT_FLOAT16;
    case AJ_DT_COMPLEX64:
      return AJ_DT_FLOAT32;
    case AJ_DT_COMPLEX128:
      return AJ_DT_FLOAT64;
    default:
      return i;
  }
}

int wider_of(int i) {
  return i == AJ_DT_COMPLEX32                                    ? int(AJ_DT_COMPLEX64)
         : i >= AJ_DT_FLOAT8_E4M3FN && i <= AJ_DT_FLOAT8_E8M0FNU ? int(AJ_DT_FLOAT32)
                                                                 : i;
}

int promote(int a, int b) {
  if (a == b) return a;
  const DType &x = dtypes[a], &y = dtypes[b];
  if (x.cls == AJ_CLASS_OPAQUE || y.cls == AJ_CLASS_OPAQUE) return -1;
  auto alone = [](const DType& t) { return t.cls == AJ_CLASS_FLOAT && !t.promotes; };
  if (alone(x) || alone(y)) return -1;  // floats of 8 bits
  if (x.cls == AJ_CLASS_BOOL) return b;
  if (y.cls == AJ_CLASS_BOOL) return a;
  if (x.cls == AJ_CLASS_INTEGER && y.cls == AJ_CLASS_INTEGER) return promote_integers(a, b);
  if (x.cls == AJ_CLASS_INTEGER) return b;
  if (y.cls == AJ_CLASS_INTEGER) return a;
  if (x.cls == AJ_CLASS_FLOAT && y.cls == AJ_CLASS_FLOAT) return promote_floats(a, b);
  if (x.cls == AJ_CLASS_COMPLEX && y.cls == AJ_CLASS_COMPLEX) return x.bytes > y.bytes ? a : b;
  int c = x.cls == AJ_CLASS_COMPLEX ? a : b, f = x.cls == AJ_CLASS_COMPLEX ? b : a;
  if (c == AJ_DT_COMPLEX32 && f == AJ_DT_FLOAT16) return c;
  return c == AJ_DT_COMPLEX128 ? c : complex_of(f);
}

// A result may be narrowed within its category or moved to a higher one, never to a lower.
bool can_cast(int from, int to) {
  if (from == to) return true;
  const DType &f = dtypes[from], &t = dtypes[to];
  if (f.cls == AJ_CLASS_OPAQUE || t.cls == AJ_CLASS_OPAQUE) return false;
  if (f.cls > t.cls) return false;
  return true;
}

int default_dtype() { return default_index.load(std::memory_order_relaxed); }

aj_status* set_default_dtype(int index) {
  if (dtypes[index].cls != AJ_CLASS_FLOAT)
    return fail(AJ_WRONG_TYPE, "set_default_dtype: ", dtypes[index].name,
                " is not a floating dtype; use float32 or float64");
  default_index = index;
  return nullptr;
}

aj_status* register_dtype(std::string_view name, uint32_t bits, int32_t cls, DLDataType* out) {
  if (name.empty()) return fail(AJ_INVALID_ARGUMENT, "dtype_register: a dtype needs a name");
  std::lock_guard guard(register_lock);
  auto take_back = [](int i) {
    if (Transaction* r = transaction()) r->undo.push_back([i] { hidden[i] = true; });
  };
  auto same_as = [&](const DType& d) {
    return d.name && d.name == name && d.dl.bits == bits && d.cls == cls;
  };
  if (const DType* known = find_dtype(name)) {  // several plugins may need the same one
    if (!same_as(*known))
      return fail(AJ_ALREADY_EXISTS, "dtype '", name, "': there is one of that name with ",
                  int32_t(known->dl.bits), " bits and class ", int32_t(known->cls), ", asked are ",
                  bits, " bits and class ", cls, "; choose another name");
    *out = known->dl;
    return nullptr;
  }
  for (int i = AJ_DT_REGISTERED; i < registered.load(); i++)
    if (same_as(dtypes[i])) {
      hidden[i] = false;
      take_back(i);
      *out = dtypes[i].dl;
      return nullptr;
    }
  if (bits == 0 || bits > 255 || bits % 8)
    return fail(AJ_INVALID_ARGUMENT, "dtype '", name, "': ", bits,
                " bits; whole bytes up to 248 are possible");
  if (cls < AJ_CLASS_BOOL || cls > AJ_CLASS_OPAQUE)
    return fail(AJ_INVALID_ARGUMENT, "dtype '", name, "': unknown class ", cls);
  int i = registered.load();
  if (i == 64)
    return fail(AJ_OUT_OF_RANGE, "dtype '", name,
                "': 32 dtypes of plugins are the most in a process");
  auto* kept = new std::string(name);  // names live as long as the process
  dtypes[i] = {{uint8_t(128 + i), uint8_t(bits), 1},
               uint8_t(i),
               uint8_t(cls),
               uint8_t(bits / 8),
               0,
               kept->c_str()};
  *out = dtypes[i].dl;
  take_back(i);
  registered.store(i + 1, std::memory_order_release);
  return nullptr;
}

}  // namespace adjoin

// plugins/gpu/kernels/copy.cuh: copies and casts of any layout, filling, choosing.
#include "../pointwise.cuh"
#include "../turn.cuh"

namespace adjoin::gpu {
namespace {

aj_status* where(void*, aj_call* call) {
  return guard(call, [&] {
    visit<all_types>(call->plan->compute,
                     [&]<class T>() { map<bool, T, T>(call, scalar::Where()); });
  });
}

// The element's own dtypes, so that an int64 never goes through a float.
template <class T>
struct Move {
  AJ_HD T operator()(T x) const { return x; }
};
// Where elements lie one after the other on both sides, or all become one number.
template <class Out, class In, class T>
bool move_flat(const aj_call* call, const aj_plan& p, const T* number) {
  const aj_operand &to = p.ops[0], &from = p.ops[1];
  auto packed = [&](const aj_operand& o, size_t bytes) {
    return aligned(o.data) && o.strides && (p.numel == 1 || o.strides[0] == int64_t(bytes));
  };
  if (p.ndim != 1 || !packed(to, sizeof(Out)) || !(number || packed(from, sizeof(In))))
    return false;
  Flat<Move<T>, Out, In, 1, T> flat = {{}, p.numel, reach(static_cast<Out*>(to.data)), {}, {}};
  if (number)
    flat.number[0] = *number;
  else
    flat.in[0] = reach(static_cast<const In*>(from.data));
  launch_threads<&flat_kernel<Move<T>, Out, In, 1, T>>(call, p.numel, kFlat<Out, In>, flat);
  return true;
}
// Of one dtype, between float and halves, and of a number.
bool assign_flat(const aj_call* call, const aj_plan& p) {
  DLDataType to = p.ops[0].dtype, from = p.ops[1].dtype;
  bool done = false;
  if (p.numel == 0 || !p.ops[1].data) return false;
  if (p.ops[1].flags & AJ_OPERAND_NUMBER) {
    visit<stored>(to, [&]<class T>() {
      T number = load<T>(static_cast<const char*>(p.ops[1].data), index_of(from));
      visit_size(to, [&]<class B>() {
        if constexpr (sizeof(B) == sizeof(T)) {
          B bits;
          std::memcpy(&bits, &number, sizeof bits);
          done = move_flat<B, B>(call, p, &bits);
        }
      });
    });
  } else if (same(to, from)) {
    visit_size(to, [&]<class B>() { done = move_flat<B, B, B>(call, p, nullptr); });
  } else {
    const float* none = nullptr;
    auto between = [&]<class H>(H) {
      if (same(to, dtype_of<float>) && same(from, dtype_of<H>))
        done = move_flat<float, H>(call, p, none);
      else if (same(to, dtype_of<H>) && same(from, dtype_of<float>))
        done = move_flat<H, float>(call, p, none);
    };
    between(Half());
    between(BFloat16());
  }
  return done;
}

void assign_plan(const aj_call* call, const aj_plan& p) {
  if (assign_flat(call, p) || turn(call, p)) return;
  DLDataType to = p.ops[0].dtype, from = p.ops[1].dtype;
  for_walks<2>(p, [&](const Walk<2>& w) {
    auto go = [&]<class T>() {
      launch_threads<&map_kernel<Move<T>, T, T>>(call, w.numel, 4, Map<Move<T>, T, T>{{}, w});
    };
    if (same(to, from) && !w.number[1]) {  // bytes are bytes
      Walk<2> raw = w;
      visit_size(to, [&]<class B>() {
        if constexpr (std::is_same_v<B, Bytes16>) {
          go.template operator()<Complex128>();
        } else {
          raw.dtype[0] = raw.dtype[1] = DTypeOf<B>::index;
          launch_threads<&map_kernel<Move<B>, B, B>>(call, w.numel, 4, Map<Move<B>, B, B>{{}, raw});
        }
      });
    } else {
      visit<stored>(to, go);
    }
  });
}

aj_status* assign(void*, aj_call* call) {
  return guard(call, [&] { assign_plan(call, *call->plan); });
}

}  // namespace

void copy(const aj_call* call, MutView to, TensorView from) {
  int64_t sizes[64], strides[2][64], numel = 1;
  uint32_t n = 0;
  for (int64_t d = to.ndim() - 1; d >= 0; --d) {  // innermost first, neighbours joined
    int64_t size = to.size(d), step[2] = {to.stride(d) * bytes_of(to.dtype()),
                                          from.stride(d) * bytes_of(from.dtype())};
    numel *= size;
    if (size == 1) continue;
    bool joins = n > 0;
    for (int k = 0; k < 2; ++k) joins = joins && step[k] == strides[k][n - 1] * sizes[n - 1];
    if (joins) {
      sizes[n - 1] *= size;
      continue;
    }
    sizes[n] = size;
    for (int k = 0; k < 2; ++k) strides[k][n] = step[k];
    ++n;
  }
  if (n == 0) sizes[0] = 1, strides[0][0] = strides[1][0] = 0, n = 1;
  aj_operand ops[2] = {{to.bytes(), strides[0], to.get(), to.dtype(), AJ_OPERAND_WRITE},
                       {const_cast<char*>(from.bytes()), strides[1], from.get(), from.dtype(),
                        foreign(call, from) ? uint32_t(AJ_OPERAND_NUMBER) : 0u}};
  aj_plan p = {};
  p.struct_size = sizeof p;
  p.ndim = n;
  p.nout = 1;
  p.nops = 2;
  p.numel = numel;
  p.sizes = sizes;
  p.ops = ops;
  assign_plan(call, p);
}

namespace {
struct Zero {
  unsigned char* p;
  AJ_DEVICE void operator()(int64_t i) const { p[i] = 0; }
};
struct ZeroWord {
  uint64_t* p;
  AJ_DEVICE void operator()(int64_t i) const { p[i] = 0; }
};
}  // namespace

void fill_zero(const aj_call* call, void* p, int64_t bytes) {
  if (bytes % 8 == 0 && reinterpret_cast<uintptr_t>(p) % 8 == 0)
    each(call, bytes / 8, ZeroWord{static_cast<uint64_t*>(p)});
  else
    each(call, bytes, Zero{static_cast<unsigned char*>(p)});
}

AJ_KERNELS(copy_kernels) = {
    {"where", {&where, all_types::mask, AJ_KERNEL_CASTS}},
    {"copy_", {&assign, stored::mask, AJ_KERNEL_CASTS}},
    {"fill_", {&assign, stored::mask, AJ_KERNEL_CASTS}},
    {nullptr, {}},
};

}  // namespace adjoin::gpu

// core/call/output.cpp: results: new ones, given ones, copies into given ones; devices and kernels
// of a call.
#include "core/call/output.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/guarded.hpp"
#include "core/guest/frontend.hpp"
#include "core/memory/memory.hpp"
#include "core/op/call.hpp"
#include "core/op/numbers.hpp"
#include "core/op/registry.hpp"
#include "core/tape/record.hpp"

namespace adjoin {

namespace {

// A number of the host may stand beside tensors of any device.
bool elsewhere(const aj_tensor* t, const Device* d) {
  return device(t) != d && !(t->dl.ndim == 0 && device(t)->host());
}

[[gnu::cold]] aj_status* mixed_devices(const aj_op* op, Device* d, const aj_tensor* t,
                                       const std::string& which) {
  return fail_kind(AJ_INVALID_ARGUMENT, "DeviceMismatchError", op->schema.ident, ": ", which,
                   " is on ", device(t)->id, ", the others are on ", d->id, "; move it with .to('",
                   d->id, "')");
}

}  // namespace

aj_status* device_of(const aj_op* op, uint64_t keys, const aj_value* args, uint32_t nargs,
                     Device** out) {
  Device* zero_dim = nullptr;
  if (op->crosses_devices && nargs && args[0].tag == AJ_TENSOR)
    return *out = device(args[0].v.tensor), nullptr;
  for (uint64_t places = op->tensor_params; places; places &= places - 1) {
    const uint32_t i = uint32_t(__builtin_ctzll(places));
    if (i >= nargs) break;
    if (args[i].tag == AJ_TENSOR) {
      const aj_tensor* t = args[i].v.tensor;
      if (t->dl.ndim) {
        *out = device(t);
        return nullptr;
      }
      if (!zero_dim || zero_dim->host()) zero_dim = device(t);
    } else if (args[i].tag == AJ_TENSORS) {
      for (uint32_t j = 0; j < args[i].aux; j++)
        if (args[i].v.tensors[j]) {
          *out = device(args[i].v.tensors[j]);
          return nullptr;
        }
    }
  }
  if (zero_dim) {
    *out = zero_dim;
    return nullptr;
  }
  for (uint32_t i = 0; i < nargs; i++)
    if (args[i].tag == AJ_DEVICE) return device_open(args[i].v.device, out);
  (void)keys;
  return default_device(out);
}

aj_status* check_devices(const aj_op* op, Device* d, const aj_value* args, uint32_t nargs,
                         uint32_t first) {
  for (uint32_t i = 0; i < nargs; i++) {
    if (args[i].tag == AJ_TENSOR) {
      const aj_tensor* t = args[i].v.tensor;
      if (elsewhere(t, d))
        return mixed_devices(op, d, t, text("argument '", op->schema.params[first + i].name, "'"));
    } else if (args[i].tag == AJ_TENSORS) {
      for (uint32_t j = 0; j < args[i].aux; j++) {
        const aj_tensor* t = args[i].v.tensors[j];
        if (t && elsewhere(t, d))
          return mixed_devices(op, d, t,
                               text("number ", j, " of '", op->schema.params[first + i].name, "'"));
      }
    }
  }
  return nullptr;
}

aj_status* pick_kernel(const aj_op* op, const Kernel* head, int compute, const aj_call* call,
                       const Kernel** out) {
  for (const Kernel* k = head; k; k = k->next) {
    if (k->dtypes && compute >= 0 && !(k->dtypes >> compute & 1)) continue;
    if (k->can_run && !asked_with_plan(op, k) && !agrees(k, call)) continue;
    if (settings.deterministic && (k->flags & AJ_KERNEL_NONDETERMINISTIC)) continue;
    *out = k;
    return nullptr;
  }
  return nobody_takes(op, head, compute, call);
}

// Memory is not handed out again before the streams that use it have passed.
[[gnu::cold]] static void note_streams(const aj_call* call) {
  auto note = [call](aj_tensor* t) {
    if (t && !device(t)->host() && priv(t).storage->data)
      memory_use(device(t), priv(t).storage->data, call->stream);
  };
  auto note_all = [&](const aj_value* v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
      if (v[i].tag == AJ_TENSOR) note(v[i].v.tensor);
      if (v[i].tag == AJ_TENSORS) std::for_each_n(v[i].v.tensors, v[i].aux, note);
    }
  };
  note_all(call->args, call->nargs);
  note_all(call->rets, call->nrets);
}

aj_status* run_kernel(const aj_op* op, const Kernel* k, aj_call* call, uint64_t estimate_ns) {
  if (__builtin_expect(streams_in_use.load(std::memory_order_relaxed), 0)) note_streams(call);
  bool park =
      !(k->flags & kKernelBody) && (estimate_ns > 50000 || (k->flags & AJ_KERNEL_BLOCKS_HOST));
  if (__builtin_expect(!park, 1)) return invoke(op, k, call);
  if ((call->flags & AJ_CALL_CAPTURING) && (k->flags & AJ_KERNEL_BLOCKS_HOST))
    return fail(AJ_PRECONDITION, op->schema.ident, ": its kernel for ", call->device,
                " waits for the device, which a stream that is captured cannot; "
                "leave it out of the graph");
  void* parked = frontend_park();
  aj_status* s = invoke(op, k, call);
  frontend_unpark(parked);
  return s;
}

aj_status* fit_given(const aj_op* op, aj_tensor* given, std::span<const int64_t> shape,
                     const aj_call* call) {
  if (std::ranges::equal(adjoin::shape(given), shape)) return nullptr;
  if (priv(given).numel != 0)
    return fail_kind(AJ_INVALID_ARGUMENT, "OutShapeError", op->schema.ident,
                     ": the tensor to write has shape ", adjoin::shape(given), ", the result has ",
                     shape, "; it must be empty or of that shape");
  if (call && call->nargs && call->args[0].tag == AJ_TENSOR && call->args[0].v.tensor == given)
    return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": the tensor to write has shape ",
                adjoin::shape(given), ", the result has ", shape, "; the shapes must agree");
  return resize(given, shape);
}

aj_status* check_cast(const aj_op* op, int from, const aj_tensor* given) {
  if (from == priv(given).dtype) return nullptr;
  if (op->flags & kOutExact)
    return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": the result is ", dt(from).dl,
                ", and so must out be, which is ", given->dl.dtype, "; give an out of that dtype");
  if (__builtin_expect(can_cast(from, priv(given).dtype), 1)) return nullptr;
  return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": result type ", dt(from).dl,
              " can't be cast to the desired output type ", given->dl.dtype,
              "; have a new tensor made, or cast that one before");
}

aj_status* prepare_output(const aj_op* op, Device* d, const DType& dtype,
                          std::span<const int64_t> shape, const int64_t* strides,
                          const aj_value& given, bool casts, aj_tensor** out, bool* direct) {
  *direct = true;
  auto fresh = [&] {
    return strides ? tensor_new_strided(d, dtype, shape, {strides, shape.size()}, out)
                   : tensor_new(d, dtype, shape, out);
  };
  if (given.tag != AJ_TENSOR) return fresh();
  aj_tensor* t = given.v.tensor;
  if (device(t) != d)
    return fail(AJ_INVALID_ARGUMENT, op->schema.ident, ": out is on ", device(t)->id,
                ", the inputs are on ", d->id);
  AJ_TRY(check_cast(op, dtype.index, t));
  AJ_TRY(fit_given(op, t, shape));
  if (casts || priv(t).dtype == dtype.index) {
    retain(t);
    *out = t;
    return nullptr;
  }
  *direct = false;
  return fresh();
}

namespace {

// An infer has said something that cannot be: whose it is.
[[gnu::cold, gnu::noinline]] aj_status* declared(const Frame* f, aj_status* s) {
  if (!f->op->provider.empty() && !s->is_static)
    s->message += text("; plugin '", f->op->provider, "' has declared it");
  return s;
}

}  // namespace

aj_status* declare(aj_call* call, uint32_t i, DLDataType dl, int32_t ndim, const int64_t* shape,
                   const int64_t* strides) try {
  Frame* f = reinterpret_cast<Frame*>(call);
  if (i >= call->nrets)
    return declared(
        f, fail(AJ_INTERNAL, f->op->schema.ident, ": declares output ", i, " of ", call->nrets));
  if (ndim < 0 || ndim > kMaxDims)
    return declared(
        f, fail(AJ_INVALID_ARGUMENT, f->op->schema.ident, ": declares ", ndim, " dimensions"));
  const DType* dtype = find_dtype(dl);
  if (!dtype)
    return declared(f, fail(AJ_WRONG_TYPE, f->op->schema.ident, ": declares the unknown ", dl));
  std::span<const int64_t> sizes{shape, size_t(ndim)};
  for (int64_t n : sizes)
    if (n < 0)
      return declared(
          f, fail(AJ_INVALID_ARGUMENT, f->op->schema.ident, ": the result would have the shape ",
                  sizes, "; sizes must not be negative"));
  if (i == 0 && f->op->schema.result_is_first && f->made[0].tag == AJ_TENSOR) {
    aj_tensor* t = f->made[0].v.tensor;
    if (std::ranges::equal(adjoin::shape(t), sizes) && priv(t).dtype == dtype->index)
      return nullptr;
    return declared(f, fail(AJ_INVALID_ARGUMENT, f->op->schema.ident, ": declares a result of ", dl,
                            " and shape ", sizes, "; it is its argument, ", t->dl.dtype,
                            " of shape ", adjoin::shape(t)));
  }
  if (f->made[i].tag != AJ_NONE)
    return declared(f, fail(AJ_INTERNAL, f->op->schema.ident, ": declares output ", i, " twice"));
  aj_value given = f->given[i];
  auto any_read = [&](auto holds) {
    bool in_place = call->args[0].tag == AJ_TENSOR && call->args[0].v.tensor == given.v.tensor;
    uint32_t first = in_place && f->op->tags.find("overwrites") != std::string::npos;
    for (uint32_t a = first; a < call->nargs; a++) {
      if (call->args[a].tag == AJ_TENSOR && holds(call->args[a].v.tensor)) return true;
      if (call->args[a].tag == AJ_TENSORS)
        for (uint32_t j = 0; j < call->args[a].aux; j++)
          if (aj_tensor* t = call->args[a].v.tensors[j]; t && holds(t)) return true;
    }
    return false;
  };
  // An empty argument keeps its shape until the kernel has read it; hand_out resizes it.
  if (given.tag == AJ_TENSOR && priv(given.v.tensor).numel == 0 &&
      any_read([&](const aj_tensor* t) { return t == given.v.tensor; }))
    given = none();
  // A kernel of this kind may read its inputs after it began to write.
  bool buffered = false;
  if (given.tag == AJ_TENSOR) {
    AJ_TRY(fit_given(f->op, given.v.tensor, sizes, call));
    buffered = any_read([&](const aj_tensor* t) { return overlap(t, given.v.tensor) != 0; });
  }
  aj_tensor* out;
  bool direct;
  AJ_TRY(prepare_output(f->op, f->device, *dtype, sizes, strides, given, false, &out, &direct));
  if (buffered && direct) {
    release(out);
    AJ_TRY(strides ? tensor_new_strided(f->device, *dtype, sizes, {strides, sizes.size()}, &out)
                   : tensor_new(f->device, *dtype, sizes, &out));
  }
  f->made[i] = value(out);
  return nullptr;
} catch (const std::exception&) {
  return status_of_exception();
}

aj_status* declare_view(aj_call* call, uint32_t i, uint32_t count, uint32_t arg, DLDataType dl,
                        int32_t ndim, const int64_t* shape, const int64_t* strides,
                        int64_t offset) try {
  Frame* f = reinterpret_cast<Frame*>(call);
  if (arg >= call->nargs || call->args[arg].tag != AJ_TENSOR)
    return declared(f, fail(AJ_INVALID_ARGUMENT, f->op->schema.ident,
                            ": declares a view of argument ", arg, ", which is no tensor"));
  aj_tensor* of = call->args[arg].v.tensor;
  const DType* dtype = find_dtype(dl);
  if (!dtype || ndim < 0 || ndim > kMaxDims)
    return declared(f, fail(AJ_INVALID_ARGUMENT, f->op->schema.ident, ": declares a view of dtype ",
                            dl, " with ", ndim, " dimensions"));
  char* data = place(of) + offset * dtype->bytes;
  aj_tensor* out;
  if (!f->op->provider.empty() &&
      !inside(storage(of).bytes, *dtype, {shape, size_t(ndim)}, strides,
              (data - static_cast<char*>(storage(of).data)) / dtype->bytes))
    return declared(
        f, fail(AJ_INTERNAL, f->op->schema.ident, ": declares a view of shape ",
                std::span{shape, size_t(ndim)}, ", strides ", std::span{strides, size_t(ndim)},
                ", offset ", offset, ", which reaches outside the memory of argument ", arg));
  AJ_TRY(tensor_alias(of, *dtype, {shape, size_t(ndim)}, {strides, size_t(ndim)}, data, &out));
  bool list = f->op->schema.results[0].list != 0;
  uint8_t kind = list || f->op->nresults > 1      ? kViewMulti
                 : dtype->index != priv(of).dtype ? kViewChain
                 : tls.grad_off                   ? kViewNoGrad
                                                  : kView;
  view_attach(out, of, kind);
  if (!list) {
    if (i >= call->nrets)
      return release(out),
             declared(f, fail(AJ_INTERNAL, f->op->schema.ident, ": declares output ", i));
    f->made[i] = value(out);
    return nullptr;
  }
  if (!f->views) f->views = new std::vector<aj_value>(count, none());
  if (i >= f->views->size())
    return release(out), declared(f, fail(AJ_INTERNAL, f->op->schema.ident, ": declares element ",
                                          i, " of ", count));
  (*f->views)[i] = value(out);
  return nullptr;
} catch (const std::exception&) {
  return status_of_exception();
}

}  // namespace adjoin

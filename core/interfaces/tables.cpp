// core/interfaces/tables.cpp: the functions of the core, laid out as the tables of abi/.
#include "core/op/tables.hpp"

#include <adjoin/kit/env.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/base/guarded.hpp"
#include "core/base/log.hpp"
#include "core/call/copy.hpp"
#include "core/call/lower.hpp"
#include "core/call/order.hpp"
#include "core/call/output.hpp"
#include "core/device/device.hpp"
#include "core/guest/frontend.hpp"
#include "core/guest/object.hpp"
#include "core/memory/capture.hpp"
#include "core/memory/memory.hpp"
#include "core/op/autocast.hpp"
#include "core/op/call.hpp"
#include "core/op/fallback_rules.hpp"
#include "core/op/numbers.hpp"
#include "core/op/registry.hpp"
#include "core/op/serves.hpp"
#include "core/op/settings.hpp"
#include "core/op/trace.hpp"
#include "core/ops/builtin.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/manage.hpp"
#include "core/plugin/replace.hpp"
#include "core/profile/profile.hpp"
#include "core/random/generator.hpp"
#include "core/service/services.hpp"
#include "core/tape/held.hpp"
#include "core/tape/table.hpp"
#include "core/tape/wrap.hpp"
#include "core/tensor/dlpack.hpp"
#include "core/tensor/prepared.hpp"
#include "core/thread/pool.hpp"

namespace adjoin {
namespace {

aj_status* status_new(int32_t code, aj_str kind, aj_str message, const char* file, uint64_t line) {
  return make_status(code, view(kind), view(message), file, line);
}
aj_status* status_with_cause(aj_status* outer, aj_status* cause) {
  if (!outer) return cause;
  if (outer->is_static) {
    free_status(cause);
    return outer;
  }
  aj_status* last = outer;
  while (last->cause) last = last->cause;
  last->cause = cause;
  return outer;
}
int32_t status_code(const aj_status* s) { return s ? s->code : int32_t(AJ_OK); }
aj_str status_kind(const aj_status* s) { return s ? str(s->kind) : aj_str{"", 0}; }
aj_str status_message(const aj_status* s) { return s ? str(s->message) : aj_str{"", 0}; }
aj_str status_where(const aj_status* s) { return s ? str(s->where) : aj_str{"", 0}; }
const aj_status* status_cause(const aj_status* s) { return s ? s->cause : nullptr; }

aj_status* dtype_info_(DLDataType d, aj_dtype_info* io) {
  const DType* t = find_dtype(d);
  if (!t) return fail(AJ_NOT_FOUND, "dtype_info: unknown ", d);
  aj_dtype_info full{};
  full.struct_size = io->struct_size;
  full.index = t->index;
  full.dtype = t->dl;
  full.bytes = t->bytes;
  full.dtype_class = t->cls;
  full.promotes = t->promotes;
  full.name = str(t->name);
  std::memcpy(io, &full, std::min<size_t>(io->struct_size, sizeof full));
  return nullptr;
}
aj_status* dtype_register_(aj_str name, uint32_t bits, int32_t cls, DLDataType* out) {
  return register_dtype(view(name), bits, cls, out);
}
aj_status* dtype_find_(aj_str name, DLDataType* out) {
  const DType* t = find_dtype(view(name));
  if (!t)
    return fail(AJ_NOT_FOUND, "dtype '", name,
                "': there is none of that name; float32, int64, bool, ... are there");
  *out = t->dl;
  return nullptr;
}
aj_status* dtype_promote_(DLDataType a, DLDataType b, DLDataType* out) {
  const DType *x = find_dtype(a), *y = find_dtype(b);
  int r = x && y ? promote(x->index, y->index) : -1;
  if (r < 0)
    return fail(AJ_WRONG_TYPE, "promote: ", a, " and ", b,
                " have no common dtype; cast one with .to(...)");
  *out = dt(r).dl;
  return nullptr;
}
int32_t dtype_can_cast_(DLDataType a, DLDataType b) {
  const DType *x = find_dtype(a), *y = find_dtype(b);
  return x && y && can_cast(x->index, y->index);
}
DLDataType default_dtype_() { return dt(default_dtype()).dl; }
aj_status* set_default_dtype_(DLDataType d) {
  const DType* t = find_dtype(d);
  return t ? set_default_dtype(t->index) : fail(AJ_NOT_FOUND, "set_default_dtype: unknown ", d);
}

aj_status* check_shape(const char* who, int32_t ndim, const int64_t* shape) {
  if (ndim < 0 || ndim > kMaxDims)
    return fail(AJ_INVALID_ARGUMENT, who, ": ", ndim, " dimensions; only tensors with up to ",
                kMaxDims, " dims are supported");
  if (!ndim || shape) return nullptr;
  return fail(AJ_INVALID_ARGUMENT, who, ": ndim is ", ndim, ", and shape is NULL");
}

aj_status* tensor_empty_(const DLTensor* like, uint64_t flags, aj_tensor** out) try {
  AJ_TRY(check_words("tensor_empty", "", flags, 0));
  const DType* t = find_dtype(like->dtype);
  if (!t) return fail(AJ_WRONG_TYPE, "tensor_empty: unknown dtype ", like->dtype);
  AJ_TRY(check_shape("tensor_empty", like->ndim, like->shape));
  Device* d = device_at(like->device);
  if (!d) AJ_TRY(like->device.device_type ? device_open(like->device, &d) : default_device(&d));
  std::span<const int64_t> s{like->shape, size_t(like->ndim)};
  return like->strides ? tensor_new_strided(d, *t, s, {like->strides, s.size()}, out)
                       : tensor_new(d, *t, s, out);
} catch (const std::exception&) {
  return status_of_exception();
}

aj_status* tensor_view_(aj_tensor* base, const DLTensor* like, int64_t offset, aj_tensor** out) {
  if (like == &base->dl && offset == 0 && is_strided(base)) {  // whoever lends the memory
    AJ_TRY(settle_memory(base, "tensor_view"));
    return tensor_alias(base, dt(priv(base).dtype), shape(base), strides(base), place(base), out);
  }
  const DType* t = find_dtype(like->dtype);
  if (!t || like->ndim < 0 || like->ndim > kMaxDims)
    return fail(AJ_INVALID_ARGUMENT, "tensor_view: unknown dtype or too many dimensions");
  AJ_TRY(check_shape("tensor_view", like->ndim, like->shape));
  AJ_TRY(settle_memory(base, "tensor_view"));
  std::span<const int64_t> s{like->shape, size_t(like->ndim)};
  int64_t strides[kMaxDims];
  if (like->strides)
    std::copy_n(like->strides, s.size(), strides);
  else
    c_strides(s, strides);
  char* data = place(base) + offset * t->bytes;
  int64_t first = (data - static_cast<char*>(storage(base).data)) / t->bytes;
  if (!inside(storage(base).bytes, *t, s, strides, first))
    return fail(AJ_OUT_OF_RANGE, "tensor_view: shape ", s, ", strides ",
                std::span<const int64_t>(strides, s.size()), ", offset ", offset,
                " reach outside the memory of ", storage(base).bytes, " bytes");
  return tensor_alias(base, *t, s, {strides, s.size()}, data, out);
}

aj_status* tensor_from_memory_(const DLTensor* like, uint64_t bytes, uint64_t flags, void* ctx,
                               void (*drop)(void*), aj_tensor** out) try {
  AJ_TRY(check_words("tensor_from_memory", "", flags, AJ_TENSOR_READ_ONLY));
  Device* d = device_at(like->device);
  if (!d)
    AJ_TRY(like->device.device_type == kDLCPU ? default_host(&d) : device_open(like->device, &d));
  AJ_TRY(check_shape("tensor_from_memory", like->ndim, like->shape));
  if (!like->data && bytes)
    return fail(AJ_INVALID_ARGUMENT, "tensor_from_memory: data is NULL, ", bytes,
                " bytes are promised");
  return tensor_foreign(d, like, bytes, flags, ctx, drop, out);
} catch (const std::exception&) {
  return status_of_exception();
}

uint64_t tensor_version_(const aj_tensor* t) { return watched_version(t) & ~(1u << 31); }
aj_status* tensor_storage_(const aj_tensor* t, void** data, uint64_t* bytes, uint64_t* offset,
                           uint64_t* id) {
  AJ_TRY(settle_memory(const_cast<aj_tensor*>(t), "tensor_storage"));
  const Storage& s = storage(t);
  *data = s.data;
  *bytes = s.bytes;
  *offset =
      s.data || (s.flags & kStorageMeta) ? uint64_t(place(t) - static_cast<char*>(s.data)) : 0;
  *id = reinterpret_cast<uint64_t>(owner(&s));
  return nullptr;
}
aj_status* tensor_resize_(aj_tensor* t, int32_t ndim, const int64_t* shape) {
  AJ_TRY(check_shape("resize_", ndim, shape));
  return resize(t, {shape, size_t(ndim)});
}
aj_status* tensor_set_(aj_tensor* t, aj_tensor* source, int64_t offset, int32_t ndim,
                       const int64_t* shape, const int64_t* strides) {
  AJ_TRY(check_shape("set_", ndim, shape));
  AJ_TRY(check_shape("set_ (strides)", ndim, strides));
  if (priv(t).dtype != priv(source).dtype)
    return fail(AJ_INVALID_ARGUMENT, "set_: the source is ", source->dl.dtype, ", the tensor is ",
                t->dl.dtype);
  if (requires_grad(t) && !tls.grad_off)
    return fail(AJ_INVALID_ARGUMENT, "set_: the tensor requires grad; use no_grad() or detach()");
  AJ_TRY(settle_memory(t, "set_"));
  AJ_TRY(settle_memory(source, "set_"));
  const DType& type = dt(priv(t).dtype);
  if (!inside(storage(source).bytes, type, {shape, size_t(ndim)}, strides, offset))
    return fail(AJ_OUT_OF_RANGE, "set_: shape ", std::span(shape, size_t(ndim)), " at offset ",
                offset, " reaches outside the source's memory");
  tensor_set_storage(t, priv(source).storage,
                     static_cast<char*>(storage(source).data) + offset * type.bytes);
  return tensor_set_dims(t, {shape, size_t(ndim)}, {strides, size_t(ndim)});
}
aj_status* tensor_copy_bytes_(aj_tensor* t, void* host, uint64_t bytes, int32_t to_host) {
  if (!is_strided(t) && to_host) {  // a copy of the values will do
    Ref values;
    AJ_TRY(strided_of(t, "copy_bytes", values.out()));
    if (values.get() != t) return tensor_copy_bytes_(values.get(), host, bytes, to_host);
  }
  AJ_TRY(settle_memory(t, "copy_bytes"));
  uint64_t all = uint64_t(priv(t).numel) * dt(priv(t).dtype).bytes;
  if (!is_dense(t) || bytes > all)
    return fail(AJ_INVALID_ARGUMENT, "copy_bytes: ", bytes, " bytes of a ",
                is_dense(t) ? "" : "strided ", "tensor of ", all);
  if (bytes == 0) return nullptr;
  Device* h = device(t);
  if (!h->host()) AJ_TRY(default_host(&h));
  if (to_host) return device_copy({h, host, 0}, bytes_of(t), bytes);
  aj_status* s = device_copy(bytes_of(t), {h, host, 0}, bytes);
  contents_changed(storage(t));
  return s;
}
int64_t tensor_numel_(const aj_tensor* t) { return priv(t).numel; }
int32_t tensor_unique_(const aj_tensor* t) {
  return refs(const_cast<aj_object*>(&t->obj)).load() == 1;
}
void tensor_bump_version_(aj_tensor* t) { bump_version(t); }

aj_status* tensor_settle_(aj_tensor* t) { return settle_memory(t, "memory"); }

void set_line_(uint32_t line, uint32_t site) { tls.line = line, tls.site = site; }
void get_line_(uint32_t* line, uint32_t* site) { *line = tls.line, *site = tls.site; }
aj_status* line_text_(uint32_t line, aj_object** out) {
  return string_new(str(frontend_line(line)), out);
}
int32_t thread_index_() { return tls.thread_index; }
int32_t num_threads_() { return num_threads(); }
aj_status* set_num_threads_(int32_t n) { return set_num_threads(n); }
void log_(int32_t level, aj_str who, aj_str message) {
  log_message(level, view(who), view(message));
}

aj_status* device_find_(aj_str name, int32_t* out) {
  if (view(name) == "meta") return *out = kMetaType, nullptr;
  return device_kind_find(view(name), out);
}
aj_str device_name_(int32_t type) {
  return type == kMetaType ? str("meta") : str(device_kind_name(type));
}
aj_status* device_synchronize_(DLDevice id) {
  Device* d;
  AJ_TRY(device_open(id, &d));
  return device_synchronize(d);
}

aj_status* find_info(const aj_op* op, aj_op_info* io) {
  aj_op_info f{};
  const Schema& s = op->schema;
  f.struct_size = io->struct_size;
  bool tensors = !s.results.empty();
  for (const Param& r : s.results) tensors &= r.base == AJ_PARAM_TENSOR && !r.list;
  bool creates = op->noperands == 0 && !s.writes;
  bool has_out = tensors && !s.writes && op->kind != Kind::view && !creates &&
                 op->tags.find("no-out") == op->tags.npos;
  const Vjp* vjp = op->vjp.load();
  bool derives =
      vjp ? !(vjp->def.flags & AJ_VJP_NO_GRAD_RESULTS) : op->kind == Kind::view || op->has_body;
  f.flags = op->flags & ~kNumberFlags;
  if (vjp && !(vjp->def.flags & AJ_VJP_NO_GRAD_RESULTS)) f.flags |= AJ_INFO_OWN_VJP;
  if (op->in_place_ok) f.flags |= AJ_INFO_IN_PLACE;
  if (has_out) f.flags |= AJ_INFO_OUT;
  if (derives) f.flags |= AJ_INFO_DIFFERENTIABLE;
  if (op->has_body) f.flags |= AJ_INFO_COMPOSITE;
  f.name = str(s.name), f.schema = str(s.text), f.doc = str(op->doc), f.kind = str(op->kind_name);
  f.tags = str(op->tags), f.test = str(op->test), f.provider = str(op->provider);
  f.nparams = op->nparams, f.nresults = uint32_t(s.results.size());
  std::memcpy(io, &f, std::min<size_t>(io->struct_size, sizeof f));
  return nullptr;
}
aj_status* give_param(const std::vector<Param>& list, uint32_t i, aj_param* io) {
  if (i >= list.size())
    return fail(AJ_OUT_OF_RANGE, "op_param: ", i, " of ", uint64_t(list.size()));
  const Param& p = list[i];
  aj_param f{io->struct_size, p.flags, str(p.name), p.base, p.list, p.dtypes, p.value, str(p.type)};
  std::memcpy(io, &f, std::min<size_t>(io->struct_size, sizeof f));
  return nullptr;
}
aj_status* op_param_(const aj_op* op, uint32_t i, aj_param* io) {
  return give_param(op->schema.params, i, io);
}
aj_status* op_result_(const aj_op* op, uint32_t i, aj_param* io) {
  return give_param(op->schema.results, i, io);
}
const aj_op* find_op_(aj_str name) { return find_op(view(name)); }
void thread_keys_(uint64_t* include, uint64_t* exclude) {
  *include = tls.include, *exclude = tls.exclude;
}
void set_thread_keys_(uint64_t include, uint64_t exclude) {
  tls.include = include & ~kWrapKey;
  tls.exclude = exclude & ~kWrapKey;
}
aj_status* set_deterministic_(int32_t on, int32_t* previous) {
  bool before = settings.deterministic.exchange(on != 0);
  if (previous) *previous = before;
  return nullptr;
}
aj_status* set_provider_(aj_str device, aj_str plugin) {
  AJ_TRY(set_device_provider(view(device), view(plugin)));
  resolve_again();
  return nullptr;
}

}  // namespace

const aj_core core_table = {
    .struct_size = sizeof(aj_core),
    .minor = AJ_ABI_MINOR,
    .status_new = status_new,
    .status_with_cause = status_with_cause,
    .status_code = status_code,
    .status_kind = status_kind,
    .status_message = status_message,
    .status_where = status_where,
    .status_cause = status_cause,
    .status_free = free_status,
    .retain = any_retain,
    .release = any_release,
    .type_register = guarded<type_register>,
    .type_find = guarded<type_find>,
    .type_name = type_name,
    .object_new = guarded<type_object_new>,
    .object_payload = object_payload,
    .string_new = guarded<string_new>,
    .string_get = string_get,
    .list_new = guarded<list_new>,
    .list_get = list_get,
    .complex_new = guarded<complex_new>,
    .complex_get = guarded<complex_get>,
    .function_new = guarded<function_new>,
    .function_call = guarded<function_call>,
    .stream_new = guarded<stream_new>,
    .stream_get = guarded<stream_get>,
    .dtype_register = guarded<dtype_register_>,
    .dtype_info = guarded<dtype_info_>,
    .dtype_find = guarded<dtype_find_>,
    .dtype_promote = guarded<dtype_promote_>,
    .dtype_can_cast = dtype_can_cast_,
    .default_dtype = default_dtype_,
    .set_default_dtype = guarded<set_default_dtype_>,
    .tensor_empty = tensor_empty_,
    .tensor_view = guarded<tensor_view_>,
    .tensor_from_memory = tensor_from_memory_,
    .tensor_from_dlpack = tensor_from_dlpack,
    .tensor_to_dlpack = guarded<tensor_to_dlpack>,
    .tensor_version = tensor_version_,
    .tensor_bump_version = tensor_bump_version_,
    .tensor_storage = guarded<tensor_storage_>,
    .tensor_resize = guarded<tensor_resize_>,
    .tensor_set = guarded<tensor_set_>,
    .tensor_copy_bytes = guarded<tensor_copy_bytes_>,
    .tensor_numel = tensor_numel_,
    .tensor_unique = tensor_unique_,
    .frontend_register = guarded<frontend_register>,
    .frontend_word = frontend_word,
    .set_frontend_word = set_frontend_word,
    .set_line = set_line_,
    .get_line = get_line_,
    .parallel_for = guarded<parallel_for>,
    .num_threads = num_threads_,
    .set_num_threads = guarded<set_num_threads_>,
    .thread_index = thread_index_,
    .interrupted = frontend_interrupted,
    .log = log_,
    .device_find = guarded<device_find_>,
    .device_name = device_name_,
    .device_count = guarded<device_kind_count>,
    .device_synchronize = guarded<device_synchronize_>,
    .stream_current = guarded<stream_current>,
    .stream_set = guarded<stream_set>,
    .memory_stats = guarded<memory_stats>,
    .memory_release = guarded<memory_release>,
    .memory_limit = guarded<memory_limit>,
    .memory_reset_peak = guarded<memory_reset_peak>,
    .generator_new = guarded<generator_new>,
    .generator_default = guarded<generator_default>,
    .generator_get = guarded<generator_get>,
    .generator_set = guarded<generator_set>,
    .generator_draw = guarded<draw_or_capture>,
    .manual_seed = guarded<manual_seed>,
    .prepared_find = quiet<prepared_find>,
    .prepared_keep = prepared_keep,
    .tensor_escape = tensor_escape,
    .tensor_settle = guarded<tensor_settle_>,
    .line_text = guarded<line_text_>,
    .tensor_pin = guarded<tensor_pin>,
    .tensor_pinned = tensor_pinned,
    .capture_begin = guarded<capture_begin>,
    .capture_end = guarded<capture_end>,
    .graph_launch = guarded<graph_launch>,
};

const aj_dispatch dispatch_table = {
    .struct_size = sizeof(aj_dispatch),
    .minor = AJ_ABI_MINOR,
    .def_op = guarded<def_op>,
    .def_kernel = guarded<def_kernel>,
    .def_fallback = guarded<def_fallback>,
    .def_key = guarded<def_key>,
    .key_mask = quiet<key_mask>,
    .find_op = find_op_,
    .call = call,
    .redispatch = guarded<redispatch>,
    .declare = declare,
    .declare_view = declare_view,
    .op_count = op_count,
    .op_at = op_at,
    .op_info = guarded<find_info>,
    .op_param = guarded<op_param_>,
    .op_result = guarded<op_result_>,
    .op_explain = guarded<op_explain>,
    .thread_keys = thread_keys_,
    .set_thread_keys = set_thread_keys_,
    .set_fallback = guarded<set_fallback>,
    .fallback_count = fallback_count,
    .fallback_at = guarded<fallback_at>,
    .set_deterministic = guarded<set_deterministic_>,
    .set_provider = guarded<set_provider_>,
    .autocast = guarded<autocast>,
};

void start() {
  // As in threads.cpp: not std::call_once.
  [[maybe_unused]] static const bool once = [] {
    kit::bind(core_query);
    trace_from_environment();
    plugin::lock_from_environment();
    aj_registrar r("");
    aj_status* s = register_builtin_ops(&r);
    if (!s) s = r.commit();
    if (s) {
      log_message(0, "adjoin bug", s->message);
      free_status(s);
    }
    log_limit();
    fallback_from_environment();
    return true;
  }();
}

const void* core_query(const char* name, uint32_t major) {
  if (!name || major != AJ_ABI_MAJOR) return nullptr;
  std::string_view n = name;
  if (n == "aj.core") return &core_table;
  if (n == "aj.op") return &dispatch_table;
  if (n == "aj.autograd") return &autograd_table;
  if (n == "aj.service") return &services_table;
  if (n == "x.tape") return tape_table();
  if (n == "aj.plugins") return plugins_table();
  if (n == "x.wrap") return &wrap_table;
  if (n == "x.lower") return &lower_table;
  if (n == "x.memory") return &memory_table;
  if (n == "x.profile") return &profile_table;
  if (n == "x.plugins") return plugin::experimental_table();
  if (!n.starts_with("x.")) return nullptr;  // else an extension's
  aj_service_def offered{};
  offered.struct_size = sizeof offered;
  aj_status* absent = services_table.at(str(n), 0, &offered);
  free_status(absent);
  return absent ? nullptr : offered.table;
}

}  // namespace adjoin

extern "C" const void* aj_get_interface(const char* name, uint32_t major) {
  adjoin::start();
  adjoin::discover_plugins();
  return adjoin::core_query(name, major);
}

extern "C" uint32_t aj_abi_version(void) { return AJ_ABI_MAJOR << 16 | AJ_ABI_MINOR; }

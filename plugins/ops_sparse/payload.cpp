// plugins/ops_sparse/payload.cpp: the key "sparse": its tensors are wrapped, described, copied,
// taken apart for files.
#include <new>

#include "register.hpp"
#include "sparse.hpp"

namespace adjoin::ops::sparse {
namespace {

const aj_wrappers* wraps;
uint64_t key;
int32_t type;

void destroy(void* payload) { static_cast<Parts*>(payload)->~Parts(); }

aj_object* new_payload(Parts parts) {
  aj_object* o = nullptr;
  void* room = nullptr;
  kit::check(kit::core().object_new(type, &o, &room));
  new (room) Parts(std::move(parts));
  return o;
}

struct Held {  // an object for as long as a function runs
  aj_object* o;
  explicit Held(aj_object* object) : o(object) {}
  Held(const Held&) = delete;
  ~Held() { kit::core().release(o); }
};

aj_value text_value(std::string_view s) {
  aj_value v{AJ_STRING_OBJ, 0, {0}};
  kit::check(kit::core().string_new(kit::str(s), &v.v.object));
  return v;
}
aj_value list_value(const Sizes& sizes) {
  std::vector<aj_value> items;
  for (int64_t n : sizes) items.push_back(kit::value(n));
  aj_value v{AJ_LIST_OBJ, 0, {0}};
  kit::check(kit::core().list_new(items.data(), uint32_t(items.size()), &v.v.object));
  return v;
}

aj_status* describe(void*, aj_tensor* t, aj_object** text) {
  return kit::guard("describe", [&] {
    const Parts& p = *maybe_parts(Tensor::view(t));
    std::string said =
        kit::text("size=", shown(p.size), ", nnz=", p.count(), ", layout=", layout_name(p.layout));
    kit::check(kit::core().string_new(kit::str(said), text));
  });
}

aj_status* copy(void*, aj_tensor* t, aj_tensor** out) {
  return kit::guard("copy", [&] {
    Parts p = *maybe_parts(Tensor::view(t));
    p.indices = clone(p.indices);
    if (p.plain.defined()) p.plain = clone(p.plain);
    p.values = clone(p.values);
    *out = wrapped(std::move(p)).take();
  });
}

aj_status* parts_list(void*, aj_tensor* t, aj_object** list) {
  return kit::guard("parts", [&] {
    const Parts& p = *maybe_parts(Tensor::view(t));
    std::vector<aj_value> items;
    items.push_back(text_value(p.is_coo() ? "_::sparse_coo" : "_::sparse_compressed"));
    items.push_back(kit::value(p.indices));
    if (!p.is_coo()) items.push_back(kit::value(p.plain));
    items.push_back(kit::value(p.values));
    items.push_back(list_value(p.size));
    items.push_back(p.is_coo() ? kit::value(p.coalesced) : kit::value(int64_t(p.layout)));
    aj_status* bad = kit::core().list_new(items.data(), uint32_t(items.size()), list);
    for (aj_value& v : items)
      if (v.tag == AJ_STRING_OBJ || v.tag == AJ_LIST_OBJ) kit::core().release(v.v.object);
    kit::check(bad);
  });
}

}  // namespace

void define_wrapper(const aj_plugin_env* env) {
  wraps = static_cast<const aj_wrappers*>(env->query("x.wrap", 1));
  if (!wraps) kit::raise(AJ_UNIMPLEMENTED, "ops_sparse: libadjoin has no interface x.wrap");
  kit::check(kit::core().type_register(kit::str("sparse.parts"), sizeof(Parts), destroy, &type));
  kit::check(
      kit::dispatch().def_key(env->registrar, kit::str("sparse"), AJ_KEY_BELOW_AUTOGRAD, &key));
  aj_wrapper_def d{};
  d.struct_size = sizeof d;
  d.key = kit::str("sparse");
  d.describe = describe;
  d.copy = copy;
  d.parts = parts_list;
  d.hint = kit::str("call to_dense() first");
  kit::check(wraps->def_wrapper(env->registrar, &d));
}

void define_vjp(const aj_plugin_env* env, const char* op, const aj_save* save, uint32_t nsave,
                aj_status* (*vjp)(void*, aj_grad_call*), void* self) {
  aj_vjp_def v{};
  v.struct_size = sizeof v;
  v.op = kit::str(op);
  v.key = kit::str("sparse");
  v.save = save;
  v.nsave = nsave;
  v.vjp = vjp;
  v.self = self;
  kit::check(kit::autograd().def_vjp(env->registrar, &v));
}

const Parts* maybe_parts(const Tensor& t) {
  if (t.has_memory()) return nullptr;
  aj_object* o = wraps->tensor_payload(t.get(), key);
  return o ? static_cast<const Parts*>(kit::core().object_payload(o)) : nullptr;
}

const Parts& parts_of(const Tensor& t, std::string_view who) {
  const Parts& p = any_parts_of(t, who);
  if (p.batch()) refuse(who, p, "a stack of matrices is not taken here, one matrix is");
  return p;
}

const Parts& any_parts_of(const Tensor& t, std::string_view who) {
  const Parts* p = maybe_parts(t);
  if (!p && t.has_memory())
    kit::raise_as("RuntimeError", AJ_WRONG_TYPE, who,
                  " must be a sparse tensor, it is strided; call to_sparse() first");
  if (!p)
    kit::raise(AJ_UNIMPLEMENTED, who, " is of another plugin: the layout is adjoin.",
               layout_name(Layout(wraps->tensor_layout(t.get()))),
               "; an op of the plugin that has it makes the dense copy");
  return *p;
}

Tensor wrapped(Parts parts, const Tensor& view_of) {
  if (parts.values.requires_grad()) parts.values = parts.values.detach();
  Sizes size = parts.size;
  aj_wrap w{};
  w.struct_size = sizeof w;
  w.key = key;
  w.like = parts.values.dl();
  w.like.ndim = int32_t(size.size());
  w.like.shape = size.data();
  w.like.strides = nullptr;
  w.like.byte_offset = 0;
  w.layout = int32_t(parts.layout);
  w.view_of = view_of.get();
  Held payload(new_payload(std::move(parts)));
  w.payload = payload.o;
  aj_tensor* out = nullptr;
  kit::check(wraps->tensor_wrap(&w, &out));
  return Tensor::steal(out);
}

std::string_view layout_name(Layout layout) {
  constexpr std::string_view names[] = {"strided",    "sparse_coo", "sparse_csr", "opaque",
                                        "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  return names[size_t(layout)];
}

void refuse(std::string_view op, const Parts& p, std::string_view what) {
  kit::raise(AJ_UNIMPLEMENTED, op, ": ", what, ", the layout is ", layout_name(p.layout),
             "; call to_dense() first");
}

}  // namespace adjoin::ops::sparse

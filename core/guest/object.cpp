// core/guest/object.cpp: objects keep a hidden header of 48 bytes in front of the public 16:
// destructor and payload size.
#include "core/guest/object.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "core/base/transaction.hpp"
#include "core/base/value.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/pins.hpp"

namespace adjoin {
namespace {

struct Hidden {
  void (*destroy)(void*);
  uint64_t payload;
};
struct ObjectBlock {
  Hidden hidden;
  aj_object object;
};
static_assert(sizeof(ObjectBlock) == 32);

ObjectBlock* block(const aj_object* o) {
  return reinterpret_cast<ObjectBlock*>(reinterpret_cast<char*>(const_cast<aj_object*>(o)) -
                                        sizeof(Hidden));
}

struct Type {
  std::string name;
  uint64_t payload;
  void (*destroy)(void*);
  std::string plugin;  // "" of who is none
  bool on = true;      // its plugin is there
};
std::mutex types_lock;
std::deque<Type>& types() {
  static auto* t = new std::deque<Type>;
  return *t;
}

struct Items {
  aj_value* items;
  uint32_t n;
};
struct Stream {
  DLDevice device;
  void* native;
};
struct Function {
  aj_function_fn fn;
  void* self;
  void (*drop)(void*);
};

// Does a value with that tag point to memory of somebody?
bool refers(int32_t tag) { return tag == AJ_COMPLEX || (tag >= AJ_STRING && tag <= AJ_TENSORS); }

void list_destroy(void* p) {
  Items* l = static_cast<Items*>(p);
  for (uint32_t i = 0; i < l->n; i++)
    if (l->items[i].tag >= AJ_TENSOR) any_release(l->items[i].v.object);
  delete[] l->items;
}

void pin_function(const Function& f, void (*change)(Holder, const void*)) {
  change(Holder::function, reinterpret_cast<const void*>(f.fn));
  change(Holder::function, reinterpret_cast<const void*>(f.drop));
}

void function_destroy(void* p) {
  Function f = *static_cast<Function*>(p);
  call_drop(f.drop, f.self, "drop function");
  pin_function(f, unpin);
}

Type* find_type(std::string_view name) {
  for (Type& t : types())
    if (t.name == name) return &t;
  return nullptr;
}

int32_t number_of(const Type* t) {
  auto is_it = [&](Type& o) { return &o == t; };
  return AJ_DYNAMIC_BEGIN +
         int32_t(std::find_if(types().begin(), types().end(), is_it) - types().begin());
}

// What a schema can say: Object<acme::plan>.
bool is_type_name(std::string_view name) {
  constexpr std::string_view signs = "_.:-";
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [&](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           signs.find(char(c)) != signs.npos;
  });
}

aj_status* gone(const char* who, const Type& t) {
  return fail(AJ_UNAVAILABLE, who, ": type '", t.name, "': plugin '", t.plugin,
              "', which registered it, is not loaded now");
}

}  // namespace

aj_status* object_new(int32_t type, size_t payload, void (*destroy)(void*), aj_object** out,
                      void** out_payload) {
  auto* b = static_cast<ObjectBlock*>(::operator new(sizeof(ObjectBlock) + payload, std::nothrow));
  if (!b)
    return fail(AJ_OUT_OF_MEMORY, "object: out of memory: asked for ", uint64_t(payload), " bytes");
  b->hidden = {destroy, payload};
  b->object.refs_private = 0;
  refs(&b->object).store(1, std::memory_order_relaxed);
  b->object.type = type;
  b->object.flags = 0;
  std::memset(b + 1, 0, payload);
  *out = &b->object;
  if (out_payload) *out_payload = b + 1;
  return nullptr;
}

void* object_payload(aj_object* o) { return o ? block(o) + 1 : nullptr; }

aj_status* type_register(aj_str name, uint64_t payload_size, void (*destroy)(void*),
                         int32_t* out_type) {
  if (!is_type_name(view(name)))
    return fail(AJ_INVALID_ARGUMENT, "type_register: '", name,
                "' is no name of a type; letters, digits, _ . - and :: make one: \"acme::plan\"");
  if (payload_size > uint64_t{1} << 40)
    return fail(AJ_INVALID_ARGUMENT, "type_register: '", name, "': a payload of ", payload_size,
                " bytes; at most 2^40 are possible");
  Transaction* r = transaction();
  bool again = r && is_replaced(r->plugin);
  Type now = {std::string(view(name)), payload_size, destroy,
              r ? r->plugin : plugin::plugin_at(reinterpret_cast<const void*>(destroy))};
  std::lock_guard guard(types_lock);
  Type* t = find_type(now.name);
  if (t && t->on && !(again && t->plugin == now.plugin))
    return fail(AJ_ALREADY_EXISTS, "type '", name, "': registered already",
                t->plugin.empty() ? "" : ", by plugin '" + t->plugin + "'",
                "; choose another name");
  if (t && t->payload != payload_size)
    return fail(AJ_PRECONDITION, "type '", name, "': its payload has ", payload_size,
                " bytes now, before it had ", t->payload,
                "; another size needs another name, or a new process");
  Type before = t ? *t : now;
  before.on = t && t->on;
  if (!t) t = &types().emplace_back();
  *t = std::move(now);
  if (r)
    r->undo.push_back([t, before] {
      std::lock_guard held(types_lock);
      *t = before;
    });
  *out_type = number_of(t);
  return nullptr;
}

aj_status* type_find(aj_str name, int32_t* out_type) {
  std::lock_guard guard(types_lock);
  Type* t = find_type(view(name));
  if (!t) return fail(AJ_NOT_FOUND, "type_find: nobody has registered a type '", name, "'");
  if (!t->on) return gone("type_find", *t);
  *out_type = number_of(t);
  return nullptr;
}

aj_str type_name(int32_t type) {
  std::lock_guard guard(types_lock);
  size_t i = size_t(type) - AJ_DYNAMIC_BEGIN;
  return type >= AJ_DYNAMIC_BEGIN && i < types().size() ? str(types()[i].name) : aj_str{"", 0};
}

void types_end(std::string_view plugin) {
  std::lock_guard guard(types_lock);
  for (Type& t : types())
    if (t.plugin == plugin) t.on = false;
}

aj_status* type_object_new(int32_t type, aj_object** out, void** out_payload) {
  std::lock_guard guard(types_lock);  // held while it is pinned: who ends types counts afterwards
  size_t i = size_t(type) - AJ_DYNAMIC_BEGIN;
  if (type < AJ_DYNAMIC_BEGIN || i >= types().size())
    return fail(AJ_NOT_FOUND, "object_new: no type has the number ", type);
  const Type& t = types()[i];
  if (!t.on) return gone("object_new", t);
  AJ_TRY(object_new(type, t.payload, t.destroy, out, out_payload));
  pin(Holder::object, reinterpret_cast<const void*>(t.destroy));
  return nullptr;
}

void (*object_destroyer(const aj_object* o))(void*) { return block(o)->hidden.destroy; }

static void destroy_now(aj_object* o) {
  ObjectBlock* b = block(o);
  auto destroy = b->hidden.destroy;
  if (o->type >= AJ_DYNAMIC_BEGIN) {
    call_drop(destroy, b + 1, "destroy function");
    unpin(Holder::object, reinterpret_cast<const void*>(destroy));
  } else {
    destroy(b + 1);  // the core's own, which throw nothing
  }
  ::operator delete(b);
}

// One object may hold the next, a million deep: beyond some depth they wait in a list, linked where
// their count was.
void object_destroy(aj_object* o) {
  if (!block(o)->hidden.destroy && o->type < AJ_DYNAMIC_BEGIN) return ::operator delete(block(o));
  constexpr int kDeep = 64;
  thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;
  thread_local aj_object* waiting __attribute__((tls_model("initial-exec"))) = nullptr;
  if (depth >= kDeep) {
    o->refs_private = reinterpret_cast<uint64_t>(waiting);
    waiting = o;
    return;
  }
  depth++;
  destroy_now(o);
  while (depth == 1 && waiting) {
    aj_object* next = waiting;
    waiting = reinterpret_cast<aj_object*>(next->refs_private);
    destroy_now(next);
  }
  depth--;
}

void release(aj_object* o) {
  if (!o) return;
  if (o->type == AJ_TENSOR) return release(reinterpret_cast<aj_tensor*>(o));
  if (!drop_ref(refs(o))) return;
  if (o->type == kNodeType) return node_destroy(o);
  object_destroy(o);
}

void release_value(aj_value& v) {
  if (v.tag >= AJ_TENSOR) release(v.v.object);
  v = none();
}

void any_retain(void* object) { retain(static_cast<aj_object*>(object)); }
void any_release(void* object) { release(static_cast<aj_object*>(object)); }

aj_status* string_new(aj_str text, aj_object** out) {
  void* p;
  AJ_TRY(object_new(AJ_STRING_OBJ, text.len + 1, nullptr, out, &p));
  if (text.len) std::memcpy(p, text.data, text.len);
  return nullptr;
}

aj_str string_get(const aj_object* o) {
  if (!o || o->type != AJ_STRING_OBJ) return {"", 0};
  return {reinterpret_cast<const char*>(block(o) + 1), block(o)->hidden.payload - 1};
}

aj_status* list_new_stealing(aj_value* items, uint32_t n, aj_object** out) {
  void* p;
  auto* copy = new (std::nothrow) aj_value[n ? n : 1];
  aj_status* s = copy ? object_new(AJ_LIST_OBJ, sizeof(Items), list_destroy, out, &p)
                      : fail(AJ_OUT_OF_MEMORY, "list: out of memory: asked for ", n, " items");
  if (s) {
    delete[] copy;
    for (uint32_t i = 0; i < n; i++)
      if (items[i].tag >= AJ_TENSOR) any_release(items[i].v.object);
    return s;
  }
  for (uint32_t i = 0; i < n; i++) copy[i] = items[i];
  *static_cast<Items*>(p) = {copy, n};
  return nullptr;
}

aj_status* list_new(const aj_value* items, uint32_t n, aj_object** out) {
  for (uint32_t i = 0; i < n; i++) {
    int32_t tag = items[i].tag;
    if (tag == AJ_TENSOR && items[i].v.tensor) continue;
    if (refers(tag))
      return fail(AJ_INVALID_ARGUMENT, "list_new: item ", i,
                  " refers to memory of its own; wrap it in an object");
    if (tag < AJ_NONE || (tag > AJ_MEMORY_FORMAT && tag < AJ_TENSOR) || tag > AJ_OBJECT ||
        (tag >= AJ_TENSOR && !items[i].v.object))
      return fail(
          AJ_INVALID_ARGUMENT, "list_new: item ", i, " has the tag ", tag,
          tag >= AJ_TENSOR && tag <= AJ_OBJECT ? " and is NULL" : ", which is none of a value");
  }
  for (uint32_t i = 0; i < n; i++)
    if (items[i].tag >= AJ_TENSOR) any_retain(items[i].v.object);
  return list_new_stealing(const_cast<aj_value*>(items), n, out);
}

const aj_value* list_get(const aj_object* o, uint32_t* n) {
  *n = 0;
  if (!o || o->type != AJ_LIST_OBJ) return nullptr;
  const Items* l = reinterpret_cast<const Items*>(block(o) + 1);
  *n = l->n;
  return l->items;
}

aj_status* complex_new(double real, double imag, aj_object** out) {
  void* p;
  AJ_TRY(object_new(AJ_COMPLEX_OBJ, 2 * sizeof(double), nullptr, out, &p));
  static_cast<double*>(p)[0] = real, static_cast<double*>(p)[1] = imag;
  return nullptr;
}

aj_status* complex_get(const aj_object* o, double* real, double* imag) {
  if (!o || o->type != AJ_COMPLEX_OBJ)
    return fail(AJ_WRONG_TYPE, "complex_get: the object is not a complex number");
  const auto* z = reinterpret_cast<const double*>(block(o) + 1);
  *real = z[0], *imag = z[1];
  return nullptr;
}

aj_status* stream_new(DLDevice device, void* native, aj_object** out) {
  void* p;
  AJ_TRY(object_new(AJ_STREAM, sizeof(Stream), nullptr, out, &p));
  *static_cast<Stream*>(p) = {device, native};
  return nullptr;
}

aj_status* stream_get(const aj_object* o, DLDevice* device, void** native) {
  if (!o || o->type != AJ_STREAM)
    return fail(AJ_WRONG_TYPE, "stream_get: the object is not a stream");
  const auto* s = reinterpret_cast<const Stream*>(block(o) + 1);
  *device = s->device, *native = s->native;
  return nullptr;
}

aj_status* value_own(const aj_value& v, aj_value* out) {
  aj_value to{};
  if (v.tag == AJ_COMPLEX) {
    to.tag = AJ_COMPLEX_OBJ;
    AJ_TRY(complex_new(v.v.c128[0], v.v.c128[1], &to.v.object));
  } else if (v.tag == AJ_STRING) {
    to.tag = AJ_STRING_OBJ;
    AJ_TRY(string_new({v.v.str, v.aux}, &to.v.object));
  } else if (refers(v.tag)) {
    std::vector<aj_value> items(v.aux);
    for (uint32_t i = 0; i < v.aux; i++) {
      if (v.tag == AJ_INTS) items[i] = value(v.v.ints[i]);
      if (v.tag == AJ_FLOATS) items[i] = value(v.v.floats[i]);
      if (v.tag == AJ_BOOLS) items[i] = value(v.v.bools[i] != 0);
      if (v.tag == AJ_TENSORS && v.v.tensors[i]) items[i] = value(v.v.tensors[i]);
    }
    to.tag = AJ_LIST_OBJ;
    AJ_TRY(list_new(items.data(), v.aux, &to.v.object));
  } else {
    to = v;
    if (v.tag >= AJ_TENSOR) any_retain(v.v.object);
  }
  *out = to;
  return nullptr;
}

aj_status* function_new(aj_function_fn fn, void* self, void (*drop)(void*), aj_object** out) {
  if (!fn) return fail(AJ_INVALID_ARGUMENT, "function_new: the function is NULL");
  void* p;
  AJ_TRY(object_new(AJ_FUNCTION, sizeof(Function), function_destroy, out, &p));
  *static_cast<Function*>(p) = {fn, self, drop};
  pin_function(*static_cast<Function*>(p), pin);
  return nullptr;
}

aj_status* function_call(aj_object* f, const aj_value* args, uint32_t nargs, aj_value* ret) {
  if (!f || f->type != AJ_FUNCTION)
    return fail(AJ_WRONG_TYPE, "function_call: the object is not a function");
  Function* fn = static_cast<Function*>(object_payload(f));
  aj_value got{};
  AJ_TRY(caught(fn->fn, "function", [&] { return fn->fn(fn->self, args, nargs, &got); }));
  if (refers(got.tag))
    return fail(AJ_INTERNAL, "function_call: the function gave a value of tag ", got.tag,
                ", which owns nothing; an object is wanted");
  *ret = got;
  return nullptr;
}

}  // namespace adjoin

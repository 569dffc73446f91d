// core/object.cpp: objects keep a hidden header of 48 bytes in front of the public 16: destructor and payload size.
#include "core/object.hpp"

#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "core/autograd/record.hpp"
#include "core/tensor/tensor.hpp"

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
  return reinterpret_cast<ObjectBlock*>(reinterpret_cast<char*>(const_cast<aj_object*>(o)) - sizeof(Hidden));
}

struct Type {
  std::string name;
  uint64_t payload;
  void (*destroy)(void*);
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
struct Function {
  aj_function_fn fn;
  void* self;
  void (*drop)(void*);
};

void list_destroy(void* p) {
  Items* l = static_cast<Items*>(p);
  for (uint32_t i = 0; i < l->n; i++)
    if (l->items[i].tag >= AJ_TENSOR) any_release(l->items[i].v.object);
  delete[] l->items;
}

void function_destroy(void* p) {
  Function* f = static_cast<Function*>(p);
  if (f->drop) f->drop(f->self);
}

}  // namespace

aj_status* object_new(int32_t type, size_t payload, void (*destroy)(void*), aj_object** out, void** out_payload) {
  auto* b = static_cast<ObjectBlock*>(::operator new(sizeof(ObjectBlock) + payload, std::nothrow));
  if (!b) return fail(AJ_OUT_OF_MEMORY, "object: out of memory: asked for ", uint64_t(payload), " bytes");
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

aj_status* type_register(aj_str name, uint64_t payload_size, void (*destroy)(void*), int32_t* out_type) {
  std::lock_guard guard(types_lock);
  for (size_t i = 0; i < types().size(); i++)
    if (types()[i].name == view(name))
      return fail(AJ_ALREADY_EXISTS, "type '", name, "': registered already; choose another name");
  types().push_back({std::string(view(name)), payload_size, destroy});
  *out_type = AJ_DYNAMIC_BEGIN + int32_t(types().size()) - 1;
  return nullptr;
}

aj_status* type_object_new(int32_t type, aj_object** out, void** out_payload) {
  Type found;
  {
    std::lock_guard guard(types_lock);
    size_t i = size_t(type) - AJ_DYNAMIC_BEGIN;
    if (type < AJ_DYNAMIC_BEGIN || i >= types().size())
      return fail(AJ_NOT_FOUND, "object_new: no type has the number ", type);
    found = types()[i];
  }
  return object_new(type, found.payload, found.destroy, out, out_payload);
}

void object_destroy(aj_object* o) {
  ObjectBlock* b = block(o);
  if (b->hidden.destroy) b->hidden.destroy(b + 1);
  ::operator delete(b);
}

void release(aj_object* o) {
  if (!o) return;
  if (o->type == AJ_TENSOR) return release(reinterpret_cast<aj_tensor*>(o));
  if (!drop_ref(refs(o))) return;
  if (o->type == kNodeType) return node_destroy(o);
  object_destroy(o);
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
    if (tag == AJ_COMPLEX || (tag >= AJ_STRING && tag <= AJ_TENSORS))
      return fail(AJ_INVALID_ARGUMENT, "list_new: item ", i, " refers to memory of its own; wrap it in an object");
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

aj_status* function_new(aj_function_fn fn, void* self, void (*drop)(void*), aj_object** out) {
  void* p;
  AJ_TRY(object_new(AJ_FUNCTION, sizeof(Function), function_destroy, out, &p));
  *static_cast<Function*>(p) = {fn, self, drop};
  return nullptr;
}

aj_status* function_call(aj_object* f, const aj_value* args, uint32_t nargs, aj_value* ret) {
  if (!f || f->type != AJ_FUNCTION) return fail(AJ_WRONG_TYPE, "function_call: the object is not a function");
  Function* fn = static_cast<Function*>(object_payload(f));
  return fn->fn(fn->self, args, nargs, ret);
}

}  // namespace adjoin

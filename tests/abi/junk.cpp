// tests/abi/junk.cpp: functions of the tables given what they cannot take, texts of no length that
// there is among it; each answer is printed. A crash here is a fault of the core's.
#include <adjoin/abi/plugin.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

AJ_PLUGIN_NOTE("junk", "0.1.0", "", "Apache-2.0", "device:junk", "");

static const aj_core* core;

static aj_str text(const char* s) { return {s, std::strlen(s)}; }
static void say(const char* what, aj_status* s) {
  aj_str m = s ? core->status_message(s) : text("");
  std::printf("%s: %d %.*s\n", what, s ? core->status_code(s) : 0, int(m.len), m.data);
  core->status_free(s);
}
static aj_status* throws(void*, int64_t lo, int64_t) {
  if (lo >= 4) throw std::runtime_error("out of a parallel body");
  return nullptr;
}

static void lists() {
  aj_object* o = nullptr;
  aj_value odd{};
  for (int32_t tag : {-1, 14, 63, 72, 256}) {
    odd.tag = tag;
    say("list", core->list_new(&odd, 1, &o));
  }
  odd.tag = AJ_TENSOR;
  say("list", core->list_new(&odd, 1, &o));
  say("first", core->list_new(nullptr, 0, &o));
  for (int i = 0; i < 1000000; i++) {  // one in the other
    aj_value item{};
    item.tag = AJ_LIST_OBJ;
    item.v.object = o;
    aj_object* outer = nullptr;
    if (core->list_new(&item, 1, &outer)) return say("deep", nullptr);
    core->release(o);
    o = outer;
  }
  core->release(o);
  std::printf("deep: released\n");
}

static void tensors(DLDevice cpu) {
  aj_tensor *t = nullptr, *u = nullptr;
  int64_t shape[2] = {2, 3};
  DLTensor like{nullptr, cpu, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  say("made", core->tensor_empty(&like, 0, &t));
  say("memory", core->tensor_from_memory(&like, 24, 0, nullptr, nullptr, &u));
  like.dtype.lanes = 0;
  say("lanes", core->tensor_empty(&like, 0, &u));
  like.dtype.lanes = 1;
  like.shape = nullptr;
  say("shape", core->tensor_empty(&like, 0, &u));
  say("shape", core->tensor_view(t, &like, 0, &u));
  say("shape", core->tensor_from_memory(&like, 24, 0, nullptr, nullptr, &u));
  say("shape", core->tensor_resize(t, 2, nullptr));
  say("shape", core->tensor_set(t, t, 0, 2, nullptr, nullptr));
  say("shape", core->tensor_set(t, t, 0, 2, shape, nullptr));
  core->release(t);
}

// What a derivative does that passes on a gradient that is not there.
static void calls(const aj_dispatch* ops, DLDevice cpu) {
  aj_tensor* t = nullptr;
  int64_t shape[2] = {2, 3};
  DLTensor like{nullptr, cpu, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  say("operand", core->tensor_empty(&like, 0, &t));
  aj_value args[2] = {{AJ_TENSOR, 0, {}}, {AJ_INTS, 1, {}}}, ret{};
  say("null", ops->call(ops->find_op(text("neg")), args, 1, &ret, 1));
  args[0].v.tensor = t;
  say("null", ops->call(ops->find_op(text("sum")), args, 2, &ret, 1));
  aj_tensor* list[2] = {t, nullptr};
  args[0] = {AJ_TENSORS, 2, {}};
  say("null", ops->call(ops->find_op(text("cat")), args, 1, &ret, 1));
  args[0].v.tensors = list;
  say("null", ops->call(ops->find_op(text("cat")), args, 1, &ret, 1));
  core->release(t);
}

static aj_status* count(void*, int32_t* out) { return *out = 1, nullptr; }

AJ_PLUGIN_INIT {
  core = env->core;
  auto* ops = static_cast<const aj_dispatch*>(env->query("aj.op", 1));
  auto* services = static_cast<const aj_services*>(env->query("aj.service", 1));
  int32_t type = 0;
  DLDataType dtype;
  aj_object* o = nullptr;
  const aj_str endless = {"x", uint64_t{1} << 62};
  say("type", core->type_register(text("junk::large"), ~uint64_t{0} - 15, nullptr, &type));
  say("function", core->function_new(nullptr, nullptr, nullptr, &o));
  say("dtype", core->dtype_register(text(""), 8, AJ_CLASS_OPAQUE, &dtype));
  say("generator", core->generator_new({DLDeviceType(4242), 0}, &o));
  say("fallback", ops->def_fallback(
                      env->registrar, text("autograd"),
                      [](void*, aj_call*) -> aj_status* { return nullptr; }, nullptr));
  std::printf("mask: %d\n", int(ops->key_mask(endless)));
  std::printf("services: %u %d\n", services->count(endless), int(services->chosen(endless).len));
  aj_service_def d{};
  d.struct_size = sizeof d;
  say("service", services->at(endless, 0, &d));
  say("choose", services->choose(endless, endless));
  say("parallel", core->parallel_for(64, 4, throws, nullptr));
  say("parallel", core->parallel_for(8, 4, throws, nullptr));
  lists();
  tensors({kDLCPU, 0});
  calls(ops, {kDLCPU, 0});
  std::fflush(stdout);
  static aj_device_vtbl v{};  // a device that wants the host's number
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_SYNCHRONOUS;
  v.name = text("junk");
  v.dlpack_type = kDLCPU;
  v.count = count;
  return env->def_device(env->registrar, &v);
}

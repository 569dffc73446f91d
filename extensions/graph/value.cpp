// extensions/graph/value.cpp: constants of a program, and what the registry says of an op.
#include "value.hpp"

#include <mutex>
#include <unordered_map>

namespace adjoin::graph {

Arg constant_of(const aj_value& v, const char* who) {
  Arg a;
  a.tag = v.tag;
  switch (v.tag) {
    case AJ_NONE:
      break;
    case AJ_BOOL:
    case AJ_INT:
    case AJ_LAYOUT:
    case AJ_MEMORY_FORMAT:
      a.i = v.v.i;
      break;
    case AJ_FLOAT:
      a.re = v.v.f;
      break;
    case AJ_COMPLEX:
      a.re = v.v.c128[0], a.im = v.v.c128[1];
      break;
    case AJ_COMPLEX_OBJ:
      a.tag = AJ_COMPLEX;
      check(core().complex_get(v.v.object, &a.re, &a.im));
      break;
    case AJ_DTYPE:
      a.dtype = v.v.dtype;
      break;
    case AJ_DEVICE:
      a.text = text(core().device_name(v.v.device.device_type), ":", v.v.device.device_id);
      break;
    case AJ_STRING:
      a.text.assign(v.v.str, v.aux);
      break;
    case AJ_STRING_OBJ:
      a.tag = AJ_STRING;
      a.text = view_of(core().string_get(v.v.object));
      break;
    case AJ_INTS:
      a.ints.assign(v.v.ints, v.v.ints + v.aux);
      break;
    case AJ_FLOATS:
      a.reals.assign(v.v.floats, v.v.floats + v.aux);
      break;
    case AJ_BOOLS:
      a.bools.assign(v.v.bools, v.v.bools + v.aux);
      break;
    case AJ_TENSORS:
      if (v.aux) raise(AJ_INTERNAL, who, ": a list of tensors is no constant");
      a.kind = Arg::Kind::values;
      break;
    case AJ_GENERATOR:
      raise(AJ_UNIMPLEMENTED, who,
            ": a generator of the program's own is drawn from; a program draws from the one that "
            "it is run with: leave `generator` out");
    default:
      raise(AJ_UNIMPLEMENTED, who, ": an argument (tag ", v.tag,
            ") is a function, a stream or an object, which a program cannot hold; compute it "
            "outside and give tensors and numbers");
  }
  return a;
}

aj_value value_of(const Arg& a) {
  aj_value v{a.tag, 0, {0}};
  switch (a.tag) {
    case AJ_FLOAT:
      v.v.f = a.re;
      break;
    case AJ_COMPLEX:
      v.v.c128 = &a.re;  // im stands behind it
      break;
    case AJ_DTYPE:
      v.v.dtype = a.dtype;
      break;
    case AJ_DEVICE:
      v.v.device = device(a.text);
      break;
    case AJ_STRING:
      return value(std::string_view(a.text));
    case AJ_INTS:
      return value(Ints(a.ints.data(), a.ints.size()));
    case AJ_FLOATS:
      v.aux = uint32_t(a.reals.size());
      v.v.floats = a.reals.data();
      break;
    case AJ_BOOLS:
      v.aux = uint32_t(a.bools.size());
      v.v.bools = a.bools.data();
      break;
    default:
      v.v.i = a.i;
  }
  return v;
}
static_assert(offsetof(Arg, im) == offsetof(Arg, re) + sizeof(double));

bool is_default(const aj_param& p, const Arg& a) {
  if (!(p.flags & (AJ_PARAM_HAS_DEFAULT | AJ_PARAM_OPTIONAL))) return false;
  return a == default_of(p);
}

void trim(const OpFacts& f, std::vector<Arg>& args) {
  while (!args.empty() && is_default(f.params[args.size() - 1], args.back())) args.pop_back();
}

const OpFacts& facts_of(const aj_op* op) {
  static std::mutex lock;
  static std::unordered_map<const aj_op*, std::unique_ptr<OpFacts>> known;
  std::lock_guard held(lock);
  std::unique_ptr<OpFacts>& f = known[op];
  if (f) return *f;
  auto made = std::make_unique<OpFacts>();
  aj_op_info info{};
  info.struct_size = sizeof info;
  check(dispatch().op_info(op, &info));
  made->name = view_of(info.name);
  made->kind = view_of(info.kind);
  for (uint32_t i = 0; i < info.nparams; i++) {
    aj_param p{};
    p.struct_size = sizeof p;
    check(dispatch().op_param(op, i, &p));
    made->params.push_back(p);
    made->writes |= (p.flags & AJ_PARAM_WRITTEN) != 0;
    made->draws |= view_of(info.tags).find("ordered") != std::string_view::npos ||
                   p.base == AJ_PARAM_GENERATOR;
  }
  for (uint32_t i = 0; i < info.nresults; i++) {
    aj_param p{};
    p.struct_size = sizeof p;
    check(dispatch().op_result(op, i, &p));
    made->results.push_back(p);
  }
  made->writes_first = !made->params.empty() && !made->results.empty() &&
                       made->params[0].flags & AJ_PARAM_WRITTEN &&
                       made->results[0].flags & AJ_PARAM_ALIASED &&
                       made->results[0].base == AJ_PARAM_TENSOR && !made->results[0].list;
  f = std::move(made);
  return *f;
}

}  // namespace adjoin::graph

// extensions/graph/script/door.cpp: scripted programs from outside: values are copied in and out.
#include "door.hpp"

#include <adjoin/kit/plugin.hpp>

#include "../record.hpp"
#include "lower.hpp"
#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

constexpr aj_str kValue = AJ_STR_LIT("graph::value");

struct Box {
  int32_t kind = 0;
  std::string name;
  std::vector<aj_value> items;
  ~Box() {
    for (aj_value& v : items) drop(v);
  }
};

int32_t box_type() {
  static const int32_t type = [] {
    int32_t made = 0;
    check(core().type_find(kValue, &made));
    return made;
  }();
  return type;
}

Box& box_in(const aj_object* o) {
  if (!o || o->type != box_type())
    raise(AJ_WRONG_TYPE, "value: an object of another type is given");
  return **static_cast<Box**>(core().object_payload(const_cast<aj_object*>(o)));
}

aj_object* object_of(std::unique_ptr<Box> b) {
  aj_object* o = nullptr;
  void* at = nullptr;
  check(core().object_new(box_type(), &o, &at));
  *static_cast<Box**>(at) = b.release();
  return o;
}

aj_value box(int32_t kind, std::string name, const std::vector<Value>& items, const Unit* u,
             int depth) {
  auto b = std::make_unique<Box>();
  b->kind = kind, b->name = std::move(name);
  for (const Value& v : items) b->items.push_back(boxed(v, u, depth + 1));
  aj_value out{AJ_OBJECT, 0, {0}};
  out.v.object = object_of(std::move(b));
  return out;
}

}  // namespace

// The value for outside, owned.
aj_value boxed(const Value& v, const Unit* u, int depth) {
  if (depth > 64)
    raise(AJ_UNIMPLEMENTED, "a result is nested deeper than 64; does it hold itself?");
  aj_value out{};
  if (is<None>(v) || is<Unset>(v)) return out;
  if (auto* b = std::get_if<bool>(&v)) return value(*b);
  if (auto* i = std::get_if<int64_t>(&v)) return value(*i);
  if (auto* d = std::get_if<double>(&v)) return value(*d);
  if (auto* d = std::get_if<DLDataType>(&v)) return value(*d);
  if (auto* d = std::get_if<DLDevice>(&v)) return value(*d);
  if (auto* t = std::get_if<Tag>(&v)) return {t->tag, 0, {t->i}};
  if (auto* t = std::get_if<Tensor>(&v)) {
    out = value(*t);
    core().retain(out.v.tensor);
    return out;
  }
  if (auto* z = std::get_if<std::complex<double>>(&v)) {
    out.tag = AJ_COMPLEX_OBJ;
    check(core().complex_new(z->real(), z->imag(), &out.v.object));
    return out;
  }
  if (auto* s = std::get_if<std::string>(&v)) {
    out.tag = AJ_STRING_OBJ;
    check(core().string_new(str(*s), &out.v.object));
    return out;
  }
  if (auto* l = in<List>(v)) return box(AJ_VALUE_LIST, "", l->items, u, depth);
  if (is<Range>(v)) return box(AJ_VALUE_LIST, "", items_of(v), u, depth);
  std::vector<Value> items;
  if (auto* t = in<Tuple>(v)) {
    if (!t->named) return box(AJ_VALUE_TUPLE, "", t->items, u, depth);
    for (size_t i = 0; i < t->items.size(); i++) {
      items.emplace_back(t->named->fields[i]);
      items.push_back(t->items[i]);
    }
    return box(AJ_VALUE_NAMED, t->named->written(), items, u, depth);
  }
  if (auto* d = in<Dict>(v)) {
    for (auto& [k, x] : d->items) items.push_back(k), items.push_back(x);
    return box(AJ_VALUE_DICT, "", items, u, depth);
  }
  if (auto* o = in<Object>(v)) {
    for (auto& [name, x] : o->fields) items.emplace_back(name), items.push_back(x);
    return box(AJ_VALUE_OBJECT, o->of->name, items, u, depth);
  }
  raise(AJ_UNIMPLEMENTED, "a scripted program gives a ", type_name(v),
        ", which stays inside of it");
}

Value unboxed(const aj_value& v, const Unit* u) {
  switch (v.tag) {
    case AJ_NONE:
      return None{};
    case AJ_BOOL:
      return v.v.i != 0;
    case AJ_INT:
      return v.v.i;
    case AJ_FLOAT:
      return v.v.f;
    case AJ_COMPLEX:
    case AJ_COMPLEX_OBJ:
      return Scalar::of(v).to_complex();
    case AJ_DTYPE:
      return v.v.dtype;
    case AJ_DEVICE:
      return v.v.device;
    case AJ_LAYOUT:
    case AJ_MEMORY_FORMAT:
      return Tag{v.tag, v.v.i};
    case AJ_STRING:
      return std::string(v.v.str, v.aux);
    case AJ_STRING_OBJ:
      return std::string(view_of(core().string_get(v.v.object)));
    case AJ_TENSOR:
      return v.v.tensor ? Value(Tensor::borrow(v.v.tensor)) : Value(None{});
    case AJ_LIST_OBJ: {
      uint32_t n = 0;
      const aj_value* items = core().list_get(v.v.object, &n);
      std::vector<Value> all;
      for (uint32_t i = 0; i < n; i++) all.push_back(unboxed(items[i], u));
      return list(std::move(all));
    }
    case AJ_OBJECT:
      break;
    default:
      raise(AJ_WRONG_TYPE, "a scripted program takes no value of tag ", v.tag);
  }
  const Box& b = box_in(v.v.object);
  std::vector<Value> items;
  for (const aj_value& x : b.items) items.push_back(unboxed(x, u));
  if (b.kind == AJ_VALUE_LIST) return list(std::move(items));
  if (b.kind == AJ_VALUE_TUPLE) return tuple(std::move(items));
  if (b.kind == AJ_VALUE_DICT) {
    auto d = std::make_shared<Dict>();
    for (size_t i = 0; i + 1 < items.size(); i += 2) d->set(items[i], items[i + 1]);
    return d;
  }
  std::vector<std::string> fields;
  std::vector<Value> values;
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    fields.push_back(str_of(items[i])), values.push_back(items[i + 1]);
  if (b.kind == AJ_VALUE_NAMED) return tuple(std::move(values), names(b.name, fields));
  const Class* c = u ? u->type(b.name) : nullptr;
  if (!c) raise(AJ_NOT_FOUND, "the program has no class '", b.name, "'");
  auto o = std::make_shared<Object>(Object{c, {}});
  for (size_t i = 0; i < fields.size(); i++) o->set(fields[i], values[i]);
  return o;
}

namespace {

Program& scripted_in(const aj_object* o) {
  Program& p = program_in(o);
  if (!p.script)
    raise(AJ_WRONG_TYPE, p.name, ": this program was captured, not scripted; run it with tensors");
  return p;
}

aj_status* value_new(int32_t kind, aj_str name, const aj_value* items, uint32_t n,
                     aj_object** out) {
  return guard("", [&] {
    if (kind < AJ_VALUE_LIST || kind > AJ_VALUE_OBJECT)
      raise(AJ_INVALID_ARGUMENT, "value_new: there is no kind ", kind);
    if (kind > AJ_VALUE_TUPLE && n % 2) raise(AJ_INVALID_ARGUMENT, "value_new: a key has no value");
    auto b = std::make_unique<Box>();
    b->kind = kind, b->name = view_of(name);
    for (uint32_t i = 0; i < n; i++) {
      if (items[i].tag ==
          AJ_OBJECT) {  // made by value_new, too; its class is the program's to know
        box_in(items[i].v.object);
        core().retain(items[i].v.object);
        b->items.push_back(items[i]);
      } else {
        b->items.push_back(boxed(unboxed(items[i], nullptr), nullptr));
      }
    }
    *out = object_of(std::move(b));
  });
}

aj_status* value_get(const aj_object* v, int32_t* kind, aj_str* name, const aj_value** items,
                     uint32_t* n) {
  return guard("", [&] {
    const Box& b = box_in(v);
    *kind = b.kind, *name = str(b.name), *items = b.items.data(), *n = uint32_t(b.items.size());
  });
}

// Objects of classes are shown by their fields, without the program.
std::string shown(const aj_value& v, bool bits) {
  if (v.tag != AJ_OBJECT) return repr(unboxed(v, nullptr), bits);
  const Box& b = box_in(v.v.object);
  static const char* const ends[] = {"[]", "()", "{}", "()", "()"};
  const bool keyed = b.kind > AJ_VALUE_TUPLE;
  std::string out = b.name + ends[b.kind][0];
  for (size_t i = 0; i < b.items.size(); i += 1 + keyed) {
    out += i ? ", " : "";
    if (keyed && b.kind != AJ_VALUE_DICT)
      out += str_of(unboxed(b.items[i], nullptr)) + "=";
    else if (keyed)
      out += shown(b.items[i], bits) + ": ";
    out += shown(b.items[i + keyed], bits);
  }
  if (b.kind == AJ_VALUE_TUPLE && b.items.size() == 1) out += ",";
  return out + ends[b.kind][1];
}

aj_status* value_text(const aj_value* v, uint32_t flags, aj_object** out) {
  return guard("", [&] { check(core().string_new(str(shown(*v, flags & AJ_TEXT_BITS)), out)); });
}

int32_t scripted(const aj_object* program) {
  try {
    return program_in(program).script != nullptr;
  } catch (...) {
    return 0;
  }
}

std::string signature(const std::string& name, const Function& f, bool method) {
  std::string out = name + "(";
  bool first = true, only = false;
  for (size_t i = method; i < f.params.size(); i++) {
    const Param& p = f.params[i];
    if (p.how == Param::How::keyword && !std::exchange(only, true))
      out += first ? "*, " : ", *, ", first = true;
    out += first ? "" : ", ";
    out += (p.how == Param::How::rest ? "*" : p.how == Param::How::named ? "**" : "") + p.name;
    if (!p.kind_text.empty()) out += ": " + p.kind_text;
    if (p.has_default) out += " = " + repr(p.value);
    first = false;
  }
  return out + ")" + (f.kind_text.empty() ? "" : " -> " + f.kind_text);
}

// Of a module and those in it.
void methods_in(const Object& o, const std::string& path, std::string& lines, int depth) {
  for (auto& [name, f] : o.of->methods) lines += signature(path + name, *f, true) + "\n";
  for (auto& [name, v] : o.fields)
    if (Object* inner = in<Object>(v); inner && inner->of->module && depth < 64)
      methods_in(*inner, path + name + ".", lines, depth + 1);
}

aj_status* functions(const aj_object* program, aj_object** out) {
  return guard("", [&] {
    const Unit& u = *scripted_in(program).script;
    std::string lines;
    if (is_module(scripted_in(program))) {
      methods_in(*u.objects[0], "", lines, 0);
    } else {
      for (auto& f : u.functions) lines += signature(f->name, *f, false) + "\n";
    }
    check(core().string_new(str(lines), out));
  });
}

aj_status* call_function(aj_object* program, aj_str name, const aj_value* args, uint32_t nargs,
                         const aj_str* labels, uint32_t nlabels, aj_value* ret) {
  return guard("", [&] {
    Program& p = scripted_in(program);
    if (nlabels > nargs) raise(AJ_INVALID_ARGUMENT, "call: more names than arguments");
    std::vector<Value> given;
    Named named;
    for (uint32_t i = 0; i < nargs; i++) {
      Value v = unboxed(args[i], p.script.get());
      if (i < nargs - nlabels)
        given.push_back(std::move(v));
      else
        named.emplace_back(view_of(labels[i - (nargs - nlabels)]), std::move(v));
    }
    *ret = boxed(call(p, view_of(name), std::move(given), std::move(named)), p.script.get());
  });
}

// The object and the name of its attribute.
std::pair<Object*, std::string_view> place(const Program& p, std::string_view path) {
  const Unit& u = *p.script;
  if (!is_module(p)) raise(AJ_NOT_FOUND, p.name, ": functions have no attributes");
  Object* o = u.objects[0].get();
  for (size_t dot; (dot = path.find('.')) != path.npos; path.remove_prefix(dot + 1)) {
    Value* next = o->find(path.substr(0, dot));
    if (!next || !(o = in<Object>(*next)))
      raise(AJ_NOT_FOUND, p.name, ": there is no '", path, "'");
  }
  return {o, path};
}

aj_status* get(const aj_object* program, aj_str path, aj_value* ret) {
  return guard("", [&] {
    const Program& p = scripted_in(program);
    auto [o, name] = place(p, view_of(path));
    const Value* v = o->find(name);
    if (!v)
      for (auto& [n, constant] : o->of->constants)
        if (n == name) v = &constant;
    if (!v)
      raise_as("AttributeError", AJ_NOT_FOUND, p.name, ": there is no attribute '", name, "'");
    *ret = boxed(*v, p.script.get());
  });
}

aj_status* set(aj_object* program, aj_str path, const aj_value* v) {
  return guard("", [&] {
    Program& p = scripted_in(program);
    auto [o, name] = place(p, view_of(path));
    o->set(name, unboxed(*v, p.script.get()));
  });
}

// What runs if nothing else is said: the module's forward, or the first function.
const Function* first_of(const Program& p) {
  const Unit& u = *p.script;
  if (is_module(p)) return u.objects[0]->of->method("forward");
  if (const Function* f = u.function(p.name)) return f;
  return u.functions.empty() ? nullptr : u.functions[0].get();
}

void tensors_in(const Value& v, std::vector<Tensor>& out) {
  if (auto* t = std::get_if<Tensor>(&v))
    out.push_back(*t);
  else if (Dict* d = in<Dict>(v))
    for (auto& [k, x] : d->items) tensors_in(x, out);
  else if (holds<List>(v) || holds<Tuple>(v))
    for (const Value& x : items_of(v)) tensors_in(x, out);
}

}  // namespace

uint32_t inputs(const Program& p) {
  const Function* f = first_of(p);
  uint32_t n = 0;
  for (size_t i = is_module(p); f && i < f->params.size(); i++)
    n += !f->params[i].has_default && f->params[i].how == Param::How::any;
  return n;
}
uint32_t results(const Program& p) {
  const Function* f = first_of(p);
  if (!f) return 0;
  return f->kind.name == "Tuple" ? uint32_t(f->kind.of.size()) : f->kind.name != "None";
}
std::string_view input_name(const Program& p, uint32_t i) {
  const Function* f = first_of(p);
  const size_t at = i + is_module(p);
  if (!f || at >= f->params.size()) raise(AJ_OUT_OF_RANGE, p.name, ": there is no input ", i);
  return f->params[at].name;
}

void run(Program& p, aj_tensor* const* args, uint32_t nargs, aj_tensor** rets, uint32_t nrets) {
  const Function* f = first_of(p);
  if (!f)
    raise(AJ_PRECONDITION, p.name, ": the program has no forward; call a function by its name");
  std::vector<Value> given;
  for (uint32_t i = 0; i < nargs; i++)
    given.push_back(args[i] ? Value(Tensor::borrow(args[i])) : Value(None{}));
  std::vector<Tensor> out;
  const bool module = is_module(p);
  tensors_in(call(p, module ? "forward" : f->name, std::move(given), {}), out);
  if (out.size() != nrets)
    raise(AJ_INVALID_ARGUMENT, p.name, ": it gives ", uint64_t(out.size()), " tensors, ", nrets,
          " are expected; annotate what the function returns, or call it by x.script");
  for (uint32_t i = 0; i < nrets; i++) rets[i] = out[i].take();
}

void register_values() {
  int32_t type;
  check(core().type_register(
      kValue, sizeof(Box*), [](void* p) { delete *static_cast<Box**>(p); }, &type));
}

// Captures call scripted code, and the other way round.
namespace {

aj_status* capture(aj_object* program, aj_str name, aj_str callee, const aj_value* args,
                   uint32_t nargs, const aj_str* labels, uint32_t nlabels, aj_value* ret) {
  return guard("", [&] {
    *ret = record_script(scripted_in(program), view_of(name), view_of(callee), args, nargs, labels,
                         nlabels);
  });
}

aj_status* lowered_text(const aj_object* program, aj_str name, aj_object** out) {
  return guard("", [&] {
    const Program& p = program_in(program);
    if (p.script) raise(AJ_INVALID_ARGUMENT, p.name, ": the program is scripted already");
    check(core().string_new(str(lowered(p, std::string(view_of(name)))), out));
  });
}

}  // namespace

const aj_scripts table = {
    .struct_size = sizeof(aj_scripts),
    .minor = 1,
    .value_new = value_new,
    .value_get = value_get,
    .value_text = value_text,
    .scripted = scripted,
    .functions = functions,
    .call = call_function,
    .get = get,
    .set = set,
    .capture = capture,
    .lowered = lowered_text,
    .print_to = print_to,
};

}  // namespace adjoin::graph::script

// extensions/graph/plugin.cpp: libaj_graph.so: the keys "capture" and "lazy", and the tables
// "x.program" and "x.lazy".
#include <adjoin/kit/plugin.hpp>

#include "lazy.hpp"
#include "parts.hpp"
#include "passes/passes.hpp"
#include "record.hpp"
#include "rewrite.hpp"
#include "run.hpp"
#include "script/door.hpp"

namespace adjoin::graph {
namespace {

constexpr aj_str kProgram = AJ_STR_LIT("graph::program");

int32_t program_type() {
  static const int32_t type = [] {
    int32_t made = 0;
    check(core().type_find(kProgram, &made));
    return made;
  }();
  return type;
}

}  // namespace

Program& program_in(const aj_object* o) {
  if (!o || o->type != program_type())
    raise(AJ_WRONG_TYPE, "program: an object of another type is given");
  return **static_cast<Program**>(core().object_payload(const_cast<aj_object*>(o)));
}

aj_object* object_of(std::unique_ptr<Program> p) {
  for (Value& v : p->values) {
    v.told = v.type.shape;
    for (int64_t& n : v.told) n = std::max<int64_t>(n, -1);
  }
  aj_object* o = nullptr;
  void* at = nullptr;
  check(core().object_new(program_type(), &o, &at));
  *static_cast<Program**>(at) = p.release();
  return o;
}

namespace {

aj_object* string_of(std::string_view text) {
  aj_object* o = nullptr;
  check(core().string_new(str(text), &o));
  return o;
}

aj_status* end(aj_tensor* const* results, uint32_t n, aj_str form_in, aj_str form_out,
               aj_object** out) {
  return guard("", [&] {
    auto made = finish(results, n);
    made->form_in = view_of(form_in), made->form_out = view_of(form_out);
    *out = object_of(std::move(made));
  });
}

aj_status* join_samples(aj_object* const* programs, uint32_t n, const aj_str* symbols,
                        uint32_t nsymbols, const int64_t* sizes, aj_object** out) {
  return guard("", [&] {
    if (nsymbols == 0 || nsymbols > 4 || n <= 1u << nsymbols)
      raise(AJ_INVALID_ARGUMENT,
            "generalize: 1 to 4 sizes k are wanted, and more than 2**k programs");
    std::vector<const Program*> list;
    std::vector<std::vector<int64_t>> samples;
    std::vector<std::string> names;
    for (uint32_t i = 0; i < n; i++) {
      list.push_back(&program_in(programs[i]));
      samples.emplace_back(sizes + i * nsymbols, sizes + (i + 1) * nsymbols);
    }
    for (uint32_t i = 0; i < nsymbols; i++) names.emplace_back(view_of(symbols[i]));
    *out = object_of(generalize(list, samples, names));
  });
}

aj_status* parse_text(aj_str text, aj_object** out) {
  return guard("", [&] {
    auto made = std::make_unique<Program>();
    parse(view_of(text), *made);
    *out = object_of(std::move(made));
  });
}

aj_status* text_of(aj_object* program, aj_object** out) {
  return guard("", [&] { *out = string_of(print(program_in(program))); });
}

aj_status* source(aj_object* program, uint32_t line, aj_object** out) {
  return guard("", [&] {
    const Program& p = program_in(program);
    *out = string_of(line < p.lines.size() ? p.lines[line] : std::string());
  });
}

aj_status* save_program(aj_object* program, aj_str path) {
  return guard("", [&] {
    Program& p = program_in(program);
    if (p.script) script::fields_to_weights(p);
    save(p, std::string(view_of(path)));
  });
}

aj_status* load_program(aj_str path, aj_object** out) {
  return guard("", [&] {
    auto made = std::make_unique<Program>();
    load(std::string(view_of(path)), *made);
    *out = object_of(std::move(made));
  });
}

// The i-th value of a kind; and its weight, if it is one.
uint32_t find(const Program& p, int32_t what, uint32_t i, Weight const** weight) {
  *weight = nullptr;
  if (what == AJ_PROGRAM_INPUT && i < p.tensor_inputs()) return p.body.inputs[i];
  if (what == AJ_PROGRAM_RESULT && i < p.body.results.size()) return p.body.results[i];
  for (const Weight& w : p.weights) {
    if (w.constant != (what == AJ_PROGRAM_CONSTANT) || what < AJ_PROGRAM_PARAM || i--) continue;
    *weight = &w;
    return w.value;
  }
  raise(AJ_OUT_OF_RANGE, "program: there is no such input, result, parameter or constant");
}

uint32_t count(const aj_object* program, int32_t what) {
  try {
    const Program& p = program_in(program);
    if (p.script && what == AJ_PROGRAM_INPUT) return script::inputs(p);
    if (p.script && what == AJ_PROGRAM_RESULT) return script::results(p);
    if (what == AJ_PROGRAM_INPUT) return p.tensor_inputs();
    if (what == AJ_PROGRAM_RESULT) return uint32_t(p.body.results.size());
    uint32_t n = 0;
    for (const Weight& w : p.weights) n += w.constant == (what == AJ_PROGRAM_CONSTANT);
    return n;
  } catch (...) {
    return 0;
  }
}

aj_status* at(const aj_object* program, int32_t what, uint32_t i, aj_program_value* io) {
  return guard("", [&] {
    const Program& p = program_in(program);
    const Weight* w;
    aj_program_value told{};
    told.struct_size = uint32_t(std::min<size_t>(io->struct_size, sizeof told));
    if (p.script && (what == AJ_PROGRAM_INPUT || what == AJ_PROGRAM_RESULT)) {
      if (what == AJ_PROGRAM_INPUT) told.name = str(script::input_name(p, i));
      std::memcpy(io, &told, told.struct_size);
      return;
    }
    const Value& v = p.values[find(p, what, i, &w)];
    told.name = str(w ? w->name : v.name);
    told.type.dtype = v.type.dtype;
    told.type.ndim = int32_t(v.told.size());
    told.type.shape = const_cast<int64_t*>(v.told.data());
    std::memcpy(io, &told, told.struct_size);
  });
}

aj_status* form(const aj_object* program, int32_t what, aj_object** out) {
  return guard("", [&] {
    const Program& p = program_in(program);
    *out = string_of(what == AJ_PROGRAM_INPUT ? p.form_in : p.form_out);
  });
}

aj_status* weight(const aj_object* program, int32_t what, uint32_t i, aj_tensor** out) {
  return guard("", [&] {
    const Weight* w;
    Program& p = program_in(program);
    if (p.script) script::fields_to_weights(p);
    find(p, what, i, &w);
    *out = w ? Tensor(w->tensor).take() : nullptr;
  });
}

aj_status* set_weight(aj_object* program, int32_t what, uint32_t i, aj_tensor* t) {
  return guard("", [&] {
    Program& p = program_in(program);
    const Weight* w;
    if (p.script) {  // which knows no types
      script::fields_to_weights(p);
      p.values[find(p, what, i, &w)].type = {
          false, t->dl.dtype, {t->dl.shape, t->dl.shape + t->dl.ndim}};
    }
    const Type& type = p.values[find(p, what, i, &w)].type;
    if (!w) raise(AJ_INVALID_ARGUMENT, "set_weight: a parameter or constant is wanted");
    if (!(t->dl.dtype == type.dtype) ||
        !std::equal(t->dl.shape, t->dl.shape + t->dl.ndim, type.shape.begin(), type.shape.end()))
      raise(AJ_INVALID_ARGUMENT, "set_weight: '", w->name, "' is ", print_type(p, type),
            " in the program, given is ", t->dl.dtype, Shape{t->dl.shape, t->dl.ndim});
    const_cast<Weight*>(w)->tensor = Tensor::borrow(t);
    if (p.script) script::weights_to_fields(p);
  });
}

aj_status* run_program(aj_object* program, aj_tensor* const* args, uint32_t nargs, uint32_t flags,
                       aj_tensor** rets, uint32_t nrets) {
  return guard("", [&] {
    if (flags & 0xffff & ~uint32_t(AJ_RUN_NO_FUSION))
      raise(AJ_INVALID_ARGUMENT, "run: flags ", flags, " are not known here");
    Program& p = program_in(program);
    if (p.script) return script::run(p, args, nargs, rets, nrets);
    run(p, args, nargs, flags, rets, nrets);
  });
}

aj_status* stats(const aj_object* program, aj_program_stats* io) {
  return guard("", [&] {
    const Program& p = program_in(program);
    aj_program_stats told{uint32_t(std::min<size_t>(io->struct_size, sizeof told)),
                          0,
                          p.nodes,
                          p.passes,
                          p.groups,
                          p.fused};
    std::memcpy(io, &told, told.struct_size);
  });
}

aj_status* apply(const aj_object* program, uint32_t passes, aj_object** out) {
  return guard("", [&] { *out = object_of(apply_passes(program_in(program), passes)); });
}
aj_status* calls(const aj_object* program, aj_each_call each, void* self) {
  return guard("", [&] { each_call(program_in(program), each, self); });
}
aj_status* cut_out(const aj_object* program, const uint32_t* calls, uint32_t ncalls,
                   const uint32_t* inputs, uint32_t ninputs, const uint32_t* results,
                   uint32_t nresults, aj_object** out) {
  return guard("", [&] {
    *out = object_of(cut(program_in(program), {calls, calls + ncalls}, {inputs, inputs + ninputs},
                         {results, results + nresults}));
  });
}
const aj_passes passes_table = {sizeof(aj_passes), 1, apply, calls, cut_out};

aj_status* number(const aj_object* program, aj_str parameter, uint32_t* call, aj_value* value,
                  uint32_t* first) {
  return guard("",
               [&] { find_number(program_in(program), view_of(parameter), call, value, first); });
}

aj_status* lift_number(aj_object* program, uint32_t call, aj_str parameter, uint32_t i) {
  return guard("", [&] { lift(program_in(program), call, view_of(parameter), i); });
}

aj_status* view(aj_object* program, uint32_t i, uint32_t base, const DLTensor* from,
                const DLTensor* as) {
  return guard("", [&] { make_view(program_in(program), i, base, *from, *as); });
}

const aj_programs table = {
    .struct_size = sizeof(aj_programs),
    .minor = 0,
    .begin = begin,
    .input = input,
    .param = param,
    .end = end,
    .cancel = cancel,
    .capturing = capturing,
    .parse = parse_text,
    .text = text_of,
    .source = source,
    .save = save_program,
    .load = load_program,
    .count = count,
    .at = at,
    .form = form,
    .weight = weight,
    .set_weight = set_weight,
    .run = run_program,
    .stats = stats,
    .open = open,
    .carry = carry,
    .close = close,
    .branch = branch,
    .loop = loop,
    .generalize = join_samples,
    .number = number,
    .lift = lift_number,
    .view = view,
};

}  // namespace
}  // namespace adjoin::graph

AJ_PLUGIN(.name = "graph", .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides =
              "service:x.program;service:x.lazy;service:x.graphs;service:x.script;"
              "service:x.passes") {
  using namespace adjoin::graph;
  const aj_plugin_env& env = *plugin.env();
  wrap_table = static_cast<const aj_wrappers*>(env.query("x.wrap", 1));
  if (!wrap_table) raise(AJ_UNAVAILABLE, "libadjoin has no x.wrap; it is older than libaj_graph");
  capture_key = dispatch().key_mask(AJ_STR_LIT("capture"));
  register_payload();
  int32_t type;
  check(core().type_register(
      kProgram, sizeof(Program*), [](void* p) { delete *static_cast<Program**>(p); }, &type));
  check(dispatch().def_fallback(env.registrar, AJ_STR_LIT("capture"), serve, nullptr));
  aj_wrapper_def w{};
  w.struct_size = sizeof w;
  w.key = AJ_STR_LIT("capture");
  w.settle = settle;
  w.describe = describe;
  w.hint = AJ_STR_LIT("inside a trace it has no values yet: compute with it, or return it");
  check(wrap_table->def_wrapper(env.registrar, &w));
  service_table = static_cast<const aj_services*>(env.query("aj.service", 1));
  plugin.service("x.program", "graph", &table, 0);
  plugin.service("x.graphs", "graph", &graphs_table, 0);
  plugin.service("x.passes", "graph", &passes_table, 0);
  lazily::lower_table = static_cast<const aj_lower*>(env.query("x.lower", 1));
  if (!lazily::lower_table || !AJ_HAS_FN(lazily::lower_table, aj_lower, unpark))
    raise(AJ_UNAVAILABLE, "libadjoin has no x.lower; it is older than libaj_graph");
  lazily::lazy_key = dispatch().key_mask(AJ_STR_LIT("lazy"));
  lazily::register_lazy();
  check(dispatch().def_fallback(env.registrar, AJ_STR_LIT("lazy"), lazily::serve_lazy, nullptr));
  aj_wrapper_def lazy{};
  lazy.struct_size = sizeof lazy;
  lazy.key = AJ_STR_LIT("lazy");
  lazy.settle = lazily::settle_lazy;
  lazy.copy = lazily::copy_lazy;
  check(wrap_table->def_wrapper(env.registrar, &lazy));
  plugin.service("x.lazy", "graph", &lazily::lazy_table, 0);
  script::register_values();
  plugin.service("x.script", "graph", &script::table, 0);
}

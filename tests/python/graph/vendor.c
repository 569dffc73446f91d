/* tests/python/graph/vendor.c: a compiler that a stranger wrote from installed headers: sums,
 * products and differences of float32 tensors of one shape become a list that is run element by
 * element. It fails where VENDOR_FAILS says so: claim, compile, run; what it ran is counted in
 * VENDOR_RAN's file. */
#include <adjoin/abi/compiler.h>
#include <adjoin/abi/core.h>
#include <adjoin/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("vendor", "0.1.0", "stranger", "MIT", "service:aj.compiler/cpu", "");

static const aj_core* core;
static const aj_graphs* graphs;
static int32_t program_type;

enum { MOST = 64, NUMBER = 0xffff };
typedef struct step {
  int32_t what;  /* '+', '-', '*' */
  uint32_t a, b; /* slots; NUMBER: the number */
  float number;
} step;
typedef struct program {
  uint32_t nin, nout, nsteps;
  uint32_t out[MOST];
  step steps[MOST]; /* whose results are slots nin, nin + 1, ... */
} program;

static aj_status* refuse(int32_t code, const char* text) {
  return core->status_new(code, AJ_STR_LIT(""), (aj_str){text, strlen(text)}, NULL, 0);
}
static int fails(const char* where) {
  const char* wanted = getenv("VENDOR_FAILS");
  return wanted && strcmp(wanted, where) == 0;
}

static int is_op(const aj_graph_node* n, const char* name) {
  return n->op && n->name.len == strlen(name) && memcmp(n->name.data, name, n->name.len) == 0;
}
static int32_t what_of(const aj_graph_node* n) {
  if (is_op(n, "mul")) return '*';
  /* alpha is another argument */
  if (!is_op(n, "add") && !is_op(n, "sub")) return 0;
  if (n->refs[2] || n->args[2].tag != AJ_INT || n->args[2].v.i != 1) return 0;
  return is_op(n, "add") ? '+' : '-';
}
/* Has the value the type of the other one, or is it no value? */
static int alike(const aj_graph* g, uint32_t ref, uint32_t other) {
  DLTensor a, b;
  const uint32_t *sa, *sb;
  aj_status* bad = graphs->type(g, ref - 1, &a, &sa);
  if (!bad) bad = graphs->type(g, other - 1, &b, &sb);
  core->status_free(bad);
  if (bad || a.ndim != b.ndim || a.dtype.code != kDLFloat || a.dtype.bits != 32) return 0;
  for (int32_t d = 0; d < a.ndim; ++d)
    if (a.shape[d] != b.shape[d] || sa[d] || sb[d]) return 0;
  return b.dtype.code == kDLFloat && b.dtype.bits == 32;
}
static int is_mine(const aj_graph* g, const aj_graph_node* n) {
  if (n->flags & AJ_NODE_EFFECT || !what_of(n) || !n->results[0] || !n->refs[0]) return 0;
  if (n->refs[0] == AJ_GRAPH_OTHER || n->refs[1] == AJ_GRAPH_OTHER) return 0;
  if (!alike(g, n->refs[0], n->results[0])) return 0;
  if (n->refs[1]) return alike(g, n->refs[1], n->results[0]);
  return n->args[1].tag == AJ_FLOAT || n->args[1].tag == AJ_INT;
}

static aj_status* claim(void* self, const aj_graph* g, uint32_t* cluster) {
  (void)self;
  if (fails("claim")) return refuse(AJ_INTERNAL, "the vendor claims nothing today");
  for (uint32_t i = 0; i < graphs->count(g); ++i) {
    aj_graph_node n = {sizeof n, 0};
    aj_status* bad = graphs->node(g, i, &n);
    if (bad) return bad;
    /* One cluster: the host cuts it where it has to. */
    cluster[i] = is_mine(g, &n);
  }
  return NULL;
}

static aj_status* compile(void* self, const aj_graph* part, aj_object** out) {
  (void)self;
  if (fails("compile")) return refuse(AJ_INTERNAL, "the vendor's compiler has crashed");
  uint32_t nin, nout;
  const uint32_t* in = graphs->inputs(part, &nin);
  const uint32_t* results = graphs->outputs(part, &nout);
  const uint32_t count = graphs->count(part);
  if (count > MOST || nin > MOST || nout > MOST) return refuse(AJ_UNIMPLEMENTED, "too large");
  uint32_t* slot = calloc(graphs->value_count(part), sizeof *slot);
  void* payload;
  aj_status* bad =
      slot ? core->object_new(program_type, out, &payload) : refuse(AJ_OUT_OF_MEMORY, "slots");
  if (bad) return free(slot), bad;
  program* p = payload;
  p->nin = nin, p->nout = nout, p->nsteps = count;
  for (uint32_t k = 0; k < nin; ++k) slot[in[k]] = k;
  for (uint32_t i = 0; i < count; ++i) {
    aj_graph_node n = {sizeof n, 0};
    if ((bad = graphs->node(part, i, &n))) break;
    step* s = &p->steps[i];
    s->what = what_of(&n);
    s->a = slot[n.refs[0] - 1];
    s->b = n.refs[1] ? slot[n.refs[1] - 1] : (uint32_t)NUMBER;
    if (!n.refs[1])
      s->number = n.args[1].tag == AJ_INT ? (float)n.args[1].v.i : (float)n.args[1].v.f;
    slot[n.results[0] - 1] = nin + i;
  }
  for (uint32_t k = 0; k < nout; ++k) p->out[k] = slot[results[k]];
  free(slot);
  if (bad) core->release(*out);
  return bad;
}

static aj_status* run(void* self, aj_object* o, aj_tensor* const* in, aj_tensor* const* out,
                      const int64_t* sizes, void* stream) {
  (void)self, (void)sizes, (void)stream;
  const program* p = core->object_payload(o);
  const int64_t n = core->tensor_numel(out[0]);
  for (uint32_t k = 0; k < p->nin; ++k)
    if (!(in[k]->obj.flags & AJ_TENSOR_DENSE))
      return refuse(AJ_UNIMPLEMENTED, "dense tensors alone");
  for (int64_t i = 0; i < n; ++i) {
    float x[2 * MOST];
    for (uint32_t k = 0; k < p->nin; ++k) x[k] = ((const float*)in[k]->dl.data)[i];
    for (uint32_t k = 0; k < p->nsteps; ++k) {
      const step* s = &p->steps[k];
      const float a = x[s->a], b = s->b == NUMBER ? s->number : x[s->b];
      x[p->nin + k] = s->what == '*' ? a * b : s->what == '+' ? a + b : a - b;
    }
    for (uint32_t k = 0; k < p->nout; ++k) ((float*)out[k]->dl.data)[i] = x[p->out[k]];
  }
  if (fails("run"))
    return refuse(AJ_INTERNAL, "the vendor's program has failed"); /* after it wrote */
  const char* told = getenv("VENDOR_RAN");
  FILE* f = told ? fopen(told, "a") : NULL;
  if (f) fprintf(f, "%u\n", p->nsteps), fclose(f);
  return NULL;
}

static const aj_compiler table = {sizeof(aj_compiler), 0, NULL, claim, compile, run};

AJ_PLUGIN_INIT {
  core = env->core;
  graphs = env->query("x.graphs", 1);
  if (!graphs) return refuse(AJ_UNAVAILABLE, "there is no x.graphs");
  aj_status* bad =
      core->type_register(AJ_STR_LIT("vendor::program"), sizeof(program), NULL, &program_type);
  if (bad) return bad;
  const aj_service_def d = {sizeof d, 10, AJ_STR_LIT("aj.compiler/cpu"), AJ_STR_LIT("vendor"),
                            &table};
  return env->def_service(env->registrar, &d);
}

/* tests/python/graph/claimer.c: a compiler that claims calls at random (CLAIM_SEED) and makes them
 * one by one, so that a mistake in how parts are cut and joined is seen in the bits. It declines
 * now and then. */
#include <adjoin/abi/compiler.h>
#include <adjoin/abi/core.h>
#include <adjoin/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AJ_PLUGIN_NOTE("claimer", "0.1.0", "tests", "MIT", "service:aj.compiler/cpu", "");

static const aj_core* core;
static const aj_graphs* graphs;
static const aj_dispatch* dispatch;
static int32_t program_type;
static uint64_t state;

enum { MOST_ARGS = 8 };
typedef struct call {
  const aj_op* op;
  uint32_t nargs, result; /* value */
  aj_value args[MOST_ARGS];
  uint32_t refs[MOST_ARGS];
} call;
typedef struct program {
  uint32_t count, values, nin, nout;
  call* calls;
  uint32_t *in, *out;
} program;

static uint32_t draw(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % n;
}
static aj_status* decline(void) {
  return core->status_new(AJ_UNIMPLEMENTED, AJ_STR_LIT(""), AJ_STR_LIT("not today"), NULL, 0);
}
static void destroy(void* payload) {
  program* p = payload;
  free(p->calls), free(p->in), free(p->out);
}

/* Arguments that can be kept: values, and numbers without memory. */
static int is_plain(const aj_graph_node* n) {
  if (!n->op || n->flags & AJ_NODE_EFFECT || n->nresults != 1 || !n->results[0] ||
      n->nargs > MOST_ARGS)
    return 0;
  for (uint32_t k = 0; k < n->nargs; ++k) {
    if (n->refs[k] == AJ_GRAPH_OTHER) return 0;
    if (n->refs[k] == 0 && n->args[k].tag > AJ_FLOAT && n->args[k].tag != AJ_DTYPE) return 0;
  }
  /* A view is of its input's memory, which a part's result is not. */
  aj_op_info info = {sizeof info, 0};
  aj_status* bad = dispatch->op_info(n->op, &info);
  core->status_free(bad);
  return !bad && !(info.kind.len == 4 && memcmp(info.kind.data, "view", 4) == 0) &&
         info.flags & AJ_INFO_OUT;
}

static aj_status* claim(void* self, const aj_graph* g, uint32_t* cluster) {
  (void)self;
  const uint32_t clusters = 1 + draw(6), keep = 1 + draw(4);
  for (uint32_t i = 0; i < graphs->count(g); ++i) {
    aj_graph_node n = {sizeof n, 0};
    aj_status* bad = graphs->node(g, i, &n);
    if (bad) return bad;
    if (is_plain(&n) && draw(4) < keep) cluster[i] = 1 + draw(clusters);
  }
  return NULL;
}

static uint32_t* copied(const uint32_t* from, uint32_t n) {
  uint32_t* made = malloc((n + 1) * sizeof *made);
  if (made && n) memcpy(made, from, n * sizeof *made);
  return made;
}

static aj_status* compile(void* self, const aj_graph* part, aj_object** out) {
  (void)self;
  if (draw(10) == 0) return decline();
  void* payload;
  aj_status* bad = core->object_new(program_type, out, &payload);
  if (bad) return bad;
  program* p = payload;
  p->count = graphs->count(part), p->values = graphs->value_count(part);
  p->calls = calloc(p->count, sizeof *p->calls);
  const uint32_t* list = graphs->inputs(part, &p->nin);
  p->in = copied(list, p->nin);
  list = graphs->outputs(part, &p->nout);
  p->out = copied(list, p->nout);
  for (uint32_t i = 0; i < p->count && !bad; ++i) {
    aj_graph_node n = {sizeof n, 0};
    if ((bad = graphs->node(part, i, &n))) break;
    call* c = &p->calls[i];
    c->op = n.op, c->nargs = n.nargs, c->result = n.results[0] - 1;
    memcpy(c->args, n.args, n.nargs * sizeof *n.args);
    memcpy(c->refs, n.refs, n.nargs * sizeof *n.refs);
  }
  if (bad) core->release(*out);
  return bad;
}

static aj_status* run(void* self, aj_object* o, aj_tensor* const* in, aj_tensor* const* out,
                      const int64_t* sizes, void* stream) {
  (void)self, (void)sizes, (void)stream;
  const program* p = core->object_payload(o);
  aj_tensor** values = calloc(p->values, sizeof *values);
  aj_status* bad = NULL;
  for (uint32_t k = 0; k < p->nin; ++k) core->retain(values[p->in[k]] = in[k]);
  for (uint32_t i = 0; i < p->count && !bad; ++i) {
    const call* c = &p->calls[i];
    aj_value args[MOST_ARGS], ret = {AJ_NONE, 0, {0}};
    for (uint32_t k = 0; k < c->nargs; ++k) {
      args[k] = c->args[k];
      if (!c->refs[k]) continue;
      /* A part that was cut wrongly reads what is not there yet. */
      if (!values[c->refs[k] - 1]) abort();
      args[k] = (aj_value){AJ_TENSOR, 0, {.tensor = values[c->refs[k] - 1]}};
    }
    for (uint32_t k = 0; k < p->nout; ++k)
      if (p->out[k] == c->result) ret = (aj_value){AJ_TENSOR, 0, {.tensor = out[k]}};
    bad = dispatch->call(c->op, args, c->nargs, &ret, 1);
    if (!bad) values[c->result] = ret.v.tensor;
  }
  for (uint32_t v = 0; v < p->values; ++v) core->release(values[v]);
  free(values);
  return bad ? bad : draw(10) == 0 ? decline() : NULL;
}

static const aj_compiler table = {sizeof(aj_compiler), 0, NULL, claim, compile, run};

AJ_PLUGIN_INIT {
  core = env->core;
  graphs = env->query("x.graphs", 1);
  dispatch = env->query("aj.op", 1);
  const char* seed = getenv("CLAIM_SEED");
  state = seed ? strtoull(seed, NULL, 10) : 1;
  if (!graphs || !dispatch) return decline();
  aj_status* bad =
      core->type_register(AJ_STR_LIT("claimer::program"), sizeof(program), destroy, &program_type);
  if (bad) return bad;
  const aj_service_def d = {sizeof d, 10, AJ_STR_LIT("aj.compiler/cpu"), AJ_STR_LIT("claimer"),
                            &table};
  return env->def_service(env->registrar, &d);
}

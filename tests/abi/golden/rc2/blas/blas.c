/* blas.c: a provider of "aj.blas/cpu": products of float32 and float64 in plain loops, batches and transposed factors, too. */
#include "../golden.h"

AJ_PLUGIN_NOTE(NAME, "1.0", "Golden", "Apache-2.0", "ops:" NAME ";service:aj.blas/cpu", "iface:aj.service>=0");

static int64_t calls;

static double get(const void* from, int32_t bits, int64_t i) {
  return bits == 32 ? (double)((const float*)from)[i] : ((const double*)from)[i];
}
static int32_t score(void* self, const aj_gemm* g) {
  (void)self;
  return g->dtype.code == kDLFloat && g->dtype.lanes == 1 && (g->dtype.bits == 32 || g->dtype.bits == 64) && !(g->flags & 0xffff);
}
static aj_status* gemm(void* self, const aj_gemm* g) {
  const int32_t bits = g->dtype.bits;
  (void)self;
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  for (int64_t at = 0; at < g->batch * g->m * g->n; ++at) {
    const int64_t b = at / (g->m * g->n), i = at / g->n % g->m, j = at % g->n, to = b * g->stride_c + i * g->ldc + j;
    double sum = 0;
    for (int64_t k = 0; k < g->k; ++k)
      sum += get(g->a, bits, b * g->stride_a + (g->trans_a ? k * g->lda + i : i * g->lda + k)) *
             get(g->b, bits, b * g->stride_b + (g->trans_b ? j * g->ldb + k : k * g->ldb + j));
    sum = g->alpha * sum + (g->beta != 0 ? g->beta * get(g->c, bits, to) : 0);
    if (bits == 32) ((float*)g->c)[to] = (float)sum;
    else ((double*)g->c)[to] = sum;
  }
  return NULL;
}
static aj_str path(void* self) { return (void)self, text(""); }
static aj_status* count(void* self, aj_call* call) {
  (void)self;
  call->rets[0] = whole(__atomic_exchange_n(&calls, 0, __ATOMIC_RELAXED));
  return NULL;
}

AJ_PLUGIN_INIT {
  static const aj_blas table = {sizeof table, 0, {NAME " 1", sizeof NAME + 1}, NULL, score, gemm, path, NULL};
  aj_service_def d = {sizeof d, 0, AJ_STR_LIT("aj.blas/cpu"), AJ_STR_LIT(NAME), &table};
  reach(env);
  TRY(env->def_service(env->registrar, &d));
  TRY(def_op(env, NAME "::calls() -> int", "", AJ_OP_ALLOCATES, NULL, NULL));
  return def_kernel(env, NAME "::calls", "cpu", 0, 0, 0, count, NULL);
}

// core/op/trace.cpp: counts who serves which op, and says why it is them.
#include "core/op/trace.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/guest/object.hpp"
#include "core/op/registry.hpp"
#include "core/tensor/tensor.hpp"

namespace adjoin {
namespace {

struct Row {
  std::string op, key, plugin, why;
  std::atomic<uint64_t> calls{0}, ns{0}, bytes{0};
};

struct Rows {
  std::mutex lock;
  std::map<std::string, Row*> all;  // never freed: kernels of calls that are running point to them
};
std::atomic<bool> on_now{false};

Rows& rows() {
  static auto* one = new Rows;
  return *one;
}

Row* row_of(const std::string& op, const std::string& key, const std::string& plugin,
            const std::string& why) {
  std::lock_guard guard(rows().lock);
  Row*& row = rows().all[op + "\t" + key + "\t" + plugin + "\t" + why];
  if (!row) row = new Row{op, key, plugin, why};
  return row;
}

// What stands in a kernel's place.
struct Traced {
  const Kernel* real;
  Row* row;
};

uint64_t bytes_of(const aj_value* v, uint32_t n) {
  uint64_t bytes = 0;
  auto add = [&](const aj_tensor* t) {
    if (t) bytes += uint64_t(priv(t).numel) * dt(priv(t).dtype).bytes;
  };
  for (uint32_t i = 0; i < n; i++) {
    if (v[i].tag == AJ_TENSOR) add(v[i].v.tensor);
    if (v[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < v[i].aux; j++) add(v[i].v.tensors[j]);
  }
  return bytes;
}

uint64_t bytes_of(const aj_plan& plan) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan.nops; i++) {
    const aj_operand& o = plan.ops[i];
    if (o.flags & AJ_OPERAND_NUMBER) continue;
    uint64_t n = 1;
    for (uint32_t d = 0; d < plan.ndim; d++)
      if (!o.strides || o.strides[d]) n *= uint64_t(plan.sizes[d]);
    bytes += n * o.dtype.bits * o.dtype.lanes / 8;
  }
  return bytes;
}

aj_status* traced(void* self, aj_call* call) {
  auto* t = static_cast<const Traced*>(self);
  auto from = std::chrono::steady_clock::now();
  aj_status* s = t->real->fn(t->real->self, call);
  auto ns = std::chrono::steady_clock::now() - from;
  // Of a plan that is cut, the part that begins with the first element stands for the call.
  if (!call->plan || call->plan->first_index == 0) t->row->calls.fetch_add(1);
  t->row->ns.fetch_add(uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(ns).count()));
  t->row->bytes.fetch_add(bytes_of_call(call));
  return s;
}

int32_t traced_can_run(void* self, const aj_call* call) {
  auto* t = static_cast<const Traced*>(self);
  return t->real->can_run(t->real->self, call);
}

std::string server(const Kernel* k) {
  if (k->flags & kKernelBody) return "body";
  return k->provider.empty() ? "libadjoin" : k->provider;
}

std::string reason(const std::vector<const Kernel*>& chain, size_t i) {
  const Kernel* k = chain[i];
  std::string why;
  if (k->flags & kKernelBody)
    why = i ? "the op by other ops" : "no kernel: the op by other ops";
  else if (k->flags & kKernelFallback)
    why = "serves every op at its key";
  else
    why = text("priority ", k->priority, k->can_run ? ", can_run agreed" : "",
               chain.size() == 1 ? ", the only one"
               : i == 0          ? ", the first"
                                 : "");
  for (size_t j = 0; j < i; j++)
    why +=
        text(j ? ", " : "; declined: ", server(chain[j]), " (priority ", chain[j]->priority, ")");
  return why;
}

std::string report() {
  std::string lines = "op\tkey\tserved by\tcalls\tns\tbytes\twhy\n";
  std::lock_guard guard(rows().lock);
  for (const auto& [name, row] : rows().all)
    if (uint64_t calls = row->calls.load())
      lines += text(row->op, "\t", row->key, "\t", row->plugin, "\t", calls, "\t", row->ns.load(),
                    "\t", row->bytes.load(), "\t", row->why, "\n");
  return lines;
}

}  // namespace

uint64_t bytes_of_call(const aj_call* call) {
  return call->plan ? bytes_of(*call->plan)
                    : bytes_of(call->args, call->nargs) + bytes_of(call->rets, call->nrets);
}

bool tracing() { return on_now.load(std::memory_order_relaxed); }

void trace_kernel(const aj_op* op, int bit, const std::vector<const Kernel*>& chain, size_t i,
                  Kernel* link) {
  std::string key =
      link->key.empty() && bit < 24 ? std::string(device_kind_name(bit + 1)) : link->key;
  link->self =
      new Traced{chain[i], row_of(op->schema.name, key, server(chain[i]), reason(chain, i))};
  link->fn = traced;
  if (link->can_run) link->can_run = traced_can_run;
}

void trace_host(const aj_op* op, const std::string& device, const std::string& host,
                const std::string& why, uint64_t bytes, uint64_t ns) {
  Row* row = row_of(op->schema.name, device, "copies to " + host, why);
  row->calls.fetch_add(1);
  row->ns.fetch_add(ns);
  row->bytes.fetch_add(bytes);
}

aj_status* trace_ops(int32_t on, aj_object** out) {
  if (out) AJ_TRY(string_new(str(report()), out));
  if (on_now.load() == (on != 0)) return nullptr;
  if (on) {
    std::lock_guard guard(rows().lock);
    for (auto& [name, row] : rows().all) row->calls = row->ns = row->bytes = 0;
  }
  on_now.store(on != 0);
  resolve_again();
  return nullptr;
}

void trace_from_environment() {
  static const char* file;
  static pid_t owner;
  file = secure_getenv("ADJOIN_TRACE");
  if (!file || !*file) return;
  owner = getpid();
  on_now.store(true);
  std::atexit([] {
    if (getpid() != owner) return;  // a child of the program that was asked about
    std::FILE* to = std::fopen(file, "w");
    if (!to) return std::perror("adjoin: ADJOIN_TRACE");
    std::fputs(report().c_str(), to);
    std::fclose(to);
  });
}

}  // namespace adjoin

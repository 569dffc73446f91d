// core/call/fallback.cpp: serves an op that a device lacks by copies to the host.
#include <chrono>

#include "core/base/log.hpp"
#include "core/call/copy.hpp"
#include "core/call/elsewhere.hpp"
#include "core/call/slow.hpp"
#include "core/guest/line.hpp"
#include "core/guest/object.hpp"
#include "core/guest/provider.hpp"
#include "core/op/call.hpp"
#include "core/op/fallback_rules.hpp"
#include "core/op/registry.hpp"
#include "core/op/trace.hpp"
#include "core/tape/record.hpp"

namespace adjoin {
namespace {

// The device that serves for d, or NULL: there is none.
aj_status* serving_device(const FallbackRule& rule, Device* d, Device** out) {
  *out = nullptr;
  if (rule.policy != FallbackPolicy::host && rule.policy != FallbackPolicy::warn) return nullptr;
  if (rule.device.empty()) {
    Device* cpu;
    if (!(*out = host_fallback_device())) {
      free_status(default_host(&cpu));
      *out = host_fallback_device();
    }
  } else {
    int32_t type;
    AJ_TRY(device_kind_find(rule.device, &type));
    AJ_TRY(device_open({DLDeviceType(type), 0}, out));
  }
  if (*out == d) *out = nullptr;
  return nullptr;
}

std::string first_dtype(const aj_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++)
    if (args[i].tag == AJ_TENSOR) return std::string(dt(priv(args[i].v.tensor).dtype).name);
  return "";
}

// What would help, in the order in which it helps most.
std::string remedy(const aj_op* op, std::string_view device, const aj_value* args, uint32_t nargs) {
  std::string dtype = first_dtype(args, nargs);
  return text("; a kernel would declare op '", op->schema.name, "', key '", device, "'",
              dtype.empty() ? "" : ", dtype " + dtype);
}

// The body would serve but for the policy.
bool is_kept(const aj_op* op, const std::string& device) {
  return op->has_body && !body_may_serve(op->schema.name, device);
}

aj_status* refuse(const aj_op* op, Device* d, const FallbackRule& rule,
                  const std::string& missing) {
  bool never = op->tags.find("fallback:never") != op->tags.npos;
  Device* host = never ? nullptr : host_fallback_device();
  std::string help;
  if (rule.policy == FallbackPolicy::decompose && !op->has_body)
    help = "; the policy is to decompose it, which wants a body";
  else if (is_kept(op, std::string(device_kind_name(d->id.device_type))))
    help = text("; set_fallback('decompose', '", op->schema.name, "') lets its body serve");
  else if (host && host != d)
    help = text("; move the tensors to '", device_kind_name(host->id.device_type),
                "', or allow copies with ADJOIN_FALLBACK=host");
  if (std::string gone =
          disabled_server(op, device_kind_name(d->id.device_type), d->plugin ? d->plugin : "");
      !gone.empty())
    help += text("; ", plugin_verdict(gone));
  if (std::string elsewhere = kernels_elsewhere(op, device_kind_name(d->id.device_type));
      !elsewhere.empty())
    help += text("; ", elsewhere);
  if (!op->provider.empty()) help += text("; plugin '", op->provider, "' has the op");
  if (device_kind_name(d->id.device_type) != d->plugin)
    help += text("; plugin '", d->plugin, "' has the device");
  return fail(AJ_UNIMPLEMENTED, op->schema.ident, ": ", missing, help);
}

}  // namespace

aj_status* serve_missing(aj_op* op, Device* d, const aj_value* args, uint32_t nargs, aj_value* rets,
                         uint32_t nrets) {
  bool copies = op->crosses_devices && op->schema.result_is_first && args[1].tag == AJ_TENSOR;
  if (copies && adjoin::device(args[1].v.tensor) != d)  // what was asked for, and no fallback
    return run_copy_across(args, nargs, rets);
  std::string device(device_kind_name(d->id.device_type));
  FallbackRule rule = fallback_rule(op->schema.name, device);
  std::string there = kernels_there(op, device), dtype = first_dtype(args, nargs);
  std::string missing =
      there.empty() ? text("no plugin has a kernel for ", op->schema.name, " on ", device)
                    : text("no kernel for ", op->schema.name, " on ", device, " takes this call",
                           dtype.empty() ? "" : " of " + dtype, ": ", there);
  missing += !op->has_body         ? ", and it has no body"
             : is_kept(op, device) ? ", and its policy keeps its body from serving"
                                   : "";
  Device* host;
  AJ_TRY(serving_device(rule, d, &host));
  if (!host || op->tags.find("fallback:never") != op->tags.npos)
    return refuse(op, d, rule, missing);
  if (rule.moved > rule.budget) {
    std::string line = line_text(current_line());
    return fail(AJ_UNIMPLEMENTED, op->schema.ident, ": ", missing,
                "; copies to the host have used their budget (", rule.moved, " of ", rule.budget,
                " bytes)", line.empty() ? "" : " at " + line, remedy(op, device, args, nargs));
  }
  if (rule.policy == FallbackPolicy::warn)
    log_message(1, "fallback", op->schema.ident + ": " + missing + "; it runs on the host");
  auto from = std::chrono::steady_clock::now();
  AJ_TRY(device_synchronize(d));
  uint64_t in = 0, out = 0;
  aj_status* s = call_elsewhere(OnHost(host, d), op, args, nargs, rets, nrets, &in, &out);
  uint64_t ns = uint64_t(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - from)
          .count());
  fallback_note(op->schema.name, device, missing, in, out, ns);
  if (tracing())
    trace_host(op, device, std::string(device_kind_name(host->id.device_type)), missing, in + out,
               ns);
  return s;
}

}  // namespace adjoin

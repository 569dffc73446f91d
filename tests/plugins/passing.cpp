// tests/plugins/passing.cpp: two dispatch keys, below and above the tape, whose fallbacks only pass
// calls on and count them.
#include <adjoin/kit/kit.hpp>
#include <map>
#include <mutex>

namespace {

using namespace adjoin::kit;

std::mutex lock;
std::map<std::string, int64_t, std::less<>> calls;

aj_status* pass(void*, aj_call* call) {
  return guard(call, [&] {
    {
      std::lock_guard held(lock);
      ++calls[std::string(op_name(call->op))];
    }
    check(dispatch().redispatch(call->op, call->keys, call->args, call->nargs, call->rets,
                                call->nrets));
  });
}

void key(aj_registrar* r, const char* name, int32_t place) {
  uint64_t mask;
  check(dispatch().def_key(r, str(name), place, &mask));
  check(dispatch().def_fallback(r, str(name), pass, nullptr));
}

}  // namespace

AJ_PLUGIN(.name = "passing", .version = "1.0.0", .provides = "ops:passing;key:below;key:above") {
  key(plugin.env()->registrar, "below", AJ_KEY_BELOW_AUTOGRAD);
  key(plugin.env()->registrar, "above", AJ_KEY_ABOVE_AUTOGRAD);
  plugin
      .op("passing::calls(Tensor input, str op) -> Tensor",
          "Calls of an op that were seen; begins again.")
      .tags("function-only")
      .infer([](void*, aj_call* call) {
        return dispatch().declare(call, 0, dtype_of<int64_t>, 0, nullptr, nullptr);
      })
      .kernel("cpu", [](TensorView, std::string_view op, Mut<TensorView> out) {
        std::lock_guard held(lock);
        auto at = calls.find(op);
        *out.data<int64_t>() = at == calls.end() ? 0 : std::exchange(at->second, 0);
      });
}

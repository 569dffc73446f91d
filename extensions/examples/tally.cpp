// tally.cpp: a dispatch key of one's own: a thread that includes it has its calls counted by op.
//
//     adjoin.load_plugin("./libaj_tally.so")
//     with adjoin.plugin.key("tally"):
//         step()
//     adjoin.ops.tally.calls(adjoin.tensor(0), "mul")     # how often, and from 0 again
#include <adjoin/kit/kit.hpp>
#include <map>
#include <mutex>

namespace {

using namespace adjoin::kit;

std::mutex lock;
std::map<std::string, int64_t, std::less<>> calls;

// Serves every op at the key: counts it, then calls what is below.
aj_status* count(void*, aj_call* call) {
  return guard(call, [&] {
    {
      std::lock_guard held(lock);
      ++calls[std::string(op_name(call->op))];
    }
    check(dispatch().redispatch(call->op, call->keys, call->args, call->nargs, call->rets,
                                call->nrets));
  });
}

}  // namespace

AJ_PLUGIN(.name = "tally", .version = "1.0.0", .provides = "ops:tally;key:tally") {
  uint64_t mask;
  check(dispatch().def_key(plugin.env()->registrar, AJ_STR_LIT("tally"), AJ_KEY_ABOVE_AUTOGRAD,
                           &mask));
  check(dispatch().def_fallback(plugin.env()->registrar, AJ_STR_LIT("tally"), count, nullptr));
  plugin
      .op("tally::calls(Tensor input, str op) -> Tensor",
          "Calls of an op that were counted; begins again.")
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

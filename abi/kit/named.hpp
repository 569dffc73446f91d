// adjoin/kit/named.hpp: the body of another name of an op, as opgen writes it for a row's aliases.
#ifndef ADJOIN_KIT_NAMED_HPP
#define ADJOIN_KIT_NAMED_HPP
#include <adjoin/kit/call.hpp>

namespace AJ_HIDDEN adjoin {
namespace kit {

// named is the Op that has another name here. It takes what the call has, and has one result.
inline aj_status* call_named(void* named, aj_call* call) {
  return compose(call, [&](Body& b) {
    aj_value made{};
    check(env.op->call(static_cast<Op*>(named)->get(), call->args, call->nargs, &made, 1));
    if (made.tag == AJ_TENSOR)
      b.ret(0, take<Tensor>(made));
    else
      call->rets[0] = made;
  });
}

}  // namespace kit
}  // namespace adjoin
#endif

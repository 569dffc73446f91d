// extensions/graph/script/mixed.cpp: a capture meets a call of scripted code: it is carried out on
// the values, and kept as one statement.
#include "../recording.hpp"
#include "lower.hpp"

namespace adjoin::graph {
namespace {

using Any = script::Value;

// The same value with each tensor as f wants it.
template <class F>
Any mapped(const Any& v, const F& f) {
  if (auto* t = std::get_if<Tensor>(&v)) return f(*t);
  if (auto* l = script::in<script::List>(v)) {
    std::vector<Any> items;
    for (const Any& x : l->items) items.push_back(mapped(x, f));
    return script::list(std::move(items));
  }
  if (auto* t = script::in<script::Tuple>(v)) {
    std::vector<Any> items;
    for (const Any& x : t->items) items.push_back(mapped(x, f));
    return script::tuple(std::move(items), t->named);
  }
  if (auto* d = script::in<script::Dict>(v)) {
    auto made = std::make_shared<script::Dict>();
    for (auto& [k, x] : d->items) made->set(k, mapped(x, f));
    return made;
  }
  if (script::in<script::Object>(v))
    raise(AJ_UNIMPLEMENTED,
          "trace: an instance of a class goes between traced and scripted code; give its tensors");
  return v;
}

Any mark(uint32_t v) {
  return std::make_shared<script::Callee>(
      script::Callee{script::Callee::Kind::method, "", int64_t(v)});
}

// Without the key: what scripted code calls is no part of the capture.
class Uncaptured {
 public:
  Uncaptured() {
    dispatch().thread_keys(&include_, &exclude_);
    dispatch().set_thread_keys(include_ & ~capture_key, exclude_);
  }
  ~Uncaptured() { dispatch().set_thread_keys(include_, exclude_); }
  Uncaptured(const Uncaptured&) = delete;

 private:
  uint64_t include_, exclude_;
};

}  // namespace

aj_value Recording::script(Program& p, std::string_view name, std::string_view callee,
                           const aj_value* args, uint32_t nargs, const aj_str* names,
                           uint32_t nnames) {
  const script::Unit* u = p.script.get();
  auto kept = std::make_shared<script::ScriptCall>();
  kept->callee = callee;
  Node n;
  n.what = Node::What::scripted;
  n.no_grad = grad_ && !autograd().grad_mode();
  std::vector<Any> given;
  std::vector<std::pair<std::string, Any>> named;
  auto marked = [&](const Tensor& t) {
    Tensor real;
    n.args.push_back(Arg::of(ref_of(t.get(), &real)));
    return mark(n.args.back().ref);
  };
  auto real_of = [&](const Tensor& t) {
    Tensor real;
    ref_of(t.get(), &real);
    return Any(real);
  };
  for (uint32_t i = 0; i < nargs; i++) {
    const Any v = script::unboxed(args[i], u);
    if (i < nargs - nnames) {
      kept->args.push_back(mapped(v, marked));
      given.push_back(mapped(v, real_of));
    } else {
      const std::string label(view_of(names[i - (nargs - nnames)]));
      kept->named.emplace_back(label, mapped(v, marked));
      named.emplace_back(label, mapped(v, real_of));
    }
  }
  Any made;
  {
    Uncaptured off;
    NoGradGuard no_grad;
    made = script::call(p, name, std::move(given), std::move(named));
  }
  std::vector<Tensor> out;
  kept->result = mapped(made, [&](const Tensor& t) {
    const uint32_t v = add(type_of(t.get()));
    n.results.push_back({{v}, false});
    out.push_back(show(t, v, nullptr));
    return mark(v);
  });
  size_t next = 0;
  const Any seen = mapped(made, [&](const Tensor&) { return Any(out[next++]); });
  n.scripted = std::move(kept);
  core().get_line(&line_, &site_);
  emit(std::move(n));
  return script::boxed(seen, u);
}

}  // namespace adjoin::graph

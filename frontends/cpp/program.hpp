// adjoin/program.hpp: a program that was captured (adjoin.jit.trace, jit.save), run without Python:
//
//   adjoin::Program model("model.aj");
//   adjoin::Tensor y = model(x);
//
// A scripted one (jit.script) takes and gives values of all sorts (adjoin/script.hpp).
#ifndef ADJOIN_PROGRAM_HPP
#define ADJOIN_PROGRAM_HPP
// clang-format off
#include "joined.hpp"  // before the kit
// clang-format on
#include <adjoin/abi/program.h>

#include <adjoin/kit/tensor.hpp>

namespace AJ_HIDDEN adjoin {

class Program {
 public:
  explicit Program(std::string_view path) { kit::check(table().load(kit::str(path), &p_)); }
  static Program parse(std::string_view text) {
    Program p;
    kit::check(table().parse(kit::str(text), &p.p_));
    return p;
  }
  Program(Program&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Program& operator=(Program other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Program() { kit::env.core->release(p_); }

  void save(std::string_view path) const { kit::check(table().save(p_, kit::str(path))); }
  std::string text() const {
    aj_object* o = nullptr;
    kit::check(table().text(p_, &o));
    std::string found(kit::view_of(kit::env.core->string_get(o)));
    kit::env.core->release(o);
    return found;
  }
  uint32_t count(int32_t what) const { return table().count(p_, what); }  // AJ_PROGRAM_...
  aj_program_value value(int32_t what, uint32_t i) const {
    aj_program_value v{};
    v.struct_size = sizeof v;
    kit::check(table().at(p_, what, i, &v));
    return v;
  }
  Tensor weight(int32_t what, uint32_t i) const {
    aj_tensor* t = nullptr;
    kit::check(table().weight(p_, what, i, &t));
    return Tensor::steal(t);
  }

  // All results.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, uint32_t flags = 0) const {
    std::vector<Tensor> results(count(AJ_PROGRAM_RESULT));
    kit::check(table().run(
        p_, reinterpret_cast<aj_tensor* const*>(inputs.data()), uint32_t(inputs.size()), flags,
        reinterpret_cast<aj_tensor**>(results.data()), uint32_t(results.size())));
    return results;
  }
  // The first result.
  template <class... T>
  Tensor operator()(const T&... inputs) const {
    return run({inputs...}).at(0);
  }
  aj_object* get() const { return p_; }
  aj_program_stats stats() const {
    aj_program_stats s{};
    s.struct_size = sizeof s;
    kit::check(table().stats(p_, &s));
    return s;
  }

 private:
  Program() = default;
  // The first question loads libaj_graph.so.
  static const aj_programs& table() {
    static const auto* found = static_cast<const aj_programs*>(aj_get_interface("x.program", 1));
    if (!found)
      kit::raise(AJ_UNAVAILABLE,
                 "program: libaj_graph.so is not found; it stands beside the plugins of libadjoin");
    return *found;
  }

  aj_object* p_ = nullptr;
};

}  // namespace adjoin
#endif

// extensions/graph/recording.hpp: a capture under way: which tensor is which value, and the program
// so far.
#pragma once
#include <deque>
#include <unordered_map>

#include "record.hpp"
#include "value.hpp"

namespace adjoin::graph {

inline bool is_traced(const aj_tensor* t) { return t && t->keys & capture_key; }
inline bool is_strided(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_STRIDED; }
inline Payload* payload_of(const aj_tensor* t) {
  return static_cast<Payload*>(core().object_payload(wrap_table->tensor_payload(t, capture_key)));
}
inline Type type_of(const aj_tensor* t) {
  return {false, t->dl.dtype, {t->dl.shape, t->dl.shape + t->dl.ndim}};
}

class Recording {
 public:
  Recording(std::string_view name, uint64_t limit);
  ~Recording();

  Tensor input(aj_tensor* t, std::string_view name);
  void param(aj_tensor* t, std::string_view name);
  void call(aj_call* c);
  std::unique_ptr<Program> finish(aj_tensor* const* results, uint32_t count);

  // Blocks of their own: see blocks.cpp.
  void open();
  Tensor carry(aj_tensor* t);
  void close(aj_tensor* const* results, uint32_t count);
  void branch(aj_tensor* decides, aj_tensor** out, uint32_t n);
  void loop(aj_tensor* const* carried, uint32_t n, aj_tensor** out);
  // A call of scripted code: see script/mixed.cpp.
  aj_value script(Program& p, std::string_view name, std::string_view callee, const aj_value* args,
                  uint32_t nargs, const aj_str* names, uint32_t nnames);

 private:
  // A call as it is made: values in place of what the caller sees.
  struct Frame {
    std::vector<aj_value> args;
    std::vector<Tensor> held;
    std::deque<std::vector<aj_tensor*>> lists;
    std::vector<std::pair<aj_tensor*, aj_tensor*>> real;  // (values, what the caller sees)
  };
  struct Open {
    Block block;
    uint32_t first;  // values from here on are the block's own
    size_t aliases;  // of detached_
  };

  aj_value argument(const aj_value& v, Node& n, Frame& frame);
  uint32_t take(aj_tensor* t, aj_tensor** real, Frame& frame);
  void note_draw(Node& n, const OpFacts& f);
  void refuse_autocast(DLDevice d) const;
  void refuse_outside(uint32_t v) const;
  [[noreturn]] void refuse_number(const OpFacts& f) const;
  void same_type(uint32_t v, const aj_tensor* now) const;
  void hand_out(aj_call* c, Node& n, const OpFacts& f, const Frame& frame, aj_value* rets);
  Tensor result(Node& n, uint32_t i, Tensor real, const Frame& frame);
  void run_node(Node n, aj_tensor** out);

  // Which value a tensor is: see values.cpp.
  uint32_t ref_of(aj_tensor* t, Tensor* real);
  uint32_t detached(aj_tensor* alias, uint32_t of);
  uint32_t foreign(aj_tensor* t);
  uint32_t alias_of(uint32_t v, aj_tensor* t);
  Tensor show(Tensor real, uint32_t v, aj_tensor* base);
  aj_tensor* lifted(aj_tensor* t);
  uint32_t add(Type type, std::string_view name = {});
  std::string line() const;  // of the call, and of the user's that led to it
  std::string where() const;

  Block& block() { return open_.empty() ? program_->body : open_.back().block; }
  void emit(Node n);

  uint64_t serial_, limit_, include_ = 0;
  std::unique_ptr<Program> program_;
  bool grad_;
  uint32_t draw_ = kNone, constants_ = 0, line_ = 0, site_ = 0;
  const OpFacts* op_ = nullptr;
  std::vector<Open> open_;
  std::vector<Block> closed_;
  std::vector<Tensor> shown_;  // by value: the tensor that the caller has
  std::vector<Tensor> held_;   // so that addresses stay their own
  std::vector<aj_tensor*> detached_;
  std::unordered_map<aj_tensor*, std::string> names_;
  std::unordered_map<aj_tensor*, uint32_t> foreign_, aliases_;
  std::unordered_map<aj_tensor*, Tensor> lifted_;
  std::unordered_map<uint64_t, uint32_t> memory_;  // of parameters and constants, by storage
  std::unordered_map<std::string, uint32_t> line_ids_;
};

struct Place {
  uint64_t id = 0, offset = 0;
};
Place place_of(const aj_tensor* t);

}  // namespace adjoin::graph

// extensions/transform/batch.hpp: a call of a batch, as the rules see it, and which rule an op has.
#pragma once
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "level.hpp"

namespace adjoin::transform {

struct Batch;
using Rule = void (*)(Batch&);

// What is known of an op. Made at its first call, kept.
struct OpFacts {
  struct Param {
    int32_t base, list;
    uint32_t flags;
    std::string name;
    bool fixed;  // of one dtype, whatever the others are: a condition, an index
    bool tensor() const { return base == AJ_PARAM_TENSOR || base == AJ_PARAM_OPERAND; }
  };
  const aj_op* op;
  std::string name, kind, tags;
  std::vector<Param> params;
  uint32_t nresults;
  bool has_body, list_result, writes_first;
  bool makes;                              // a new tensor from no values: a factory, zeros_like
  bool random;                             // its body draws
  bool draws;                              // writes numbers of a generator
  std::string_view why;                    // of the loop: why nothing else serves
  const char* refused = nullptr;           // why it is refused
  Rule rule;                               // NULL: the body
  mutable std::atomic<bool> loops{false};  // its body looked at values once: sample by sample
  const aj_batch_def* foreign;             // a plugin's rule, or NULL
  int find(std::string_view param) const;  // its place, or -1
};
const OpFacts& facts_of(const aj_op* op);

// One call at a level. Values are payloads: the samples of a batched one stand in dimension 0.
struct Batch {
  Level& level;
  aj_call* call;
  const OpFacts& facts;
  aj_value args[32];
  std::vector<int32_t> batched;  // one per tensor, flattened as gradients are: 0, or -1
  std::list<std::vector<aj_tensor*>> lists;
  std::vector<Tensor> held;  // what args borrow
  std::list<std::vector<int64_t>> ints;
  aj_value rets[8] = {};
  int32_t out_dims[8] = {};

  Batch(Level& l, aj_call* c, const OpFacts& f);
  ~Batch();
  Batch(const Batch&) = delete;

  int64_t size() const { return level.size; }
  bool in_place() const;  // argument 0 is written
  // Argument i, if it is one tensor.
  bool is_tensor(uint32_t i) const { return args[i].tag == AJ_TENSOR; }
  const Tensor& tensor(uint32_t i) const { return Tensor::view(args[i].v.tensor); }
  bool is_batched(uint32_t i) const { return is_tensor(i) && batched[first_[i]] == 0; }
  int64_t rank(uint32_t i) const {
    return tensor(i).ndim() - is_batched(i);
  }  // as the user sees it
  void set(uint32_t i, const Tensor& t, bool is_batched);
  void set_ints(uint32_t i, std::vector<int64_t> v);
  // Argument i with the samples in front, repeated if all share it.
  Tensor spread(uint32_t i) const;
  // Calls the op with args as they are now, results into rets.
  void run();
  // Result i, owned by rets.
  void give(uint32_t i, const Tensor& t, bool is_batched = true);
  Tensor result(uint32_t i) const { return Tensor::view(rets[i].v.tensor); }

  uint32_t first(uint32_t i) const { return first_[i]; }

 private:
  uint32_t first_[32];
};

// Rules; each stands in the file of its name.
void rule_align(Batch& b);    // elementwise
void rule_dims(Batch& b);     // dimensions and sizes get one in front
void rule_fold(Batch& b);     // samples into the leading dimension
void rule_lead(Batch& b);     // leading dimensions are a batch to the op already
void rule_loop(Batch& b);     // sample by sample
void rule_foreign(Batch& b);  // a plugin's
Rule written_rule(std::string_view name);
// Why the op is called sample by sample though it has a body; "": it is not.
std::string_view looped(std::string_view name);
// A refusal that a loop over the samples would not meet.
void note_look();
const char* refusal(std::string_view name);

Tensor spread(const Tensor& t, bool is_batched, int64_t size);
// t with dimensions of size 1 between the samples and the rest, until it has `rank` besides them.
Tensor aligned(const Tensor& t, bool is_batched, int64_t rank);

// Samples are taken one by one: raises where loops are forbidden; done() writes the ledger's line.
class Looping {
 public:
  Looping(std::string_view name, std::string_view reason, int64_t samples);
  void done() const;

 private:
  std::string_view name_, reason_;  // reason: lives as long as the process
  uint64_t samples_;
  std::chrono::steady_clock::time_point begin_;
};
aj_status* loop_at(uint32_t i, aj_loop* io);
uint32_t loop_count();
void loops_forbid(int32_t on);

void call_batch(Level& l, aj_call* call);
// No argument is of a level, one is open.
void call_plain(Level& l, aj_call* call);
// The other kind of level: dual.cpp.
void call_dual(Level& l, aj_call* call);

}  // namespace adjoin::transform

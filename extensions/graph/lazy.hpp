// extensions/graph/lazy.hpp: the lazy scope. Calls below the tape are compared with what stood
// there before, or looked at for the first time; a flush carries them out as one program.
#pragma once
#include <adjoin/abi/lazy.h>
#include <adjoin/abi/transform.h>

#include <atomic>
#include <mutex>

#include "ir.hpp"

namespace adjoin::graph::lazily {

// A value as others see it before it is there.
struct Shown {
  Type type;
  std::vector<int64_t> strides;  // empty: not known before it is there, or it has no dimension
  uint64_t offset = 0;           // bytes from the begin of its memory
  uint32_t base = kNone;         // whose view it is
  uint32_t base_arg = kNone;     // and which argument that was
  bool input = false;
  bool in_order = false;  // C order without gaps
  bool free = false;      // whatever its strides say, its elements may lie in another order
  Tensor twin;            // the same on the device "meta": shapes are found by calls of such
};

// A call that was written down once, and those that came after it.
struct Known {
  enum class Gives { none, given, argument, fresh, list };
  struct Ret {
    Gives gives = Gives::none;
    uint32_t argument = kNone;  // which one it is
  };
  struct Ready;
  Node node;
  std::vector<Ret> rets;
  uint32_t first = 0;         // values from here on are new: inputs first
  std::vector<Shown> values;  // these
  bool numbers_vary = false;  // another number makes no other shape
  uint64_t varying = 0;       // arguments that are numbers and have been others
  uint64_t bytes = 0;         // of the results
  DLDataType default_dtype{};
  uint32_t line = 0, site = 0;
  Known* before = nullptr;
  std::vector<uint32_t> outside;  // values from outside that it writes
  std::vector<std::unique_ptr<Known>> after;
  std::vector<std::unique_ptr<Ready>> ready;  // programs that end here

  Known();
  ~Known();
};

// A program, by the values that somebody still has when it runs.
struct Known::Ready {
  std::vector<uint32_t> alive, inputs;  // values of the scope
  std::unique_ptr<Program> program;
  uint64_t number = 0;                                   // another when its constants are others
  std::vector<std::pair<const Known*, uint32_t>> place;  // of calls with numbers, in the program
};

// Why what was written down is carried out.
// alias: the result is a tensor from outside, or a view of one.
enum class Why { end, asked, value, sizes, write, device, limit, alias, other };
const char* words(Why w);
inline bool breaks(Why w) { return w == Why::value || w == Why::sizes || w >= Why::alias; }

struct Flush {
  Why why;
  std::string op;
  uint32_t line = 0, site = 0, begun = 0, begun_site = 0;
  uint64_t calls = 0, matched = 0, passes = 0, groups = 0, fused = 0, nanoseconds = 0, peak = 0;
};

// Recursive, and as good as always free. Who holds it carries out calls, and these may need the
// lock of a language that who waits has.
class Lock {
 public:
  void lock() {
    const void* me = &mark_;
    const void* nobody = nullptr;
    if (owner_.load(std::memory_order_relaxed) != me &&
        !owner_.compare_exchange_strong(nobody, me, std::memory_order_acquire))
      wait(me);
    depth_++;
  }
  void unlock() {
    if (--depth_) return;
    owner_.store(nullptr);  // before who waits is looked for
    if (waiting_.load()) owner_.notify_one();
  }

 private:
  void wait(const void* me);
  inline static thread_local char mark_;
  std::atomic<const void*> owner_{nullptr};
  std::atomic<uint32_t> waiting_{0};
  uint32_t depth_ = 0;  // its owner's
};

// What is known of the calls of scopes.
struct Memory {
  Lock lock;
  Known root;
  bool stale = false;             // to be forgotten when nothing is pending
  std::atomic<bool> used{false};  // by a scope that is open
  aj_lazy_stats stats{};
  uint64_t programs = 0;  // numbers that were given
  std::vector<Flush> flushes;
  std::unique_ptr<Program> kept;  // with AJ_LAZY_KEEP: the last program, and what it was given
  std::vector<Tensor> kept_inputs;
  bool apart = false;  // a call was made at once, so that what is kept is not all
};

class Scope;
// What a deferred tensor holds.
struct Deferred {
  std::shared_ptr<Scope> scope;
  uint64_t region;
  uint32_t value;
  aj_tensor* real;  // once it is there
};

class Scope : public std::enable_shared_from_this<Scope> {
 public:
  Scope(std::shared_ptr<Memory> memory, uint32_t flags, uint32_t most_calls, uint64_t most_bytes);

  void serve(aj_call* c);
  void flush(Why why, const aj_op* op = nullptr);
  // A deferred tensor becomes an ordinary one.
  void fulfil(aj_tensor* t, const Deferred& d);
  void died(const Deferred& d);
  uint32_t flags;
  Memory& memory() { return *memory_; }
  Deferred* mine(const aj_tensor* t) const;

 private:
  struct Slot {
    Deferred* deferred = nullptr;  // NULL: nobody has it any more, or an input
    Tensor input;
    const Shown* shown = nullptr;
  };
  struct Number {  // of a call, which may have had another one when it was first seen
    Known* seen;
    uint32_t arg;
    aj_value value;
  };
  void now(aj_call* c, Why why);
  void by_body(aj_call* c);
  bool matches(Known& s, const aj_call* c);
  bool same_argument(Known& s, uint32_t i, const aj_value& v);
  bool same_tensor(const Known& s, aj_tensor* t, uint32_t ref);
  bool may_take(const aj_tensor* t) const;
  std::unique_ptr<Known> look(aj_call* c, Why* why, bool* by_body);
  void write_down(aj_call* c, Known& s);
  Tensor show(const aj_call* c, const Shown& v, uint32_t id);
  const Shown& shown(const Known& s, uint32_t ref) const {
    return ref < s.first ? *slots_[ref].shown : s.values[ref - s.first];
  }
  uint32_t ref_of(Known& s, aj_tensor* t);  // kNone: it cannot be one
  void find_outside(Known& s, const OpFacts& f) const;
  std::vector<Known*> path() const;
  Known::Ready& ready_for(const std::vector<uint32_t>& alive);
  std::unique_ptr<Program> program_of(const std::vector<uint32_t>& alive, Known::Ready& r);
  void slice(Program& p, Known::Ready& r) const;
  void carry_out(Known::Ready& r, Flush& told);
  void keep(const Known::Ready& r);
  void put_numbers(Known::Ready& r);
  void begin_again();

  std::shared_ptr<Memory> memory_;
  uint32_t most_calls_;
  uint64_t most_bytes_;
  uint64_t region_ = 1, bytes_ = 0;
  uint32_t calls_ = 0, matched_ = 0;
  Known* at_;
  std::vector<Slot> slots_;  // by value
  std::vector<Tensor>
      born_;  // with AJ_LAZY_WRITES: made here at once, filled by what was written down
  std::vector<Tensor> fresh_;  // inputs of the call that is being compared
  std::vector<Number> numbers_, numbers_now_;
  DLDevice device_{};
  DLDataType default_dtype_{};
  bool running_ = false, wrote_ = false;  // wrote_: a tensor from outside is to be written
  uint64_t failed_region_ = 0;
  std::string failed_;  // why the values of that region are not there
};

extern uint64_t lazy_key;
extern const aj_lower* lower_table;
void register_lazy();
aj_object* new_deferred(Deferred d);
Deferred* deferred_of(const aj_tensor* t);  // NULL: it is none, or fulfilled
// Of a deferred tensor: it is an ordinary one afterwards.
void make_strided(aj_tensor* t);
inline bool has_strides(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_STRIDED; }
inline void settle_deferred(aj_tensor* t) {
  if (!has_strides(t) && t->keys & lazy_key) make_strided(t);
}
std::string line_words(uint32_t line, uint32_t site);

aj_status* serve_lazy(void*, aj_call* c);
aj_status* settle_lazy(void*, aj_tensor* t, aj_tensor** strided);
aj_status* copy_lazy(void*, aj_tensor* t, aj_tensor** out);
extern const aj_lazy lazy_table;

// While calls of a program are carried out, no key from `lazy` on sees them, and nothing is
// recorded.
class Below {
 public:
  Below();
  ~Below();
  Below(const Below&) = delete;

 private:
  uint64_t include_, exclude_;
  int32_t grad_, inference_;
};

inline uint64_t memory_of(const aj_tensor* t, uint64_t* offset = nullptr) {
  void* data;
  uint64_t bytes, begin, id;
  check(core().tensor_storage(t, &data, &bytes, offset ? offset : &begin, &id));
  return id;
}

template <class F>
void each_tensor(const aj_value* values, uint32_t n, const F& f) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == AJ_TENSOR) f(values[i].v.tensor);
    if (values[i].tag == AJ_TENSORS)
      for (uint32_t j = 0; j < values[i].aux; j++)
        if (aj_tensor* t = values[i].v.tensors[j]) f(t);
  }
}
}  // namespace adjoin::graph::lazily

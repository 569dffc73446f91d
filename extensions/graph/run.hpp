// extensions/graph/run.hpp: a program made ready to run: every call with its arguments in place,
// who dies where, and which calls run as one.
#pragma once
#include <adjoin/abi/compiler.h>

#include <mutex>

#include "ir.hpp"

namespace adjoin::graph {

struct Sequence;

// A call: its arguments but for the values, which are put in from the registers.
struct Step {
  struct Put {
    uint32_t arg, reg;
  };
  struct PutList {
    uint32_t arg;
    std::vector<uint32_t> regs;  // kNone: an absent one
  };
  struct PutSize {
    uint32_t arg, item, size;  // of Program::sizes
  };
  const Node* node = nullptr;
  std::vector<aj_value> args;  // of a number that is put in: its tag
  std::vector<Put> values, devices;
  std::vector<PutSize> sizes;
  std::vector<PutList> lists;
  std::vector<uint32_t> dies;  // registers that nobody reads afterwards
  uint32_t reuse = kNone;      // of these, the one whose memory the result may take
  bool handed_out = false;     // that result is one of the program's: its version is seen
  std::vector<Sequence> blocks;
};

// Calls of one index space that run block by block, each block through all of them while it is in
// the processor's cache. Registers are the group's own: first the inputs.
struct Group {
  size_t first = 0, count = 0;
  std::vector<int64_t> shape;
  std::vector<uint32_t> inputs;  // registers of the sequence
  std::vector<Type> types;       // of the inputs
  struct Output {
    uint32_t from, to;  // of the group, of the sequence
    DLDataType dtype;
  };
  std::vector<Output> outputs;
  uint32_t registers = 0;
  std::vector<Step> steps;
  std::vector<uint32_t> results;  // by step
};

constexpr size_t kMostPorts = 64;  // inputs and outputs of a part

// Statements that a compiler made a program of.
struct Part {
  size_t first = 0, count = 0;
  const aj_compiler* compiler = nullptr;
  std::string name;
  std::shared_ptr<aj_object> program;
  int32_t device_type = 0;
  bool no_grad = false;
  bool by_element = false;                // its calls are element-wise
  std::vector<uint32_t> inputs, outputs;  // registers of the sequence
  std::vector<Type> input_types, output_types;
  struct Log {
    std::atomic<bool> said{false};
    std::atomic<uint32_t> declined{0};  // one run after the other
    // The first runs are measured in turns, and the faster way stays.
    std::atomic<uint32_t> runs{0};
    std::atomic<uint64_t> together{~uint64_t(0)}, apart{~uint64_t(0)};  // the least, in ns
  };
  std::shared_ptr<Log> log = std::make_shared<Log>();
};

struct Sequence {
  std::vector<Step> steps;    // parts stand together
  std::vector<Group> groups;  // in order, and so are the parts
  std::vector<Part> parts;
  std::vector<uint32_t> inputs, results;
  uint64_t peak =
      0;  // bytes of what it makes that are alive at once; 0: its sizes are not known yet
};
// Of the program's last run without a tape, with fusion or not.
uint64_t peak_of(const Program& p, bool fused);

// Made for one kind of device, with the compilers that were there.
struct Plan {
  // What a tape sees stands in the order in which it was captured: gradients are added up in it.
  struct Order {
    std::once_flag made;
    Sequence body;
  };
  mutable Order free, taped;
  mutable Order plain;  // in order, too: for runs without fusion, which need no compiler
  int32_t device_type = kDLCPU;
  uint64_t revision = 0;
};

// False: it has to be made again.
bool renumber(const Program& p, Plan& plan, const std::vector<const Node*>& changed);
// Groups of the sequence; none reaches into a part or out of it.
void find_groups(const Program& p, const Block& b, Sequence& s);

// What a run counts.
struct Counts {
  uint64_t passes = 0, groups = 0, fused = 0;
};
// May the group run as one now? Then it has, and its outputs are in the registers.
bool run_group(const Group& g, std::vector<Tensor>& regs, const std::vector<int64_t>& sizes);
// One call; results come back owned. sizes: the values of Program::sizes.
void call_step(const Step& s, const Tensor* regs, const std::vector<int64_t>& sizes,
               aj_value* rets);
// A shape of which sizes are known now.
inline std::vector<int64_t> shape_at(const Type& t, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> shape = t.shape;
  for (int64_t& n : shape)
    if (n < 0) n = sizes[size_t(-1 - n)];
  return shape;
}

inline bool has_shape(const aj_tensor* t, const Type& type, const std::vector<int64_t>& sizes) {
  if (!(t->dl.dtype == type.dtype) || t->dl.ndim != int32_t(type.shape.size())) return false;
  for (size_t d = 0; d < type.shape.size(); d++) {
    const int64_t n = type.shape[d];
    if (t->dl.shape[d] != (n < 0 ? sizes[size_t(-1 - n)] : n)) return false;
  }
  return true;
}

// One statement; what it reads is in the registers, and so are its results then.
void run_statement(const Program& p, const Node& n, std::vector<Tensor>& regs);

// A flag of run(): parts are not measured; who calls compares whole runs.
constexpr uint32_t kRunTogether = 1u << 16;
// Another: who calls takes the memory of the results alone, so their versions are nobody's.
constexpr uint32_t kRunFulfils = 1u << 17;
void run(Program& p, aj_tensor* const* args, uint32_t nargs, uint32_t flags, aj_tensor** rets,
         uint32_t nrets);

}  // namespace adjoin::graph

// plugins/fuser/compile.cpp: makes steps of the calls of a part. The value that was computed last
// is in registers; it is stored where others than the next step need it.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "function.hpp"

namespace adjoin::fuser {
namespace {

[[noreturn]] void decline(const char* why) { raise(AJ_UNIMPLEMENTED, "fuser: ", why); }

struct Value {
  bool mask = false, row = false;
  uint32_t level = 0;       // the stage that makes it
  uint32_t memory = kNone;  // an operand that later stages, too, can read
  uint32_t output = kNone;  // of the part
};

// A function of values, or a reduction.
struct Item {
  Chosen f;
  std::optional<Folding> fold;
  uint32_t result, level = 0;
  bool row = false;
};

class Compiling {
 public:
  explicit Compiling(const aj_graph* g) : g_(g), p_(std::make_unique<Program>()) {}

  std::unique_ptr<Program> whole() {
    read();
    ports();
    levels();
    memory();
    p_->stages.resize(stages_);
    for (uint32_t level = 0; level < stages_; ++level) {
      Stage& s = p_->stages[level];
      s.row = emit(level, true, nullptr);
      s.sweep = emit(level, false, &s);
      if (p_->streams) {
        s.streamed = s.sweep;
        for (Insn& step : s.streamed)
          if (step.run == p_->steps->store &&
              p_->places[step.operand[0]].kind == Place::Kind::output)
            step.run = p_->steps->stream;
      }
      for (const Item& i : items_)
        if (i.fold && i.level == level) reduce(s, i);
    }
    keep_numbers();
    return std::move(p_);
  }

 private:
  // What a layer norm gives of each row besides.
  template <class F>
  static void each_aside(const Item& i, const F& f) {
    if (!i.fold) return;
    for (uint32_t v : {i.fold->mean, i.fold->rstd})
      if (v != kNone) f(v);
  }

  Value& at(uint32_t v) {
    const auto known = values_.find(v);
    if (known == values_.end()) decline("a value is used that nobody makes");
    return known->second;
  }

  void read() {
    const uint32_t n = graphs->count(g_);
    if (n < 2) decline("a call alone is the eager kernel's");
    next_ = graphs->value_count(g_);
    DLDataType compute{};
    for (uint32_t i = 0; i < n; ++i) {
      const Node node(g_, i);
      Item item;
      item.result = node.results[0] - 1;
      if (const auto f = folding(g_, node)) {
        item.fold = f;
        item.f.inputs = {{f->value, 0}};
        for (uint32_t v : {f->weight, f->bias})
          if (v != kNone) item.f.inputs.push_back({v, 0});
        item.row = !gives_row(f->fold);
        const ValueType in = type_of(g_, f->value);
        space(in.shape);
        take(&compute, in.dtype);
        by_rows_ = true;
      } else {
        DLDataType own{};
        const auto chosen = element_wise(g_, node, &own);
        if (!chosen) decline("a call is not known");
        take(&compute, own);
        item.f = *chosen;
      }
      items_.push_back(std::move(item));
    }
    // Calls of rows are those whose last dimension is 1 and the space's is not.
    for (const Item& i : items_)
      if (!i.fold) {
        const auto shape = type_of(g_, i.result).shape;
        if (p_->space.empty() || (!by_rows_ && shape.size() == p_->space.size() &&
                                  p_->space.back() == 1 && shape.back() != 1))
          p_->space = shape;
      }
    for (Item& i : items_) {
      if (i.fold) continue;
      const auto shape = type_of(g_, i.result).shape;
      if (shape == p_->space) continue;
      auto row = p_->space;
      if (!row.empty()) row.back() = 1;
      if (shape != row) decline("the calls have several index spaces");
      i.row = by_rows_ = true;
    }
    if (!compute.bits) decline("no call computes with floats");
    p_->steps = same(compute, dtype_of<float>) ? &single_steps() : &double_steps();
    p_->reduces = by_rows_;
    if (p_->space.size() > kMostDims) decline("too many dimensions");
  }
  void take(DLDataType* compute, DLDataType own) {
    if (!own.bits) return;
    if (compute->bits && !same(*compute, own)) decline("the calls compute in several dtypes");
    *compute = own;
  }
  void space(const std::vector<int64_t>& shape) {
    if (!p_->space.empty() && p_->space != shape) decline("the calls have several index spaces");
    p_->space = shape;
  }

  Port port(uint32_t v) {
    ValueType t = type_of(g_, v);
    return {t.dtype, std::move(t.shape), kNone};
  }
  uint32_t place(Place::Kind kind, uint32_t index, bool mask) {
    p_->places.push_back({kind, index, mask});
    return uint32_t(p_->places.size() - 1);
  }

  void ports() {
    uint32_t n = 0;
    const uint32_t* list = graphs->inputs(g_, &n);
    if (n > kMostInputs || n == 0) decline("too many inputs");
    for (uint32_t i = 0; i < n; ++i) {
      Value v;
      p_->inputs.push_back(port(list[i]));
      v.mask = same(p_->inputs.back().dtype, dtype_of<bool>);
      v.memory = place(Place::Kind::input, i, v.mask);
      values_[list[i]] = v;
      inputs_.push_back(list[i]);
    }
    for (const Item& i : items_) {
      Value v;
      v.mask = same(type_of(g_, i.result).dtype, dtype_of<bool>);
      v.row = i.row;
      if (v.row && v.mask) decline("a row's value is a bool");
      values_[i.result] = v;
      v.mask = false, v.row = true;
      each_aside(i, [&](uint32_t aside) { values_[aside] = v; });
    }
    list = graphs->outputs(g_, &n);
    if (n > kMostOutputs || n == 0) decline("too many outputs");
    for (uint32_t i = 0; i < n; ++i) {
      p_->outputs.push_back(port(list[i]));
      at(list[i]).output = i;
    }
  }

  void levels() {
    for (Item& i : items_) {
      for (const Input& in : i.f.inputs)
        if (in.value != kNone) i.level = std::max(i.level, at(in.value).level);
      if (i.row && !i.fold)
        for (const Input& in : i.f.inputs)
          if (in.value != kNone && made(in.value) && !at(in.value).row)
            decline("a row's value is made of the row");
      at(i.result).level = i.level + (i.fold ? 1 : 0);
      each_aside(i, [&](uint32_t aside) { at(aside).level = i.level + 1; });
      stages_ = std::max(stages_, at(i.result).level + 1);
    }
  }
  bool made(uint32_t v) const {
    return std::find(inputs_.begin(), inputs_.end(), v) == inputs_.end();
  }

  // What later stages and reductions read lies in memory: in an output, else in a buffer.
  void memory() {
    auto row = [&](Value& v) {
      v.memory = place(Place::Kind::row, p_->rows++, false);
      if (v.output != kNone) p_->outputs[v.output].row = v.memory;
    };
    for (const Item& i : items_) {
      Value& v = at(i.result);
      each_aside(i, [&](uint32_t aside) { row(at(aside)); });
      if (v.row) {
        row(v);
      } else if (i.fold) {
        p_->streams = false;
        v.memory = v.output != kNone ? place(Place::Kind::output, v.output, false)
                                     : place(Place::Kind::buffer, p_->buffers++, false);
      }
    }
    for (const Item& i : items_)
      for (const Input& in : i.f.inputs) {
        if (in.value == kNone || !made(in.value)) continue;
        Value& v = at(in.value);
        if (v.memory != kNone || (v.level == i.level && !i.fold)) continue;
        if (v.mask) decline("a later stage wants a mask");
        p_->streams = false;
        v.memory = v.output != kNone ? place(Place::Kind::output, v.output, false)
                                     : place(Place::Kind::buffer, p_->buffers++, false);
      }
  }

  // One list of steps.
  struct List {
    std::vector<Insn> steps;
    std::unordered_map<uint32_t, uint32_t> uses;   // by value, still to come
    std::unordered_map<uint32_t, uint32_t> tiles;  // by value, its operand here
    std::vector<uint32_t> free;
    uint32_t held = kNone;  // the value in registers
  };

  Insn& add(List& l, Code run, uint32_t operand = 0) {
    Insn step = {};
    step.run = run;
    step.operand[0] = operand;
    l.steps.push_back(step);
    return l.steps.back();
  }

  uint32_t tile(List& l) {
    if (!l.free.empty()) {
      const uint32_t reused = l.free.back();
      l.free.pop_back();
      return reused;
    }
    if (tiles_used_ == tiles_.size())
      tiles_.push_back(place(Place::Kind::tile, p_->tiles++, false));
    return tiles_[tiles_used_++];
  }
  void keep(List& l, uint32_t v) { add(l, p_->steps->store, l.tiles[v] = tile(l)); }

  uint32_t operand_of(List& l, const Input& in) {
    if (in.value == kNone) return number(in.number);
    if (const auto t = l.tiles.find(in.value); t != l.tiles.end()) return t->second;
    const Value& v = at(in.value);
    if (v.memory == kNone || p_->places[v.memory].mask) decline("a value is nowhere");
    return v.memory;
  }
  uint32_t number(double x) {
    for (const auto& [known, operand] : numbers_)
      if (std::bit_cast<uint64_t>(known) == std::bit_cast<uint64_t>(x)) return operand;
    numbers_.emplace_back(x, place(Place::Kind::number, uint32_t(numbers_.size()), false));
    return numbers_.back().second;
  }

  // Bools as numbers, where floats meet them.
  std::vector<Item> listed(uint32_t level, bool rows) {
    std::vector<Item> list;
    std::unordered_map<uint32_t, uint32_t> converted;
    for (const Item& item : items_) {
      if (item.fold || item.level != level || item.row != rows) continue;
      Item i = item;
      const Function* f = p_->steps->find(i.f.function);
      if (!f) decline("a function is not known");
      const bool logic = std::string_view(i.f.function).starts_with("mask_");
      for (size_t k = 0; k < i.f.inputs.size() && !logic; ++k) {
        uint32_t& v = i.f.inputs[k].value;
        if (v == kNone || !at(v).mask || (k == 0 && f->condition)) continue;
        auto [known, fresh] = converted.emplace(v, next_);
        if (fresh) {
          Item number;
          number.f.function = "mask_number";
          number.f.inputs = {{v, 0}};
          number.result = next_++;
          number.level = level, number.row = rows;
          Value made;
          made.level = level;
          values_[number.result] = made;
          list.push_back(std::move(number));
        }
        v = known->second;
      }
      list.push_back(std::move(i));
    }
    return list;
  }

  std::vector<Insn> emit(uint32_t level, bool rows, Stage* stage) {
    const std::vector<Item> list = listed(level, rows);
    List l;
    tiles_used_ = 0;
    if (list.empty()) return {};
    for (const Item& i : list)
      for (const Input& in : i.f.inputs)
        if (in.value != kNone) l.uses[in.value]++;
    // Tensors of bool become masks first.
    for (uint32_t v : inputs_) {
      const auto used = l.uses.find(v);
      if (used == l.uses.end() || !at(v).mask) continue;
      add(l, p_->steps->load_mask, at(v).memory);
      keep(l, v);
      l.held = v;
    }
    for (size_t k = 0; k < list.size(); ++k)
      one(l, list[k], k + 1 < list.size() ? &list[k + 1] : nullptr);
    add(l, p_->steps->end);
    if (stage) walked(l, *stage);
    return std::move(l.steps);
  }

  void one(List& l, const Item& i, const Item* next) {
    const Function* f = p_->steps->find(i.f.function);
    const std::vector<Input>& in = i.f.inputs;
    size_t held = in.size();
    for (size_t k = 0; k < in.size() && l.held != kNone; ++k)
      if (in[k].value == l.held && held == in.size()) held = k;
    if (held == in.size()) {
      held = 0;
      add(l, p_->steps->load, operand_of(l, in[0]));
    }
    uint32_t others[2] = {}, n = 0;
    for (size_t k = 0; k < in.size(); ++k)
      if (k != held) others[n++] = operand_of(l, in[k]);
    Insn& step = add(l, f->at[held]);
    std::copy_n(others, n, step.operand);
    fields(i.f, step);
    for (const Input& each : in)
      if (each.value != kNone && --l.uses[each.value] == 0)
        if (const auto t = l.tiles.find(each.value); t != l.tiles.end()) {
          l.free.push_back(t->second);
          l.tiles.erase(t);
        }
    l.held = i.result;
    Value& v = at(i.result);
    if (i.row && v.memory == kNone) v.memory = place(Place::Kind::row, p_->rows++, false);
    if (v.memory != kNone) add(l, i.row ? p_->steps->store_one : p_->steps->store, v.memory);
    if (v.output != kNone && !v.row &&
        (v.memory == kNone || p_->places[v.memory].kind != Place::Kind::output))
      add(l, v.mask ? p_->steps->store_mask : p_->steps->store, output(v));
    uint32_t later = l.uses[i.result];
    if (next && later &&
        std::any_of(next->f.inputs.begin(), next->f.inputs.end(),
                    [&](const Input& each) { return each.value == i.result; }))
      --later;
    if (later && v.memory == kNone) keep(l, i.result);
  }
  uint32_t output(const Value& v) {
    for (uint32_t o = 0; o < p_->places.size(); ++o)
      if (p_->places[o].kind == Place::Kind::output && p_->places[o].index == v.output) return o;
    return place(Place::Kind::output, v.output, v.mask);
  }

  void fields(const Chosen& c, Insn& step) const {
    for (int k = 0; k < 3; ++k) {
      if (c.flags)
        step.numbers[k] = c.numbers[k] != 0;
      else if (p_->steps->size == 4)
        reinterpret_cast<float*>(step.numbers)[k] = float(c.numbers[k]);
      else
        reinterpret_cast<double*>(step.numbers)[k] = c.numbers[k];
    }
  }

  // What a sweep reads and writes along the row.
  void walked(const List& l, Stage& s) const {
    const Steps& k = *p_->steps;
    for (const Insn& step : l.steps) {
      const bool writes = step.run == k.store || step.run == k.store_mask;
      size_t n = step.run == k.end ? 0 : writes || step.run == k.load || step.run == k.load_mask;
      for (const Function* f = k.functions; f->name; ++f)
        for (const Code code : f->at)
          if (code == step.run) n = f->inputs - 1u;
      for (size_t o = 0; o < n; ++o) {
        const Place::Kind kind = p_->places[step.operand[o]].kind;
        if (kind == Place::Kind::tile || kind == Place::Kind::number || kind == Place::Kind::row)
          continue;
        auto& to = writes ? s.writes : s.reads;
        if (std::find(to.begin(), to.end(), step.operand[o]) == to.end())
          to.push_back(step.operand[o]);
      }
    }
    // What it has written itself it finds where it wrote it.
    std::erase_if(s.reads, [&](uint32_t o) {
      return std::find(s.writes.begin(), s.writes.end(), o) != s.writes.end();
    });
  }

  void reduce(Stage& s, const Item& i) {
    const Value& from = at(i.f.inputs[0].value);
    if (from.mask || from.row || from.memory == kNone) decline("what is reduced is nowhere");
    Reduce r;
    r.fold = i.fold->fold, r.from = from.memory, r.to = at(i.result).memory, r.eps = i.fold->eps;
    if (i.fold->mean != kNone) r.mean = at(i.fold->mean).memory;
    if (i.fold->rstd != kNone) r.rstd = at(i.fold->rstd).memory;
    if (i.fold->weight != kNone) {
      r.weight = at(i.fold->weight).memory, r.bias = at(i.fold->bias).memory;
      if (made(i.fold->weight) || made(i.fold->bias)) decline("a layer norm's weight is made here");
    }
    s.reduces.push_back(r);
  }

  void keep_numbers() {
    p_->numbers.resize(numbers_.size() * 64 + 64);
    p_->numbers_at = size_t(-reinterpret_cast<uintptr_t>(p_->numbers.data()) % 64);
    char* to = p_->numbers.data() + p_->numbers_at;
    for (const auto& [x, operand] : numbers_) {
      for (int k = 0; k < 16 && p_->steps->size == 4; ++k)
        reinterpret_cast<float*>(to)[k] = float(x);
      for (int k = 0; k < 8 && p_->steps->size == 8; ++k) reinterpret_cast<double*>(to)[k] = x;
      to += 64;
    }
  }

  const aj_graph* g_;
  std::unique_ptr<Program> p_;
  std::vector<Item> items_;
  std::unordered_map<uint32_t, Value> values_;
  std::vector<uint32_t> inputs_, tiles_;
  std::vector<std::pair<double, uint32_t>> numbers_;
  size_t tiles_used_ = 0;
  uint32_t stages_ = 1, next_ = 0;
  bool by_rows_ = false;
};

}  // namespace

const Function* Steps::find(const char* name) const {
  for (const Function* f = functions; f->name; ++f)
    if (std::strcmp(f->name, name) == 0) return f;
  return nullptr;
}

std::unique_ptr<Program> compile(const aj_graph* part) { return Compiling(part).whole(); }

}  // namespace adjoin::fuser

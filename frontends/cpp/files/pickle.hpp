// adjoin/files/pickle.hpp: the machine that reads pickles of the protocols 0 to 5. It executes
// nothing: names of classes and functions, calls and states are handed to a Maker, who decides what
// becomes of them.
//
// A Maker has a copyable Value, for which a default-made one stands for nothing, and the functions
// that PickleMachine calls on it. It refuses by throwing kit::Error.
#ifndef ADJOIN_FILES_PICKLE_HPP
#define ADJOIN_FILES_PICKLE_HPP
#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <bit>
#include <charconv>
#include <span>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN files {

template <class Maker>
class PickleMachine {
 public:
  using Value = typename Maker::Value;
  static constexpr uint32_t kDepth =
      1000;  // of containers in each other, the limit of those who write them

  PickleMachine(std::string_view text, Maker& maker) : text_(text), maker_(maker) {}

  // Runs to the STOP; position() is behind it.
  Value run() {
    for (;;) {
      auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == '.') break;
      if (!constant(op) && !container(op) && !memory(op) && !call(op))
        wrong("the opcode ", int(op), " is unknown");
    }
    return pop().value;
  }
  size_t position() const { return at_; }

 private:
  // depth and weight (with repeats) bound what hashing a tuple costs, which Python does by
  // recursion.
  struct Slot {
    Value value{};
    uint32_t depth = 0;
    uint64_t weight = 1;
  };

  template <class... Part>
  [[noreturn]] void wrong(const Part&... parts) {
    kit::raise_as("UnpicklingError", AJ_DATA_LOSS, "load: the pickle is damaged at byte ",
                  uint64_t(at_), ": ", parts...);
  }

  // --- bytes ---
  std::string_view take(uint64_t n) {
    if (n > text_.size() - at_) wrong("it ends before its STOP");
    at_ += n;
    return text_.substr(at_ - n, n);
  }
  template <class T>
  T number() {
    T n;
    std::memcpy(&n, take(sizeof n).data(), sizeof n);
    return n;
  }
  std::string_view line() {
    size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) wrong("a line has no end");
    std::string_view found = text_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }
  uint64_t line_number() {
    std::string_view digits = line();
    uint64_t n = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), n).ptr !=
            digits.data() + digits.size() ||
        digits.empty())
      wrong("a number is none");
    return n;
  }

  // --- stack ---
  void push(Value v, uint32_t depth = 0, uint64_t weight = 1) {
    stack_.push_back({std::move(v), depth, weight});
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Slot pop() {
    if (stack_.size() <= floor()) wrong("the stack is empty");
    Slot s = std::move(stack_.back());
    stack_.pop_back();
    return s;
  }
  Slot& top() {
    if (stack_.size() <= floor()) wrong("the stack is empty");
    return stack_.back();
  }
  std::vector<Value> pop_to_mark(Slot& sum) {
    if (marks_.empty()) wrong("there is no mark");
    size_t from = marks_.back();
    marks_.pop_back();
    return pop_from(from, sum);
  }
  std::vector<Value> pop_from(size_t from, Slot& sum) {
    std::vector<Value> values;
    values.reserve(stack_.size() - from);
    for (size_t i = from; i < stack_.size(); ++i) {
      sum.depth = std::max(sum.depth, stack_[i].depth);
      sum.weight += stack_[i].weight;
      values.push_back(std::move(stack_[i].value));
    }
    stack_.resize(from);
    return values;
  }
  // The slot of what contains `inside`.
  void push_around(Value v, const Slot& inside, bool hashed) {
    if (inside.depth >= kDepth) wrong("containers are nested deeper than ", kDepth);
    uint64_t most = 10000 + 16 * uint64_t(text_.size());
    if (hashed && inside.weight > most)
      wrong("a tuple holds more than ", most, " values by repeating others");
    push(std::move(v), inside.depth + 1, hashed ? inside.weight : 1);
  }
  void deepen(Slot& container, const Slot& inside) {
    if (inside.depth >= kDepth) wrong("containers are nested deeper than ", kDepth);
    container.depth = std::max(container.depth, inside.depth + 1);
  }

  // --- opcodes ---
  bool constant(unsigned char op) { return number_constant(op) || text_constant(op); }
  bool number_constant(unsigned char op) {
    switch (op) {
      case 'N':
        push(maker_.none());
        return true;
      case 0x88:
        push(maker_.boolean(true));
        return true;
      case 0x89:
        push(maker_.boolean(false));
        return true;
      case 'J':
        push(maker_.integer(number<int32_t>()));
        return true;
      case 'K':
        push(maker_.integer(number<uint8_t>()));
        return true;
      case 'M':
        push(maker_.integer(number<uint16_t>()));
        return true;
      case 'I':
        integer_line();
        return true;
      case 'L':
        push(maker_.decimal(strip_l(line())));
        return true;
      case 0x8a:
        push(maker_.long_integer(take(number<uint8_t>())));
        return true;
      case 0x8b:
        push(maker_.long_integer(take(size32())));
        return true;
      case 'F':
        real_line();
        return true;
      case 'G':
        push(maker_.real(std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()))));
        return true;
      default:
        return false;
    }
  }
  bool text_constant(unsigned char op) {
    switch (op) {
      case 'S':
        string_line();
        return true;
      case 'T':
        push(maker_.text(take(size32())));
        return true;
      case 'U':
        push(maker_.text(take(number<uint8_t>())));
        return true;
      case 'V':
        push(maker_.escaped_text(line()));
        return true;
      case 'X':
        push(maker_.text(take(number<uint32_t>())));
        return true;
      case 0x8c:
        push(maker_.text(take(number<uint8_t>())));
        return true;
      case 0x8d:
        push(maker_.text(take(number<uint64_t>())));
        return true;
      case 'B':
        push(maker_.bytes(take(number<uint32_t>())));
        return true;
      case 'C':
        push(maker_.bytes(take(number<uint8_t>())));
        return true;
      case 0x8e:
        push(maker_.bytes(take(number<uint64_t>())));
        return true;
      case 0x96:
        push(maker_.byte_array(take(number<uint64_t>())));
        return true;
      default:
        return false;
    }
  }

  uint64_t size32() {
    auto n = number<int32_t>();
    if (n < 0) wrong("a size is negative");
    return uint64_t(n);
  }
  static std::string_view strip_l(std::string_view digits) {
    return digits.ends_with('L') ? digits.substr(0, digits.size() - 1) : digits;
  }
  void integer_line() {
    std::string_view digits = line();
    if (digits == "00" || digits == "01") return push(maker_.boolean(digits == "01"));
    push(maker_.decimal(digits));
  }
  void real_line() {
    std::string_view digits = line();
    if (digits.starts_with('+')) digits.remove_prefix(1);
    double x = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), x);
    if (end != digits.data() + digits.size() || error != std::errc()) wrong("a number is none");
    push(maker_.real(x));
  }
  void string_line() {  // 'quoted', with Python 2's escapes
    std::string_view quoted = line();
    if (quoted.size() < 2 || quoted.front() != quoted.back() ||
        (quoted.front() != '\'' && quoted.front() != '"'))
      wrong("a string has no quotes");
    quoted = quoted.substr(1, quoted.size() - 2);
    if (quoted.find('\\') != std::string_view::npos) return push(maker_.escaped_bytes(quoted));
    push(maker_.text(quoted));
  }

  bool container(unsigned char op) {
    Slot sum;
    switch (op) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case ')':
        push(maker_.tuple({}));
        return true;
      case ']':
        push(maker_.list());
        return true;
      case '}':
        push(maker_.dict());
        return true;
      case 0x8f:
        push(maker_.set());
        return true;
      case 't':
        make_tuple(pop_to_mark(sum), sum);
        return true;
      case 0x85:
      case 0x86:
      case 0x87: {
        size_t n = op - 0x84u;
        if (stack_.size() < floor() + n) wrong("the stack is empty");
        make_tuple(pop_from(stack_.size() - n, sum), sum);
        return true;
      }
      case 0x91: {
        auto items = pop_to_mark(sum);
        push_around(maker_.frozen_set(items), sum, true);
        return true;
      }
      case 'l':
        push(maker_.list()), extend(true);
        return true;
      case 'a':
      case 'e':
        extend(op == 'e');
        return true;
      case 'd':
        push(maker_.dict()), update(true);
        return true;
      case 's':
      case 'u':
        update(op == 'u');
        return true;
      case 0x90: {
        auto items = pop_to_mark(sum);
        deepen(top(), sum);
        maker_.add(top().value, items);
        return true;
      }
      default:
        return false;
    }
  }

  void make_tuple(const std::vector<Value>& items, const Slot& sum) {
    push_around(maker_.tuple(items), sum, true);
  }

  // 'l' and 'd' have their container above the items: it goes below them.
  void sink_container() {
    if (marks_.empty() || stack_.size() <= marks_.back()) wrong("there is no mark");
    std::rotate(stack_.begin() + ptrdiff_t(marks_.back()), stack_.end() - 1, stack_.end());
    ++marks_.back();
  }
  std::vector<Value> items(bool marked, size_t n, Slot& sum) {
    if (marked) return pop_to_mark(sum);
    if (stack_.size() < floor() + n) wrong("the stack is empty");
    return pop_from(stack_.size() - n, sum);
  }
  void extend(bool marked) {
    if (text_[at_ - 1] == 'l') sink_container();
    Slot sum;
    auto values = items(marked, 1, sum);
    deepen(top(), sum);
    maker_.append(top().value, values);
  }
  void update(bool marked) {
    if (text_[at_ - 1] == 'd') sink_container();
    Slot sum;
    auto values = items(marked, 2, sum);
    if (values.size() % 2) wrong("a key has no value");
    deepen(top(), sum);
    maker_.set_items(top().value, values);
  }

  bool memory(unsigned char op) {
    switch (op) {
      case '0':  // of a mark too, as CPython
        if (stack_.size() == floor() && !marks_.empty())
          marks_.pop_back();
        else
          pop();
        return true;
      case '1': {
        Slot sum;
        pop_to_mark(sum);
        return true;
      }
      case '2': {
        Slot again = top();
        stack_.push_back(again);
        return true;
      }
      case 'p':
        keep(line_number());
        return true;
      case 'q':
        keep(number<uint8_t>());
        return true;
      case 'r':
        keep(number<uint32_t>());
        return true;
      case 0x94:
        keep(kept_++);
        return true;
      case 'g':
        recall(line_number());
        return true;
      case 'h':
        recall(number<uint8_t>());
        return true;
      case 'j':
        recall(number<uint32_t>());
        return true;
      case 0x80: {
        int version = number<uint8_t>();
        if (version > 5) wrong("protocol ", version, " is newer than 5");
        return true;
      }
      case 0x95:
        number<uint64_t>();
        return true;
      default:
        return false;
    }
  }

  void keep(uint64_t index) {
    if (index > text_.size()) wrong("the memo has no place ", index);
    if (index >= memo_.size())
      memo_.resize(std::max<size_t>(index + 1, std::min(memo_.size() * 2, text_.size())));
    kept_ = std::max(kept_, index + (text_[at_ - 1] == char(0x94) ? 0 : 1));
    memo_[index] = top();
  }
  void recall(uint64_t index) {
    if (index >= memo_.size() || !memo_[index].value) wrong("the memo has nothing at ", index);
    stack_.push_back(memo_[index]);
  }

  bool call(unsigned char op) {
    switch (op) {
      case 'c': {
        std::string_view module = line(), name = line();
        push(maker_.global(module, name));
        return true;
      }
      case 0x93: {
        Value name = pop().value, module = pop().value;
        push(maker_.global(maker_.text_of(module), maker_.text_of(name)));
        return true;
      }
      case 'P':
        push(maker_.persistent(maker_.text(line())));
        return true;
      case 'Q': {
        Slot id = pop();
        push(maker_.persistent(id.value));
        return true;
      }
      case 'R': {
        Slot args = pop(), f = pop();
        push_around(maker_.reduce(f.value, args.value), args, true);
        return true;
      }
      case 0x81: {
        Slot args = pop(), type = pop();
        push_around(maker_.make(type.value, args.value, Value()), args, true);
        return true;
      }
      case 0x92: {
        Slot names = pop(), args = pop(), type = pop();
        args.depth = std::max(args.depth, names.depth);
        push_around(maker_.make(type.value, args.value, names.value), args, true);
        return true;
      }
      case 'b': {
        Slot state = pop();
        deepen(top(), state);
        maker_.build(top().value, state.value);
        return true;
      }
      case 'i':
      case 'o':
        instance(op);
        return true;
      case 0x82:
      case 0x83:
      case 0x84:
      case 0x97:
      case 0x98:
        wrong("it refers to things outside of the file (opcode ", int(op), ")");
      default:
        return false;
    }
  }

  void instance(unsigned char op) {
    Slot sum;
    Value type{};
    if (op == 'i') {
      std::string_view module = line(), name = line();
      type = maker_.global(module, name);
    }
    auto values = pop_to_mark(sum);
    if (op == 'o') {
      if (values.empty()) wrong("the stack is empty");
      type = values.front();
      values.erase(values.begin());
    }
    push_around(maker_.reduce(type, maker_.tuple(values)), sum, true);
  }

  std::string_view text_;
  size_t at_ = 0;
  Maker& maker_;
  std::vector<Slot> stack_, memo_;
  std::vector<size_t> marks_;
  uint64_t kept_ = 0;
};

}  // namespace files
}  // namespace adjoin
#endif

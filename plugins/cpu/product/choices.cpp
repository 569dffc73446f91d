// plugins/cpu/product/choices.cpp: the table of measured choices, and its text. Whatever a file
// holds, parsing ends in a table or in an error that names the line.
#include "choices.hpp"

#include <adjoin/kit/dtype.hpp>
#include <algorithm>
#include <bit>
#include <charconv>

namespace adjoin::cpu {
namespace {

using namespace kit;

constexpr std::string_view kHead = "adjoin products 1";
constexpr size_t kMostRows = 1 << 20, kLongestName = 128, kLongestLine = 1024;
constexpr int64_t kLargest = int64_t(1) << 40;
constexpr int kMostThreads = 1 << 14;

constexpr std::pair<std::string_view, DLDataType> kDtypes[] = {
    {"float32", dtype_of<float>},       {"float64", dtype_of<double>},
    {"float16", dtype_of<Half>},        {"bfloat16", dtype_of<BFloat16>},
    {"complex64", dtype_of<Complex64>}, {"complex128", dtype_of<Complex128>}};

uint64_t key_of(const Problem& p, int threads) {
  uint64_t key = uint64_t(p.dtype.code) << 8 | p.dtype.bits;
  for (int64_t size : {p.m, p.n, p.k}) key = key << 6 | uint64_t(class_of(size));
  return key << 18 | uint64_t(threads) << 2 | uint64_t(p.trans_a) << 1 | uint64_t(p.trans_b);
}

size_t hash(uint64_t key) { return size_t((key * 0x9e3779b97f4a7c15) >> 32); }

// A line's words from the left.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::string_view next() {
    size_t begin = std::min(rest_.find_first_not_of(' '), rest_.size());
    rest_.remove_prefix(begin);
    size_t end = std::min(rest_.find(' '), rest_.size());
    std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  std::string_view rest() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return rest_;
  }

 private:
  std::string_view rest_;
};

// Of a file that may hold anything, for a message.
std::string shown(std::string_view word) {
  std::string out(word.substr(0, kLongestName));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

template <class T>
T number(std::string_view word, T least, T most, const char* what) {
  T value{};
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() ||
      !(value >= least && value <= most))
    raise(AJ_INVALID_ARGUMENT, what, " is '", shown(word), "', wanted ", least, " to ", most);
  return value;
}

std::string_view name(std::string_view word, const char* what) {
  bool plain = !word.empty() && word.size() <= kLongestName;
  for (char c : word) plain &= c > ' ' && c < 127;
  if (!plain) raise(AJ_INVALID_ARGUMENT, what, " is no name of at most ", kLongestName, " letters");
  return word;
}

void parse_provider(Words& words, Choices& to) {
  Choices::Provider p;
  p.name = name(words.next(), "the provider");
  p.bytes = number<uint64_t>(words.next(), 0, UINT64_MAX, "the bytes of its file");
  p.file = shown(words.rest());
  if (to.providers.size() == Choices::kMostProviders)
    raise(AJ_INVALID_ARGUMENT, "more than ", Choices::kMostProviders, " providers");
  to.providers.push_back(p);
}

Choices::Row parse_row(std::string_view dtype, Words& words, const Choices& known) {
  Choices::Row row = {};
  Problem& p = row.problem;
  if (!parse_dtype(dtype, &p.dtype))
    raise(AJ_INVALID_ARGUMENT, "no line begins with '", shown(dtype), "'");
  std::string_view turned = words.next();
  if (turned.size() != 2 || turned.find_first_not_of("nt") != turned.npos)
    raise(AJ_INVALID_ARGUMENT, "operands are '", shown(turned), "', wanted nn, nt, tn or tt");
  p.trans_a = turned[0] == 't', p.trans_b = turned[1] == 't';
  for (int64_t* size : {&p.m, &p.n, &p.k})
    *size = number<int64_t>(words.next(), 1, kLargest, "a size");
  p.threads = number<int>(words.next(), 1, kMostThreads, "the number of threads");
  std::string_view who = words.next();
  auto same = [&](const Choices::Provider& q) { return q.name == who; };
  auto found = std::find_if(known.providers.begin(), known.providers.end(), same);
  if (found == known.providers.end())
    raise(AJ_INVALID_ARGUMENT, "no provider '", shown(who), "' was named before");
  row.provider = int(found - known.providers.begin());
  row.seconds = number<double>(words.next(), 0, 1e9, "the time");
  if (!words.next().empty()) raise(AJ_INVALID_ARGUMENT, "more words than wanted");
  return row;
}

}  // namespace

int class_of(int64_t size) {
  if (size <= 1) return 0;
  int floor = 63 - std::countl_zero(uint64_t(size));
  uint64_t mantissa = floor >= 7 ? uint64_t(size) >> (floor - 7) : uint64_t(size) << (7 - floor);
  return floor + (mantissa > 181);  // of 128: above the square root of two
}

bool parse_dtype(std::string_view text, DLDataType* out) {
  for (const auto& [name, dtype] : kDtypes)
    if (name == text) return *out = dtype, true;
  return false;
}

std::string name_of(const Problem& p) {
  std::string_view dtype = "other";
  for (const auto& [name, d] : kDtypes)
    if (same(d, p.dtype)) dtype = name;
  return text(dtype, " ", p.trans_a ? "t" : "n", p.trans_b ? "t" : "n", " ", p.m, " ", p.n, " ",
              p.k, " ", p.threads);
}

Choices::Slot& Choices::slot_of(uint64_t key) {
  size_t mask = table_.size() - 1, i = hash(key) & mask;
  while (table_[i].key != 0 && table_[i].key != key) i = (i + 1) & mask;
  return table_[i];
}

void Choices::add(const Row& row) {
  if (table_.size() < 2 * (rows_.size() + 1)) {
    std::vector<Slot> old(std::max<size_t>(64, 2 * table_.size()));
    old.swap(table_);
    for (const Slot& s : old)
      if (s.key) slot_of(s.key) = s;
  }
  uint64_t key = key_of(row.problem, row.problem.threads);
  Slot& slot = slot_of(key);
  if (slot.key) {
    rows_[size_t(slot.row)] = row;
    return;
  }
  slot = {key, int(rows_.size())};
  rows_.push_back(row);
  auto place = std::lower_bound(threads_.begin(), threads_.end(), row.problem.threads);
  if (place == threads_.end() || *place != row.problem.threads)
    threads_.insert(place, row.problem.threads);
}

int Choices::find(const Problem& p) const {
  int threads = 0;
  for (int measured : threads_) threads = measured <= p.threads ? measured : threads;
  if (threads == 0) return -1;
  uint64_t key = key_of(p, threads);
  size_t mask = table_.size() - 1;
  for (size_t i = hash(key) & mask; table_[i].key; i = (i + 1) & mask)
    if (table_[i].key == key) return rows_[size_t(table_[i].row)].provider;
  return -1;
}

std::string Choices::text() const {
  std::string out = kit::text(kHead, "\nprocessor ", processor, "\n");
  for (const Provider& p : providers)
    out += kit::text("provider ", p.name, " ", p.bytes, " ", p.file, "\n");
  for (const Row& row : rows_)
    out += kit::text(name_of(row.problem), " ", providers[size_t(row.provider)].name, " ",
                     float(row.seconds), "\n");
  return out + kit::text("end ", rows_.size(), "\n");
}

Choices Choices::parse(std::string_view text) {
  Choices made;
  int64_t line = 0;
  bool ended = false;
  try {
    while (!text.empty()) {
      ++line;
      size_t end = std::min(text.find('\n'), text.size());
      std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line == 1) {
        if (one != kHead)
          raise(AJ_INVALID_ARGUMENT, "it does not begin with '", kHead,
                "', the format that is known");
        continue;
      }
      if (one.size() > kLongestLine) raise(AJ_INVALID_ARGUMENT, "it is too long");
      if (one.empty() || one[0] == '#') continue;
      if (ended) raise(AJ_INVALID_ARGUMENT, "something follows the end");
      Words words(one);
      std::string_view first = words.next();
      if (first == "processor") {
        made.processor = shown(words.rest());
      } else if (first == "provider") {
        parse_provider(words, made);
      } else if (first == "end") {
        ended = number<uint64_t>(words.next(), 0, kMostRows, "the number of lines") ==
                made.rows_.size();
        if (!ended)
          raise(AJ_INVALID_ARGUMENT, "lines are missing: ", made.rows_.size(), " are there");
      } else {
        if (made.rows_.size() == kMostRows) raise(AJ_INVALID_ARGUMENT, "too many lines");
        made.add(parse_row(first, words, made));
      }
    }
    if (!ended) raise(AJ_INVALID_ARGUMENT, "the end is missing");
  } catch (const Error& e) {
    raise(AJ_INVALID_ARGUMENT, "line ", line, ": ", e.message());
  }
  return made;
}

}  // namespace adjoin::cpu

// plugins/faulty/orders.cpp: reads ADJOIN_FAULTY.
#include "orders.hpp"

#include <adjoin/kit/error.hpp>
#include <charconv>
#include <cstdlib>

namespace adjoin::faulty {

using kit::raise;

namespace {

constexpr std::string_view kFaults[] = {"delay", "drop", "error",    "mismatch", "kill",
                                        "stop",  "usr1", "cut_link", "throw"};

int64_t number_of(std::string_view word, std::string_view whole) {
  if (word == "*") return -1;
  int64_t n = 0;
  auto got = std::from_chars(word.data(), word.data() + word.size(), n);
  if (got.ec != std::errc() || got.ptr != word.data() + word.size())
    raise(AJ_INVALID_ARGUMENT, "ADJOIN_FAULTY: '", whole, "': '", word, "' is no number");
  return n;
}

Order order_of(std::string_view word) {
  const size_t first = word.find(':'), second = word.find(':', first + 1);
  if (second == std::string_view::npos)
    raise(AJ_INVALID_ARGUMENT, "ADJOIN_FAULTY: '", word, "'; wanted is RANK:NUMBER:FAULT");
  Order o;
  o.rank = int(number_of(word.substr(0, first), word));
  o.seq = number_of(word.substr(first + 1, second - first - 1), word);
  std::string_view what = word.substr(second + 1);
  if (const size_t equals = what.find('='); equals != std::string_view::npos) {
    o.number = number_of(what.substr(equals + 1), word);
    what = what.substr(0, equals);
  }
  o.what = what;
  for (std::string_view known : kFaults)
    if (what == known) return o;
  std::string list;
  for (std::string_view known : kFaults) list += kit::text(list.empty() ? "" : ", ", known);
  raise(AJ_INVALID_ARGUMENT, "ADJOIN_FAULTY: there is no fault '", what, "'; there are: ", list);
}

}  // namespace

Orders Orders::read() {
  Orders o;
  const char* told = secure_getenv("ADJOIN_FAULTY");
  std::string_view rest = told ? told : "";
  for (bool first = true; !rest.empty(); first = false) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (first && word.find(':') == std::string_view::npos)
      o.engine = word;
    else
      o.all.push_back(order_of(word));
  }
  return o;
}

const Order* Orders::find(int rank, uint64_t seq) const {
  for (const Order& o : all)
    if ((o.rank < 0 || o.rank == rank) && (o.seq < 0 || uint64_t(o.seq) == seq)) return &o;
  return nullptr;
}

}  // namespace adjoin::faulty

// frontends/cli/conform/fill.cpp: numbers for a row's samples: inside its domain, without ties and
// away from kinks, so that two backends have one answer.
#include <algorithm>
#include <cmath>
#include <random>

#include "rows.hpp"

namespace adjoin::cli::conform {
namespace {

using Numbers = std::vector<std::complex<double>>;
using Random = std::mt19937_64;

constexpr uint64_t bit(int index) { return uint64_t(1) << index; }
constexpr uint64_t kWhole = bit(AJ_DT_UINT8) | bit(AJ_DT_INT8) | bit(AJ_DT_INT16) |
                            bit(AJ_DT_INT32) | bit(AJ_DT_INT64) | bit(AJ_DT_UINT16) |
                            bit(AJ_DT_UINT32) | bit(AJ_DT_UINT64);

double unit(Random& rng) { return double(rng() >> 11) * 0x1p-53; }

double number_of(const Json& test, const char* name, double otherwise) {
  const Json* j = test.find(name);
  return j ? j->to_double() : otherwise;
}

// Well apart from each other and from whole numbers, in random order.
std::vector<double> apart(Random& rng, int64_t count, double low, double high) {
  double step = (high - low) / double(count + 1);
  std::vector<double> x;
  for (int64_t i = 0; i < count; ++i) {
    double v = low + (double(i) + 0.5 + 0.1 * unit(rng)) * step;
    x.push_back(std::fabs(v - std::round(v)) < 1e-3 ? v + 0.013 * step : v);
  }
  std::shuffle(x.begin(), x.end(), rng);
  return x;
}

// Below the bound; no two alike along a dimension where that is possible: two writers of one place
// would have no one result.
Numbers indices(Random& rng, const Shape& shape, int64_t count, int64_t bound) {
  std::vector<int64_t> order(size_t(std::max<int64_t>(bound, 1)));
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  std::shuffle(order.begin(), order.end(), rng);
  int64_t width = shape.size() > 1 ? std::max<int64_t>(shape.back(), 1) : 1;
  Numbers x;
  for (int64_t i = 0; i < count; ++i)
    x.emplace_back(double(order[size_t((i / width + i % width) % int64_t(order.size()))]));
  return x;
}

bool names(const Json& test, const char* list, const std::string& name) {
  const Json* j = test.find(list);
  if (!j) return false;
  return j->find(name) || std::any_of(j->items.begin(), j->items.end(),
                                      [&](const Json& item) { return item.text == name; });
}

Numbers whole_numbers(Random& rng, const Json& test, int64_t count, bool positive) {
  auto low = int64_t(number_of(test, "low", -4)), high = int64_t(number_of(test, "high", 5));
  if (positive) low = std::max<int64_t>(low, 0);
  auto span = uint64_t(std::max(high, low + 1) - low + 1);
  Numbers x;
  for (int64_t i = 0; i < count; ++i) x.emplace_back(double(low + int64_t(rng() % span)));
  return x;
}

HostTensor make(Random& rng, const Row& row, const Param& param, const Json& sizes,
                const std::string& dtype) {
  Shape shape;
  for (const Json& n : sizes.items) shape.push_back(n.whole);
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  DLDataType type = dtype_named(dtype);
  bool floating = type.code == kDLFloat || type.code == kDLBfloat;
  Numbers x;
  if (names(row.test, "signs", param.name) && floating) {
    for (int64_t i = 0; i < count; ++i) x.emplace_back(rng() & 1 ? 1 : -1);
  } else if (names(row.test, "ints", param.name) || (param.dtypes && !(param.dtypes & ~kWhole))) {
    const Json* bounds = row.test.find("ints");
    const Json* bound = bounds ? bounds->find(param.name) : nullptr;
    type = int64;
    x = indices(rng, shape, count, bound ? bound->whole : 2);
  } else if (type.code == kDLBool || param.dtypes == bit(AJ_DT_BOOL)) {
    type = boolean;
    for (int64_t i = 0; i < count; ++i) x.emplace_back(double(rng() & 1));
  } else if (type.code == kDLInt || type.code == kDLUInt) {
    x = whole_numbers(rng, row.test, count, type.code == kDLUInt);
  } else {
    double low = number_of(row.test, "low", -2), high = number_of(row.test, "high", 2);
    std::vector<double> re = apart(rng, count, low, high), im(re.size());
    if (type.code == kDLComplex) im = apart(rng, count, low, high);
    for (size_t i = 0; i < re.size(); ++i) x.emplace_back(re[i], im[i]);
  }
  return from_numbers(type, shape, x);
}

void flatten(const Json& j, size_t depth, Shape& shape, Numbers& x, DLDataType& dtype) {
  if (j.kind != Json::kList) {
    if (j.kind == Json::kFloat) dtype = float32;
    if (j.kind == Json::kBool) dtype = boolean;
    x.emplace_back(j.kind == Json::kBool ? double(j.yes) : j.to_double());
    return;
  }
  if (shape.size() == depth) shape.push_back(int64_t(j.items.size()));
  for (const Json& item : j.items) flatten(item, depth + 1, shape, x, dtype);
}

bool none(const Json& j) {
  return j.kind == Json::kNull || (j.kind == Json::kText && (j.text == "none" || j.text == "None"));
}

void put_other(const Param& param, const Json& value, Argument& to) {
  if (param.base != AJ_PARAM_STR && none(value)) return;
  if (param.tensor() && value.kind == Json::kList) {
    Shape shape;
    Numbers x;
    DLDataType dtype = int64;
    flatten(value, 0, shape, x, dtype);
    to.kind = Argument::kTensor;
    to.tensors.assign(1, from_numbers(dtype, shape, x));
    return;
  }
  to.kind = Argument::kValue;
  to.value = value;
}

}  // namespace

Given fill(const Row& row, const Sample& sample, const std::string& dtype, uint64_t seed) {
  Given given(row.params.size());
  std::string what = row.name + sample.text();
  std::seed_seq mix{seed, uint64_t(std::hash<std::string>()(what))};
  Random rng(mix);
  size_t next = 0;
  for (size_t i = 0; i < row.params.size(); ++i) {
    const Param& param = row.params[i];
    const Json* other = nullptr;
    for (const auto& [name, value] : sample.others)
      if (name == param.name) other = &value;
    if (other) {
      put_other(param, *other, given[i]);
      continue;
    }
    if (!param.tensor() || next >= sample.shapes.size()) continue;
    const Json& shape = sample.shapes[next++];
    if (none(shape)) continue;
    given[i].kind = param.list ? Argument::kTensors : Argument::kTensor;
    if (!param.list) {
      given[i].tensors.emplace_back(make(rng, row, param, shape, dtype));
      continue;
    }
    for (const Json& one : shape.items) {
      given[i].tensors.emplace_back();
      if (!none(one)) given[i].tensors.back() = make(rng, row, param, one, dtype);
    }
  }
  if (row.factory())
    for (size_t i = 0; i < row.params.size(); ++i)
      if (row.params[i].name == "dtype" && !dtype.empty()) {
        given[i].kind = Argument::kValue;
        given[i].value.kind = Json::kText;
        given[i].value.text = dtype;
      }
  return given;
}

}  // namespace adjoin::cli::conform

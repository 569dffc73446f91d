// frontends/cli/conform/rows.cpp: the shapes and arguments of a row's samples, from its `test` and,
// where that is silent, from its kind.
#include "rows.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace adjoin::cli::conform {

const std::vector<std::string> kDtypes = {"float64",   "float32",    "float16", "bfloat16",
                                          "complex64", "complex128", "int64",   "int32",
                                          "int16",     "int8",       "uint8",   "bool"};

namespace {

constexpr const char* kUnary = "[[[3, 4]], [[]], [[0, 3]], [[2, 3, 4]], [[1, 5, 1]]]";
constexpr const char* kBinary =
    "[[[3, 4], [3, 4]], [[3, 4], [4]], [[2, 1, 3], [4, 1]], [[], [3]], [[0, 3], [3]],"
    " [[2, 3, 4], [1, 4]]]";
constexpr const char* kReduce = "[[[3, 4]], [[2, 3, 4]], [[]]]";

std::string text(aj_str s) { return std::string(kit::view_of(s)); }

std::vector<Param> params_of(const aj_op* op, uint32_t n,
                             aj_status* (*get)(const aj_op*, uint32_t, aj_param*)) {
  std::vector<Param> list;
  for (uint32_t i = 0; i < n; ++i) {
    aj_param p{};
    p.struct_size = sizeof p;
    kit::check(get(op, i, &p));
    list.push_back({text(p.name), p.base, p.list, p.flags, p.dtypes, p.value});
  }
  return list;
}

Json list_of(std::vector<Json> items) {
  Json j;
  j.kind = Json::kList;
  j.items = std::move(items);
  return j;
}

std::vector<Json> default_shapes(const Row& row) {
  const Json* args = row.test.find("args");
  size_t needed = 0;
  for (const Param& p : row.params)
    needed += p.tensor() && !p.optional() && !p.has_default() && !(args && args->find(p.name));
  if (row.kind.starts_with("reduce") || row.kind.starts_with("scan"))
    return parse_json(kReduce).items;
  if (needed == 1) return parse_json(kUnary).items;
  if (needed == 2) return parse_json(kBinary).items;
  std::vector<Json> same, other = parse_json("[[2, 1, 4], [3, 1]]").items, scalars;
  for (size_t i = 0; i < needed; ++i) {
    same.push_back(parse_json("[3, 4]"));
    scalars.push_back(parse_json("[]"));
    if (i >= 2) other.push_back(parse_json("[4]"));
  }
  return {list_of(same), list_of(other), list_of(scalars)};
}

using Others = std::vector<Json::Member>;

std::vector<Others> combinations(const Json* args) {
  std::vector<Others> all(1);
  if (!args) return all;
  for (const auto& [name, values] : args->members) {
    std::vector<Others> next;
    for (const Others& before : all)
      for (const Json& value : values.items) {
        next.push_back(before);
        next.back().push_back({name, value});
      }
    all = std::move(next);
  }
  return all;
}

void put_json(std::string& out, const Json& j) {
  switch (j.kind) {
    case Json::kNull:
      out += "None";
      break;
    case Json::kBool:
      out += j.yes ? "True" : "False";
      break;
    case Json::kInt:
      out += std::to_string(j.whole);
      break;
    case Json::kFloat:
      kit::put(out, j.real);
      break;
    case Json::kText:
      out += j.text;
      break;
    default:
      out += '[';
      for (size_t i = 0; i < j.items.size(); ++i) {
        if (i) out += ", ";
        put_json(out, j.items[i]);
      }
      out += ']';
  }
}

void collect_sizes(const Json& j, std::vector<int64_t>& sizes) {
  if (j.kind == Json::kInt && std::find(sizes.begin(), sizes.end(), j.whole) == sizes.end())
    sizes.push_back(j.whole);
  for (const Json& item : j.items) collect_sizes(item, sizes);
}

void replace_size(Json& j, int64_t old, int64_t wanted) {
  if (j.kind == Json::kInt && j.whole == old) j.whole = wanted;
  for (Json& item : j.items) replace_size(item, old, wanted);
}

int64_t largest(const Json& j) {
  bool flat = std::all_of(j.items.begin(), j.items.end(),
                          [](const Json& i) { return i.kind == Json::kInt; });
  int64_t n = 1, most = 0;
  for (const Json& item : j.items) {
    if (flat)
      n *= item.whole;
    else if (item.kind == Json::kList)
      most = std::max(most, largest(item));
  }
  return flat ? n : most;
}

// Arguments that speak of the sizes of the tensors.
bool tells_size(const Param* p) {
  static const std::set<std::string> kNames = {
      "input_shape",      "shape",       "src_shape", "repeats",
      "normalized_shape", "num_classes", "split_size"};
  return p && (p->base == AJ_PARAM_SIZE || kNames.count(p->name));
}

bool is_shape(const Json& j) {
  return j.kind == Json::kList && std::all_of(j.items.begin(), j.items.end(), [](const Json& i) {
           return i.kind == Json::kInt && i.whole >= 0;
         });
}

// One for each tensor: a shape, nothing, or a list of those.
bool is_sample(const Json& j) {
  auto none = [](const Json& i) { return i.kind == Json::kNull || i.kind == Json::kText; };
  auto one = [&](const Json& i) { return none(i) || is_shape(i); };
  return j.kind == Json::kList && std::all_of(j.items.begin(), j.items.end(), [&](const Json& i) {
           return one(i) ||
                  (i.kind == Json::kList && std::all_of(i.items.begin(), i.items.end(), one));
         });
}

// What is wrong with a row's test, or "": the rest of this program reads it without a look.
std::string wrong_form(const Json& test) {
  if (test.kind != Json::kObject) return "a JSON object is wanted";
  auto each = [&](const char* key, auto good) {
    const Json* j = test.find(key);
    return !j || (j->kind == Json::kList && std::all_of(j->items.begin(), j->items.end(), good));
  };
  if (!each("shapes", is_sample))
    return "shapes: a list of samples is wanted, each a list of shapes, e.g. [[[3, 4], [4]]]";
  auto is_case = [](const Json& j) {
    const Json *shapes = j.find("shapes"), *args = j.find("args");
    return j.kind == Json::kObject && (!shapes || is_sample(*shapes)) &&
           (!args || args->kind == Json::kObject);
  };
  if (!each("cases", is_case))
    return "cases: a list of {\"shapes\": [[3, 4]], \"args\": {\"dim\": 0}} is wanted";
  if (const Json* args = test.find("args")) {
    bool lists = args->kind == Json::kObject;
    for (const auto& [name, values] : args->members) lists &= values.kind == Json::kList;
    if (!lists) return "args: an object of lists of values is wanted, e.g. {\"dim\": [0, 1]}";
  }
  for (const char* key : {"low", "high", "ulp", "ulp_floor", "size"})
    if (const Json* j = test.find(key); j && !j->number())
      return std::string(key) + ": a number is wanted";
  if (!each("dtypes", [](const Json& j) { return j.kind == Json::kText; }))
    return "dtypes: a list of names is wanted";
  return {};
}

}  // namespace

Row::Row(const aj_op* from) : op(from) {
  aj_op_info info{};
  info.struct_size = sizeof info;
  kit::check(kit::dispatch().op_info(op, &info));
  name = conform::text(info.name), kind = conform::text(info.kind);
  provider = conform::text(info.provider);
  flags = info.flags;
  params = params_of(op, info.nparams, kit::dispatch().op_param);
  results = params_of(op, info.nresults, kit::dispatch().op_result);
  std::string json = conform::text(info.test);
  tested = !json.empty() || !provider.empty();
  if (json.empty()) return;
  try {
    test = parse_json(json);
    wrong = wrong_form(test);
  } catch (const std::runtime_error& e) {
    wrong = e.what();
  }
  if (!wrong.empty()) test = {};
  const Json* same = test.find("same");
  const aj_op* other = same ? kit::dispatch().find_op(kit::str(same->text)) : nullptr;
  if (other && other != op) test = Row(other).test;
}

const Param* Row::param(const std::string& wanted) const {
  for (const Param& p : params)
    if (p.name == wanted) return &p;
  return nullptr;
}

bool Row::takes_tensors() const {
  return std::any_of(params.begin(), params.end(), [](const Param& p) { return p.tensor(); });
}
bool Row::factory() const { return !takes_tensors() && param("dtype"); }
bool Row::random() const {
  return std::any_of(params.begin(), params.end(),
                     [](const Param& p) { return p.base == AJ_PARAM_GENERATOR; });
}
bool Row::pointwise() const {
  for (const char* k : {"unary", "binary", "compare", "pointwise"})
    if (kind.starts_with(k)) return true;
  return false;
}

bool Row::compared() const {
  const Json* values = test.find("values");
  return !values || values->yes;
}

std::vector<std::string> Row::dtypes() const {
  if (!takes_tensors() && !factory()) return {""};
  const Json* only = test.find("dtypes");
  if (!only) return kDtypes;
  std::vector<std::string> names;
  for (const Json& name : only->items) names.push_back(name.text);
  return names;
}

std::vector<Sample> Row::samples() const {
  std::vector<Sample> list;
  if (const Json* cases = test.find("cases")) {
    for (const Json& one : cases->items) {
      const Json *shapes = one.find("shapes"), *args = one.find("args");
      list.push_back({shapes ? shapes->items : std::vector<Json>(),
                      args ? args->members : std::vector<Json::Member>()});
    }
    return list;
  }
  const Json* own = test.find("shapes");
  for (const Json& shapes : own ? own->items : default_shapes(*this))
    for (Others& others : combinations(test.find("args")))
      list.push_back({shapes.items, std::move(others)});
  return list;
}

std::vector<Sample> Row::resized(int64_t wanted, int64_t most) const {
  std::vector<Sample> list;
  const Json* only = test.find("size");
  for (const Sample& plain : samples()) {
    Json shapes = list_of(plain.shapes);
    std::vector<int64_t> sizes;
    if (only)
      sizes = {only->whole};
    else
      collect_sizes(shapes, sizes);
    for (int64_t size : sizes) {
      if (size == 0) continue;
      Sample changed = plain;
      Json all = shapes;
      int64_t to = wanted;
      for (int64_t n : {wanted, wanted / 9, wanted / 32, wanted / 100}) {
        all = shapes;
        replace_size(all, size, to = n);
        if (wanted == 0 || largest(all) < most) break;
      }
      changed.shapes = all.items;
      for (auto& [key, value] : changed.others)
        if (tells_size(param(key))) replace_size(value, size, to);
      list.push_back(std::move(changed));
    }
  }
  return list;
}

std::string Sample::text() const {
  std::string out;
  for (const Json& shape : shapes) {
    if (!out.empty()) out += ' ';
    put_json(out, shape);
  }
  for (const auto& [name, value] : others) {
    out += (out.empty() ? "" : " ") + name + "=";
    put_json(out, value);
  }
  return out;
}

std::vector<Row> all_rows(const std::string& provider) {
  std::vector<Row> rows;
  for (uint32_t i = 0; i < kit::dispatch().op_count(); ++i) {
    Row row(kit::dispatch().op_at(i));
    if (row.provider.starts_with("ops_"))  // a pack brings the samples of its ops when it is loaded
      rows.emplace_back(kit::dispatch().find_op(kit::str(row.name)));
    else if (row.provider.empty() || row.provider == provider)
      rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  return rows;
}

}  // namespace adjoin::cli::conform

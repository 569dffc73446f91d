// frontends/cli/bindgen_lua.cpp: ops as functions of Lua over LuaJIT's ffi.
#include <map>

#include "bindgen.hpp"

namespace adjoin::cli::bindgen {
namespace {

constexpr std::string_view kReserved[] = {
    "and",  "break", "do",    "else",  "elseif", "end", "false", "for",    "function",
    "goto", "if",    "in",    "local", "nil",    "not", "or",    "repeat", "return",
    "then", "true",  "until", "while", "a",      "k",   "M",     "put",    "call"};
// What the part written by hand defines.
constexpr std::string_view kOwn[] = {
    "and",   "break",    "do",      "else",        "elseif",       "end",         "false",
    "for",   "function", "goto",    "if",          "in",           "local",       "nil",
    "not",   "or",       "repeat",  "return",      "then",         "true",        "until",
    "while", "tensor",   "no_grad", "load_plugin", "load_program", "manual_seed", "nn"};

// The function of the template's table `put` that converts an argument.
std::string converter(const OpParam& p) {
  static const std::map<int32_t, const char*> kNames = {{AJ_PARAM_TENSOR, "tensor"},
                                                        {AJ_PARAM_OPERAND, "operand"},
                                                        {AJ_PARAM_SCALAR, "scalar"},
                                                        {AJ_PARAM_INT, "int"},
                                                        {AJ_PARAM_DIM, "int"},
                                                        {AJ_PARAM_SIZE, "int"},
                                                        {AJ_PARAM_FLOAT, "float"},
                                                        {AJ_PARAM_BOOL, "bool"},
                                                        {AJ_PARAM_STR, "string"},
                                                        {AJ_PARAM_DTYPE, "dtype"},
                                                        {AJ_PARAM_DEVICE, "device"},
                                                        {AJ_PARAM_LAYOUT, "layout"},
                                                        {AJ_PARAM_MEMORY_FORMAT, "memory_format"},
                                                        {AJ_PARAM_GENERATOR, "object"},
                                                        {AJ_PARAM_STREAM, "object"},
                                                        {AJ_PARAM_FUNCTION, "object"},
                                                        {AJ_PARAM_OBJECT, "object"}};
  if (!p.known()) return "unknown";
  return std::string(kNames.at(p.info.base)) + (p.info.list ? "s" : "");
}

std::string list_text(const aj_value& v) {
  std::string out;
  for (uint32_t i = 0; i < v.aux; ++i) {
    out += i ? ", " : "";
    if (v.tag == AJ_INTS) out += std::to_string(v.v.ints[i]);
    if (v.tag == AJ_FLOATS) out += number_text(v.v.floats[i], "math.huge", "0/0");
    if (v.tag == AJ_BOOLS) out += v.v.bools[i] ? "true" : "false";
  }
  return "{" + out + "}";
}

std::string literal(const aj_value& v) {
  switch (v.tag) {
    case AJ_BOOL:
      return v.v.i ? "true" : "false";
    case AJ_INT:
    case AJ_LAYOUT:
    case AJ_MEMORY_FORMAT:
      return std::to_string(v.v.i);
    case AJ_FLOAT:
      return number_text(v.v.f, "math.huge", "0/0");
    case AJ_STRING:
      return quote({v.v.str, v.aux});
    case AJ_INTS:
    case AJ_FLOATS:
    case AJ_BOOLS:
      return list_text(v);
    default:
      return "nil";
  }
}

std::string function(const OpModel& op, const std::string& name, bool in_place) {
  std::string table = op.space.empty() ? "M" : "M." + op.space, list, body;
  Names names(kReserved);
  for (size_t i = 0; i < op.params.size(); ++i) {
    const OpParam& p = op.params[i];
    std::string own = names.take(p.name),
                otherwise = p.given() && p.known() ? literal(p.info.value) : "nil";
    list += (i ? ", " : "") + own;
    body += "  put." + converter(p) + "(a, " + std::to_string(i) + ", k, " + own;
    if (otherwise != "nil")
      body += ", " + otherwise;
    else if (p.has(AJ_PARAM_OPTIONAL) || p.given())
      body += ", none";
    body += ")\n";
  }
  std::string out = "-- " + op.doc + "\n-- " + op.schema + (in_place ? " in place" : "") + "\n";
  out += "function " + table + "." + name + "(" + list + ")\n  local a, k = args(" +
         std::to_string(op.params.size()) + "), keep()\n";
  out += body + "  return call(" + quote(op.op) + ", a, " + std::to_string(op.params.size()) + ", ";
  size_t shown = 0;
  for (const OpParam& r : op.results) shown += !r.has(AJ_PARAM_AUX);
  out += std::to_string(op.results.size()) + ", " + std::to_string(shown) +
         (in_place ? ", true)\nend\n" : ")\nend\n");
  bool method =
      !op.params.empty() && !op.params[0].info.list &&
      (op.params[0].info.base == AJ_PARAM_TENSOR || op.params[0].info.base == AJ_PARAM_OPERAND);
  if (method && (op.space.empty())) out += "Tensor." + name + " = M." + name + "\n";
  return out;
}

}  // namespace

std::string lua_functions(const std::vector<OpModel>& ops) {
  std::map<std::string, Names> spaces;
  std::string out;
  for (const OpModel& op : ops) {
    auto [it, fresh] = spaces.try_emplace(op.space, kOwn);
    if (fresh && !op.space.empty()) out += "M." + op.space + " = M." + op.space + " or {}\n";
    out += function(op, it->second.take(op.name), false);
  }
  for (const OpModel& op : ops)
    if (op.in_place) out += function(op, spaces.at(op.space).take(op.name + "_"), true);
  return out;
}

}  // namespace adjoin::cli::bindgen

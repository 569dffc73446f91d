// frontends/cli/bindgen_rust.cpp: ops as functions of Rust: required arguments are arguments, the
// others fields of a struct.
#include <algorithm>
#include <map>

#include "bindgen.hpp"

namespace adjoin::cli::bindgen {
namespace {

constexpr std::string_view kReserved[] = {
    "as",     "break", "const",    "continue", "crate",   "dyn",    "else",  "enum",  "extern",
    "false",  "fn",    "for",      "if",       "impl",    "in",     "let",   "loop",  "match",
    "mod",    "move",  "mut",      "pub",      "ref",     "return", "self",  "Self",  "static",
    "struct", "super", "trait",    "true",     "type",    "unsafe", "use",   "where", "while",
    "async",  "await", "abstract", "become",   "box",     "do",     "final", "macro", "override",
    "priv",   "try",   "typeof",   "unsized",  "virtual", "yield",  "o",     "r"};
// What the part written by hand defines, the functions' names among it.
constexpr std::string_view kOwn[] = {
    "as",        "break",  "const",    "continue", "crate",       "dyn",         "else",
    "enum",      "extern", "false",    "fn",       "for",         "if",          "impl",
    "in",        "let",    "loop",     "match",    "mod",         "move",        "mut",
    "pub",       "ref",    "return",   "self",     "Self",        "static",      "struct",
    "super",     "trait",  "true",     "type",     "unsafe",      "use",         "where",
    "while",     "async",  "await",    "abstract", "become",      "box",         "do",
    "final",     "macro",  "override", "priv",     "try",         "typeof",      "unsized",
    "virtual",   "yield",  "sys",      "core",     "dispatch",    "autograd",    "table",
    "text",      "copied", "check",    "device",   "manual_seed", "load_plugin", "no_grad",
    "v",         "list",   "holes",    "run",      "tensor_of",   "guarded",     "infer",
    "kernel",    "vjp",    "init",     "define",   "call",        "drop_value",  "not_a",
    "complex_of"};

std::string element(const OpParam& p) {
  switch (p.info.base) {
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      return "i64";
    case AJ_PARAM_FLOAT:
      return "f64";
    case AJ_PARAM_BOOL:
      return "bool";
    case AJ_PARAM_SCALAR:
      return "Scalar";
    case AJ_PARAM_STR:
      return "&'a str";
    case AJ_PARAM_DTYPE:
      return "DType";
    case AJ_PARAM_DEVICE:
      return "Device";
    case AJ_PARAM_LAYOUT:
      return "Layout";
    case AJ_PARAM_MEMORY_FORMAT:
      return "MemoryFormat";
    case AJ_PARAM_GENERATOR:
    case AJ_PARAM_STREAM:
    case AJ_PARAM_FUNCTION:
    case AJ_PARAM_OBJECT:
      return "&'a Object";
    case AJ_PARAM_OPERAND:
      return p.info.list ? "&'a Tensor" : "Operand<'a>";
    default:
      return "&'a Tensor";
  }
}

bool is_tensors(const OpParam& p) {
  return p.info.list && (p.info.base == AJ_PARAM_TENSOR || p.info.base == AJ_PARAM_OPERAND);
}

// Is None among its values?
bool may_be_none(const OpParam& p) {
  return p.has(AJ_PARAM_OPTIONAL) || (p.given() && (!p.known() || p.info.value.tag == AJ_NONE));
}

// Is a number or a tensor to be turned into it?
bool is_operand(const OpParam& p) {
  return p.info.base == AJ_PARAM_OPERAND && !p.info.list && !may_be_none(p);
}

std::string type_of(const OpParam& p) {
  if (!p.known()) return may_be_none(p) ? "Option<Unknown>" : "Unknown";
  std::string t = element(p);
  if (p.info.list)
    t = is_tensors(p) && p.has(AJ_PARAM_OPTIONAL_ITEMS) ? "&'a [Option<&'a Tensor>]"
                                                        : "&'a [" + t + "]";
  return may_be_none(p) ? "Option<" + t + ">" : t;
}

// What an argument becomes before the call, if it has to become something; then it bears the same
// name.
std::string prepared(const OpParam& p, const std::string& from, const std::string& to) {
  if (!is_tensors(p)) return "";
  std::string make = p.has(AJ_PARAM_OPTIONAL_ITEMS) ? "holes" : "list";
  return "    let " + to + " = " +
         (may_be_none(p) ? from + ".map(" + make + ")" : make + "(" + from + ")") + ";\n";
}

std::string items(const aj_value& v) {
  std::string out;
  for (uint32_t i = 0; i < v.aux; ++i) {
    out += i ? ", " : "";
    if (v.tag == AJ_INTS) out += std::to_string(v.v.ints[i]);
    if (v.tag == AJ_FLOATS) out += number_text(v.v.floats[i], "f64::INFINITY", "f64::NAN");
    if (v.tag == AJ_BOOLS) out += v.v.bools[i] ? "true" : "false";
  }
  return "&[" + out + "]";
}

std::string plain_literal(const OpParam& p, const aj_value& v) {
  bool scalar = p.info.base == AJ_PARAM_SCALAR || p.info.base == AJ_PARAM_OPERAND;
  std::string kind, text;
  if (v.tag == AJ_BOOL) kind = "Bool", text = v.v.i ? "true" : "false";
  if (v.tag == AJ_INT) kind = "Int", text = std::to_string(v.v.i);
  if (v.tag == AJ_FLOAT) kind = "Float", text = number_text(v.v.f, "f64::INFINITY", "f64::NAN");
  if (v.tag == AJ_INT && p.info.base == AJ_PARAM_FLOAT) text += ".0";
  if (scalar) text = "Scalar::" + kind + "(" + text + ")";
  return p.info.base == AJ_PARAM_OPERAND ? "Operand::Number(" + text + ")" : text;
}

std::string literal(const OpParam& p) {
  const aj_value& v = p.info.value;
  std::string out;
  if (v.tag == AJ_NONE || !p.known()) return "None";
  if (v.tag == AJ_STRING)
    out = quote({v.v.str, v.aux});
  else if (v.tag == AJ_INTS || v.tag == AJ_FLOATS || v.tag == AJ_BOOLS)
    out = items(v);
  else if (v.tag == AJ_LAYOUT)
    out = "Layout(" + std::to_string(v.v.i) + ")";
  else if (v.tag == AJ_MEMORY_FORMAT)
    out = "MemoryFormat(" + std::to_string(v.v.i) + ")";
  else if (v.tag == AJ_DTYPE)
    out = "DType { code: " + std::to_string(v.v.dtype.code) +
          ", bits: " + std::to_string(v.v.dtype.bits) +
          ", lanes: " + std::to_string(v.v.dtype.lanes) + " }";
  else
    out = p.info.list ? "&[" + plain_literal(p, v) + "]" : plain_literal(p, v);
  return may_be_none(p) ? "Some(" + out + ")" : out;
}

std::string result_type(const OpParam& r) {
  std::string t = "Object";
  if (r.info.base == AJ_PARAM_TENSOR || r.info.base == AJ_PARAM_OPERAND)
    t = "Tensor";
  else if (r.info.base == AJ_PARAM_STR)
    t = "String";
  else if (r.info.base > AJ_PARAM_OPERAND && r.info.base < AJ_PARAM_GENERATOR)
    t = element(r);
  if (r.has(AJ_PARAM_OPTIONAL_ITEMS)) t = "Option<" + t + ">";
  if (r.info.list) t = "Vec<" + t + ">";
  return r.has(AJ_PARAM_OPTIONAL) ? "Option<" + t + ">" : t;
}

std::string camel(const std::string& name) {
  std::string out;
  bool up = true;
  for (char c : name) {
    if (c == '_') {
      up = true;
      continue;
    }
    out += up && c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    up = false;
  }
  return out;
}

// One function being written.
struct Writer {
  const OpModel& op;
  bool in_place;
  std::string name;
  size_t required = 0;
  std::vector<std::string> names;

  Writer(const OpModel& o, std::string as, bool place)
      : op(o), in_place(place), name(std::move(as)) {
    Names all(kReserved);
    for (const OpParam& p : op.params) names.push_back(all.take(p.name));
    required = op.params.size();  // up to the last one without a default
    while (required > 0 && op.params[required - 1].given()) --required;
  }

  bool has_options() const { return required < op.params.size(); }
  bool borrows() const {
    for (size_t i = required; i < op.params.size(); ++i)
      if (type_of(op.params[i]).find("'a") != std::string::npos) return true;
    return false;
  }
  std::string structure(const std::string& type) const {
    std::string fields, values, life = borrows() ? "<'a>" : "";
    for (size_t i = required; i < op.params.size(); ++i) {
      fields += "    pub " + names[i] + ": " + type_of(op.params[i]) + ",\n";
      values += (values.empty() ? "" : ", ") + names[i] + ": " + literal(op.params[i]);
    }
    return "#[derive(Clone)]\npub struct " + type + life + " {\n" + fields + "}\nimpl" + life +
           " Default for " + type + life + " {\n    fn default() -> Self { " + type + " { " +
           values + " } }\n}\n";
  }

  std::string results() const {
    std::vector<std::string> shown;
    for (const OpParam& r : op.results)
      if (!r.has(AJ_PARAM_AUX)) shown.push_back(result_type(r));
    if (shown.size() == 1) return shown[0];
    std::string out;
    for (const std::string& s : shown) out += (out.empty() ? "" : ", ") + s;
    return "(" + out + ")";
  }

  std::string signature() const {
    std::string out;
    for (size_t i = 0; i < required; ++i) {
      out += (i ? ", " : "") + names[i] + ": " +
             (is_operand(op.params[i]) ? "impl Into<Operand<'a>>" : type_of(op.params[i]));
    }
    return out;
  }

  std::string body() const {
    std::string before, values;
    for (size_t i = 0; i < op.params.size(); ++i) {
      const OpParam& p = op.params[i];
      std::string from = i < required ? names[i] : "o." + names[i];
      if (i < required && is_operand(p))
        before += "    let " + names[i] + ": Operand = " + names[i] + ".into();\n";
      if (std::string made = prepared(p, from, names[i]); !made.empty())
        before += made, from = names[i];
      values += (i ? ", " : "") + from + ".value()";
    }
    std::string count = std::to_string(op.results.size()),
                into = in_place ? names[0] + ".value()" : "NONE";
    std::string out = "    static OP: Op = Op::new(" + quote(op.op) + ");\n" + before;
    out += "    let " + std::string(op.results.empty() ? "_" : "r") + " = run::<" + count +
           ">(&OP, &[" + values + "], " + into + ")?;\n";
    std::string shown;
    size_t n = 0;
    for (size_t i = 0; i < op.results.size(); ++i) {
      std::string one = "Outcome::own(r[" + std::to_string(i) + "])?";
      if (op.results[i].has(AJ_PARAM_AUX)) {
        out += "    unsafe { drop_value(r[" + std::to_string(i) + "]) };\n";
        continue;
      }
      shown += (n++ ? ", " : "") + one;
    }
    if (n == 1) return out + "    unsafe { Ok(" + shown + ") }\n}\n";
    return out + (n ? "    unsafe { Ok((" + shown + ")) }\n}\n" : "    Ok(())\n}\n");
  }

  // type: of the options, empty where it has to be written first.
  std::string all(Names& functions, Names& types, std::string& type) {
    std::string doc =
        "/// " + op.doc + "\n///\n/// `" + op.schema + "`" + (in_place ? " in place" : "") + "\n";
    std::string list = signature(), head = "(" + list, tail = ") -> Result<" + results() + "> {\n";
    bool life = list.find("'a") != std::string::npos;
    std::string lives = life ? "<'a>" : "";
    if (!has_options()) return doc + "pub fn " + name + lives + head + tail + body();
    bool place = name.back() == '_';
    std::string with = functions.take(place ? name + "with_" : name + "_with"), args, out;
    if (type.empty()) {
      type = types.take(camel(name) + "Options");
      out = structure(type);
    }
    for (size_t i = 0; i < required; ++i) args += names[i] + ", ";
    out += doc + "pub fn " + name + lives + head + tail + "    " + with + "(" + args + type +
           "::default())\n}\n";
    lives = life || borrows() ? "<'a>" : "";
    return out + doc + "pub fn " + with + lives + head + (list.empty() ? "" : ", ") + "o: " + type +
           (borrows() ? "<'a>" : "") + tail + body();
  }
};

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) out += "    " + line + '\n';
  return out;
}

}  // namespace

std::string rust_functions(const std::vector<OpModel>& ops) {
  std::map<std::string, std::string> modules;  // "" is the file itself
  std::map<std::string, std::pair<Names, Names>> names;
  std::map<std::string, std::string> options;  // types, by op: the form in place has the same
  auto add = [&](const OpModel& op, const std::string& name, bool in_place) {
    auto [it, fresh] = names.try_emplace(op.space, Names(kOwn), Names(kOwn));
    Writer writer(op, it->second.first.take(name), in_place);
    modules[op.space] += writer.all(it->second.first, it->second.second, options[op.op]);
  };
  for (const OpModel& op : ops) add(op, op.name, false);
  for (const OpModel& op : ops)
    if (op.in_place) add(op, op.name + "_", true);
  std::string out = modules[""];
  for (const auto& [space, text] : modules) {
    if (space.empty()) continue;
    std::string module = space == "_" ? "internal" : space;
    out += "pub mod " + module + " {\n    use super::*;\n" + indented(text) + "}\n";
  }
  return out;
}

}  // namespace adjoin::cli::bindgen

// extensions/graph/text/archive.cpp: a program as a file: a zip archive of stored records. The text
// says what is computed, safetensors hold parameters and constants, a table says what @line stands
// for. Reading executes nothing: ops are looked up by name when the text is parsed.
#include "../../../frontends/cpp/files/archive.hpp"

#include "../../../frontends/cpp/files/atomic.hpp"
#include "../../../frontends/cpp/files/safetensors.hpp"
#include "../ir.hpp"
#include "../script/door.hpp"

namespace adjoin::graph {
namespace {

constexpr const char kText[] = "program.ajir", kWeights[] = "weights.safetensors",
                     kSource[] = "source.map", kMeta[] = "meta.json";

struct StringSink {
  std::string bytes;
  void reserve(uint64_t n) { bytes.reserve(n); }
  void write(const void* data, size_t n) { bytes.append(static_cast<const char*>(data), n); }
};

void schemas_of(const Block& b, std::map<std::string, std::string>& into) {
  for (const Node& n : b.nodes) {
    for (const Block& inner : n.blocks) schemas_of(inner, into);
    if (n.what != Node::What::call) continue;
    aj_op_info info{};
    info.struct_size = sizeof info;
    check(dispatch().op_info(n.op, &info));
    into[std::string(view_of(info.name))] = view_of(info.schema);
  }
}

// What the program was made against: each op's signature of then, which parameters want gradients.
std::string meta_of(const Program& p) {
  std::map<std::string, std::string> schemas;
  schemas_of(p.body, schemas);
  std::string ops, trained;
  for (auto& [name, schema] : schemas)
    ops += (ops.empty() ? "\n  " : ",\n  ") + files::quoted(name) + ": " + files::quoted(schema);
  for (const Weight& w : p.weights)
    if (w.tensor.defined() && w.tensor.requires_grad())
      trained += (trained.empty() ? "" : ", ") + files::quoted(w.name);
  return "{\"format\": 1,\n \"trained\": [" + trained + "],\n \"ops\": {" + ops + "}}\n";
}

std::vector<std::string> trained_in(std::string_view meta, const std::string& path) {
  std::vector<std::string> names;
  const std::string_view key = "\"trained\": [";
  size_t at = meta.find(key);
  if (at == meta.npos) return names;
  files::Header h(meta.substr(at + key.size()), path);
  if (h.eat(']')) return names;
  do names.push_back(h.string());
  while (h.eat(','));
  return names;
}

std::string_view record(const files::ZipDirectory& zip, const char* name, const std::string& path) {
  const files::Record* r = zip.find(std::string("program/") + name);
  if (!r)
    raise(AJ_DATA_LOSS, "load: '", path, "' has no record '", name,
          "': it is no program of Adjoin's (.aj). A TorchScript archive cannot be run: save "
          "state_dict() in PyTorch and load that");
  return zip.bytes(*r, true);
}

}  // namespace

void save(const Program& p, const std::string& path) {
  std::map<std::string, Tensor> weights;
  for (const Weight& w : p.weights) {
    if (!w.tensor.defined())
      raise(AJ_PRECONDITION, "save: '", w.name, "' has no values; give them by set_weight first");
    weights[w.name] = w.tensor;
  }
  StringSink tensors;
  files::write_safetensors(weights, tensors);
  const std::string program = print(p), meta = meta_of(p);
  std::string lines;
  for (size_t i = 1; i < p.lines.size(); i++) lines += p.lines[i] + "\n";
  files::AtomicFile file(path);
  file.reserve(program.size() + tensors.bytes.size() + lines.size() + meta.size() + 4096);
  files::Archive<files::AtomicFile> archive(file, "program", true);
  archive.add(kText, program.data(), program.size());
  archive.add(kSource, lines.data(), lines.size());
  archive.add(kMeta, meta.data(), meta.size());
  archive.add(kWeights, tensors.bytes.data(), tensors.bytes.size());
  archive.end();
  file.commit();
}

void load(const std::string& path, Program& into) {
  auto map = std::make_shared<files::Mapping>(path);
  if (!files::ZipDirectory::looks_so(map->text()))
    raise(AJ_DATA_LOSS, "load: '", path, "' is no archive; jit.save writes one");
  files::ZipDirectory zip(map->text());
  parse(record(zip, kText, path), into);
  std::string_view lines = record(zip, kSource, path);
  while (!lines.empty()) {
    size_t end = std::min(lines.find('\n'), lines.size());
    into.lines.emplace_back(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  auto tensors = files::read_safetensors(map, record(zip, kWeights, path), path);
  for (Weight& w : into.weights) {
    auto found = tensors.find(w.name);
    const Type& t = into.values[w.value].type;
    if (found == tensors.end())
      raise(AJ_DATA_LOSS, "load: '", path, "' has no tensor '", w.name, "'");
    const Tensor& x = found->second;
    if (!(x.dtype() == t.dtype) ||
        !std::equal(x.shape().begin(), x.shape().end(), t.shape.begin(), t.shape.end()))
      raise(AJ_DATA_LOSS, "load: '", path, "': the tensor '", w.name, "' is ", x.dtype(),
            Shape{x.dl().shape, x.ndim()}, ", the program wants ", print_type(into, t));
    w.tensor = x;
  }
  for (const std::string& name : trained_in(record(zip, kMeta, path), path))
    for (Weight& w : into.weights)
      if (w.name == name && !w.constant) w.tensor.requires_grad_(true);
  if (into.script) script::weights_to_fields(into);
}

}  // namespace adjoin::graph

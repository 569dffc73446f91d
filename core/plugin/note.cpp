// core/plugin/note.cpp: a plugin's note, read from its file and judged before any of its code runs.
#include "core/plugin/note.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace adjoin::plugin {
namespace {

constexpr uint32_t kMustUnderstand = 0xffff;
constexpr uint32_t kLeastNote =
    AJ_END_OF(aj_plugin_note, requires_);  // of the second; from then on it grows
constexpr uint32_t kFirstNote = 600;  // of the first candidate; the second made room in the texts
constexpr uint32_t kSanitizers = AJ_BUILD_ASAN | AJ_BUILD_TSAN | AJ_BUILD_MSAN;

std::string version_text(unsigned major, unsigned minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string sanitizer_names(uint32_t flags) {
  std::string text;
  if (flags & AJ_BUILD_ASAN) text += "address ";
  if (flags & AJ_BUILD_TSAN) text += "thread ";
  if (flags & AJ_BUILD_MSAN) text += "memory ";
  if (!text.empty()) text.pop_back();
  return text;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// How many bytes the UTF-8 character at `at` has; 0 if it is none, or a control character that
// could move a cursor.
size_t character(const char* at, const char* end) {
  auto c = static_cast<unsigned char>(*at);
  if (c < 0x80) return c >= 0x20 && c != 0x7f;
  size_t n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (n == 0 || static_cast<size_t>(end - at) < n || !std::all_of(at + 1, at + n, continues))
    return 0;
  auto second = static_cast<unsigned char>(at[1]);
  bool longer_than_needed = (c == 0xe0 && second < 0xa0) || (c == 0xf0 && second < 0x90);
  bool no_character = (c == 0xed && second >= 0xa0) || (c == 0xf4 && second >= 0x90) ||
                      (c == 0xc2 && second < 0xa0);
  return longer_than_needed || no_character ? 0 : n;
}

// Ends inside its field, and can be shown anywhere.
template <size_t N>
bool clean(const char (&text)[N]) {
  const char* end = static_cast<const char*>(std::memchr(text, 0, N));
  if (!end) return false;
  for (const char* at = text; at < end;) {
    size_t n = character(at, end);
    if (n == 0) return false;
    at += n;
  }
  return true;
}

}  // namespace

Host this_host() {
  Host host;
  if (const char* pretend = secure_getenv("ADJOIN_ABI_PRETEND_MINOR"))
    host.minor = static_cast<uint16_t>(std::clamp(std::atoi(pretend), 0, AJ_ABI_MINOR));
  return host;
}

std::string read_note(const ElfFile& file, aj_plugin_note* out) {
  const ElfSection* section = file.section(AJ_PLUGIN_SECTION);
  if (!section) return "not a plugin: it has no section " AJ_PLUGIN_SECTION;
  if (section->type != SHT_PROGBITS || section->size < kFirstNote)
    return "bad note: the section " AJ_PLUGIN_SECTION " has " + std::to_string(section->size) +
           " bytes, a note has " + std::to_string(sizeof *out);
  std::vector<uint8_t> bytes;
  if (auto bad = file.read_section(*section, &bytes); !bad.empty()) return bad;
  aj_plugin_note note{};
  std::memcpy(&note, bytes.data(), kFirstNote);
  if (std::memcmp(note.magic, AJ_PLUGIN_MAGIC, sizeof note.magic) != 0)
    return "bad note: it does not begin with " AJ_PLUGIN_MAGIC;
  if (note.struct_size == kFirstNote)
    return "built for the first candidate of the contract; compile it again with these headers";
  if (note.struct_size < kLeastNote || note.struct_size > section->size)
    return "bad note: its struct_size is " + std::to_string(note.struct_size) + ", wanted " +
           std::to_string(kLeastNote) + " or more, within its section";
  std::memcpy(&note, bytes.data(), std::min<size_t>(note.struct_size, sizeof note));
  if (!clean(note.name) || !clean(note.version) || !clean(note.vendor) || !clean(note.license) ||
      !clean(note.provides) || !clean(note.requires_))
    return "bad note: a text in it does not end, or is not UTF-8, or has control characters";
  if (!good_name(note.name))
    return "bad note: its name is not a word of a-z, 0-9, '_' and '-' that begins with a letter";
  *out = note;
  return {};
}

std::string read_ops(const ElfFile& file, std::string* out) {
  const ElfSection* section = file.section(AJ_OPS_SECTION);
  constexpr uint64_t kMost = 1 << 20;
  if (!section || section->type != SHT_PROGBITS) return {};
  std::vector<uint8_t> bytes;
  if (section->size > kMost) return "bad section " AJ_OPS_SECTION ": it has more than a megabyte";
  if (auto bad = file.read_section(*section, &bytes); !bad.empty()) return bad;
  std::string text(bytes.begin(), std::find(bytes.begin(), bytes.end(), uint8_t(0)));
  auto shown = [](char c) {
    return c == '\n' || c == '\t' || (c >= ' ' && c != 0x7f && uint8_t(c) < 0x80);
  };
  if (!std::all_of(text.begin(), text.end(), shown))
    return "bad section " AJ_OPS_SECTION ": it is not lines of plain text";
  *out = std::move(text);
  return {};
}

bool names_op(std::string_view ops, std::string_view name) {
  for (std::string_view line : split(ops, '\n'))
    if (line.starts_with(name) && line.substr(name.size()).starts_with('(')) return true;
  return false;
}

std::string judge_note(const aj_plugin_note& note, const Host& host) {
  std::string serves = ", this libadjoin serves " + version_text(host.major, host.minor);
  if (note.abi_major != host.major)
    return "built for ABI " + version_text(note.abi_major, note.minor_built) + serves +
           "; install a build for ABI " + std::to_string(host.major);
  if (note.minor_min > host.minor)
    return "needs ABI " + version_text(note.abi_major, note.minor_min) + serves;
  if (note.machine != 0 && note.machine != host_machine())
    return "its note says ELF machine " + std::to_string(note.machine) + ", this one is " +
           std::to_string(host_machine());
  constexpr uint32_t kKnown = kSanitizers | AJ_BUILD_DEBUG;
  if (uint32_t unknown = note.build_flags & kMustUnderstand & ~kKnown)
    return "has build flags that this libadjoin does not know: " + std::to_string(unknown);
  if (uint32_t more = note.build_flags & kSanitizers & ~host.build_flags)
    return "built with the " + sanitizer_names(more) +
           " sanitizer, this libadjoin is not; rebuild one of them";
  for (std::string_view what : split(note.provides, ';'))
    if (what.find(':') == std::string_view::npos || what.front() == ':' || what.back() == ':')
      return "bad note: provides '" + std::string(what) + "', wanted KIND:NAME";
  return {};
}

SymbolReport check_symbols(const ElfFile& file) {
  SymbolReport report;
  std::vector<ElfSymbol> symbols;
  report.fatal = file.dynamic_symbols(&symbols);
  if (!report.fatal.empty()) return report;
  bool note = false, init = false;
  for (ElfSymbol& s : symbols) {
    if (s.unique) report.unique.push_back(s.name);
    if (!s.defined) {
      if (s.name.starts_with("aj_")) report.imports.push_back(s.name);
    } else if (s.name == "aj_plugin_note_v1") {
      note = true;
    } else if (s.name == "aj_plugin_init_v1") {
      init = true;
    } else if (s.name != "aj_plugin_drain_v1" && s.name != "_init" && s.name != "_fini") {
      report.exports.push_back(s.name);
    }
  }
  if (!note) report.fatal = "does not export its note aj_plugin_note_v1";
  if (!init) report.fatal = "does not export aj_plugin_init_v1";
  return report;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool provides(const aj_plugin_note& note, std::string_view what) {
  for (std::string_view one : split(note.provides, ';'))
    if (one == what) return true;
  return false;
}

bool good_name(std::string_view name) {
  auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  if (name.empty() || !lower(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace adjoin::plugin

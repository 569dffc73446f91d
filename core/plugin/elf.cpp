// core/plugin/elf.cpp: reads what a shared library says about itself from the file, so that nothing
// of it has to run.
#include "core/plugin/elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace adjoin::plugin {
namespace {

constexpr uint64_t kMaxTable =
    64u << 20;  // no sane table of sections, names or dynamic symbols is larger

std::string number(uint64_t n) { return std::to_string(n); }

// A NUL-terminated string inside a table of them; false if it runs out of the table.
bool string_at(const std::vector<uint8_t>& table, uint64_t at, std::string* out) {
  if (at >= table.size()) return false;
  const void* end = std::memchr(table.data() + at, 0, table.size() - at);
  if (!end) return false;
  *out = reinterpret_cast<const char*>(table.data() + at);
  return true;
}

}  // namespace

uint16_t host_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__powerpc64__)
  return EM_PPC64;
#else
#error "core/plugin/elf.cpp: add this machine's ELF code"
#endif
}

ElfFile::~ElfFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string ElfFile::open(const std::string& path) {
  // O_NONBLOCK: a FIFO that calls itself a library must not hold us up.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::string("cannot be opened: ") + std::strerror(errno);
  return adopt(fd);
}

std::string ElfFile::adopt(int fd) {
  fd_ = fd;
  struct stat st;
  if (fstat(fd_, &st) != 0) return std::string("cannot be examined: ") + std::strerror(errno);
  if (!S_ISREG(st.st_mode)) return "is not a regular file";
  size_ = static_cast<uint64_t>(st.st_size);
  device_ = st.st_dev;
  inode_ = st.st_ino;
  Elf64_Ehdr header;
  if (size_ < sizeof header)
    return "not a shared library: " + number(size_) + " bytes are too few for an ELF header";
  if (auto bad = load_bytes(0, sizeof header, &header); !bad.empty()) return bad;
  if (auto bad = check_header(reinterpret_cast<uint8_t*>(&header)); !bad.empty()) return bad;
  machine_ = header.e_machine;
  if (auto bad = check_segments(header.e_phoff, header.e_phnum); !bad.empty()) return bad;
  return read_section_table(header.e_shoff, header.e_shnum, header.e_shstrndx);
}

std::string ElfFile::check_header(uint8_t* bytes) {
  Elf64_Ehdr h;
  std::memcpy(&h, bytes, sizeof h);
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
    return "not a shared library: it does not begin with an ELF header";
  if (h.e_ident[EI_CLASS] != ELFCLASS64) return "not a 64-bit library";
  constexpr int kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (h.e_ident[EI_DATA] != kOrder) return "built for the other byte order";
  if (h.e_ident[EI_VERSION] != EV_CURRENT || h.e_version != EV_CURRENT)
    return "of an unknown ELF version";
  if (h.e_type != ET_DYN)
    return "not a shared library: ELF type " + number(h.e_type) + ", wanted " + number(ET_DYN);
  if (h.e_machine != host_machine())
    return "built for another machine: ELF code " + number(h.e_machine) + ", this one is " +
           number(host_machine());
  if (h.e_ehsize != sizeof(Elf64_Ehdr) || h.e_phentsize != sizeof(Elf64_Phdr) ||
      h.e_shentsize != sizeof(Elf64_Shdr))
    return "corrupt: sizes in the ELF header are wrong";
  if (h.e_phnum == 0 || h.e_phnum == PN_XNUM) return "corrupt: it has no program headers";
  if (h.e_shnum == 0 || h.e_shnum >= SHN_LORESERVE)
    return "it has no section table, so no note can be found";
  if (h.e_shstrndx >= h.e_shnum) return "corrupt: its section names are missing";
  return {};
}

std::string ElfFile::check_segments(uint64_t offset, uint32_t count) {
  if (!inside(offset, uint64_t{count} * sizeof(Elf64_Phdr)))
    return "truncated: program headers end past the file's " + number(size_) + " bytes";
  std::vector<Elf64_Phdr> headers(count);
  if (auto bad = load_bytes(offset, count * sizeof(Elf64_Phdr), headers.data()); !bad.empty())
    return bad;
  bool loads = false, dynamic = false;
  for (const Elf64_Phdr& p : headers) {
    loads |= p.p_type == PT_LOAD;
    dynamic |= p.p_type == PT_DYNAMIC;
    if (!inside(p.p_offset, p.p_filesz))
      return "truncated: segment at " + number(p.p_offset) + " of " + number(p.p_filesz) +
             " bytes ends past the file's " + number(size_);
    if (p.p_type != PT_LOAD) continue;
    if (p.p_filesz > p.p_memsz) return "corrupt: a segment is larger in the file than in memory";
    bool power = p.p_align == 0 || std::has_single_bit(p.p_align);
    if (!power || (p.p_align > 1 && (p.p_vaddr - p.p_offset) % p.p_align != 0))
      return "corrupt: a segment is not aligned";
  }
  if (!loads || !dynamic) return "not a shared library: it has no segments to load";
  return {};
}

std::string ElfFile::read_section_table(uint64_t offset, uint32_t count, uint32_t names) {
  if (!inside(offset, uint64_t{count} * sizeof(Elf64_Shdr)))
    return "truncated: the section table ends past the file's " + number(size_) + " bytes";
  std::vector<Elf64_Shdr> headers(count);
  if (auto bad = load_bytes(offset, count * sizeof(Elf64_Shdr), headers.data()); !bad.empty())
    return bad;
  for (const Elf64_Shdr& s : headers) {
    if (s.sh_type == SHT_NULL || s.sh_type == SHT_NOBITS) continue;
    if (!inside(s.sh_offset, s.sh_size))
      return "truncated: a section at " + number(s.sh_offset) + " of " + number(s.sh_size) +
             " bytes ends past the file's " + number(size_);
  }
  ElfSection text{"", headers[names].sh_type, 0, headers[names].sh_offset, headers[names].sh_size};
  if (text.type != SHT_STRTAB) return "corrupt: its section names are missing";
  std::vector<uint8_t> strings;
  if (auto bad = read_section(text, &strings); !bad.empty()) return bad;
  sections_.reserve(count);
  for (const Elf64_Shdr& s : headers) {
    ElfSection section{"", s.sh_type, s.sh_link, s.sh_offset, s.sh_size};
    if (!string_at(strings, s.sh_name, &section.name))
      return "corrupt: a section's name is outside the name table";
    sections_.push_back(std::move(section));
  }
  return {};
}

std::string ElfFile::load_bytes(uint64_t offset, uint64_t size, void* out) const {
  auto* bytes = static_cast<char*>(out);
  while (size > 0) {
    ssize_t n = pread(fd_, bytes, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::string("cannot be read: ") + std::strerror(errno);
    if (n == 0) return "truncated while it was read";
    bytes += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return {};
}

std::string ElfFile::read_section(const ElfSection& section, std::vector<uint8_t>* out) const {
  if (section.type == SHT_NULL || section.type == SHT_NOBITS)
    return "section '" + section.name + "' has no contents";
  if (!inside(section.offset, section.size))
    return "truncated: section '" + section.name + "' is outside the file";
  if (section.size > kMaxTable)
    return "section '" + section.name + "' is too large: " + number(section.size) + " bytes";
  out->resize(section.size);
  return load_bytes(section.offset, section.size, out->data());
}

const ElfSection* ElfFile::section(std::string_view name) const {
  const ElfSection* found = nullptr;
  for (const ElfSection& s : sections_) {
    if (s.name != name) continue;
    if (found) return nullptr;
    found = &s;
  }
  return found;
}

std::string ElfFile::dynamic_symbols(std::vector<ElfSymbol>* out) const {
  const ElfSection* table = section(".dynsym");
  if (!table || table->type != SHT_DYNSYM || table->link >= sections_.size())
    return "corrupt: it has no dynamic symbols";
  std::vector<uint8_t> symbols, strings;
  if (auto bad = read_section(*table, &symbols); !bad.empty()) return bad;
  if (auto bad = read_section(sections_[table->link], &strings); !bad.empty()) return bad;
  for (size_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= symbols.size();
       at += sizeof(Elf64_Sym)) {
    Elf64_Sym raw;  // symbol 0 is always empty, so the walk begins at 1
    std::memcpy(&raw, symbols.data() + at, sizeof raw);
    int bind = ELF64_ST_BIND(raw.st_info);
    if (bind == STB_LOCAL) continue;
    ElfSymbol symbol{"", raw.st_shndx != SHN_UNDEF, bind == STB_GNU_UNIQUE};
    if (!string_at(strings, raw.st_name, &symbol.name))
      return "corrupt: a symbol's name is outside the name table";
    if (!symbol.name.empty()) out->push_back(std::move(symbol));
  }
  return {};
}

}  // namespace adjoin::plugin

// core/plugin/elf.hpp: reads what a shared library says about itself from the file, so that nothing
// of it has to run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace adjoin::plugin {

struct ElfSection {
  std::string name;
  uint32_t type = 0, link = 0;
  uint64_t offset = 0, size = 0;
};

struct ElfSymbol {
  std::string name;
  bool defined = false;
  bool unique = false;  // STB_GNU_UNIQUE: such a library can never be unmapped
};

// One shared library, open. Every offset that it names has been checked against the size of the
// file, so a truncated or corrupt file is refused here: dlopen of such a file kills the process.
class ElfFile {
 public:
  ElfFile() = default;
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // Each returns what is wrong, or an empty string.
  std::string open(const std::string& path);
  std::string adopt(int fd);  // closes fd in the end
  std::string read_section(const ElfSection& section, std::vector<uint8_t>* out) const;
  std::string dynamic_symbols(std::vector<ElfSymbol>* out) const;

  const ElfSection* section(std::string_view name) const;  // null if there is none, or several
  uint16_t machine() const { return machine_; }
  int fd() const { return fd_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

 private:
  std::string check_header(uint8_t* header);
  std::string check_segments(uint64_t offset, uint32_t count);
  std::string read_section_table(uint64_t offset, uint32_t count, uint32_t names);
  std::string load_bytes(uint64_t offset, uint64_t size, void* out) const;
  bool inside(uint64_t offset, uint64_t size) const {
    return size <= size_ && offset <= size_ - size;
  }

  int fd_ = -1;
  uint64_t size_ = 0, device_ = 0, inode_ = 0;
  uint16_t machine_ = 0;
  std::vector<ElfSection> sections_;
};

// Which machine this libadjoin was built for, as an ELF code.
uint16_t host_machine();

}  // namespace adjoin::plugin

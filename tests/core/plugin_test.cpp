// tests/core/plugin_test.cpp: the loader's eyes: ELF, notes, trust and policy, on files made here
// byte by byte.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/plugin/elf.hpp"
#include "core/plugin/note.hpp"
#include "core/plugin/policy.hpp"
#include "core/plugin/sha256.hpp"
#include "core/plugin/trust.hpp"

namespace adjoin::plugin {
namespace {

using Bytes = std::vector<uint8_t>;

aj_plugin_note good_note() {
  aj_plugin_note note = {};
  std::memcpy(note.magic, AJ_PLUGIN_MAGIC, sizeof note.magic);
  note.struct_size = sizeof note;
  note.abi_major = AJ_ABI_MAJOR;
  std::strcpy(note.name, "acme");
  std::strcpy(note.version, "0.1");
  std::strcpy(note.provides, "device:acme;ops:acme");
  return note;
}

template <class T>
void put(Bytes* file, uint64_t at, const T& value) {
  if (file->size() < at + sizeof value) file->resize(at + sizeof value);
  std::memcpy(file->data() + at, &value, sizeof value);
}

Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t offset, uint64_t size,
                   uint32_t link = 0) {
  Elf64_Shdr s = {};
  s.sh_name = name, s.sh_type = type, s.sh_offset = offset, s.sh_size = size, s.sh_link = link;
  return s;
}

// The smallest file that passes for a plugin: two segments, five sections.
Bytes make_plugin(const aj_plugin_note& note = good_note()) {
  const std::string names("\0.shstrtab\0.adjoin.plugin\0.dynsym\0.dynstr\0", 43);
  const std::string symbols("\0aj_plugin_note_v1\0aj_plugin_init_v1\0", 37);
  constexpr uint64_t kNote = 512, kNames = 1280, kSymbols = 1536, kStrings = 1792, kTable = 2048;
  Bytes file;
  Elf64_Ehdr h = {};
  std::memcpy(h.e_ident, ELFMAG, SELFMAG);
  h.e_ident[EI_CLASS] = ELFCLASS64, h.e_ident[EI_DATA] = ELFDATA2LSB,
  h.e_ident[EI_VERSION] = EV_CURRENT;
  h.e_type = ET_DYN, h.e_machine = host_machine(), h.e_version = EV_CURRENT;
  h.e_phoff = sizeof h, h.e_shoff = kTable, h.e_ehsize = sizeof h;
  h.e_phentsize = sizeof(Elf64_Phdr), h.e_phnum = 2, h.e_shentsize = sizeof(Elf64_Shdr),
  h.e_shnum = 5, h.e_shstrndx = 1;
  put(&file, 0, h);
  Elf64_Phdr load = {}, dynamic = {};
  load.p_type = PT_LOAD, load.p_filesz = load.p_memsz = 1024, load.p_align = 4096;
  dynamic.p_type = PT_DYNAMIC, dynamic.p_offset = 256, dynamic.p_filesz = 16;
  put(&file, sizeof h, load);
  put(&file, sizeof h + sizeof load, dynamic);
  put(&file, kNote, note);
  file.resize(kTable);
  std::memcpy(&file[kNames], names.data(), names.size());
  std::memcpy(&file[kStrings], symbols.data(), symbols.size());
  Elf64_Sym symbol = {};
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), symbol.st_shndx = 2;
  symbol.st_name = 1;
  put(&file, kSymbols + sizeof symbol, symbol);
  symbol.st_name = 19;
  put(&file, kSymbols + 2 * sizeof symbol, symbol);
  const Elf64_Shdr table[] = {{},
                              section(1, SHT_STRTAB, kNames, names.size()),
                              section(11, SHT_PROGBITS, kNote, sizeof note),
                              section(26, SHT_DYNSYM, kSymbols, 3 * sizeof symbol, 4),
                              section(34, SHT_STRTAB, kStrings, symbols.size())};
  put(&file, kTable, table);
  return file;
}

int memory_file(const Bytes& bytes) {
  int fd = memfd_create("plugin", MFD_CLOEXEC);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

// What the loader would say about these bytes; empty if it would go on and load them.
std::string judge(const Bytes& bytes, const Host& host = {}) {
  ElfFile file;
  aj_plugin_note note;
  std::string bad = file.adopt(memory_file(bytes));
  if (bad.empty()) bad = read_note(file, &note);
  if (bad.empty()) bad = judge_note(note, host);
  if (bad.empty()) bad = check_symbols(file).fatal;
  return bad;
}

template <class F>
std::string judge_changed(F change, const Host& host = {}) {
  aj_plugin_note note = good_note();
  change(note);
  return judge(make_plugin(note), host);
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST(PluginElf, AcceptsAPlugin) { EXPECT_EQ(judge(make_plugin()), ""); }

TEST(PluginElf, RefusesEveryTruncation) {
  const Bytes whole = make_plugin();
  for (size_t size = 0; size < whole.size(); ++size)
    ASSERT_NE(judge(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))), "") << size;
}

TEST(PluginElf, SurvivesRandomDamage) {
  const Bytes whole = make_plugin();
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes = whole;
    for (int n = 1 + static_cast<int>(random() % 8); n > 0; --n) {
      size_t at = random() % (random() % 2 ? 128 : bytes.size());
      if (random() % 4 == 0 && at + 8 <= bytes.size()) {
        uint64_t wild[] = {~0ull, 1ull << 63, bytes.size(), bytes.size() - 1, random(), 0};
        put(&bytes, at, wild[random() % 6]);
      } else {
        bytes[at] = static_cast<uint8_t>(random());
      }
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    accepted += judge(bytes).empty();  // damage outside headers and note goes unseen
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20000);
}

TEST(PluginElf, NamesWhatIsWrong) {
  expect_has(judge({'h', 'i'}), "too few for an ELF header");
  expect_has(judge(Bytes(4096, 'x')), "does not begin with an ELF header");
  Bytes other = make_plugin();
  other[EI_CLASS] = ELFCLASS32;
  expect_has(judge(other), "not a 64-bit library");
  other = make_plugin();
  put(&other, offsetof(Elf64_Ehdr, e_machine), uint16_t{EM_386});
  expect_has(judge(other), "built for another machine");
  other = make_plugin();
  put(&other, offsetof(Elf64_Ehdr, e_type), uint16_t{ET_EXEC});
  expect_has(judge(other), "not a shared library");
}

TEST(PluginNote, JudgesEachField) {
  expect_has(judge_changed([](auto& n) { n.magic[0] = 'X'; }), "does not begin with AJPLUG1");
  expect_has(judge_changed([](auto& n) { n.struct_size = 0; }), "struct_size is 0");
  expect_has(judge_changed([](auto& n) { n.struct_size = ~0u; }), "struct_size is 4294967295");
  expect_has(judge_changed([](auto& n) { n.abi_major = 2; }),
             "built for ABI 2.0, this libadjoin serves 1.0");
  expect_has(judge_changed([](auto& n) { n.minor_min = 7; }),
             "needs ABI 1.7, this libadjoin serves 1.0");
  EXPECT_EQ(judge_changed([](auto& n) { n.minor_min = 7; }, {1, 9, 0}), "");
  expect_has(judge_changed([](auto& n) { n.machine = EM_386; }), "ELF machine 3");
  expect_has(judge_changed([](auto& n) { n.build_flags = AJ_BUILD_ASAN; }, {1, 0, 0}),
             "address sanitizer");
  EXPECT_EQ(judge_changed([](auto& n) { n.build_flags = AJ_BUILD_ASAN; }, {1, 0, AJ_BUILD_ASAN}),
            "");
  EXPECT_EQ(judge_changed([](auto&) {}, {1, 0, AJ_BUILD_ASAN}), "");
  expect_has(judge_changed([](auto& n) { n.build_flags = 1u << 9; }), "does not know: 512");
  EXPECT_EQ(judge_changed([](auto& n) { n.build_flags = 1u << 20; }), "");
  expect_has(judge_changed([](auto& n) { std::memset(n.name, 'a', sizeof n.name); }),
             "does not end");
  expect_has(judge_changed([](auto& n) { std::strcpy(n.vendor, "\033[2J"); }),
             "control characters");
  expect_has(judge_changed([](auto& n) { std::strcpy(n.vendor, "\xff"); }), "not UTF-8");
  expect_has(judge_changed([](auto& n) { std::strcpy(n.vendor, "\xe2\x82"); }), "not UTF-8");
  expect_has(judge_changed([](auto& n) { std::strcpy(n.vendor, "\xed\xa0\x80"); }), "not UTF-8");
  EXPECT_EQ(judge_changed([](auto& n) {
              std::strcpy(n.vendor, "Soci\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
            }),
            "");
  expect_has(judge_changed([](auto& n) { std::strcpy(n.name, "../x"); }), "its name is not a word");
  expect_has(judge_changed([](auto& n) { n.name[0] = 0; }), "its name is not a word");
  expect_has(judge_changed([](auto& n) { std::strcpy(n.provides, "acme"); }), "wanted KIND:NAME");
}

TEST(PluginNote, FindsWhatIsProvided) {
  aj_plugin_note note = good_note();
  EXPECT_TRUE(provides(note, "device:acme"));
  EXPECT_TRUE(provides(note, "ops:acme"));
  EXPECT_FALSE(provides(note, "device:acm"));
  EXPECT_FALSE(provides(note, ""));
  EXPECT_EQ(split(";a;;b;", ';'), (std::vector<std::string_view>{"a", "b"}));
}

TEST(PluginSha256, KnowsTheStandardsExamples) {
  Sha256 empty, abc, million;
  EXPECT_EQ(empty.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  abc.update("abc", 3);
  EXPECT_EQ(abc.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (int i = 0; i < 1000; ++i) million.update(std::string(1000, 'a').data(), 1000);
  EXPECT_EQ(million.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

class PluginFiles : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/adjoin_plugin_test_XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  void TearDown() override { EXPECT_EQ(std::system(("rm -rf " + folder_).c_str()), 0); }
  std::string write_file(const std::string& name, const std::string& text, mode_t mode = 0644) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  std::string folder_;
};

TEST_F(PluginFiles, TrustsOnlyWhatNobodyElseMayWrite) {
  std::string path = write_file("a", "");
  EXPECT_EQ(who_else_may_write(path), "");  // /tmp above it is sticky
  chmod(path.c_str(), 0666);
  expect_has(who_else_may_write(path), "a' may be written by everybody");
  chmod(path.c_str(), 0644);
  chmod(folder_.c_str(), 0777);
  expect_has(who_else_may_write(path), "' may be written by everybody");
  chmod(folder_.c_str(), 0777 | S_ISVTX);
  EXPECT_EQ(who_else_may_write(path), "");
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(path.c_str(), 12345, 0), 0);
  expect_has(who_else_may_write(path), "belongs to user 12345");
  ASSERT_EQ(chown(path.c_str(), 0, 12345), 0);
  chmod(path.c_str(), 0664);
  expect_has(who_else_may_write(path), "may be written by group 12345");
}

TEST_F(PluginFiles, PolicyAllowsWhatItNames) {
  int fd = memory_file({'a', 'b', 'c'});
  EXPECT_EQ(Policy::parse("").refuses("cpu", fd, false), "");
  expect_has(Policy::parse("none").refuses("cpu", fd, true), "none");
  EXPECT_EQ(Policy::parse("only:cpu,acme").refuses("acme", fd, false), "");
  expect_has(Policy::parse("only:cpu").refuses("acme", fd, false), "only:cpu");
  EXPECT_EQ(Policy::parse("only:cpu").refuses("acme", fd, true), "");
  expect_has(Policy::parse("onyl:cpu").refuses("cpu", fd, false), "wanted all, none, only:");
  const std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  std::string lock = write_file("lock", "# pinned\n\nplugin acme " + digest +
                                            "  # abc\nplugin cpu " + std::string(64, '0') + "\n");
  EXPECT_EQ(Policy::parse("lock:" + lock).refuses("acme", fd, true), "");
  expect_has(Policy::parse("lock:" + lock).refuses("cpu", fd, true), "its sha256 is ba7816bf");
  expect_has(Policy::parse("lock:" + lock).refuses("other", fd, true), "not in the lock file");
  expect_has(Policy::parse("lock:/nowhere").refuses("cpu", fd, true), "cannot be read");
  expect_has(Policy::parse("lock:" + write_file("bad", "acme 12\n")).refuses("acme", fd, true),
             "line 1: wanted plugin NAME SHA256");
  close(fd);
}

}  // namespace
}  // namespace adjoin::plugin

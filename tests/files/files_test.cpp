// tests/files/files_test.cpp: check sums, zip archives beyond 4 GB, and `.pt` and safetensors files
// there and back from C++.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "joined.hpp"

namespace adjoin {
namespace {

using files::crc32;

std::string noise(size_t n) {
  std::string s(n, '\0');
  uint64_t x = 88172645463325252u;
  for (char& c : s) x ^= x << 13, x ^= x >> 7, x ^= x << 17, c = char(x);
  return s;
}

uint32_t by_the_book(std::string_view s) {  // bit by bit
  uint32_t c = ~0u;
  for (char byte : s) {
    c ^= uint8_t(byte);
    for (int k = 0; k < 8; ++k) c = c & 1 ? (c >> 1) ^ files::crc_polynomial : c >> 1;
  }
  return ~c;
}

TEST(Crc32, AllLengthsAndPlaces) {
  EXPECT_EQ(crc32(0, "123456789", 9), 0xcbf43926u);
  std::string s = noise(5000);
  for (size_t n : {0u, 1u, 7u, 8u, 63u, 64u, 127u, 128u, 129u, 191u, 192u, 1000u, 4096u, 4991u})
    for (size_t from : {0u, 1u, 5u, 9u})
      EXPECT_EQ(crc32(0, s.data() + from, n), by_the_book({s.data() + from, n})) << n;
}

TEST(Crc32, PartsMakeTheWhole) {
  std::string s = noise(3000);
  uint32_t whole = crc32(0, s.data(), s.size());
  for (size_t n : {0u, 1u, 130u, 2999u, 3000u}) {
    uint32_t first = crc32(0, s.data(), n);
    EXPECT_EQ(crc32(first, s.data() + n, s.size() - n), whole);
    EXPECT_EQ(files::crc32_joined(first, crc32(0, s.data() + n, s.size() - n), s.size() - n),
              whole);
  }
}

struct Text {
  std::string data;
  void reserve(uint64_t) {}
  void write(const void* p, size_t n) { data.append(static_cast<const char*>(p), n); }
};

// The numbers of an archive that nobody writes in a test: the directory is as it would be, the
// records are not there.
TEST(Zip, BeyondFourGigabytes) {
  files::ZipWriter writer;
  uint64_t at = 0, size = (uint64_t(5) << 30) + 3;
  std::vector<uint64_t> begins;
  for (int i = 0; i < 3; ++i) {
    std::string header = writer.header(kit::text("x/data/", i), size, at);
    EXPECT_EQ((at + header.size()) % 64, 0u);
    begins.push_back(at);
    at += header.size() + size;
    std::string after = writer.descriptor(7);
    EXPECT_EQ(after.size(), 24u);
    at += after.size();
  }
  // As if the first byte of the directory were that of the file, and its place were told so.
  std::string end = writer.directory(0);
  std::string_view entry = end;
  for (int i = 0; i < 3; ++i) {
    uint64_t told = 0, extra = 0;
    EXPECT_EQ(entry.substr(0, 4), "PK\1\2");
    std::memcpy(&extra, entry.data() + 30, 2);
    std::memcpy(&told, entry.data() + 46 + 8 + 4, 8);
    EXPECT_EQ(told, size);
    EXPECT_EQ(extra, i == 0 ? 20u : 28u);
    if (i) {
      std::memcpy(&told, entry.data() + 46 + 8 + 4 + 16, 8);
      EXPECT_EQ(told, begins[size_t(i)]);
    }
    entry.remove_prefix(46 + 8 + extra);
  }
  files::ZipDirectory found(end);
  ASSERT_EQ(found.records().size(), 3u);
  EXPECT_EQ(found.records()[2].size, size);
  EXPECT_EQ(found.records()[2].header, begins[2]);
  EXPECT_THROW(found.bytes(found.records()[2], false), Error);
}

TEST(Zip, SmallAndLargeRecords) {
  std::string a = noise(100), b = noise(3 << 20);
  Text sink;
  files::write_pt(sink, "r", a, {{b.data(), b.size()}, {nullptr, 0}, {a.data(), 3}});
  files::ZipDirectory zip(sink.data);
  auto bytes = [&](const char* name) { return zip.bytes(*zip.find(name), true); };
  EXPECT_EQ(bytes("r/data.pkl"), a);
  EXPECT_EQ(bytes("r/data/0"), b);
  EXPECT_EQ(bytes("r/data/1"), "");
  EXPECT_EQ(bytes("r/data/2"), a.substr(0, 3));
  EXPECT_EQ(bytes("r/.data/serialization_id").size(), 40u);
  EXPECT_EQ(zip.find("r/data/3"), nullptr);
  sink.data[size_t(bytes("r/data/0").data() - sink.data.data()) + 9] ^= 1;
  EXPECT_THROW(files::ZipDirectory(sink.data).bytes(zip.records()[4], true), Error);
}

class Folder : public testing::Test {
 protected:
  std::string path(const char* name) const { return (folder_ / name).string(); }
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / kit::text("adjoin-files-", int64_t(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(Folder, PtThereAndBack) {
  Tensor a = reshape(arange(12.0), {3, 4}), turned = t(a), bits = to(arange(5), uint16);
  a.requires_grad_();
  save_pt({{"a", a},
           {"turned", turned.detach()},
           {"bits", bits},
           {"none", empty({0, 3})},
           {"one", full(Ints{}, 2.5)}},
          path("x.pt"));
  auto found = load_pt(path("x.pt"));
  ASSERT_EQ(found.size(), 5u);
  EXPECT_TRUE(found["a"].requires_grad());
  EXPECT_EQ(found["turned"].strides()[1], 4);
  EXPECT_TRUE(found["bits"].dtype() == uint16);
  EXPECT_EQ(found["none"].shape()[1], 3);
  EXPECT_EQ(found["one"].item<double>(), 2.5);
  fill_(found["turned"], 3);
  EXPECT_EQ(sum(found["a"].detach()).item<double>(), 36);
  EXPECT_EQ(sum(load_pt(path("x.pt"))["turned"]).item<double>(), 66);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Folder, TheTreeOfAFile) {
  constexpr char text[] =
      "\x80\x02}(X\x01\x00\x00\x00"
      "aK\x05X\x01\x00\x00\x00"
      "b](G\x3f\xf8\x00\x00\x00\x00\x00\x00\x88NeX\x01\x00\x00\x00"
      "ccos\nsystem\nX\x02\x00\x00\x00ls\x85Ru.";
  std::string pickle(text, sizeof text - 1);
  Text sink;
  files::write_pt(sink, "r", pickle, {});
  files::PtTree tree{std::string_view(sink.data)};
  const PtValue& root = tree.root();
  EXPECT_EQ(root["a"].i, 5);
  EXPECT_EQ(root["b"].items.at(0)->x, 1.5);
  EXPECT_EQ(root["c"].kind, PtValue::object);
  EXPECT_EQ(root["c"].type->s, "os.system");
  EXPECT_EQ(root.find("d"), nullptr);
  EXPECT_THROW(root["d"], Error);
}

TEST_F(Folder, SafetensorsThereAndBack) {
  std::map<std::string, Tensor> tensors{
      {"a\n\"\\", arange(6.0)}, {"b", to(arange(3), int8)}, {"c", empty({0})}};
  save_safetensors(tensors, path("x.safetensors"));
  auto found = load_safetensors(path("x.safetensors"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(sum(found.at("a\n\"\\")).item<double>(), 15);
  EXPECT_TRUE(found.at("b").dtype() == int8);
}

TEST_F(Folder, AFileWithANameMeanwhile) {
  auto count = [&] { return std::distance(std::filesystem::directory_iterator(folder_), {}); };
  for (bool nameless : {true, false}) {
    { files::AtomicFile(path("a"), nameless).write("x", 1); }  // given up
    EXPECT_EQ(count(), nameless ? 0 : 1);
    files::AtomicFile file(path("a"), nameless);
    file.reserve(1000);
    file.write("hello", 5);
    EXPECT_EQ(count(), nameless ? 0 : 2);
    file.commit();
    EXPECT_EQ(std::filesystem::file_size(path("a")), 5u);
  }
}

// Beyond 32 MB a file goes past the page cache in blocks; here it ends within a block, within a
// page and at a block's end, and comes in pieces of every kind.
TEST_F(Folder, LargeFilesGoPastTheCache) {
  constexpr uint64_t kMany = 33u << 20;
  std::string data(kMany + 12345, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = char(i * 2654435761u >> 13);
  for (uint64_t size : {uint64_t(data.size()), kMany + 1, kMany}) {
    files::AtomicFile file(path("large"));
    file.reserve(size + 4000);
    for (uint64_t at = 0, n = 1, turn = 0; at < size; at += n, ++turn) {
      n = std::min(size - at, turn % 3 == 0 ? 100 : turn % 3 == 1 ? 700'001 : uint64_t(1) << 20);
      std::span<char> own = turn % 3 == 2 ? file.space() : std::span<char>();
      if (own.empty()) {
        file.write(data.data() + at, n);
      } else {
        n = std::min(n, uint64_t(own.size()));
        std::memcpy(own.data(), data.data() + at, n);
        file.advance(n);
      }
    }
    file.commit();
    files::Mapping found(path("large"));
    EXPECT_TRUE(found.text() == std::string_view(data).substr(0, size)) << size;
  }
  {
    files::AtomicFile given_up(path("large"));  // while blocks are under way
    given_up.reserve(kMany);
    given_up.write(data.data(), kMany - 1);
  }
  EXPECT_EQ(std::filesystem::file_size(path("large")), kMany);
}

TEST_F(Folder, BlocksThatTheDiskRefuses) {
  int file = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  files::DirectBlocks blocks;
  if (file < 0 || !blocks.start(file)) GTEST_SKIP() << "the file system cannot";
  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit low = {4u << 20, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &low);
  int error = 0;
  for (int i = 0; i < 40 && !error; ++i) {
    std::span<char> to = blocks.space();
    if (to.empty()) break;
    std::memset(to.data(), i, to.size());
    error = blocks.advance(to.size());
  }
  EXPECT_EQ(blocks.finish(), EFBIG);
  EXPECT_FALSE(blocks.on());
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  close(file);
}

TEST_F(Folder, FaultsAreTold) {
  auto message = [](auto&& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  std::string said = message([&] { save_pt({{"a", arange(3)}}, path("no/x.pt")); });
  EXPECT_NE(said.find("does not exist; make it first"), std::string::npos) << said;
  said = message([&] { load_pt(path("x.pt")); });
  EXPECT_NE(said.find("No such file"), std::string::npos) << said;
}

}  // namespace
}  // namespace adjoin

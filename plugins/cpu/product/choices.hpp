// plugins/cpu/product/choices.hpp: which provider was the fastest for which product: a table in
// memory, and the text of a file that remembers it.
//
//   adjoin products 1
//   processor AuthenticAMD 25 1 AMD EPYC, avx512
//   provider own 1234567 libaj_cpu.so          its name, the bytes of its file, the file
//   provider onednn 40123456 libdnnl.so.2.6
//   float32 nn 256 256 256 2 onednn 0.00012    dtype, turned operands, m n k, threads, the fastest
//   end 1                                      the number of such lines
#ifndef ADJOIN_PLUGINS_CPU_PRODUCT_CHOICES_HPP
#define ADJOIN_PLUGINS_CPU_PRODUCT_CHOICES_HPP
#include <adjoin/abi/service.h>

#include <string>
#include <string_view>
#include <vector>

namespace adjoin::cpu {

// A product as it is looked up. m, n and k count by their class: the nearest power of two (as a
// ratio).
struct Problem {
  DLDataType dtype;
  bool trans_a, trans_b;
  int64_t m, n, k;
  int threads;
};
int class_of(int64_t size);  // the exponent

class Choices {
 public:
  struct Provider {
    std::string name, file;  // the file without its folder
    uint64_t bytes = 0;
  };
  struct Row {
    Problem problem;
    int provider;
    double seconds;
  };
  static constexpr int kMostProviders = 16;

  std::string processor;
  std::vector<Provider> providers;

  void add(const Row& row);  // takes the place of its class's
  const std::vector<Row>& rows() const { return rows_; }
  // The provider's number, -1 if nobody measured. A number of threads that was not measured counts
  // as the next lower one that was.
  int find(const Problem& p) const;

  std::string text() const;
  static Choices parse(std::string_view text);  // raises: which line, and what is wrong with it

 private:
  struct Slot {
    uint64_t key = 0;
    int row = 0;
  };
  Slot& slot_of(uint64_t key);
  std::vector<Row> rows_;
  std::vector<Slot> table_;   // open addressing, at most half full
  std::vector<int> threads_;  // that were measured, rising
};

// "float32", "nn", ... and back; false where there is no such.
bool parse_dtype(std::string_view text, DLDataType* out);
std::string name_of(const Problem& p);  // "float32 nn 256 256 256 2"

}  // namespace adjoin::cpu
#endif

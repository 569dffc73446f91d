// core/plugin/sha256.hpp: the digest that a lock file pins a plugin's bytes with.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace adjoin::plugin {

class Sha256 {
 public:
  void update(const void* data, uint64_t size);
  std::string hex();  // ends the computation

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t length_ = 0;
};

// Of a whole file, from its begin; empty if it cannot be read.
std::string sha256_of_file(int fd);

}  // namespace adjoin::plugin

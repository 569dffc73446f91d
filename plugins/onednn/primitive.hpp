// plugins/onednn/primitive.hpp: a computation of one shape, made once and remembered: making one
// costs twenty times running it.
#ifndef ADJOIN_PLUGINS_ONEDNN_PRIMITIVE_HPP
#define ADJOIN_PLUGINS_ONEDNN_PRIMITIVE_HPP
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>

#include "library.hpp"

namespace adjoin::onednn {

// Attributes of a primitive: scratch memory is the caller's, as the library's own is not safe when
// several threads compute.
class Attributes {
 public:
  Attributes();
  ~Attributes();
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  void sum(float scale);  // the destination, scaled, is added
  void eltwise(dnnl_alg_kind_t kind, float alpha, float beta);
  const_dnnl_primitive_attr_t get();

 private:
  dnnl_primitive_attr_t attr_ = nullptr;
  dnnl_post_ops_t ops_ = nullptr;
};

// Belongs to the thread that made it.
class Primitive {
 public:
  // Takes the description over. `args` are the DNNL_ARG_ numbers in the order of run().
  Primitive(dnnl_primitive_desc_t desc, std::initializer_list<int> args);
  // Of an operation's descriptor.
  Primitive(const_dnnl_op_desc_t op, Attributes& attributes, std::initializer_list<int> args,
            const_dnnl_primitive_desc_t hint = nullptr);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  const dnnl_memory_desc_t& layout(int arg) const;  // what it wants of an argument
  const_dnnl_primitive_desc_t description() const { return desc_; }
  const char* implementation() const;
  void run(std::initializer_list<const void*> data);  // one address an argument

 private:
  void finish(std::initializer_list<int> args);

  static constexpr int kMost = 6;
  dnnl_primitive_desc_t desc_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  dnnl_exec_arg_t args_[kMost + 1] = {};
  int count_ = 0;
  size_t scratch_ = 0;
};

// What a primitive was made for: numbers that tell it from all others. The first says whose they
// are.
struct Key {
  static constexpr int kMost = 40;
  int64_t number[kMost];
  int count = 0;
  Key(std::initializer_list<int64_t> numbers);
  void add(int64_t value);
  bool operator==(const Key& other) const;
  std::span<const int64_t> span() const { return {number, size_t(count)}; }
};

// The calling thread's primitive of that key, made if it is not there. A thread keeps 512.
Primitive& remembered(const Key& key, const std::function<std::unique_ptr<Primitive>()>& make);

}  // namespace adjoin::onednn
#endif

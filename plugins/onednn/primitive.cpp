// plugins/onednn/primitive.cpp: primitives, their arguments and scratch memory, and the table that
// remembers them.
#include "primitive.hpp"

#include <cstdlib>
#include <unordered_map>

namespace adjoin::onednn {
namespace {

using namespace kit;

constexpr size_t kKept = 512;

struct Hash {
  size_t operator()(const Key& key) const {
    uint64_t h = 0x9e3779b97f4a7c15;
    for (int i = 0; i < key.count; ++i) {
      h ^= uint64_t(key.number[i]);
      h *= 0xff51afd7ed558ccd;
      h ^= h >> 32;
    }
    return h;
  }
};

// Grows and stays: what one primitive needed the next one will.
void* scratch(size_t bytes) {
  struct Block {
    void* data = nullptr;
    size_t size = 0;
    ~Block() { std::free(data); }
  };
  thread_local Block block;
  if (bytes > block.size) {
    std::free(block.data);
    block.size = 0;
    size_t padded = (bytes + 4095) / 4096 * 4096;
    block.data = std::aligned_alloc(4096, padded);
    if (!block.data) throw std::bad_alloc();
    block.size = padded;
  }
  return block.data;
}

}  // namespace

Attributes::Attributes() {
  must(dnnl().primitive_attr_create(&attr_), "attributes");
  must(dnnl().primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user), "attributes");
  must(dnnl().post_ops_create(&ops_), "attributes");
}
Attributes::~Attributes() {
  dnnl().post_ops_destroy(ops_);
  dnnl().primitive_attr_destroy(attr_);
}
void Attributes::sum(float scale) { must(dnnl().post_ops_append_sum(ops_, scale), "a sum"); }
void Attributes::eltwise(dnnl_alg_kind_t kind, float alpha, float beta) {
  must(dnnl().post_ops_append_eltwise(ops_, 1.0f, kind, alpha, beta), "a function of elements");
}
const_dnnl_primitive_attr_t Attributes::get() {
  must(dnnl().primitive_attr_set_post_ops(attr_, ops_), "attributes");
  return attr_;
}

Primitive::Primitive(dnnl_primitive_desc_t desc, std::initializer_list<int> args) : desc_(desc) {
  finish(args);
}

Primitive::Primitive(const_dnnl_op_desc_t op, Attributes& attributes,
                     std::initializer_list<int> args, const_dnnl_primitive_desc_t hint) {
  must(dnnl().primitive_desc_create(&desc_, op, attributes.get(), dnnl().engine, hint),
       "a primitive's description");
  finish(args);
}

void Primitive::finish(std::initializer_list<int> args) {
  try {
    must(dnnl().primitive_create(&primitive_, desc_), "a primitive");
    for (int arg : args) {
      args_[count_].arg = arg;
      must(dnnl().memory_create(&args_[count_].memory, &layout(arg), dnnl().engine,
                                DNNL_MEMORY_NONE),
           "an argument");
      ++count_;
    }
    const dnnl_memory_desc_t& room = layout(DNNL_ARG_SCRATCHPAD);
    scratch_ = dnnl().memory_desc_get_size(&room);
    if (scratch_ == 0) return;
    args_[count_].arg = DNNL_ARG_SCRATCHPAD;
    must(dnnl().memory_create(&args_[count_].memory, &room, dnnl().engine, DNNL_MEMORY_NONE),
         "scratch memory");
  } catch (...) {
    this->~Primitive();
    throw;
  }
}

Primitive::~Primitive() {
  for (dnnl_exec_arg_t& arg : args_)
    if (arg.memory) dnnl().memory_destroy(arg.memory);
  if (primitive_) dnnl().primitive_destroy(primitive_);
  if (desc_) dnnl().primitive_desc_destroy(desc_);
}

const dnnl_memory_desc_t& Primitive::layout(int arg) const {
  return *dnnl().primitive_desc_query_md(desc_, dnnl_query_exec_arg_md, arg);
}

const char* Primitive::implementation() const {
  const char* name = "";
  dnnl().primitive_desc_query(desc_, dnnl_query_impl_info_str, 0, &name);
  return name;
}

void Primitive::run(std::initializer_list<const void*> data) {
  int i = 0;
  for (const void* address : data)
    must(dnnl().memory_set_data_handle(args_[i++].memory, const_cast<void*>(address)),
         "an argument");
  if (scratch_)
    must(dnnl().memory_set_data_handle(args_[i++].memory, scratch(scratch_)), "scratch memory");
  must(dnnl().primitive_execute(primitive_, stream(), i, args_), "a run");
}

Key::Key(std::initializer_list<int64_t> numbers) {
  for (int64_t n : numbers) add(n);
}
void Key::add(int64_t value) {
  if (count == kMost) raise(AJ_INTERNAL, "onednn: a key has more than ", kMost, " numbers");
  number[count++] = value;
}
bool Key::operator==(const Key& other) const {
  return count == other.count && std::equal(number, number + count, other.number);
}

Primitive& remembered(const Key& key, const std::function<std::unique_ptr<Primitive>()>& make) {
  thread_local std::unordered_map<Key, std::unique_ptr<Primitive>, Hash> table;
  auto found = table.find(key);
  if (found != table.end()) return *found->second;
  std::unique_ptr<Primitive> made = make();
  // All at once: a program that makes so many shapes does not come back to the old ones.
  if (table.size() >= kKept) table.clear();
  return *(table[key] = std::move(made));
}

}  // namespace adjoin::onednn

// extensions/transform/origin.hpp: the call that a view was made by.
#pragma once
#include <deque>
#include <vector>

#include "level.hpp"

namespace adjoin::transform {

struct Origin {
  Tensor of;  // what is viewed
  const aj_op* op;
  int32_t item;  // in a list of results, or -1
  std::vector<aj_value> args;
  std::deque<std::vector<int64_t>> ints;  // behind args
};
void drop_origin(Origin* o);

// For its time calls meet the key again: a kernel at it excludes it.
class WithKey {
 public:
  WithKey() {
    dispatch().thread_keys(&include_, &exclude_);
    dispatch().set_thread_keys(include_, exclude_ & ~transform_key);
  }
  ~WithKey() { dispatch().set_thread_keys(include_, exclude_); }
  WithKey(const WithKey&) = delete;

 private:
  uint64_t include_, exclude_;
};

}  // namespace adjoin::transform

// extensions/distributed/reducer.hpp: gradients of a module, averaged by a group's processes in
// buckets, while the backward pass goes on.
#pragma once

#include <adjoin/kit/call.hpp>
#include <memory>
#include <string>
#include <vector>

#include "group.hpp"

namespace adjoin::distributed {

class Reducer {
 public:
  Reducer(std::shared_ptr<Group> group, const aj_reducer_def& def);
  ~Reducer();
  Reducer(const Reducer&) = delete;

  // Before a backward pass whose gradients shall be reduced. With roots, those that the pass from
  // there does not reach are zeros; reached[i] says of which that is not so.
  void arm(aj_tensor* const* roots, uint32_t nroots, uint8_t* reached);
  void go() { go_on(); }
  // What has not come yet of a pass that has begun.
  bool waits_for(uint8_t* missing) const;
  void wait();  // for the buckets that it has started itself
  void hook(bool on) { hooked_ = on; }
  void forget();  // nothing comes any more

 private:
  struct Bucket {
    Tensor flat;
    std::vector<uint32_t> members;
    uint32_t missing = 0;
    bool launched = false;
    std::unique_ptr<Work> work;
  };
  struct Param {
    aj_tensor* leaf;  // lent: its module holds it
    Tensor view;
    uint32_t bucket;
    uint64_t hook = 0;
    bool come = false;
    Reducer* reducer;
    uint32_t number;
    std::string name;
  };
  static aj_status* arrived(void* param, aj_tensor** leaf);
  void arrived(Param& p);
  void keep(Param& p);
  void go_on();
  void launch(Bucket& b);
  void mark_reached(aj_tensor* const* roots, uint32_t nroots, uint8_t* reached) const;

  std::shared_ptr<Group> group_;
  double factor_;
  aj_status* (*full_)(void* self, int32_t bucket);
  void* self_;
  std::vector<Param> params_;
  std::vector<Bucket> buckets_;
  size_t next_ = 0;  // bucket to be launched
  bool armed_ = false, begun_ = false, hooked_ = false, partly_ = false;
};

}  // namespace adjoin::distributed

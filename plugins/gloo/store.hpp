// plugins/gloo/store.hpp: Gloo's store over the one that the caller lends. Gloo's values are bytes.
#pragma once

#include <adjoin/abi/comm.h>
#include <gloo/rendezvous/store.h>

#include <adjoin/kit/error.hpp>
#include <string>
#include <vector>

namespace adjoin::gloo_engine {

class Store : public ::gloo::rendezvous::Store {
 public:
  Store(const aj_store* store, std::string prefix, int64_t timeout_ms)
      : store_(store), prefix_(std::move(prefix)), timeout_ms_(timeout_ms) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    const std::string name = prefix_ + key;
    kit::check(store_->set(store_->self, kit::str(name), {data.data(), data.size()}));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string name = prefix_ + key;
    aj_object* found = nullptr;
    kit::check(store_->get(store_->self, kit::str(name), timeout_ms_, &found));
    std::string_view text = kit::view_of(kit::core().string_get(found));
    std::vector<char> bytes(text.begin(), text.end());
    kit::core().release(found);
    return bytes;
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  const aj_store* store_;
  std::string prefix_;
  int64_t timeout_ms_;
};

}  // namespace adjoin::gloo_engine

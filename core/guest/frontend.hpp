// core/guest/frontend.hpp: the languages that joined: their locks, their words on tensors, their
// lines of source.
#pragma once
#include <adjoin/abi/core.h>

#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace adjoin {

aj_status* frontend_register(const aj_frontend* f, int32_t* out_id);
void frontends_end(std::string_view plugin);  // its languages are not asked any more
void frontend_drop(int32_t id, void* word);   // a tensor that owned its word has died

// Around long kernels and waits: the language lets its lock go, and takes it back. NULL: there was
// nothing to let go.
void* frontend_park();
void frontend_unpark(void* parked);

void (*frontend_dropper(int32_t id))(void*);       // what frontend_drop calls; NULL: nothing
void (*frontend_dtype_teller(int32_t id))(void*);  // of a language that has a word on some tensor

int32_t frontend_interrupted();
void frontend_collect();
std::string frontend_line(uint32_t line);  // "train.py:41 in step"; "" if nobody knows

// While the calling thread waits for another one.
class Parked {
 public:
  Parked() : state_(frontend_park()) {}
  ~Parked() { frontend_unpark(state_); }
  Parked(const Parked&) = delete;

 private:
  void* state_;
};

}  // namespace adjoin

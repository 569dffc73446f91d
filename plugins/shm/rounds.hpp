// plugins/shm/rounds.hpp: a collective as rounds. In each a process lays bytes into its half, waits
// until all have, and reads of the others' halves what it needs.
#pragma once

#include <adjoin/kit/collective.hpp>
#include <vector>

namespace adjoin::shm {

class Rounds {
 public:
  Rounds(const kit::comm::Request& request, int rank, int size);
  bool over() const { return round_ == rounds_; }
  void give(char* half);
  void take(const std::vector<const char*>& halves);

 private:
  struct Span {  // elements of the whole
    size_t first, count;
  };
  Span piece(size_t of, size_t each, size_t number) const;
  Span part(Span whole, int rank) const;  // of the processes' equal parts of it
  void give_parts(char* half);
  void take_parts(const std::vector<const char*>& halves);
  void take_counts(const std::vector<const char*>& halves);
  // The same halves, from that element on.
  std::vector<const char*> behind(std::vector<const char*> halves, size_t count) const;
  void reduce_to(char* out, const std::vector<const char*>& parts, size_t count) const;
  void give_to_reduce(char* half, Span whole) const;
  void give_scaled(char* half, const char* from, size_t count) const;

  const kit::comm::Request& request_;
  const aj_coll& c_;
  const int rank_, size_;
  const size_t item_, room_, room_of_part_;  // elements of a half, and of a process's part of it
  size_t round_ = 0, rounds_ = 1;
  bool keeps_own_ = false;      // the part that it reduces is read where it is, not in its half
  bool whole_reduced_ = false;  // each process reduces the whole: one round instead of two
  std::vector<uint64_t> in_at_, out_at_;  // all_to_all: where parts begin
};

}  // namespace adjoin::shm

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace scheduler::admission {

// A position, as an index of a vector.
inline std::size_t At(int position) { return static_cast<std::size_t>(position); }

// A set of positions 0..n-1 of fixed length n: CPUs or devices of one machine. Up to 256 positions
// it needs no heap. Both operands of an operation have the same length.
class Bits {
 public:
  Bits() = default;
  explicit Bits(int length) : words_((static_cast<std::size_t>(length) + 63) / 64, 0) {}

  // Positions are within 0..n-1.
  bool Test(int at) const { return (words_[Word(at)] & Bit(at)) != 0; }
  void Set(int at) { words_[Word(at)] |= Bit(at); }
  void Clear(int at) { words_[Word(at)] &= ~Bit(at); }

  int Count() const {
    int count = 0;
    for (const std::uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  int CountCommon(const Bits& other) const {
    int count = 0;
    for (std::size_t i = 0; i < words_.size(); ++i)
      count += std::popcount(words_[i] & other.words_[i]);
    return count;
  }
  // Of the positions in all three.
  int CountCommon(const Bits& b, const Bits& c) const {
    int count = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      count += std::popcount(words_[i] & b.words_[i] & c.words_[i]);
    }
    return count;
  }
  bool Intersects(const Bits& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  bool None() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  Bits& operator|=(const Bits& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  Bits& operator&=(const Bits& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  Bits& operator-=(const Bits& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend Bits operator|(Bits a, const Bits& b) { return a |= b; }
  friend Bits operator&(Bits a, const Bits& b) { return a &= b; }
  friend Bits operator-(Bits a, const Bits& b) { return a -= b; }
  bool operator==(const Bits& other) const { return words_ == other.words_; }

  // Calls visit(position) in ascending order.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        visit(static_cast<int>(i) * 64 + std::countr_zero(rest));
      }
    }
  }
  // The lowest position, -1 if there is none.
  int First() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] != 0) return static_cast<int>(i) * 64 + std::countr_zero(words_[i]);
    }
    return -1;
  }

 private:
  static std::size_t Word(int at) { return static_cast<std::size_t>(at) / 64; }
  static std::uint64_t Bit(int at) { return std::uint64_t{1} << (static_cast<unsigned>(at) % 64); }
  absl::InlinedVector<std::uint64_t, 4> words_;
};

}  // namespace scheduler::admission

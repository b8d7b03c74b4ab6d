#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace base {

// Largest id that a set takes. Linux knows at most 8192 CPUs and 1024 NUMA nodes; the bound keeps a
// damaged file ("0-4294967295") from asking for half a gigabyte.
inline constexpr int kMaxId = 65535;

namespace internal {
using Words = std::vector<std::uint64_t>;
absl::StatusOr<Words> ParseIdList(std::string_view list);
std::string FormatIdList(const Words& words);
int CompareIds(const Words& a, const Words& b);
}  // namespace internal

// A set of small non-negative ids, CPUs or NUMA nodes: the kernel's numbers, never positions in
// some list. The tag keeps the two kinds apart. An empty set is a value of its own; "not known" is
// std::optional<…> around it. Sets are ordered as their ascending lists of ids are.
template <class Tag>
class IdSet {
 public:
  class Iterator {
   public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    using pointer = const int*;
    using reference = int;
    Iterator() = default;
    Iterator(const internal::Words* words, int id) : words_(words), id_(id) { SkipGap(); }
    int operator*() const { return id_; }
    Iterator& operator++() {
      ++id_;
      SkipGap();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return id_ == other.id_; }

   private:
    void SkipGap() {
      const int end = static_cast<int>(words_->size()) * 64;
      while (id_ < end) {
        const std::uint64_t rest = (*words_)[static_cast<std::size_t>(id_) / 64] >> (id_ % 64);
        if (rest != 0) {
          id_ += std::countr_zero(rest);
          return;
        }
        id_ = (id_ / 64 + 1) * 64;
      }
      id_ = end;
    }
    const internal::Words* words_ = nullptr;
    int id_ = 0;
  };

  IdSet() = default;
  // For literals in code; ids outside 0..kMaxId are left out.
  IdSet(std::initializer_list<int> ids) {
    for (const int id : ids) Insert(id);
  }

  // Reads the kernel's list format, "0-3,8". Blank text is the empty set (hwloc 2.9 reads it as
  // {0}). InvalidArgument names the part that is no id or range, or the id that is above kMaxId.
  static absl::StatusOr<IdSet> Parse(std::string_view list) {
    absl::StatusOr<internal::Words> words = internal::ParseIdList(list);
    if (!words.ok()) return words.status();
    IdSet set;
    set.words_ = *std::move(words);
    return set;
  }
  // The kernel's list format; "" for the empty set.
  std::string ToString() const { return internal::FormatIdList(words_); }

  static bool Fits(std::int64_t id) { return id >= 0 && id <= kMaxId; }
  // False, and no change, if the id is outside 0..kMaxId.
  bool Insert(std::int64_t id) {
    if (!Fits(id)) return false;
    const auto word = static_cast<std::size_t>(id) / 64;
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= std::uint64_t{1} << (id % 64);
    return true;
  }
  void Erase(std::int64_t id) {
    if (!Contains(id)) return;
    words_[static_cast<std::size_t>(id) / 64] &= ~(std::uint64_t{1} << (id % 64));
    Trim();
  }
  bool Contains(std::int64_t id) const {
    if (!Fits(id)) return false;
    const auto word = static_cast<std::size_t>(id) / 64;
    return word < words_.size() && ((words_[word] >> (id % 64)) & 1) != 0;
  }
  int size() const {
    int count = 0;
    for (const std::uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  bool empty() const { return words_.empty(); }
  // Smallest id, -1 for the empty set.
  int First() const { return empty() ? -1 : *begin(); }

  bool IsSubsetOf(const IdSet& other) const { return (*this - other).empty(); }
  bool Intersects(const IdSet& other) const { return !(*this & other).empty(); }

  IdSet& operator|=(const IdSet& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  IdSet& operator&=(const IdSet& other) {
    if (words_.size() > other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    Trim();
    return *this;
  }
  IdSet& operator-=(const IdSet& other) {
    for (std::size_t i = 0; i < words_.size() && i < other.words_.size(); ++i) {
      words_[i] &= ~other.words_[i];
    }
    Trim();
    return *this;
  }
  friend IdSet operator|(IdSet a, const IdSet& b) { return a |= b; }
  friend IdSet operator&(IdSet a, const IdSet& b) { return a &= b; }
  friend IdSet operator-(IdSet a, const IdSet& b) { return a -= b; }

  Iterator begin() const { return Iterator(&words_, 0); }
  Iterator end() const { return Iterator(&words_, static_cast<int>(words_.size()) * 64); }

  bool operator==(const IdSet& other) const { return words_ == other.words_; }
  std::strong_ordering operator<=>(const IdSet& other) const {
    return internal::CompareIds(words_, other.words_) <=> 0;
  }

 private:
  void Trim() {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
  }
  internal::Words words_;  // bit i of word w is id 64 w + i; the last word is never 0
};

using CpuSet = IdSet<struct CpuTag>;     // logical CPUs, as in /sys/devices/system/cpu/cpuN
using NumaMask = IdSet<struct NumaTag>;  // NUMA nodes, as in /sys/devices/system/node/nodeN

}  // namespace base

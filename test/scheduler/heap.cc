#include "test/scheduler/heap.h"

#include <cstdlib>
#include <new>

namespace test {
namespace {
std::size_t taken = 0;
}
std::size_t TakenFromHeap() { return taken; }
}  // namespace test

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++test::taken;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  std::abort();  // a test without memory has nothing to say
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

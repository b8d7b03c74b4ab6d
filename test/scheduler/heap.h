#pragma once

#include <cstddef>

// A program with this linked in counts what it takes from the heap.
namespace test {

// How often this program has called operator new so far.
std::size_t TakenFromHeap();

}  // namespace test

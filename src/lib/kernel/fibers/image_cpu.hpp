#pragma once

/// What an image for the cpu engine, a shared object made of a program's kernels, and the engine
/// that runs it have in common. The compiler of the image sees this file too.
namespace troupe_kernel {

struct Index {
  unsigned x, y, z;
};

/// What the threads of one block see; `thread` is the one that runs.
struct Block {
  Index thread, index, extent, grid;
  void* shared;             ///< dynamic shared memory
  void (*barrier)(Block*);  ///< returns once all threads of the block have called it or ended
  void* runner;             ///< whose barrier it is
};

struct Entry {
  const char* name;
  void (*run)(void* const* arguments);  ///< one thread
  const unsigned* sizes;                ///< of the parameters
  unsigned parameters;
};

struct Table {
  unsigned version;
  unsigned entries;
  const Entry* entry;
  void (*enter)(Block* block);  ///< what the calling thread runs from now on
};
constexpr unsigned kVersion = 1;
constexpr const char* kTableSymbol = "troupe_kernel_table";

}  // namespace troupe_kernel

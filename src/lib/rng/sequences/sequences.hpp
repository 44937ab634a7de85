#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

#include <troupe/lib/rng/sequence.hpp>

#include "lib/rng/sequences/curand_library.hpp"

namespace troupe::host::rng_numbers {

/// cuRAND's generators, by its host interface: the last ones that were used, each at its place in
/// its sequence. Any thread, one after the other. May take seconds: MT19937 on the host takes 4 s
/// to begin.
class Sequences {
 public:
  enum class Where { host, device };
  explicit Sequences(Where where) : where_(where) {}
  ~Sequences();
  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  /// Memory of so many bytes that the generator can write to, aligned to 16, until the next call.
  using Room = std::function<Result<void*>(std::size_t bytes)>;
  /// Copies what a generator has made, behind it.
  using Copy = std::function<Result<void>(void* to, const void* from, std::size_t bytes)>;

  /// Makes an operation's numbers; on a device, queues that. `queue`, whose stream it is, tells
  /// apart generators that do not wait for one another. cuRAND wants 16-byte alignment, without
  /// saying so (its host generator of normal f64 ends the process otherwise): what is to go
  /// elsewhere is made in `room`, and copied. Errors: unsupported (no libcurand),
  /// out_of_memory, invalid, library, with cuRAND's status.
  Result<void> make(const rng::Sequence& op, std::size_t queue, void* stream, void* destination,
                    const Room& room, const Copy& copy);

 private:
  /// What a generator is made with.
  struct Key {
    std::size_t queue = 0;
    DType dtype{};
    std::uint64_t seed = 0, offset = 0;
    rng::Generator generator{};
    rng::Distribution distribution{};
    rng::Ordering ordering{};
    std::uint32_t dimensions = 0;
    double mean = 0, deviation = 0;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    Curand::Handle handle = nullptr;
    std::int64_t next = 0;  ///< the number that it makes next
  };
  static constexpr std::size_t kGenerators = 8;

  Result<void> add(const Key& key, const rng::Sequence& op, void* stream);
  void drop(std::list<Entry>::iterator entry);
  Result<void> put(const Entry& entry, const rng::Sequence& op, void* destination, const Room& room,
                   const Copy& copy);
  Result<void> go_to(Entry& entry, const rng::Sequence& op, const Room& room);

  Where where_;
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the most recently used first
};

}  // namespace troupe::host::rng_numbers

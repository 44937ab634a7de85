#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

#include <troupe/lib/rng_sequence.hpp>

#include "lib/rng/curand_library.hpp"

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

  /// Where numbers go that nobody wants: kRoom bytes that the generator can write to.
  using Room = std::function<Result<void*>()>;
  static constexpr std::size_t kRoom = std::size_t{8} << 20;

  /// Makes an operation's numbers; on a device, queues that. `queue`, whose stream it is, tells
  /// apart generators that do not wait for one another. Errors: unsupported (no libcurand),
  /// out_of_memory, invalid, library, with cuRAND's status.
  Result<void> make(const rng::Sequence& op, std::size_t queue, void* stream, void* destination,
                    const Room& room);

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
  Result<void> go_to(Entry& entry, const rng::Sequence& op, const Room& room);

  Where where_;
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the most recently used first
};

}  // namespace troupe::host::rng_numbers

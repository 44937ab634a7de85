#pragma once

#include <cstddef>
#include <vector>

#include "device_host/engine/cuda/handles.hpp"
#include "device_host/engine/engine.hpp"

namespace troupe::host::cuda {

/// Events without timing, made once and used again. One thread.
class MarkPool {
 public:
  static constexpr std::size_t kInitial = 256;    ///< made at the start
  static constexpr std::size_t kMaximum = 65536;  ///< then `take` answers would_block

  /// Makes the first events.
  Result<void> start();
  /// An event for a mark on `queue`; more are made if none is free.
  Result<Mark> take(Queue queue);
  void give_back(Mark mark);

  [[nodiscard]] cudaEvent_t event(Mark mark) const { return entry(mark).event.get(); }
  [[nodiscard]] Queue queue(Mark mark) const { return entry(mark).queue; }

 private:
  struct Entry {
    Event event;
    Queue queue;
    bool taken = false;
  };
  Result<void> grow();
  [[nodiscard]] const Entry& entry(Mark mark) const;

  std::vector<Entry> entries_;  ///< mark i stands at i - 1
  std::vector<Mark> free_;
};

}  // namespace troupe::host::cuda

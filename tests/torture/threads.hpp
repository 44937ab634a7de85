#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::torture {

/// The submitting threads of a rank. What one of them throws comes out of join(): a Finding before
/// errors, which may be what it has led to.
class Threads {
 public:
  void start(std::function<void()> body);
  void join();

 private:
  std::mutex mutex_;
  bool found_ = false;          ///< failure_ is a Finding; under mutex_
  std::exception_ptr failure_;  ///< under mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::torture

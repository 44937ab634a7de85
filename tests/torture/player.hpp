#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "account.hpp"
#include "blows.hpp"
#include "hands.hpp"
#include "program.hpp"
#include "threads.hpp"

namespace troupe::torture {

using Clock = std::chrono::steady_clock;

/// Deadlines are counted in waits of this length: while the whole machine stands still, as virtual
/// ones do, no time passes.
constexpr std::chrono::milliseconds kSlice{100};

/// What an outcome by a fault looks like to a program.
bool is_of_a_fault(Errc code);

/// Learns what comes of the operations of a script. Called by the script's thread; what it
/// throws ends the script.
struct Listener {
  std::function<void(const Operation&, const Result<void>&)> outcome;
  /// An operation that looks at contents has seen these.
  std::function<void(const Operation&, std::vector<std::byte>)> saw;
  /// Also of operations whose futures the script drops. It hears of those that are to fail anyway.
  bool hears_all = false;
};

/// Plays the scripts of threads, one per call. Any thread.
class Player {
 public:
  Player(Account& account, Blows& blows, std::chrono::nanoseconds deadline)
      : account_(account), blows_(blows), deadline_(deadline) {}

  /// Submits all of it, then waits for what is not dropped.
  void play(std::span<const Operation> script, Hands& hands, const Listener& listener) const;
  /// Throws Finding if it takes longer than anything may.
  void wait(const Future<void>& future, const std::string& what) const;

 private:
  void look(std::vector<Seen>& seen, const Listener& listener) const;

  Account& account_;
  Blows& blows_;
  std::chrono::nanoseconds deadline_;
};

}  // namespace troupe::torture

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/loaded_library.hpp>

namespace troupe::rank_process {

/// Rank 0's part in finding out whether all ranks have loaded the same versions.
///
/// Two versions of a library may compute differently: then results differ from rank to rank, and so
/// may the bits of what a successor of a lost device host does again. Each rank tells rank 0 what
/// its device hosts have loaded, when they have loaded it. A difference is told once, in one line,
/// a while after it has shown, because libraries are opened at different times. It is told again
/// only when yet another version comes up.
///
/// Pure, like the protocol: no I/O, no threads, time is passed in.
class LibraryComparison {
 public:
  static constexpr std::chrono::seconds kPatience{2};  ///< for other ranks to be heard
  static constexpr int kMostLines = 4;                 ///< about one library

  explicit LibraryComparison(int size) : size_(size) {}

  /// A device host of this rank has opened a library.
  void receive(int rank, const OpenedLibrary& library, TimePoint now);
  /// Lines to be told now. To be called now and then.
  std::vector<std::string> tick(TimePoint now) { return differences(now, false); }
  /// Lines that are left: nothing more will come.
  std::vector<std::string> conclude() { return differences(TimePoint{}, true); }

 private:
  struct Version {
    std::string file;  ///< of the rank that was heard first
    std::set<int> ranks;
  };
  struct Loaded {
    std::map<std::string, Version> versions;
    bool differs = false;  ///< and it has not been told
    TimePoint since{};
    int lines = 0;
  };
  std::vector<std::string> differences(TimePoint now, bool all);
  [[nodiscard]] bool heard_all(const Loaded& loaded) const;
  [[nodiscard]] static std::string describe(const std::string& name, const Loaded& loaded);

  int size_;
  std::map<std::string, Loaded> loaded_;  ///< by name
};

}  // namespace troupe::rank_process

#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace troupe::torture {

/// A job under mpirun, as its user starts it, with a folder and a mark of its own, so that what it
/// leaves behind can be told from everything else on the machine.
class Child {
 public:
  struct Ended {
    int status = 0;  ///< 128 + signal if one ended it
    bool in_time = true;
    std::string output;  ///< both streams
  };

  /// `arguments` of mpirun. `mark` is a word that no other job has.
  Child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
        const std::string& mark);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  ///< kills what is left

  /// Waits for the end, at most so long; then the job is killed.
  Ended wait(std::chrono::nanoseconds limit);
  /// True if it has ended by itself before the time was over.
  bool ends_within(std::chrono::nanoseconds time);
  /// SIGKILL to mpirun: the ranks find out.
  void kill();
  /// What is left of the job after its end: processes, files, entries of /dev/shm that nobody has
  /// any more. Empty: nothing. Waits for a while.
  [[nodiscard]] std::string left_behind() const;

 private:
  [[nodiscard]] std::vector<int> marked_processes() const;
  bool reap(bool block);

  std::filesystem::path folder_;
  std::string mark_;
  std::set<std::string> forgotten_;  ///< entries of /dev/shm that were nobody's before
  int pid_ = -1, status_ = -1;
};

}  // namespace troupe::torture

#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cmath>
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "job.hpp"

namespace troupe::test {

using Json = nlohmann::json;

/// The five-point Laplace operator on a square, as a Matrix Market file.
inline std::string laplacian(int side) {
  std::ostringstream text;
  text << "%%MatrixMarket matrix coordinate real symmetric\n"
       << side * side << " " << side * side << " " << side * side + 2 * side * (side - 1) << "\n";
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int row = y * side + x + 1;
      text << row << " " << row << " 4\n";
      if (x + 1 < side) text << row + 1 << " " << row << " -1\n";
      if (y + 1 < side) text << row + side << " " << row << " -1\n";
    }
  }
  return text.str();
}

inline bool within(std::chrono::seconds limit, const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

/// A file system in memory, of a given size, as long as it lives. Needs privileges.
class SmallDisk {
 public:
  SmallDisk(const fs::path& where, const std::string& size) : where_(where) {
    fs::create_directory(where);
    mounted_ = ::mount("tmpfs", where.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(where_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] fs::path file(const std::string& name) const { return where_ / name; }
  /// From now on nothing can be written.
  void make_read_only() const {
    ::mount("tmpfs", where_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr);
  }
  /// Takes all room that is left.
  void fill() const {
    std::ofstream filler(file("filler"), std::ios::binary);
    const std::string page(4096, 'x');
    while (filler.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }

 private:
  fs::path where_;
  bool mounted_ = false;
};

/// Jobs of troupe-cg that solve the same system, with states that they leave and take up.
class Saved : public ::testing::Test {
 protected:
  Saved() : matrix_(scratch_.write("laplace.mtx", laplacian(40))) {}

  [[nodiscard]] Arguments problem(int commit_every = 10) const {
    return {"--matrix",
            matrix_.string(),
            "--tol",
            "1e-10",
            "--check-every",
            "5",
            "--commit-every",
            std::to_string(commit_every),
            "--history",
            "--log-level",
            "warn"};
  }
  /// A run that does not end by itself, be the machine fast or slow: in this iteration rank 0's
  /// device host stands still.
  [[nodiscard]] Arguments endless(int iteration = 75) const {
    fs::create_directory(dumps());
    return problem() + Arguments{"--fault",
                                 "hang@" + std::to_string(iteration) + ":0",
                                 "--heartbeat-timeout",
                                 "100s",
                                 "--phase-timeout",
                                 "110s",
                                 "--token-timeout",
                                 "110s",
                                 "--restart-budget",
                                 "1000",
                                 "--flight-dir",
                                 dumps().string()};
  }
  /// Sends an endless run, whose ranks all compute, SIGUSR1 by way of mpirun, and lets it go on to
  /// its end.
  void stop(Job& job, int ranks) const {
    for (const auto& file : fs::directory_iterator(dumps())) fs::remove(file);
    job.signal(SIGUSR1);
    // Where the second signal has arrived, so has the first.
    job.signal(SIGUSR2);
    ASSERT_TRUE(within(60s, [&] { return signalled() == ranks; })) << job.out() << job.err();
    // Another device host does not stand still, but the one that is killed may not have done so
    // yet.
    do {
      job.signal(SIGUSR1);  // to ask again changes nothing; mpirun may have lost the first
      for (const auto pid : job.processes("troupe-device")) ::kill(pid, SIGKILL);
    } while (job.runs_on_for(10s));
  }
  [[nodiscard]] fs::path dumps() const { return scratch_.file("dumps"); }
  /// Ranks whose flight recorder has been asked for its dump.
  [[nodiscard]] int signalled() const {
    int count = 0;
    for (const auto& file : fs::directory_iterator(dumps()))
      count += file.path().extension() == ".json" &&
               read_file(file).find("\"SIGUSR2\"") != std::string::npos;
    return count;
  }
  [[nodiscard]] Arguments saving(const std::string& folder, int commit_every = 10) const {
    return problem(commit_every) + Arguments{"--checkpoint-dir", scratch_.file(folder).string()};
  }
  /// A job that saves every 20th step and stands still in iteration 75, for longer than any test
  /// waits. By then the state of step 60 is on disk: the second commit after it waits for that.
  [[nodiscard]] Arguments standing_still(const std::string& folder) const {
    return saving(folder, 5) +
           Arguments{"--checkpoint-every",  "20",   "--fault",         "hang@75:0",
                     "--heartbeat-timeout", "600s", "--phase-timeout", "700s",
                     "--token-timeout",     "700s"};
  }
  [[nodiscard]] fs::path states(const std::string& folder) const {
    return scratch_.file(folder) / "troupe-cg";
  }
  [[nodiscard]] std::set<std::string> contents(const std::string& folder) const {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(states(folder), none)) {
      const auto name = entry.path().filename().string();
      if (name != "lock") names.insert(name);
    }
    return names;
  }
  /// A copy of the states of a job, for another one to go on from.
  std::string copy(const std::string& folder) {
    auto name = folder + "-" + std::to_string(++copies_);
    fs::copy(scratch_.file(folder), scratch_.file(name), fs::copy_options::recursive);
    return name;
  }
  /// Runs to the end and returns the report; `log` gets what it wrote on stderr.
  Json solve(int ranks, const Arguments& arguments, std::string* log = nullptr) {
    const auto file = scratch_.file("report.json");
    Job job(ranks_here(ranks), arguments + Arguments{"--json", file.string()});
    EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
    EXPECT_TRUE(job.nothing_left());
    if (log != nullptr) {
      *log = job.err();
    } else {
      EXPECT_EQ(job.err(), "");
    }
    auto report = Json::parse(read_file(file), nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << job.out();
    return report.is_discarded() ? Json::object() : report;
  }
  /// Waits until the job iterates.
  static bool under_way(const Job& job) {
    return within(30s, [&] { return job.out().find("iteration") != std::string::npos; });
  }
  /// Ends with this status and one complaint, which is returned.
  std::string fail(int ranks, const Arguments& arguments, int status) {
    Job job(ranks_here(ranks), arguments);
    EXPECT_EQ(job.wait(), status) << job.out() << job.err();
    EXPECT_TRUE(job.nothing_left());
    EXPECT_EQ(job.complaints().size(), 1u) << job.err();
    return job.complaints().empty() ? "" : job.complaints()[0];
  }
  /// A job that is killed as a whole in iteration 75, with states of every 20th on disk.
  void leave_states(const std::string& folder) {
    const std::set<std::string> two{"step-40", "step-60"};
    Job job(ranks_here(4), standing_still(folder));
    EXPECT_TRUE(within(120s, [&] { return contents(folder) == two; })) << job.out() << job.err();
    job.kill_all();
    EXPECT_TRUE(job.nothing_left());
    EXPECT_EQ(contents(folder), two);
  }
  /// The same solution as an undisturbed run, in about as many iterations; bit by bit the same way
  /// there with the same number of ranks on the cpu engine.
  static void expect_same(const Json& calm, const Json& report, bool same_ranks) {
    ASSERT_TRUE(report.contains("converged") && calm.contains("history"));
    EXPECT_TRUE(report["converged"].get<bool>());
    EXPECT_LE(report["true_relative_residual"].get<double>(), 1e-9);
    EXPECT_LE(report["relative_error"].get<double>(), 1e-6);
    const auto expected = calm["iterations"].get<int>(), done = report["iterations"].get<int>();
    EXPECT_LE(std::abs(done - expected), same_ranks && !on_cuda() ? 0 : 5);
    const auto from = report["restarted_from"].get<int>();
    const double slack = same_ranks && !on_cuda() ? 0 : 1e-3;
    ASSERT_FALSE(report["history"].empty());
    for (const auto& entry : report["history"]) {
      const auto iteration = entry[0].get<int>();
      EXPECT_GT(iteration, from);
      const auto index = static_cast<std::size_t>(iteration / 5 - 1);
      if (index >= calm["history"].size()) continue;
      ASSERT_EQ(calm["history"][index][0], iteration);
      const auto was = calm["history"][index][1].get<double>(), is = entry[1].get<double>();
      // Rounding grows on the way: what matters is where the run goes on.
      if (iteration > from + 20 && slack > 0) continue;
      EXPECT_LE(std::abs(is - was), slack * was) << "iteration " << iteration;
    }
  }

  Scratch scratch_;
  fs::path matrix_;
  int copies_ = 0;
};

}  // namespace troupe::test

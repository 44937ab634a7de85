#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "host_processes.hpp"

/// What the cases of troupe-mpi-tests share. A case runs on all ranks alike; what it expects and
/// does not find is printed and counted, and the program's exit status is the world's.
namespace troupe::test {

using Clock = std::chrono::steady_clock;

/// A value as a failed check prints it: of a range the first elements; "?" if there is no text for
/// it.
template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return '"' + std::string(std::string_view(value)) + '"';
  } else if constexpr (requires { std::string(to_string(value)); }) {
    return std::string(to_string(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", static_cast<double>(value));
    return text;
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value.has_value() ? shown(*value) : "nothing";
  } else if constexpr (requires { value.begin() == value.end(); }) {
    constexpr int kMost = 8;
    std::string text = "{";
    int count = 0;
    for (const auto& element : value) {
      if (count > 0) text += ", ";
      if (++count > kMost) return text + "...}";
      text += shown(element);
    }
    return text + "}";
  } else {
    return "?";
  }
}

template <class A, class B>
bool are_equal(const A& a, const B& b) {
  constexpr bool kIntegers = std::is_integral_v<A> && std::is_integral_v<B> &&
                             !std::is_same_v<A, bool> && !std::is_same_v<B, bool>;
  if constexpr (kIntegers) {
    return std::cmp_equal(a, b);
  } else if constexpr (std::is_arithmetic_v<A> && std::is_arithmetic_v<B>) {
    return static_cast<long double>(a) == static_cast<long double>(b);
  } else {
    return a == b;
  }
}

/// One rank's view of a case.
class Context {
 public:
  explicit Context(Runtime& runtime) : runtime_(&runtime), ranks_(&runtime.world()) {}

  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] Device& device() const { return runtime_->device(); }
  [[nodiscard]] World& world() const { return runtime_->world(); }
  /// The communicator that the case is about: the world's, unless it was set.
  [[nodiscard]] Collectives& ranks() const { return *ranks_; }
  void set_ranks(Collectives& ranks) { ranks_ = &ranks; }
  [[nodiscard]] int rank() const { return ranks().rank(); }
  [[nodiscard]] int size() const { return ranks().size(); }
  [[nodiscard]] bool first() const { return rank() == 0; }

  /// Counts a failure, and prints where and what, unless the condition holds. `what`: the failure.
  void expect(bool holds, const std::string& what,
              const std::source_location& where = std::source_location::current()) {
    if (holds) return;
    if (++failures_ > 10) return;
    std::fprintf(stderr, "%s:%u: [rank %d] FAILED: %s\n", where.file_name(), where.line(),
                 world().rank(), what.c_str());
  }
  /// As expect(); a case that cannot go on ends the whole job.
  void require(bool holds, const std::string& what,
               const std::source_location& where = std::source_location::current()) {
    expect(holds, what, where);
    if (!holds) throw Exception({Errc::internal, 0, "the case cannot go on: " + what});
  }
  /// As expect(got == wanted), and prints both values. Integers are compared by value, whatever
  /// their types.
  template <class Got, class Wanted>
  void expect_equal(const Got& got, const Wanted& wanted, const std::string& what,
                    const std::source_location& where = std::source_location::current()) {
    if (!are_equal(got, wanted)) expect(false, difference(got, wanted, what), where);
  }
  template <class Got, class Wanted>
  void require_equal(const Got& got, const Wanted& wanted, const std::string& what,
                     const std::source_location& where = std::source_location::current()) {
    if (!are_equal(got, wanted)) require(false, difference(got, wanted, what), where);
  }
  /// A figure for the record: one line from rank 0.
  void report(const std::string& line) const {
    if (world().rank() == 0) std::printf("%s\n", line.c_str());
  }
  [[nodiscard]] int failures() const { return failures_; }
  /// This rank ends with that status as soon as the case returns, without the others.
  void end_with(int status) { status_ = status; }
  [[nodiscard]] std::optional<int> status() const { return status_; }

 private:
  template <class Got, class Wanted>
  static std::string difference(const Got& got, const Wanted& wanted, const std::string& what) {
    return what + " (" + shown(got) + ", expected " + shown(wanted) + ")";
  }

  Runtime* runtime_;
  Collectives* ranks_;
  int failures_ = 0;
  std::optional<int> status_;
};

/// A case, known by its name from where it is written: TROUPE_MPI_CASE(name) { ... }, in the
/// namespace troupe::test; `c` is its Context.
class Case {
 public:
  using Function = std::function<void(Context&)>;
  Case(const char* name, Function function) { all().emplace(name, std::move(function)); }
  static std::map<std::string, Function>& all() {
    static std::map<std::string, Function> cases;
    return cases;
  }
};
#define TROUPE_MPI_CASE(name)                             \
  void name(Context& c);                                  \
  const ::troupe::test::Case case_of_##name{#name, name}; \
  void name([[maybe_unused]] Context& c)

/// Brings the world back after `faults` faults were ordered anywhere: until a collective is
/// verified on all ranks in one epoch and that many recoveries are known. Returns false past the
/// deadline.
inline bool settle(Context& c, std::size_t faults) {
  const auto end = Clock::now() + kDeadline;
  const auto data = c.device().alloc<std::int64_t>(64);
  for (;;) {
    const auto epoch = c.world().wait_active();
    if (!epoch.ok()) throw CollectiveException(epoch.error());
    // Everybody in the same epoch before anybody submits: a collective that only some have joined
    // would wait.
    const auto epochs = c.world().gather_values(epoch->value);
    bool good =
        std::all_of(epochs.begin(), epochs.end(), [&](auto e) { return e == epochs.front(); });
    if (good) {
      auto mine = data;
      if (!mine.valid()) mine.renew();
      c.device().fill<std::int64_t>(mine, c.rank() + 1);
      const auto reduced = c.world().all_reduce(mine, ReduceOp::sum);
      c.require(reduced.wait_for(kDeadline), "an all_reduce does not resolve");
      good = reduced.wait().ok();
      if (good) {
        try {
          const std::int64_t n = c.size(), expected = n * (n + 1) / 2;
          for (const auto value : c.device().download(mine))
            c.expect(value == expected, "a wrong sum after a recovery");
        } catch (const Exception&) {
          good = false;  // the next fault came in between
        }
      }
    }
    good = good && c.world().recoveries().size() >= faults;
    const auto all = c.world().gather_values(good);
    if (std::all_of(all.begin(), all.end(), [](bool yes) { return yes; })) return true;
    const auto late = c.world().gather_values(Clock::now() > end);
    if (std::any_of(late.begin(), late.end(), [](bool yes) { return yes; })) return false;
    std::this_thread::sleep_for(1ms);
  }
}

/// A folder that all ranks see, gone when rank 0 lets go of it.
class SharedFolder {
 public:
  explicit SharedFolder(Context& c) : first_(c.first()) {
    std::string mine;
    if (first_) {
      char name[] = "/tmp/troupe-mpi-test-XXXXXX";
      mine = ::mkdtemp(name);
    }
    path_ = c.world().gather_text(mine)[0];
  }
  ~SharedFolder() {
    std::error_code ignored;
    if (first_) std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  bool first_;
  std::filesystem::path path_;
};

/// A part of the case "collectives".
void collective_limits(Context& c);

}  // namespace troupe::test

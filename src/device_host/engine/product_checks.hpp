#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <troupe/error.hpp>

#include "device_host/engine/engine.hpp"

/// --check products: products are verified by checksums (K.-H. Huang, J. A. Abraham:
/// Algorithm-Based Fault Tolerance for Matrix Operations, IEEE Transactions on Computers C-33,
/// 1984). A product that is looked at blocks, because its verdict is waited for.
namespace troupe::host {

/// The halves of an engine share it: it knows whether products are looked at, and which are to come
/// out wrong, for tests. Any thread. Modules use the engine's, so it has no virtual functions: a
/// sanitizer would look for its type in the module.
class ProductChecks {
 public:
  /// With TESTING_TROUPE_ALL_PRODUCTS in the environment all products are looked at that can be,
  /// whatever that costs: for tests.
  explicit ProductChecks(bool on);
  ProductChecks(const ProductChecks&) = delete;
  ProductChecks& operator=(const ProductChecks&) = delete;

  [[nodiscard]] bool on() const noexcept { return on_; }
  /// The next `count` products that are looked at are wrong; one that is done again counts. Until
  /// then each product that can be looked at is.
  void order_wrong(std::uint32_t count) noexcept { wrong_.fetch_add(count); }
  [[nodiscard]] bool looks_at_next() const noexcept {
    return all_ || wrong_.load(std::memory_order_relaxed) != 0;
  }
  /// True if the product that is about to be looked at is one of them.
  bool take_wrong() noexcept {
    auto left = wrong_.load();
    while (left != 0 && !wrong_.compare_exchange_weak(left, left - 1)) {
    }
    return left != 0;
  }
  /// Tells of a product that was wrong, and right when it was done again.
  void note_repeated(const std::string& finding) const { tell_(finding); }

 private:
  const bool on_, all_;
  void (*const tell_)(const std::string& finding);  ///< the engine's: a module has another log
  std::atomic<std::uint32_t> wrong_ = 0;
};

/// The answer of a look: what is wrong, in words; nothing if nothing is.
using WrongProduct = std::optional<std::string>;

/// Estimates of how long a product and a look at it take, in nanoseconds.
struct CheckCost {
  double product = 0, check = 0;
};

/// Decides by estimates which products of one library are looked at: the looks together take at
/// most kShare of the products' time. Each product adds its share to a credit, of which a look is
/// paid. There is no clock in it, so the same commands have the same looks.
class CheckBudget {
 public:
  static constexpr double kShare = 0.05;
  /// The most credit that is kept: after many products whose looks were cheap, not all of another
  /// sort are looked at for long.
  static constexpr double kMost = 1e8;

  [[nodiscard]] bool allows(const CheckCost& cost) const noexcept {
    return credit_ + kShare * cost.product >= cost.check;
  }
  /// Counts a product that is carried out.
  void count(const CheckCost& cost, bool looked) noexcept {
    credit_ += kShare * cost.product;
    if (looked) credit_ = std::max(0.0, credit_ - cost.check);
    // A look that costs more than that is saved up for.
    credit_ = std::min(credit_, std::max(kMost, cost.check));
  }

 private:
  double credit_ = 0;
};

/// The looks at one library's products. As its half: by one thread at a time.
class ProductLooks {
 public:
  explicit ProductLooks(ProductChecks& checks) noexcept : checks_(&checks) {}

  [[nodiscard]] bool on() const noexcept { return checks_->on(); }
  /// True if a product is looked at; blocks() and run() both ask, and nothing else runs between
  /// the two. `cost`: nothing for one that cannot be looked at.
  [[nodiscard]] bool due(const Call& call, bool records,
                         const std::optional<CheckCost>& cost) const noexcept {
    return on() && cost && !call.prepares() && !records &&
           (checks_->looks_at_next() || budget_.allows(*cost));
  }

  /// Counts a product that is not looked at.
  void count(const CheckCost& cost) noexcept { budget_.count(cost, false); }

  /// Carries out and looks at a product that is due; waits. `product()` queues it. A `look` has
  ///   before():     queues what the look needs before the product is there, and what restore()
  ///                 needs; out_of_memory: the product is not looked at
  ///   after(wrong): queues the look and waits for it: what is wrong, in words, or nothing.
  ///   `wrong`:
  ///                 an element of the result is changed first
  ///   restore():    queues what makes the product's operands as they were
  /// Errors: corrupt if the product is wrong twice.
  template <class Look, class Product>
  Result<void> carry_out(std::string_view name, const CheckCost& cost, Look& look,
                         Product&& product) {
    const auto prepared = look.before();
    if (prepared.code() == Errc::out_of_memory) {
      budget_.count(cost, false);
      return product();
    }
    if (!prepared.ok()) return prepared;
    if (auto queued = product(); !queued.ok()) return queued;
    budget_.count(cost, true);
    const auto first = look.after(checks_->take_wrong());
    if (!first.ok()) return first.error();
    if (!*first) return {};
    if (auto restored = look.restore(); !restored.ok()) return restored;
    // Now that its first result is there, it must not be refused.
    auto repeated = product();
    while (repeated.code() == Errc::would_block) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      repeated = product();
    }
    if (!repeated.ok()) return repeated;
    const auto second = look.after(checks_->take_wrong());
    if (!second.ok()) return second.error();
    if (*second) return Error{Errc::corrupt, 0, std::string(name) + ": wrong twice: " + **second};
    checks_->note_repeated(std::string(name) + ": " + **first);
    return {};
  }

 private:
  ProductChecks* checks_;
  CheckBudget budget_;
};

}  // namespace troupe::host

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "catalogue/call_info.hpp"
#include "catalogue/trial.hpp"

/// The catalogue of calls: for each operation a call that is drawn from a seed, with what must come
/// of it. A family of operations has its part in catalogue.cpp of its folder. The conformance tests
/// make all calls, and troupe-torture makes them in random programs, while device hosts die.
///
/// Not in it:
/// - sort, scan, select_nonzero, spmv, gather, spgemm, convolutions: torture has kinds of their
/// own;
/// - forms of matmul beside a few types and all epilogues (scales of f8, batches, results of i8),
///   and of gemm_ex beside a few types: the tests of the family have them all;
/// - emulated precision of gemm_ex and matmul, whose results are not exact;
/// - sequences of MT19937 and, but in the legacy order, of MRG32k3a, which take long to begin.
namespace troupe::catalogue {

class Catalogue {
 public:
  using Make = std::function<void(Trial&)>;

  /// All calls of the program's libraries.
  static const Catalogue& all();

  /// Adds a call in a dtype: `make` draws its arguments, submits it, and says what is expected.
  template <class T>
  void add(const CallName& call, Make make) {
    add(call, dtype_of<T>, std::move(make));
  }

  /// In an order that is the same in every process of a program.
  [[nodiscard]] const std::deque<CallInfo>& calls() const { return calls_; }
  [[nodiscard]] const Make& of(const CallInfo& call, DType dtype) const;

 private:
  void add(const CallName& call, DType dtype, Make make);

  std::string_view library_;  ///< whose calls are being added
  std::deque<CallInfo> calls_;
  std::map<std::pair<const CallInfo*, DType>, Make> makes_;
};

/// A file's part of the catalogue.
class Subject {
 public:
  Subject(std::string_view library, void (*add)(Catalogue&));
};

}  // namespace troupe::catalogue

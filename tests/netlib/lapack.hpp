#pragma once

#include <dlfcn.h>

#include <cctype>
#include <cstdio>
#include <initializer_list>
#include <string>

#include <troupe/lib/solver.hpp>

#include "shim.hpp"

/// LAPACK's Fortran interface (https://www.netlib.org/lapack) of those routines that a device has;
/// all others, and the calls that operations do not cover, stay with the LAPACK that is loaded
/// after this library. Wrong arguments are reported as LAPACK does it: by XERBLA, before anything
/// is submitted.
extern "C" void xerbla_(const char* name, const int* argument, std::size_t name_length);

namespace troupe::netlib {

/// LAPACK's callers look at info themselves.
inline constexpr auto kReport = OnFailure::report;

/// Whether an argument is one of some letters, given as capitals.
inline bool is_one_of(const char* argument, std::string_view letters) {
  return letters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(*argument)))) !=
         std::string_view::npos;
}
inline int at_least_one(int extent) {
  return std::max(1, extent);
}

template <class T>
constexpr char kLetter = std::is_same_v<T, float>                 ? 'S'
                         : std::is_same_v<T, double>              ? 'D'
                         : std::is_same_v<T, std::complex<float>> ? 'C'
                                                                  : 'Z';

/// The routine of that name in the LAPACK that is loaded after this library.
template <class Function>
Function* next(const char* symbol) {
  auto* found = ::dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "troupe: there is no %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

/// A routine by its name without the letter of its type, which may be another for complex numbers.
template <class T>
class Routine {
 public:
  explicit Routine(std::string_view real, std::string_view complex = {})
      : name_(kLetter<T> + std::string(ComplexElement<T> && !complex.empty() ? complex : real)) {}

  /// Whether all arguments are right: one condition for each, in their order. Otherwise info and
  /// XERBLA tell which is wrong.
  [[nodiscard]] bool accepts(std::initializer_list<bool> arguments, int* info) const {
    *info = 0;
    const auto wrong = std::find(arguments.begin(), arguments.end(), false);
    if (wrong == arguments.end()) return true;
    const int position = static_cast<int>(wrong - arguments.begin()) + 1;
    *info = -position;
    xerbla_(name_.data(), &position, name_.size());
    return false;
  }
  /// The device, for a call that counts as one of this routine.
  [[nodiscard]] Device& device() const { return netlib::device(name_); }

 private:
  std::string name_;
};

/// Whether a workspace has a size that a routine accepts; -1 asks how much it needs.
constexpr bool enough(int lwork, int least) {
  return lwork >= least || lwork == -1;
}
/// Tells how much workspace a routine needs.
template <class W>
void tell(W* work, int least) {
  if constexpr (std::is_same_v<W, int>) {
    work[0] = least;
  } else {
    work[0] = static_cast<RealOf<W>>(least);
  }
}
/// The same; true if that is all that was asked.
template <class W>
bool asked_only(W* work, int lwork, int least) {
  tell(work, least);
  return lwork == -1;
}

/// Pivots, which LAPACK has as 32 bits.
class Pivots {
 public:
  Pivots(Device& on, const int* pivots, std::int64_t count)
      : wide_(pivots, pivots + count), memory_(on, wide_.data(), count) {}
  [[nodiscard]] const GpuRef<std::int64_t>& ref() const { return memory_.ref(); }
  void download(int* pivots) const {
    memory_.download();
    std::transform(wide_.begin(), wide_.end(), pivots,
                   [](std::int64_t pivot) { return static_cast<int>(pivot); });
  }

 private:
  std::vector<std::int64_t> wide_;
  Array<std::int64_t> memory_;
};

}  // namespace troupe::netlib

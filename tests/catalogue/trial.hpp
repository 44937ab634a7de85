#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/troupe.hpp>

#include "catalogue/random.hpp"
#include "catalogue/values.hpp"
#include "reference/factors.hpp"
#include "reference/types.hpp"

namespace troupe::catalogue {

namespace reference = test::reference;
using reference::Data;
using reference::Dense;
using reference::for_numbers;
using reference::for_types;
using reference::Wide;

/// What the host computes in where T is only stored; such numbers are chosen so that T has them.
template <class T>
using NumberOf = std::conditional_t<sizeof(T) == 2, float, T>;
template <class T>
std::vector<Wide> wide(const std::vector<T>& values) {
  std::vector<Wide> all;
  for (const auto value : values) all.emplace_back(static_cast<double>(value));
  return all;
}

/// How far the operands of one call differ from those of another.
enum class Breadth : std::uint8_t {
  narrow,  ///< a few small integers, so that results are exact whatever the algorithm
  wide     ///< where the call says varied(): more of them, or fractions, and sums are rounded
};

/// A device whose libraries' calls go to somebody else, who passes them on; all else to the device.
class CalledDevice : public Device {
 public:
  /// `calls` outlives this; nullptr: the device's own.
  CalledDevice(const Device& device, detail::Submitter* calls)
      : Device(device), calls_(calls != nullptr ? calls : &device.submitter()) {}

  [[nodiscard]] detail::Submitter& submitter() const { return *calls_; }
  [[nodiscard]] auto blas() const { return blas::on(*this); }
  [[nodiscard]] auto rng() const { return rng::on(*this); }
  [[nodiscard]] auto solver() const { return solver::on(*this); }
  [[nodiscard]] auto sparse() const { return sparse::on(*this); }

 private:
  detail::Submitter* calls_;
};

/// A call of a library under way: its operands are drawn from a seed and put into buffers of their
/// own, and so is what must come of it. Operands that are not factorised are small integers, with
/// fillers between them that must stay: results are exact whatever the algorithm, unless a
/// tolerance is given. One thread at a time.
class Trial {
 public:
  /// `calls`: where the calls go instead of to the device, and are not recorded.
  Trial(Device& device, std::uint64_t seed, Breadth breadth = Breadth::narrow,
        detail::Submitter* calls = nullptr)
      : random(seed),
        device_(device, calls),
        records_(calls == nullptr),
        wide_(breadth == Breadth::wide),
        fractions_(wide_ && random.one_in(2)) {}
  Trial(const Trial&) = delete;  // what judges it refers to it
  Trial& operator=(const Trial&) = delete;

  Random random;
  [[nodiscard]] const CalledDevice& device() const { return device_; }

  // What is drawn

  bool flip() { return random.one_in(2); }
  std::int64_t extent() { return random.between(1, 9); }
  std::int64_t increment() { return random.of(std::array<std::int64_t, 4>{1, 2, -1, -3}); }
  blas::Uplo uplo() { return flip() ? blas::Uplo::lower : blas::Uplo::upper; }
  blas::Side side() { return flip() ? blas::Side::left : blas::Side::right; }
  blas::Diagonal diagonal() { return flip() ? blas::Diagonal::stored : blas::Diagonal::unit; }
  blas::Transpose transpose() { return reference::kTransposes[random.below(3)]; }
  /// Fractions of numbers of 16 bits are multiples of 1/64, which these types have exactly.
  template <class T>
  std::vector<Wide> numbers(std::int64_t count, Data data = Data::integers) {
    using N = std::conditional_t<FieldElement<T>, T, float>;
    if (!NarrowElement<T> || data == Data::integers)
      return reference::numbers<N>(count, random.next(), data);
    std::vector<Wide> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = static_cast<double>(random.between(-64, 64)) / 64;
    return values;
  }
  template <class T>
  Dense dense(std::int64_t rows, std::int64_t columns, Data data = Data::integers) {
    return {rows, columns, numbers<T>(rows * columns, data)};
  }
  /// The same of a call that may vary: an extent, and numbers, for this trial's breadth.
  /// `inverted`: of a matrix whose inverse is asked for, which of
  /// integers grows fast.
  template <class T>
  std::int64_t length(bool inverted = false) {
    varies_ = true;
    if (!wide_ || !(FieldElement<T> || NarrowElement<T>) || (inverted && !fractions_))
      return extent();
    const auto drawn = random.of(std::array<std::int64_t, 6>{1, 3, 6, 17, 34, 65});
    terms_ += static_cast<double>(8 * drawn);
    return drawn;
  }
  template <class T>
  [[nodiscard]] Data data() const {
    return fractions_ && (FieldElement<T> || NarrowElement<T>) ? Data::fractions : Data::integers;
  }
  template <class T>
  std::vector<Wide> varied(std::int64_t count) {
    return numbers<T>(count, data<T>());
  }
  template <class T>
  Dense varied(std::int64_t rows, std::int64_t columns) {
    return dense<T>(rows, columns, data<T>());
  }
  /// For a call that draws lengths of its own: whether they are to be wide.
  bool varies_widely() {
    varies_ = true;
    return wide_;
  }
  /// True once the call has drawn a length.
  [[nodiscard]] bool varies() const { return varies_; }
  /// The values, or NaN in place of all of them where the factor is 0: an operation must not read
  /// what it multiplies by 0.
  std::vector<Wide> weighed(std::vector<Wide> values, const Wide& factor) {
    if (factor == 0.0 && flip())
      std::fill(values.begin(), values.end(), std::numeric_limits<double>::quiet_NaN());
    return values;
  }
  Dense weighed(const Dense& a, const Wide& factor) {
    return {a.rows, a.columns, weighed(a.element, factor)};
  }
  /// A scalar that results stay exact with.
  template <class T>
  Wide scalar() {
    return {static_cast<double>(random.between(-2, 2)),
            ComplexElement<T> ? static_cast<double>(random.between(-1, 1)) : 0.0};
  }

  // On the device

  template <class T>
  GpuRef<T> put_values(const std::vector<T>& values) {
    const auto buffer = device_.alloc<T>(std::ssize(values));
    device_.upload<T>(values, buffer);
    return buffer;
  }
  template <class T>
  GpuRef<T> put(const std::vector<Wide>& values) {
    return put_values(elements_of<T>(values));
  }
  template <class T>
  VectorRef<GpuRef<T>> put(const std::vector<Wide>& values, std::int64_t increment) {
    return {put<T>(reference::spread(values, increment)), std::ssize(values), increment};
  }
  template <class T>
  MatrixRef<GpuRef<T>> put(const Dense& a, std::int64_t gap) {
    return {put<T>(reference::spread(a, a.rows + gap)), a.rows, a.columns, a.rows + gap};
  }
  /// A scalar as the host gives it, or in device memory.
  template <class T>
  ScalarArg<T> factor(const Wide& value) {
    const auto number = reference::to_number<T>(value);
    if (flip()) return number;
    const auto there = std::make_shared<GpuRef<T>>(put_values<T>({number}));
    kept_.push_back(there);
    return *there;
  }
  /// Room for results.
  template <class T>
  GpuRef<T> room(std::int64_t count) {
    return put<T>(std::vector<Wide>(static_cast<std::size_t>(count), 1));
  }
  template <class T>
  MatrixRef<GpuRef<T>> room(std::int64_t rows, std::int64_t columns) {
    return {room<T>(rows * columns), rows, columns};
  }

  // What is called, and what must come of it

  template <class R>
  void call(const Future<R>& future) {
    if constexpr (std::is_void_v<R>)
      futures_.push_back(future);
    else
      futures_.push_back(future.then([](const R&) {}));
  }
  /// Once, or several times as a recorded sequence. `submit` submits what can be recorded.
  void call_or_record(const std::function<Future<void>()>& submit);
  /// A call that may be `unsupported`, or has to be. What is returned says whether it was, when the
  /// calls are over.
  std::shared_ptr<const bool> call_or_refuse(const Future<void>& future, bool has_to);
  /// `terms`: how many roundings there are of sums of about `scale`; 0: none, unless the call
  /// varies. Sums of narrow elements, of drawn lengths, are rounded once.
  template <class T>
  void expect(const GpuRef<T>& buffer, std::vector<Wide> expected, double terms = 0,
              double scale = 1) {
    check([this, buffer, expected = std::move(expected), terms, scale] {
      if (NarrowElement<T> && terms_ > 0)
        return difference(got(buffer), expected, 16 * (terms_ + 2) * 0x1p-23 * scale,
                          (terms + 2) * epsilon<T>());
      const bool rounded = varies_ && data<T>() == Data::fractions;
      const auto most = rounded ? std::max(terms, terms_) : terms;
      return difference(got(buffer), expected,
                        most == 0 ? 0 : 16 * (most + 2) * epsilon<T>() * scale);
    });
  }
  template <class T>
  void expect(const VectorRef<GpuRef<T>>& x, const std::vector<Wide>& expected, double terms = 0) {
    expect<T>(x.buffer, reference::spread(expected, x.increment), terms, 8);
  }
  template <class T>
  void expect(const MatrixRef<GpuRef<T>>& a, const Dense& expected, double terms = 0) {
    expect<T>(a.buffer, reference::spread(expected, a.leading), terms, 8);
  }
  /// What `measure` gives is at most `most`.
  void demand(std::string what, std::function<double()> measure, double most) {
    check([what = std::move(what), measure = std::move(measure), most]() -> std::string {
      const auto is = measure();
      return is <= most ? "" : fmt::format("{} is {}, more than {}", what, is, most);
    });
  }
  /// `judge` says what is wrong; empty: nothing.
  void check(std::function<std::string()> judge) { checks_.push_back(std::move(judge)); }

  template <class T>
  [[nodiscard]] std::vector<Wide> got(const GpuRef<T>& buffer) const {
    std::vector<Wide> values;
    for (const auto& value : device_.download(buffer)) values.push_back(wide_of(value));
    return values;
  }
  template <class T>
  [[nodiscard]] Dense got(const MatrixRef<GpuRef<T>>& matrix) const {
    const auto memory = got(matrix.buffer);
    Dense a{matrix.rows, matrix.columns};
    for (std::int64_t j = 0; j < a.columns; ++j) {
      for (std::int64_t i = 0; i < a.rows; ++i)
        a(i, j) = memory[static_cast<std::size_t>(j * matrix.leading + i)];
    }
    return a;
  }

  /// What the calls resolved with: the first error, in the order of the calls.
  [[nodiscard]] Future<void> over() const;
  /// What is wrong, once they are over; empty: nothing. Throws Exception where results are lost.
  [[nodiscard]] std::string judge() const;

  template <class T>
  static constexpr double epsilon() {
    if constexpr (FieldElement<T>)
      return static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
    return std::is_same_v<T, Half> ? 0x1p-10 : 0x1p-7;
  }

 private:
  template <class T>
  static std::vector<T> elements_of(const std::vector<Wide>& values) {
    if constexpr (FieldElement<T>) {
      return reference::to_numbers<T>(values);
    } else {
      std::vector<T> elements(values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        store(dtype_of<T>, reinterpret_cast<std::byte*>(&elements[i]), values[i].real());
      return elements;
    }
  }
  template <class T>
  static Wide wide_of(const T& value) {
    if constexpr (FieldElement<T>)
      return reference::widen(value);
    else
      return load(dtype_of<T>, reinterpret_cast<const std::byte*>(&value));
  }
  /// `relative`: of the expected number, beside the tolerance.
  static std::string difference(const std::vector<Wide>& actual, const std::vector<Wide>& expected,
                                double tolerance, double relative = 0);

  CalledDevice device_;
  bool records_ = true, wide_ = false, fractions_ = false, varies_ = false;
  double terms_ = 0;  ///< of the sums of a call that varies
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<Future<void>> futures_;
  std::vector<std::function<std::string()>> checks_;
};

}  // namespace troupe::catalogue

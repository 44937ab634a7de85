#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <initializer_list>

#include <troupe/lib/submit.hpp>

/// Discrete Fourier transforms of one to three dimensions, as FFTW (https://www.fftw.org/fftw3_doc)
/// and cuFFT (https://docs.nvidia.com/cuda/cufft) define them. No direction is normalised: forward
/// and then inverse gives the input times the number of elements of one transform.
namespace troupe::fft {

inline constexpr std::size_t kMaxRank = 3;

/// forward:         y[k] = sum over j of x[j] exp(-2 pi i j k / n), in each dimension
/// inverse:         the same with +2 pi i
/// real_to_complex: forward, of real x. Since y[n - k] is the conjugate of y[k], only the first
///                  n / 2 + 1 elements of the last dimension are stored.
/// complex_to_real: inverse, of x as real_to_complex stores it; y is real. Where x is not such a
///                  transform, as with an imaginary part in x[0], y depends on the engine.
enum class Kind : std::uint32_t { forward, inverse, real_to_complex, complex_to_real };

/// How one side of a batch lies in memory, in elements of its own dtype.
struct Layout {
  DType dtype{};
  std::array<std::int64_t, kMaxRank> extents{};  ///< as stored; 1 beyond the rank
  std::int64_t length = 0;                       ///< of one transform
  std::int64_t distance = 0;                     ///< from the start of one to that of the next

  /// Elements from the start of a batch's first transform to the end of its last.
  [[nodiscard]] std::int64_t span(std::int64_t batch) const noexcept {
    return batch == 0 ? 0 : (batch - 1) * distance + length;
  }
};

/// A batch of transforms of one shape. dtype is that of the complex side: c64 with f32, c128 with
/// f64. Each transform is contiguous and row-major: the last dimension varies fastest. Distances
/// are in elements of their side; 0: the batch is packed, each transform begins where the one
/// before it ends. Elements between two transforms are not touched.
///
/// Both operands begin at a multiple of the complex element's size. input may be output where both
/// sides are complex and have the same distance. complex_to_real destroys its input.
struct Transform {
  static constexpr std::string_view kName = "fft.transform";
  static constexpr DTypes kDTypes = DTypes::of({DType::c64, DType::c128});
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  Kind kind{};
  std::uint32_t rank = 0;  ///< 1 to 3
  std::array<std::int64_t, kMaxRank>
      extents{};           ///< of the real side where there is one; 0 beyond rank
  std::int64_t batch = 0;  ///< how many transforms; may be 0
  std::int64_t input_distance = 0, output_distance = 0;
  Operand input, output;

  static constexpr auto kOperands =
      std::tuple{read("input", &Transform::input), write("output", &Transform::output)};
  static constexpr auto kInPlace = std::array{InPlace{"input", "output"}};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &input && kind == Kind::complex_to_real ? Access::update : declared;
  }
  /// The whole output if it is packed, else its first transform.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;

  /// Of an operation that checks out.
  [[nodiscard]] Layout input_layout() const noexcept;
  [[nodiscard]] Layout output_layout() const noexcept;
};

inline const Library kLibrary{&info_of<Transform>};

/// The extents of a transform, the slowest dimension first: {rows, columns}.
struct Extents {
  std::uint32_t rank = 0;  ///< more than kMaxRank is refused when the transform is submitted
  std::array<std::int64_t, kMaxRank> extent{};

  Extents() = default;
  Extents(std::initializer_list<std::int64_t> list)
      : rank(static_cast<std::uint32_t>(list.size())) {
    std::copy_n(list.begin(), std::min(list.size(), kMaxRank), extent.begin());
  }
};

}  // namespace troupe::fft

namespace troupe {

/// The shape of a batch of transforms.
struct FftOptions {
  fft::Extents extents;  ///< of the real side where there is one
  std::int64_t batch = 1;
  std::int64_t input_distance = 0;   ///< elements from one transform to the next; 0: packed
  std::int64_t output_distance = 0;  ///< the same for the output
};

/// Fourier transforms on one device; from `fft::on(device)`. See fft::Transform for layout and
/// alignment, and fft::Kind for the formulas. Errors: invalid (shape or operands), unsupported (the
/// engine has no FFT library, or that library no such transform), out_of_memory.
class Fft {
 public:
  explicit Fft(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// y may be x.
  template <Real T>
  Future<void> forward(const GpuRef<std::complex<T>>& x, const GpuRef<std::complex<T>>& y,
                       const FftOptions& shape) {
    return transform(fft::Kind::forward, dtype_of<std::complex<T>>, x.operand(), y.operand(),
                     shape);
  }
  /// y may be x. Not normalised: forward and then inverse multiplies by the length of a transform.
  template <Real T>
  Future<void> inverse(const GpuRef<std::complex<T>>& x, const GpuRef<std::complex<T>>& y,
                       const FftOptions& shape) {
    return transform(fft::Kind::inverse, dtype_of<std::complex<T>>, x.operand(), y.operand(),
                     shape);
  }
  /// y has n / 2 + 1 elements in the last dimension, of extent n.
  template <Real T>
  Future<void> real_to_complex(const GpuRef<T>& x, const GpuRef<std::complex<T>>& y,
                               const FftOptions& shape) {
    return transform(fft::Kind::real_to_complex, dtype_of<std::complex<T>>, x.operand(),
                     y.operand(), shape);
  }
  /// x has n / 2 + 1 elements in the last dimension, of extent n, and is destroyed. Not normalised.
  template <Real T>
  Future<void> complex_to_real(const GpuRef<std::complex<T>>& x, const GpuRef<T>& y,
                               const FftOptions& shape) {
    return transform(fft::Kind::complex_to_real, dtype_of<std::complex<T>>, x.operand(),
                     y.operand(), shape);
  }

 private:
  Future<void> transform(fft::Kind kind, DType dtype, const Operand& x, const Operand& y,
                         const FftOptions& shape) {
    return detail::submit(
        *submitter_,
        fft::Transform{dtype, kind, shape.extents.rank, shape.extents.extent, shape.batch,
                       shape.input_distance, shape.output_distance, x, y});
  }
  detail::Submitter* submitter_;
};

namespace fft {
template <class D>
Fft on(D&& device) {
  return Fft(device.submitter());
}
}  // namespace fft

}  // namespace troupe

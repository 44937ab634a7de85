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

/// Where one side of a batch lies, in elements of its own dtype; the defaults are a packed batch,
/// row-major: the last dimension varies fastest. Element (i, j, k) of transform b lies at
/// b * distance + ((i * stored[1] + j) * stored[2] + k) * stride, as with cufftPlanMany's istride,
/// idist and inembed.
struct Storage {
  std::int64_t distance = 0;  ///< from one transform to the next; 0: as far as one needs
  std::int64_t stride = 0;    ///< from one element of the last dimension to the next; 0: 1
  /// The extents of the array that a transform is the first part of; 0: those of the transform.
  /// The first one decides nothing but the distance.
  std::array<std::int64_t, kMaxRank> stored{};
};

/// How one side of a batch lies in memory, in elements of its own dtype.
struct Layout {
  DType dtype{};            ///< of its numbers, where f16 and bf16 are the parts of complex ones
  std::uint32_t bytes = 0;  ///< of an element
  std::uint32_t rank = 0;
  std::array<std::int64_t, kMaxRank> extents{};  ///< that are transformed; 1 beyond the rank
  std::array<std::int64_t, kMaxRank> stored{};   ///< as in Storage, without zeros
  std::array<std::int64_t, kMaxRank> pitch{};    ///< from one element of a dimension to the next
  std::int64_t distance = 0;                     ///< from the start of one to that of the next

  friend bool operator==(const Layout&, const Layout&) = default;
  /// Elements of one transform.
  [[nodiscard]] std::int64_t volume() const noexcept {
    return extents[0] * extents[1] * extents[2];
  }
  /// Elements from the start of one transform to the end of its last element.
  [[nodiscard]] std::int64_t length() const noexcept;
  /// The same of a batch.
  [[nodiscard]] std::int64_t span(std::int64_t batch) const noexcept {
    return batch == 0 ? 0 : (batch - 1) * distance + length();
  }
  /// Whether no two elements of a batch lie in one place, as far as that is easily seen: each
  /// dimension steps over all that the finer ones cover.
  [[nodiscard]] bool apart(std::int64_t batch) const noexcept;
};

/// Bytes of a complex element of a transform's dtype.
constexpr std::size_t complex_bytes(DType dtype) noexcept {
  return size_of(dtype) * (dtype == DType::f16 || dtype == DType::bf16 ? 2 : 1);
}

/// A batch of transforms of one shape. dtype is that of the complex side: c64 with f32, c128 with
/// f64. With f16 and bf16 it is that of both sides: a complex element is two numbers, the real part
/// first. Then extents are powers of two, and elements of a real side have stride 1; other shapes
/// are `unsupported`, as they are with cuFFT. The cpu engine computes these in f32.
///
/// Elements that belong to no transform are not touched. Transforms may share elements of an
/// input that is only read.
///
/// Both operands begin at a multiple of the complex element's size. input may be output where each
/// element of a row begins where the same one of the output's row does: complex sides have the
/// same storage; of the others both have stride 1, and rows, planes and transforms of the real
/// side are twice as far apart as those of the complex one. complex_to_real destroys its input.
struct Transform {
  static constexpr std::string_view kName = "fft.transform";
  static constexpr DTypes kDTypes = DTypes::of({DType::c64, DType::c128, DType::f16, DType::bf16});
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Kind kind{};
  std::uint32_t rank = 0;  ///< 1 to 3
  std::array<std::int64_t, kMaxRank>
      extents{};           ///< of the real side where there is one; 0 beyond rank
  std::int64_t batch = 0;  ///< how many transforms; may be 0
  Storage input_storage, output_storage;
  Operand input, output;

  static constexpr std::array kOperands{read("input", &Transform::input),
                                        write("output", &Transform::output)};
  static constexpr auto kInPlace = std::array{InPlace{"input", "output"}};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &input && kind == Kind::complex_to_real ? Access::update : declared;
  }
  /// The whole output if its batch has no gaps, else its first transform, or its first row.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;

  /// The layouts of an operation that checks out.
  [[nodiscard]] Layout input_layout() const noexcept;
  [[nodiscard]] Layout output_layout() const noexcept;
};

/// All of them; whoever includes this header knows them.
using Operations = List<Transform>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

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
  fft::Storage input = {};
  fft::Storage output = {};
};

/// Types whose complex numbers are pairs of elements.
template <class T>
concept PairedReal = std::same_as<T, Half> || std::same_as<T, BFloat16>;

/// Fourier transforms on one device; from `device.fft()`. See fft::Transform for layout and
/// alignment, and fft::Kind for the formulas. Errors: invalid (shape or operands), unsupported (the
/// engine has no FFT library, or that library no such transform), out_of_memory.
template <class Refs>
class BasicFft {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  explicit BasicFft(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// y may be x.
  template <RealElement T>
  Future<void> forward(const Ref<std::complex<T>>& x, const Ref<std::complex<T>>& y,
                       const FftOptions& shape) const {
    return transform(fft::Kind::forward, dtype_of<std::complex<T>>, x.operand(), y.operand(),
                     shape);
  }
  /// y may be x. Not normalised: forward and then inverse multiplies by the length of a transform.
  template <RealElement T>
  Future<void> inverse(const Ref<std::complex<T>>& x, const Ref<std::complex<T>>& y,
                       const FftOptions& shape) const {
    return transform(fft::Kind::inverse, dtype_of<std::complex<T>>, x.operand(), y.operand(),
                     shape);
  }
  /// y has n / 2 + 1 elements in the last dimension, of extent n.
  template <RealElement T>
  Future<void> real_to_complex(const Ref<T>& x, const Ref<std::complex<T>>& y,
                               const FftOptions& shape) const {
    return transform(fft::Kind::real_to_complex, dtype_of<std::complex<T>>, x.operand(),
                     y.operand(), shape);
  }
  /// x has n / 2 + 1 elements in the last dimension, of extent n, and is destroyed. Not normalised.
  template <RealElement T>
  Future<void> complex_to_real(const Ref<std::complex<T>>& x, const Ref<T>& y,
                               const FftOptions& shape) const {
    return transform(fft::Kind::complex_to_real, dtype_of<std::complex<T>>, x.operand(),
                     y.operand(), shape);
  }
  /// real_to_complex where x lies; there is the transform afterwards, two reals for an element.
  /// Rows of extent n are 2 (n / 2 + 1) reals apart, which is also what the shape's storage says if
  /// it says nothing.
  template <RealElement T>
  Future<void> real_to_complex_in_place(const Ref<T>& x, const FftOptions& shape) const {
    return transform(fft::Kind::real_to_complex, dtype_of<std::complex<T>>, x.operand(),
                     x.operand(), with_room(shape, &FftOptions::input));
  }
  /// complex_to_real where x lies, as real_to_complex_in_place() has left it.
  template <RealElement T>
  Future<void> complex_to_real_in_place(const Ref<T>& x, const FftOptions& shape) const {
    return transform(fft::Kind::complex_to_real, dtype_of<std::complex<T>>, x.operand(),
                     x.operand(), with_room(shape, &FftOptions::output));
  }

  /// Transforms pairs of f16 or bf16: x and y hold twice as many elements as they hold complex
  /// numbers. The extents are powers of two. Lengths, strides and distances of storage count
  /// complex numbers.
  template <PairedReal T>
  Future<void> forward(const Ref<T>& x, const Ref<T>& y, const FftOptions& shape) const {
    return transform(fft::Kind::forward, dtype_of<T>, x.operand(), y.operand(), shape);
  }
  template <PairedReal T>
  Future<void> inverse(const Ref<T>& x, const Ref<T>& y, const FftOptions& shape) const {
    return transform(fft::Kind::inverse, dtype_of<T>, x.operand(), y.operand(), shape);
  }
  /// x is real, y holds pairs.
  template <PairedReal T>
  Future<void> real_to_complex(const Ref<T>& x, const Ref<T>& y, const FftOptions& shape) const {
    return transform(fft::Kind::real_to_complex, dtype_of<T>, x.operand(), y.operand(), shape);
  }
  /// x holds pairs, and is destroyed; y is real.
  template <PairedReal T>
  Future<void> complex_to_real(const Ref<T>& x, const Ref<T>& y, const FftOptions& shape) const {
    return transform(fft::Kind::complex_to_real, dtype_of<T>, x.operand(), y.operand(), shape);
  }

 private:
  /// The real side's rows get room for those of the complex one.
  static FftOptions with_room(FftOptions shape, fft::Storage FftOptions::*real) {
    auto& stored = (shape.*real).stored;
    const auto last = static_cast<std::size_t>(shape.extents.rank) - 1;
    if (last < fft::kMaxRank && stored[last] == 0)
      stored[last] = (shape.extents.extent[last] / 2 + 1) * 2;
    return shape;
  }
  Future<void> transform(fft::Kind kind, DType dtype, const Operand& x, const Operand& y,
                         const FftOptions& shape) const {
    return detail::submit(*submitter_,
                          fft::Transform{dtype, kind, shape.extents.rank, shape.extents.extent,
                                         shape.batch, shape.input, shape.output, x, y});
  }
  detail::Submitter* submitter_;
};

using Fft = BasicFft<LocalRefs>;

namespace fft {
/// The library's operations on a Device, on what Device::prepare() gives, or on a RemoteDevice.
template <class D>
BasicFft<RefsOf<D>> on(D&& device) {
  return BasicFft<RefsOf<D>>(device.submitter());
}
}  // namespace fft

}  // namespace troupe

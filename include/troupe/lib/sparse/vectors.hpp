#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Operations on a sparse and a dense vector, by cuSPARSE's names. The sparse one has `count`
/// elements: x[i] is its element index[i]. The indices are distinct and below `length`, which is
/// how many elements the dense vector y has; they may stand in any order, and are i32 or i64
/// (`index_dtype`). The cpu engine leaves out elements whose index is out of range; the cuda engine
/// does not look: there the device may be lost. With an index that occurs twice nothing is said
/// about the element that it names.
///
/// cuda engine: own kernels, because cuSPARSE's are deprecated.
namespace troupe::sparse {

/// destination[i] = source[index[i]], i < count; indices i32 or i64. Nobody looks whether they are
/// below source_length: with others the device may be lost.
struct Gather {
  static constexpr std::string_view kName = "sparse.gather";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t count = 0, source_length = 0;
  Operand index, source, destination;

  static constexpr std::array kOperands{read("index", &Gather::index),
                                        read("source", &Gather::source),
                                        write("destination", &Gather::destination)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(count) * size_of(dtype);
  }
};

/// y[index[i]] = x[i]. The other elements of y stay as they are.
struct Scatter {
  static constexpr std::string_view kName = "sparse.scatter";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t count = 0, length = 0;
  Operand index, x, y;

  static constexpr std::array kOperands{read("index", &Scatter::index), read("x", &Scatter::x),
                                        update("y", &Scatter::y)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
};

/// y = alpha x + beta y, for all elements of y. y is not read where beta is 0.
struct Axpby {
  static constexpr std::string_view kName = "sparse.axpby";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t count = 0, length = 0;
  Scalar alpha, beta;
  Operand index, x, y;

  static constexpr std::array kOperands{read("alpha", &Axpby::alpha), read("beta", &Axpby::beta),
                                        read("index", &Axpby::index), read("x", &Axpby::x),
                                        update("y", &Axpby::y)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  /// With beta = 0 given by value, what stood in y is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(length) * size_of(dtype);
  }
};

/// A rotation of the points (x[i], y_i), y_i being y[index[i]], as blas::Rot's:
/// (x[i], y_i) = (c x[i] + s y_i, c y_i - conj(s) x[i])
struct Rot {
  static constexpr std::string_view kName = "sparse.rot";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t count = 0, length = 0;
  Scalar c;  ///< of real_type(dtype)
  Scalar s;
  Operand index, x, y;

  static constexpr std::array kOperands{read("c", &Rot::c), read("s", &Rot::s),
                                        read("index", &Rot::index), update("x", &Rot::x),
                                        update("y", &Rot::y)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
};

/// result[0] = the sum of x[i] y[index[i]], the elements of x conjugated or as they are. The same
/// inputs give the same bits in every run.
struct Spvv {
  static constexpr std::string_view kName = "sparse.spvv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  blas::Conjugate conjugate{};
  std::uint32_t reserved = 0;
  std::int64_t count = 0, length = 0;
  Operand index, x, y, result;

  static constexpr std::array kOperands{read("index", &Spvv::index), read("x", &Spvv::x),
                                        read("y", &Spvv::y), write("result", &Spvv::result)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return size_of(dtype); }
};

}  // namespace troupe::sparse

namespace troupe {

/// Operations on a sparse vector, whose elements x[i] stand at the places index[i] of a vector, and
/// a dense one, y: see <troupe/lib/sparse/vectors.hpp>. Errors: invalid, those of any command.
template <class Refs>
class SparseVectors : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// destination[i] = source[index[i]]
  template <FieldElement T, IndexElement I>
  Future<void> gather(const Ref<T>& source, const Ref<I>& index, const Ref<T>& destination) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Gather{dtype_of<T>, dtype_of<I>, index.length(), source.length(), index.operand(),
                       source.operand(), destination.operand()},
        {{"destination", destination.length(), index.length()}});
  }
  /// y[index[i]] = x[i]
  template <FieldElement T, IndexElement I>
  Future<void> scatter(const Ref<T>& x, const Ref<I>& index, const Ref<T>& y) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Scatter{dtype_of<T>, dtype_of<I>, index.length(), y.length(), index.operand(),
                        x.operand(), y.operand()},
        {{"x", x.length(), index.length()}});
  }
  /// y = alpha x + beta y
  template <FieldElement T, IndexElement I>
  Future<void> axpby(ScalarArgument<T> alpha, const Ref<T>& x, const Ref<I>& index,
                     ScalarArgument<T> beta, const Ref<T>& y) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Axpby{dtype_of<T>, dtype_of<I>, index.length(), y.length(), alpha.wire(),
                      beta.wire(), index.operand(), x.operand(), y.operand()},
        {{"x", x.length(), index.length()}});
  }
  /// A rotation of the points (x[i], y[index[i]]): see sparse::Rot.
  template <FieldElement T, IndexElement I>
  Future<void> rot(const Ref<T>& x, const Ref<I>& index, const Ref<T>& y,
                   ScalarArgument<RealOf<T>> c, ScalarArgument<T> s) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Rot{dtype_of<T>, dtype_of<I>, index.length(), y.length(), c.wire(), s.wire(),
                    index.operand(), x.operand(), y.operand()},
        {{"x", x.length(), index.length()}});
  }
  /// result[0] = the sum of x[i] y[index[i]], the elements of x conjugated or as they are.
  template <FieldElement T, IndexElement I>
  Future<void> spvv(const Ref<T>& x, const Ref<I>& index, const Ref<T>& y, const Ref<T>& result,
                    blas::Conjugate conjugate = blas::Conjugate::no) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Spvv{dtype_of<T>, dtype_of<I>, conjugate, 0, index.length(), y.length(),
                     index.operand(), x.operand(), y.operand(), result.operand()},
        {{"x", x.length(), index.length()}, {"result", result.length(), 1}});
  }
};

}  // namespace troupe

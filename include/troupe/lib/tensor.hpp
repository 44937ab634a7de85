#pragma once

#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/lib/submit.hpp>
#include <troupe/lib/tensor/blocks.hpp>
#include <troupe/lib/tensor/operations.hpp>

/// Calls on tensors of any number of dimensions: contractions, sums along dimensions, permutations
/// and elementwise functions.
namespace troupe::tensor {

// What calls become. The modes are those of the terms; `c` names the tensor that is added, which
// must lie as the result does. Errors: invalid, with the name of the operation.

Result<Contract> contraction(const Term& a, const Term& b, const Term& c, const Term& d);
/// Of a product that contraction() gives; its result need not be more than a place.
TuneContract tuning(const Contract& product);
Result<ContractTrinary> contraction(const Term& a, const Term& b, const Term& c, const Term& d,
                                    const Term& e);
Result<Reduce> reduction(const Term& a, const Term& c, const Term& d);
Result<Permute> permutation(const Term& a, const Term& b);
Result<ElementwiseBinary> elementwise(const Term& a, const Term& c, const Term& d);
Result<ElementwiseTrinary> elementwise(const Term& a, const Term& b, const Term& c, const Term& d);

/// The operations that an expression of einsum() takes, one after another.
struct Einsum {
  std::vector<Reduce> sums;  ///< of modes that only one operand has
  std::variant<Permute, Reduce, Contract, ContractTrinary> last;
};
/// Operands are of one type; `scratch`: see Tensors::einsum(). Errors: invalid.
Result<Einsum> einsum_of(std::string_view subscripts, std::span<const Term> operands,
                         const Term& output, const Operand& scratch);

/// How Tensors::tune_contract() measures.
struct TuneOptions {
  std::uint32_t candidates = 16;  ///< at most so many kernels, those first that a model prefers
  std::uint32_t repeats = 10;     ///< of each, three times
  bool again = false;             ///< measure also what has been measured before
};

template <class T>
concept Computable = FieldElement<T> || NarrowElement<T>;
template <class D, class A, class B>
concept ProductOf = Computable<D> && multiplies(dtype_of<A>, dtype_of<B>, dtype_of<D>);
template <class D, class T>
concept CombinedOf = Computable<D> && combines(dtype_of<T>, dtype_of<D>);
/// A factor of tensors of T.
template <class T>
using Factor = ScalarOf<GpuRef<ScalarTypeOf<T>>>;
/// A term from which T is not deduced.
template <class T>
using Other = std::type_identity_t<TermOf<T>>;

}  // namespace troupe::tensor

namespace troupe {

/// Tensors on one device; from `tensor::on(device)`. Terms are views with names for their modes:
///
///     const tensor::View a(x, {m, k}), b(y, {k, n}), c(z, {m, n});
///     tensor::on(device).contract(1.0f, a("mk"), b("kn"), 0.0f, c("mn"));
///
/// See <troupe/lib/tensor/operations.hpp> for the formulas. Where a call has no tensor to add, it
/// adds to the result, and does not read it if the factor is 0 and a value. The first call of a
/// shape makes a plan, which takes up to milliseconds. Errors: invalid (modes, extents or operands
/// that do not fit), unsupported (the library is not installed, or has no such operation),
/// out_of_memory.
class Tensors {
 public:
  explicit Tensors(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// D = alpha A B + beta C. All are of one type, or A or B is of f64 and the others of c128.
  template <tensor::Computable A, tensor::Computable B, tensor::ProductOf<A, B> D>
  Future<void> contract(tensor::Factor<D> alpha, const tensor::TermOf<A>& a,
                        const tensor::TermOf<B>& b, tensor::Factor<D> beta,
                        const tensor::TermOf<D>& c, const tensor::TermOf<D>& d,
                        const tensor::ContractOptions& options = {}) const {
    auto op = product(a, b, c, d, options);
    return submit(op, alpha, beta, &tensor::Contract::c);
  }
  /// D = alpha A B + beta D
  template <tensor::Computable A, tensor::Computable B, tensor::ProductOf<A, B> D>
  Future<void> contract(tensor::Factor<D> alpha, const tensor::TermOf<A>& a,
                        const tensor::TermOf<B>& b, tensor::Factor<D> beta,
                        const tensor::TermOf<D>& d,
                        const tensor::ContractOptions& options = {}) const {
    return contract(alpha, a, b, beta, d, d, options);
  }
  /// D = A B
  template <tensor::Computable A, tensor::Computable B, tensor::ProductOf<A, B> D>
  Future<void> contract(const tensor::TermOf<A>& a, const tensor::TermOf<B>& b,
                        const tensor::TermOf<D>& d,
                        const tensor::ContractOptions& options = {}) const {
    return contract(ScalarTypeOf<D>(1), a, b, ScalarTypeOf<D>(0), d, options);
  }

  /// Which kernel computes D = A B fastest, for the options of such a product; D is left alone. See
  /// tensor::TuneContract. Takes up to seconds. What is measured depends on the extents, strides
  /// and types, on where the tensors lie modulo 256 bytes, and on the options: with a kernel that
  /// is compiled among them, one is compiled.
  template <tensor::Computable A, tensor::Computable B, tensor::ProductOf<A, B> D>
  Future<tensor::ContractTuning> tune_contract(const tensor::TermOf<A>& a,
                                               const tensor::TermOf<B>& b,
                                               const tensor::TermOf<D>& d,
                                               const tensor::ContractOptions& options = {},
                                               const tensor::TuneOptions& how = {}) const {
    const auto product = this->product(a, b, d, d, options);
    if (!product.ok())
      return submitter_->refuse(product.error()).then([] { return tensor::ContractTuning{}; });
    auto op = tensor::tuning(*product);
    op.candidates = how.candidates, op.repeats = how.repeats, op.again = how.again ? 1 : 0;
    return detail::submit_for_value<tensor::ContractTuning>(*submitter_, op);
  }

  /// E = alpha A B C + beta D
  template <tensor::Computable T>
  Future<void> contract_trinary(tensor::Factor<T> alpha, const tensor::TermOf<T>& a,
                                const tensor::TermOf<T>& b, const tensor::TermOf<T>& c,
                                tensor::Factor<T> beta, const tensor::TermOf<T>& d,
                                const tensor::TermOf<T>& e,
                                tensor::Compute compute = tensor::Compute::standard) const {
    auto op = tensor::contraction(a, b, c, d, e);
    if (op.ok()) op->compute = compute;
    return submit(op, alpha, beta, &tensor::ContractTrinary::d);
  }
  /// E = A B C
  template <tensor::Computable T>
  Future<void> contract_trinary(const tensor::TermOf<T>& a, const tensor::TermOf<T>& b,
                                const tensor::TermOf<T>& c, const tensor::TermOf<T>& e,
                                tensor::Compute compute = tensor::Compute::standard) const {
    return contract_trinary<T>(ScalarTypeOf<T>(1), a, b, c, ScalarTypeOf<T>(0), e, e, compute);
  }

  /// D = alpha A B + beta D for tensors of which only some blocks are stored; see
  /// tensor::ContractBlockSparse. Blocks of D that are not stored are not computed.
  template <FieldElement T>
  Future<void> contract_block_sparse(ScalarOf<GpuRef<T>> alpha, const tensor::BlockTermOf<T>& a,
                                     const tensor::BlockTermOf<T>& b, ScalarOf<GpuRef<T>> beta,
                                     const tensor::BlockTermOf<T>& d) const {
    auto product = tensor::contraction(a, b, d);
    if (!product.ok()) return submitter_->refuse(product.error());
    product->op.alpha = alpha.wire(), product->op.beta = beta.wire();
    Parts parts;
    parts.data = product->data;
    return detail::submit(*submitter_, product->op, parts);
  }
  /// D = A B
  template <FieldElement T>
  Future<void> contract_block_sparse(const tensor::BlockTermOf<T>& a,
                                     const tensor::BlockTermOf<T>& b,
                                     const tensor::BlockTermOf<T>& d) const {
    return contract_block_sparse(T(1), a, b, T(0), d);
  }

  /// D = alpha R(A) + beta C, where R reduces along the modes that D does not have.
  template <tensor::Computable T>
  Future<void> reduce(tensor::Binary reduction, tensor::Factor<T> alpha, const tensor::TermOf<T>& a,
                      tensor::Factor<T> beta, const tensor::TermOf<T>& c,
                      const tensor::TermOf<T>& d) const {
    auto op = tensor::reduction(a, c, d);
    if (op.ok()) op->reduction = reduction;
    return submit(op, alpha, beta, &tensor::Reduce::c);
  }
  /// D = R(A)
  template <tensor::Computable T>
  Future<void> reduce(tensor::Binary reduction, const tensor::TermOf<T>& a,
                      const tensor::TermOf<T>& d) const {
    return reduce<T>(reduction, ScalarTypeOf<T>(1), a, ScalarTypeOf<T>(0), d, d);
  }

  /// B = alpha A. The types may differ: see tensor::converts(); alpha is of the wider one.
  template <tensor::Computable A, tensor::Computable B>
  requires(tensor::converts(dtype_of<A>, dtype_of<B>)) Future<void> permute(
      tensor::Factor<std::conditional_t<(sizeof(A) < sizeof(B)), B, A>> alpha,
      const tensor::TermOf<A>& a, const tensor::TermOf<B>& b)
  const {
    auto op = tensor::permutation(a, b);
    if (op.ok()) op->alpha = alpha.wire();
    return submit(op);
  }
  /// B = A
  template <tensor::Computable A, tensor::Computable B>
  requires(tensor::converts(dtype_of<A>,
                            dtype_of<B>)) Future<void> permute(const tensor::TermOf<A>& a,
                                                               const tensor::TermOf<B>& b)
  const {
    return permute(ScalarTypeOf<std::conditional_t<(sizeof(A) < sizeof(B)), B, A>>(1), a, b);
  }

  /// D = f(alpha A, gamma C). C and D may be of half the bits that elements of A have.
  template <tensor::Computable T, tensor::CombinedOf<T> D>
  Future<void> elementwise(tensor::Binary f, tensor::Factor<T> alpha, const tensor::TermOf<T>& a,
                           tensor::Factor<T> gamma, const tensor::TermOf<D>& c,
                           const tensor::TermOf<D>& d) const {
    auto op = tensor::elementwise(a, c, d);
    if (op.ok()) op->function = f, op->alpha = alpha.wire(), op->gamma = gamma.wire();
    return submit(op);
  }
  /// D = g(f(alpha A, beta B), gamma C). C and D may be of half the bits that those of A and B
  /// have.
  template <tensor::Computable T, tensor::CombinedOf<T> D>
  Future<void> elementwise(tensor::Binary f, tensor::Binary g, tensor::Factor<T> alpha,
                           const tensor::TermOf<T>& a, tensor::Factor<T> beta,
                           const tensor::TermOf<T>& b, tensor::Factor<T> gamma,
                           const tensor::TermOf<D>& c, const tensor::TermOf<D>& d) const {
    auto op = tensor::elementwise(a, b, c, d);
    if (op.ok()) {
      op->function_ab = f, op->function_abc = g;
      op->alpha = alpha.wire(), op->beta = beta.wire(), op->gamma = gamma.wire();
    }
    return submit(op);
  }

  /// `einsum("mk,kn->mn", {a, b}, c)`: of one to three operands the sum over all letters that the
  /// output does not have, as numpy.einsum
  /// (https://numpy.org/doc/stable/reference/generated/numpy.einsum.html) defines it; without an
  /// arrow the output has those letters that occur once, in alphabetical order, behind the ellipsis
  /// if there is one. An ellipsis stands for the dimensions of an operand that have no letter;
  /// those of several operands are told alike by counting from the last one, and errors number them
  /// so. An operand that has one element along a mode is repeated along it where others have more.
  ///
  /// Where there are more operands than one, a letter that only one of them has and the output does
  /// not is summed up first, into `scratch`: this must hold as many elements as are left of such
  /// operands, each rounded up to a multiple of 256 bytes.
  template <tensor::Computable T>
  Future<void> einsum(std::string_view subscripts, std::initializer_list<tensor::View<T>> operands,
                      const tensor::View<T>& output,
                      const GpuRef<std::type_identity_t<T>>& scratch = {},
                      const tensor::ContractOptions& options = {}) const {
    std::vector<tensor::Term> terms;
    for (const auto& view : operands) terms.push_back(view({}));
    auto steps = tensor::einsum_of(subscripts, terms, output({}), scratch.operand());
    if (!steps.ok()) return submitter_->refuse(steps.error());
    const auto one = Scalar::of(ScalarTypeOf<T>(1)), zero = Scalar::of(ScalarTypeOf<T>(0));
    for (auto& sum : steps->sums) {
      sum.alpha = one, sum.beta = zero;
      detail::submit(*submitter_, sum);
    }
    return std::visit(
        [&](auto& op) {
          op.alpha = one;
          if constexpr (requires { op.beta; }) op.beta = zero;
          if constexpr (requires { op.compute; }) op.compute = options.compute;
          if constexpr (requires { op.algorithm; }) op.algorithm = options.algorithm;
          return detail::submit(*submitter_, op);
        },
        steps->last);
  }

 private:
  static Result<tensor::Contract> product(const tensor::Term& a, const tensor::Term& b,
                                          const tensor::Term& c, const tensor::Term& d,
                                          const tensor::ContractOptions& options) {
    auto op = tensor::contraction(a, b, c, d);
    if (op.ok()) op->compute = options.compute, op->algorithm = options.algorithm;
    return op;
  }
  template <class Op>
  Future<void> submit(const Result<Op>& op) const {
    return op.ok() ? detail::submit(*submitter_, *op) : submitter_->refuse(op.error());
  }
  template <class Op, class Ref>
  Future<void> submit(Result<Op>& op, const BasicScalarArg<Ref>& alpha,
                      const BasicScalarArg<Ref>& beta, Operand Op::*addend) const {
    if (op.ok()) {
      op->alpha = alpha.wire(), op->beta = beta.wire();
      // A parameter may be another number in each run.
      const bool is_value = !beta.wire().device.present() && beta.wire().device.reserved == 0;
      if (is_value && beta.wire().is_zero(scalar_type(op->dtype))) (*op).*addend = {};
    }
    return submit(op);
  }
  detail::Submitter* submitter_;
};

namespace tensor {
/// The library's operations on a Device, or on what Device::prepare() gives.
template <class D>
Tensors on(D&& device) {
  return Tensors(device.submitter());
}
}  // namespace tensor

}  // namespace troupe

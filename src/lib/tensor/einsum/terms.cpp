#include <algorithm>
#include <bit>
#include <string>

#include <troupe/lib/tensor.hpp>

// How the modes of a call's terms, which have names, become the numbered ones of an operation.

namespace troupe::tensor {
namespace {

std::string name_of(std::int32_t mode) {
  const bool is_letter = (mode >= 'a' && mode <= 'z') || (mode >= 'A' && mode <= 'Z');
  return is_letter ? std::string{'\'', static_cast<char>(mode), '\''} : std::to_string(mode);
}

/// The strides of a term, with those of a tensor that has no gaps where it names none, or where it
/// has no elements: then no stride counts.
PerMode strides_of(const Term& term) {
  const auto* const extents = term.extents.value.data();
  const bool is_empty =
      std::find(extents, extents + term.extents.count, 0) != extents + term.extents.count;
  if (term.strides.count > 0 && !is_empty) return term.strides.value;
  PerMode strides{};
  std::int64_t stride = 1;
  for (auto i = term.extents.count; i-- > 0;) {
    strides[i] = stride;
    const auto extent = is_empty ? 1 : extents[i];
    if (__builtin_mul_overflow(stride, extent, &stride)) stride = -1;  // is refused
  }
  return strides;
}

/// Brings the modes of the tensors of one operation together.
template <std::size_t Tensors>
class Joint {
 public:
  explicit Joint(std::string_view operation) : operation_(operation) {}

  /// A tensor's modes. Of a result each stands once.
  void add(std::size_t tensor, const char* name, const Term& term, bool is_result = false) {
    PerTensor own;
    if (!read(name, term, is_result, own)) return;
    for (std::size_t i = 0; i < count_; ++i) all_[i].strides[tensor] = own[i];
  }
  /// What is added to tensor `as`, and has to lie as that does.
  void add_like(std::size_t as, const char* name, const Term& term) {
    PerTensor own;
    if (!read(name, term, true, own)) return;
    for (std::size_t i = 0; i < count_; ++i) {
      if (own[i] != all_[i].strides[as] && all_[i].extent > 1)
        return refuse(std::string(name) + " does not lie as the result does");
    }
  }

  /// The modes of other than one element.
  [[nodiscard]] Result<Loops<Tensors>> loops() const {
    if (!error_.ok()) return error_.error();
    Loops<Tensors> loops;
    for (std::size_t i = 0; i < count_; ++i) {
      if (all_[i].extent == 1) continue;
      const auto at = static_cast<std::size_t>(loops.count++);
      if (at == kMaxModes) return error_of("more than " + std::to_string(kMaxModes) + " modes");
      loops.extents[at] = all_[i].extent;
      for (std::size_t k = 0; k < Tensors; ++k) loops.strides[k][at] = all_[i].strides[k];
    }
    return loops;
  }

 private:
  /// All tensors together, one that is added among them.
  static constexpr std::size_t kMost = (Tensors + 1) * kMaxModes;
  using PerTensor = std::array<std::int64_t, kMost>;
  struct Mode {
    std::int32_t name;
    std::int64_t extent;
    std::array<std::int64_t, Tensors> strides;
  };

  /// `own`: the tensor's strides of all modes that are known then.
  bool read(const std::string& name, const Term& term, bool once, PerTensor& own) {
    std::fill_n(own.begin(), count_, 0);
    const auto modes = term.modes.count;
    if (modes > kMaxModes || term.extents.count > kMaxModes)
      return refuse(name + " has more than " + std::to_string(kMaxModes) + " dimensions"), false;
    if (modes != term.extents.count)
      return refuse(name + " has " + std::to_string(term.extents.count) + " extents and " +
                    std::to_string(modes) + " modes"),
             false;
    if (term.strides.count > 0 && term.strides.count != term.extents.count)
      return refuse(name + " has not as many strides as extents"), false;
    const auto strides = strides_of(term);
    for (std::size_t i = 0; i < modes && error_.ok(); ++i) {
      const auto extent = term.extents.value[i];
      if (extent < 0) return refuse(name + " has a negative extent"), false;
      if (strides[i] < 1) return refuse(name + " has a stride that is not positive"), false;
      const auto known = count_;
      const auto at = place_of(term.modes.name[i], extent);
      if (count_ > known) own[at] = 0;
      if (all_[at].extent != extent)
        return refuse("mode " + name_of(term.modes.name[i]) + " has extents " +
                      std::to_string(all_[at].extent) + " and " + std::to_string(extent)),
               false;
      if (once && own[at] != 0)
        return refuse(name + " has mode " + name_of(term.modes.name[i]) + " twice"), false;
      if (__builtin_add_overflow(own[at], strides[i], &own[at]))
        return refuse(name + " is too large"), false;
    }
    return error_.ok();
  }
  std::size_t place_of(std::int32_t name, std::int64_t extent) {
    const auto end = all_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found =
        std::find_if(all_.begin(), end, [&](const Mode& mode) { return mode.name == name; });
    if (found == end) all_[count_++] = {name, extent, {}};
    return static_cast<std::size_t>(found - all_.begin());
  }
  [[nodiscard]] Error error_of(const std::string& what) const {
    return {Errc::invalid, 0, std::string(operation_) + ": " + what};
  }
  void refuse(const std::string& what) {
    if (error_.ok()) error_ = error_of(what);
  }

  std::string_view operation_;
  std::array<Mode, kMost> all_;  ///< of which the first count_ are set
  std::size_t count_ = 0;
  Result<void> error_;
};

}  // namespace

Result<Contract> contraction(const Term& a, const Term& b, const Term& c, const Term& d) {
  Joint<3> joint(Contract::kName);
  joint.add(Contract::kA, "a", a);
  joint.add(Contract::kB, "b", b);
  joint.add(Contract::kD, "d", d, true);
  joint.add_like(Contract::kD, "c", c);
  const auto loops = joint.loops();
  if (!loops.ok()) return loops.error();
  Contract op;
  op.dtype = d.dtype, op.real = real_factor(a.dtype, b.dtype), op.loops = *loops;
  op.unary_a = a.unary, op.unary_b = b.unary;
  op.a = a.data, op.b = b.data, op.c = c.data, op.d = d.data;
  return op;
}

TuneContract tuning(const Contract& product) {
  constexpr std::uint64_t kMost = 256;  // all that a kernel asks for
  TuneContract op;
  op.dtype = product.dtype, op.product = product, op.a = product.a, op.b = product.b;
  op.alignment_d = 1u << std::countr_zero(product.d.offset | kMost);
  op.product.alpha = op.product.beta = {};
  op.product.a = op.product.b = op.product.c = op.product.d = {};
  return op;
}

Result<ContractTrinary> contraction(const Term& a, const Term& b, const Term& c, const Term& d,
                                    const Term& e) {
  Joint<4> joint(ContractTrinary::kName);
  joint.add(ContractTrinary::kA, "a", a);
  joint.add(ContractTrinary::kB, "b", b);
  joint.add(ContractTrinary::kC, "c", c);
  joint.add(ContractTrinary::kE, "e", e, true);
  joint.add_like(ContractTrinary::kE, "d", d);
  const auto loops = joint.loops();
  if (!loops.ok()) return loops.error();
  ContractTrinary op;
  op.dtype = e.dtype, op.loops = *loops;
  op.unary_a = a.unary, op.unary_b = b.unary, op.unary_c = c.unary;
  op.a = a.data, op.b = b.data, op.c = c.data, op.d = d.data, op.e = e.data;
  return op;
}

Result<Reduce> reduction(const Term& a, const Term& c, const Term& d) {
  Joint<2> joint(Reduce::kName);
  joint.add(Reduce::kA, "a", a);
  joint.add(Reduce::kD, "d", d, true);
  joint.add_like(Reduce::kD, "c", c);
  const auto loops = joint.loops();
  if (!loops.ok()) return loops.error();
  Reduce op;
  op.dtype = d.dtype, op.loops = *loops, op.unary_a = a.unary;
  op.a = a.data, op.c = c.data, op.d = d.data;
  return op;
}

Result<Permute> permutation(const Term& a, const Term& b) {
  Joint<2> joint(Permute::kName);
  joint.add(Permute::kA, "a", a);
  joint.add(Permute::kB, "b", b, true);
  const auto loops = joint.loops();
  if (!loops.ok()) return loops.error();
  Permute op;
  op.dtype = a.dtype, op.b_dtype = b.dtype, op.loops = *loops, op.unary_a = a.unary;
  op.a = a.data, op.b = b.data;
  return op;
}

Result<ElementwiseBinary> elementwise(const Term& a, const Term& c, const Term& d) {
  Joint<2> joint(ElementwiseBinary::kName);
  joint.add(ElementwiseBinary::kA, "a", a);
  joint.add(ElementwiseBinary::kD, "d", d, true);
  joint.add_like(ElementwiseBinary::kD, "c", c);
  const auto loops = joint.loops();
  if (!loops.ok()) return loops.error();
  ElementwiseBinary op;
  op.dtype = a.dtype, op.d_dtype = d.dtype, op.loops = *loops, op.unary_a = a.unary,
  op.unary_c = c.unary;
  op.a = a.data, op.c = c.data, op.d = d.data;
  return op;
}

Result<ElementwiseTrinary> elementwise(const Term& a, const Term& b, const Term& c, const Term& d) {
  Joint<3> joint(ElementwiseTrinary::kName);
  joint.add(ElementwiseTrinary::kA, "a", a);
  joint.add(ElementwiseTrinary::kB, "b", b);
  joint.add(ElementwiseTrinary::kD, "d", d, true);
  joint.add_like(ElementwiseTrinary::kD, "c", c);
  const auto loops = joint.loops();
  if (!loops.ok()) return loops.error();
  ElementwiseTrinary op;
  op.dtype = a.dtype, op.d_dtype = d.dtype, op.loops = *loops;
  op.unary_a = a.unary, op.unary_b = b.unary, op.unary_c = c.unary;
  op.a = a.data, op.b = b.data, op.c = c.data, op.d = d.data;
  return op;
}

}  // namespace troupe::tensor

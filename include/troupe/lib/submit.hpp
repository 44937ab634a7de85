#pragma once

#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <troupe/future.hpp>
#include <troupe/gpu_ref.hpp>
#include <troupe/lib/operation.hpp>
#include <troupe/lib/operation_info.hpp>
#include <troupe/parameter.hpp>

namespace troupe {

/// A scalar of an operation: a value, or one element in device memory that is read when the
/// operation runs. It names the element and does not own its buffer: the reference must live until
/// the operation is submitted (else Errc::stale), and need not afterwards, because memory is reused
/// only once every operation that names it has ended.
///
/// `Ref`: GpuRef<T>, or RemoteRef<T> for operations on another rank's device.
template <class Ref>
class BasicScalarArg {
 public:
  using T = typename Ref::value_type;
  BasicScalarArg(T value) : scalar_(Scalar::of(value)) {}
  BasicScalarArg(const Ref& element) { scalar_.device = element.slice(0, 1).operand(); }
  /// An absent element bears the parameter's number, of which only recordings take notice.
  BasicScalarArg(const Parameter<T>& parameter) : scalar_(Scalar::of(parameter.initial())) {
    scalar_.device.reserved = parameter.id();
  }
  [[nodiscard]] const Scalar& wire() const noexcept { return scalar_; }

 private:
  Scalar scalar_;
};

template <Element T>
using ScalarArg = BasicScalarArg<GpuRef<T>>;

/// A scalar argument as a parameter from which T is not deduced: `axpy(2.0, x, y)` takes its T from
/// the vectors.
template <class Ref>
using ScalarOf = std::type_identity_t<BasicScalarArg<Ref>>;

namespace detail {

/// True if the header that defines T has been included.
template <class T>
concept included = requires {
  sizeof(T);
};

/// What a collective belongs to; nothing: it is none.
struct Scope {
  Scope(std::uint32_t its_epoch = 0, std::uint32_t its_group = 0) noexcept
      : epoch(its_epoch), group(its_group) {}
  std::uint32_t epoch;
  std::uint32_t group;  ///< its number; 0: the world
};

/// What a command port needs to know of a command. `op`: the operation's bytes, aligned to 8; they
/// and the parts must outlive it.
struct CommandView {
  CommandView(const OperationInfo& its_info, std::span<const std::byte> its_op,
              const Parts& its_parts = {}, const Scope& its_scope = {}) noexcept;

  const OperationInfo* info;
  std::span<const std::byte> op;
  std::span<const TailOperand> tail;
  std::span<const std::byte> data;
  std::span<const InlineParameter> parameters;
  Scope scope;
  /// What transfers and other ranks want done: the epoch in which it may still be submitted; others
  /// 0. What has been submitted no longer depends on it.
  std::uint32_t within = 0;
  bool quiet = false;  ///< its failure is its submitter's alone: Device::take_error() is silent

  /// The operands that are present, without the tail's.
  [[nodiscard]] std::span<const OperandUse> uses() const noexcept {
    return {uses_.data(), use_count_};
  }

 private:
  std::array<OperandUse, OperationInfo::kMaxOperands> uses_{};
  std::size_t use_count_ = 0;
};

/// Memory that the device host writes and the rank reads, for the value of one command.
struct ResultCell {
  Operand where;
  const std::byte* data = nullptr;
  std::shared_ptr<void> lease;  ///< keeps it
};

/// Takes commands in program order. Any thread may submit; the order is that of the calls.
class Submitter {
 public:
  /// Never blocks for the GPU; blocks while the ring is full. An error is an already resolved
  /// future.
  virtual Future<void> submit(const CommandView& command) = 0;
  /// For a command that cannot even be submitted: the already resolved future of its error, which
  /// counts as that of any other command.
  virtual Future<void> refuse(Error error) = 0;
  /// As refuse(), for a collective.
  virtual Future<void> refuse_collective(Error error, const Scope&) {
    return refuse(std::move(error));
  }
  /// The name that the program gave the range's buffer, for error messages; empty if it gave none.
  [[nodiscard]] virtual std::string name_of(const Operand&) const { return {}; }
  /// A cell of so many bytes. Errors: out_of_memory; unsupported where no values come back.
  virtual Result<ResultCell> result_cell(std::size_t bytes);
  /// What a command names beside buffers: to be kept as long as it may run again.
  virtual void keep(std::shared_ptr<const void>) {}

 protected:
  ~Submitter() = default;
};

/// The error of a command that is refused, with the names that the program has given its operands.
Error with_names(Error error, const Submitter& submitter, const OperationInfo& info,
                 std::span<const std::byte> op);

/// Checks the operation and submits it. `op`: its bytes, aligned to 8.
Future<void> submit(Submitter& submitter, const OperationInfo& info, std::span<const std::byte> op,
                    const Parts& parts = {}, const Scope& scope = {});

template <Operation Op>
Future<void> submit(Submitter& submitter, const Op& op, const Parts& parts = {},
                    const Scope& scope = {}) {
  return submit(submitter, info_of<Op>, std::as_bytes(std::span(&op, 1)), parts, scope);
}

/// How long an argument is, and how long it must be.
struct Length {
  std::string_view name;
  std::int64_t is = 0, needed = 0;
};

/// For calls whose arguments must have certain lengths, or the same as one another, where the
/// operation itself needs that much and would leave the rest alone.
Future<void> submit_exact(Submitter& submitter, const OperationInfo& info,
                          std::span<const std::byte> op, std::span<const Length> lengths,
                          const Scope& scope, const Parts& parts = {});

template <Operation Op>
Future<void> submit_exact(Submitter& submitter, const Op& op, std::initializer_list<Length> lengths,
                          const Scope& scope = {}) {
  return submit_exact(submitter, info_of<Op>, std::as_bytes(std::span(&op, 1)),
                      {lengths.begin(), lengths.size()}, scope);
}

/// Calls `submit_it` with an operation that has been given a result cell, for what it writes there.
/// The value comes with the future: nothing else waits for the device.
template <class Value, Operation Op, class SubmitIt>
Future<Value> submit_with_cell(Submitter& submitter, Op op, const SubmitIt& submit_it) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const auto cell = submitter.result_cell(sizeof(Value));
  if (!cell.ok()) return then_at_once(submitter.refuse(cell.error()), [] { return Value{}; });
  op.*Op::kCell = cell->where;
  return then_at_once(submit_it(op), [cell = *cell] {
    Value value;
    std::memcpy(&value, cell.data, sizeof value);
    return value;
  });
}
template <class Value, Operation Op>
Future<Value> submit_for_value(Submitter& submitter, const Op& op, const Parts& parts = {}) {
  return submit_with_cell<Value>(submitter, op,
                                 [&](const Op& whole) { return submit(submitter, whole, parts); });
}
/// The same as submit_exact().
template <class Value, Operation Op>
Future<Value> submit_exact_for_value(Submitter& submitter, const Op& op,
                                     std::initializer_list<Length> lengths) {
  return submit_with_cell<Value>(
      submitter, op, [&](const Op& whole) { return submit_exact(submitter, whole, lengths); });
}

/// The calls of a family of operations.
class Calls {
 public:
  explicit Calls(Submitter& submitter) noexcept : submitter_(&submitter) {}

 protected:
  Submitter* submitter_;
};
/// The calls of a library: those of its families, side by side.
template <class... Families>
class CallsOf : public Families... {
 public:
  explicit CallsOf(Submitter& submitter) noexcept : Families(submitter)... {}
};

}  // namespace detail
}  // namespace troupe

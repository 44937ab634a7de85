#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string>

#include <troupe/future.hpp>
#include <troupe/gpu_ref.hpp>
#include <troupe/lib/operation.hpp>
#include <troupe/lib/overlap.hpp>

namespace troupe {

/// A factor of an operation: a value, or one element in device memory that is read when the
/// operation runs. It names the element and does not own its buffer: the reference must live until
/// the operation is submitted (else Errc::stale), and need not afterwards, because memory is reused
/// only once every operation that names it has ended.
///
/// `Ref`: GpuRef<T>, or RemoteRef<T> for operations on another rank's device.
template <class Ref>
class BasicScalarArg {
 public:
  using T = typename Ref::value_type;
  BasicScalarArg(T value) { scalar_.value = static_cast<double>(value); }
  BasicScalarArg(const Ref& element) { scalar_.device = element.slice(0, 1).operand(); }
  [[nodiscard]] const Scalar& wire() const noexcept { return scalar_; }

 private:
  Scalar scalar_;
};

template <Element T>
using ScalarArg = BasicScalarArg<GpuRef<T>>;

/// A scalar argument as a parameter from which T is not deduced: `axpy(2.0, x, y)` takes its T from
/// the vectors.
template <class Ref>
using FactorOf = std::type_identity_t<BasicScalarArg<Ref>>;

namespace detail {

/// What a command port needs to know of an operation, whatever its type.
struct CommandView {
  struct Use {
    const Operand* operand;
    Access access;
    std::string_view name = {};
  };
  static constexpr std::size_t kMaxOperands = 8;  ///< beside those in the tail

  std::uint32_t opcode = 0;
  std::uint32_t epoch = 0;  ///< collectives: the epoch they belong to; others 0
  /// What transfers and other ranks want done: the epoch in which it may still be submitted; others
  /// 0. What has been submitted no longer depends on it.
  std::uint32_t within = 0;
  std::uint64_t count = 0;  ///< elements, where the operation has such a field
  std::int32_t peer = -1;   ///< root or only partner of a collective, -1: none
  bool quiet = false;  ///< its failure is its submitter's alone: Device::take_error() is silent
  std::span<const std::byte> op;
  std::span<const PeerTransfer> tail;
  std::array<Use, kMaxOperands> uses{};
  std::size_t use_count = 0;
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

 protected:
  ~Submitter() = default;
};

/// Checks the operation and submits it.
template <Operation Op>
Future<void> submit(Submitter& submitter, const Op& op, std::span<const PeerTransfer> tail = {},
                    std::uint32_t epoch = 0) {
  if (const auto checked = op.check(); !checked) return submitter.refuse(checked.error());
  if (const auto apart = check_overlap(op, tail); !apart) return submitter.refuse(apart.error());
  CommandView view;
  view.opcode = opcode_of<Op>;
  view.epoch = epoch;
  view.op = std::as_bytes(std::span(&op, 1));
  view.tail = tail;
  if constexpr (requires { op.count; }) view.count = op.count;
  if constexpr (requires { op.root; }) view.peer = static_cast<std::int32_t>(op.root);
  if (!tail.empty() && std::all_of(tail.begin(), tail.end(), [&](const PeerTransfer& part) {
        return part.peer == tail.front().peer;
      })) {
    view.peer = static_cast<std::int32_t>(tail.front().peer);
  }
  static_assert(std::tuple_size_v<decltype(Op::kOperands)> <= CommandView::kMaxOperands);
  for_each_operand(op, {}, [&](std::string_view name, const Operand& operand, Access access) {
    view.uses[view.use_count++] = {&operand, access, name};
  });
  return submitter.submit(view);
}

/// How long an argument is, and how long it must be.
struct Length {
  std::string_view name;
  std::int64_t is = 0, needed = 0;
};

/// For calls whose arguments have certain lengths, be it that of one another, where the operation
/// itself needs that much and would leave the rest alone.
template <Operation Op>
Future<void> submit_exact(Submitter& submitter, const Op& op, std::initializer_list<Length> lengths,
                          std::uint32_t epoch = 0) {
  for (const auto& one : lengths) {
    if (one.is == one.needed) continue;
    return submitter.refuse({Errc::invalid, 0,
                             std::string(Op::kName) + ": " + std::string(one.name) + " has " +
                                 std::to_string(one.is) + " elements, not " +
                                 std::to_string(one.needed)});
  }
  return submit(submitter, op, {}, epoch);
}

}  // namespace detail
}  // namespace troupe

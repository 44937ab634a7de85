#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/collective.hpp>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "lib/collective/nccl/status_cuda.hpp"

/// Operations of the library as NCCL is told of them.
namespace troupe::host::cuda {

/// NCCL's name for a type it reduces.
inline Result<ncclDataType_t> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::f8e4m3: return ncclFloat8e4m3;
    case DType::f8e5m2: return ncclFloat8e5m2;
    case DType::i8: return ncclInt8;
    case DType::u8: return ncclUint8;
    case DType::i32: return ncclInt32;
    case DType::u32: return ncclUint32;
    case DType::i64: return ncclInt64;
    case DType::u64: return ncclUint64;
    default:
      return Error{Errc::unsupported, 0, "NCCL does not reduce " + std::string(to_string(dtype))};
  }
}

inline ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::prod: return ncclProd;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::avg: return ncclAvg;
    case ReduceOp::premul_sum: break;  // each has an operator of its own
  }
  return ncclNumOps;  // which NCCL refuses
}

/// NCCL's operator for a reduction: its own, or one made of a scalar. NCCL allows it to be
/// destroyed as soon as the call that is given it has returned.
class Operator {
 public:
  template <class Op>
  static Result<Operator> of(const Op& op, ncclDataType_t type, const Call& call, ncclComm_t comm) {
    Operator made(nccl_op(op.op));
    if (op.op != ReduceOp::premul_sum) return made;
    auto value = op.scalar.value;  // NCCL takes no pointer to const
    const bool on_device = op.scalar.device.present();
    void* const scalar = on_device ? static_cast<void*>(call.at(op.scalar.device)) : value.data();
    TROUPE_NCCL_TRY(ncclRedOpCreatePreMulSum(&made.operator_, scalar, type,
                                             on_device ? ncclScalarDevice : ncclScalarHostImmediate,
                                             comm));
    made.comm_ = comm;
    return made;
  }
  Operator(Operator&& other) noexcept
      : operator_(other.operator_), comm_(std::exchange(other.comm_, nullptr)) {}
  Operator& operator=(Operator&&) = delete;
  ~Operator() {
    if (comm_ != nullptr) (void)ncclRedOpDestroy(operator_, comm_);
  }
  [[nodiscard]] ncclRedOp_t get() const noexcept { return operator_; }

 private:
  explicit Operator(ncclRedOp_t its_operator) : operator_(its_operator) {}

  ncclRedOp_t operator_;
  ncclComm_t comm_ = nullptr;  ///< of one that was made
};

/// Operations that only move elements move them as bytes, whatever their type.
inline std::size_t bytes_of(std::uint64_t count, DType dtype) {
  return count * size_of(dtype);
}

/// Ends a group of sends and receives, in any case: an open group belongs to the thread. `queued`
/// is what queueing them said.
inline Result<void> end_group(ncclResult_t queued) {
  const auto ended = ncclGroupEnd();
  if (queued != ncclSuccess) return failure(queued, "ncclSend/ncclRecv", classify_call(queued));
  if (ended != ncclSuccess) return failure(ended, "ncclGroupEnd", classify_noticed(ended));
  return {};
}

/// Checks that the operation is right for a communicator. Errors: invalid.
template <class Op>
Result<void> fits(const Op& op, const Call&, int rank, int size) {
  return op.check_world(rank, size);
}
inline Result<void> fits(const collective::Exchange&, const Call& call, int rank, int size) {
  return collective::check_world(call.tail(), rank, size);
}
inline Result<void> fits(const collective::Bundle&, const Call& call, int rank, int size) {
  const auto list = collective::bundled(call.parts());
  if (!list.ok()) return list.error();
  for (const auto& one : *list) {
    if (auto right = one.info->check_world(one.op(), rank, size); !right) return right;
  }
  return {};
}

/// The messages that an operation consists of, from rank to rank; none of a collective of NCCL's.
inline std::vector<Link> links_of(const OperationInfo& info, const std::byte* op, const Call& call,
                                  int rank, int size) {
  std::vector<Link> links;
  const auto with = [&](std::uint32_t peer, bool receive) {
    if (peer != static_cast<std::uint32_t>(rank)) links.push_back({peer, receive});
  };
  const auto with_all = [&](bool receive) {
    for (int peer = 0; peer < size; ++peer) with(static_cast<std::uint32_t>(peer), receive);
  };
  if (info.opcode == opcode_of<collective::AllToAll>) {
    with_all(false);
    with_all(true);
  } else if (info.opcode == opcode_of<collective::Exchange>) {
    for (const auto& part : call.tail()) with(part.tag, part.written());
  } else if (info.opcode == opcode_of<collective::Bundle>) {
    for (const auto& one : collective::bundled(call.parts()).take()) {
      const auto its = links_of(*one.info, one.op(), call, rank, size);
      links.insert(links.end(), its.begin(), its.end());
    }
  } else if (info.opcode == opcode_of<collective::Gather>) {
    const auto root = reinterpret_cast<const collective::Gather*>(op)->root;
    root == static_cast<std::uint32_t>(rank) ? with_all(true) : with(root, false);
  } else if (info.opcode == opcode_of<collective::Scatter>) {
    const auto root = reinterpret_cast<const collective::Scatter*>(op)->root;
    root == static_cast<std::uint32_t>(rank) ? with_all(false) : with(root, true);
  }
  return links;
}

}  // namespace troupe::host::cuda

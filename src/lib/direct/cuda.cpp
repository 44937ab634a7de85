#include <troupe/lib/direct.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <list>

#include "lib/direct/factors/factors_cuda.hpp"
#include "lib/direct/factors/status_cuda.hpp"
#include "lib/direct/schur/kernels.cuh"

namespace troupe::host::cuda {
namespace {

/// What a buffer contains, as far as its operand tells.
std::uint64_t contents_of(const Operand& operand) {
  return std::uint64_t{operand.buffer} << 32 | operand.generation;
}
bool overlap(const Operand& a, const Operand& b) {
  return a.region == b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

template <class Op>
Pattern pattern_of(const Op& op, const Call& call) {
  Pattern pattern{call.at(op.row_begin),
                  call.at(op.column),
                  contents_of(op.row_begin),
                  contents_of(op.column),
                  op.n,
                  op.nonzeros,
                  op.dtype,
                  op.index_dtype,
                  op.kind,
                  op.view,
                  op.matching != 0,
                  nullptr,
                  0};
  if (op.order.present()) {
    pattern.order = call.at(op.order);
    pattern.order_contents = contents_of(op.order);
  }
  return pattern;
}
template <class Op>
Values values_of(const Op& op, const Call& call) {
  return {call.at(op.value), contents_of(op.value)};
}
Systems systems_of(const direct::Solve& op, const Call& call) {
  return {call.at(op.b), call.at(op.x), op.nrhs, op.ldb, op.ldx, op.transpose, op.refinement};
}

/// Solutions, steps of refinement among them, that are queued without a thread of their own.
constexpr std::int64_t kMostAtOnce = 16;

class Direct final : public LibraryHalfOf<Direct, direct::Operations> {
 public:
  explicit Direct(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuDSS", &cudssGetProperty)};
  }
  Result<void> open(Queue queue) override;
  /// A few solutions with the factors that are there are only queued.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override;
  [[nodiscard]] bool remembers_contents() const override { return true; }
  void overwrites(const Operand& range) override;
  Result<void> run(const direct::Analyse& op, const Call& call);
  Result<void> run(const direct::Factor& op, const Call& call);
  Result<void> run(const direct::Solve& op, const Call& call);
  Result<void> run(const direct::Schur&, const Call&);
  Result<void> run(const direct::Release& op, const Call& call);

 private:
  struct Kept {
    std::uint64_t id;
    Operand row_begin, column, value, order;  ///< written anew they are another matrix
    Factorisation factorisation;

    Kept(std::uint64_t its_id, Services& services, Queue queue, cudssHandle_t handle)
        : id(its_id), factorisation(services, queue, handle) {}
  };
  struct State {
    CudssHandle handle;
    std::list<Kept> kept;  ///< the most recently used first
  };
  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  [[nodiscard]] Kept* find(Queue queue, std::uint64_t id);
  template <class Op>
  Factorisation& keep(const Op& op, Queue queue);
  Result<void> fill_with_nan(const direct::Solve& op, const Call& call);

  Services& services_;
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
};

Result<void> Direct::open(Queue queue) {
  auto& handle = state(queue).handle;
  if (!handle) TROUPE_CUDA_TRY(cudssCreate(handle.out()));
  TROUPE_CUDA_TRY(cudssSetStream(handle.get(), services_.stream(queue)));
  // In the order of the stream, like all memory of troupe's: it waits for nothing else that runs.
  cudssDeviceMemHandler_t memory{};
  memory.device_alloc = [](void*, void** where, std::size_t bytes, cudaStream_t stream) {
    return static_cast<int>(cudaMallocAsync(where, bytes, stream));
  };
  memory.device_free = [](void*, void* where, std::size_t, cudaStream_t stream) {
    return static_cast<int>(cudaFreeAsync(where, stream));
  };
  std::strncpy(memory.name, "troupe", sizeof memory.name - 1);
  TROUPE_CUDA_TRY(cudssSetDeviceMemHandler(handle.get(), &memory));
  TROUPE_CUDA_TRY(kernels::preload_direct());
  return {};
}

Direct::Kept* Direct::find(Queue queue, std::uint64_t id) {
  auto& kept = state(queue).kept;
  const auto found =
      std::find_if(kept.begin(), kept.end(), [&](const Kept& entry) { return entry.id == id; });
  if (found == kept.end()) return nullptr;
  kept.splice(kept.begin(), kept, found);
  return &kept.front();
}

template <class Op>
Factorisation& Direct::keep(const Op& op, Queue queue) {
  auto* entry = find(queue, op.id);
  if (entry == nullptr) {
    auto& its_state = state(queue);
    while (its_state.kept.size() >= direct::kKept) its_state.kept.pop_back();
    entry = &its_state.kept.emplace_front(op.id, services_, queue, its_state.handle.get());
  }
  entry->row_begin = op.row_begin, entry->column = op.column, entry->value = op.value;
  entry->order = op.order;
  return entry->factorisation;
}

bool Direct::blocks(const OperationInfo& info, const std::byte* op, const Call& call) {
  if (info.opcode != opcode_of<direct::Solve>) return true;
  const auto& solve = *reinterpret_cast<const direct::Solve*>(op);
  if (solve.nrhs > kMostAtOnce || solve.nrhs * (1 + solve.refinement) > kMostAtOnce) return true;
  const auto* const entry = find(call.queue(), solve.id);
  return entry == nullptr ||
         !entry->factorisation.is_ready(pattern_of(solve, call), values_of(solve, call),
                                        systems_of(solve, call));
}

void Direct::overwrites(const Operand& range) {
  for (auto& state : states_) {
    for (auto& entry : state.kept) {
      if (overlap(entry.row_begin, range) || overlap(entry.column, range) ||
          overlap(entry.order, range))
        entry.factorisation.pattern_overwritten();
      if (overlap(entry.value, range)) entry.factorisation.values_overwritten();
    }
  }
}

Result<void> Direct::run(const direct::Analyse& op, const Call& call) {
  const auto told = keep(op, call.queue()).analyse(pattern_of(op, call), values_of(op, call));
  if (!told) return told.error();
  std::memcpy(call.at(op.told), &*told, sizeof *told);
  return {};
}

Result<void> Direct::run(const direct::Factor& op, const Call& call) {
  const auto told = keep(op, call.queue()).factor(pattern_of(op, call), values_of(op, call));
  if (!told) return told.error();
  std::memcpy(call.at(op.told), &*told, sizeof *told);
  return {};
}

Result<void> Direct::run(const direct::Solve& op, const Call& call) {
  auto& factorisation = keep(op, call.queue());
  const auto systems = systems_of(op, call);
  const auto factors = factorisation.factor(pattern_of(op, call), values_of(op, call));
  if (!factors) return factors.error();
  const auto outcome = factors->outcome;
  std::memcpy(call.at(op.told), &outcome, sizeof outcome);
  if (outcome == direct::no_factors) return fill_with_nan(op, call);
  if (outcome < 0) return {};
  TROUPE_CUDA_PROPAGATE(factorisation.prepare(systems));
  return factorisation.solve(systems);
}

Result<void> Direct::run(const direct::Schur&, const Call&) {
  return Error{Errc::unsupported, 0,
               "direct.schur: cuDSS 1.0 gives the factors of the Schur complement in its place"};
}

Result<void> Direct::run(const direct::Release& op, const Call& call) {
  state(call.queue()).kept.remove_if([&](const Kept& entry) { return entry.id == op.id; });
  return {};
}

Result<void> Direct::fill_with_nan(const direct::Solve& op, const Call& call) {
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    const T nan(std::numeric_limits<RealOf<T>>::quiet_NaN());
    std::array<std::uint8_t, 16> pattern{};
    std::memcpy(pattern.data(), &nan, sizeof nan);
    for (std::int64_t j = 0; j < op.nrhs; ++j) {
      TROUPE_CUDA_PROPAGATE(services_.fill(call.queue(), call.at<T>(op.x) + j * op.ldx, pattern,
                                           sizeof nan, static_cast<std::uint64_t>(op.n)));
    }
    return {};
  });
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Direct, cuda)

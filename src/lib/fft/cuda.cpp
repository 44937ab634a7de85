#include <cufft.h>
#include <cufftXt.h>

#include <algorithm>
#include <array>
#include <list>
#include <string>
#include <utility>

#include <troupe/lib/fft.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/fft/looks/cuda.hpp"

namespace troupe::host::cuda {

// What the status codes of cuFFT mean to supervision.

inline Errc classify(cufftResult code) noexcept {
  switch (code) {
    case CUFFT_ALLOC_FAILED: return Errc::out_of_memory;
    case CUFFT_INVALID_VALUE:
    case CUFFT_UNALIGNED_DATA: return Errc::invalid;
    case CUFFT_INVALID_SIZE:  // check() has passed it
    case CUFFT_NOT_IMPLEMENTED:
    case CUFFT_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

/// cuFFT has no text for its codes.
inline Error error_of(cufftResult code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call,
                    "cufftResult " + std::to_string(static_cast<int>(code)));
}

inline Error failure(cufftResult code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

namespace {

using fft::Kind;

struct PlanTraits {
  using Type = cufftHandle;
  static constexpr Type invalid() { return CUFFT_PLAN_NULL; }
  static void destroy(Type plan) { (void)cufftDestroy(plan); }
};
using PlanHandle = Handle<PlanTraits>;

/// A plan of cuFFT, and everything that it depends on. Both complex directions share one.
struct Plan {
  struct Key {
    Kind kind{};  ///< forward of both complex directions
    DType dtype{};
    std::array<std::int64_t, fft::kMaxRank> extents{};
    std::int64_t batch = 0;
    fft::Layout input, output;
    bool operator==(const Key&) const = default;
  };
  Key key;
  PlanHandle handle;
  std::size_t work_bytes = 0;
  /// Device memory that it holds, by what was free before and after it was made: at least that of
  /// its tables (64 MiB for a prime length of 10^6), at times also that of others.
  std::size_t bytes = 0;
  const void* work_area = nullptr;  ///< the one that the handle uses
  bool forward_ran = false;  ///< kernels are loaded when they are first launched, which blocks
  bool inverse_ran = false;

  [[nodiscard]] bool& ran(Kind kind) { return kind == Kind::inverse ? inverse_ran : forward_ran; }
};

bool is_narrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

cufftType type_of(const Plan::Key& key) {
  const bool single = key.dtype == DType::c64;
  switch (key.kind) {
    case Kind::real_to_complex: return single ? CUFFT_R2C : CUFFT_D2Z;
    case Kind::complex_to_real: return single ? CUFFT_C2R : CUFFT_Z2D;
    default: return single ? CUFFT_C2C : CUFFT_Z2Z;
  }
}

Plan::Key key_of(const fft::Transform& op) {
  return {op.kind == Kind::inverse ? Kind::forward : op.kind,
          op.dtype,
          op.extents,
          op.batch,
          op.input_layout(),
          op.output_layout()};
}

cufftResult execute(cufftHandle plan, const fft::Transform& op, const Call& call) {
  if (is_narrow(op.dtype)) {
    const bool back = op.kind == Kind::inverse || op.kind == Kind::complex_to_real;
    return cufftXtExec(plan, call.at(op.input), call.at(op.output),
                       back ? CUFFT_INVERSE : CUFFT_FORWARD);
  }
  const bool single = op.dtype == DType::c64;
  if (op.kind == Kind::real_to_complex) {
    return single
               ? cufftExecR2C(plan, call.at<cufftReal>(op.input), call.at<cufftComplex>(op.output))
               : cufftExecD2Z(plan, call.at<cufftDoubleReal>(op.input),
                              call.at<cufftDoubleComplex>(op.output));
  }
  if (op.kind == Kind::complex_to_real) {
    return single
               ? cufftExecC2R(plan, call.at<cufftComplex>(op.input), call.at<cufftReal>(op.output))
               : cufftExecZ2D(plan, call.at<cufftDoubleComplex>(op.input),
                              call.at<cufftDoubleReal>(op.output));
  }
  const int direction = op.kind == Kind::forward ? CUFFT_FORWARD : CUFFT_INVERSE;
  return single ? cufftExecC2C(plan, call.at<cufftComplex>(op.input),
                               call.at<cufftComplex>(op.output), direction)
                : cufftExecZ2Z(plan, call.at<cufftDoubleComplex>(op.input),
                               call.at<cufftDoubleComplex>(op.output), direction);
}

class Fft final : public LibraryHalfOf<Fft, fft::Operations> {
 public:
  explicit Fft(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency("cuFFT", &cufftGetProperty)};
  }
  Result<void> open(Queue queue) override;
  /// It makes a plan where none is cached, loads kernels where that plan has not yet run, or is
  /// looked at.
  [[nodiscard]] bool blocks(const OperationInfo&, const std::byte* op, const Call& call) override;
  Result<void> run(const fft::Transform& op, const Call& call);

 private:
  struct State {
    std::list<Plan> plans;  ///< the most recently used first
    std::size_t plan_bytes = 0;
    RetiredPlans<PlanHandle> retired;
    Workspace work_area;  ///< of all plans

    std::list<Plan>::iterator find(const Plan::Key& key) {
      return std::find_if(plans.begin(), plans.end(),
                          [&](const Plan& plan) { return plan.key == key; });
    }
  };
  static constexpr std::size_t kPlans = 32;                          ///< cached on each queue
  static constexpr std::size_t kPlanBytes = std::size_t{512} << 20;  ///< but of one that is larger

  [[nodiscard]] State& state(Queue queue) { return states_[queue.detour ? 1 : 0]; }
  Result<void> add_plan(const fft::Transform& op, Queue queue);
  /// Nothing: nobody looks.
  [[nodiscard]] std::optional<CheckedTransform> looked_at(const fft::Transform& op,
                                                          const Call& call) const;
  [[nodiscard]] CheckCost cost(const CheckedTransform& transform) const;
  [[nodiscard]] bool is_due(const Call& call,
                            const std::optional<CheckedTransform>& transform) const;
  Result<void> carry_out(const fft::Transform& op, const Call& call);

  Services& services_;
  ProductLooks looks_{services_.product_checks()};
  std::array<State, 2> states_;  ///< of the lane's own queue, of its detour
};

std::optional<CheckedTransform> Fft::looked_at(const fft::Transform& op, const Call& call) const {
  if (!looks_.on()) return std::nullopt;
  return checked_transform(op, call.at(op.input) == call.at(op.output));
}
/// As of an H200, by multiprocessor.
CheckCost Fft::cost(const CheckedTransform& transform) const {
  const double multiprocessors = services_.multiprocessors();
  return cost_of(transform, {.flops = 60 * multiprocessors,
                             .bytes = 12 * multiprocessors,
                             .elements = 0.6 * multiprocessors,
                             .weights = 0.2 * multiprocessors,
                             .start = 4000,
                             .check = 80'000});
}
bool Fft::is_due(const Call& call, const std::optional<CheckedTransform>& transform) const {
  return transform && looks_.due(call, services_.records(), cost(*transform));
}

/// With a small transform of each kind: the first plan of a process takes much longer than others.
Result<void> Fft::open(Queue queue) {
  if (queue.detour) return {};
  if (looks_.on()) TROUPE_CUDA_TRY(kernels::preload_checks());
  const WarmUp warming(services_, queue);
  for (const auto dtype : {DType::c64, DType::c128}) {
    for (const auto kind :
         {Kind::forward, Kind::inverse, Kind::real_to_complex, Kind::complex_to_real}) {
      TROUPE_CUDA_PROPAGATE(run(
          fft::Transform{dtype, kind, 1, {64, 0, 0}, 1, {}, {}, WarmUp::part(1), WarmUp::part(2)},
          warming.call()));
    }
  }
  return {};
}

bool Fft::blocks(const OperationInfo&, const std::byte* op, const Call& call) {
  const auto& transform = *reinterpret_cast<const fft::Transform*>(op);
  if (transform.batch == 0) return false;
  auto& own = state(call.queue());
  const auto plan = own.find(key_of(transform));
  return plan == own.plans.end() || !plan->ran(transform.kind) ||
         is_due(call, looked_at(transform, call));
}

Result<void> Fft::run(const fft::Transform& op, const Call& call) {
  const auto transform = looked_at(op, call);
  if (is_due(call, transform)) {
    FftLook look(*transform, op.dtype, call.at(op.input), call.at(op.output), call, services_);
    return looks_.carry_out(fft::Transform::kName, cost(*transform), look,
                            [&] { return carry_out(op, call); });
  }
  if (transform) looks_.count(cost(*transform));
  return carry_out(op, call);
}

Result<void> Fft::carry_out(const fft::Transform& op, const Call& call) {
  if (op.batch == 0) return {};
  auto& own = state(call.queue());
  if (const auto found = own.find(key_of(op)); found != own.plans.end()) {
    own.plans.splice(own.plans.begin(), own.plans, found);
  } else {
    TROUPE_CUDA_PROPAGATE(add_plan(op, call.queue()));
  }
  auto& plan = own.plans.front();
  if (plan.work_bytes > 0) {
    TROUPE_CUDA_PROPAGATE(own.work_area.reserve(services_, call.queue(), plan.work_bytes));
    if (plan.work_area != own.work_area.get()) {
      TROUPE_CUDA_TRY(cufftSetWorkArea(plan.handle.get(), own.work_area.get()));
      plan.work_area = own.work_area.get();
    }
  }
  TROUPE_CUDA_TRY(execute(plan.handle.get(), op, call));
  plan.ran(op.kind) = true;
  return {};
}

Result<void> Fft::add_plan(const fft::Transform& op, Queue queue) {
  auto& own = state(queue);
  if (services_.records()) return Services::not_recorded("a plan");
  TROUPE_CUDA_PROPAGATE(own.retired.destroy_ended());
  Plan plan;
  plan.key = key_of(op);
  const auto &input = plan.key.input, &output = plan.key.output;
  std::array<long long, fft::kMaxRank> extents{}, stored_input{}, stored_output{};
  std::copy(op.extents.begin(), op.extents.end(), extents.begin());
  std::copy(input.stored.begin(), input.stored.end(), stored_input.begin());
  std::copy(output.stored.begin(), output.stored.end(), stored_output.begin());
  std::size_t free_before = 0, free_after = 0, total = 0;
  TROUPE_CUDA_TRY(cudaMemGetInfo(&free_before, &total));
  TROUPE_CUDA_TRY(cufftCreate(plan.handle.out()));
  const auto handle = plan.handle.get();
  TROUPE_CUDA_TRY(cufftSetAutoAllocation(handle, 0));
  TROUPE_CUDA_TRY(cufftSetStream(handle, services_.stream(queue)));
  const auto last = op.rank - 1;
  if (is_narrow(op.dtype)) {
    const bool half = op.dtype == DType::f16;
    const auto real = half ? CUDA_R_16F : CUDA_R_16BF, complex = half ? CUDA_C_16F : CUDA_C_16BF;
    TROUPE_CUDA_TRY(cufftXtMakePlanMany(
        handle, static_cast<int>(op.rank), extents.data(), stored_input.data(), input.pitch[last],
        input.distance, op.kind == Kind::real_to_complex ? real : complex, stored_output.data(),
        output.pitch[last], output.distance, op.kind == Kind::complex_to_real ? real : complex,
        op.batch, &plan.work_bytes, complex));
  } else {
    TROUPE_CUDA_TRY(cufftMakePlanMany64(handle, static_cast<int>(op.rank), extents.data(),
                                        stored_input.data(), input.pitch[last], input.distance,
                                        stored_output.data(), output.pitch[last], output.distance,
                                        type_of(plan.key), op.batch, &plan.work_bytes));
  }
  TROUPE_CUDA_TRY(cudaMemGetInfo(&free_after, &total));
  plan.bytes = free_before > free_after ? free_before - free_after : 0;
  while (!own.plans.empty() &&
         (own.plans.size() == kPlans || own.plan_bytes + plan.bytes > kPlanBytes)) {
    own.plan_bytes -= own.plans.back().bytes;
    TROUPE_CUDA_PROPAGATE(
        own.retired.add(std::move(own.plans.back().handle), services_.stream(queue)));
    own.plans.pop_back();
    services_.note_given_back();
  }
  own.plan_bytes += plan.bytes;
  own.plans.push_front(std::move(plan));
  return {};
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Fft, cuda)

#include <chrono>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "common/wire/tuning_mark.hpp"
#include "lib/blas/matmul/plans_cuda.hpp"

/// Measures algorithms of cuBLASLt, and takes over what others have measured.
namespace troupe::host::cuda {
namespace {

/// A choice as the rank keeps it, for GPUs and libraries like those it was made with.
struct Tuned {
  std::array<char, 16> mark = wire::kTuningMark;
  std::array<char, 16> what{"blas.matmul 1"};
  std::int64_t compute_capability = 0, multiprocessors = 0, library = 0;
  std::int64_t when = 0;  ///< nanoseconds since 1970
  Matmuls::Key key{};
  cublasLtMatmulAlgo_t algorithm{};

  [[nodiscard]] bool fits(const Tuned& here) const {
    return mark == here.mark && what == here.what &&
           compute_capability == here.compute_capability &&
           multiprocessors == here.multiprocessors && library == here.library;
  }
};
static_assert(std::is_trivially_copyable_v<Tuned> &&
              sizeof(Tuned) == 32 + 8 * (4 + std::tuple_size_v<Matmuls::Key> + 8));

Result<Tuned> tuned_here(const Services& services) {
  Tuned tuned;
  int major = 0, minor = 0;
  TROUPE_CUDA_TRY(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, services.device()));
  TROUPE_CUDA_TRY(
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, services.device()));
  tuned.compute_capability = 10 * major + minor;
  tuned.multiprocessors = services.multiprocessors();
  tuned.library = static_cast<std::int64_t>(cublasLtGetVersion());
  tuned.when = std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count();
  return tuned;
}

/// "66: tile 20, stages 36, split 1, cluster 3, option 0", in cuBLASLt's own numbers.
std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  const auto get = [&algorithm](cublasLtMatmulAlgoConfigAttributes_t attribute, auto value) {
    std::size_t bytes = 0;
    (void)cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &bytes);
    return value;
  };
  return fmt::format("{}: tile {}, stages {}, split {}, cluster {}, option {}",
                     get(CUBLASLT_ALGO_CONFIG_ID, std::int32_t{}),
                     get(CUBLASLT_ALGO_CONFIG_TILE_ID, std::uint32_t{}),
                     get(CUBLASLT_ALGO_CONFIG_STAGES_ID, std::uint32_t{}),
                     get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, std::int32_t{}),
                     get(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, std::uint16_t{}),
                     get(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, std::uint32_t{}));
}

std::size_t bytes_of(DType dtype, std::int64_t m, std::int64_t n, std::int64_t leading,
                     blas::Order order, std::int64_t stride, std::int64_t batch) {
  const auto lines = order == blas::Order::column ? n : m,
             length = order == blas::Order::column ? m : n;
  return static_cast<std::size_t>((batch - 1) * stride + (lines - 1) * leading + length) *
         size_of(dtype);
}

/// Memory for what a product reads and writes beside A and B; it goes in the order of the stream.
class Scratch {
 public:
  Scratch(Services& services, Queue queue) : services_(services), queue_(queue) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    for (auto& one : all_) (void)cudaFreeAsync(one.release(), services_.stream(queue_));
  }
  /// All bytes zero.
  Result<void*> take(std::size_t bytes) {
    auto memory = services_.reserve(queue_, std::max<std::size_t>(bytes, 256));
    if (!memory) return memory.error();
    all_.push_back(std::move(*memory));
    TROUPE_CUDA_TRY(cudaMemsetAsync(all_.back().get(), 0, bytes, services_.stream(queue_)));
    return all_.back().get();
  }

 private:
  Services& services_;
  Queue queue_;
  std::vector<DeviceMemory> all_;
};

/// Where the product's other operands are.
Result<void> place(Places& places, const blas::TuneMatmul& op, Scratch& scratch) {
  const auto& p = op.product;
  const auto set = [&scratch](auto*& where, std::size_t bytes) -> Result<void> {
    const auto taken = scratch.take(bytes);
    if (!taken) return taken.error();
    where = *taken;
    return {};
  };
  TROUPE_CUDA_PROPAGATE(
      set(places.d, bytes_of(p.d_dtype, p.m, p.n, p.ldd, p.order_d, p.stride_d, p.batch)));
  if (op.has(op.kInPlaceC) || (!op.has(op.kC) && !blas::is_f8(p.d_dtype))) {
    places.c = places.d;
  } else if (op.has(op.kC)) {
    TROUPE_CUDA_PROPAGATE(
        set(places.c, bytes_of(p.c_dtype, p.m, p.n, p.ldc, p.order_c, p.stride_c, p.batch)));
  }
  if (blas::bias_use(p.epilogue) != blas::EpilogueUse::none) {
    TROUPE_CUDA_PROPAGATE(
        set(places.bias, static_cast<std::size_t>(p.bias_length()) *
                             size_of(blas::bias_type(p.dtype, p.c_dtype, p.d_dtype))));
  }
  if (blas::aux_use(p.epilogue) != blas::EpilogueUse::none) {
    const auto count = static_cast<std::size_t>(p.ld_aux * p.n * p.batch);
    TROUPE_CUDA_PROPAGATE(
        set(places.aux, blas::has_mask(p.epilogue) ? count / 8 : count * size_of(p.d_dtype)));
  }
  for (std::uint32_t part = 0; part < blas::Matmul::kParts; ++part) {
    if (op.has(part)) {
      TROUPE_CUDA_PROPAGATE(
          set(places.parts[part], static_cast<std::size_t>(p.scales(part)) * sizeof(float)));
    }
  }
  return {};
}

}  // namespace

Result<void> run(const blas::TuneMatmul& op, const Call& call, Blas& library) {
  auto product = op.product;
  product.c = {};
  product.c.region = op.has(op.kC) ? 1 : 0;  // its presence counts
  product.alpha = op.alpha, product.beta = op.beta;
  blas::MatmulTuning outcome;
  const auto answer = [&] {
    std::memcpy(call.at(op.outcome), &outcome, sizeof outcome);  // nothing else uses it
    return Result<void>();
  };
  if (product.m == 0 || product.n == 0 || product.k == 0 || product.batch == 0) return answer();
  const auto tune = [&]<class F>(F) -> Result<void> {
    ScalarValues<F> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(library.services, call, {&op.alpha, &op.beta}));
    auto tuned = tuned_here(library.services);
    if (!tuned) return tuned.error();
    auto& own = library.state(call.queue());
    const auto handle = reinterpret_cast<cublasLtHandle_t>(own.handle.get());
    const auto stream = library.services.stream(call.queue());
    Scratch scratch(library.services, call.queue());
    Places places;
    places.a = call.at(op.a), places.b = call.at(op.b);
    TROUPE_CUDA_PROPAGATE(place(places, op, scratch));
    Alignments alignments;
    std::copy_n(op.alignments.begin(), alignments.size(), alignments.begin());
    if (!op.has(op.kC) && places.c == places.d) alignments[2] = alignments[3];
    Matmuls::Plan plan;
    TROUPE_CUDA_PROPAGATE(describe(plan, product));
    TROUPE_CUDA_PROPAGATE(set_places(plan.description.get(), places, scalars.where()));
    std::vector<cublasLtMatmulHeuristicResult_t> proposed(op.candidates);
    const auto count = propose(plan, product, alignments, handle, proposed);
    if (!count) return count.error();
    proposed.resize(*count);
    const auto multiply = [&](const cublasLtMatmulHeuristicResult_t& by) {
      return cublasLtMatmul(handle, plan.description.get(), scalars[0], places.a, plan.a.get(),
                            places.b, plan.b.get(), scalars[1], places.c, plan.c.get(), places.d,
                            plan.d.get(), &by.algo, own.workspace.get(), kWorkspaceBytes, stream);
    };
    // What cannot run is no candidate; the first run of each loads its kernel.
    std::erase_if(proposed, [&](const auto& one) {
      return one.state != CUBLAS_STATUS_SUCCESS || multiply(one) != CUBLAS_STATUS_SUCCESS;
    });
    if (proposed.empty())
      return Error{Errc::unsupported, 0, "blas.tune_matmul: no algorithm of cuBLASLt's runs here"};
    Event begin, end;
    TROUPE_CUDA_TRY(cudaEventCreate(begin.out()));
    TROUPE_CUDA_TRY(cudaEventCreate(end.out()));
    std::vector<double> best(proposed.size(), std::numeric_limits<double>::infinity());
    constexpr int kRounds = 3;  // one behind another, so that clocks favour none
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < proposed.size(); ++i) {
        TROUPE_CUDA_TRY(cudaEventRecord(begin.get(), stream));
        for (std::uint32_t repeat = 0; repeat < op.repeats; ++repeat)
          TROUPE_CUDA_TRY(multiply(proposed[i]));
        TROUPE_CUDA_TRY(cudaEventRecord(end.get(), stream));
        TROUPE_CUDA_TRY(cudaEventSynchronize(end.get()));
        float milliseconds = 0;
        TROUPE_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
        best[i] = std::min(best[i], double{milliseconds} / 1e3 / op.repeats);
      }
    }
    const auto which =
        static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
    outcome.candidates = std::ssize(proposed);
    outcome.seconds = best[which], outcome.seconds_before = best.front();
    outcome.workspace = proposed[which].workspaceSize;
    const auto name = name_of(proposed[which].algo);
    std::copy_n(name.begin(), std::min(name.size(), outcome.its_name.size() - 1),
                outcome.its_name.begin());
    tuned->key = key_of(product, places, alignments, scalars.where());
    tuned->algorithm = proposed[which].algo;
    library.matmuls.choose(tuned->key, {tuned->algorithm, tuned->when});
    const auto bytes = std::as_bytes(std::span(&*tuned, 1));
    library.new_choices.emplace_back(bytes.begin(), bytes.end());
    return answer();
  };
  switch (product.scale()) {
    case DType::i32: return tune(std::int32_t{});
    case DType::f64: return tune(double{});
    case DType::c64: return tune(std::complex<float>{});
    case DType::c128: return tune(std::complex<double>{});
    default: return tune(float{});
  }
}

void adopt_choice(std::span<const std::byte> bytes, Blas& library) {
  Tuned tuned;
  if (bytes.size() != sizeof tuned) return;
  std::memcpy(&tuned, bytes.data(), sizeof tuned);
  const auto here = tuned_here(library.services);
  if (here.ok() && tuned.fits(*here))
    library.matmuls.choose(tuned.key, {tuned.algorithm, tuned.when});
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda

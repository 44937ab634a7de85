#include "lib/blas/cuda.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/blas/looks/kernels.cuh"

/// The looks at products of dense matrices on the cuda engine: see dense_sums.hpp.
namespace troupe::host::cuda {
namespace {

/// A look at one product, on its stream.
class DenseLook {
 public:
  DenseLook(const DenseProduct& product, const Call& call, Services& services)
      : product_(product),
        launch_(services.launch(call.queue())),
        m_(static_cast<std::size_t>(product.m * product.batch)),
        k_(static_cast<std::size_t>(product.k * product.batch)) {
    check_.m = product.m, check_.n = product.n, check_.k = product.k;
    check_.batch = product.batch;
    check_.bias = product.bias, check_.rounding = product.rounding;
    check_.scalar = stored_as(product.scalar).value_or(sums::Stored::f32);
    std::copy(product.factors.begin(), product.factors.end(), check_.factors);
    for (auto [to, from] :
         {std::pair{&check_.alpha, &product.alpha}, std::pair{&check_.beta, &product.beta}}) {
      std::memcpy(to->value, from->value.data(), sizeof to->value);
      to->device = from->device.present() ? call.at(from->device) : nullptr;
    }
  }

  Result<void> before() {
    if (auto placed = place(); !placed) return placed;
    TROUPE_CUDA_TRY(kernels::write_signs(launch_, product_.n, signs_));
    if (!product_.reads_c()) return {};
    if (product_.in_place()) {
      const auto memory = saved_.reserve(bytes_of_result(), launch_.stream);
      if (!memory) return memory.error();
      TROUPE_CUDA_TRY(copy(*memory, product_.d.data));
    }
    return add_rows(product_.c, signs_, 0, before_);
  }

  Result<WrongProduct> after(bool wrong) {
    const auto& d = product_.d;
    if (wrong) {
      const auto at =
          d.rows / 2 * d.row_step + d.columns / 2 * d.column_step + (product_.batch - 1) * d.stride;
      TROUPE_CUDA_TRY(kernels::spoil(launch_, d.stored, result(), at));
    }
    if (!factors_are_added_) {
      if (auto added = add_factors(); !added) return added.error();
      factors_are_added_ = true;
    } else {
      TROUPE_CUDA_TRY(cudaMemsetAsync(of_d_.sum, 0, m_ * sizeof(sums::Number), launch_.stream));
      TROUPE_CUDA_TRY(cudaMemsetAsync(of_d_.size, 0, m_ * sizeof(double), launch_.stream));
    }
    if (auto added = add_rows(d, signs_, 0, of_d_, product_.rounding.by_lengths); !added)
      return added.error();
    constexpr kernels::DenseVerdict kRight;
    TROUPE_CUDA_TRY(
        cudaMemcpyAsync(verdict_, &kRight, sizeof kRight, cudaMemcpyHostToDevice, launch_.stream));
    TROUPE_CUDA_TRY(kernels::judge(launch_, check_, verdict_));
    kernels::DenseVerdict verdict;
    TROUPE_CUDA_TRY(cudaMemcpyAsync(&verdict, verdict_, sizeof verdict, cudaMemcpyDeviceToHost,
                                    launch_.stream));
    TROUPE_CUDA_TRY(cudaStreamSynchronize(launch_.stream));
    if (verdict.first == kernels::DenseVerdict::kNothingWrong) return WrongProduct();
    return WrongProduct(
        describe(product_, static_cast<std::int64_t>(verdict.first), verdict.judged));
  }

  Result<void> restore() {
    if (product_.in_place()) TROUPE_CUDA_TRY(copy(result(), saved_.get()));
    return {};
  }

 private:
  /// Sums of rows, in device memory.
  struct Sums {
    sums::Number* sum = nullptr;
    double* size = nullptr;
  };

  /// Gives each part its place, all zeros.
  Result<void> place() {
    const auto n = static_cast<std::size_t>(product_.n);
    const auto batch = static_cast<std::size_t>(product_.batch);
    const auto numbers = n + k_ + 3 * m_, doubles = k_ + batch + 3 * m_;
    const auto bytes =
        sizeof(kernels::DenseVerdict) + numbers * sizeof(sums::Number) + doubles * sizeof(double);
    const auto memory = memory_.reserve(bytes, launch_.stream);
    if (!memory) return memory.error();
    TROUPE_CUDA_TRY(cudaMemsetAsync(*memory, 0, bytes, launch_.stream));
    verdict_ = static_cast<kernels::DenseVerdict*>(*memory);
    auto* next_number = reinterpret_cast<sums::Number*>(verdict_ + 1);
    auto* next_double = reinterpret_cast<double*>(next_number + numbers);
    const auto take = [](auto*& next, std::size_t count) {
      return std::exchange(next, next + count);
    };
    signs_ = take(next_number, n);
    of_b_ = {take(next_number, k_), take(next_double, k_)};
    b_size_ = take(next_double, batch);
    for (auto* const sums : {&of_a_, &before_, &of_d_})
      *sums = {take(next_number, m_), take(next_double, m_)};
    check_.product = of_a_.sum, check_.a_size = of_a_.size, check_.b_size = b_size_;
    check_.result = of_d_.sum, check_.result_size = of_d_.size, check_.signs = signs_;
    if (product_.reads_c()) check_.before = before_.sum, check_.before_size = before_.size;
    return {};
  }

  Result<void> add_rows(const sums::Strided& matrices, const sums::Number* weights,
                        std::int64_t weights_stride, const Sums& to, bool lengths = false) {
    TROUPE_CUDA_TRY(kernels::add_rows(
        launch_, {matrices, product_.batch, weights, weights_stride, to.sum, to.size, lengths}));
    return {};
  }
  Result<void> add_factors() {
    TROUPE_CUDA_PROPAGATE(add_rows(product_.b, signs_, 0, of_b_));
    TROUPE_CUDA_TRY(kernels::add_up(launch_, product_.k, product_.batch, of_b_.size, b_size_));
    return add_rows(product_.a, of_b_.sum, product_.k, of_a_);
  }

  [[nodiscard]] void* result() const { return const_cast<void*>(product_.d.data); }
  [[nodiscard]] std::size_t bytes_of_result() const {
    return host::bytes_of(product_.d, product_.batch);
  }
  cudaError_t copy(void* to, const void* from) const {
    return cudaMemcpyAsync(to, from, bytes_of_result(), cudaMemcpyDeviceToDevice, launch_.stream);
  }

  const DenseProduct& product_;
  const kernels::Launch launch_;
  const std::size_t m_, k_;  ///< rows of all op(A), of all op(B)
  kernels::DenseCheck check_;
  StreamMemory memory_, saved_;
  kernels::DenseVerdict* verdict_ = nullptr;
  sums::Number* signs_ = nullptr;
  double* b_size_ = nullptr;
  Sums of_a_, of_b_, before_, of_d_;
  bool factors_are_added_ = false;
};

/// As measured on an H200, by multiprocessor: matrices of 32 bits by its general cores, of fewer
/// and of 64 bits by its tensor cores. A look has its verdict waited for.
DenseRates rates_of(const Services& services, double bits) {
  const double multiprocessors = services.multiprocessors();
  const double flops = bits < 32 ? 2600 : bits > 32 ? 900 : 350;
  return {.flops = flops * multiprocessors,
          .bytes = 28 * multiprocessors,
          .elements = 16 * multiprocessors,
          .start = 4000,
          .check = 150'000};
}
std::optional<CheckCost> cost_of(const std::optional<DenseProduct>& product,
                                 const Services& services) {
  if (!product) return std::nullopt;
  return host::cost_of(*product, rates_of(services, product->flop_bits));
}

template <class Op>
Result<void> carry_out_looked_at(const Op& op, const Call& call, Blas& library) {
  if (!library.looks.on()) return library.carry_out(op, call);
  const auto product = product_of(op, call);
  const auto cost = cost_of(product, library.services);
  if (!library.looks.due(call, library.services.records(), cost)) {
    if (cost) library.looks.count(*cost);
    return library.carry_out(op, call);
  }
  DenseLook look(*product, call, library.services);
  return library.looks.carry_out(Op::kName, *cost, look,
                                 [&] { return library.carry_out(op, call); });
}

template <class... Ops>
bool due(const OperationInfo& info, const std::byte* bytes, const Call& call, const Blas& library) {
  const auto of = [&]<class Op>(const Op* op) {
    return info.opcode == opcode_of<Op> &&
           library.looks.due(call, library.services.records(),
                             cost_of(product_of(*op, call), library.services));
  };
  return (of(reinterpret_cast<const Ops*>(bytes)) || ...);
}

}  // namespace

bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call, Blas& library) {
  return library.looks.on() &&
         due<blas::Gemm, blas::GemmEx, blas::GemmBatched, blas::Matmul>(info, op, call, library);
}
Result<void> run_or_look(const blas::Gemm& op, const Call& call, Blas& library) {
  return carry_out_looked_at(op, call, library);
}
Result<void> run_or_look(const blas::GemmEx& op, const Call& call, Blas& library) {
  return carry_out_looked_at(op, call, library);
}
Result<void> run_or_look(const blas::GemmBatched& op, const Call& call, Blas& library) {
  return carry_out_looked_at(op, call, library);
}
Result<void> run_or_look(const blas::Matmul& op, const Call& call, Blas& library) {
  return carry_out_looked_at(op, call, library);
}

}  // namespace troupe::host::cuda

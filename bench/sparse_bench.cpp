// Sparse matrices, sorting and scans by troupe, and by cuSPARSE and CUB themselves.
//
// Both sides are measured by this one program, in turn, as in cuda_raw_bench. The matrix is HPCG's
// 27-point operator, with its rows numbered by colours. A figure is met if the interval of its
// ratio reaches it; of small calls the difference counts.
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/sparse.hpp>

#include "beside.hpp"
#include "grids.hpp"
#include "local_device.hpp"
#include "raw_primitives.hpp"
#include "raw_sparse.hpp"
#include "sell.hpp"

namespace troupe::bench {
namespace {

using Index = std::int32_t;

std::vector<Index> narrow(const cg::Array<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

/// The operator on a cube of points, on both sides.
class Stencil {
 public:
  Stencil(const Bench& bench, Raw& raw, std::int64_t edge)
      : raw_(&raw),
        bench_(&bench),
        problem_(make(edge)),
        rows_(problem_.rows),
        begin_(raw, *bench.device, narrow(problem_.own.row_begin)),
        column_(raw, *bench.device, {problem_.own.column.begin(), problem_.own.column.end()}),
        value_(raw, *bench.device, {problem_.own.value.begin(), problem_.own.value.end()}),
        x_(raw, *bench.device, numbers<double>(rows_, 1)),
        y_(raw, *bench.device, rows_) {}

  [[nodiscard]] cusparseSpMatDescr_t describe() const {
    cusparseSpMatDescr_t matrix = nullptr;
    must(cusparseCreateCsr(&matrix, rows_, rows_, problem_.own.nonzeros(), begin_.raw, column_.raw,
                           value_.raw, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                           CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    return matrix;
  }
  [[nodiscard]] CsrMatrix<double, Index> csr() const {
    return {rows_, rows_, begin_.ours, column_.ours, value_.ours};
  }

  void multiply(const std::string& name, int calls) const {
    RawSpmv theirs(*raw_, describe(), CUSPARSE_SPMV_CSR_ALG2, rows_, x_.raw, y_.raw);
    const auto matrix = csr();
    bench_->measure(
        name, *raw_, calls, [&] { theirs.multiply(); },
        [&] { return bench_->device->sparse().spmv(matrix, x_.ours, y_.ours); });
    check_equal(*raw_, y_.raw, *bench_->device, y_.ours, name, 1e-13);
  }
  /// Nothing where sliced ELL does not pay.
  void multiply_slices(const std::string& name) const {
    const auto offsets = cg::slice_offsets(problem_.own);
    if (offsets.empty()) return;
    const auto stored = static_cast<std::size_t>(offsets.back());
    std::vector<Index> column(stored);
    std::vector<double> value(stored);
    cg::fill_slices<Index, double>(problem_.own, offsets, 0, std::ssize(offsets) - 1, column, value,
                                   4);
    const Both<Index> begin(*raw_, *bench_->device, offsets),
        columns(*raw_, *bench_->device, column);
    const Both<double> values(*raw_, *bench_->device, value);
    cusparseSpMatDescr_t described = nullptr;
    must(cusparseCreateSlicedEll(&described, rows_, rows_, problem_.own.nonzeros(),
                                 static_cast<std::int64_t>(stored), cg::kSliceRows, begin.raw,
                                 columns.raw, values.raw, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                 CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    RawSpmv theirs(*raw_, described, CUSPARSE_SPMV_SELL_ALG1, rows_, x_.raw, y_.raw);
    const SellMatrix<double, Index> matrix{rows_,          rows_,      problem_.own.nonzeros(),
                                           cg::kSliceRows, begin.ours, columns.ours,
                                           values.ours};
    bench_->measure(
        name, *raw_, 400, [&] { theirs.multiply(); },
        [&] { return bench_->device->sparse().spmv(matrix, x_.ours, y_.ours); });
    check_equal(*raw_, y_.raw, *bench_->device, y_.ours, name, 1e-13);
  }
  void multiply_dense(const std::string& name, std::int64_t n) const {
    const Both<double> b(*raw_, *bench_->device, numbers<double>(rows_ * n, 2)),
        c(*raw_, *bench_->device, rows_ * n);
    RawSpmm theirs(*raw_, describe(), rows_, n, b.raw, c.raw);
    const auto matrix = csr();
    const SpmmOptions options{.order_b = blas::Order::row, .order_c = blas::Order::row};
    bench_->measure(
        name, *raw_, 20, [&] { theirs.multiply(); },
        [&] {
          return bench_->device->sparse().spmm(matrix, blas::row_major(b.ours, rows_, n),
                                               blas::row_major(c.ours, rows_, n), options);
        });
    check_equal(*raw_, c.raw, *bench_->device, c.ours, name, 1e-13);
  }
  void solve(const std::string& name, int calls) const {
    RawSpsv theirs(*raw_, describe(), rows_, x_.raw, y_.raw);
    const auto matrix = csr();
    bench_->measure(
        name, *raw_, calls, [&] { theirs.solve(); },
        [&] { return bench_->device->sparse().spsv(matrix, x_.ours, y_.ours); });
    check_equal(*raw_, y_.raw, *bench_->device, y_.ours, name, 1e-12);
  }

 private:
  static cg::LocalProblem<Index> make(std::int64_t edge) {
    const cg::StencilOptions options{edge, edge, edge, 0, 1, 4, std::int64_t{1} << 40};
    auto problem = cg::make_stencil_problem<Index>(options).take();
    (void)cg::make_coarse_grids(options, {problem.rows, 1}, 0, problem).take();
    return problem;
  }
  Raw* raw_;
  const Bench* bench_;
  cg::LocalProblem<Index> problem_;
  std::int64_t rows_;
  Both<Index> begin_, column_;
  Both<double> value_, x_, y_;
};

std::vector<std::uint32_t> any_numbers(std::int64_t count) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
  std::uint64_t state = 1;
  for (auto& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    value = static_cast<std::uint32_t>(state >> 32);
  }
  return values;
}

/// One of CUB's algorithms from x to y. `theirs(temporary, bytes)`, `ours()`.
template <class Theirs, class Ours>
void line(const Bench& bench, Raw& raw, const std::string& name, int calls, const Theirs& theirs,
          const Ours& ours) {
  std::size_t bytes = 0;
  must(theirs(nullptr, bytes));
  void* const temporary = raw.device(bytes + 1);
  bench.measure(
      name, raw, calls, [&] { must(theirs(temporary, bytes)); }, ours);
}

void sort(const Bench& bench, std::int64_t n, int calls) {
  Raw raw;
  const Both<std::uint32_t> x(raw, *bench.device, any_numbers(n)), y(raw, *bench.device, n);
  const auto name = fmt::format("radix sort u32, 10^{:.0f} keys", std::log10(n));
  line(
      bench, raw, name, calls,
      [&](void* temporary, std::size_t& bytes) {
        return cub_sort(temporary, bytes, x.raw, y.raw, n, raw.stream());
      },
      [&] { return primitives::on(*bench.device).sort(x.ours, y.ours); });
  check_equal(raw, y.raw, *bench.device, y.ours, name, 0);
}

void scan(const Bench& bench, std::int64_t n, int calls) {
  Raw raw;
  const Both<std::uint32_t> x(raw, *bench.device, n), y(raw, *bench.device, n);
  must(
      cudaMemsetAsync(x.raw, 1, static_cast<std::size_t>(n) * sizeof(std::uint32_t), raw.stream()));
  raw.wait();
  bench.device->fill(x.ours, std::uint32_t{0x01010101}).get();
  const auto name = fmt::format("scan u32, 10^{:.0f} elements", std::log10(n));
  line(
      bench, raw, name, calls,
      [&](void* temporary, std::size_t& bytes) {
        return cub_inclusive_sum(temporary, bytes, x.raw, y.raw, n, raw.stream());
      },
      [&] { return primitives::on(*bench.device).scan(x.ours, y.ours); });
  check_equal(raw, y.raw, *bench.device, y.ours, name, 0);
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "15", "N", "measurements of each side", {}, "1", "1000"},
      {"edge",
       OptionType::integer,
       "160",
       "N",
       "of the cube of the matrix's points",
       {},
       "4",
       "400"},
      {"keys", OptionType::integer, "100000000", "N", "that are sorted", {}, "1"},
      {"elements", OptionType::integer, "1000000000", "N", "that are summed up", {}, "1"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, "cuda");
  std::vector<Comparison> lines;
  const Bench bench{&*device, config.integer("repetitions"), &lines};
  const auto edge = config.integer("edge");
  {
    Raw raw;
    const Stencil stencil(bench, raw, edge);
    stencil.multiply(fmt::format("spmv CSR, {}^3 points", edge), 200);
    stencil.multiply_slices(fmt::format("spmv sliced ELL, {}^3 points", edge));
    stencil.multiply_dense(fmt::format("spmm CSR, {}^3 points, 16 columns", edge), 16);
    stencil.solve(fmt::format("spsv CSR, {}^3 points in 8 colours", edge), 200);
  }
  {
    Raw raw;
    const Stencil small(bench, raw, 8);
    small.multiply("spmv CSR, 8^3 points", 5000);
    small.solve("spsv CSR, 8^3 points in 8 colours", 5000);
  }
  sort(bench, config.integer("keys"), 60);
  sort(bench, 1000, 5000);
  scan(bench, config.integer("elements"), 60);
  scan(bench, 1000, 5000);
  print(fmt::format("{}: cuSPARSE's and CUB's own calls and troupe, medians of {} pairs",
                    device->info().name, bench.repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "sparse_bench",
                                      "Sparse matrices, sorts and scans, by troupe and directly.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}

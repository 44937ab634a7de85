#include <cstring>
#include <memory>
#include <vector>

#include "common/core/narrow_float.hpp"
#include "device_host/engine/cpu/await.hpp"
#include "device_host/engine/cpu/spoil.hpp"
#include "lib/blas/cpu.hpp"

/// The looks at products of dense matrices on the cpu engine: see dense_sums.hpp.
namespace troupe::host::cpu {
namespace {

using sums::Number;
using sums::Strided;

template <class T>
double real_of(const T& x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return widen(x);
  }
}

/// Calls visit(T{}) for the type of elements that are stored so.
template <class Visit>
auto with_stored(sums::Stored stored, Visit&& visit) {
  using enum sums::Stored;
  switch (stored) {
    case f16: return visit(Half{});
    case bf16: return visit(BFloat16{});
    case f32: return visit(float{});
    case f64: return visit(double{});
    case f8e4m3: return visit(Float8E4M3{});
    case f8e5m2: return visit(Float8E5M2{});
    case i8: return visit(std::int8_t{});
    case i32: return visit(std::int32_t{});
    case c64: return visit(std::complex<float>{});
    case c128: break;
  }
  return visit(std::complex<double>{});
}

/// Two sums of each row of a matrix: of its elements, weighed, and of their squares, or of
/// their absolute values. One after another, for real and imaginary parts.
struct RowSums {
  std::vector<double> re, im, size;

  explicit RowSums(std::int64_t rows)
      : re(static_cast<std::size_t>(rows)), im(re.size()), size(re.size()) {}
  [[nodiscard]] Number sum(std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    return {re[at], im[at]};
  }
};

/// An element times its weight, added to a sum.
template <class T>
void add(const T& x, bool conjugate, bool lengths, double weight_re, double weight_im, double& re,
         double& im, double& size) {
  if constexpr (ComplexElement<T>) {
    const double a = x.real(), b = conjugate ? -x.imag() : x.imag();
    re += a * weight_re - b * weight_im;
    im += a * weight_im + b * weight_re;
    size += lengths ? std::abs(a) + std::abs(b) : a * a + b * b;
  } else {
    const double a = real_of(x);
    re += a * weight_re;
    size += lengths ? std::abs(a) : a * a;
  }
}

/// Rows of the matrix number `of` in the batch, weighed by w.
template <class T>
RowSums row_sums_of(const Strided& matrix, std::int64_t of, const RowSums& w, bool lengths) {
  RowSums sums(matrix.rows);
  const auto* const data = static_cast<const T*>(matrix.data) + of * matrix.stride;
  const bool down = matrix.row_step <= matrix.column_step;
  for (std::int64_t outer = 0; outer < (down ? matrix.columns : matrix.rows); ++outer) {
    if (down) {
      const auto* const column = data + outer * matrix.column_step;
      const double re = w.re[static_cast<std::size_t>(outer)],
                   im = w.im[static_cast<std::size_t>(outer)];
      for (std::int64_t i = 0; i < matrix.rows; ++i) {
        const auto at = static_cast<std::size_t>(i);
        add(column[i * matrix.row_step], matrix.conjugate, lengths, re, im, sums.re[at],
            sums.im[at], sums.size[at]);
      }
    } else {
      // Several sums side by side, so that none waits for the one before.
      constexpr std::int64_t kLanes = 8;
      std::array<double, kLanes> re{}, im{}, size{};
      const auto* const row = data + outer * matrix.row_step;
      const auto add_one = [&](std::int64_t j, std::int64_t lane) {
        const auto at = static_cast<std::size_t>(j), to = static_cast<std::size_t>(lane);
        add(row[j * matrix.column_step], matrix.conjugate, lengths, w.re[at], w.im[at], re[to],
            im[to], size[to]);
      };
      std::int64_t j = 0;
      for (; j + kLanes <= matrix.columns; j += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) add_one(j + lane, lane);
      }
      for (; j < matrix.columns; ++j) add_one(j, 0);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const auto at = static_cast<std::size_t>(outer);
        sums.re[at] += re[lane], sums.im[at] += im[lane], sums.size[at] += size[lane];
      }
    }
  }
  return sums;
}
RowSums row_sums(const Strided& matrix, std::int64_t of, const RowSums& w, bool lengths = false) {
  return with_stored(matrix.stored,
                     [&]<class T>(T) { return row_sums_of<T>(matrix, of, w, lengths); });
}

Number number_at(const Strided& matrix, std::int64_t i) {
  return with_stored(matrix.stored, [&]<class T>(T) -> Number {
    const T x = static_cast<const T*>(matrix.data)[i * matrix.row_step];
    if constexpr (ComplexElement<T>) {
      return {x.real(), x.imag()};
    } else {
      return {real_of(x), 0};
    }
  });
}

/// A look at one product. Its work on the queue shares what it notes, and outlives it if it must.
class DenseLook {
 public:
  DenseLook(const DenseProduct& product, const Call& call, Services& services)
      : services_(services), call_(call), state_(std::make_shared<State>(product, call)) {}

  Result<void> before() {
    if (!state_->product.reads_c()) return {};
    return services_.submit(call_, [state = state_] { state->note_c(); });
  }
  Result<WrongProduct> after(bool wrong) {
    return submit_and_wait(services_, call_, [state = state_, wrong] {
      if (wrong) state->spoil();
      return state->judge();
    });
  }
  Result<void> restore() {
    if (!state_->product.in_place()) return {};
    return submit_in_time(services_, call_, [state = state_] { state->put_back(); });
  }

 private:
  struct State {
    DenseProduct product;
    const std::byte *alpha, *beta;  ///< in memory that is read when the product is carried out
    RowSums signs;
    std::vector<std::byte> saved;
    std::vector<RowSums> before;  ///< of each matrix of the batch

    State(const DenseProduct& its_product, const Call& call)
        : product(its_product),
          alpha(place_of(product.alpha, call)),
          beta(place_of(product.beta, call)),
          signs(product.n) {
      for (std::size_t j = 0; j < signs.re.size(); ++j)
        signs.re[j] = sums::sign_of(static_cast<std::int64_t>(j));
    }

    /// The address of an element in device memory, or of the value in the operation.
    static const std::byte* place_of(const Scalar& scalar, const Call& call) {
      return scalar.device.present() ? call.at(scalar.device) : scalar.value.data();
    }
    [[nodiscard]] Number scalar(const std::byte* at) const {
      return number_at({at, stored_as(product.scalar).value_or(sums::Stored::f32)}, 0);
    }
    [[nodiscard]] std::byte* result() const {
      return static_cast<std::byte*>(const_cast<void*>(product.d.data));
    }
    void note_c() {
      if (product.in_place()) {
        saved.resize(bytes_of(product.d, product.batch));
        std::memcpy(saved.data(), product.d.data, saved.size());
      }
      for (std::int64_t of = 0; of < product.batch; ++of)
        before.push_back(row_sums(product.c, of, signs));
    }
    void put_back() const { std::memcpy(result(), saved.data(), saved.size()); }

    void spoil() const {
      const auto& d = product.d;
      const auto at =
          d.rows / 2 * d.row_step + d.columns / 2 * d.column_step + (product.batch - 1) * d.stride;
      with_stored(d.stored, [&]<class T>(T) {
        spoil_element(reinterpret_cast<T*>(result())[at]);
        return 0;
      });
    }

    [[nodiscard]] WrongProduct judge() const {
      if (product.reads_c() && std::ssize(before) != product.batch) return {};  // the queue failed
      const auto factor = [&](std::size_t i) {
        return product.factors.at(i) != nullptr ? double{*product.factors.at(i)} : 1.0;
      };
      const sums::DenseFactors by{factor(0) * factor(1) * scalar(alpha),
                                  product.reads_c() ? scalar(beta) : Number{}, factor(2)};
      double sign_sum = 0;
      for (const auto sign : signs.re) sign_sum += sign;
      for (std::int64_t of = 0; of < product.batch; ++of) {
        const auto of_b = row_sums(product.b, of, signs);
        const auto of_a = row_sums(product.a, of, of_b);
        const auto of_d = row_sums(product.d, of, signs, product.rounding.by_lengths);
        double b_size = 0;
        for (const auto size : of_b.size) b_size += size;
        for (std::int64_t i = 0; i < product.m; ++i) {
          const auto at = static_cast<std::size_t>(i);
          sums::DenseRow row;
          row.product = of_a.sum(i), row.result = of_d.sum(i);
          row.a_size = of_a.size[at], row.b_size = b_size, row.result_size = of_d.size[at];
          if (product.reads_c()) {
            const auto& of_c = before[static_cast<std::size_t>(of)];
            row.before = of_c.sum(i), row.before_size = of_c.size[at];
          }
          if (product.bias.data != nullptr) {
            row.bias = number_at(product.bias, i);
            row.signs = sign_sum;
          }
          const auto judged = sums::judge(row, by, product.n, product.k, product.rounding);
          if (judged.wrong) return describe(product, of * product.m + i, judged);
        }
      }
      return std::nullopt;
    }
  };

  Services& services_;
  const Call& call_;
  std::shared_ptr<State> state_;
};

constexpr DenseRates rates_of(int threads) {
  return {.flops = 40.0 * threads, .bytes = 8, .elements = 0.6, .start = 2000, .check = 50'000};
}

template <class Op>
Result<void> carry_out_looked_at(const Op& op, const Call& call, Blas& library) {
  if (!library.looks.on()) return library.carry_out(op, call);
  const auto product = product_of(op, call);
  const auto cost = product ? std::optional(cost_of(*product, rates_of(library.services.threads())))
                            : std::nullopt;
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
    if (info.opcode != opcode_of<Op>) return false;
    const auto product = product_of(*op, call);
    return product && library.looks.due(call, library.services.records(),
                                        cost_of(*product, rates_of(library.services.threads())));
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

}  // namespace troupe::host::cpu

#include <cstring>
#include <memory>
#include <vector>

#include "device_host/engine/cpu/await.hpp"
#include "device_host/engine/cpu/spoil.hpp"
#include "lib/sparse/common/elements_cpu.hpp"
#include "lib/sparse/cpu.hpp"

/// The looks at products of sparse matrices on the cpu engine: see sums.hpp.
namespace troupe::host::cpu {
namespace {

using sums::Number;

template <class T>
Number number_of(const T& x, bool conjugate = false) {
  if constexpr (ComplexElement<T>) {
    return {x.real(), conjugate ? -x.imag() : x.imag()};
  } else {
    return {x, 0};
  }
}

/// A look at one product of elements T and indices I. Its work on the queue shares what it notes.
template <class T, class I>
class SparseLook {
 public:
  SparseLook(const CheckedProduct& product, const Call& call, Services& services)
      : services_(services), call_(call), state_(std::make_shared<State>(product, call)) {}

  Result<void> before() {
    if (!state_->product.reads_c()) return {};
    return services_.submit(call_, [state = state_] { state->save(); });
  }
  Result<WrongProduct> after(bool wrong) {
    return submit_and_wait(services_, call_, [state = state_, wrong] {
      if (wrong) state->spoil();
      return state->judge();
    });
  }
  Result<void> restore() {
    if (!state_->product.reads_c()) return {};
    return submit_in_time(services_, call_, [state = state_] { state->put_back(); });
  }

 private:
  struct State {
    CheckedProduct product;
    const I *outer, *inner;
    const T *value, *b;
    T* c;
    ScalarValue<T> alpha, beta;
    std::vector<std::byte> saved;  ///< C

    State(const CheckedProduct& its_product, const Call& call)
        : product(its_product),
          outer(call.at<const I>(product.outer)),
          inner(call.at<const I>(product.inner)),
          value(call.at<const T>(product.value)),
          b(call.at<const T>(product.b.operand)),
          c(call.at<T>(product.c.operand)),
          alpha(product.alpha, call),
          beta(product.beta, call) {}

    void save() {
      saved.resize(product.bytes_of_c());
      std::memcpy(saved.data(), c, saved.size());
    }
    void put_back() const { std::memcpy(c, saved.data(), saved.size()); }
    [[nodiscard]] std::int64_t place(std::int64_t i, std::int64_t j) const {
      return i * product.c.row_step + j * product.c.column_step;
    }
    void spoil() const { spoil_element(c[place(product.c.rows / 2, product.n / 2)]); }

    [[nodiscard]] WrongProduct judge() const {
      const auto n = product.n;
      std::vector<sums::SparseElement> elements(static_cast<std::size_t>(product.c.rows * n));
      const bool plain = product.transpose == blas::Transpose::no;
      const bool conjugate = product.transpose == blas::Transpose::conjugate;
      each_element(
          product.form, outer, inner, [&](std::int64_t row, std::int64_t column, std::int64_t at) {
            const auto to = plain ? row : column, from = plain ? column : row;
            const auto factor = number_of(value[at], conjugate);
            for (std::int64_t j = 0; j < n; ++j) {
              auto& element = elements[static_cast<std::size_t>(to * n + j)];
              const auto x = number_of(b[from * product.b.row_step + j * product.b.column_step]);
              element.sum = element.sum + factor * x;
              element.size += extent(factor) * extent(x);
              ++element.count;
            }
          });
      const auto of_alpha = number_of(alpha.get()), of_beta = number_of(beta.get());
      const auto rounding = product.rounding();
      for (std::int64_t i = 0; i < product.c.rows; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          auto& element = elements[static_cast<std::size_t>(i * n + j)];
          element.result = number_of(c[place(i, j)]);
          if (!saved.empty())
            element.before = number_of(reinterpret_cast<const T*>(saved.data())[place(i, j)]);
          const auto judged = sums::judge(element, of_alpha, of_beta, rounding);
          if (judged.wrong) return describe(product, i * n + j, judged);
        }
      }
      return std::nullopt;
    }
  };

  Services& services_;
  const Call& call_;
  std::shared_ptr<State> state_;
};

SparseRates rates_of(const Services& services) {
  return {.bytes = 4.0 * services.threads(), .products = 0.2, .start = 2000, .check = 50'000};
}

template <class Op>
Result<void> carry_out_looked_at(const Op& op, const Call& call, Sparse& library) {
  if (!library.looks.on()) return library.carry_out(op, call);
  const auto product = product_of(op);
  const auto cost =
      product ? std::optional(cost_of(*product, rates_of(library.services))) : std::nullopt;
  if (!library.looks.due(call, library.services.records(), cost)) {
    if (cost) library.looks.count(*cost);
    return library.carry_out(op, call);
  }
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.a.index_dtype, [&]<class I>(I) {
      SparseLook<T, I> look(*product, call, library.services);
      return library.looks.carry_out(Op::kName, *cost, look,
                                     [&] { return library.carry_out(op, call); });
    });
  });
}

}  // namespace

bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call,
                  Sparse& library) {
  if (!library.looks.on()) return false;
  const auto due = [&](const std::optional<CheckedProduct>& product) {
    return product && library.looks.due(call, library.services.records(),
                                        cost_of(*product, rates_of(library.services)));
  };
  if (info.opcode == opcode_of<sparse::Spmv>)
    return due(product_of(*reinterpret_cast<const sparse::Spmv*>(op)));
  return info.opcode == opcode_of<sparse::Spmm> &&
         due(product_of(*reinterpret_cast<const sparse::Spmm*>(op)));
}
Result<void> run_or_look(const sparse::Spmv& op, const Call& call, Sparse& library) {
  return carry_out_looked_at(op, call, library);
}
Result<void> run_or_look(const sparse::Spmm& op, const Call& call, Sparse& library) {
  return carry_out_looked_at(op, call, library);
}

}  // namespace troupe::host::cpu

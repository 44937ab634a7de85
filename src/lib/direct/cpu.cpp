#include <troupe/lib/direct.hpp>

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <list>
#include <new>
#include <variant>
#include <vector>

#include <Eigen/Core>

#include "device_host/engine/cpu/library.hpp"
#include "lib/direct/factors/factors_cpu.hpp"
#include "lib/direct/factors/structure.hpp"
#include "lib/direct/schur/blocks_cpu.hpp"

namespace troupe::host::cpu {
namespace {

using direct_factors::Blocks;
using direct_factors::Computed;
using direct_factors::Csr;
using direct_factors::Factorisation;
using direct_factors::RightSides;

/// A copy of what factors have been made of, to tell whether it is the same still.
class Contents {
 public:
  template <class T>
  [[nodiscard]] bool are(const T* data, std::int64_t count) const {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    return bytes == bytes_.size() && (bytes == 0 || std::memcmp(bytes_.data(), data, bytes) == 0);
  }
  template <class T>
  void set(const T* data, std::int64_t count) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    bytes_.assign(bytes, bytes + static_cast<std::size_t>(count) * sizeof(T));
  }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

/// What is kept for an id. Of the thread that executes the work.
struct Kept {
  std::uint64_t id = 0;
  DType dtype{}, index_dtype{};
  direct::Kind kind{};
  direct::View view{};
  Contents row_begin, column, value;
  std::variant<std::monostate, Factorisation<double>, Factorisation<std::complex<double>>>
      factorisation;
  bool analysed = false, factored = false;
  bool singular = false;  ///< whatever the values are
  direct::Factors factors;

  template <class Op>
  [[nodiscard]] bool is_of(const Op& op) const {
    return dtype == op.dtype && index_dtype == op.index_dtype && kind == op.kind && view == op.view;
  }
};

template <class Visit>
Result<void> with_index(DType dtype, Visit&& visit) {
  return dtype == DType::i32 ? visit(std::int32_t{}) : visit(std::int64_t{});
}

template <class T>
void fill_with_nan(T* matrix, std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  constexpr auto kNaN = std::numeric_limits<RealOf<T>>::quiet_NaN();
  for (std::int64_t j = 0; j < columns; ++j) std::fill_n(matrix + j * leading, rows, T(kNaN));
}

class Direct final : public LibraryHalfOf<Direct, direct::Operations> {
 public:
  explicit Direct(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    const auto version = std::to_string(EIGEN_WORLD_VERSION) + "." +
                         std::to_string(EIGEN_MAJOR_VERSION) + "." +
                         std::to_string(EIGEN_MINOR_VERSION);
    return {{"Eigen", "own " + version}};  // headers alone
  }
  /// All work is queued.
  [[nodiscard]] bool blocks(const OperationInfo&, const std::byte*, const Call&) override {
    return false;
  }
  Result<void> run(const direct::Analyse& op, const Call& call) {
    return submit<direct::Analysis>(op, call, [](auto& kept, const auto& a, auto& told) {
      analyse(kept, a);
      told.outcome = direct::ready;
    });
  }
  Result<void> run(const direct::Factor& op, const Call& call) {
    return submit<direct::Factors>(
        op, call, [](auto& kept, const auto& a, auto& told) { told = factor(kept, a); });
  }
  Result<void> run(const direct::Solve& op, const Call& call);
  Result<void> run(const direct::Schur& op, const Call& call);
  Result<void> run(const direct::Release& op, const Call& call) {
    return services_.submit(call, [this, id = op.id] {
      std::erase_if(kept_, [&](const Kept& kept) { return kept.id == id; });
    });
  }

 private:
  /// Queues work(kept, a, told) for a matrix that is sound, and tells what is wrong else.
  template <class Told, class Op, class Work>
  Result<void> submit(const Op& op, const Call& call, Work work);
  template <class T, class Op>
  Kept& keep(const Op& op);
  template <class T, class I>
  static void analyse(Kept& kept, const Csr<T, I>& a);
  template <class T, class I>
  static direct::Factors factor(Kept& kept, const Csr<T, I>& a);

  Services& services_;
  std::list<Kept> kept_;  ///< the most recently used first; of the thread that executes the work
};

template <class T, class Op>
Kept& Direct::keep(const Op& op) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.id == op.id; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    if (kept_.front().is_of(op)) return kept_.front();
    kept_.pop_front();
  }
  while (kept_.size() >= direct::kKept) kept_.pop_back();
  auto& made = kept_.emplace_front();
  made.id = op.id, made.dtype = op.dtype, made.index_dtype = op.index_dtype;
  made.kind = op.kind, made.view = op.view;
  made.factorisation.template emplace<Factorisation<Computed<T>>>(op.kind);
  return made;
}

template <class Told, class Op, class Work>
Result<void> Direct::submit(const Op& op, const Call& call, Work work) {
  return with_number(op.dtype, [&]<class T>(T) {
    return with_index(op.index_dtype, [&]<class I>(I) {
      const Csr<T, I> a{op.n, op.nonzeros, call.at<const I>(op.row_begin),
                        call.at<const I>(op.column), call.at<const T>(op.value)};
      const I* order = nullptr;
      if constexpr (requires { op.order; }) {
        if (op.order.present()) order = call.at<const I>(op.order);
      }
      return services_.submit(call, [this, op, a, work, order, cell = call.at(op.told)] {
        Told told{};
        auto& outcome = reinterpret_cast<std::int64_t&>(told);  // its first field, or all of it
        try {
          if (!direct::is_sound(a.n, a.nonzeros, a.row_begin, a.column))
            outcome = direct::not_csr;
          else if (order != nullptr && !direct::is_permutation(a.n, order))
            outcome = direct::not_order;
          else
            work(keep<T>(op), a, told);
        } catch (const std::bad_alloc&) {
          std::erase_if(kept_, [&](const Kept& kept) { return kept.id == op.id; });
          outcome = direct::no_memory;
        }
        std::memcpy(cell, &told, sizeof told);
      });
    });
  });
}

template <class T, class I>
void Direct::analyse(Kept& kept, const Csr<T, I>& a) {
  if (kept.analysed && kept.row_begin.are(a.row_begin, a.n + 1) &&
      kept.column.are(a.column, a.nonzeros))
    return;
  kept.analysed = kept.factored = false;
  kept.row_begin.set(a.row_begin, a.n + 1);
  kept.column.set(a.column, a.nonzeros);
  const auto half = direct::half_of(kept.view);
  kept.singular = direct::has_empty_line(a.n, a.row_begin, a.column, half);
  if (a.n > 0 && !kept.singular)
    std::get<Factorisation<Computed<T>>>(kept.factorisation).analyse(a, half);
  kept.analysed = true;
}

template <class T, class I>
direct::Factors Direct::factor(Kept& kept, const Csr<T, I>& a) {
  analyse(kept, a);
  if (kept.factored && kept.value.are(a.value, a.nonzeros)) return kept.factors;
  kept.factored = false;
  kept.value.set(a.value, a.nonzeros);
  kept.factors = {kept.singular ? direct::no_factors : direct::ready};
  if (a.n > 0 && !kept.singular)
    kept.factors = std::get<Factorisation<Computed<T>>>(kept.factorisation)
                       .factor(a, direct::half_of(kept.view));
  kept.factored = true;
  return kept.factors;
}

Result<void> Direct::run(const direct::Solve& op, const Call& call) {
  return submit<std::int64_t>(op, call,
                              [op, b = call.at(op.b), x = call.at(op.x)]<class T, class I>(
                                  Kept& kept, const Csr<T, I>& a, std::int64_t& outcome) {
                                outcome = factor(kept, a).outcome;
                                const RightSides<T> sides{reinterpret_cast<const T*>(b),
                                                          reinterpret_cast<T*>(x), op.nrhs, op.ldb,
                                                          op.ldx};
                                if (a.n == 0) return;
                                if (outcome == direct::ready) {
                                  std::get<Factorisation<Computed<T>>>(kept.factorisation)
                                      .solve(sides, op.transpose, op.refinement);
                                  return;
                                }
                                fill_with_nan(sides.x, a.n, sides.columns, sides.ldx);
                              });
}

Result<void> Direct::run(const direct::Schur& op, const Call& call) {
  return submit<std::int64_t>(
      op, call,
      [op, list = call.at(op.rows), to = call.at(op.s)]<class T, class I>(
          Kept& kept, const Csr<T, I>& a, std::int64_t& outcome) {
        const auto* const rows = reinterpret_cast<const I*>(list);
        auto* const s = reinterpret_cast<T*>(to);
        if (!direct::are_rows(a.n, op.count, rows)) {
          outcome = direct::not_rows;
          return;
        }
        if (op.count == 0) return;
        const Blocks<T, I> blocks(a, op, rows);
        outcome = factor(kept, blocks.eliminated()).outcome;
        if (outcome != direct::ready) return fill_with_nan(s, op.count, op.count, op.lds);
        using C = Computed<T>;
        const auto& factors = std::get<Factorisation<C>>(kept.factorisation);
        blocks.complement(s, op.lds, [&](C* x) {
          factors.solve(RightSides<C>{x, x, 1, 0, 0}, blas::Transpose::no, 0);
        });
      });
}

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Direct, cpu)

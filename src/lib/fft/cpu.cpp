#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include <troupe/lib/fft.hpp>

#include "common/core/narrow.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "lib/fft/looks/cpu.hpp"

namespace troupe::host::cpu {
namespace {

using fft::Kind;

/// FFTW's fftw_iodim64: a dimension and its strides in elements.
struct Dimension {
  std::ptrdiff_t n = 0, input_stride = 0, output_stride = 0;
};

/// The part of FFTW's binary interface that is used, in the precision of T. FFTW is GPL and troupe
/// is not: so FFTW is loaded where a user has installed it, and never linked.
template <class T>
struct Fftw {
  using Complex = std::complex<T>;  // FFTW: T[2]
  using Plan = void*;
  static constexpr bool kSingle = std::is_same_v<T, float>;
  static constexpr const char* kFile = kSingle ? "libfftw3f.so.3" : "libfftw3.so.3";
  static constexpr int kForward = -1, kInverse = 1;
  /// FFTW_ESTIMATE: the same plan every time, and planning does not touch the operands. Plans that
  /// are good for any addresses (FFTW_UNALIGNED) take twice as long.
  static constexpr unsigned kFlags = 1u << 6;

  Plan (*plan)(int rank, const Dimension* dimensions, int batch_rank, const Dimension* batch,
               Complex* input, Complex* output, int sign, unsigned flags) = nullptr;
  Plan (*plan_r2c)(int rank, const Dimension* dimensions, int batch_rank, const Dimension* batch,
                   T* input, Complex* output, unsigned flags) = nullptr;
  Plan (*plan_c2r)(int rank, const Dimension* dimensions, int batch_rank, const Dimension* batch,
                   Complex* input, T* output, unsigned flags) = nullptr;
  void (*execute)(Plan plan, Complex* input, Complex* output) = nullptr;
  void (*execute_r2c)(Plan plan, T* input, Complex* output) = nullptr;
  void (*execute_c2r)(Plan plan, Complex* input, T* output) = nullptr;
  void (*destroy)(Plan plan) = nullptr;
  int (*alignment_of)(T* numbers) = nullptr;  ///< 0: as plans want it
  const char* version = nullptr;
  bool loaded = false;
  std::string why;  ///< it is not, in the loader's words

  Fftw() {
    void* library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    // Where the build has found one.
#ifdef TROUPE_FFTW_F32_LIBRARY
    if (library == nullptr && kSingle)
      library = ::dlopen(TROUPE_FFTW_F32_LIBRARY, RTLD_NOW | RTLD_LOCAL);
#endif
#ifdef TROUPE_FFTW_F64_LIBRARY
    if (library == nullptr && !kSingle)
      library = ::dlopen(TROUPE_FFTW_F64_LIBRARY, RTLD_NOW | RTLD_LOCAL);
#endif
    if (library == nullptr) {
      why = ::dlerror();
      return;
    }
    loaded =
        find(library, "plan_guru64_dft", plan) && find(library, "plan_guru64_dft_r2c", plan_r2c) &&
        find(library, "plan_guru64_dft_c2r", plan_c2r) && find(library, "execute_dft", execute) &&
        find(library, "execute_dft_r2c", execute_r2c) &&
        find(library, "execute_dft_c2r", execute_c2r) && find(library, "destroy_plan", destroy) &&
        find(library, "alignment_of", alignment_of) && find(library, "version", version);
    if (!loaded) why = "it lacks a function";
  }
  template <class Symbol>
  static bool find(void* library, const std::string& name, Symbol& symbol) {
    symbol =
        reinterpret_cast<Symbol>(::dlsym(library, ((kSingle ? "fftwf_" : "fftw_") + name).c_str()));
    return symbol != nullptr;
  }
};

template <class T>
const Fftw<T>& fftw() {
  static const Fftw<T> library;  // stays loaded: plans of it may be in use until the process ends
  return library;
}

/// FFTW makes and destroys plans on one thread at a time.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

using Plan = std::shared_ptr<void>;

/// Everything that a plan depends on: not where the operands lie, because the same call is to give
/// the same bits anywhere.
struct Key {
  Kind kind{};
  std::array<std::int64_t, fft::kMaxRank> extents{};
  std::int64_t batch = 0;
  fft::Layout input, output;
  bool in_place = false;
  bool operator==(const Key&) const = default;
};

/// Where the two sides lie.
struct Sides {
  std::byte* input = nullptr;
  std::byte* output = nullptr;

  template <class T>
  [[nodiscard]] T* in() const {
    return reinterpret_cast<T*>(input);
  }
  template <class T>
  [[nodiscard]] T* out() const {
    return reinterpret_cast<T*>(output);
  }
};

Key key_of(const fft::Transform& op, bool in_place) {
  return {op.kind, op.extents, op.batch, op.input_layout(), op.output_layout(), in_place};
}

/// Whether plans are good for these.
template <class T>
bool is_aligned(const Sides& sides) {
  const auto& library = fftw<T>();
  return library.alignment_of(sides.in<T>()) == 0 && library.alignment_of(sides.out<T>()) == 0;
}

/// A piece of memory of the library's own, as aligned as FFTW may want it.
struct alignas(64) Line {
  std::byte byte[64];
};
std::vector<Line> room_for(std::int64_t bytes) {
  return std::vector<Line>(static_cast<std::size_t>(bytes) / sizeof(Line) + 1);
}
std::byte* start_of(std::vector<Line>& lines) {
  return reinterpret_cast<std::byte*>(lines.data());
}

bool is_narrow(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// What a transform of f16 or bf16 is computed by: the same of f32, packed.
fft::Transform widened(fft::Transform op) {
  op.dtype = DType::c64;
  op.input_storage = op.output_storage = {};
  return op;
}

/// Calls visit(place, i) for each element of a side, `place` counted in elements from its start and
/// i from 0 on, in the order of a packed batch.
template <class Visit>
void for_each_element(const fft::Layout& side, std::int64_t batch, Visit&& visit) {
  std::int64_t packed = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < side.extents[0]; ++i) {
      for (std::int64_t j = 0; j < side.extents[1]; ++j) {
        for (std::int64_t k = 0; k < side.extents[2]; ++k)
          visit(b * side.distance + i * side.pitch[0] + j * side.pitch[1] + k * side.pitch[2],
                packed++);
      }
    }
  }
}

template <class T>
Result<Plan> make_plan(const fft::Transform& op, bool in_place) {
  using Complex = std::complex<T>;
  const auto input = op.input_layout(), output = op.output_layout();
  std::array<Dimension, fft::kMaxRank> dimensions;
  for (std::uint32_t i = 0; i < op.rank; ++i)
    dimensions[i] = {op.extents[i], input.pitch[i], output.pitch[i]};
  const Dimension batch{op.batch, input.distance, output.distance};
  const auto rank = static_cast<int>(op.rank);
  const auto& library = fftw<T>();
  static std::array<Line, 2> places;  // in the place of operands: planning does not touch them
  const Sides sides{places[0].byte, places[in_place ? 0 : 1].byte};

  const std::lock_guard lock(planner());
  void* plan = nullptr;
  if (op.kind == Kind::real_to_complex) {
    plan = library.plan_r2c(rank, dimensions.data(), 1, &batch, sides.in<T>(), sides.out<Complex>(),
                            library.kFlags);
  } else if (op.kind == Kind::complex_to_real) {
    plan = library.plan_c2r(rank, dimensions.data(), 1, &batch, sides.in<Complex>(), sides.out<T>(),
                            library.kFlags);
  } else {
    plan = library.plan(
        rank, dimensions.data(), 1, &batch, sides.in<Complex>(), sides.out<Complex>(),
        op.kind == Kind::forward ? library.kForward : library.kInverse, library.kFlags);
  }
  if (plan == nullptr)
    return Error{Errc::unsupported, 0, "fft.transform: FFTW has no plan for this transform"};
  return Plan(plan, [&library](void* made) {
    const std::lock_guard destroying(planner());
    library.destroy(made);
  });
}

class Fft final : public LibraryHalfOf<Fft, fft::Operations> {
 public:
  explicit Fft(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {dependency<double>("FFTW"), dependency<float>("FFTW, single precision")};
  }

  /// It makes a plan where none is cached, or is looked at.
  [[nodiscard]] bool blocks(const OperationInfo&, const std::byte* op, const Call& call) override {
    const auto& transform = *reinterpret_cast<const fft::Transform*>(op);
    if (transform.batch == 0) return false;
    const bool in_place = call.at(transform.input) == call.at(transform.output);
    const auto key = is_narrow(transform.dtype) ? key_of(widened(transform), false)
                                                : key_of(transform, in_place);
    return cached(key) == plans_.end() || is_due(call, looked_at(transform, call));
  }

  Result<void> run(const fft::Transform& op, const Call& call) {
    const auto transform = looked_at(op, call);
    const auto look_at = [&]<class N>(N) {
      FftLook<N> look(*transform, call.at(op.input), call.at(op.output), call, services_);
      return looks_.carry_out(fft::Transform::kName, cost(*transform), look,
                              [&] { return carry_out(op, call); });
    };
    if (is_due(call, transform)) {
      switch (op.dtype.value) {
        case DType::f16: return look_at(Half{});
        case DType::bf16: return look_at(BFloat16{});
        case DType::c64: return look_at(float{});
        default: return look_at(double{});
      }
    }
    if (transform) looks_.count(cost(*transform));
    return carry_out(op, call);
  }

 private:
  /// Nothing: nobody looks.
  [[nodiscard]] std::optional<CheckedTransform> looked_at(const fft::Transform& op,
                                                          const Call& call) const {
    if (!looks_.on()) return std::nullopt;
    return checked_transform(op, call.at(op.input) == call.at(op.output));
  }
  [[nodiscard]] static CheckCost cost(const CheckedTransform& transform) {
    return cost_of(
        transform,
        {.flops = 4, .bytes = 4, .elements = 0.1, .weights = 0.02, .start = 2000, .check = 50'000});
  }
  [[nodiscard]] bool is_due(const Call& call,
                            const std::optional<CheckedTransform>& transform) const {
    return transform && looks_.due(call, services_.records(), cost(*transform));
  }

  Result<void> carry_out(const fft::Transform& op, const Call& call) {
    if (op.batch == 0) return {};
    switch (op.dtype.value) {
      case DType::f16: return narrow_transform<Half>(op, call);
      case DType::bf16: return narrow_transform<BFloat16>(op, call);
      case DType::c64: return transform<float>(op, call);
      default: return transform<double>(op, call);
    }
  }

  struct Cached {
    Key key;
    Plan plan;
  };
  static constexpr std::size_t kPlans = 32;

  template <class T>
  static Dependency dependency(std::string name) {
    const auto& library = fftw<T>();
    return {std::move(name), library.loaded ? library.version : "not installed",
            library.loaded ? library.version : nullptr};
  }

  std::list<Cached>::iterator cached(const Key& key) {
    return std::find_if(plans_.begin(), plans_.end(),
                        [&](const Cached& entry) { return entry.key == key; });
  }

  template <class T>
  Result<Plan> plan_for(const fft::Transform& op, bool in_place) {
    if (const auto& library = fftw<T>(); !library.loaded) {
      return Error{Errc::unsupported, 0,
                   std::string("fft.transform: the cpu engine needs FFTW (") + library.kFile +
                       ", in Debian's and Ubuntu's libfftw3-dev): " + library.why};
    }
    const auto key = key_of(op, in_place);
    if (const auto found = cached(key); found != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, found);
      return found->plan;
    }
    auto made = make_plan<T>(op, in_place);
    if (!made) return made.error();
    if (plans_.size() == kPlans) plans_.pop_back();  // work that is queued keeps its plan
    plans_.push_front({key, *made});
    return made;
  }

  template <class T>
  static void execute(const Plan& plan, Kind kind, const Sides& sides) {
    using Complex = std::complex<T>;
    const auto& library = fftw<T>();
    if (kind == Kind::real_to_complex) {
      library.execute_r2c(plan.get(), sides.in<T>(), sides.out<Complex>());
    } else if (kind == Kind::complex_to_real) {
      library.execute_c2r(plan.get(), sides.in<Complex>(), sides.out<T>());
    } else {
      library.execute(plan.get(), sides.in<Complex>(), sides.out<Complex>());
    }
  }

  template <class T>
  Result<void> transform(const fft::Transform& op, const Call& call) {
    const Sides sides{call.at(op.input), call.at(op.output)};
    const auto plan = plan_for<T>(op, sides.input == sides.output);
    if (!plan) return plan.error();
    if (is_aligned<T>(sides))
      return services_.submit(
          call, [plan = *plan, kind = op.kind, sides] { execute<T>(plan, kind, sides); });
    return services_.submit(call, [plan = *plan, op, sides] { execute_moved<T>(plan, op, sides); });
  }

  /// In aligned memory of its own. Elements that belong to no transform stay as they are.
  template <class T>
  static void execute_moved(const Plan& plan, const fft::Transform& op, const Sides& sides) {
    const auto input = op.input_layout(), output = op.output_layout();
    const auto in_bytes = input.span(op.batch) * input.bytes,
               out_bytes = output.span(op.batch) * output.bytes;
    const bool in_place = sides.input == sides.output;
    auto x = room_for(in_place ? std::max(in_bytes, out_bytes) : in_bytes);
    auto y = room_for(in_place ? 0 : out_bytes);
    const Sides moved{start_of(x), start_of(in_place ? x : y)};
    std::memcpy(moved.input, sides.input, static_cast<std::size_t>(in_bytes));
    execute<T>(plan, op.kind, moved);
    for_each_element(output, op.batch, [&](std::int64_t place, std::int64_t) {
      std::memcpy(sides.output + place * output.bytes, moved.output + place * output.bytes,
                  output.bytes);
    });
  }

  /// By way of f32, in memory of its own.
  template <class N>
  Result<void> narrow_transform(const fft::Transform& op, const Call& call) {
    const auto plan = plan_for<float>(widened(op), false);
    if (!plan) return plan.error();
    return services_.submit(
        call, [plan = *plan, op, from = call.at<const N>(op.input), to = call.at<N>(op.output)] {
          const auto input = op.input_layout(), output = op.output_layout();
          const auto numbers = [](const fft::Layout& side) {
            return static_cast<std::int64_t>(side.bytes / sizeof(N));
          };
          const auto in_each = numbers(input), out_each = numbers(output);
          constexpr std::int64_t kBytes = sizeof(float);
          auto x_room = room_for(op.batch * input.volume() * in_each * kBytes);
          auto y_room = room_for(op.batch * output.volume() * out_each * kBytes);
          const Sides wide{start_of(x_room), start_of(y_room)};
          auto* const x = wide.in<float>();
          const auto* const y = wide.out<float>();
          for_each_element(input, op.batch, [&](std::int64_t place, std::int64_t i) {
            for (std::int64_t part = 0; part < in_each; ++part)
              x[i * in_each + part] = to_float(from[place * in_each + part]);
          });
          execute<float>(plan, op.kind, wide);
          for_each_element(output, op.batch, [&](std::int64_t place, std::int64_t i) {
            for (std::int64_t part = 0; part < out_each; ++part)
              to[place * out_each + part] = from_float<N>(y[i * out_each + part]);
          });
        });
  }

  Services& services_;
  ProductLooks looks_{services_.product_checks()};
  std::list<Cached> plans_;  ///< the most recently used first
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Fft, cpu)

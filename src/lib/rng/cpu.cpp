#include <troupe/lib/rng.hpp>

#include <cstring>
#include <vector>

#include "device_host/engine/cpu/library.hpp"
#include "lib/rng/laws/law_of.hpp"
#include "lib/rng/random_cpu.hpp"
#include "lib/rng/sequences/sequences.hpp"

namespace troupe::host::cpu {
namespace {

template <class Op>
RandomRange range_of(const Op& op) {
  return {op.seed, rng_numbers::position_of(op), op.n};
}

/// destination[i] by a law, of the draw that belongs to its place.
template <class Law, class T>
void draw(const Law& law, const RandomRange& range, T* destination) {
  for (std::int64_t i = 0; i < range.n; ++i) {
    rng_numbers::Draw numbers(range.seed, range.position + static_cast<std::uint64_t>(i));
    destination[i] = static_cast<T>(law(numbers));
  }
}

class Rng final : public LibraryHalfOf<Rng, rng::Operations> {
 public:
  explicit Rng(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"cuRAND", random_library(), random_symbol()}};
  }
  Result<void> run(const rng::Bits& op, const Call& call);
  Result<void> run(const rng::Uniform& op, const Call& call);
  Result<void> run(const rng::Normal& op, const Call& call);
  Result<void> run(const rng::LogNormal& op, const Call& call);
  template <rng::Law kLaw>
  Result<void> run(const rng::Distributed<kLaw>& op, const Call& call);
  Result<void> run(const rng::Discrete& op, const Call& call);
  Result<void> run(const rng::Sequence& op, const Call& call);

 private:
  Services& services_;
  rng_numbers::Sequences sequences_{rng_numbers::Sequences::Where::host};
  Random random_;  ///< of the thread that executes the work
};

Result<void> Rng::run(const rng::Bits& op, const Call& call) {
  auto range = range_of(op);
  if (op.dtype == DType::u64) range.n *= 2;
  return services_.submit(call,
                          [this, range, destination = call.at<std::uint32_t>(op.destination)] {
                            random_.bits(range, destination);
                          });
}

Result<void> Rng::run(const rng::Uniform& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    return services_.submit(
        call, [this, range = range_of(op), destination = call.at<decltype(zero)>(op.destination)] {
          random_.uniform(range, destination);
        });
  });
}

Result<void> Rng::run(const rng::Normal& op, const Call& call) {
  if (op.n % 2 != 0 || op.offset % 2 != 0) {
    return Error{Errc::invalid, 0, "normal numbers come in pairs: length and offset must be even"};
  }
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(
        call, [this, range = range_of(op), mean = static_cast<T>(op.mean),
               deviation = static_cast<T>(op.deviation), destination = call.at<T>(op.destination)] {
          random_.normal(range, mean, deviation, destination);
        });
  });
}

Result<void> Rng::run(const rng::LogNormal& op, const Call& call) {
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(
        call, [this, range = range_of(op), mean = static_cast<T>(op.mean),
               deviation = static_cast<T>(op.deviation), destination = call.at<T>(op.destination)] {
          random_.log_normal(range, mean, deviation, destination);
        });
  });
}

template <rng::Law kLaw>
Result<void> Rng::run(const rng::Distributed<kLaw>& op, const Call& call) {
  const auto submit = [&]<class T>(T) {
    return services_.submit(
        call, [law = rng_numbers::law_of(op), range = range_of(op),
               destination = call.at<T>(op.destination)] { draw(law, range, destination); });
  };
  if constexpr (kLaw >= rng::Law::poisson) {
    return submit(std::uint32_t{});
  } else {
    return with_real(op.dtype, submit);
  }
}

Result<void> Rng::run(const rng::Discrete& op, const Call& call) {
  const rng_numbers::DiscreteLaw law{call.at<const double>(op.threshold),
                                     call.at<const std::uint32_t>(op.alias),
                                     static_cast<std::uint32_t>(op.categories)};
  return services_.submit(
      call, [law, range = range_of(op), destination = call.at<std::uint32_t>(op.destination)] {
        draw(law, range, destination);
      });
}

Result<void> Rng::run(const rng::Sequence& op, const Call& call) {
  if (!rng_numbers::curand().loaded)
    return Error{Errc::unsupported, 0, "rng.sequence: the cpu engine needs libcurand.so.10"};
  return services_.submit(call, [this, op, destination = call.at(op.destination)] {
    std::vector<std::byte> room;  // what new gives is aligned
    const auto made = sequences_.make(
        op, 0, nullptr, destination,
        [&](std::size_t bytes) -> Result<void*> {
          room.resize(bytes);
          return static_cast<void*>(room.data());
        },
        [](void* to, const void* from, std::size_t bytes) -> Result<void> {
          std::memcpy(to, from, bytes);
          return {};
        });
    if (!made) throw Exception(made.error());
  });
}

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Rng, cpu)

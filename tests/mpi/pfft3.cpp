#include <array>
#include <complex>
#include <numbers>

#include <troupe/distributed.hpp>

#include "mpi_tests.hpp"

// Fourier transforms of arrays that are spread over a grid of ranks, compared with sums on the
// host.

namespace troupe::test {
namespace {

using distributed::Box;
using distributed::Grid;
using distributed::Pfft3;
using Extents = std::array<std::int64_t, 3>;
using Whole = std::vector<std::complex<double>>;

std::int64_t volume(const Extents& n) {
  return n[0] * n[1] * n[2];
}

/// Numbers without any regularity.
Whole signal(const Extents& n) {
  Whole values;
  for (std::int64_t i = 0; i < volume(n); ++i)
    values.emplace_back(static_cast<double>(i * 7919 % 113) / 113 - 0.5,
                        static_cast<double>(i * 104729 % 127) / 127 - 0.5);
  return values;
}

/// The forward transform, one axis after the other, by its formula.
Whole transform_of(Whole values, const Extents& n) {
  const std::array pitch{n[1] * n[2], n[2], std::int64_t{1}};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Whole next(values.size());
    for (std::int64_t i = 0; i < volume(n); ++i) {
      const auto k = i / pitch[axis] % n[axis], start = i - k * pitch[axis];
      for (std::int64_t j = 0; j < n[axis]; ++j)
        next[static_cast<std::size_t>(i)] +=
            values[static_cast<std::size_t>(start + j * pitch[axis])] *
            std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n[axis]) /
                                static_cast<double>(n[axis]));
    }
    values = std::move(next);
  }
  return values;
}

template <class E>
std::vector<E> part_of(const Whole& whole, const Extents& n, const Box& box) {
  std::vector<E> part;
  for (std::int64_t i = 0; i < box.extent[0]; ++i) {
    for (std::int64_t j = 0; j < box.extent[1]; ++j) {
      for (std::int64_t k = 0; k < box.extent[2]; ++k) {
        const auto place = ((box.first[0] + i) * n[1] + box.first[1] + j) * n[2] + box.first[2] + k;
        const auto& value = whole[static_cast<std::size_t>(place)];
        if constexpr (RealElement<E>)
          part.push_back(static_cast<E>(value.real()));
        else
          part.emplace_back(value);
      }
    }
  }
  return part;
}

/// The largest error, in units of what a transform of so many elements of this type may err by.
template <class E>
double error_of(const std::vector<E>& is, const std::vector<E>& wanted, double scale) {
  double worst = is.size() == wanted.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(is.size(), wanted.size()); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(is[i] - wanted[i])));
  return worst / (scale * static_cast<double>(std::numeric_limits<RealOf<E>>::epsilon()));
}

bool on_one_host(Context& c) {
  return c.world().local_size() == c.world().size();
}

template <class E>
void transforms(Context& c, Grid& grid, const Extents& n, int pieces, const std::string& of_grid) {
  using T = RealOf<E>;
  using Value = std::complex<T>;
  const auto what = of_grid + ", " + std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " +
                    std::to_string(n[2]) + (RealElement<E> ? ", real" : ", complex") +
                    (sizeof(T) == 4 ? ", f32, " : ", f64, ") + std::to_string(pieces) + " pieces";
  auto whole = signal(n);
  if constexpr (RealElement<E>) {
    for (auto& value : whole) value = value.real();
  }
  const auto spectrum = transform_of(whole, n);
  const auto elements = static_cast<double>(volume(n));
  Pfft3<E> plan(c.device(), grid, n, pieces);
  const bool slabs = grid.rows() > 1 && grid.columns() == 1,
             maps = c.runtime().config().text("token-path") != "network";
  c.expect_equal(plan.reads_others(), slabs && maps && on_one_host(c), what + ": the way of slabs");
  const auto boxes =
      c.ranks().gather_values(std::array{plan.space_box().volume(), plan.spectrum_box().volume()});
  std::array<std::int64_t, 2> sums{};
  for (const auto& box : boxes) sums[0] += box[0], sums[1] += box[1];
  c.expect(sums[0] == volume(n) && sums[1] == n[0] * n[1] * (RealElement<E> ? n[2] / 2 + 1 : n[2]),
           what + ": the parts are not the whole");

  const auto mine = part_of<E>(whole, n, plan.space_box()),
             wanted = part_of<Value>(spectrum, n, plan.spectrum_box());
  c.device().upload<E>(mine, plan.space()).get();
  const auto run = plan.forward();
  c.require(run.wait_for(kDeadline), what + " does not resolve");
  c.expect(run.wait().ok(), what + ": " + (run.wait().ok() ? "" : run.wait().error().message));
  const auto tolerance = 4 * std::log2(elements + 2);
  const auto got = c.device().download(plan.spectrum());
  const auto error = error_of(got, wanted, std::sqrt(elements));
  c.expect(error < tolerance, what + ": the error is " + std::to_string(error) + " units");
  c.expect_equal(c.device().download(plan.space()), mine, what + " has changed its source");

  c.device().fill(plan.space(), E(17));
  plan.inverse().get();
  auto back = mine;
  for (auto& value : back) value *= static_cast<T>(elements);
  const auto error_back = error_of(c.device().download(plan.space()), back, elements);
  c.expect(error_back < tolerance,
           what + " and back: the error is " + std::to_string(error_back) + " units");
  c.expect_equal(c.device().download(plan.spectrum()), got,
                 what + " and back has changed its source");

  if (grid.rows() > 1 && grid.columns() > 1) return;  // a sequence has one communicator
  c.device().upload<E>(mine, plan.space()).get();
  const auto sequence = c.device().record([&] { plan.forward(); });
  for (int i = 0; i < 2; ++i) {
    c.device().fill(plan.spectrum(), Value(17));
    sequence.run().get();
  }
  c.expect(error_of(c.device().download(plan.spectrum()), wanted, std::sqrt(elements)) < tolerance,
           what + ": recorded, it is wrong");
}

}  // namespace

TROUPE_MPI_CASE(pfft3) {
  for (int rows = 1; rows <= c.size(); ++rows) {
    if (c.size() % rows != 0) continue;
    Grid grid(c.world(), rows, c.size() / rows);
    const auto of_grid = std::to_string(rows) + " x " + std::to_string(grid.columns());
    for (const Extents& n :
         {Extents{8, 6, 10}, {5, 7, 3}, {1, 2, 3}, {16, 1, 1}, {1, 1, 9}, {16, 20, 12}}) {
      transforms<float>(c, grid, n, 0, of_grid);
      transforms<std::complex<float>>(c, grid, n, 0, of_grid);
      for (const int pieces : {0, 3}) {
        transforms<double>(c, grid, n, pieces, of_grid);
        transforms<std::complex<double>>(c, grid, n, pieces, of_grid);
      }
    }
    for (const Extents& n : {Extents{0, 4, 4},
                             {4, -1, 4},
                             {4, 4, std::int64_t{1} << 31},
                             {1 << 20, 1 << 20, 1 << 20},
                             {4, 4, c.first() ? 5 : 6}}) {
      if (c.size() == 1 && n[0] == 4 && n[2] == 5) continue;  // the last: ranks that differ
      bool refused = false;
      try {
        Pfft3<std::complex<double>>(c.device(), grid, n);
      } catch (const CollectiveException& e) {
        refused = e.code() == Errc::invalid;
      }
      c.expect(refused, of_grid + ": wrong extents are not refused");
    }
    for (const int pieces : {-1, Pfft3<std::complex<double>>::kMostPieces + 1}) {
      try {
        Pfft3<std::complex<double>>(c.device(), grid, {4, 4, 4}, pieces);
        c.expect(false, of_grid + ": wrong pieces are not refused");
      } catch (const CollectiveException& e) {
        c.expect_equal(e.code(), Errc::invalid, std::string("wrong pieces: ") + e.what());
      }
    }
  }
}

/// Device hosts die in the middle of transforms within a run: each step goes there and back, on
/// slabs and on pencils, of complex and real arrays.
TROUPE_MPI_CASE(pfft3_faults) {
  constexpr std::int64_t kSteps = 24;
  const Extents n{8, 12, 10};
  auto& device = c.device();
  Grid slabs(c.world(), c.size(), 1), pencils(c.world(), 1, c.size());
  Pfft3<std::complex<double>> first(device, slabs, n, 2), second(device, pencils, n);
  Pfft3<double> third(device, slabs, n, 3);
  const auto each = [&](const auto& use) {
    use(first, "slabs"), use(second, "pencils"), use(third, "real");
  };
  const auto whole = signal(n);
  Checkpoint state(device);
  each([&]<class E>(Pfft3<E>& plan, const std::string& name) {
    device.upload<E>(part_of<E>(whole, n, plan.space_box()), plan.space());
    device.fill(plan.spectrum(), std::complex<double>());
    state.add(name, plan.space());
    state.add_scratch(plan.spectrum());
  });
  std::set<std::int64_t> strikes{5, 13, 14, 19};
  const double back = 1.0 / static_cast<double>(volume(n));
  c.world().run(state,
                [&](std::int64_t i) {
                  each([&]<class E>(Pfft3<E>& plan, const std::string& name) {
                    plan.forward();
                    if (name == (i == 19 ? "real" : "slabs") && strikes.erase(i) != 0 &&
                        c.rank() == i % c.size())
                      device.inject(memory::FaultKind::kill);
                    plan.inverse();
                    device.blas().scal(E(back), plan.space());
                  });
                  return i + 1 < kSteps ? Step::again : Step::done;
                },
                {.commit_every = 6});
  each([&]<class E>(Pfft3<E>& plan, const std::string& name) {
    const auto error =
        error_of(device.download(plan.space()), part_of<E>(whole, n, plan.space_box()), 1.0);
    c.expect(error < 40 * kSteps,
             name + ": after the faults the error is " + std::to_string(error));
    auto mine = whole;
    for (auto& value : mine) value = RealElement<E> ? value.real() : value;
    plan.forward().get();
    const auto wanted =
        part_of<std::complex<double>>(transform_of(mine, n), n, plan.spectrum_box());
    c.expect(error_of(device.download(plan.spectrum()), wanted, 1.0) < 1e6,
             name + ": the transform after the faults");
  });
  c.expect(c.world().recoveries().size() >= 2, "no fault was overcome");
}

}  // namespace troupe::test

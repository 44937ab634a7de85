#include "domain.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::heat {
namespace {

struct Mode {
  double amplitude;
  Triple half_waves;
};
constexpr Mode kModes[] = {{1.0, {1, 1, 1}}, {0.5, {2, 1, 3}}};

double angle(std::int64_t half_waves, std::int64_t points) {
  return std::numbers::pi * static_cast<double>(half_waves) / static_cast<double>(points + 1);
}

}  // namespace

Triple Domain::global() const {
  return {points[0] * ranks[0], points[1] * ranks[1], points[2] * ranks[2]};
}

std::int64_t Domain::face_offset(int side) const {
  std::int64_t offset = 0;
  for (int before = 0; before < side; ++before) offset += face(before / 2);
  return offset;
}

int Domain::neighbour(int side) const {
  const auto axis = static_cast<std::size_t>(side / 2);
  auto there = position;
  there[axis] += side % 2 == 0 ? -1 : 1;
  if (there[axis] < 0 || there[axis] >= ranks[axis]) return -1;
  return static_cast<int>((there[2] * ranks[1] + there[1]) * ranks[0] + there[0]);
}

Domain make_domain(const Triple& points, int rank, int size) {
  Domain domain{.points = points, .ranks = {1, 1, 1}};
  std::vector<std::int64_t> factors;
  std::int64_t rest = size;
  for (std::int64_t factor = 2; rest > 1; ++factor)
    for (; rest % factor == 0; rest /= factor) factors.push_back(factor);
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    auto& ranks = domain.ranks;
    const auto fewest = std::min_element(ranks.rbegin(), ranks.rend());  // z first
    *fewest *= *factor;
  }
  domain.position = {rank % domain.ranks[0], rank / domain.ranks[0] % domain.ranks[1],
                     rank / (domain.ranks[0] * domain.ranks[1])};
  return domain;
}

std::vector<double> exact(const Domain& domain, double courant, std::int64_t steps) {
  std::vector<double> values(static_cast<std::size_t>(domain.count()));
  const auto all = domain.global();
  for (const auto& mode : kModes) {
    std::array<std::vector<double>, 3> sines;
    double factor = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double step = angle(mode.half_waves[axis], all[axis]);
      factor -= 2 * courant * (1 - std::cos(step));
      const auto first = domain.position[axis] * domain.points[axis] + 1;
      for (std::int64_t i = 0; i < domain.points[axis]; ++i)
        sines[axis].push_back(std::sin(step * static_cast<double>(first + i)));
    }
    const double amplitude = mode.amplitude * std::pow(factor, static_cast<double>(steps));
    auto* value = values.data();
    for (const double z : sines[2])
      for (const double y : sines[1])
        for (const double x : sines[0]) *value++ += amplitude * x * y * z;
  }
  return values;
}

}  // namespace troupe::heat

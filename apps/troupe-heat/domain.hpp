#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace troupe::heat {

/// Along x, y and z.
using Triple = std::array<std::int64_t, 3>;

/// The box of points of one rank, and where it lies. All ranks have boxes of one size, which stand
/// beside each other along all three axes; rank 0 is at the origin, x runs fastest.
struct Domain {
  Triple points{};    ///< of this rank
  Triple ranks{};     ///< along each axis
  Triple position{};  ///< of this rank among them

  [[nodiscard]] Triple global() const;
  [[nodiscard]] std::int64_t count() const { return points[0] * points[1] * points[2]; }
  /// Of the two faces across an axis, each.
  [[nodiscard]] std::int64_t face(int axis) const { return count() / points[axis]; }
  /// Where the six faces stand in a buffer of all: those of the lower side across x, of the upper
  /// side, and so on.
  [[nodiscard]] std::int64_t face_offset(int side) const;
  [[nodiscard]] std::int64_t faces() const { return face_offset(6); }
  /// The rank at that side (0 to 5, as above); -1: the edge of the whole.
  [[nodiscard]] int neighbour(int side) const;
};

/// Divides `size` ranks among the axes, as evenly as its prime factors allow: z gets the first
/// factor, then y, then x, as {points} of scripts/scaling.sh does.
Domain make_domain(const Triple& points, int rank, int size);

/// What this rank's points hold after so many steps of the explicit scheme
///
///     u'(i,j,k) = u(i,j,k) + c (the six neighbours' sum - 6 u(i,j,k)),   0 beyond the edges,
///
/// from a sum of two products of sines: those are eigenvectors of the scheme, with the factors
/// 1 - 2 c sum over the axes of (1 - cos(m pi / (n + 1))), where m is the number of half waves and
/// n the number of points along the axis. Source: the discrete Laplacian's eigenvalues, e.g.
/// LeVeque, "Finite Difference Methods for Ordinary and Partial Differential Equations",
/// section 2.10. x runs fastest. At most 1.5 in size.
std::vector<double> exact(const Domain& domain, double courant, std::int64_t steps);

}  // namespace troupe::heat

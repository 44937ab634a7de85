#include <cstdlib>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

const OpenedLibrary* find(const std::vector<OpenedLibrary>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& library) { return library.name == name; });
  return found != all.end() ? &*found : nullptr;
}

}  // namespace

/// Each rank uses a library, which run_versions.sh gives it in a version of its own, and is told
/// which.
TROUPE_MPI_CASE(libraries) {
  c.expect(find(c.device().libraries(), "vector") == nullptr, "nothing has opened it");
  const auto x = c.device().alloc<double>(4), y = c.device().alloc<double>(4);
  c.device().fill(x, 3.0);
  c.device().vector().multiply(x, x, y);
  c.expect_equal(c.device().download(y), std::vector<double>(4, 9.0), "the product is wrong");
  const auto all = c.device().libraries();
  c.require(find(all, "vector") != nullptr, "it is open");
  const char* const version = std::getenv("TEST_MATH_VERSION");
  if (version == nullptr) return;
  const auto& stands_on = find(all, "vector")->stands_on;
  c.require_equal(stands_on.size(), 1, "what it stands on is told");
  c.expect(stands_on[0].name == "TestMath" && stands_on[0].version == version,
           stands_on[0].name + " " + stands_on[0].version);
  c.expect(stands_on[0].file.ends_with("/troupe-vector-cpu.so"), stands_on[0].file);
}

}  // namespace troupe::test

// All device hosts of a rank load the same modules of libraries outside troupe.
#include "rank/device/host/library_use.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

using Module = decltype(wire::LibraryStamp::module);

/// The module of the rank's first library that a host reports as loaded, or is told to load.
Module& module_of(const HostLink& host) {
  return host.header().libraries.front().module;
}

std::shared_ptr<HostLink> host(std::uint64_t id) {
  HostLaunch launch;
  launch.ring_bytes = 4096;
  return HostLink::create(launch, id).take();
}

TEST(LibraryUse, NamesTheModulesOfTheFirstHostToLaterOnes) {
  LibraryUse use(nullptr, "");
  const auto first = host(1), second = host(2), other = host(3);
  ASSERT_FALSE(first->header().libraries.front().library().empty());
  for (const auto& one : {first, other}) use.name_modules(*one);
  EXPECT_EQ(module_of(*first), Module{}) << "nothing is known yet";
  module_of(*first) = {1, 2};
  use.note_modules(*first);
  use.name_modules(*second);
  EXPECT_EQ(module_of(*second), (Module{1, 2}));
  use.note_modules(*second);
  EXPECT_FALSE(second->header().unknown.any());
  module_of(*other) = {3, 4};  // it had started before anything was known
  use.note_modules(*other);
  EXPECT_TRUE(other->header().unknown.any());
  EXPECT_EQ(other->header().unknown.why(other->header().libraries.front().library()),
            "its module was replaced as the job began");
}

}  // namespace
}  // namespace troupe::rank_process

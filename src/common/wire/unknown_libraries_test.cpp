#include "common/wire/unknown_libraries.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace troupe::wire {
namespace {

TEST(UnknownLibraries, TellsWhyEachIsUnknown) {
  const auto unknown = std::make_unique<UnknownLibraries>();
  EXPECT_FALSE(unknown->any());
  EXPECT_EQ(unknown->why("magma"), "");
  unknown->add(3, "magma", "there is no file");
  unknown->add(17, "ma", "it has version 2");
  EXPECT_EQ(unknown->lanes(), 1u << 3 | 1u << 17);
  EXPECT_EQ(unknown->why("magma"), "there is no file");
  EXPECT_EQ(unknown->why("ma"), "it has version 2");
  EXPECT_EQ(unknown->why("gma"), "");
  EXPECT_EQ(unknown->text(), "magma: there is no file\nma: it has version 2\n");
}

TEST(UnknownLibraries, CutsOffWhatDoesNotFit) {
  const auto unknown = std::make_unique<UnknownLibraries>();
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    unknown->add(lane, "library" + std::to_string(lane), std::string(1000, 'x'));
  EXPECT_EQ(unknown->lanes(), ~0u);
  EXPECT_LT(unknown->text().size(), sizeof(UnknownLibraries));
  EXPECT_EQ(unknown->why("library0"), std::string(1000, 'x'));
  EXPECT_EQ(unknown->why("library31"), "");
}

}  // namespace
}  // namespace troupe::wire

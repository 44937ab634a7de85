// Messages that travel as cereal puts them.
#include <troupe/actor/cereal.hpp>

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>

namespace {

struct Scene {
  std::map<std::string, int> objects;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(objects);
  }
};

}  // namespace

template <>
struct troupe::Serializer<Scene> : troupe::CerealSerializer<Scene> {};

namespace troupe {
namespace {

static_assert(Portable<Scene>);

TEST(Cereal, ThereAndBack) {
  const Scene scene{{{"tree", 3}, {"house", 1}}};
  const auto read = detail::from_bytes<Scene>(detail::to_bytes(scene));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->objects, scene.objects);
}

TEST(Cereal, WhatIsMalformedIsRefused) {
  const auto sound = detail::to_bytes(Scene{{{"tree", 3}}});
  for (std::size_t length = 0; length < sound.size(); ++length)
    EXPECT_EQ(detail::from_bytes<Scene>(std::span(sound).first(length)).code(), Errc::invalid);
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    auto bytes = sound;
    // Of the number of objects. What a wrong length of a text costs is for cereal to say.
    bytes[9 + random() % 5] = std::byte(random());
    (void)detail::from_bytes<Scene>(bytes);
  }
}

}  // namespace
}  // namespace troupe

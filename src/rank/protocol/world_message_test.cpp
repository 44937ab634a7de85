// The world's messages as bytes: there and back, and malformed ones refused.
#include "rank/protocol/message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>

#include "common/core/fields.hpp"

namespace troupe::rank_process {
namespace {

/// Gives every field, of fields too, a value that no empty message has, and no other field. An enum
/// gets its second value.
class Filler {
 public:
  template <class T>
  void fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(1);
    } else if constexpr (std::is_same_v<T, std::byte>) {
      value = static_cast<std::byte>(++last_);
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(++last_);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(++last_) + std::string(1, '\0') + "behind a zero";
    } else if constexpr (std::is_same_v<T, Error>) {
      fill(value.code), fill(value.native), fill(value.message);
    } else if constexpr (std::is_same_v<T, Contributions>) {
      value = {1000, {{3, {std::byte{1}}}, {999, {std::byte{2}, std::byte{3}}}}};
    } else if constexpr (requires { value.emplace_back(); }) {
      fill(value.emplace_back());
      fill(value.emplace_back());
    } else {
      for_each_field(value, [this](auto& field) { this->fill(field); });
    }
  }

 private:
  int last_ = 0;
};

/// True if two messages hold the same, field by field.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Error>) {
    return a.code == b.code && a.native == b.native && a.message == b.message;
  } else if constexpr (std::equality_comparable<T> && !requires { a.begin(); }) {
    return a == b;
  } else if constexpr (requires { a.begin(); }) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return same(x, y); });
  } else {
    const auto of_a = tie_fields(a);
    const auto of_b = tie_fields(b);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (same(std::get<I>(of_a), std::get<I>(of_b)) && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(of_a)>>{});
  }
}

/// Calls check(empty message, filled message) for every kind of message.
template <class Variant, class Check>
void for_each_kind(const Check& check) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto one = [&]<class Message>(Message empty) {
      Message filled;
      Filler().fill(filled);
      check(empty, filled);
    };
    (one(std::variant_alternative_t<I, Variant>{}), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>{});
}

template <class Variant>
void expect_all_come_back() {
  for_each_kind<Variant>([]<class Message>(const Message& empty, const Message& filled) {
    SCOPED_TRACE(typeid(Message).name());
    for (const auto& sent : {empty, filled}) {
      const auto got = decode_world_message(encode(sent));
      ASSERT_TRUE(got.ok()) << got.error().message;
      ASSERT_TRUE(std::holds_alternative<Variant>(*got));
      const auto* const back = std::get_if<Message>(&std::get<Variant>(*got));
      ASSERT_NE(back, nullptr) << "another kind of message";
      EXPECT_TRUE(same(*back, sent));
    }
    EXPECT_EQ(same(empty, filled), detail::count_fields<Message>() == 0);
  });
}

TEST(WorldMessage, EveryFieldOfEveryKindComesBack) {
  expect_all_come_back<RankMessage>();
  expect_all_come_back<SupervisorMessage>();
}

/// The bytes of one message of each kind.
std::vector<std::vector<std::byte>> encoded_messages() {
  std::vector<std::vector<std::byte>> all;
  const auto add = [&](const auto&, const auto& filled) { all.push_back(encode(filled)); };
  for_each_kind<RankMessage>(add);
  for_each_kind<SupervisorMessage>(add);
  return all;
}

TEST(WorldMessage, AnyOtherLengthIsAnError) {
  for (const auto& bytes : encoded_messages()) {
    SCOPED_TRACE("kind " + std::to_string(std::to_integer<int>(bytes.front())));
    ASSERT_TRUE(decode_world_message(bytes).ok());
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_EQ(decode_world_message(std::span(bytes).first(length)).code(), Errc::invalid);
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode_world_message(longer).code(), Errc::invalid) << "something follows";
  }
}

/// `bytes` of the message, with the first occurrence of a number replaced by another.
template <class T>
std::vector<std::byte> with(const WorldMessage& message, T before, T after) {
  auto bytes = encode(message);
  for (std::size_t at = sizeof(std::uint32_t); at + sizeof(T) <= bytes.size(); ++at) {
    if (std::memcmp(bytes.data() + at, &before, sizeof(T)) != 0) continue;
    std::memcpy(bytes.data() + at, &after, sizeof(T));
    return bytes;
  }
  ADD_FAILURE() << "the message does not hold that number";
  return bytes;
}

TEST(WorldMessage, ValuesThatNoRankSendsAreErrors) {
  const auto refused = [](const std::vector<std::byte>& bytes) {
    EXPECT_EQ(decode_world_message(bytes).code(), Errc::invalid);
  };
  const auto kinds = std::variant_size_v<RankMessage> + std::variant_size_v<SupervisorMessage>;
  for (const std::uint32_t kind : {static_cast<std::uint32_t>(kinds), ~0u}) {
    std::vector<std::byte> bytes(sizeof kind);
    std::memcpy(bytes.data(), &kind, sizeof kind);
    refused(bytes);
  }
  constexpr std::uint32_t kLastPhase = kPhaseCount - 1;
  refused(with<std::uint32_t>(from_rank::Done{.rank = 9, .phase = static_cast<Phase>(kLastPhase)},
                              kLastPhase, kLastPhase + 1));
  refused(with<std::uint32_t>(
      from_rank::Prepared{.rank = 9, .covered = 5, .step = Preparation::connect}, 1, 2));
  refused(with<std::uint8_t>(from_rank::Failed{.error = {Errc::internal, 0, {}}},
                             static_cast<std::uint8_t>(Errc::internal), 99));
  refused(with<std::uint32_t>(
      from_rank::Standby{.covered = 9, .state = from_rank::Standby::State::stale}, 2, 3));
  refused(with<std::uint8_t>(from_supervisor::Stable{.step = 7, .stopping = true}, 1, 2));
  const auto order = [](std::vector<RankContribution> given) {
    return encode(from_supervisor::Order{.contributions = {4, std::move(given)}});
  };
  const std::vector<std::byte> some{std::byte{1}};
  EXPECT_TRUE(decode_world_message(order({{0, some}, {3, some}})).ok());
  refused(order({{0, some}, {4, some}}));
  refused(order({{-1, some}}));
  refused(order({{2, some}, {1, some}}));
  refused(order({{1, some}, {1, some}}));
  refused(order({{1, {}}}));
}

TEST(WorldMessage, SpeaksForRanksOfTheWorldAlone) {
  EXPECT_TRUE(is_of_world(from_rank::Done{.rank = 2, .covered = 2}, 4));
  EXPECT_FALSE(is_of_world(from_rank::Done{.rank = 2, .covered = 3}, 4));
  EXPECT_FALSE(is_of_world(from_rank::Done{.rank = 2, .covered = 0}, 4));
  EXPECT_FALSE(is_of_world(from_rank::Done{.rank = 1, .covered = INT32_MAX}, 4));
  EXPECT_TRUE(is_of_world(from_rank::Fault{.rank = 3}, 4));
  EXPECT_FALSE(is_of_world(from_rank::Fault{.rank = 4}, 4));
  EXPECT_FALSE(is_of_world(from_rank::Fault{.rank = -1}, 4));
}

TEST(Contributions, AreGivenBackByRank) {
  std::mt19937 random(2);
  std::vector<std::vector<std::byte>> by_rank(30);
  for (auto& bytes : by_rank) {
    bytes.resize(random() % 4 == 0 ? 0 : random() % 500);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  }
  const auto all = Contributions::of(by_rank);
  EXPECT_TRUE(all.sound());
  EXPECT_EQ(all.by_rank(), by_rank);
  EXPECT_TRUE(Contributions::of({}).by_rank().empty());
  EXPECT_FALSE((Contributions{Contributions::kMaxRanks + 1, {}}.sound()));
}

TEST(WorldMessage, RandomBytesNeverCrash) {
  const auto seeds = encoded_messages();
  std::uint64_t refused = 0;
  for (std::uint32_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes;
    if (random() % 2 == 0) {
      bytes = seeds[random() % seeds.size()];
      for (auto left = 1 + random() % 6; left > 0; --left)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    } else {
      std::vector<std::uint64_t> words(random() % 20);
      for (auto& word : words) word = random() % 3 == 0 ? random() : random() % 12;
      bytes.resize(words.size() * 8 + random() % 8);
      if (!words.empty()) std::memcpy(bytes.data(), words.data(), words.size() * 8);
    }
    const auto message = decode_world_message(bytes);
    if (message.ok()) {
      EXPECT_EQ(encode(*message), bytes) << "what is accepted is encoded as it was";
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000u);
}

TEST(Phase, NamesAreTheirOwn) {
  std::set<std::string_view> names;
  for (std::uint32_t phase = 0; phase < kPhaseCount; ++phase)
    names.insert(to_string(static_cast<Phase>(phase)));
  EXPECT_EQ(names.size(), kPhaseCount);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(static_cast<Phase>(99)), "unknown");
}

}  // namespace
}  // namespace troupe::rank_process

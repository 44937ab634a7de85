#include "rank/protocol/message.hpp"

#include <algorithm>

#include "common/core/field_bytes.hpp"

namespace troupe {

template <>
inline constexpr rank_process::Phase kLast<rank_process::Phase> =
    static_cast<rank_process::Phase>(rank_process::kPhaseCount - 1);
template <>
inline constexpr rank_process::Preparation kLast<rank_process::Preparation> =
    rank_process::Preparation::connect;
template <>
inline constexpr rank_process::from_rank::Standby::State
    kLast<rank_process::from_rank::Standby::State> = rank_process::from_rank::Standby::State::stale;
template <>
inline constexpr rank_process::Awaits kLast<rank_process::Awaits> =
    rank_process::Awaits::end_of_program;
template <>
inline constexpr HealthKind kLast<HealthKind> = HealthKind::other;

}  // namespace troupe

namespace troupe::rank_process {

namespace {
// Numbers of messages on the network: those of ranks, then those of the leader, then those for it.
constexpr auto kOfRanks = std::variant_size_v<RankMessage>;
constexpr auto kOfLeader = std::variant_size_v<SupervisorMessage>;
}  // namespace

bool is_echo(std::string_view fault_kind) noexcept {
  constexpr std::string_view kEchoes[] = {
      "communicator",
      "timeout",
      kKindError,
#define TROUPE_RECOVERY_PHASE(name, time) #name,
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) #fault,
#include <troupe/recovery.def>
  };
  return std::find(std::begin(kEchoes), std::end(kEchoes), fault_kind) != std::end(kEchoes);
}

bool is_of_world(const RankMessage& message, int size) {
  return std::visit(
      [size](const auto& said) {
        std::int32_t covered = 1;
        if constexpr (requires { said.covered; }) covered = said.covered;
        return said.rank >= 0 && said.rank < size && covered >= 1 && covered <= size - said.rank;
      },
      message);
}

std::vector<std::byte> encode(const WorldMessage& message) {
  FieldWriter writer;
  const auto put = [&](std::size_t first, const auto& from) {
    writer.put(static_cast<std::uint32_t>(first + from.index()));
    std::visit([&](const auto& said) { writer.put(said); }, from);
  };
  if (const auto* const of_rank = std::get_if<RankMessage>(&message)) {
    put(0, *of_rank);
  } else if (const auto* const of_leader = std::get_if<SupervisorMessage>(&message)) {
    put(kOfRanks, *of_leader);
  } else {
    put(kOfRanks + kOfLeader, std::get<ForLeader>(message).said);
  }
  return writer.take();
}

Result<WorldMessage> decode_world_message(std::span<const std::byte> bytes) {
  FieldReader reader(bytes);
  std::uint32_t kind = 0;
  reader.get(kind);
  WorldMessage message;
  const auto read = [&reader](auto& said) { reader.get(said); };
  bool known = false;
  if (kind < kOfRanks) {
    known = emplace_alternative(kind, message.emplace<RankMessage>(), read);
  } else if (kind < kOfRanks + kOfLeader) {
    known = emplace_alternative(kind - kOfRanks, message.emplace<SupervisorMessage>(), read);
  } else {
    known =
        emplace_alternative(kind - kOfRanks - kOfLeader, message.emplace<ForLeader>().said, read);
  }
  if (!known || !reader.complete())
    return Error{Errc::invalid, 0, "malformed message between ranks"};
  return message;
}

}  // namespace troupe::rank_process

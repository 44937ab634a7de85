#include "keeper/council_message.hpp"

#include <algorithm>

#include "common/core/field_bytes.hpp"

namespace troupe {

template <>
inline constexpr keeper::RankState kLast<keeper::RankState> = keeper::RankState::ended;

}  // namespace troupe

namespace troupe::keeper {
namespace {

bool fits(const Roster& roster, int places, int ranks) {
  const auto is_place = [places](std::int32_t place) { return place >= 0 && place < places; };
  const auto are_places = [&](const std::vector<std::int32_t>& all) {
    return std::all_of(all.begin(), all.end(), is_place) &&
           std::is_sorted(all.begin(), all.end(), std::less_equal<>());
  };
  return static_cast<int>(roster.seats.size()) == ranks && are_places(roster.lost) &&
         are_places(roster.spent) &&
         std::all_of(roster.seats.begin(), roster.seats.end(),
                     [&](const Seat& seat) { return is_place(seat.place); });
}

}  // namespace

bool Roster::is_lost(int place) const {
  return std::binary_search(lost.begin(), lost.end(), place);
}

bool Roster::is_spent(int place) const {
  return std::binary_search(spent.begin(), spent.end(), place);
}

int Roster::rank_at(int place) const {
  const auto found = std::find_if(seats.begin(), seats.end(),
                                  [place](const Seat& seat) { return seat.place == place; });
  return found == seats.end() ? -1 : static_cast<int>(found - seats.begin());
}

bool Roster::is_after(const Roster& other) const {
  return std::pair(term, number) > std::pair(other.term, other.number);
}

bool Roster::says_the_same_as(const Roster& other) const {
  return seats == other.seats && lost == other.lost && spent == other.spent && over == other.over &&
         replaceable == other.replaceable;
}

std::vector<std::byte> encode(const CouncilMessage& message) {
  FieldWriter writer;
  writer.put(static_cast<std::uint32_t>(message.index()));
  std::visit([&](const auto& said) { writer.put(said); }, message);
  return writer.take();
}

Result<CouncilMessage> decode_council_message(std::span<const std::byte> bytes, int places,
                                              int ranks) {
  FieldReader reader(bytes);
  std::uint32_t kind = 0;
  reader.get(kind);
  CouncilMessage message;
  const bool known =
      emplace_alternative(kind, message, [&reader](auto& said) { reader.get(said); });
  bool sound = known && reader.complete();
  if (const auto* const accept = std::get_if<council::Accept>(&message))
    sound = sound && fits(accept->roster, places, ranks);
  if (const auto* const promise = std::get_if<council::Promise>(&message))
    sound = sound && fits(promise->accepted, places, ranks);
  if (const auto* const abort = std::get_if<council::Abort>(&message))
    sound = sound && abort->place >= 0 && abort->place < places;
  if (const auto* const elsewhere = std::get_if<council::Elsewhere>(&message))
    sound = sound && elsewhere->place >= 0 && elsewhere->place < places;
  if (!sound) return Error{Errc::invalid, 0, "malformed message between keepers"};
  return message;
}

}  // namespace troupe::keeper

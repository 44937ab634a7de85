#include "rank/protocol/message.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "common/core/fields.hpp"

namespace troupe::rank_process {
namespace {

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

/// The last enumerator: what is greater is malformed.
template <class T>
inline constexpr auto kLast = nullptr;
template <>
inline constexpr Phase kLast<Phase> = Phase::restore;
template <>
inline constexpr Preparation kLast<Preparation> = Preparation::connect;
template <>
inline constexpr from_rank::Standby::State kLast<from_rank::Standby::State> =
    from_rank::Standby::State::stale;
template <>
inline constexpr Awaits kLast<Awaits> = Awaits::end_of_program;
template <>
inline constexpr HealthKind kLast<HealthKind> = HealthKind::other;
template <>
inline constexpr Errc kLast<Errc> = Errc::internal;

/// Numbers stand as they are in memory; texts and lists have their length in front, as 8 bytes; a
/// struct is its fields.
class Writer {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      raw(&value, sizeof value);
    } else if constexpr (kIsVector<T> || std::is_same_v<T, std::string>) {
      put(static_cast<std::uint64_t>(value.size()));
      using Item = typename T::value_type;
      if constexpr (std::is_arithmetic_v<Item> || std::is_same_v<Item, std::byte>) {
        raw(value.data(), value.size() * sizeof(Item));
      } else {
        for (const auto& item : value) put(item);
      }
    } else if constexpr (std::is_same_v<T, Error>) {
      put(value.code), put(value.native), put(value.message);
    } else {
      for_each_field(value, [this](const auto& field) { put(field); });
    }
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void raw(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

/// Reads what Writer wrote. After the first thing that does not fit, nothing more is read and
/// complete() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      get(byte);
      require(byte <= 1);
      value = byte == 1;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number = 0;
      get(number);
      require(number <= static_cast<std::underlying_type_t<T>>(kLast<T>));
      if (ok_) value = static_cast<T>(number);
    } else if constexpr (std::is_arithmetic_v<T>) {
      raw(&value, sizeof value);
    } else if constexpr (kIsVector<T> || std::is_same_v<T, std::string>) {
      get_items(value);
    } else if constexpr (std::is_same_v<T, Error>) {
      get(value.code), get(value.native), get(value.message);
    } else {
      for_each_field(value, [this](auto& field) { get(field); });
      if constexpr (requires { value.sound(); }) require(value.sound());
    }
  }
  [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }

 private:
  void require(bool holds) { ok_ = ok_ && holds; }
  void raw(void* data, std::size_t size) {
    require(size <= rest_.size());
    if (!ok_ || size == 0) return;
    std::memcpy(data, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  template <class List>
  void get_items(List& list) {
    using Item = typename List::value_type;
    std::uint64_t count = 0;
    get(count);
    require(count <= rest_.size());  // an item takes a byte at least
    if (!ok_) return;
    if constexpr (std::is_arithmetic_v<Item> || std::is_same_v<Item, std::byte>) {
      require(count <= rest_.size() / sizeof(Item));
      if (!ok_) return;
      list.resize(count);
      raw(list.data(), count * sizeof(Item));
    } else {
      for (list.clear(); list.size() < count && ok_;) get(list.emplace_back());
    }
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// Reads the alternative with this number. False: there is none.
template <class Variant>
bool get_alternative(Reader& reader, std::size_t number, Variant& variant) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((number == I && (reader.get(variant.template emplace<I>()), true)) || ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>{});
}

}  // namespace

bool is_echo(std::string_view fault_kind) noexcept {
  constexpr std::string_view kEchoes[] = {"communicator", "timeout", "contribute", "promote",
                                          "form",         "verify",  "restore",    kKindError};
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
  Writer writer;
  const bool is_rank = std::holds_alternative<RankMessage>(message);
  const auto first = is_rank ? std::size_t{0} : std::variant_size_v<RankMessage>;
  std::visit(
      [&](const auto& from) {
        writer.put(static_cast<std::uint32_t>(first + from.index()));
        std::visit([&](const auto& said) { writer.put(said); }, from);
      },
      message);
  return writer.take();
}

Result<WorldMessage> decode_world_message(std::span<const std::byte> bytes) {
  constexpr auto kOfRanks = std::variant_size_v<RankMessage>;
  Reader reader(bytes);
  std::uint32_t kind = 0;
  reader.get(kind);
  WorldMessage message;
  const bool known = kind < kOfRanks ? get_alternative(reader, kind, message.emplace<RankMessage>())
                                     : get_alternative(reader, kind - kOfRanks,
                                                       message.emplace<SupervisorMessage>());
  if (!known || !reader.complete())
    return Error{Errc::invalid, 0, "malformed message between ranks"};
  return message;
}

}  // namespace troupe::rank_process

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/error.hpp>

#include "common/core/fields.hpp"

/// Structs as bytes, for messages between processes of one job: the fields of a struct, in the
/// order of their declaration. Numbers stand as they are in memory; texts and lists have their
/// length in front, as 8 bytes. A Result<void> is the class of its error, and the rest of the error
/// if there is one.
namespace troupe {

/// The last enumerator. A greater number in a message is malformed.
template <class Enumeration>
inline constexpr auto kLast = nullptr;
template <>
inline constexpr Errc kLast<Errc> = Errc::internal;

/// True if fields of this type are left out of the bytes, because they travel beside them.
template <class T>
inline constexpr bool kTravelsBeside = false;

namespace detail {
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
/// Lists of these are copied as a whole.
template <class T>
inline constexpr bool kIsPlain =
    (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_same_v<T, std::byte>;
}  // namespace detail

/// Appends values to bytes.
class FieldWriter {
 public:
  FieldWriter() = default;
  /// Has room for so many bytes at first.
  explicit FieldWriter(std::size_t bytes) { bytes_.reserve(bytes); }
  template <class T>
  void put(const T& value) {
    if constexpr (kTravelsBeside<T>) {
      return;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      raw(&value, sizeof value);
    } else if constexpr (detail::kIsVector<T> || std::is_same_v<T, std::string>) {
      put(static_cast<std::uint64_t>(value.size()));
      if constexpr (detail::kIsPlain<typename T::value_type>) {
        raw(value.data(), value.size() * sizeof(typename T::value_type));
      } else {
        for (const auto& item : value) put(item);
      }
    } else if constexpr (std::is_same_v<T, Error>) {
      put(value.code), put(value.native), put(value.message);
    } else if constexpr (std::is_same_v<T, Result<void>>) {
      put(value.code());
      if (!value.ok()) put(value.error().native), put(value.error().message);
    } else {
      for_each_field(value, [this](const auto& field) { this->put(field); });
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

/// Reads what FieldWriter wrote. After the first value that does not fit, or whose sound() is
/// false, nothing more is read and complete() is false.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  void get(T& value) {
    if constexpr (kTravelsBeside<T>) {
      return;
    } else if constexpr (std::is_same_v<T, bool>) {
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
    } else if constexpr (detail::kIsVector<T> || std::is_same_v<T, std::string>) {
      get_items(value);
    } else if constexpr (std::is_same_v<T, Error>) {
      get(value.code), get(value.native), get(value.message);
    } else if constexpr (std::is_same_v<T, Result<void>>) {
      Error error{Errc::ok, 0, {}};
      get(error.code);
      value = {};
      if (error.code == Errc::ok) return;
      get(error.native), get(error.message);
      value = std::move(error);
    } else {
      for_each_field(value, [this](auto& field) { this->get(field); });
      if constexpr (requires { value.sound(); }) require(value.sound());
    }
  }
  /// Everything was sound, and nothing is left.
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
    if constexpr (detail::kIsPlain<Item>) {
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

/// Calls visit(alternative) with the alternative of this number, which is made anew. False: there
/// is none.
template <class Variant, class Visit>
bool emplace_alternative(std::size_t number, Variant& variant, Visit&& visit) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((number == I && (visit(variant.template emplace<I>()), true)) || ...);
  }
  (std::make_index_sequence<std::variant_size_v<Variant>>{});
}

}  // namespace troupe

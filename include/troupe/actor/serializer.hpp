#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

namespace troupe {

/// How values of type T travel between ranks: as `write(MessageWriter&, const T&)` puts them, and
/// as `read(MessageReader&, T&)` takes them again.
///
/// There is one for types that are trivially copyable, whose bytes travel as they are (a GpuToken;
/// an enum's values are not checked, and a pointer in a struct means nothing elsewhere); for
/// std::string, std::vector and std::optional; and for types with a member
///
/// \code
///   template <class Archive>
///   void serialize(Archive& archive) { archive(name, tokens); }
/// \endcode
///
/// which is also what cereal calls. A program specialises it for other types:
/// <troupe/actor/cereal.hpp> has what that takes for all that cereal knows.
template <class T>
struct Serializer {};

/// Puts values into the bytes of a message.
class MessageWriter {
 public:
  template <class... Ts>
  void operator()(const Ts&... values) {
    (Serializer<Ts>::write(*this, values), ...);
  }
  void bytes(std::span<const std::byte> added) {
    bytes_.insert(bytes_.end(), added.begin(), added.end());
  }
  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes values out of the bytes of a message. Past the end, and after fail(), there is nothing any
/// more: what is read then stays as it was, and the message counts as malformed.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class... Ts>
  void operator()(Ts&... values) {
    (Serializer<Ts>::read(*this, values), ...);
  }
  /// As many bytes, or none and a failure.
  std::span<const std::byte> bytes(std::size_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  void fail() noexcept { failed_ = true; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

/// Has a Serializer.
template <class T>
concept Portable = std::default_initializable<T> &&
    requires(MessageWriter& writer, MessageReader& reader, const T& value, T& read) {
  Serializer<T>::write(writer, value);
  Serializer<T>::read(reader, read);
};

namespace detail {

template <class T>
concept SerializesItself = requires(T& value, MessageWriter& writer, MessageReader& reader) {
  value.serialize(writer);
  value.serialize(reader);
};
template <class T>
concept PlainBytes =
    std::is_trivially_copyable_v<T> && std::is_object_v<T> && !std::is_pointer_v<T> &&
    !SerializesItself<T>;

}  // namespace detail

/// Trivially copyable values travel as their bytes.
template <detail::PlainBytes T>
struct Serializer<T> {
  static void write(MessageWriter& writer, const T& value) {
    if constexpr (!std::is_empty_v<T>) writer.bytes(std::as_bytes(std::span(&value, 1)));
  }
  static void read(MessageReader& reader, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = reader.bytes(1);
      if (byte.empty()) return;
      if (std::to_integer<int>(byte[0]) > 1) return reader.fail();
      value = std::to_integer<int>(byte[0]) == 1;
    } else if constexpr (!std::is_empty_v<T>) {
      const auto bytes = reader.bytes(sizeof(T));
      if (!bytes.empty()) std::memcpy(std::addressof(value), bytes.data(), sizeof(T));
    }
  }
};

/// A struct with a member serialize().
template <detail::SerializesItself T>
struct Serializer<T> {
  static void write(MessageWriter& writer, const T& value) {
    const_cast<T&>(value).serialize(writer);  // which reads it, though one function does both
  }
  static void read(MessageReader& reader, T& value) { value.serialize(reader); }
};

/// A length and the characters.
template <>
struct Serializer<std::string> {
  static void write(MessageWriter& writer, const std::string& value) {
    writer(std::uint64_t{value.size()});
    writer.bytes(std::as_bytes(std::span(value)));
  }
  static void read(MessageReader& reader, std::string& value) {
    std::uint64_t size = 0;
    reader(size);
    const auto bytes = reader.bytes(size);
    if (!reader.failed()) value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
};

/// A length and the elements.
template <Portable T>
struct Serializer<std::vector<T>> {
  static constexpr bool kAtOnce =
      detail::PlainBytes<T> && !std::is_empty_v<T> && !std::is_same_v<T, bool>;

  static void write(MessageWriter& writer, const std::vector<T>& value) {
    writer(std::uint64_t{value.size()});
    if constexpr (kAtOnce) {
      writer.bytes(std::as_bytes(std::span(value)));
    } else {
      for (const T& element : value) writer(element);
    }
  }
  static void read(MessageReader& reader, std::vector<T>& value) {
    std::uint64_t size = 0;
    reader(size);
    // Each element but an empty one takes a byte at least: a wrong size costs no memory.
    if (size > reader.left() / (kAtOnce ? sizeof(T) : 1)) return reader.fail();
    value.clear();
    if constexpr (kAtOnce) {
      const auto bytes = reader.bytes(size * sizeof(T));
      value.resize(size);
      if (!bytes.empty()) std::memcpy(value.data(), bytes.data(), bytes.size());
    } else {
      for (std::uint64_t i = 0; i < size && !reader.failed(); ++i) {
        T element{};
        reader(element);
        value.push_back(std::move(element));
      }
    }
  }
};

/// Whether there is a value, and the value.
template <Portable T>
struct Serializer<std::optional<T>> {
  static void write(MessageWriter& writer, const std::optional<T>& value) {
    writer(value.has_value());
    if (value) writer(*value);
  }
  static void read(MessageReader& reader, std::optional<T>& value) {
    bool there = false;
    reader(there);
    value.reset();
    if (there) reader(value.emplace());
  }
};

namespace detail {

template <Portable T>
std::vector<std::byte> to_bytes(const T& value) {
  MessageWriter writer;
  writer(value);
  return std::move(writer).take();
}

/// Errors: invalid (too few bytes, too many, or none of a T).
template <Portable T>
Result<T> from_bytes(std::span<const std::byte> bytes) {
  T value{};
  MessageReader reader(bytes);
  reader(value);
  if (reader.failed() || reader.left() != 0)
    return Error{Errc::invalid, 0,
                 std::to_string(bytes.size()) + " bytes that are no message of this kind"};
  return value;
}

}  // namespace detail
}  // namespace troupe

#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include <troupe/error.hpp>

namespace troupe::detail {

/// The closed set of messages of an actor class, as other ranks see it: each has its place in it.
template <class... Ms>
struct MessageSet {
  /// Tells sets apart: of their messages' names and sizes (FNV-1a), the same in all processes that
  /// run the same program.
  static std::uint64_t number() noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
    for (const char c : std::string_view(typeid(MessageSet).name()))
      mix(static_cast<unsigned char>(c));
    (mix(sizeof(Ms)), ...);
    return hash;
  }

  template <class M>
  static constexpr std::uint32_t kPlaceOf = [] {
    std::uint32_t place = 0;
    (void)((std::is_same_v<M, Ms> || (++place, false)) || ...);
    return place;
  }();

  /// f(std::type_identity<M>) for the message at that place. Errors: f's; invalid (there is none).
  template <class F>
  static Result<void> visit(std::uint32_t place, F&& f) {
    Result<void> outcome = Error{Errc::invalid, 0, "a message of no known kind"};
    std::uint32_t at = 0;
    (void)((at++ == place && (outcome = f(std::type_identity<Ms>{}), true)) || ...);
    return outcome;
  }
};

}  // namespace troupe::detail

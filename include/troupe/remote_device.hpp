#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include <troupe/gpu_ref.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe {

class Functions;  // #include <troupe/lib/function.hpp>
class Kernels;    // #include <troupe/lib/kernel.hpp>
template <class Refs>
class BasicBlas;  // #include <troupe/lib/blas.hpp>
template <class Refs>
class BasicFft;  // #include <troupe/lib/fft.hpp>
template <class Refs>
class BasicRng;  // #include <troupe/lib/rng.hpp>
template <class Refs>
class BasicSparse;  // #include <troupe/lib/sparse.hpp>
template <class Refs>
class BasicVector;  // #include <troupe/lib/vector.hpp>

/// A range of elements in the memory of another rank's device, named by a token: what the library
/// calls of a RemoteDevice take. A plain value that keeps nothing alive; whether it names anything
/// is found by its owner when it is used.
template <Element T>
class RemoteRef {
 public:
  using value_type = T;

  RemoteRef() = default;
  /// `token` must be of a buffer of T; its owner answers Errc::invalid if it is not.
  explicit RemoteRef(const GpuToken& token)
      : where_{.region = kTokenRegion | static_cast<std::uint32_t>(token.rank),
               .buffer = token.buffer,
               .generation = token.generation,
               .reserved = static_cast<std::uint32_t>(dtype_of<T>)},
        rank_(token.rank) {
    // Numbers that do not fit anything name nothing: operations answer that it is missing.
    if (token.rank < 0 || static_cast<std::uint32_t>(token.rank) >= kTokenRegion ||
        __builtin_mul_overflow(token.offset, sizeof(T), &where_.offset) ||
        __builtin_mul_overflow(token.length, sizeof(T), &where_.bytes) ||
        token.length > static_cast<std::uint64_t>(INT64_MAX)) {
      where_ = {};
    }
  }

  [[nodiscard]] std::int64_t length() const noexcept {
    return static_cast<std::int64_t>(where_.bytes / sizeof(T));
  }
  [[nodiscard]] Rank rank() const noexcept { return Rank(rank_); }
  /// `count` elements from `first` on; must lie within this range.
  [[nodiscard]] RemoteRef slice(
      std::int64_t first, std::int64_t count,
      const std::source_location& where = std::source_location::current()) const {
    detail::require_slice("slice", first, count, length(), where);
    RemoteRef part = *this;
    part.where_.offset += static_cast<std::uint64_t>(first) * sizeof(T);
    part.where_.bytes = static_cast<std::uint64_t>(count) * sizeof(T);
    return part;
  }
  /// How the range stands in a record between ranks.
  [[nodiscard]] const Operand& operand() const noexcept { return where_; }

 private:
  Operand where_;
  std::int32_t rank_ = 0;
};

/// What the library calls of a RemoteDevice take: see BasicBlas.
struct RemoteRefs {
  template <Element T>
  using To = RemoteRef<T>;
};

/// The device of some rank, this one's or another's: library calls on buffers that live there.
///
/// A command travels to the owner as the record it is in a ring; the owner validates it (bounds,
/// generation, liveness, dtype), submits it in its own program order, and answers. What one rank
/// asks of another runs in the order in which it asked, transfers included; it is not ordered with
/// what the owner's own program submits at the same time. Errors: as of a local call, and
/// Errc::stale (freed, or lost), Errc::invalid (the token does not fit the buffer, or an operand is
/// not that device's), Errc::peer_lost, Errc::timeout. Any thread.
class RemoteDevice {
 public:
  using Refs = RemoteRefs;  ///< what its library calls take

  [[nodiscard]] Rank rank() const noexcept { return rank_; }

  /// Sets every element to `value`.
  template <Element T>
  Future<void> fill(const RemoteRef<T>& destination, const std::type_identity_t<T>& value) const {
    memory::Fill op{
        dtype_of<T>, static_cast<std::uint64_t>(destination.length()), {}, destination.operand()};
    std::memcpy(op.pattern, &value, sizeof value);
    return detail::submit(*submitter_, op);
  }
  /// Copies within that device.
  template <Element T>
  Future<void> copy(const RemoteRef<T>& source, const RemoteRef<T>& destination) const {
    return detail::submit(*submitter_,
                          memory::Copy{dtype_of<T>, source.operand(), destination.operand()});
  }
  /// Does nothing, through the whole path.
  Future<void> nop() const { return detail::submit(*submitter_, memory::Nop{}); }

  // The calls of the libraries, each in its library's header, as of Device.
  template <class Library = BasicVector<RemoteRefs>>
  [[nodiscard]] auto vector() const {
    static_assert(detail::included<Library>, "vector() needs #include <troupe/lib/vector.hpp>");
    return Library(*submitter_);
  }
  template <class Library = BasicBlas<RemoteRefs>>
  [[nodiscard]] auto blas() const {
    static_assert(detail::included<Library>, "blas() needs #include <troupe/lib/blas.hpp>");
    return Library(*submitter_);
  }
  template <class Library = BasicSparse<RemoteRefs>>
  [[nodiscard]] auto sparse() const {
    static_assert(detail::included<Library>, "sparse() needs #include <troupe/lib/sparse.hpp>");
    return Library(*submitter_);
  }
  template <class Library = BasicRng<RemoteRefs>>
  [[nodiscard]] auto rng() const {
    static_assert(detail::included<Library>, "rng() needs #include <troupe/lib/rng.hpp>");
    return Library(*submitter_);
  }
  template <class Library = BasicFft<RemoteRefs>>
  [[nodiscard]] auto fft() const {
    static_assert(detail::included<Library>, "fft() needs #include <troupe/lib/fft.hpp>");
    return Library(*submitter_);
  }

  /// Launches a kernel there, on buffers that live there: `read(x)`, `write(x)` or `update(x)` of
  /// RemoteRefs. The owner must have made the same module, from the same source, headers, options
  /// and names or of the same image, and keep it; it runs its own image of it, with the variables
  /// that its program has bound. Include <troupe/lib/kernel.hpp>. Errors, as of a local launch, and
  /// invalid: the owner has no such module.
  template <class Library = Kernels, class... Arguments>
  Future<void> launch(const typename Library::One& kernel, const typename Library::Launching& how,
                      const Arguments&... arguments) const {
    return Library::launch_there(*submitter_, kernel, how, arguments...);
  }
  /// Calls a function there. The library is the file that has this path there. Include
  /// <troupe/lib/function.hpp>.
  template <class Library = Functions, class... Arguments>
  Future<void> call(const typename Library::One& function, const Arguments&... arguments) const {
    return Library::call_there(*submitter_, function, arguments...);
  }

  /// Where commands go: for operations that have no typed call here.
  [[nodiscard]] detail::Submitter& submitter() const noexcept { return *submitter_; }

  /// For World.
  RemoteDevice(Rank rank, std::shared_ptr<detail::Submitter> submitter)
      : rank_(rank), submitter_(std::move(submitter)) {}

 private:
  Rank rank_;
  std::shared_ptr<detail::Submitter> submitter_;
};

namespace detail {
class Held {
 public:
  virtual ~Held() = default;
};
}  // namespace detail

/// A buffer of some rank, kept alive: its owner frees it only when the last copy of this is gone,
/// or when the rank that holds it has left the world. Any thread.
class TokenLease {
 public:
  TokenLease() = default;
  [[nodiscard]] explicit operator bool() const noexcept { return held_ != nullptr; }
  [[nodiscard]] const GpuToken& token() const noexcept { return token_; }
  /// Lets go ahead of the end.
  void release() noexcept { held_.reset(); }

  /// For World.
  TokenLease(const GpuToken& token, std::shared_ptr<detail::Held> held)
      : token_(token), held_(std::move(held)) {}

 private:
  GpuToken token_;
  std::shared_ptr<detail::Held> held_;
};

}  // namespace troupe

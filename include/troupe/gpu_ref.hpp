#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

#include <troupe/dtype.hpp>
#include <troupe/error.hpp>
#include <troupe/ids.hpp>
#include <troupe/lib/operation.hpp>

namespace troupe {

/// The plain-bytes name of a buffer, for messages between ranks. Keeps nothing alive.
struct GpuToken {
  std::int32_t rank = 0;
  std::int32_t device = 0;
  std::uint32_t buffer = 0;
  std::uint32_t generation = 0;
  std::uint32_t dtype = 0;
  std::uint32_t reserved = 0;
  std::uint64_t offset = 0;  ///< elements from the start of the buffer
  std::uint64_t length = 0;  ///< elements

  friend constexpr bool operator==(const GpuToken&, const GpuToken&) = default;
};
static_assert(sizeof(GpuToken) == 40 && std::is_trivially_copyable_v<GpuToken>);

namespace detail {
/// Throws Exception (invalid), with the caller's line and the numbers, if these elements do not lie
/// within `length`.
inline void require_slice(std::string_view what, std::int64_t first, std::int64_t count,
                          std::int64_t length, const std::source_location& where) {
  if (first >= 0 && count >= 0 && count <= length && first <= length - count) [[likely]]
    return;
  refuse_argument(std::string(what) + ": " + std::to_string(count) + " elements from " +
                  std::to_string(first) + " on are not all within " + std::to_string(length) +
                  " (" + where.file_name() + ":" + std::to_string(where.line()) + ")");
}

/// A buffer of the rank's table; freed when the last reference is gone.
class BufferLease {
 public:
  virtual ~BufferLease() = default;
  [[nodiscard]] virtual bool valid(std::uint32_t generation) const noexcept = 0;
  [[nodiscard]] virtual GpuToken token(std::uint32_t generation) const noexcept = 0;
  /// The generation of the contents from now on: what is there now counts as valid.
  virtual std::uint32_t renew() = 0;
  /// All references to the buffer are valid again; false, and nothing done, if `where` is not the
  /// whole of it.
  virtual bool restore(const Operand& where) = 0;
  virtual void set_name(std::string_view name) = 0;
};
}  // namespace detail

/// A range of elements in GPU memory: a value, sharing ownership of the buffer it lies in.
///
/// A reference goes *stale* when its contents are gone: it was being written (or a submitted
/// command was yet to write it) when its device host died or its world's epoch ended. Using a stale
/// reference fails with Errc::stale before anything is launched. Copies, slices and tokens of a
/// reference go stale with it; World::run makes them valid again with what its Checkpoint holds.
/// Any thread.
template <Element T>
class GpuRef {
 public:
  using value_type = T;

  GpuRef() = default;

  [[nodiscard]] std::int64_t length() const noexcept { return length_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return static_cast<std::uint64_t>(length_) * sizeof(T);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return lease_ != nullptr; }
  /// False once the contents are gone.
  [[nodiscard]] bool valid() const noexcept { return lease_ && lease_->valid(where_.generation); }
  [[nodiscard]] Generation generation() const noexcept { return Generation(where_.generation); }

  /// `count` elements from `first` on. Throws Exception (invalid) if they do not lie within this
  /// range.
  [[nodiscard]] GpuRef slice(
      std::int64_t first, std::int64_t count,
      const std::source_location& where = std::source_location::current()) const {
    detail::require_slice("slice", first, count, length_, where);
    GpuRef part = *this;
    part.where_.offset += static_cast<std::uint64_t>(first) * sizeof(T);
    part.where_.bytes = static_cast<std::uint64_t>(count) * sizeof(T);
    part.first_ += first;
    part.length_ = count;
    return part;
  }

  /// After a loss: makes this reference valid again. The contents are undefined until they are
  /// written.
  void renew() {
    detail::require(lease_ != nullptr, "renew of an empty GpuRef");
    where_.generation = lease_->renew();
  }

  /// For Checkpoint, and for what RunOptions::prepare uses again: all of this range is written
  /// anew. Makes every reference to the buffer valid again, copies, slices and tokens too; this one
  /// alone if it is not the whole of the buffer.
  void restore() {
    detail::require(lease_ != nullptr, "restore of an empty GpuRef");
    if (!lease_->restore(where_) && !valid()) renew();
  }

  /// What messages call the buffer that this range lies in, beside its number.
  void set_name(std::string_view name) const {
    detail::require(lease_ != nullptr, "set_name of an empty GpuRef");
    lease_->set_name(name);
  }

  [[nodiscard]] GpuToken token() const {
    detail::require(lease_ != nullptr, "token of an empty GpuRef");
    GpuToken token = lease_->token(where_.generation);
    token.dtype = static_cast<std::uint32_t>(dtype_of<T>);
    token.offset = static_cast<std::uint64_t>(first_);
    token.length = static_cast<std::uint64_t>(length_);
    return token;
  }
  /// How the range stands in a command record.
  [[nodiscard]] const Operand& operand() const noexcept { return where_; }

  /// For Device: a reference to the whole of a buffer.
  GpuRef(std::shared_ptr<detail::BufferLease> lease, const Operand& where, std::int64_t length)
      : lease_(std::move(lease)), where_(where), length_(length) {}

 protected:
  /// For MovingRef: the operand bears the parameter's number, of which only recordings take notice.
  void set_parameter(std::uint32_t id) noexcept { where_.reserved = id; }

 private:
  std::shared_ptr<detail::BufferLease> lease_;
  Operand where_;
  std::int64_t first_ = 0;
  std::int64_t length_ = 0;
};

/// What the library calls of this rank's own device take: see BasicBlas.
struct LocalRefs {
  template <Element T>
  using To = GpuRef<T>;
};

/// What the library calls of a device take.
template <class D>
using RefsOf = typename std::remove_cvref_t<D>::Refs;

/// Host memory that both the rank and its device host see and that CUDA has registered: copies from
/// and to the device are one DMA. Move-only; returned to the pool of its device when destroyed.
template <Element T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  [[nodiscard]] std::span<T> span() const noexcept { return {data_, length_}; }
  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return length_; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] const Operand& operand() const noexcept { return where_; }
  /// The first `count` elements, as an operand.
  [[nodiscard]] Operand operand(
      std::size_t first, std::size_t count,
      const std::source_location& where = std::source_location::current()) const {
    detail::require_slice("operand", static_cast<std::int64_t>(first),
                          static_cast<std::int64_t>(count), static_cast<std::int64_t>(length_),
                          where);
    Operand part = where_;
    part.offset += first * sizeof(T);
    part.bytes = count * sizeof(T);
    return part;
  }

  /// For Device.
  PinnedBuffer(std::shared_ptr<void> lease, T* data, std::size_t length, const Operand& where)
      : lease_(std::move(lease)), data_(data), length_(length), where_(where) {}
  PinnedBuffer(PinnedBuffer&&) noexcept = default;
  PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;

 private:
  std::shared_ptr<void> lease_;
  T* data_ = nullptr;
  std::size_t length_ = 0;
  Operand where_;
};

}  // namespace troupe

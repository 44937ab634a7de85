#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <troupe/troupe.hpp>

#include "program.hpp"

namespace troupe::torture {

class Calls;
class OwnCode;

/// A buffer of any dtype, in the order of DType.
using AnyRef =
    std::variant<GpuRef<Half>, GpuRef<BFloat16>, GpuRef<float>, GpuRef<double>, GpuRef<Float8E4M3>,
                 GpuRef<Float8E5M2>, GpuRef<std::int8_t>, GpuRef<std::uint8_t>,
                 GpuRef<std::int32_t>, GpuRef<std::uint32_t>, GpuRef<std::int64_t>,
                 GpuRef<std::uint64_t>, GpuRef<std::complex<float>>, GpuRef<std::complex<double>>,
                 GpuRef<std::int16_t>, GpuRef<std::uint16_t>, GpuRef<Float4E2M1Pair>,
                 GpuRef<Int4Pair>, GpuRef<FactorUE4M3>, GpuRef<FactorUE8M0>>;
static_assert(std::variant_size_v<AnyRef> == kDTypeCount);

/// Calls visit(T{}) with the C++ type of a dtype.
template <class Visit>
decltype(auto) with_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::f8e4m3: return visit(Float8E4M3{});
    case DType::f8e5m2: return visit(Float8E5M2{});
    case DType::i8: return visit(std::int8_t{});
    case DType::u8: return visit(std::uint8_t{});
    case DType::i32: return visit(std::int32_t{});
    case DType::u32: return visit(std::uint32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::u64: return visit(std::uint64_t{});
    case DType::c64: return visit(std::complex<float>{});
    case DType::i16: return visit(std::int16_t{});
    case DType::u16: return visit(std::uint16_t{});
    case DType::f4e2m1x2: return visit(Float4E2M1Pair{});
    case DType::i4x2: return visit(Int4Pair{});
    case DType::ue4m3: return visit(FactorUE4M3{});
    case DType::ue8m0: return visit(FactorUE8M0{});
    case DType::c128: break;
  }
  return visit(std::complex<double>{});
}

/// Tokens of all buffers of all ranks.
using Tokens = std::vector<std::vector<GpuToken>>;

/// The tokens of every member, as many of each, one member after the other. By a collective, which
/// a fault ends, instead of a host exchange; `own` and `all` are room for them. Throws Exception.
std::vector<GpuToken> gather_tokens(World& world, Device& device, std::span<const GpuToken> mine,
                                    const GpuRef<std::uint8_t>& own,
                                    const GpuRef<std::uint8_t>& all);

/// What was seen of a buffer, or is about to be: looked at once the thread is through.
struct Seen {
  const Operation* op = nullptr;
  std::vector<std::byte> bytes;                             ///< a download
  std::function<std::vector<std::byte>()> later = nullptr;  ///< or how to get at them
  Future<void> future{};
};

/// Carries out operations on one rank, by the calls that programs make. Each of its threads has a
/// Thread of its own.
class Hands {
 public:
  /// `deadline`: of what actors are asked.
  Hands(Runtime& runtime, const Program& program, const OwnCode& own, const Calls& calls,
        std::chrono::nanoseconds deadline)
      : world_(runtime.world()),
        device_(runtime.device()),
        program_(program),
        own_(own),
        calls_(calls),
        deadline_(deadline) {}

  /// What a thread has in its hands while it runs.
  struct Thread {
    std::vector<Seen> seen;
    std::vector<std::shared_ptr<void>> kept;  ///< pinned memory and leases
    std::optional<Bundle> bundle{};           ///< the one that is being filled
  };

  /// Allocates a buffer, or allocates it anew. Throws Exception.
  void allocate(int buffer);
  void free_all() { refs_.clear(); }
  [[nodiscard]] AnyRef& ref(int buffer) { return refs_[static_cast<std::size_t>(buffer)]; }
  [[nodiscard]] bool valid(int buffer);
  void renew(int buffer);
  [[nodiscard]] GpuToken token(int buffer);
  /// Uploads the whole of it; resolves when the device has it.
  Future<void> upload(int buffer, const std::vector<std::byte>& bytes);
  /// Throws Exception.
  [[nodiscard]] std::vector<std::byte> download(const Slice& slice);

  void set_tokens(Tokens tokens, GpuToken freed) {
    tokens_ = std::move(tokens);
    freed_ = freed;
  }
  [[nodiscard]] GpuToken token_of(const Slice& slice) const;
  /// Makes the group anew; all ranks do. One thread at a time, that of the collectives. Throws
  /// Exception.
  void split(int group);
  /// Which rank of the world is where a program's rank is; else they are the same.
  void set_homes(std::vector<int> homes) { homes_ = std::move(homes); }

  /// Submits; the future of what looks at contents comes with an entry in `thread.seen`. Throws
  /// Exception where the call does (download).
  Future<void> submit(const Operation& op, Thread& thread);
  /// The thread's bundle is full: the futures of its collectives are resolved some time after this.
  void submit_bundle(Thread& thread);

 private:
  template <class T>
  GpuRef<T> here(const Slice& slice) {
    return std::get<GpuRef<T>>(ref(slice.buffer)).slice(slice.first, slice.count);
  }
  [[nodiscard]] const BufferSpec& spec_of(const Slice& slice) const {
    return program_.buffers[static_cast<std::size_t>(slice.buffer)];
  }
  [[nodiscard]] Rank home_of(int rank) const {
    return Rank(homes_.empty() ? rank : homes_[static_cast<std::size_t>(rank)]);
  }
  [[nodiscard]] RemoteDevice device_of(int rank) { return world_.device(home_of(rank)); }
  Future<void> submit_memory(const Operation& op, Thread& thread);
  Future<void> submit_collective(const Operation& op, Thread& thread);
  template <class T>
  Future<void> submit_scaled(const Operation& op, Collectives& ranks, const GpuRef<T>& source,
                             const GpuRef<T>& destination);
  template <class T>
  Future<void> submit_with_counts(const Operation& op, Collectives& ranks, const GpuRef<T>& source,
                                  const GpuRef<T>& destination);
  [[nodiscard]] Collectives& ranks_of(const Operation& op) {
    return op.group == 0 ? static_cast<Collectives&>(world_)
                         : groups_[static_cast<std::size_t>(op.group)];
  }
  Future<void> submit_transfer(const Operation& op, Thread& thread);
  Future<void> submit_wrong(const Operation& op);
  Future<void> submit_arithmetic(const Operation& op);
  // hands_libraries.cpp
  Future<void> submit_library(const Operation& op, Thread& thread);
  /// The future of an operation with a value, which is looked at; `get` gives it as an integer.
  template <class T, class Get>
  Future<void> look_at(const Operation& op, Thread& thread, const Future<T>& future, Get get);
  Future<void> submit_solver(const Operation& op, Thread& thread);
  Future<void> submit_primitives(const Operation& op, Thread& thread);
  Future<void> submit_sparse_product(const Operation& op, Thread& thread);
  Future<void> submit_transform(const Operation& op);
  Future<void> submit_layer(const Operation& op);
  Future<void> submit_call(const Operation& op, Thread& thread);
  Future<void> submit_own(const Operation& op);
  Future<void> submit_carry(const Operation& op);
  Future<void> submit_remote_memory(const Operation& op);

  World& world_;
  Device& device_;
  const Program& program_;
  const OwnCode& own_;
  const Calls& calls_;
  const std::chrono::nanoseconds deadline_;
  std::vector<AnyRef> refs_;
  std::array<Group, kGroups> groups_;
  Tokens tokens_;
  GpuToken freed_{};
  std::vector<int> homes_;
};

}  // namespace troupe::torture

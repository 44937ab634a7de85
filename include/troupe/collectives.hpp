#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/gpu_ref.hpp>
#include <troupe/ids.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/submit.hpp>
#include <troupe/mapped_ref.hpp>

namespace troupe {

class Bundle;
class Group;

namespace rank_process {
class GroupHandle;
class HostGroup;
class WorldCore;
}  // namespace rank_process

/// One message of Collectives::exchange.
template <Element T>
struct Transfer {
  GpuRef<T> data;
  Rank peer;
};

/// What ranks that share a communicator do together: the World, or a Group of some of its ranks.
///
/// Collectives have NCCL's semantics: all of its ranks call the same ones in the same order. Those
/// of all communicators of a rank run in the order of its calls; ranks that share several of them
/// must call theirs in the same relative order. Every function but those on host data may be called
/// from any thread, but the order of collectives is the order of the calls.
class Collectives {
 public:
  // Ranks are numbered from 0 in each communicator. Where members of the world are lost, or come
  // back, those that are there are numbered anew, in the order they had. Rank and size change when
  // the program acknowledges an epoch.

  [[nodiscard]] int rank() const;  ///< -1: a spectator, or of an empty group
  [[nodiscard]] int size() const;  ///< 0: likewise; it has no part in collectives
  /// The rank in the job of one of its ranks. Throws Exception (invalid) if there is no such rank.
  [[nodiscard]] int job_rank(int rank) const;
  [[nodiscard]] Epoch epoch() const;  ///< the one the program has acknowledged

  /// destination = op over ranks of source
  template <Element T>
  Future<void> all_reduce(const GpuRef<T>& source, const GpuRef<T>& destination, ReduceOp op) {
    return detail::submit_exact(collectives(),
                                collective::AllReduce{dtype_of<T>, op, 0, count(source),
                                                      source.operand(), destination.operand()},
                                {{"destination", destination.length(), source.length()}}, scope());
  }
  /// In place.
  template <Element T>
  Future<void> all_reduce(const GpuRef<T>& data, ReduceOp op) {
    return all_reduce(data, data, op);
  }
  /// At `root`: destination = op over ranks of source; elsewhere the destination is ignored and may
  /// be empty.
  template <Element T>
  Future<void> reduce(const GpuRef<T>& source, const GpuRef<T>& destination, ReduceOp op,
                      Rank root) {
    const bool here = root.value == rank();
    return detail::submit_exact(
        collectives(),
        collective::Reduce{dtype_of<T>, op, to_unsigned(root), count(source), source.operand(),
                           here ? destination.operand() : Operand{}},
        {{"destination", here ? destination.length() : source.length(), source.length()}}, scope());
  }
  // premul_sum: destination = the sum over ranks of scalar times source, each rank's own scalar,
  // which is a value or an element of device memory. Else as the calls without a scalar.

  template <Element T>
  Future<void> all_reduce_scaled(const ScalarOf<GpuRef<T>>& scalar, const GpuRef<T>& source,
                                 const GpuRef<T>& destination) {
    return detail::submit_exact(
        collectives(),
        collective::AllReduce{dtype_of<T>, ReduceOp::premul_sum, 0, count(source), source.operand(),
                              destination.operand(), scalar.wire()},
        {{"destination", destination.length(), source.length()}}, scope());
  }
  template <Element T>
  Future<void> reduce_scaled(const ScalarOf<GpuRef<T>>& scalar, const GpuRef<T>& source,
                             const GpuRef<T>& destination, Rank root) {
    const bool here = root.value == rank();
    return detail::submit_exact(
        collectives(),
        collective::Reduce{dtype_of<T>, ReduceOp::premul_sum, to_unsigned(root), count(source),
                           source.operand(), here ? destination.operand() : Operand{},
                           scalar.wire()},
        {{"destination", here ? destination.length() : source.length(), source.length()}}, scope());
  }
  template <Element T>
  Future<void> reduce_scatter_scaled(const ScalarOf<GpuRef<T>>& scalar, const GpuRef<T>& source,
                                     const GpuRef<T>& destination) {
    if (source.length() != size() * destination.length())
      return mismatch("reduce_scatter", source.length(), destination.length());
    return submit(collective::ReduceScatter{dtype_of<T>, ReduceOp::premul_sum, 0,
                                            count(destination), source.operand(),
                                            destination.operand(), scalar.wire()});
  }
  /// data = data of `root`
  template <Element T>
  Future<void> broadcast(const GpuRef<T>& data, Rank root) {
    return submit(
        collective::Broadcast{dtype_of<T>, to_unsigned(root), 0, count(data), data.operand()});
  }
  /// destination = source of `root`; elsewhere the source is ignored and may be empty.
  template <Element T>
  Future<void> broadcast(const GpuRef<T>& source, const GpuRef<T>& destination, Rank root) {
    const bool here = root.value == rank();
    return detail::submit_exact(
        collectives(),
        collective::Broadcast{dtype_of<T>, to_unsigned(root), 0, count(destination),
                              destination.operand(), here ? source.operand() : Operand{}},
        {{"source", here ? source.length() : destination.length(), destination.length()}}, scope());
  }
  /// At `root`: destination = the sources of all ranks, in rank order; elsewhere the destination is
  /// ignored and may be empty. There destination.length() == size() * source.length()
  template <Element T>
  Future<void> gather(const GpuRef<T>& source, const GpuRef<T>& destination, Rank root) {
    const bool here = root.value == rank();
    if (here && destination.length() != size() * source.length())
      return mismatch("gather", source.length(), destination.length());
    return submit(collective::Gather{dtype_of<T>, to_unsigned(root), 0, count(source),
                                     source.operand(), here ? destination.operand() : Operand{}});
  }
  /// destination = this rank's part of the source of `root`; elsewhere the source is ignored and
  /// may be empty. There source.length() == size() * destination.length()
  template <Element T>
  Future<void> scatter(const GpuRef<T>& source, const GpuRef<T>& destination, Rank root) {
    const bool here = root.value == rank();
    if (here && source.length() != size() * destination.length())
      return mismatch("scatter", source.length(), destination.length());
    return submit(collective::Scatter{dtype_of<T>, to_unsigned(root), 0, count(destination),
                                      here ? source.operand() : Operand{}, destination.operand()});
  }
  /// destination = the sources of all ranks, in rank order; destination.length() == size() *
  /// source.length()
  template <Element T>
  Future<void> all_gather(const GpuRef<T>& source, const GpuRef<T>& destination) {
    if (destination.length() != size() * source.length())
      return mismatch("all_gather", source.length(), destination.length());
    return submit(
        collective::AllGather{dtype_of<T>, count(source), source.operand(), destination.operand()});
  }
  /// destination = this rank's part of op over ranks of source; source.length() == size() *
  /// destination.length()
  template <Element T>
  Future<void> reduce_scatter(const GpuRef<T>& source, const GpuRef<T>& destination, ReduceOp op) {
    if (source.length() != size() * destination.length())
      return mismatch("reduce_scatter", source.length(), destination.length());
    return submit(collective::ReduceScatter{dtype_of<T>, op, 0, count(destination),
                                            source.operand(), destination.operand()});
  }
  /// Part r of destination = part rank() of the source of rank r; both have size() equal parts
  template <Element T>
  Future<void> all_to_all(const GpuRef<T>& source, const GpuRef<T>& destination) {
    if (size() == 0 || source.length() % size() != 0 || source.length() != destination.length())
      return mismatch("all_to_all", source.length(), destination.length());
    return submit(collective::AllToAll{dtype_of<T>,
                                       count(source) / static_cast<std::uint64_t>(size()),
                                       source.operand(), destination.operand()});
  }
  /// The same with a part for each rank that has a length of its own: source has those to rank 0,
  /// 1, …, one after the other, `sent` elements each, and destination those from them, `received`
  /// each. One exchange.
  template <Element T>
  Future<void> all_to_all(const GpuRef<T>& source, std::span<const std::int64_t> sent,
                          const GpuRef<T>& destination, std::span<const std::int64_t> received) {
    if (!fit(source.length(), sent)) return mismatched_parts(source.length(), sent.size());
    if (!fit(destination.length(), received))
      return mismatched_parts(destination.length(), received.size());
    return exchange<T>(parts(source, sent), parts(destination, received));
  }
  template <Element T>
  Future<void> send(const GpuRef<T>& data, Rank peer) {
    const Transfer<T> one{data, peer};
    return exchange<T>({&one, 1}, {});
  }
  template <Element T>
  Future<void> receive(const GpuRef<T>& data, Rank peer) {
    const Transfer<T> one{data, peer};
    return exchange<T>({}, {&one, 1});
  }
  /// Sends and receives that progress together (ncclGroupStart … ncclGroupEnd).
  template <Element T>
  Future<void> exchange(std::span<const Transfer<T>> sends, std::span<const Transfer<T>> receives) {
    std::vector<TailOperand> tail;
    for (const auto& part : sends)
      tail.push_back(collective::sent(part.data.operand(), to_unsigned(part.peer)));
    for (const auto& part : receives)
      tail.push_back(collective::received(part.data.operand(), to_unsigned(part.peer)));
    return detail::submit(messages(), collective::Exchange{dtype_of<T>}, tail, scope());
  }
  template <Element T>
  Future<void> exchange(const std::vector<Transfer<T>>& sends,
                        const std::vector<Transfer<T>>& receives) {
    return exchange(std::span<const Transfer<T>>(sends), std::span<const Transfer<T>>(receives));
  }

  /// Moves nothing, and orders what ranks do with one another's memory. When it ends, all that was
  /// submitted before it has ended on each rank, as far as it writes a range that this rank names
  /// of its own memory, or reads one that it names of others'; what is submitted later waits for
  /// it in the same way:
  ///
  ///     device.fill(x, 1.0f);
  ///     world.device_barrier({x, theirs});   // every x is filled: now each may read another's
  ///     device.copy(theirs, y);
  ///     world.device_barrier({x, theirs});   // all have read: each may write x again
  ///
  /// Not in a bundle. Errors: those of a collective; stale (a mapping of an epoch that has ended).
  Future<void> device_barrier(const std::vector<BarrierRange>& ranges);
  /// A buffer of each rank, mapped: in rank order, this rank's own among them. Host collectives:
  /// all ranks call it, from the program's thread, with buffers of one dtype and of any lengths.
  /// Throws CollectiveException on all of them if one cannot map another's: unsupported (as
  /// World::map), stale, world_reformed.
  template <Element T>
  [[nodiscard]] std::vector<MappedRef<T>> map_all(const GpuRef<T>& mine) {
    std::vector<MappedRef<T>> all;
    for (auto& range : map_ranges(mine.token(), dtype_of<T>)) all.emplace_back(std::move(range));
    return all;
  }

  /// Collectives that are called on it become one operation, which is submitted as such: see
  /// Bundle.
  [[nodiscard]] Bundle bundle() const;

  /// Makes groups of its ranks, one for each colour; a negative one: this rank is in none, and gets
  /// an empty Group (MPI_UNDEFINED). In a group ranks are ordered by `key`, those of the same key
  /// as they are here. All ranks call it, from the program's thread, between the same collectives;
  /// it first waits until what this rank has submitted has ended, and until all have come. Ranks
  /// that wait for one another in splits of different communicators end the world: all throw
  /// CollectiveException (invalid), which names them.
  ///
  /// Outside of World::run a fault meanwhile is overcome: the group is formed once the world is
  /// active again, which the program is told by its next collective. Within a run it
  /// surfaces as Exception (world_reformed), which may pass through the step. What else keeps a
  /// device host from forming the group throws CollectiveException on all ranks of the group:
  /// out_of_memory, library, and what has ended the world.
  Group split(int colour, int key = 0);

  // Host data, over MPI. All ranks call these, from one thread. Within World::run a fault that
  // keeps a rank from one of them throws Exception (world_reformed) on all that have come to it,
  // which may pass through the step: all ranks end it, or none. Ranks of a run that call different
  // ones end the world: all throw CollectiveException (invalid), which names them.

  void barrier();
  /// The value of every rank, in rank order.
  template <class T>
  [[nodiscard]] std::vector<T> gather_values(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto ranks = static_cast<std::size_t>(size());
    const auto all = std::make_unique<T[]>(ranks);  // a std::vector<bool> is no array of bool
    host_all_gather(std::as_bytes(std::span(&value, 1)),
                    std::as_writable_bytes(std::span(all.get(), ranks)));
    return std::vector<T>(all.get(), all.get() + ranks);
  }
  /// result[r] = what rank r had in outgoing[rank()], which has a part for each rank. Throws
  /// Exception (invalid) if it has not.
  template <class T>
  [[nodiscard]] std::vector<std::vector<T>> exchange_values(
      const std::vector<std::vector<T>>& outgoing) {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(!std::is_same_v<T, bool>, "a std::vector<bool> is no array: exchange bytes");
    std::vector<std::vector<std::byte>> raw;
    for (const auto& part : outgoing) {
      const auto bytes = std::as_bytes(std::span(part));
      raw.emplace_back(bytes.begin(), bytes.end());
    }
    std::vector<std::vector<T>> incoming;
    for (const auto& part : host_all_to_all(raw)) {
      auto& values = incoming.emplace_back(part.size() / sizeof(T));
      if (!part.empty()) std::memcpy(values.data(), part.data(), part.size());
    }
    return incoming;
  }
  /// The strings of all ranks, in rank order.
  [[nodiscard]] std::vector<std::string> gather_text(const std::string& text);
  /// Throws on all ranks, with the error of the lowest one that has any.
  void agree(const Result<void>& outcome);

 protected:
  /// The world; or a group, empty without a handle.
  explicit Collectives(std::shared_ptr<rank_process::WorldCore> core) : core_(std::move(core)) {}
  Collectives(std::shared_ptr<rank_process::WorldCore> core,
              std::shared_ptr<rank_process::GroupHandle> group)
      : core_(std::move(core)), group_(std::move(group)), is_group_(true) {}
  ~Collectives() = default;
  Collectives(const Collectives&) = default;
  Collectives& operator=(const Collectives&) = default;
  Collectives(Collectives&&) = default;
  Collectives& operator=(Collectives&&) = default;

  /// Where collectives go that all ranks take part in.
  detail::Submitter& collectives();
  /// The epoch and the group that a collective belongs to.
  [[nodiscard]] detail::Scope scope() const;

  std::shared_ptr<rank_process::WorldCore> core_;     ///< none: of a Group that was never made
  std::shared_ptr<rank_process::GroupHandle> group_;  ///< none: the world, or an empty group
  detail::Submitter* recorder_ = nullptr;             ///< a bundle's, in the place of the device

 private:
  /// Parts of all ranks, which are the whole.
  [[nodiscard]] bool fit(std::int64_t whole, std::span<const std::int64_t> lengths) const;
  template <Element T>
  static std::vector<Transfer<T>> parts(const GpuRef<T>& whole,
                                        std::span<const std::int64_t> lengths) {
    std::vector<Transfer<T>> list;
    std::int64_t first = 0;
    for (std::size_t peer = 0; peer < lengths.size(); ++peer) {
      if (lengths[peer] != 0)
        list.push_back({whole.slice(first, lengths[peer]), Rank(static_cast<int>(peer))});
      first += lengths[peer];
    }
    return list;
  }
  template <Element T>
  static std::uint64_t count(const GpuRef<T>& ref) {
    return static_cast<std::uint64_t>(ref.length());
  }
  static std::uint32_t to_unsigned(Rank rank) { return static_cast<std::uint32_t>(rank.value); }
  template <class Op>
  Future<void> submit(const Op& op) {
    return detail::submit(collectives(), op, {}, scope());
  }
  Future<void> mismatch(const char* what, std::int64_t source, std::int64_t destination);
  Future<void> mismatched_parts(std::int64_t length, std::size_t parts);
  /// Where messages go.
  detail::Submitter& messages();
  [[nodiscard]] std::vector<detail::MappedRange> map_ranges(const GpuToken& mine, DType dtype);
  void host_all_gather(std::span<const std::byte> value, std::span<std::byte> all);
  std::vector<std::vector<std::byte>> host_all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing);

  /// For host data. Throws Exception (invalid) for an empty group.
  [[nodiscard]] const rank_process::HostGroup& hosts() const;

  bool is_group_ = false;
};

}  // namespace troupe

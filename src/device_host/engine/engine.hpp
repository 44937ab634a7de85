#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/device_info.hpp>
#include <troupe/error.hpp>
#include <troupe/lib/fault_kind.hpp>
#include <troupe/lib/operation_info.hpp>

#include "device_host/engine/engine_graphs.hpp"
#include "device_host/engine/engine_libraries.hpp"
#include "device_host/engine/engine_memory.hpp"
#include "device_host/engine/queue.hpp"
#include "device_host/engine/region_table.hpp"

/// What a device host asks of the hardware. Two engines implement it: `cpu`, the reference, and
/// `cuda`.
///
/// Work is queued on queues (streams): `run` queues and returns, the operation executes later, in
/// order within its queue. Order between queues is made with marks (events): mark(a), then wait(b,
/// mark) lets b go on only after what stood on a. A queue that waits holds up no other one. Unless
/// a function says otherwise, only the reactor's thread calls it and it must not block. After an
/// error of class device_lost or device_failed the engine is good for nothing but its end.
namespace troupe::host {

/// How the engine is to be made.
struct EngineOptions {
  /// Which device, modulo the number of those this process can see: a rank gives its local rank,
  /// which is right both where all ranks see all GPUs of the node and where each sees only its own.
  /// Two ranks that come out on the same device are found, and refused, by its UUID.
  int device = 0;
  std::uint64_t memory_limit = 0;  ///< bytes of slabs this rank may have, 0: what there is
  int threads = 1;                 ///< host threads a cpu engine may compute with
  std::string interface;           ///< network of a cpu engine's collectives; empty: by itself
  /// There are ranks that collectives do not wait for before they are launched (see Rendezvous), so
  /// that what is launched may wait for them on the device.
  bool other_hosts = false;
  /// Ends of channels, which wait for other ranks on the device too: as many as there may be.
  int channels = 0;
  /// Sums over ranks have the same bits whenever a communicator is formed anew.
  bool reproducible = false;
  /// Slabs are registered with every communicator: see CollectiveHalf::slab_mapped().
  bool register_buffers = false;
  /// The engine is a part of the program's process, which goes on behind it.
  bool in_process = false;
  bool check_products = false;  ///< see ProductChecks
};

/// A place in a queue that other queues and the reactor can wait for.
struct Mark {
  std::uint32_t id = 0;
};

/// Where the regions that operands name are mapped in this process.
class AddressMap {
 public:
  void set(std::uint32_t region, std::byte* base, std::uint64_t bytes) {
    entries_[region] = {base, bytes};
  }
  void erase(std::uint32_t region) { set(region, nullptr, 0); }
  /// The address of an operand; nullptr if it does not lie within a mapped region.
  [[nodiscard]] std::byte* find(const Operand& operand) const noexcept {
    const auto* const entry = entries_.find(operand.region);
    if (entry == nullptr || operand.bytes > entry->bytes ||
        operand.offset > entry->bytes - operand.bytes)
      return nullptr;
    return entry->base == nullptr ? nullptr : entry->base + operand.offset;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    entries_.for_each([&](std::uint32_t region, const Entry& entry) {
      if (entry.base != nullptr) visit(region, entry.base, entry.bytes);
    });
  }

 private:
  struct Entry {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;
  };
  RegionTable<Entry> entries_;
};

/// One operation about to be queued: its queue, its parts and its operands' addresses. The reactor
/// has checked that every operand lies in a mapped region and that the operation's own check()
/// holds.
class Call {
 public:
  Call(Queue queue, const AddressMap& addresses, const Parts& parts, std::uint32_t communicator = 0)
      : queue_(queue), addresses_(&addresses), parts_(parts), communicator_(communicator) {}

  /// The same call of an operation that runs to prepare others, on scratch memory.
  [[nodiscard]] Call for_preparation() const {
    Call call = *this;
    call.prepares_ = true;
    return call;
  }

  [[nodiscard]] Queue queue() const noexcept { return queue_; }
  [[nodiscard]] bool prepares() const noexcept { return prepares_; }
  [[nodiscard]] std::span<const TailOperand> tail() const noexcept { return parts_.tail; }
  [[nodiscard]] const Parts& parts() const noexcept { return parts_; }
  /// The communicator of a collective; see CollectiveHalf.
  [[nodiscard]] std::uint32_t communicator() const noexcept { return communicator_; }
  /// The record's inline bytes.
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return parts_.data; }
  /// The operand's address in this process.
  template <class T = std::byte>
  [[nodiscard]] T* at(const Operand& operand) const noexcept {
    return reinterpret_cast<T*>(addresses_->find(operand));
  }

 private:
  Queue queue_;
  const AddressMap* addresses_;
  Parts parts_;
  std::uint32_t communicator_;
  bool prepares_ = false;
};

class CollectiveHalf;

class Engine {
 public:
  virtual ~Engine() = default;
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] virtual const DeviceInfo& description() const = 0;

  /// Its parts. Any thread.
  [[nodiscard]] virtual EngineMemory& memory() = 0;
  [[nodiscard]] virtual EngineLibraries& libraries() = 0;
  [[nodiscard]] virtual EngineGraphs& graphs() = 0;
  /// The library that has the communicator.
  [[nodiscard]] virtual CollectiveHalf& collectives() = 0;

  // Queues.

  /// Loads the library of the queue's lane, makes its handle and warms it up. On a helper thread,
  /// before the first run() on it; may block. Different lanes may be opened at the same time. The
  /// collective lane's communicator comes by CollectiveHalf::connect().
  virtual Result<void> open_queue(Queue queue) = 0;
  /// Memory for the operands of a command that only prepares others, all zeros once what is on the
  /// queue has ended; let go of on the reactor's thread, once what uses it has ended. Errors:
  /// out_of_memory.
  virtual Result<std::shared_ptr<std::byte>> scratch_memory(Queue queue, std::uint64_t bytes) = 0;
  /// kScratchCellBytes of pinned memory for result cells that nobody reads.
  [[nodiscard]] virtual std::byte* scratch_cells() = 0;
  static constexpr std::uint64_t kScratchCellBytes = 4096;
  /// A mark behind everything queued on the queue so far.
  virtual Result<Mark> mark(Queue queue) = 0;
  /// Lets the queue go on only after the mark is reached.
  virtual Result<void> wait(Queue queue, Mark mark) = 0;
  /// Whether everything before the mark is done; an error if some of it failed (peer_lost for a
  /// communicator whose peers are gone, device_lost for a sticky error).
  virtual Result<bool> reached(Mark mark) = 0;
  /// Gives the mark back; a queue may still be waiting for it.
  virtual void release(Mark mark) = 0;
  /// Calls `done` once everything on the queue is reached (completion strategy host_fn). From any
  /// thread.
  virtual Result<void> call_when_reached(Queue queue, void (*done)(void*), void* argument) = 0;
  /// Blocks until everything queued on the queue is done (completion strategy sync).
  virtual Result<void> synchronize(Queue queue) = 0;
  /// An eventfd that becomes readable when some mark may have been reached while arm() was in
  /// force; -1: the engine has to be polled.
  [[nodiscard]] virtual int completion_fd() const = 0;
  /// Asks for one signal on completion_fd(); the caller then looks at its marks once more before it
  /// sleeps.
  virtual void arm() = 0;

  /// Suffers the sticky fault (illegal_address, trap, assertion, misaligned) on the queue's stream;
  /// `unsupported` where there is no such thing. The process-level faults are the reactor's own.
  virtual Result<void> suffer(memory::FaultKind kind, Queue queue) = 0;

  /// The next `count` products that are looked at are wrong: see ProductChecks. Errors: invalid if
  /// none are.
  virtual Result<void> order_wrong_products(std::uint32_t /*count*/) {
    return Error{Errc::invalid, 0, "no products are looked at: --check products is off"};
  }

  /// Begins something short that stands behind nothing else: where it does not end, the GPU carries
  /// out nothing of this process any more, which the driver may say much later. One at a time.
  virtual Result<void> begin_probe() { return {}; }
  /// Whether it has ended. Errors: device_lost.
  virtual Result<bool> probe_ended() { return true; }

  /// Whether nothing that was queued writes to memory any more, now that this error has been
  /// reported.
  [[nodiscard]] virtual bool is_still_after(const Error&) const { return false; }

  // Operations.

  /// Whether run() may block: then it is called on a thread of the lane's library, and while it
  /// runs there nothing else is called for that lane.
  [[nodiscard]] virtual bool blocks(const OperationInfo& info, const std::byte*, const Call&) {
    return info.traits.blocking;
  }

  /// Queues the operation, given by its bytes, on call.queue(). An error means that nothing was
  /// queued, but for peer_lost: the communicator broke, and part of the operation may run until the
  /// communicator is aborted. Errors: `unsupported` for one that this engine does not have.
  virtual Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) = 0;
  template <Operation Op>
  Result<void> run(const Op& op, const Call& call) {
    return run(info_of<Op>, reinterpret_cast<const std::byte*>(&op), call);
  }
};

/// What an engine's library offers: the one function through which it is made. May block (context
/// creation). Errors: also those of loading the collective library, without which there is no
/// world.
Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options);

/// How many devices this process can see and what they are, without making a context where that is
/// possible and without loading any library's module.
Result<std::vector<DeviceInfo>> list_devices();

}  // namespace troupe::host

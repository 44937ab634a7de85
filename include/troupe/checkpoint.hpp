#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/saved_state.hpp>

namespace troupe {

/// How an entry of a checkpoint is looked at where wrong numbers are looked for.
struct EntryOptions {
  /// --verify: by how much of the entry's largest magnitude a floating-point number may differ when
  /// the same steps are done again, on the same rank; 0: bit for bit. For programs whose sums are
  /// made in any order. Entries that differ are compared on the host.
  double verify_tolerance = 0;
  /// The entry is the same on all ranks, which is looked at in each commit.
  bool replicated = false;
};

/// The state of an application: buffers and host values that together make it possible to go on.
///
/// A commit copies the buffers, device to device, into one half of a pair, in turn, and the host
/// values with them; the other half holds the commit before. So a checkpoint takes twice the memory
/// of its buffers, beside the buffers themselves. The copies are operations like any other: a
/// commit costs the caller nothing but their submission. One thread at a time.
///
/// Entries have names, by which they are found again in a saved state: 1 to kSavedNameBytes bytes,
/// each once, and the same on all ranks. Another name throws Exception (invalid).
class Checkpoint {
 public:
  explicit Checkpoint(Device& device) : device_(&device) {}
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// The contents of `buffer`, which messages call `name` from now on, belong to the state. The
  /// reference must outlive this; a rollback makes it valid again, and with a reference to the
  /// whole of a buffer also its copies, slices and tokens. Throws Exception (out_of_memory): two
  /// more buffers of its size are made.
  template <Element T>
  void add(std::string name, GpuRef<T>& buffer, const EntryOptions& look = {}) {
    buffer.set_name(name);
    const GpuRef<T> made[2] = {device_->alloc<T>(buffer.length()),
                               device_->alloc<T>(buffer.length())};
    add_entry(
        {std::move(name), dtype_of<T>, sizeof(T), static_cast<std::uint64_t>(buffer.length())},
        [device = device_, &buffer, halves = std::vector<GpuRef<T>>(made, made + 2)](
            Move move, std::size_t half, const Place& place) mutable {
          auto& copy = halves[half % 2];
          if (move == Move::commit && !copy.valid()) copy.renew();
          if (move == Move::rollback || move == Move::load || move == Move::renew ||
              move == Move::accept)
            buffer.restore();
          switch (move) {
            case Move::commit: return device->copy(buffer, copy);
            case Move::rollback: return device->copy(copy, buffer);
            case Move::save:
              return detail::submit(device->submitter(),
                                    memory::Copy{dtype_of<T>, copy.operand(), place.pinned});
            case Move::look: {
              const auto values = device->download(half < 2 ? copy : buffer);
              std::memcpy(place.host, values.data(), values.size() * sizeof(T));
              return done();
            }
            case Move::load:
              return device->upload(std::span(reinterpret_cast<const T*>(place.saved),
                                              static_cast<std::size_t>(buffer.length())),
                                    buffer);
            case Move::locate:
              *place.range = half < 2 ? copy.operand() : buffer.operand();
              return done();
            case Move::accept: *place.range = buffer.operand(); return done();
            default: return done();
          }
        });
    named_.push_back([&buffer] { return buffer.operand().buffer; });
    looks_.back() = look;
  }
  /// As add(), of what all ranks have alike, such as the parameters of a model that each trains
  /// with its share of the data. Before each commit the ranks compare digests in small collectives,
  /// for which the program waits. A rank that has something else is told of, and the run goes back
  /// to the last commit that was the same everywhere.
  template <Element T>
  void add_replicated(std::string name, GpuRef<T>& buffer) {
    add(std::move(name), buffer, {.replicated = true});
  }
  /// Room whose contents need not be kept; a rollback, and the begin of a run, make the reference
  /// valid again, and with it what add() says, the contents undefined.
  template <Element T>
  void add_scratch(GpuRef<T>& buffer) {
    scratch_.push_back([&buffer] { buffer.restore(); });
    named_.push_back([&buffer] { return buffer.operand().buffer; });
  }
  /// A trivially copyable host value that belongs to the state; it need not be constructible
  /// without arguments, nor assignable.
  template <class T>
  void add_value(std::string name, T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add_entry({std::move(name), {}, sizeof(T), 1},
              [at = static_cast<void*>(&value), halves = std::vector<std::byte>(2 * sizeof(T))](
                  Move move, std::size_t half, const Place& place) mutable {
                auto* const copy = halves.data() + half % 2 * sizeof(T);
                if (move == Move::commit) std::memcpy(copy, at, sizeof(T));
                if (move == Move::rollback) std::memcpy(at, copy, sizeof(T));
                if (move == Move::save) std::memcpy(place.host, copy, sizeof(T));
                if (move == Move::look) std::memcpy(place.host, half < 2 ? copy : at, sizeof(T));
                if (move == Move::load) std::memcpy(at, place.saved, sizeof(T));
                return done();
              });
  }
  /// Host data that stays as it is during the run, and that a saved state needs to be understood,
  /// such as the numbers of the rows that a rank has. A state that was saved with other data is not
  /// loaded (invalid). The data must outlive this.
  template <class T>
  void add_constant(std::string name, std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    add_entry({name, {}, sizeof(T), values.size()}, [name, bytes = std::as_bytes(values)](
                                                        Move move, std::size_t,
                                                        const Place& place) {
      if (bytes.empty()) return done();
      if (move == Move::prepare || move == Move::look)
        std::memcpy(place.host, bytes.data(), bytes.size());
      if (move == Move::load && std::memcmp(place.saved, bytes.data(), bytes.size()) != 0) {
        return Future<void>(Error{Errc::invalid, 0, "the state was saved with another " + name});
      }
      return done();
    });
    constants_.push_back(saved_.size() - 1);
  }

  /// Device memory that no step writes, such as a matrix. It is not part of a saved state. At each
  /// commit its digest must be the one that it had when the run began. If it is not, `fill` writes
  /// the buffer anew, the same bytes as before and nothing else, and the run goes back to the last
  /// commit. Without `fill` the host keeps a copy from the beginning of the run. What a look costs
  /// is the time that the device takes to read the buffer, and the program waits for it. A step
  /// that has it written ends the run (invalid). All ranks have the same constants, in the same
  /// order. The reference must outlive this; `fill` is called on the program's thread.
  template <Element T>
  void add_constant(std::string name, GpuRef<T>& buffer, std::function<void()> fill = {}) {
    buffer.set_name(name);
    guarded_.push_back(
        {std::move(name), dtype_of<T>, [&buffer] { return buffer.operand(); }, std::move(fill)});
    named_.push_back([&buffer] { return buffer.operand().buffer; });
  }

  /// Submits the copies of the state as it stands after `step`. World::run() is what applications
  /// call.
  Future<void> commit(std::int64_t step);
  /// Goes back to the commit of `step`, one of the last two; waits for it.
  Result<void> rollback(std::int64_t step);
  /// Before any commit is complete everywhere: forgets the half-made one. The state is what it was,
  /// and what of it is stale stays stale.
  void forget();
  /// Before the state is loaded: makes its references valid, their contents undefined.
  void renew();
  /// Step of the newest commit that was submitted; -1: none.
  [[nodiscard]] std::int64_t newest() const noexcept { return steps_[current_]; }

  /// True if the commit of this step is one of the two that are there.
  [[nodiscard]] bool has(std::int64_t step) const noexcept {
    return step >= 0 && (steps_[0] == step || steps_[1] == step);
  }

  /// Forgets all entries and commits, and frees the room of the commits.
  void clear();

  // Between the state and pinned memory: for those who save and load it.

  /// What a saved part of this state consists of, in order.
  [[nodiscard]] const std::vector<SavedEntry>& saved_entries() const noexcept { return saved_; }
  /// Writes what never changes into `memory`, each entry to its offset.
  void prepare(const PinnedBuffer<std::uint8_t>& memory, std::span<const std::uint64_t> offsets);
  /// Submits copies of the commit of `step`, one of the last two, to `memory`. Errors: stale if
  /// that commit is no longer there.
  Future<void> save(std::int64_t step, const PinnedBuffer<std::uint8_t>& memory,
                    std::span<const std::uint64_t> offsets);
  /// Loads an entry of the state itself from the bytes that were saved of it, aligned as its
  /// elements are; waits for it. Errors: invalid if a constant differs.
  Result<void> load(std::size_t entry, std::span<const std::byte> saved);

  // The same without pinned memory: for those who bring it to disk, and from there.

  /// An entry of a commit: a range of device memory or, of host data, its bytes.
  struct Committed {
    Operand device{};
    std::vector<std::byte> host;
  };
  /// The entries of the commit of `step`, one of the last two, in order. The ranges hold it until
  /// the next commit but one is submitted. Errors: stale if that commit is no longer there.
  [[nodiscard]] Result<std::vector<Committed>> committed(std::int64_t step);
  /// The same, with no bytes for constants.
  [[nodiscard]] Result<std::vector<Committed>> committed_values(std::int64_t step);
  /// The entries that are constants, ascending.
  [[nodiscard]] const std::vector<std::size_t>& constants() const noexcept { return constants_; }
  /// Constants in device memory.
  struct Guarded {
    std::string name;
    DType dtype;
    std::function<Operand()> range;
    std::function<void()> fill;  ///< may be empty
  };
  [[nodiscard]] const std::vector<Guarded>& guarded() const noexcept { return guarded_; }
  /// Which of the two halves the newest commit is in; the next one overwrites the other.
  [[nodiscard]] std::size_t half() const noexcept { return current_; }
  /// The buffer of an entry, to be loaded: made valid, its contents undefined.
  [[nodiscard]] Operand accept(std::size_t entry);

  // For those who look at the state itself, as it stands.

  /// The bytes of an entry; waits for them. Errors: those of a download.
  [[nodiscard]] Result<std::vector<std::byte>> contents(std::size_t entry) {
    return contents(entry, kNow);
  }
  /// The range of an entry that is a buffer.
  [[nodiscard]] Operand range(std::size_t entry) { return range(entry, kNow); }
  [[nodiscard]] const EntryOptions& look(std::size_t entry) const { return looks_.at(entry); }

  // Beside the newest commit there is room for the state once more, where the commit before it was.

  /// Copies the state as it stands there; waits for it. The commit before the newest is gone.
  [[nodiscard]] Result<void> set_aside();
  /// An entry as it was set aside: see contents() and range().
  [[nodiscard]] Result<std::vector<std::byte>> contents_aside(std::size_t entry) {
    return contents(entry, 1 - current_);
  }
  [[nodiscard]] Operand range_aside(std::size_t entry) { return range(entry, 1 - current_); }
  /// The buffers that add() and add_scratch() have named, by their place in the rank's table.
  [[nodiscard]] std::vector<std::uint32_t> buffers() const;

 private:
  enum class Move { commit, rollback, renew, prepare, save, load, look, locate, accept };
  /// Where an entry goes to, or comes from.
  struct Place {
    std::uint8_t* host = nullptr;  ///< prepare, save, look
    Operand pinned{};              ///< save: the same place
    const std::byte* saved = nullptr;
    Operand* range = nullptr;  ///< locate, accept: of a buffer
  };
  using Entry = std::function<Future<void>(Move, std::size_t half, const Place&)>;

  static constexpr std::size_t kNow = 2;  ///< in the place of a half: the state itself

  [[nodiscard]] Result<std::vector<std::byte>> contents(std::size_t entry, std::size_t half);
  [[nodiscard]] Operand range(std::size_t entry, std::size_t half);
  static Future<void> done() { return Future<void>(Result<void>()); }
  void add_entry(SavedEntry saved, Entry entry);
  Future<void> move_all(Move move, std::size_t half);
  Future<void> move_all(Move move, std::size_t half, const PinnedBuffer<std::uint8_t>& memory,
                        std::span<const std::uint64_t> offsets);

  Device* device_;
  std::vector<Entry> entries_;
  std::vector<SavedEntry> saved_;
  std::vector<EntryOptions> looks_;  ///< of each
  std::vector<std::size_t> constants_;
  std::vector<Guarded> guarded_;
  std::vector<std::function<void()>> scratch_;
  std::vector<std::function<std::uint32_t()>> named_;
  std::int64_t steps_[2] = {-1, -1};
  std::size_t current_ = 1;  ///< the half of the newest commit
};

}  // namespace troupe

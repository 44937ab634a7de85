#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <troupe/dtype.hpp>
#include <troupe/error.hpp>

namespace troupe {

/// The longest name of an entry of a checkpoint, in bytes.
inline constexpr std::size_t kSavedNameBytes = 63;

/// One entry of a saved part: what Checkpoint::add and its kin registered under a name.
struct SavedEntry {
  std::string name;
  std::optional<DType> dtype;  ///< of a buffer; none: host data, plain bytes
  std::uint64_t element_bytes = 1;
  std::uint64_t count = 0;  ///< elements
};

/// A range of elements of one entry of one part.
struct SavedPiece {
  int part = 0;  ///< the rank that saved it, in the world that saved it
  std::string entry;
  std::uint64_t first = 0, count = 0;
};

/// How the bytes of a state go between device memory and disk.
enum class StateIo : std::uint8_t {
  automatic,  ///< only as a wish: direct where that can be and nothing else needs them in host
              ///< memory, else pinned
  direct,     ///< by the device host, straight between device memory and the file
  pinned,     ///< by way of pinned memory of the rank
  compat      ///< only as an outcome: asked for as direct, and it was not: see file::Way
};
/// "auto", "direct", "pinned", "compat".
[[nodiscard]] constexpr std::string_view to_string(StateIo io) noexcept {
  switch (io) {
    case StateIo::automatic: return "auto";
    case StateIo::direct: return "direct";
    case StateIo::pinned: return "pinned";
    case StateIo::compat: break;
  }
  return "compat";
}

namespace detail {
/// Where an entry lies in a file.
struct EntryInFile {
  std::string path;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc = 0;  ///< zlib's crc32 of the bytes
};

/// Where the parts of a saved state are.
class StateSource {
 public:
  virtual ~StateSource() = default;
  [[nodiscard]] virtual std::int64_t step() const = 0;
  [[nodiscard]] virtual int parts() const = 0;
  virtual Result<std::vector<SavedEntry>> entries(int part) = 0;
  virtual Result<std::vector<std::vector<std::byte>>> read(std::span<const SavedPiece> pieces) = 0;
  /// Where an entry lies; nullopt: in no file that this rank can read by itself. This rank alone
  /// calls it. Errors: those of read().
  virtual Result<std::optional<EntryInFile>> file_of(const SavedPiece& /*whole*/) {
    return std::optional<EntryInFile>();
  }
  /// Answers what other ranks read until none of them does.
  virtual void serve() {}
};
}  // namespace detail

/// A state that some world saved: all its parts, one per rank of that world, whatever the number of
/// ranks now. It lies on disk or in the memory of partner ranks; its checksums have been verified.
///
/// A program that goes on with another number of ranks reads from it what its rank needs now. The
/// calls that say so are made by all ranks of the world, one thread each, in the same order.
class SavedState {
 public:
  [[nodiscard]] std::int64_t step() const { return source_->step(); }
  /// How many ranks saved it.
  [[nodiscard]] int parts() const { return source_->parts(); }
  /// The entries of a part. Errors: invalid (no such part), io.
  [[nodiscard]] Result<std::vector<SavedEntry>> entries(int part) const {
    return source_->entries(part);
  }
  /// The bytes of each piece. All ranks call it, also one that wants nothing. Errors, of
  /// this rank alone: invalid (there is no such piece), io.
  [[nodiscard]] Result<std::vector<std::vector<std::byte>>> read(
      std::span<const SavedPiece> pieces) const {
    return source_->read(pieces);
  }
  /// For World::run: where an entry lies on disk, if it does.
  [[nodiscard]] Result<std::optional<detail::EntryInFile>> file_of(const SavedPiece& whole) const {
    return source_->file_of(whole);
  }
  /// Bytes that were read as the values they are. Throws Exception (invalid) if they are no whole
  /// number of elements.
  template <class T>
  [[nodiscard]] static std::vector<T> as(std::span<const std::byte> bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    detail::require(bytes.size() % sizeof(T) == 0, "SavedState::as: no whole number of elements");
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  /// For World::run: what a rank does once it has read all it wants. All ranks call it.
  void serve() const { source_->serve(); }

  explicit SavedState(std::shared_ptr<detail::StateSource> source) : source_(std::move(source)) {}

 private:
  std::shared_ptr<detail::StateSource> source_;
};

/// Where a run keeps its state beside GPU memory, and what it begins with. The same on all ranks,
/// but for `local`.
struct SaveOptions {
  /// Values of `restart` that are no step.
  static constexpr std::int64_t kNewest = -1, kNever = -2;

  std::string directory;   ///< seen by all ranks; empty: nothing is written, nothing read
  std::string name;        ///< the states lie in directory/name; empty: the program's name
  std::int64_t every = 0;  ///< steps between states on disk; 0: only when the run is asked to stop
  /// The state that the run starts from: kNewest, the newest good one; kNever, none; or a step, for
  /// the state which the program's newest run with saved states wrote at that step.
  std::int64_t restart = kNewest;
  /// Copy commits into the memory of another rank, on another node where there is one. While the
  /// copies of one are under way the program goes on, and makes commits that are not copied.
  bool partner = false;
  /// With `partner`: every commit is copied, and the program waits for the copies of the one
  /// before.
  bool every_copy = false;
  /// How states go to disk, and how a state comes from there into device memory.
  StateIo io = StateIo::automatic;
  /// A folder of each node's own (a RAM disk, an NVMe drive), not necessarily the same on all
  /// ranks. The commits that are copied go there: the parts of the node's ranks, and with `partner`
  /// copies of another node's. A run begins with whatever is newer, the state in `directory` or
  /// that on the nodes. Empty: none. Wants a `directory`.
  std::string local = {};
  /// What the result depends on, by name: a state that was saved with other values is another
  /// problem's, and is not taken up. The options of the program that shape its result come by
  /// themselves (OptionSpec::shapes_result). What the first member says counts.
  std::map<std::string, std::string> fingerprint = {};
  /// Files that the result depends on, by name: their contents count, not where they lie.
  std::map<std::string, std::string> inputs = {};
};

/// How a state came to disk.
struct SavedCheckpoint {
  std::int64_t step = 0;
  std::uint64_t bytes = 0;  ///< of all ranks
  double seconds = 0;       ///< from the commit until it was visible
  double stall_seconds =
      0;  ///< how long the step loop was held up by it, on the rank where longest
  StateIo io = StateIo::pinned;  ///< how it went
  double write_seconds = 0;      ///< how long a rank wrote its part, on the rank where longest
  /// Bytes per second of writing, all ranks together.
  [[nodiscard]] double write_rate() const noexcept {
    return write_seconds > 0 ? static_cast<double>(bytes) / write_seconds : 0;
  }
};

}  // namespace troupe

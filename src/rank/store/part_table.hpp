#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/saved_state.hpp>

namespace troupe::rank_process {

/// A *part* is what one rank saves of a state, as one run of bytes: a header, the table of its
/// entries, then the entries, each at a multiple of kPartAlignment. It is the same in pinned
/// memory, in a file and in a partner's memory. Numbers are little-endian.
///
///     0   8  magic "TROUPEP1"
///     8   4  crc32 of header and table, taken with this field zero
///    12   4  number of entries
///    16   4  part: the rank that saved it
///    20   4  parts: the size of its world
///    24   8  step
///    32   8  bytes of the whole part
///    40  24  zero
///    64 104  per entry: name (64, zero-padded), dtype (4; kRawType: none), crc32 of its bytes (4),
///            bytes per element (8), elements (8), offset in the part (8), bytes (8)
///
/// What is read is taken for hostile: every number is checked before it is used.
struct PartTable {
  struct Place {
    SavedEntry entry;
    std::uint64_t offset = 0, bytes = 0;
    std::uint32_t crc = 0;
  };

  std::int32_t part = 0, parts = 1;
  std::int64_t step = -1;
  std::vector<Place> places;
  std::uint64_t bytes = 0;     ///< of the whole part
  std::uint32_t head_crc = 0;  ///< covers everything: the table holds the checksums of the entries

  /// nullptr: there is none of that name.
  [[nodiscard]] const Place* find(std::string_view name) const;
};

inline constexpr std::size_t kPartHeaderBytes = 64;
inline constexpr std::size_t kPartEntryBytes = 104;
inline constexpr std::size_t kPartMaxEntries = 1u << 14;
inline constexpr std::uint64_t kPartAlignment = 512;

/// Where the entries of a part will lie. Names must be distinct, of 1 to kSavedNameBytes
/// characters; at most kPartMaxEntries are read again.
PartTable lay_out(std::span<const SavedEntry> entries);

/// crc32 (zlib's) of any length.
std::uint32_t checksum(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The checksum of two runs of bytes, one behind the other, from theirs.
std::uint32_t checksum_of_both(std::uint32_t first, std::uint32_t second,
                               std::uint64_t second_bytes);

/// Header and table of a part whose entries lie elsewhere; table.part, parts, step and the
/// checksums of the entries must be set. Sets table.head_crc.
std::vector<std::byte> make_head(PartTable& table);
/// Takes the checksums of the entries that lie in `image` and writes header and table before them;
/// table.part, parts and step must be set.
void seal(PartTable& table, std::span<std::byte> image);

/// Bytes of header and table, from a header. Errors: invalid, with what is wrong.
Result<std::uint64_t> head_bytes(std::span<const std::byte> header);
/// The table of a part of `part_bytes` bytes, from its header and table. Errors: invalid.
Result<PartTable> read_table(std::span<const std::byte> head, std::uint64_t part_bytes);
/// The table of a part that is whole in memory, all its checksums verified. Errors: invalid.
Result<PartTable> open_image(std::span<const std::byte> image);

}  // namespace troupe::rank_process

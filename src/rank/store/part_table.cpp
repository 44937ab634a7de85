#include "rank/store/part_table.hpp"

#include <zlib.h>

#ifdef TROUPE_HAS_DEFLATE
#include <libdeflate.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string>

namespace troupe::rank_process {
namespace {

static_assert(std::endian::native == std::endian::little,
              "parts are written as they lie in memory");

constexpr char kMagic[8] = {'T', 'R', 'O', 'U', 'P', 'E', 'P', '1'};
constexpr std::uint32_t kRawType = 0xffff'ffff;

struct Header {
  char magic[8];
  std::uint32_t crc;
  std::uint32_t entries;
  std::int32_t part, parts;
  std::int64_t step;
  std::uint64_t bytes;
  std::uint8_t zero[24];
};
static_assert(sizeof(Header) == kPartHeaderBytes && std::is_trivially_copyable_v<Header>);

struct Row {
  char name[kSavedNameBytes + 1];
  std::uint32_t dtype;
  std::uint32_t crc;
  std::uint64_t element_bytes, count, offset, bytes;
};
static_assert(sizeof(Row) == kPartEntryBytes && std::is_trivially_copyable_v<Row>);

Error malformed(const std::string& what) {
  return {Errc::invalid, 0, what};
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

std::uint64_t head_bytes_of(std::uint64_t entries) {
  return kPartHeaderBytes + entries * kPartEntryBytes;
}

std::uint32_t head_checksum(std::span<const std::byte> head) {
  constexpr std::byte kZero[4] = {};
  const auto before = checksum(head.first(offsetof(Header, crc)));
  return checksum(head.subspan(offsetof(Header, entries)), checksum(kZero, before));
}

Result<PartTable::Place> read_row(const Row& row) {
  const auto* const end = std::find(std::begin(row.name), std::end(row.name), '\0');
  if (end == std::begin(row.name) || end == std::end(row.name))
    return malformed("an entry has no name");
  PartTable::Place place{{std::string(std::begin(row.name), end), {}, row.element_bytes, row.count},
                         row.offset,
                         row.bytes,
                         row.crc};
  if (row.dtype != kRawType) {
    if (row.dtype >= kDTypeCount) return malformed("entry " + place.entry.name + ": unknown dtype");
    place.entry.dtype = static_cast<DType>(row.dtype);
  }
  std::uint64_t bytes = 0;
  if (row.element_bytes == 0 || __builtin_mul_overflow(row.element_bytes, row.count, &bytes) ||
      bytes != row.bytes ||
      (place.entry.dtype && size_of(*place.entry.dtype) != row.element_bytes)) {
    return malformed("entry " + place.entry.name + ": its sizes contradict each other");
  }
  return place;
}

}  // namespace

const PartTable::Place* PartTable::find(std::string_view name) const {
  const auto it = std::find_if(places.begin(), places.end(),
                               [&](const Place& place) { return place.entry.name == name; });
  return it == places.end() ? nullptr : &*it;
}

PartTable lay_out(std::span<const SavedEntry> entries) {
  PartTable table;
  std::uint64_t at = head_bytes_of(entries.size());
  for (const auto& entry : entries) {
    at = aligned(at);
    const auto bytes = entry.count * entry.element_bytes;
    table.places.push_back({entry, at, bytes, 0});
    at += bytes;
  }
  table.bytes = at;
  return table;
}

std::uint32_t checksum(std::span<const std::byte> bytes, std::uint32_t before) {
#ifdef TROUPE_HAS_DEFLATE
  return ::libdeflate_crc32(before, bytes.data(), bytes.size());
#else
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
#endif
}

std::uint32_t checksum_of_both(std::uint32_t first, std::uint32_t second,
                               std::uint64_t second_bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

std::vector<std::byte> make_head(PartTable& table) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.entries = static_cast<std::uint32_t>(table.places.size());
  header.part = table.part;
  header.parts = table.parts;
  header.step = table.step;
  header.bytes = table.bytes;
  std::vector<std::byte> head(head_bytes_of(table.places.size()));
  std::size_t at = sizeof header;
  for (const auto& place : table.places) {
    Row row{};
    place.entry.name.copy(row.name, kSavedNameBytes);
    row.dtype = place.entry.dtype ? static_cast<std::uint32_t>(*place.entry.dtype) : kRawType;
    row.crc = place.crc;
    row.element_bytes = place.entry.element_bytes;
    row.count = place.entry.count;
    row.offset = place.offset;
    row.bytes = place.bytes;
    std::memcpy(head.data() + at, &row, sizeof row);
    at += sizeof row;
  }
  std::memcpy(head.data(), &header, sizeof header);
  table.head_crc = head_checksum(head);
  std::memcpy(head.data() + offsetof(Header, crc), &table.head_crc, sizeof table.head_crc);
  return head;
}

void seal(PartTable& table, std::span<std::byte> image) {
  check(image.size() == table.bytes, "a part's image has another size than its table says");
  auto end = head_bytes_of(table.places.size());
  for (auto& place : table.places) {
    // What lies between is part of the file: it must not be what was in memory before.
    std::memset(image.data() + end, 0, place.offset - end);
    end = place.offset + place.bytes;
    place.crc = checksum(image.subspan(place.offset, place.bytes));
  }
  const auto head = make_head(table);
  std::copy(head.begin(), head.end(), image.begin());
}

Result<std::uint64_t> head_bytes(std::span<const std::byte> header) {
  Header head;
  if (header.size() < sizeof head) return malformed("it is shorter than a header");
  std::memcpy(&head, header.data(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0)
    return malformed("it is no part of a saved state, or of another version");
  if (head.entries > kPartMaxEntries) return malformed("its table is too long");
  return head_bytes_of(head.entries);
}

Result<PartTable> read_table(std::span<const std::byte> head, std::uint64_t part_bytes) {
  const auto size = head_bytes(head);
  if (!size) return size.error();
  if (head.size() < *size) return malformed("it ends within its table");
  head = head.first(*size);
  Header header;
  std::memcpy(&header, head.data(), sizeof header);
  PartTable table;
  table.head_crc = head_checksum(head);
  if (table.head_crc != header.crc) return malformed("the checksum of its table is wrong");
  table.part = header.part;
  table.parts = header.parts;
  table.step = header.step;
  table.bytes = header.bytes;
  if (table.parts < 1 || table.part < 0 || table.part >= table.parts || table.step < 0)
    return malformed("its header is out of range");
  if (table.bytes != part_bytes) {
    return malformed("it has " + std::to_string(part_bytes) + " bytes instead of " +
                     std::to_string(table.bytes));
  }
  std::set<std::string> names;
  auto end = *size;
  for (std::size_t i = 0; i < header.entries; ++i) {
    Row row;
    std::memcpy(&row, head.data() + sizeof header + i * sizeof row, sizeof row);
    auto place = read_row(row);
    if (!place) return place.error();
    if (place->offset < end || place->offset > table.bytes ||
        place->bytes > table.bytes - place->offset) {
      return malformed("entry " + place->entry.name + " lies outside of its place");
    }
    if (!names.insert(place->entry.name).second)
      return malformed("entry " + place->entry.name + " is there twice");
    end = place->offset + place->bytes;
    table.places.push_back(std::move(*place));
  }
  if (end != table.bytes) return malformed("bytes follow the last entry");
  return table;
}

Result<PartTable> open_image(std::span<const std::byte> image) {
  auto table = read_table(image, image.size());
  if (!table) return table;
  for (const auto& place : table->places) {
    if (checksum(image.subspan(place.offset, place.bytes)) != place.crc)
      return malformed("the checksum of entry " + place.entry.name + " is wrong");
  }
  return table;
}

}  // namespace troupe::rank_process

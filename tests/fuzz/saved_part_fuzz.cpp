// Whatever the bytes, a saved part or a manifest is refused or keeps what its
// table promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <troupe/error.hpp>

#include "fuzz.hpp"
#include "rank/store/disk_state.hpp"
#include "rank/store/generations.hpp"
#include "rank/store/part_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using troupe::check;
  using namespace troupe::rank_process;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto manifest = parse_manifest(std::string(reinterpret_cast<const char*>(data), size));
  if (manifest.ok()) {
    const auto again = parse_manifest(to_json(*manifest));
    check(again.ok() && *again == *manifest, "a manifest means the same when written anew");
  }
  // Without the checksum of the table hardly any input would get past it.
  std::vector<std::byte> image(bytes.begin(), bytes.end());
  const auto head = head_bytes(image);
  if (head.ok() && *head <= image.size()) {
    constexpr std::byte kZero[4] = {};
    const auto whole = std::span(image).first(*head);
    const auto crc = checksum(whole.subspan(12), checksum(kZero, checksum(whole.first(8))));
    std::copy_n(std::as_bytes(std::span(&crc, 1)).begin(), sizeof crc, image.begin() + 8);
  }
  const auto table = read_table(image, image.size());
  if (!table.ok()) return 0;
  for (const auto& place : table->places) {
    check(place.offset <= image.size() && place.bytes <= image.size() - place.offset,
          "entries lie within the part");
    check(place.entry.count * place.entry.element_bytes == place.bytes, "sizes agree");
    const auto range = locate(*table, {0, place.entry.name, 0, place.entry.count});
    check(range.ok() && range->bytes == place.bytes, "an entry is found by its name");
  }
  (void)open_image(image);
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  using namespace troupe::rank_process;
  std::vector<std::vector<std::byte>> seeds;
  for (const int parts : {1, 3}) {
    const troupe::SavedEntry entries[] = {{"x", troupe::DType::f64, 8, 5},
                                          {"rows", {}, sizeof(std::int64_t), 2},
                                          {"nothing", troupe::DType::f32, 4, 0}};
    auto table = lay_out(entries);
    table.parts = parts;
    table.step = 40;
    std::vector<std::byte> image(table.bytes, std::byte{7});
    seal(table, image);
    seeds.push_back(std::move(image));
    Manifest manifest{.step = table.step, .parts = {}, .fingerprint = {{"--n", "5"}, {"x", ""}}};
    manifest.parts.assign(static_cast<std::size_t>(parts), {table.bytes, table.head_crc});
    const auto text = to_json(manifest);
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

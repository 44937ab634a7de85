#include "rank/store/near_states.hpp"

#include <algorithm>
#include <filesystem>

#include "common/core/log.hpp"
#include "rank/store/part_file.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

/// The rank of the node that gives a part: see near_parts().
int giver_of(int part, std::span<const int> nodes, int rank) {
  const auto node = nodes[static_cast<std::size_t>(rank)];
  if (part < std::ssize(nodes) && nodes[static_cast<std::size_t>(part)] == node) return part;
  std::vector<int> here;
  for (int other = 0; other < std::ssize(nodes); ++other) {
    if (nodes[static_cast<std::size_t>(other)] == node) here.push_back(other);
  }
  return here[static_cast<std::size_t>(part) % here.size()];
}

Result<HeldPart> open_part(const fs::path& path, const Manifest& manifest, int number) {
  auto opened = PartFile::open(path);
  if (!opened) return opened.error();
  auto file = std::make_shared<const PartFile>(std::move(*opened));
  const auto& table = file->table();
  const auto& promised = manifest.parts[static_cast<std::size_t>(number)];
  if (table.part != number || table.parts != std::ssize(manifest.parts) ||
      table.step != manifest.step || table.bytes != promised.bytes ||
      table.head_crc != promised.crc) {
    return Error{Errc::invalid, 0, path.string() + ": it is not the part that its manifest names"};
  }
  HeldPart part{.step = manifest.step, .bytes = table.bytes, .state = state_of(manifest)};
  part.head.resize(kPartHeaderBytes + kPartEntryBytes * table.places.size());
  if (auto read = file->read(0, part.head); !read) return read.error();
  part.image = [file]() -> Result<HeldPart::Image> {
    auto image = std::make_shared<std::vector<std::byte>>(file->table().bytes);
    if (auto loaded = file->load(*image); !loaded) return loaded.error();
    return HeldPart::Image(std::move(image));
  };
  return part;
}

}  // namespace

std::uint32_t state_of(const Manifest& manifest) {
  const auto text = to_json(manifest);
  return checksum(std::as_bytes(std::span(text)));
}

std::vector<HeldPart> near_parts(const Generations& folder, std::int64_t wanted,
                                 std::span<const int> nodes, int rank) {
  std::vector<HeldPart> parts;
  const auto complain = [](std::int64_t step, const Error& error) {
    log::warn("checkpoint", "the state of step {} in checkpoint-local is no good: {}", step,
              error.message);
  };
  for (const auto step : folder.steps()) {
    if (wanted >= 0 && step != wanted) continue;
    const auto manifest = folder.manifest(step);
    if (!manifest.ok()) {
      complain(step, manifest.error());
      continue;
    }
    for (int number = 0; number < std::ssize(manifest->parts); ++number) {
      if (giver_of(number, nodes, rank) != rank) continue;
      const auto own = folder.part(step, number);
      for (const auto& path : {own, own.parent_path() / Generations::copy_name(number)}) {
        std::error_code error;
        if (!fs::exists(path, error)) continue;
        auto part = open_part(path, *manifest, number);
        if (part.ok()) {
          parts.push_back(std::move(*part));
        } else {
          complain(step, part.error());
        }
      }
    }
  }
  return parts;
}

}  // namespace troupe::rank_process

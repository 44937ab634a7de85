#include "common/wire/sequence_list.hpp"

#include <cstring>

namespace troupe::wire {

std::vector<std::byte> pack_records(const std::vector<SequenceRecord>& records) {
  std::vector<std::byte> list;
  for (const auto& record : records) {
    const std::uint64_t bytes = record.size();
    const auto at = list.size();
    list.resize(at + sizeof bytes + record.size());
    std::memcpy(list.data() + at, &bytes, sizeof bytes);
    if (bytes != 0) std::memcpy(list.data() + at + sizeof bytes, record.data(), record.size());
  }
  return list;
}

Result<std::vector<SequenceRecord>> unpack_records(std::span<const std::byte> list,
                                                   std::size_t count) {
  std::vector<SequenceRecord> records;
  while (!list.empty()) {
    std::uint64_t bytes = 0;
    if (list.size() < sizeof bytes) break;
    std::memcpy(&bytes, list.data(), sizeof bytes);
    list = list.subspan(sizeof bytes);
    if (bytes > list.size()) break;
    const auto record = list.first(bytes);
    records.emplace_back(record.begin(), record.end());
    list = list.subspan(bytes);
  }
  if (!list.empty() || records.size() != count)
    return Error{Errc::invalid, 0, "the list of a sequence is not as long as said"};
  return records;
}

}  // namespace troupe::wire

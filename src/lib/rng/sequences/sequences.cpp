#include "lib/rng/sequences/sequences.hpp"

#include <algorithm>
#include <string>

namespace troupe::host::rng_numbers {

namespace {

using rng::Distribution;
using rng::Generator;

/// curandRngType of a generator.
int type_of(Generator generator) {
  constexpr int kTypes[] = {101, 121, 141, 142, Curand::kPhilox, 201, 202, 203, 204};
  return kTypes[static_cast<std::size_t>(generator)];
}

Result<void> result_of(Curand::Status status, const char* call) {
  switch (status) {
    case Curand::kSuccess: return {};
    case Curand::kAllocationFailed:
      return Error{Errc::out_of_memory, status, std::string(call) + ": out of memory"};
    case Curand::kOutOfRange:
      return Error{Errc::invalid, status, std::string(call) + ": out of range"};
    default:
      return Error{Errc::library, status,
                   std::string(call) + ": curandStatus " + std::to_string(status)};
  }
}

Result<void> generate(Curand::Handle handle, const rng::Sequence& op, void* to, std::size_t n) {
  const auto& library = curand();
  const bool single = op.dtype == DType::f32;
  const auto mean = static_cast<float>(op.mean), deviation = static_cast<float>(op.deviation);
  auto* const f32 = static_cast<float*>(to);
  auto* const f64 = static_cast<double*>(to);
  auto* const u32 = static_cast<unsigned*>(to);
  switch (op.distribution) {
    case Distribution::bits:
      return op.dtype == DType::u64
                 ? result_of(library.wide_bits(handle, static_cast<unsigned long long*>(to), n),
                             "curandGenerateLongLong")
                 : result_of(library.bits(handle, u32, n), "curandGenerate");
    case Distribution::uniform:
      return result_of(
          single ? library.uniform_f32(handle, f32, n) : library.uniform_f64(handle, f64, n),
          "curandGenerateUniform");
    case Distribution::normal:
      return result_of(single ? library.normal_f32(handle, f32, n, mean, deviation)
                              : library.normal_f64(handle, f64, n, op.mean, op.deviation),
                       "curandGenerateNormal");
    case Distribution::log_normal:
      return result_of(single ? library.log_normal_f32(handle, f32, n, mean, deviation)
                              : library.log_normal_f64(handle, f64, n, op.mean, op.deviation),
                       "curandGenerateLogNormal");
    case Distribution::poisson:
      return result_of(library.poisson(handle, u32, n, op.mean), "curandGeneratePoisson");
  }
  return Error{Errc::invalid, 0, "unknown distribution"};
}

}  // namespace

Sequences::~Sequences() {
  for (const auto& entry : entries_) curand().destroy(entry.handle);
}

Result<void> Sequences::make(const rng::Sequence& op, std::size_t queue, void* stream,
                             void* destination, const Room& room, const Copy& copy) {
  if (op.n == 0) return {};
  if (!curand().loaded)
    return Error{Errc::unsupported, 0,
                 std::string(op.kName) + ": it needs libcurand.so.10: " + curand().why};
  const std::lock_guard lock(mutex_);
  const Key key{queue,           op.dtype,    op.seed,       op.offset, op.generator,
                op.distribution, op.ordering, op.dimensions, op.mean,   op.deviation};
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found != entries_.end() && (found->next <= op.first || op.seeks())) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    if (found != entries_.end()) drop(found);  // it does not go back
    if (const auto made = add(key, op, stream); !made) return made.error();
  }
  auto& entry = entries_.front();
  auto made = go_to(entry, op, room);
  if (made.ok()) made = put(entry, op, destination, room, copy);
  if (!made.ok()) {
    drop(entries_.begin());
    return made.error();
  }
  entry.next = op.first + op.n;
  return {};
}

Result<void> Sequences::add(const Key& key, const rng::Sequence& op, void* stream) {
  const auto& library = curand();
  Entry entry;
  entry.key = key;
  const auto type = type_of(op.generator);
  const auto created = where_ == Where::host ? library.create_host(&entry.handle, type)
                                             : library.create(&entry.handle, type);
  if (created != Curand::kSuccess) return result_of(created, "curandCreateGenerator");
  if (entries_.size() == kGenerators) drop(std::prev(entries_.end()));
  entries_.push_front(entry);

  Result<void> set;
  const auto then = [&](Curand::Status status, const char* call) {
    if (set.ok()) set = result_of(status, call);
  };
  if (where_ == Where::device) then(library.set_stream(entry.handle, stream), "curandSetStream");
  if (rng::is_quasi(op.generator)) {
    then(library.set_dimensions(entry.handle, op.dimensions),
         "curandSetQuasiRandomGeneratorDimensions");
  } else {
    constexpr int kLegacy = 103;  // CURAND_ORDERING_PSEUDO_LEGACY
    if (op.ordering == rng::Ordering::legacy)
      then(library.set_ordering(entry.handle, kLegacy), "curandSetGeneratorOrdering");
    then(library.set_seed(entry.handle, op.seed), "curandSetPseudoRandomGeneratorSeed");
  }
  if (op.offset != 0) then(library.set_offset(entry.handle, op.offset), "curandSetGeneratorOffset");
  if (!set.ok()) drop(entries_.begin());
  return set;
}

void Sequences::drop(std::list<Entry>::iterator entry) {
  curand().destroy(entry->handle);
  entries_.erase(entry);
}

Result<void> Sequences::put(const Entry& entry, const rng::Sequence& op, void* destination,
                            const Room& room, const Copy& copy) {
  const auto n = static_cast<std::size_t>(op.n), bytes = n * size_of(op.dtype);
  if (reinterpret_cast<std::uintptr_t>(destination) % 16 == 0)
    return generate(entry.handle, op, destination, n);
  const auto aligned = room(bytes);
  if (!aligned) return aligned.error();
  if (const auto made = generate(entry.handle, op, *aligned, n); !made) return made.error();
  return copy(destination, *aligned, bytes);
}

Result<void> Sequences::go_to(Entry& entry, const rng::Sequence& op, const Room& room) {
  if (entry.next == op.first) return {};
  if (op.seeks()) {
    const auto places = static_cast<std::uint64_t>(op.first) / op.dimensions;
    return result_of(curand().set_offset(entry.handle, op.offset + places),
                     "curandSetGeneratorOffset");
  }
  constexpr std::int64_t kMost = 1 << 20;
  const auto to = room(kMost * sizeof(double));
  if (!to) return to.error();
  while (entry.next < op.first) {
    const auto n = std::min(kMost, op.first - entry.next);
    if (const auto made = generate(entry.handle, op, *to, static_cast<std::size_t>(n)); !made)
      return made.error();
    entry.next += n;
  }
  return {};
}

}  // namespace troupe::host::rng_numbers

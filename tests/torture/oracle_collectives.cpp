#include <algorithm>
#include <cmath>

#include "catalogue/values.hpp"
#include "oracle.hpp"

// The oracle's word on collectives.

namespace troupe::torture {

void Oracle::collective(const std::vector<const Operation*>& parts, const OutcomeOf& outcome) {
  // All results are of what was there before any of them is written: it may be in place. Where it
  // failed, a source may not be what it should have been.
  std::vector<std::vector<std::byte>> results;
  // What a rank with a fault has brought is not known either: what failed there may have been done.
  const auto doubted = [this](const Slice& slice) {
    if (!slice.present()) return false;
    const auto& source = at(slice.rank, slice.buffer);
    return source.unsure || source.may_be_stale;
  };
  const bool doubtful = std::any_of(parts.begin(), parts.end(), [&](const Operation* part) {
    return doubted(part->at[0]) || doubted(part->alpha_at);
  });
  for (const auto* part : parts) {
    const bool done = outcome(*part) == Outcome::done;
    results.push_back(done ? result_of(parts, *part) : std::vector<std::byte>());
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const auto& to : written(*parts[i])) {
      auto& memory = at(to.rank, to.buffer);
      memory.unsure = memory.unsure || doubtful;
      if (!results[i].empty())
        write(to, results[i]);
      else
        memory.may_be_stale = true;
    }
  }
}

std::vector<std::byte> Oracle::result_of(const std::vector<const Operation*>& parts,
                                         const Operation& mine) const {
  const auto source_of = [&](int place) -> const Slice& {
    for (const auto* part : parts) {
      if (part->place == place) return part->at[0];
    }
    return mine.at[0];
  };
  const auto ranks = static_cast<int>(parts.size());
  switch (mine.kind) {
    case Kind::all_reduce: return reduced(parts, 0, mine.at[0].count);
    case Kind::reduce:
      return mine.place == mine.peer ? reduced(parts, 0, mine.at[0].count)
                                     : std::vector<std::byte>();
    case Kind::reduce_scatter:
      return reduced(parts, mine.place * mine.at[1].count, mine.at[1].count);
    case Kind::broadcast:
    case Kind::broadcast_to: return read(source_of(mine.peer));
    case Kind::exchange: return read(source_of((mine.place - mine.peer + ranks) % ranks));
    case Kind::receive: return read(source_of(mine.peer));
    case Kind::scatter_from: {
      auto from = source_of(mine.peer);
      from.first += mine.place * mine.at[1].count, from.count = mine.at[1].count;
      return read(from);
    }
    case Kind::gather_to:
      if (mine.place != mine.peer) return {};
      [[fallthrough]];
    case Kind::all_gather:
    case Kind::all_to_all:
    case Kind::all_to_all_counts: {
      std::vector<std::byte> all;
      for (int place = 0; place < ranks; ++place) {
        auto from = source_of(place);
        if (mine.kind == Kind::all_to_all_counts) {
          for (int before = 0; before < mine.place; ++before)
            from.first += sent(mine, place, before);
          from.count = sent(mine, place, mine.place);
        } else {
          from.count = mine.at[1].count / ranks;
          if (mine.kind == Kind::all_to_all) from.first += mine.place * from.count;
        }
        const auto part = read(from);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    default: return {};
  }
}

std::vector<std::byte> Oracle::reduced(const std::vector<const Operation*>& parts,
                                       std::int64_t first, std::int64_t count) const {
  const auto& op = *parts[0];
  const auto size = size_of(op.dtype);
  std::vector<std::byte> out(static_cast<std::size_t>(count) * size);
  const auto brought = [&](const Operation& part, std::int64_t i) {
    if (op.reduce != ReduceOp::premul_sum) return get(part.at[0], i);
    const auto scalar = part.alpha_at.present() ? get(part.alpha_at, 0) : part.alpha;
    return scalar * get(part.at[0], i);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    double value = brought(op, first + i);
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const auto next = brought(*parts[p], first + i);
      switch (op.reduce) {
        case ReduceOp::sum:
        case ReduceOp::premul_sum:
        case ReduceOp::avg: value += next; break;
        case ReduceOp::prod: value *= next; break;
        case ReduceOp::min: value = std::min(value, next); break;
        case ReduceOp::max: value = std::max(value, next); break;
      }
    }
    if (op.reduce == ReduceOp::avg) value /= static_cast<double>(parts.size());
    if (value != std::floor(value) || std::abs(value) > exact_limit(op.dtype))
      inexact_ = "a reduction gives " + std::to_string(value);
    else
      store(op.dtype, out.data() + static_cast<std::size_t>(i) * size, value);
  }
  return out;
}

}  // namespace troupe::torture

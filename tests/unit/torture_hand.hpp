#pragma once

#include <vector>

#include "catalogue/values.hpp"
#include "oracle.hpp"
#include "program.hpp"

/// Programs of troupe-torture, of a seed and by hand, and what goes with them.
namespace troupe::torture {

inline RandomTable random_numbers() {
  RandomTable table;
  table.supported.fill(true);
  for (std::size_t group = 0; group < 2 * RandomTable::kKinds; ++group) {
    for (std::size_t set = 0; set < RandomTable::kSets; ++set) {
      table.sets.push_back(random_bytes(set + 1, static_cast<std::size_t>(RandomTable::kCount) *
                                                     (group < RandomTable::kKinds ? 4 : 8)));
    }
  }
  return table;
}

template <class Visit>
void for_each_operation(const Program& program, Visit&& visit) {
  for (const auto& round : program.rounds) {
    for (const auto& step : round.scripts) {
      for (const auto& rank : step) {
        for (const auto& script : rank) {
          for (const auto& op : script) visit(round, op);
        }
      }
    }
  }
}

inline const auto kNobodyLooks = [](const Operation&, const std::vector<std::byte>&) {};

/// A program of two ranks by hand.
struct ByHand {
  Program program;
  Round round;
  ByHand() {
    program.ranks = 2;
    program.buffers = {{DType::f64, 100, Contents::integers, {}},
                       {DType::f64, 100, Contents::integers, {}}};
    round.owners.resize(2);
    round.scripts.assign(1, std::vector<std::vector<std::vector<Operation>>>(
                                2, std::vector<std::vector<Operation>>(1)));
  }
  Operation& add(int rank, Kind kind) {
    auto& op = round.scripts[0][static_cast<std::size_t>(rank)][0].emplace_back();
    op.kind = kind;
    op.rank = op.target = rank;
    op.dtype = DType::f64;
    return op;
  }
  /// On both ranks; the fills have the ids 0 and 1.
  void add_fills_and_a_sum() {
    for (int rank = 0; rank < 2; ++rank) {
      auto& fill = add(rank, Kind::fill);
      fill.id = static_cast<std::uint32_t>(rank), fill.alpha = 1 + rank,
      fill.at[0] = {rank, 0, 0, 100};
      auto& reduce = add(rank, Kind::all_reduce);
      reduce.id = 5, reduce.at[0] = {rank, 0, 10, 4}, reduce.at[1] = {rank, 1, 20, 4};
    }
  }
  [[nodiscard]] static double element(const Oracle& oracle, int rank, int buffer, std::size_t i) {
    return load(DType::f64, oracle.contents(rank, buffer).data() + 8 * i);
  }
};

}  // namespace troupe::torture

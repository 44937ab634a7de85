#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program.hpp"

namespace troupe::torture {

/// Random numbers as the engine made them in quiet, before the first program: they are compared
/// with themselves, everywhere and after every fault.
struct RandomTable {
  static constexpr std::size_t kKinds = 4;  ///< that draw numbers
  std::array<bool, kKinds> supported{};
  /// For f32, then f64, by kind, by set: kCount elements each.
  std::vector<std::vector<std::byte>> sets;
  [[nodiscard]] const std::vector<std::byte>& numbers(DType dtype, Kind kind,
                                                      std::uint64_t set) const;
  /// Whether the operation may be answered by `unsupported`.
  [[nodiscard]] bool lacks(const Operation& op) const {
    return is_drawn(op.kind) && !supported.at(index_of(op.kind));
  }
  [[nodiscard]] bool has_all() const {
    return std::find(supported.begin(), supported.end(), false) == supported.end();
  }
  static std::size_t index_of(Kind kind) {
    return static_cast<std::size_t>(kind) - static_cast<std::size_t>(Kind::uniform);
  }
  static constexpr std::size_t kSets = 6;
  static constexpr std::int64_t kCount = 64;
};

/// What became of an operation.
enum class Outcome : std::uint8_t {
  done,     ///< its future holds a value, or nobody looked and it had to
  refused,  ///< it failed and changed nothing, or its range is stale
  spoilt,   ///< it failed, as it had to, and its range is stale
  unsure    ///< on another rank's device: it may have been done although it failed here
};

/// The outcome of an operation that meets no fault, and whose library is not let fail.
inline Outcome undisturbed(const Operation& op) noexcept {
  return op.fails == Errc::ok || op.fails == Errc::library ? Outcome::done : Outcome::spoilt;
}

/// Says what every element of every buffer of every rank must be: host arrays and program order,
/// one element at a time.
class Oracle {
 public:
  Oracle(const Program& program, const RandomTable& random);

  /// The contents a buffer starts with, or gets anew after a loss; `version` tells these apart.
  [[nodiscard]] static std::vector<std::byte> initial(const Program& program, int rank, int buffer,
                                                      std::uint64_t version);
  void reset(int rank, int buffer, std::uint64_t version);

  using OutcomeOf = std::function<Outcome(const Operation&)>;
  /// Called with each operation that looks at contents, and what it has to see.
  using Look = std::function<void(const Operation&, const std::vector<std::byte>& seen)>;
  /// Carries out a step of a round on all ranks.
  void apply(const Round& round, std::size_t step, const OutcomeOf& outcome, const Look& look);

  [[nodiscard]] const std::vector<std::byte>& contents(int rank, int buffer) const;
  /// Sets the whole of a buffer to a value.
  void set(int rank, int buffer, double value);
  /// Whether the contents are not known: an operation of unsure outcome wrote them.
  [[nodiscard]] bool unsure(int rank, int buffer) const;
  /// Whether a failed operation wrote it, so that it may be stale. Cleared by reset().
  [[nodiscard]] bool may_be_stale(int rank, int buffer) const;
  /// Whether an operation wrote it that failed because of its data: then it is stale.
  [[nodiscard]] bool must_be_stale(int rank, int buffer) const;
  /// What failed until now explains nothing that comes.
  void forgive(int rank, int buffer) { at(rank, buffer).may_be_stale = false; }
  /// A value that is not exact has come up: the program is none (after operations were left out).
  [[nodiscard]] const std::optional<std::string>& inexact() const { return inexact_; }

 private:
  struct Memory {
    std::vector<std::byte> bytes;
    bool unsure = false, may_be_stale = false, must_be_stale = false;
  };

  Memory& at(int rank, int buffer) {
    return memory_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] const Memory& at(int rank, int buffer) const {
    return memory_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] DType dtype(const Slice& slice) const {
    return program_.buffers[static_cast<std::size_t>(slice.buffer)].dtype;
  }
  [[nodiscard]] double get(const Slice& slice, std::int64_t i) const;
  void put(const Slice& slice, std::int64_t i, double value);
  [[nodiscard]] std::complex<double> get_complex(const Slice& slice, std::int64_t i) const;
  void put_complex(const Slice& slice, std::int64_t i, std::complex<double> value);
  [[nodiscard]] std::int64_t index_at(const Slice& slice, std::int64_t i) const {
    return static_cast<std::int64_t>(get(slice, i));
  }
  [[nodiscard]] std::vector<std::byte> read(const Slice& slice) const;
  void write(const Slice& slice, const std::vector<std::byte>& bytes);
  void move(const Slice& from, const Slice& to) { write(to, read(from)); }

  void apply_one(const Operation& op, Outcome outcome, const Look& look);
  void compute(const Operation& op);
  void product(const Operation& op);
  void special_product(const Operation& op);
  void extreme(const Operation& op);
  void factorise(const Operation& op);
  void of_diagonal(const Operation& op);
  void sort(const Operation& op);
  void sparse(const Operation& op);
  void multiply_sparse(const Operation& op);
  void select(const Operation& op);
  /// The value of its future: see has_value().
  [[nodiscard]] std::int64_t value_of(const Operation& op) const;
  void reduce_local(const Operation& op);
  void scan(const Operation& op);
  void transform(const Operation& op);
  void convolve(const Operation& op);
  void attend(const Operation& op);
  void smooth(const Operation& op);
  void tally(const Operation& op);
  void collective(const std::vector<const Operation*>& parts, const OutcomeOf& outcome);
  [[nodiscard]] std::vector<std::byte> result_of(const std::vector<const Operation*>& parts,
                                                 const Operation& mine) const;
  [[nodiscard]] std::vector<std::byte> reduced(const std::vector<const Operation*>& parts,
                                               std::int64_t first, std::int64_t count) const;

  Program const& program_;
  const RandomTable& random_;
  std::vector<std::vector<Memory>> memory_;
  mutable std::optional<std::string> inexact_;
};

/// What fill and its kin write: `count` elements as the operation says.
std::vector<std::byte> constant_of(const Operation& op, Contents contents, std::int64_t count);
/// What an upload brings.
std::vector<std::byte> uploaded_by(const Operation& op, Contents contents, std::int64_t count);
/// The diagonal of the matrix of a factorisation that fails, of a factor_info or syevd.
std::vector<double> diagonal_of(const Operation& op);
/// What an operation that looks at contents sees: a range of a buffer, or a value.
BufferSpec seen_by(const Program& program, const Operation& op);
/// A value as it is seen.
std::vector<std::byte> bytes_of(std::int64_t value);
/// By how many times its last place's worth a rounded number may differ.
inline constexpr double kRoundings = 16;
/// Whether two ranges are equal: bit for bit, but that zeros have no sign where it is arithmetic
/// that made them, and that rounded numbers may differ by kRoundings times the last place's worth.
/// The first element that differs; -1: none.
std::int64_t first_difference(const BufferSpec& spec, const std::vector<std::byte>& a,
                              const std::vector<std::byte>& b);
/// Says how an element differs: "element 3 is 7, not 5".
std::string in_words(const BufferSpec& spec, std::int64_t element,
                     const std::vector<std::byte>& seen, const std::vector<std::byte>& expected);

}  // namespace troupe::torture

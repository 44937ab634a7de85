#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/gpu_ref.hpp>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/memory/loan_board.hpp"

namespace troupe::rank_process {

/// A range of this rank's memory that a transfer reads. What is not constant belongs to Loans, and
/// is guarded by it.
struct Loan {
  const Operand lent;          ///< the range itself
  const Future<void> granted;  ///< resolves once what the program wrote before is there
  Operand now = lent;          ///< where its contents are: the range, or a copy made of it
  bool saved = false;          ///< `now` is a copy …
  Future<void> save{};         ///< … once this has resolved well
  std::shared_ptr<detail::BufferLease> copy{};
  LoanBoard::Place place{};
};

/// Ranges that transfers read while the program goes on.
///
/// Each is read as it was when its loan began. Nothing is copied for that, and nobody waits, unless
/// the program writes the range while it is lent: then, ahead of the write and in program order,
/// the contents are copied elsewhere on the device and the transfer reads the copy (copy on write).
/// Making the writer wait for the reader instead would deadlock where the reader's device waits,
/// say in a collective, for something that the writer's program has yet to submit. A reader that
/// may have seen the write looks at location() afterwards: if that has changed, it reads again. One
/// in another process of this node looks at the LoanBoard. Any thread.
class Loans {
 public:
  struct Fresh {
    std::shared_ptr<detail::BufferLease> lease;
    Operand where;
  };
  using Allocate = std::function<Result<Fresh>(std::uint64_t bytes)>;

  Loans(CommandPort& port, Allocate allocate);

  /// Loans that begin from now on have a place there.
  void set_board(std::unique_ptr<LoanBoard> board);

  /// Errors: stale; would_block while a transfer into the range is under way.
  Result<std::shared_ptr<Loan>> begin(const Operand& range);
  void end(const std::shared_ptr<Loan>& loan);

  struct Location {
    Operand where;
    bool saved = false;
    Future<void> there;  ///< resolves when the contents are there
    /// Valid as long as the contents are where they are.
    LoanBoard::Entry entry;
  };
  [[nodiscard]] Location location(const std::shared_ptr<Loan>& loan) const;
  /// Copies bytes [offset, offset + bytes) of the range, as it was when the loan began, to pinned
  /// memory.
  Future<void> read(const std::shared_ptr<Loan>& loan, std::uint64_t offset,
                    const Operand& pinned) const;
  /// Calls `submit(range)`, which submits a command that reads the whole of it where it is now. The
  /// contents are there if they were when the loan was looked at last.
  Future<void> read_whole(const std::shared_ptr<Loan>& loan,
                          const std::function<Future<void>(const Operand&)>& submit) const;

 private:
  void rescue(const Operand& written);

  CommandPort* port_;
  Allocate allocate_;
  mutable std::mutex mutex_;
  std::unique_ptr<LoanBoard> board_;  ///< the loans' places are there: it outlives them
  std::vector<std::shared_ptr<Loan>> loans_;
};

}  // namespace troupe::rank_process

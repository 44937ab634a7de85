#include "rank/device/memory/loans.hpp"

#include <algorithm>

#include <troupe/lib/memory.hpp>

namespace troupe::rank_process {

Loans::Loans(CommandPort& port, Allocate allocate) : port_(&port), allocate_(std::move(allocate)) {
  port_->transfers().set_rescue([this](const Operand& written) { rescue(written); });
}

Result<std::shared_ptr<Loan>> Loans::begin(const Operand& range) {
  // A write that comes between the next two lines is kept waiting until the loan is in the list.
  const auto contents = port_->transfers().begin_read(range);
  if (!contents) return contents.error();
  const std::lock_guard lock(mutex_);
  // A fence is a command as any other: the device host takes microseconds to answer it.
  const auto granted = *contents == Transfers::Contents::there
                           ? Future<void>(Result<void>())
                           : detail::submit(port_->deliveries(), memory::Fence{DType::u8, range});
  auto loan = std::make_shared<Loan>(Loan{range, granted});
  loan->place = LoanBoard::Place(board_.get());
  loans_.push_back(loan);
  return loan;
}

void Loans::end(const std::shared_ptr<Loan>& loan) {
  const std::lock_guard lock(mutex_);
  if (std::erase(loans_, loan) != 0 && !loan->saved) port_->transfers().end_read(loan->lent);
  loan->copy.reset();
  loan->place = {};
}

void Loans::set_board(std::unique_ptr<LoanBoard> board) {
  const std::lock_guard lock(mutex_);
  check(board_ == nullptr, "a second board of loans");
  board_ = std::move(board);
}

Loans::Location Loans::location(const std::shared_ptr<Loan>& loan) const {
  const std::lock_guard lock(mutex_);
  return {loan->now, loan->saved, loan->saved ? loan->save : loan->granted, loan->place.entry()};
}

Future<void> Loans::read(const std::shared_ptr<Loan>& loan, std::uint64_t offset,
                         const Operand& pinned) const {
  // Under the lock, so that no write gets between the place that is read and the reading.
  const std::lock_guard lock(mutex_);
  if (loan->saved && loan->save.ready() && !loan->save.wait().ok()) return loan->save;
  Operand from = loan->now;
  from.offset += offset;
  from.bytes = pinned.bytes;
  return detail::submit(port_->deliveries(), memory::Copy{DType::u8, from, pinned});
}

Future<void> Loans::read_whole(const std::shared_ptr<Loan>& loan,
                               const std::function<Future<void>(const Operand&)>& submit) const {
  const std::lock_guard lock(mutex_);  // as above
  return submit(loan->now);
}

void Loans::rescue(const Operand& written) {
  const std::lock_guard lock(mutex_);
  for (const auto& loan : loans_) {
    const auto& lent = loan->lent;
    if (loan->saved || lent.buffer != written.buffer ||
        lent.offset >= written.offset + written.bytes ||
        written.offset >= lent.offset + lent.bytes) {
      continue;
    }
    loan->saved = true;
    if (loan->place.taken()) {  // the word of the reader's end is on its way
      loan->save = Future<void>(Result<void>());
      port_->transfers().end_read(lent);
      continue;
    }
    loan->place.change();
    if (auto fresh = allocate_(lent.bytes); fresh.ok()) {
      loan->copy = std::move(fresh->lease);
      loan->now = fresh->where;
      loan->save = detail::submit(port_->deliveries(), memory::Copy{DType::u8, lent, fresh->where});
    } else {
      loan->save = Future<void>(Result<void>(fresh.error()));
    }
    port_->transfers().end_read(lent);
  }
}

}  // namespace troupe::rank_process

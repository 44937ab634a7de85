// What a transfer between ranks means for the program's own commands.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "command_port_rig.hpp"
#include "rank/device/memory/loans.hpp"

namespace troupe::rank_process {
namespace {

/// Fills without waiting.
Future<void> try_fill(CommandPort& port, const Operand& destination) {
  return try_submit(port, memory::Fill{DType::f64, destination.bytes / 8, {}, destination});
}

Operand part(Operand range, std::uint64_t offset, std::uint64_t bytes) {
  range.offset += offset;
  range.bytes = bytes;
  return range;
}

bool refused(const Future<void>& future, Errc code) {
  return future.ready() && future.wait().code() == code;
}

/// The names of the commands in the ring, in order.
std::vector<std::string> names(HostEnd& host) {
  std::vector<std::string> list;
  while (host.take()) list.emplace_back(host.command.name());
  return list;
}

TEST(Transfers, CommandsOnAnExpectedRangeWait) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto range = part(a, 16, 16);
  ASSERT_TRUE(rig.port.transfers().begin_write(range).ok());
  EXPECT_TRUE(refused(try_fill(rig.port, part(a, 24, 16)), Errc::would_block));
  EXPECT_TRUE(refused(try_fill(rig.port, a), Errc::would_block));
  EXPECT_FALSE(try_fill(rig.port, part(a, 0, 16)).ready()) << "beside it";
  EXPECT_FALSE(try_fill(rig.port, part(a, 32, 32)).ready()) << "beside it";
  EXPECT_FALSE(try_fill(rig.port, b).ready()) << "another buffer";
  EXPECT_FALSE(rig.port.outcomes().take_error()) << "to wait is no error";

  // What waits also drains the replies: an answer that nobody else takes shows that it waits.
  host.take(3);
  const auto answered = rig.nop();
  host.take(1);
  ASSERT_TRUE(host.answer(host.taken.front(), 4));
  std::atomic<bool> submitted{false};
  std::thread program([&] {
    (void)rig.copy(a, b);  // reads what is expected
    submitted = true;
  });
  while (!answered.ready() && !submitted) std::this_thread::yield();
  EXPECT_FALSE(submitted) << "it does not wait";
  const auto delivered = detail::submit(rig.port.deliveries(), memory::Fence{DType::u8, range});
  EXPECT_FALSE(delivered.ready()) << "the transfer's own commands pass";
  rig.port.transfers().end_write(range);
  program.join();
  EXPECT_EQ(names(host), (std::vector<std::string>{"memory.fence", "memory.copy"}));
}

TEST(Transfers, OneAtATimeIntoARange) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer());
  ASSERT_TRUE(rig.port.transfers().begin_write(part(a, 0, 32)).ok());
  EXPECT_EQ(rig.port.transfers().begin_write(part(a, 16, 32)).code(), Errc::would_block);
  EXPECT_EQ(rig.port.transfers().begin_read(part(a, 16, 32)).code(), Errc::would_block);
  ASSERT_TRUE(rig.port.transfers().begin_write(part(a, 32, 32)).ok());
  ASSERT_TRUE(rig.port.transfers().begin_read(part(a, 64, 0)).ok())
      << "nothing overlaps an empty range";
  rig.port.transfers().end_write(part(a, 0, 32));
  ASSERT_TRUE(rig.port.transfers().begin_read(part(a, 0, 32)).ok());
  ASSERT_TRUE(rig.port.transfers().begin_read(part(a, 0, 32)).ok()) << "many may read";
}

TEST(Transfers, AWriteToALentRangeIsPrecededByItsRescue) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto spare = rig.add_buffer();
  Loans loans(rig.port, [&](std::uint64_t) -> Result<Loans::Fresh> {
    return Loans::Fresh{nullptr, part(rig.operand(spare), 0, 32)};
  });
  const auto loan = loans.begin(part(a, 0, 32));
  ASSERT_TRUE(loan.ok());
  (void)rig.copy(a, b);                       // reads: nobody minds
  (void)try_fill(rig.port, part(a, 32, 32));  // beside it
  EXPECT_FALSE(loans.location(*loan).saved);
  EXPECT_EQ(loans.location(*loan).where.buffer, a.buffer);
  (void)rig.fill(a);
  EXPECT_TRUE(loans.location(*loan).saved);
  EXPECT_EQ(loans.location(*loan).where.buffer, spare);
  (void)rig.fill(a);  // has nothing left to save
  loans.end(*loan);
  (void)rig.fill(a);
  EXPECT_EQ(names(host), (std::vector<std::string>{"memory.copy", "memory.fill", "memory.copy",
                                                   "memory.fill", "memory.fill", "memory.fill"}));
}

/// What lends a range with a board, and a reader's view of that.
struct BoardRig : PortRig {
  BoardRig() {
    auto made = LoanBoard::create().take();
    board = LoanBoard::map(UniqueFd(::dup(made->fd()))).take();
    loans.set_board(std::move(made));
  }
  const std::uint32_t spare = add_buffer();
  Loans loans{port, [this](std::uint64_t) -> Result<Loans::Fresh> {
                return Loans::Fresh{nullptr, operand(spare)};
              }};
  std::unique_ptr<LoanBoard> board;
};

TEST(LoanBoard, AReaderSeesWhetherTheRangeWasWritten) {
  BoardRig rig;
  const auto a = rig.operand(rig.add_buffer());
  const auto loan = rig.loans.begin(part(a, 0, 32));
  ASSERT_TRUE(loan.ok());
  const auto lent = rig.loans.location(*loan).entry;
  (void)try_fill(rig.port, part(a, 32, 32));  // beside it
  EXPECT_EQ(rig.loans.location(*loan).entry.version, lent.version);
  (void)rig.fill(a);
  EXPECT_FALSE(rig.board->take(lent));
  const auto saved = rig.loans.location(*loan);
  EXPECT_EQ(saved.where.buffer, rig.spare);
  (void)rig.fill(a);
  EXPECT_TRUE(rig.board->take(saved.entry)) << "the copy does not change";
  rig.loans.end(*loan);
  EXPECT_FALSE(rig.board->take(saved.entry)) << "the loan has ended";
}

TEST(LoanBoard, WhatHasBeenTakenIsNotSaved) {
  BoardRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer());
  const auto loan = rig.loans.begin(a);
  ASSERT_TRUE(loan.ok());
  ASSERT_TRUE(rig.board->take(rig.loans.location(*loan).entry));
  (void)rig.fill(a);
  rig.loans.end(*loan);
  EXPECT_EQ(names(host), (std::vector<std::string>{"memory.fill"}));
  // Its place goes to the next loan, which nobody has taken.
  const auto next = rig.loans.begin(a);
  ASSERT_TRUE(next.ok());
  (void)rig.fill(a);
  EXPECT_EQ(names(host), (std::vector<std::string>{"memory.fence", "memory.copy", "memory.fill"}));
  rig.loans.end(*next);
}

TEST(LoanBoard, BeyondItsPlacesLoansAreSettledByMessages) {
  BoardRig rig;
  const auto a = rig.operand(rig.add_buffer());
  std::vector<std::shared_ptr<Loan>> loans;
  for (std::uint32_t i = 0; i <= LoanBoard::kPlaces; ++i)
    loans.push_back(rig.loans.begin(a).take());
  const auto last = rig.loans.location(loans.back()).entry;
  EXPECT_EQ(last.place, 0u);
  EXPECT_FALSE(rig.board->take(last));
  EXPECT_FALSE(rig.board->take({LoanBoard::kPlaces + 1, 1})) << "nonsense of another rank";
  EXPECT_TRUE(rig.board->take(rig.loans.location(loans.front()).entry));
  for (const auto& loan : loans) rig.loans.end(loan);
  const auto again = rig.loans.begin(a).take();
  EXPECT_NE(rig.loans.location(again).entry.place, 0u);
  rig.loans.end(again);
}

TEST(Transfers, ALoanWaitsForWhatHasBeenSubmittedBefore) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  Loans loans(rig.port, [&](std::uint64_t) -> Result<Loans::Fresh> {
    return Error{Errc::out_of_memory, 0, "full"};
  });
  (void)rig.fill(a);
  const auto behind = loans.begin(a), beside = loans.begin(b);
  ASSERT_TRUE(behind.ok() && beside.ok());
  EXPECT_FALSE((*behind)->granted.ready());
  EXPECT_TRUE((*beside)->granted.ready()) << "nobody writes that buffer";
  EXPECT_EQ(names(host), (std::vector<std::string>{"memory.fill", "memory.fence"}));
  ASSERT_TRUE(host.answer(1, 2));
  EXPECT_TRUE((*behind)->granted.wait().ok());
  loans.end(*behind);
  const auto after = loans.begin(a);
  ASSERT_TRUE(after.ok());
  EXPECT_TRUE((*after)->granted.ready());
  rig.port.gate().close({Errc::world_reformed, 0, "re-formed"});
  const auto closed = loans.begin(a);
  ASSERT_TRUE(closed.ok());
  EXPECT_TRUE(refused((*closed)->granted, Errc::world_reformed));
}

TEST(Transfers, ARescueThatFindsNoRoomFailsTheLoanAlone) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer());
  Loans loans(rig.port, [&](std::uint64_t) -> Result<Loans::Fresh> {
    return Error{Errc::out_of_memory, 0, "full"};
  });
  const auto loan = loans.begin(a);
  ASSERT_TRUE(loan.ok());
  EXPECT_FALSE(rig.fill(a).ready()) << "the write goes on";
  const auto location = loans.location(*loan);
  ASSERT_TRUE(location.there.ready());
  EXPECT_EQ(location.there.wait().code(), Errc::out_of_memory);
  Operand pinned{.region = kPinnedRegion | 1, .offset = 0, .bytes = 64};
  EXPECT_TRUE(refused(loans.read(*loan, 0, pinned), Errc::out_of_memory));
  EXPECT_FALSE(rig.port.outcomes().take_error()) << "the program has done nothing wrong";
  loans.end(*loan);
}

TEST(Transfers, WhatIsWrittenByATransferIsSavedFirstToo) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer());
  const auto spare = rig.add_buffer();
  Loans loans(rig.port, [&](std::uint64_t) -> Result<Loans::Fresh> {
    return Loans::Fresh{nullptr, rig.operand(spare)};
  });
  const auto loan = loans.begin(a);
  ASSERT_TRUE(loan.ok());
  EXPECT_EQ(rig.port.transfers().begin_write(a).code(), Errc::would_block);
  EXPECT_TRUE(rig.port.transfers().begin_write(a).ok()) << "the rescue has made way";
  EXPECT_TRUE(loans.location(*loan).saved);
  loans.end(*loan);
}

TEST(Transfers, WhatIsAskedForInAnEpochComesNotBehindItsEnd) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto deliver = [&](std::uint32_t epoch) {
    auto deliveries = rig.port.deliveries(epoch);
    return detail::submit(deliveries, memory::Copy{DType::f64, a, b});
  };
  rig.port.gate().set_epoch(Epoch(3));
  const auto in_time = deliver(3);
  EXPECT_FALSE(in_time.ready());
  EXPECT_TRUE(refused(deliver(2), Errc::world_reformed));
  EXPECT_TRUE(refused(deliver(4), Errc::world_reformed));
  rig.port.gate().set_epoch(Epoch(0));  // the world is re-formed
  EXPECT_TRUE(refused(deliver(3), Errc::world_reformed));
  rig.port.gate().set_epoch(Epoch(4));
  EXPECT_TRUE(refused(deliver(3), Errc::world_reformed));
  EXPECT_FALSE(deliver(4).ready());
  EXPECT_FALSE(rig.port.outcomes().take_error()) << "it is the affair of whoever asked";
  // What was submitted in time goes on, ahead of whatever comes later, as any other command.
  EXPECT_EQ(rig.port.hosts().settle_in_place({Errc::world_reformed, 0, "re-formed"}).resubmitted,
            2u);
  EXPECT_FALSE(in_time.ready());
}

TEST(Transfers, AHeldBufferIsNotFreed) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer());
  ASSERT_TRUE(rig.port.buffers().hold(a).ok());
  rig.port.buffers().drop(a.buffer);
  EXPECT_TRUE(rig.port.buffers().collect_freed().empty());
  const Operand named{.region = kTokenRegion,
                      .buffer = a.buffer,
                      .generation = a.generation,
                      .reserved = static_cast<std::uint32_t>(DType::u8),
                      .bytes = 64};
  EXPECT_TRUE(rig.port.buffers().translate(named).ok()) << "its token still names it";
  rig.port.buffers().release(a.buffer);
  EXPECT_EQ(rig.port.buffers().translate(named).code(), Errc::stale);
  EXPECT_EQ(rig.port.buffers().collect_freed().size(), 1u);
  EXPECT_EQ(rig.port.buffers().hold(a).code(), Errc::stale);
  EXPECT_EQ(rig.port.transfers().begin_write(a).code(), Errc::stale);
  EXPECT_EQ(rig.port.transfers().begin_read(a).code(), Errc::stale);
}

TEST(Transfers, ADroppedBufferHasNoToken) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer());
  const Operand named{.region = kTokenRegion,
                      .buffer = a.buffer,
                      .generation = a.generation,
                      .reserved = static_cast<std::uint32_t>(DType::u8),
                      .bytes = 64};
  ASSERT_TRUE(rig.port.buffers().translate(named).ok());
  rig.port.buffers().drop(a.buffer);
  EXPECT_EQ(rig.port.buffers().translate(named).code(), Errc::stale)
      << "although it is not collected yet";
}

TEST(Transfers, LosingConcernsTheContentsThatWereMeant) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer());
  const Error late{Errc::timeout, 0, "no progress"};
  ASSERT_TRUE(rig.port.transfers().begin_write(a).ok());
  rig.port.transfers().lose(a, late, 1);
  EXPECT_FALSE(rig.port.buffers().valid(a.buffer, a.generation));
  rig.port.transfers().lose(a, late, 1);
  EXPECT_EQ(rig.port.buffers().generation(a.buffer), a.generation + 1) << "others by now";
  EXPECT_EQ(rig.port.transfers().spoilt_in(), 0u) << "no fault";
}

// The transfer ends with its epoch, and is done with only when the run has gone back already.
TEST(Transfers, LosingDoesNotConcernWhatWasRestoredSince) {
  PortRig rig;
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const Error ended{Errc::world_reformed, 0, "the epoch has ended"};
  ASSERT_TRUE(rig.port.transfers().begin_write(part(a, 0, 8)).ok());
  ASSERT_TRUE(rig.port.transfers().begin_write(part(b, 0, 8)).ok());
  ASSERT_TRUE(rig.port.buffers().restore(a));
  rig.port.transfers().lose(part(a, 0, 8), ended, 1);
  rig.port.transfers().lose(part(b, 0, 8), ended, 1);
  EXPECT_TRUE(rig.port.buffers().valid(a.buffer, a.generation));
  EXPECT_FALSE(rig.port.buffers().valid(b.buffer, b.generation));
  rig.port.transfers().end_write(part(a, 0, 8));
  ASSERT_TRUE(rig.port.transfers().begin_write(part(a, 0, 8)).ok());
  rig.port.transfers().lose(part(a, 0, 8), ended, 2);
  EXPECT_FALSE(rig.port.buffers().valid(a.buffer, a.generation)) << "a transfer since then";
  EXPECT_EQ(rig.port.transfers().spoilt_in(), 2u);
}

TEST(Transfers, FailuresOfDeliveriesAreQuiet) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer());
  const auto quiet = detail::submit(rig.port.deliveries(), memory::Fence{DType::u8, a});
  host.take(1);
  ASSERT_TRUE(host.answer(1, 1, Error{Errc::library, 3, "no"}));
  EXPECT_EQ(quiet.wait().code(), Errc::library);
  EXPECT_FALSE(rig.port.outcomes().take_error());
  const auto loud = rig.fill(a);
  host.take(1);
  ASSERT_TRUE(host.answer(2, 1, Error{Errc::library, 3, "no"}));
  EXPECT_EQ(loud.wait().code(), Errc::library);
  EXPECT_TRUE(rig.port.outcomes().take_error());
}

/// The end of the program waits for a fence and then reads the errors, so a request must enter its
/// error before the fence passes.
TEST(Transfers, AFenceBehindARequestPassesWhenItsErrorIsKnown) {
  PortRig rig;
  Outcomes::Request request(rig.port.outcomes());
  std::int64_t unread = -1;
  detail::at_once_when_ready(rig.port.outcomes().fence().reached, [&](const Result<void>&) {
    unread = static_cast<std::int64_t>(rig.port.outcomes().ledger().unread().count);
  });
  EXPECT_EQ(unread, -1) << "the request is under way";
  (void)request.end(Error{Errc::stale, 0, "the token's buffer was freed"});
  EXPECT_EQ(unread, 1);
}

}  // namespace
}  // namespace troupe::rank_process

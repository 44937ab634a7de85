// What other processes see of a rank: the shared segment of its flight recorder.
#include "common/running/flight_view.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/ipc/shared_memory.hpp"
#include "common/ipc/whole_file.hpp"
#include "device_host/flight_log.hpp"

namespace troupe::running {
namespace {

using Shares = std::vector<std::pair<std::uint32_t, double>>;

/// A segment as a rank makes it.
ipc::SharedMemory segment(std::uint64_t slots, std::uint64_t version = wire::kFlightVersion) {
  auto made = ipc::SharedMemory::create("unit", wire::flight_bytes(slots, 0)).take();
  auto& header = *reinterpret_cast<wire::FlightHeader*>(made.data());
  header.version = version;
  header.capacity = slots;
  return made;
}

Result<FlightView> view_of(const ipc::SharedMemory& memory) {
  return FlightView::map(UniqueFd(::dup(memory.fd())));
}

TEST(FlightView, SeesWhatADeviceHostHasIssued) {
  const auto memory = segment(4);
  const auto view = view_of(memory).take();
  EXPECT_TRUE(view.commands().empty());
  auto pen = host::FlightLog::open(::dup(memory.fd())).take();
  pen.stamp();
  for (std::uint64_t ticket = 1; ticket <= 5; ++ticket) {
    pen.issued(ticket, static_cast<std::uint32_t>(70 + ticket));
    if (ticket != 5) pen.queued(ticket, 2);
  }
  pen.completed(2, 2);
  const auto commands = view.commands();
  ASSERT_EQ(commands.size(), 4u) << "the slot of the first one has been taken";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    EXPECT_EQ(commands[i].ticket, i + 2);
    EXPECT_EQ(commands[i].opcode, 72 + i);
    EXPECT_EQ(commands[i].queue, i == 3 ? 0u : 3u);
    EXPECT_EQ(commands[i].completed != 0, i < 2);
    EXPECT_NE(commands[i].issued, 0u);
  }
}

TEST(FlightView, SeesTheBoard) {
  const auto memory = segment(0);
  const auto view = view_of(memory).take();
  auto& board = *reinterpret_cast<wire::FlightBoard*>(memory.data() + wire::kFlightBoardOffset);
  board.epoch = 7;
  EXPECT_EQ(view.board().epoch.load(), 7u);
  EXPECT_EQ(view.capacity(), 0u);
  EXPECT_TRUE(view.commands().empty());
}

TEST(FlightView, RefusesWhatIsNone) {
  EXPECT_EQ(view_of(segment(4, wire::kFlightVersion + 1)).code(), Errc::invalid);
  const auto short_one = ipc::SharedMemory::create("unit", 100).take();
  EXPECT_EQ(view_of(short_one).code(), Errc::invalid);
  for (const std::uint64_t capacity : {3ul, 8ul, 1ul << 60, 1ul << 63}) {
    const auto memory = segment(4);
    reinterpret_cast<wire::FlightHeader*>(memory.data())->capacity = capacity;
    EXPECT_EQ(view_of(memory).code(), Errc::invalid) << capacity;
  }
}

/// A process that reads a mapping of one that has become shorter is killed.
TEST(FlightView, RefusesWhatMightBecomeShorter) {
  const auto sound = segment(4);
  EXPECT_NE(::ftruncate(sound.fd(), 0), 0) << "nobody can";
  UniqueFd copy(::memfd_create("unit", MFD_CLOEXEC));
  ASSERT_TRUE(ipc::write_whole(copy.get(), {sound.data(), sound.size()}).ok());
  EXPECT_EQ(FlightView::map(copy).code(), Errc::invalid);
  EXPECT_TRUE(view_of(sound).ok());
}

TEST(FlightView, KeepsTheCapacityThatWasChecked) {
  const auto memory = segment(4);
  const auto view = view_of(memory).take();
  reinterpret_cast<wire::FlightHeader*>(memory.data())->capacity = std::uint64_t{1} << 40;
  EXPECT_EQ(view.capacity(), 4u);
  EXPECT_TRUE(view.commands().empty());
}

TEST(BusyShares, AreTheTimeWithAnyCommandUnderWay) {
  // Ticket, issued, completed, opcode, queue.
  const std::vector<FlightView::Command> commands = {
      {1, 50, 110, 0, 1},                      // has begun before the time that is looked at
      {2, 105, 130, 0, 1},                     // overlaps the one before
      {3, 150, 160, 0, 1}, {4, 40, 90, 0, 2},  // has ended before
      {5, 120, 125, 0, 0},                     // on no queue
      {6, 190, 0, 0, 3},                       // is under way
      {7, 195, 250, 0, 3},                     // found done after the look was begun
  };
  EXPECT_EQ(busy_shares(commands, 100, 200), (Shares{{1, 0.4}, {3, 0.1}}));
  EXPECT_EQ(busy_shares(commands, 200, 200), Shares{});
  EXPECT_EQ(busy_shares({}, 100, 200), Shares{});
}

}  // namespace
}  // namespace troupe::running

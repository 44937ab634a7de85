// What is collected of a flight recorder: each command once, when it is answered; and what passed
// too fast is counted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include <troupe/lib/operations.hpp>

#include "common/trace/part.hpp"
#include "device_host/flight_log.hpp"
#include "rank/device/flight/flight_collector.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

class Collecting : public ::testing::Test {
 protected:
  Collecting() {
    char name[] = "/tmp/troupe-collector-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Collecting() override { fs::remove_all(folder_); }

  void open(std::uint64_t slots, std::uint64_t activities = 0) {
    flight_ = FlightRecorder::create({.records = 8,
                                      .slots = slots,
                                      .activities = activities,
                                      .directory = "none",
                                      .job = "unit"})
                  .take();
    pen_.emplace(host::FlightLog::open(::dup(flight_->segment_fd())).take());
    collector_ = std::make_unique<FlightCollector>(FlightCollector::Options{
        .flight = flight_.get(),
        .submitted = [this] { return newest_; },
        .pending = [this](std::uint64_t ticket) { return open_.contains(ticket); },
        .part = trace::PartWriter::create(file(), {"unit", "here", 0, 1, 0, 0}).take(),
        .every = std::chrono::milliseconds(0)});
  }
  [[nodiscard]] std::string file() const { return folder_ / "part"; }

  void submit(std::uint64_t ticket) {
    static const memory::Nop op{};
    newest_ = ticket;
    open_.insert(ticket);
    flight_->submitted(ticket, {info_of<memory::Nop>, std::as_bytes(std::span(&op, 1))}, 0);
  }
  void complete(std::uint64_t ticket) {
    pen_->stamp();
    pen_->issued(ticket);
    pen_->queued(ticket, 4);
    pen_->completed(ticket, 1);
    open_.erase(ticket);
  }
  struct Read {
    std::vector<trace::Command> commands;
    std::vector<std::string> activities, health;
    trace::Counts counts;
  };
  Read finished() {
    collector_->finish({});
    Read read;
    auto part = trace::PartReader::open(file()).take();
    const auto outcome =
        part.read({.command =
                       [&](const trace::Command& command, const std::string& name) {
                         EXPECT_EQ(name, "memory.nop");
                         read.commands.push_back(command);
                       },
                   .span =
                       [&](const trace::Span& span, std::string_view text) {
                         EXPECT_EQ(span.kind, trace::SpanKind::health);
                         EXPECT_EQ(span.begin, span.end);
                         read.health.emplace_back(text);
                       },
                   .activity = [&](const trace::Activity&,
                                   std::string_view name) { read.activities.emplace_back(name); }});
    EXPECT_TRUE(outcome.ok());
    read.counts = part.counts();
    return read;
  }

  fs::path folder_;
  std::uint64_t newest_ = 0;
  std::set<std::uint64_t> open_;
  std::unique_ptr<FlightRecorder> flight_;
  std::optional<host::FlightLog> pen_;
  std::unique_ptr<FlightCollector> collector_;
};

TEST_F(Collecting, HasEachCommandOnceWhenItIsAnswered) {
  open(64);
  for (std::uint64_t ticket = 1; ticket <= 10; ++ticket) submit(ticket);
  complete(2), complete(5);
  collector_->collect();
  EXPECT_EQ(collector_->totals().libraries.at("memory").operations, 2u);
  collector_->collect();
  EXPECT_EQ(collector_->totals().libraries.at("memory").operations, 2u);
  for (const std::uint64_t ticket : {1u, 3u, 4u, 6u, 7u, 8u, 9u}) complete(ticket);
  const auto read = finished();
  std::set<std::uint64_t> tickets;
  for (const auto& command : read.commands) {
    EXPECT_TRUE(tickets.insert(command.ticket).second);
    EXPECT_EQ(command.completed != 0, command.ticket != 10);
    EXPECT_EQ(command.queue, command.ticket == 10 ? 0u : 5u);
  }
  EXPECT_EQ(tickets.size(), 10u);
  EXPECT_EQ(read.counts, (trace::Counts{10, 0, 0}));
}

/// What was collected is in the file, whatever becomes of the rank next.
TEST_F(Collecting, LeavesNothingInItsMemory) {
  open(64);
  submit(1);
  collector_->collect();
  complete(1);
  collector_->collect();
  auto part = trace::PartReader::open(file()).take();
  int commands = 0;
  ASSERT_TRUE(part.read({.command = [&](const trace::Command&, const std::string&) { ++commands; },
                         .span = {},
                         .activity = {}})
                  .ok());
  EXPECT_EQ(commands, 1);
}

TEST_F(Collecting, LeavesOutNumbersThatWereNotUsed) {
  open(64);
  for (const std::uint64_t ticket : {1u, 2u, 9u, 40u}) submit(ticket), complete(ticket);
  const auto read = finished();
  EXPECT_EQ(read.commands.size(), 4u);
  EXPECT_EQ(read.counts, (trace::Counts{4, 0, 0}));
}

TEST_F(Collecting, CountsWhatWasOverwritten) {
  open(16);
  for (std::uint64_t ticket = 1; ticket <= 40; ++ticket) submit(ticket), complete(ticket);
  collector_->collect();
  for (std::uint64_t ticket = 41; ticket <= 50; ++ticket) submit(ticket), complete(ticket);
  const auto read = finished();
  EXPECT_EQ(read.commands.size(), 26u);
  EXPECT_EQ(read.counts, (trace::Counts{50, 24, 0}));
  EXPECT_EQ(collector_->totals().lost, 24u);
}

TEST_F(Collecting, CountsErrorsByClass) {
  open(64);
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) submit(ticket);
  flight_->failed(1, Errc::device_lost), flight_->failed(3, Errc::device_lost);
  open_.clear();
  EXPECT_EQ(finished().commands.size(), 3u);
  EXPECT_EQ(collector_->totals().errors.at("device_lost"), 2u);
}

TEST_F(Collecting, HasWhatTheGpuDidAndCountsTheRest) {
  open(64, 8);
  ASSERT_TRUE(pen_->traces_gpu());
  for (std::uint64_t i = 1; i <= 11; ++i) pen_->activity(i, 10, 20, 7, std::string(200, 'k'));
  collector_->collect();
  pen_->activity(12, 10, 20, 7, "short");
  const auto read = finished();
  ASSERT_EQ(read.activities.size(), 9u);
  EXPECT_EQ(read.activities.front(), std::string(87, 'k'));
  EXPECT_EQ(read.activities.back(), "short");
  EXPECT_EQ(read.counts, (trace::Counts{0, 0, 3}));
}

TEST_F(Collecting, HasWhatTheGpuSaidOfItsHealthOnce) {
  open(64);
  flight_->health_said({0, HealthKind::slowdown, "slowed down", false});
  collector_->collect();
  flight_->health_said({0, HealthKind::bus, "the GPU has fallen off the bus", true});
  collector_->collect();
  EXPECT_EQ(finished().health,
            (std::vector<std::string>{"slowed down", "the GPU has fallen off the bus (failing)"}));
}

TEST_F(Collecting, GoesOnWithoutTheWriterThatDied) {
  open(64, 8);
  // A writer takes a slot and dies.
  auto segment =
      ipc::SharedMemory::map(UniqueFd(::dup(flight_->segment_fd())), wire::flight_bytes(64, 8))
          .take();
  auto& ring = *reinterpret_cast<wire::ActivityRing*>(segment.data() + wire::activities_offset(64));
  ring.claimed.fetch_add(1);
  pen_->activity(1, 10, 20, 7, "after");
  for (int look = 0; look < 200; ++look) collector_->collect();
  const auto read = finished();
  ASSERT_EQ(read.activities.size(), 1u);
  EXPECT_EQ(read.activities.front(), "after");
  EXPECT_EQ(read.counts.lost_activities, 1u);
}

TEST_F(Collecting, ADumpHasNoMoreThanItsRecords) {
  open(64);
  for (std::uint64_t ticket = 1; ticket <= 30; ++ticket) submit(ticket);
  const auto records = flight_->records();
  ASSERT_EQ(records.size(), 8u);
  EXPECT_EQ(records.front().ticket, 23u);
  EXPECT_EQ(records.back().ticket, 30u);
}

}  // namespace
}  // namespace troupe::rank_process

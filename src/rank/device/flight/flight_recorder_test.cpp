// The flight recorder by itself: what it keeps of the commands that pass, beside a device host's
// part.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include <troupe/lib/operations.hpp>

#include "common/wire/record.hpp"
#include "device_host/flight_log.hpp"
#include "rank/device/flight/flight_recorder.hpp"

namespace troupe::rank_process {
namespace {

std::unique_ptr<FlightRecorder> recorder(std::uint64_t records, const std::string& directory) {
  return FlightRecorder::create({.records = records, .directory = directory, .job = "unit"}).take();
}

/// A device host's pen on the recorder's segment.
host::FlightLog pen(const FlightRecorder& recorder) {
  return host::FlightLog::open(::dup(recorder.segment_fd())).take();
}

detail::CommandView nop() {
  static const memory::Nop op{};
  return {info_of<memory::Nop>, std::as_bytes(std::span(&op, 1))};
}

TEST(FlightRecorder, KeepsWhatAnOperationIs) {
  const auto flight = recorder(8, "none");
  const Operand part{1, 1, 1, 0, 0, 512};
  const collective::Reduce reduce{DType::f64, ReduceOp::sum, 2, 64, part, part};
  const detail::CommandView view(info_of<collective::Reduce>, std::as_bytes(std::span(&reduce, 1)),
                                 {}, 3);
  const auto before = SteadyClock::time();
  flight->submitted(1, view, 17);
  const auto after = SteadyClock::time();
  const auto records = flight->records();
  ASSERT_EQ(records.size(), 1u);
  const auto& record = records[0];
  EXPECT_EQ(operation_name(record.opcode), "collective.reduce");
  EXPECT_EQ(record.epoch, 3u);
  EXPECT_EQ(record.count, 64u);
  EXPECT_EQ(record.bytes, 1024u);
  EXPECT_EQ(record.peer, 2);
  EXPECT_EQ(record.collective, 17u);
  EXPECT_EQ(record.group, 0u);
  const TimePoint tolerance = std::chrono::milliseconds(5);  // the counter's rate is just learnt
  EXPECT_GE(record.submitted, before - tolerance);
  EXPECT_LE(record.submitted, after + tolerance);
  EXPECT_EQ(record.issued, TimePoint(0));
  EXPECT_EQ(record.outcome, Errc::ok);
}

TEST(FlightRecorder, NamesTheGroupOfACollective) {
  const auto flight = recorder(8, "none");
  const Operand part{1, 1, 1, 0, 0, 512};
  const collective::AllReduce reduce{DType::f64, ReduceOp::sum, 0, 64, part, part};
  detail::CommandView view(info_of<collective::AllReduce>, std::as_bytes(std::span(&reduce, 1)), {},
                           3);
  flight->submitted(1, view, 9);
  view.scope.group = 5;
  flight->submitted(2, view, 2);
  flight->submitted(3, view, 0);
  const auto records = flight->records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].group, 0u);
  EXPECT_EQ(records[1].group, 5u);
  EXPECT_EQ(records[1].collective, 2u);
  EXPECT_EQ(flight->describe(1), "collective.all_reduce of 64 elements (collective 9 of epoch 3)");
  EXPECT_EQ(flight->describe(2),
            "collective.all_reduce of 64 elements (collective 2 of group 5 in epoch 3)");
  EXPECT_EQ(flight->describe(3), "collective.all_reduce of 64 elements (in group 5)");
}

TEST(FlightRecorder, SaysWhichWayMessagesGo) {
  const auto flight = recorder(8, "none");
  const Operand part{1, 1, 1, 0, 0, 512};
  const collective::Exchange exchange{DType::f64};
  auto described = [&,
                    ticket = std::uint64_t{0}](const std::vector<TailOperand>& messages) mutable {
    const detail::CommandView view(info_of<collective::Exchange>,
                                   std::as_bytes(std::span(&exchange, 1)), messages, 3);
    flight->submitted(++ticket, view, 0);
    return flight->describe(ticket);
  };
  EXPECT_EQ(described({collective::sent(part, 1)}),
            "collective.exchange, which only sends, to rank 1");
  EXPECT_EQ(described({collective::received(part, 2)}),
            "collective.exchange, which only receives, from rank 2");
  EXPECT_EQ(described({collective::sent(part, 1), collective::sent(part, 2)}),
            "collective.exchange, which only sends, to several ranks");
  EXPECT_EQ(described({collective::sent(part, 1), collective::received(part, 1)}),
            "collective.exchange, with rank 1");
}

TEST(FlightRecorder, ShowsWhatItIsOfToOtherProcesses) {
  const std::string job(100, 'j');
  const auto flight =
      FlightRecorder::create({.records = 8, .job = job, .rank = 3, .size = 5}).take();
  const auto& board = flight->board();
  EXPECT_EQ(board.pid.load(), ::getpid());
  EXPECT_EQ(board.rank, 3);
  EXPECT_EQ(board.size, 5);
  EXPECT_EQ(board.job, job.substr(0, sizeof board.job - 1));
  EXPECT_LE(TimePoint(board.began_ns), SteadyClock::time());
  EXPECT_EQ(board.described.load(), 0);
  flight->show_device("a device");
  EXPECT_EQ(board.described.load(), 1);
  EXPECT_STREQ(board.device, "a device");
}

TEST(FlightRecorder, TheHostsPartOutlivesTheHost) {
  const auto flight = recorder(8, "none");
  for (std::uint64_t ticket = 1; ticket <= 4; ++ticket) flight->submitted(ticket, nop(), 0);
  {
    auto first = pen(*flight);
    first.stamp();
    for (std::uint64_t ticket = 1; ticket <= 3; ++ticket) first.issued(ticket);
    first.completed(1, 2);
  }
  flight->failed(3, Errc::device_lost);
  flight->repeated(4);
  {
    auto second = pen(*flight);
    second.stamp();
    second.issued(4);
  }
  const auto records = flight->records();
  ASSERT_EQ(records.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NE(records[i].issued, TimePoint(0)) << i;
    EXPECT_EQ(records[i].completed != TimePoint(0), i < 2) << i;
    EXPECT_EQ(records[i].outcome, i == 2 ? Errc::device_lost : Errc::ok) << i;
    EXPECT_EQ(records[i].repeated, i == 3) << i;
  }
}

TEST(FlightRecorder, TheOldestGo) {
  const auto flight = recorder(5, "none");  // becomes 8
  auto host = pen(*flight);
  for (std::uint64_t ticket = 1; ticket <= 20; ++ticket) {
    flight->submitted(ticket, nop(), 0);
    host.stamp();
    if (ticket <= 15) host.issued(ticket);
  }
  host.completed(1, 14);
  const auto records = flight->records();
  ASSERT_EQ(records.size(), 8u);
  for (const auto& record : records) {
    EXPECT_EQ(record.ticket, 13 + static_cast<std::uint64_t>(&record - records.data()));
    EXPECT_EQ(record.issued != TimePoint(0), record.ticket <= 15) << record.ticket;
    EXPECT_EQ(record.completed != TimePoint(0), record.ticket <= 14) << record.ticket;
  }
}

TEST(FlightRecorder, ADumpHasWhatTheGpuSaidOfItsHealth) {
  char name[] = "/tmp/troupe-flight-test-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  {
    const auto flight = recorder(8, folder);
    flight->health_said({0, HealthKind::memory, "an error of memory", false});
    flight->health_said({0, HealthKind::bus, "the GPU has fallen off the bus", true});
    ASSERT_EQ(flight->health().size(), 2u);
    ASSERT_EQ(flight->health(1).size(), 1u);
    EXPECT_TRUE(flight->health(3).empty());
    flight->dump("a test");
  }
  std::ifstream file(folder + "/troupe-flight.unit.0.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json.at("health").size(), 2u);
  EXPECT_EQ(json.at("health").at(0).at("kind"), "memory");
  EXPECT_EQ(json.at("health").at(1).at("text"), "the GPU has fallen off the bus");
  EXPECT_EQ(json.at("health").at(1).at("failing"), true);
  EXPECT_LE(json.at("health").at(0).at("time_ns").get<std::int64_t>(),
            json.at("time_ns").get<std::int64_t>());
}

TEST(FlightRecorder, OffIsOff) {
  const auto flight = recorder(0, "none");
  auto host = pen(*flight);
  flight->submitted(1, nop(), 0);
  flight->failed(1, Errc::library);
  host.issued(1);
  host.completed(1, 1);
  EXPECT_TRUE(flight->records().empty());
}

TEST(FlightRecorder, ADumpWithoutAFolderIsAWarning) {
  const std::string folder = "/dev/null/is/no/folder";
  testing::internal::CaptureStderr();
  {
    const auto flight = recorder(8, folder);
    flight->submitted(1, nop(), 0);
    flight->dump("test");
  }  // whatever was asked for is written before the end
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot write " + folder + "/troupe-flight.unit.0.json"), std::string::npos)
      << said;
}

TEST(FlightRecorder, ReadersAndWritersMeet) {
  const auto flight = recorder(16, "none");
  std::atomic<bool> done{false};
  std::thread writer([&] {
    auto host = pen(*flight);
    for (std::uint64_t ticket = 1; ticket <= 200'000; ++ticket) {
      collective::Broadcast op;
      op.count = ticket;
      detail::CommandView view(info_of<collective::Broadcast>, std::as_bytes(std::span(&op, 1)));
      view.scope.epoch = static_cast<std::uint32_t>(ticket);
      flight->submitted(ticket, view, static_cast<std::uint32_t>(ticket));
      host.stamp();
      host.issued(ticket);
    }
    done = true;
  });
  while (!done) {
    for (const auto& record : flight->records()) {
      ASSERT_EQ(record.count, record.ticket) << "a record of two operations";
      ASSERT_EQ(record.epoch, record.ticket);
      ASSERT_EQ(record.collective, record.ticket);
    }
  }
  writer.join();
}

}  // namespace
}  // namespace troupe::rank_process

#include <gtest/gtest.h>

#include <cstring>

#include "device_rig.hpp"
#include "rank/world/token_streams.hpp"

// What transfers between ranks need of a device, without the ranks: ranges that are lent, memory of
// another rank, pieces of a stream.

namespace troupe::test {
namespace {

/// Copies a range as a loan has it to the host, in pieces; `between` runs after each.
std::vector<double> read_loan(DeviceRig& rig, const std::shared_ptr<rank::Loan>& loan,
                              std::int64_t length, const std::function<void(int)>& between) {
  constexpr std::int64_t kPiece = 10'000;
  std::vector<double> all;
  int pieces = 0;
  for (std::int64_t at = 0; at < length; at += kPiece) {
    const auto count = std::min(kPiece, length - at);
    const auto pinned = rig.device().pinned<double>(static_cast<std::size_t>(count));
    const auto read =
        rig.core().loans().read(loan, static_cast<std::uint64_t>(at) * 8, pinned.operand());
    between(pieces++);
    read.get();
    all.insert(all.end(), pinned.span().begin(), pinned.span().end());
  }
  return all;
}

TEST(Loans, AreReadAsTheyWereWhileTheProgramGoesOn) {
  DeviceRig rig;
  constexpr std::int64_t kLength = 100'000;
  const auto data = rig.device().alloc<double>(kLength);
  for (const int write_at : {-1, 0, 3, 9}) {
    rig.device().fill(data, 1.0);
    const auto loan = rig.core().loans().begin(data.operand()).take();
    if (write_at < 0) rig.device().fill(data, 2.0);
    const auto seen = read_loan(rig, loan, kLength, [&](int piece) {
      if (piece == write_at) rig.device().fill(data, 2.0);
    });
    EXPECT_EQ(seen, std::vector<double>(kLength, 1.0)) << "written at piece " << write_at;
    EXPECT_EQ(rig.device().download(data), std::vector<double>(kLength, 2.0));
    rig.core().loans().end(loan);
  }
  EXPECT_TRUE(rig.device().take_error().ok());
}

TEST(Loans, OutliveADeviceHostUnlessTheirCopyWasBeingMade) {
  DeviceRig rig({"--restart-budget", "100"});
  constexpr std::int64_t kLength = 50'000;
  const auto data = rig.device().alloc<double>(kLength);
  rig.device().fill(data, 1.0).get();
  const auto loan = rig.core().loans().begin(data.operand()).take();
  loan->granted().get();
  const auto old = active_host();
  ASSERT_TRUE(kill_active());
  ASSERT_TRUE(replaced(old));
  const auto seen = read_loan(rig, loan, kLength, [](int) {});
  EXPECT_EQ(seen, std::vector<double>(kLength, 1.0));
  rig.core().loans().end(loan);
}

/// The slab that a buffer lies in, for another rank.
rank::device_message::SharedSlab share(DeviceRig& rig, const Operand& range) {
  auto promise = std::make_shared<Promise<rank::device_message::SharedSlab>>();
  const auto shared = promise->future();
  rig.core().tell(rank::device_message::ShareSlab{range.region, promise});
  return shared.get();
}

TEST(ForeignMemory, IsMappedReadAndMappedAgainIntoTheNextHost) {
  DeviceRig owner;
  DeviceRig reader({"--restart-budget", "100"});
  constexpr std::int64_t kLength = 100'000;
  const auto source = owner.device().alloc<double>(kLength);
  owner.device().fill(source, 3.0).get();
  const auto slab = share(owner, source.operand());
  EXPECT_GE(slab.bytes, source.operand().offset + source.bytes());
  auto destination = reader.device().alloc<double>(kLength);
  const auto region = kForeignRegion | 5;
  const Operand from{.region = region, .offset = source.operand().offset, .bytes = source.bytes()};
  const auto fetch = [&] {
    return detail::submit(reader.core().port().deliveries(),
                          memory::Copy{DType::u8, from, destination.operand()});
  };
  // Not mapped: answered, and the device host lives.
  const auto host = active_host();
  EXPECT_EQ(fetch().wait().code(), Errc::peer_lost);
  EXPECT_EQ(active_host(), host);

  auto mapped = std::make_shared<Promise<void>>();
  const auto there = mapped->future();
  reader.core().tell(
      rank::device_message::MapForeign{region, slab.fd, slab.bytes, std::move(mapped)});
  there.get();
  fetch().get();
  EXPECT_EQ(reader.device().download(destination), std::vector<double>(kLength, 3.0));

  // Written by its owner, read by the reader's next device host.
  owner.device().fill(source, 4.0).get();
  reader.device().inject(memory::FaultKind::kill);
  reader.device().nop().wait();
  fetch().get();
  EXPECT_EQ(reader.device().download(destination), std::vector<double>(kLength, 4.0));

  // Beyond its end, and dropped.
  Operand beyond = from;
  beyond.offset = slab.bytes - from.bytes + 8;
  EXPECT_EQ(detail::submit(reader.core().port().deliveries(),
                           memory::Copy{DType::u8, beyond, destination.operand()})
                .wait()
                .code(),
            Errc::peer_lost);
  reader.core().tell(rank::device_message::DropRegion{region});
  EXPECT_TRUE(eventually([&] {
    if (!destination.valid()) destination.renew();  // the kill may have struck late
    return fetch().wait().code() == Errc::peer_lost;
  }));
  EXPECT_TRUE(reader.device().take_error().ok());
}

TEST(ForeignMemory, SerialsAreNeverUsedAgain) {
  DeviceRig rig({"--slab-size", "2MiB"});
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto buffer = rig.device().alloc<double>(1 << 20);  // a slab of its own
    const auto slab = share(rig, buffer.operand());
    EXPECT_GT(slab.serial, last);
    last = slab.serial;
  }
  auto promise = std::make_shared<Promise<rank::device_message::SharedSlab>>();
  const auto none = promise->future();
  rig.core().tell(rank::device_message::ShareSlab{12345, promise});
  EXPECT_EQ(none.wait().code(), Errc::stale);
}

TEST(Streams, TakeThePiecesThatWereAskedForAndNoOthers) {
  using namespace rank;
  DeviceRig rig;
  constexpr std::uint64_t kTotal = 3 * kStreamPiece + 1000;
  InStreams streams;
  const auto stream =
      std::make_shared<InStream>(StreamSlots::make(rig.core(), kTotal).take(), kTotal);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> arrived;
  ASSERT_TRUE(streams.add(4, stream, [&](std::uint32_t slot, std::uint64_t bytes) {
    arrived.emplace_back(slot, bytes);
  }));
  const auto number = stream->number;
  EXPECT_EQ(streams.place(4, number + 1, kStreamPiece), nullptr) << "no such stream";
  EXPECT_EQ(streams.place(3, number, kStreamPiece), nullptr) << "of another rank";
  EXPECT_EQ(streams.place(4, number, kStreamPiece - 1), nullptr) << "of another size";
  for (int i = 0; i < 3; ++i) {
    auto* const where = streams.place(4, number, kStreamPiece);
    ASSERT_NE(where, nullptr);
    std::memset(where, i, kStreamPiece);
    streams.arrived(4, number, where, kStreamPiece);
  }
  EXPECT_EQ(streams.place(4, number, kStreamPiece), nullptr) << "the last piece is shorter";
  auto* const last = streams.place(4, number, 1000);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(streams.place(4, number, 0), nullptr);
  // Given up while a piece is being received: it lands where it was to land, and is forgotten.
  streams.remove(number);
  std::memset(last, 9, 1000);
  streams.arrived(4, number, last, 1000);
  EXPECT_EQ(streams.place(4, number, 1), nullptr);
  EXPECT_EQ(arrived.size(), 3u);
}

TEST(Streams, HaveNoMorePiecesUnderWayThanSlots) {
  using namespace rank;
  DeviceRig rig;
  constexpr std::uint64_t kTotal = 100 * kStreamPiece;
  InStream stream(StreamSlots::make(rig.core(), kTotal).take(), kTotal);
  std::byte* where = nullptr;
  for (std::uint32_t i = 0; i < kStreamPieces; ++i) {
    where = stream.place(kStreamPiece);
    ASSERT_NE(where, nullptr);
  }
  EXPECT_EQ(stream.place(kStreamPiece), nullptr);
  stream.release(stream.slot_of(where));
  EXPECT_EQ(stream.place(kStreamPiece), where);
}

}  // namespace
}  // namespace troupe::test

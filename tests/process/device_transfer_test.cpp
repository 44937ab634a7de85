#include <gtest/gtest.h>

#include <cstring>

#include "device_rig.hpp"
#include "rank/token/token_streams.hpp"

// What transfers between ranks need of a device, without the ranks: ranges that are lent, memory of
// another rank, pieces of a stream.

namespace troupe::test {
namespace {

/// Copies a range as a loan has it to the host, in pieces; `between` runs after each.
std::vector<double> read_loan(DeviceRig& rig, const std::shared_ptr<rank_process::Loan>& loan,
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
  loan->granted.get();
  const auto old = active_host();
  ASSERT_TRUE(kill_active());
  ASSERT_TRUE(replaced(old));
  const auto seen = read_loan(rig, loan, kLength, [](int) {});
  EXPECT_EQ(seen, std::vector<double>(kLength, 1.0));
  rig.core().loans().end(loan);
}

/// The slab that a buffer lies in, for another rank.
rank_process::device_message::SharedSlab share(DeviceRig& rig, const Operand& range) {
  auto promise = std::make_shared<Promise<rank_process::device_message::SharedSlab>>();
  const auto shared = promise->future();
  rig.core().tell(rank_process::device_message::ShareSlab{range.region, promise});
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
      rank_process::device_message::MapForeign{region, slab.fd, slab.bytes, std::move(mapped)});
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

  // Nobody writes another rank's memory: the device host takes such a command for a corrupt one.
  EXPECT_EQ(
      detail::submit(reader.core().port().deliveries(), memory::Fill{DType::f64, kLength, {}, from})
          .wait()
          .code(),
      Errc::device_lost);
  EXPECT_EQ(owner.device().download(source), std::vector<double>(kLength, 4.0));
  reader.core().tell(rank_process::device_message::DropRegion{region});
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
  auto promise = std::make_shared<Promise<rank_process::device_message::SharedSlab>>();
  const auto none = promise->future();
  rig.core().tell(rank_process::device_message::ShareSlab{12345, promise});
  EXPECT_EQ(none.wait().code(), Errc::stale);
}

constexpr rank_process::TransferKey kKey{.requester = 1, .number = 77};

/// A message as the source sends it, put where the destination wants it; false: it wants none.
bool deliver(rank_process::InStreams& streams, const rank_process::InStream& stream,
             const rank_process::PieceLabel& label, std::byte content) {
  const auto bytes = label.bytes + sizeof label;
  auto* const where = streams.place(4, stream.number, bytes);
  if (where == nullptr) return false;
  std::memset(where, static_cast<int>(content), label.bytes);
  EXPECT_EQ(stream.slots().label(stream.slots().slot_of(where), label), bytes);
  streams.arrived(4, stream.number, where, bytes);
  return true;
}

/// A stream of three pieces and a shorter one, and what has arrived on it.
struct Inbound {
  explicit Inbound(DeviceRig& rig)
      : stream(std::make_shared<rank_process::InStream>(
            rank_process::StreamSlots::make(rig.core(), kTotal).take(), kKey, kTotal)) {
    EXPECT_TRUE(streams.add(4, stream, [this](std::uint32_t slot, std::uint64_t bytes) {
      arrived.emplace_back(slot, bytes);
    }));
  }
  bool piece(std::uint64_t offset, std::uint64_t bytes, std::byte content = {},
             rank_process::TransferKey key = kKey) {
    return deliver(streams, *stream, {key, offset, bytes}, content);
  }
  /// What the newest message is taken for.
  Result<rank_process::PieceLabel> accept() {
    return stream->accept(arrived.back().first, arrived.back().second);
  }

  static constexpr std::uint64_t kPiece = rank_process::kStreamPiece;
  static constexpr std::uint64_t kTotal = 3 * kPiece + 1000;
  rank_process::InStreams streams;
  std::shared_ptr<rank_process::InStream> stream;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> arrived;
};

TEST(Streams, PiecesAreWhatTheySayInWhateverOrderTheyCome) {
  DeviceRig rig;
  Inbound in(rig);
  std::vector<std::byte> whole(Inbound::kTotal);
  for (const std::uint64_t piece : {3, 1, 0, 2}) {
    const auto offset = piece * Inbound::kPiece;
    const auto bytes = std::min(Inbound::kPiece, Inbound::kTotal - offset);
    ASSERT_TRUE(in.piece(offset, bytes, std::byte(10 + piece)));
    const auto label = in.accept();
    ASSERT_TRUE(label.ok()) << label.error().to_string();
    ASSERT_EQ(label->offset, offset);
    ASSERT_EQ(label->bytes, bytes);
    std::memcpy(whole.data() + offset, in.stream->slots().data(in.arrived.back().first), bytes);
  }
  for (std::size_t i = 0; i < whole.size(); ++i)
    ASSERT_EQ(whole[i], std::byte(10 + i / Inbound::kPiece)) << i;
}

TEST(Streams, TakeEveryByteOnceAndNoOthers) {
  DeviceRig rig;
  Inbound in(rig);
  const auto number = in.stream->number;
  const auto full = Inbound::kPiece + sizeof(rank_process::PieceLabel);
  EXPECT_EQ(in.streams.place(4, number + 1, full), nullptr) << "no such stream";
  EXPECT_EQ(in.streams.place(3, number, full), nullptr) << "of another rank";
  EXPECT_EQ(in.streams.place(4, number, full - 1), nullptr) << "of another size";
  EXPECT_EQ(in.streams.place(4, number, 1), nullptr) << "without a label";
  const auto refused = [&](std::uint64_t offset, std::uint64_t bytes,
                           rank_process::TransferKey key = kKey) {
    EXPECT_TRUE(in.piece(offset, bytes, {}, key));
    EXPECT_EQ(in.accept().code(), Errc::invalid) << offset;
    in.stream->release(in.arrived.back().first);
  };
  auto other = kKey;
  other.number += 1;
  refused(0, Inbound::kPiece, other);  // late, of a transfer that had the number before
  refused(1, Inbound::kPiece);
  refused(Inbound::kTotal, 1000);
  refused(3 * Inbound::kPiece, Inbound::kPiece);
  refused(0, 1000);
  refused(UINT64_MAX / Inbound::kPiece * Inbound::kPiece, Inbound::kPiece);
  ASSERT_TRUE(in.piece(Inbound::kPiece, Inbound::kPiece));
  EXPECT_TRUE(in.accept().ok());
  refused(Inbound::kPiece, Inbound::kPiece);  // twice
}

TEST(Streams, APieceOfAStreamThatIsGivenUpIsForgotten) {
  DeviceRig rig;
  Inbound in(rig);
  const auto bytes = 1000 + sizeof(rank_process::PieceLabel);
  auto* const where = in.streams.place(4, in.stream->number, bytes);
  ASSERT_NE(where, nullptr);
  in.streams.remove(in.stream->number);  // it lands where it was to land
  std::memset(where, 9, bytes);
  in.streams.arrived(4, in.stream->number, where, bytes);
  EXPECT_EQ(in.streams.place(4, in.stream->number, bytes), nullptr);
  EXPECT_TRUE(in.arrived.empty());
}

TEST(Streams, HaveNoMorePiecesUnderWayThanSlots) {
  DeviceRig rig;
  Inbound in(rig);
  const auto bytes = Inbound::kPiece + sizeof(rank_process::PieceLabel);
  std::byte* where = nullptr;
  for (std::uint32_t i = 0; i < rank_process::kStreamPieces; ++i) {
    where = in.stream->place(bytes);
    ASSERT_NE(where, nullptr);
  }
  EXPECT_EQ(in.stream->place(bytes), nullptr);
  in.stream->release(in.stream->slots().slot_of(where));
  EXPECT_EQ(in.stream->place(bytes), where);
}

}  // namespace
}  // namespace troupe::test

#include <troupe/lib/channel.hpp>

#include <cstring>
#include <numeric>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

template <class Op>
Future<void> submit(const Op& op, std::span<const std::byte> data = {}) {
  return detail::submit(device().submitter(), op, Parts(std::span<const TailOperand>(), data));
}

/// Both ends of a channel, in one device host.
class Ends {
 public:
  explicit Ends(std::uint64_t number) : sends(number), receives(number + 1) {}

  Result<void> invite() {
    const auto invited = submit(channel::Invite{DType::u8, sends, cell_.operand()}).wait();
    if (!invited.ok()) return invited;
    std::memcpy(&invitation_, cell_.data(), sizeof invitation_);
    return {};
  }
  Future<void> connect() { return submit(channel::Connect{DType::u8, sends}); }
  Future<void> join() {
    return submit(channel::Join{DType::u8, receives},
                  std::span(invitation_.bytes).first(invitation_.length));
  }
  Future<void> send(const GpuRef<std::int64_t>& from) {
    return submit(channel::Send{DType::u8, sends, from.operand()});
  }
  Future<void> receive(const GpuRef<std::int64_t>& to) {
    return submit(channel::Receive{DType::u8, receives, to.operand()});
  }
  void drop() {
    submit(channel::Drop{DType::u8, sends}).get();
    submit(channel::Drop{DType::u8, receives}).get();
  }

  const std::uint64_t sends, receives;

 private:
  PinnedBuffer<std::uint8_t> cell_ = device().pinned<std::uint8_t>(sizeof(channel::Invitation));
  channel::Invitation invitation_;
};

std::vector<std::int64_t> numbers(std::int64_t first, std::size_t count) {
  std::vector<std::int64_t> list(count);
  std::iota(list.begin(), list.end(), first);
  return list;
}

/// NCCL takes no two ranks on one GPU: there the tests of several ranks do this.
bool connects() {
  return device().info().engine != "cuda";
}

TEST(Channels, BringWhatIsSentInTheOrderOfTheReceives) {
  if (!connects()) GTEST_SKIP() << "both ends would be on one GPU";
  Ends ends(101);
  ASSERT_TRUE(ends.invite().ok());
  const auto connected = ends.connect(), joined = ends.join();
  connected.get(), joined.get();
  for (const std::size_t length : {1u, 1000u, 1'000'003u}) {
    const auto a = put(numbers(5, length)), b = put(numbers(7, length));
    const auto to_a = device().alloc<std::int64_t>(static_cast<std::int64_t>(length)),
               to_b = device().alloc<std::int64_t>(static_cast<std::int64_t>(length));
    const auto received = ends.receive(to_a);
    ends.send(a).get(), received.get();
    const auto sent = ends.send(b);  // the send may come first
    ends.receive(to_b).get(), sent.get();
    EXPECT_EQ(device().download(to_a), numbers(5, length));
    EXPECT_EQ(device().download(to_b), numbers(7, length));
  }
  ends.drop();
}

TEST(Channels, HoldUpNeitherEachOtherNorOtherCommands) {
  if (!connects()) GTEST_SKIP() << "both ends would be on one GPU";
  Ends one(111), other(121);
  ASSERT_TRUE(one.invite().ok());
  ASSERT_TRUE(other.invite().ok());
  const auto connected = one.connect();  // for which nobody comes yet
  const auto connected_too = other.connect(), joined = other.join();
  connected_too.get(), joined.get();
  const auto a = put(numbers(1, 100)), b = put(numbers(0, 100)), c = put(numbers(0, 100));
  one.join().get(), connected.get();
  const auto received = one.receive(b), received_too = other.receive(c);
  other.send(a).get(), received_too.get();
  EXPECT_EQ(device().download(c), numbers(1, 100));
  EXPECT_FALSE(received.ready());
  one.send(c).get(), received.get();
  EXPECT_EQ(device().download(b), numbers(1, 100));
  one.drop(), other.drop();
}

TEST(Channels, EndWhatWaitsWhenTheyAreDropped) {
  Ends ends(131);
  ASSERT_TRUE(ends.invite().ok());
  const auto connected = ends.connect();
  submit(channel::Drop{DType::u8, ends.sends}).get();
  EXPECT_EQ(connected.wait().code(), Errc::world_reformed);
  EXPECT_EQ(ends.send(put(numbers(0, 4))).wait().code(), Errc::world_reformed);
  if (!connects()) return;
  ASSERT_TRUE(ends.invite().ok()) << "the number is free again";
  const auto again = ends.connect(), joined = ends.join();
  again.get(), joined.get();
  const auto to = put(numbers(3, 4));
  const auto received = ends.receive(to);
  submit(channel::Drop{DType::u8, ends.receives}).get();
  EXPECT_EQ(received.wait().code(), Errc::world_reformed);
  EXPECT_EQ(ends.send(put(numbers(0, 1u << 20))).wait().code(), Errc::peer_lost)
      << "the other end is gone";
  ends.drop();
}

TEST(Channels, HaveEndsThatAreThere) {
  const auto x = put(numbers(3, 4));
  Ends ends(141);
  EXPECT_EQ(ends.connect().wait().code(), Errc::world_reformed);
  EXPECT_EQ(ends.send(x).wait().code(), Errc::world_reformed);
  EXPECT_EQ(ends.receive(x).wait().code(), Errc::world_reformed);
  ends.drop();
  ASSERT_TRUE(ends.invite().ok());
  EXPECT_EQ(ends.invite().code(), Errc::invalid) << "it is there already";
  ends.drop();
  EXPECT_EQ(submit(channel::Settle{DType::u8, x.operand()}).wait().code(), Errc::ok);
}

TEST_F(BadArguments, OfChannels) {
  using namespace channel;
  const auto pinned = device().pinned<std::uint8_t>(sizeof(Invitation));
  auto shorter = pinned.operand();
  shorter.bytes -= 8;
  expect_refused(Invite{DType::u8, 0, pinned.operand()});
  expect_refused(Invite{DType::u8, 1, shorter});
  expect_refused(Connect{DType::u8, 0});
  expect_refused(Join{DType::u8, 1});  // without an invitation
  expect_refused(Settle{DType::u8, absent});
  expect_refused(Send{DType::u8, 0, x});
  expect_refused(Send{DType::u8, 1, absent});
  expect_refused(Receive{DType::u8, 1, absent});
  expect_refused(Drop{DType::u8, 0});
}

}  // namespace
}  // namespace troupe::test

#include <algorithm>
#include <chrono>

#include <troupe/actor.hpp>

#include "troupe_side.hpp"

namespace troupe::perf {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr auto kName = "parcels";

struct Parcel {
  std::vector<std::byte> contents;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(contents);
  }
};
/// How many have come since the last time: what was told before has been handled then.
struct Arrived {
  using Reply = std::int64_t;
};
/// What came last.
struct Last {
  using Reply = std::vector<std::byte>;
};

class Receiver : public Actor<Receiver, Parcel, Arrived, Last> {
 public:
  void on(Parcel parcel) {
    last_ = std::move(parcel.contents);
    ++arrived_;
  }
  std::int64_t on(Arrived) { return std::exchange(arrived_, 0); }
  std::vector<std::byte> on(Last) { return last_; }

 private:
  std::vector<std::byte> last_;
  std::int64_t arrived_ = 0;
};

class TellSide final : public Side {
 public:
  TellSide(Runtime& runtime, Collectives& ranks)
      : own_(runtime.actors().spawn<Receiver>({.name = kName, .mailbox_capacity = 4096})),
        next_(runtime.world().actor<Receiver>(
            kName, Rank(ranks.job_rank((ranks.rank() + 1) % ranks.size())))) {
    runtime.world().agree(runtime.world().publish(kName, own_));
  }

  [[nodiscard]] std::string lacks(const Call&) const override { return {}; }
  void prepare(const Call& call) override {
    parcel_.contents.resize(static_cast<std::size_t>(bytes(call, call.count)));
  }
  void start(const Call&, std::int64_t) override {
    tell_patiently(next_, parcel_).take();
    ++told_;
  }
  void wait() override {
    if (told_ == 0) return;
    const auto arrived = next_.ask(Arrived{}, kPatience).get();
    if (arrived == std::exchange(told_, 0)) return;
    throw Exception(Error{Errc::library, 0, "messages to an actor were lost"});
  }
  void record(const std::function<void()>&) override {}  // refused before
  void replay() override {}
  void write(const Call& call, std::int64_t first, std::span<const std::byte> source) override {
    std::copy(source.begin(), source.end(), parcel_.contents.begin() + bytes(call, first));
  }
  std::vector<std::byte> read(const Call& call, std::int64_t first,
                              std::int64_t elements) override {
    auto last = own_.ask(Last{}, kPatience).get();
    last.resize(parcel_.contents.size());  // what is missing is wrong
    const auto begin = last.begin() + bytes(call, first);
    return {begin, begin + bytes(call, elements)};
  }

 private:
  static std::ptrdiff_t bytes(const Call& call, std::int64_t elements) {
    return elements * static_cast<std::ptrdiff_t>(size_of(call.dtype));
  }

  const ActorRef<Receiver> own_;
  const RemoteActor<Receiver> next_;
  Parcel parcel_;
  std::int64_t told_ = 0;
};

}  // namespace

std::unique_ptr<Side> make_tell_side(Runtime& runtime, Collectives& ranks) {
  return std::make_unique<TellSide>(runtime, ranks);
}

}  // namespace troupe::perf

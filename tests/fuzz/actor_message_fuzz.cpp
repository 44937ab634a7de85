// Whatever the bytes, a message between actor posts is refused or is safe to act on, several of
// them as one too; writing an accepted one gives the same bytes, and a post that gets them goes on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/actor.hpp>

#include "fuzz.hpp"
#include "rank/post/actor_post.hpp"

namespace {

using namespace troupe;
using Kind = rank_process::ActorMessage::Kind;

struct Text {
  std::string text;
  std::vector<std::int32_t> numbers;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text, numbers);
  }
};
struct Length {
  using Reply = std::uint64_t;
  std::uint32_t more = 0;
};
class Clerk : public Actor<Clerk, Text, Length> {
 public:
  void on(const Text& text) { length_ += text.text.size(); }
  std::uint64_t on(Length question) { return length_ + question.more; }

 private:
  std::uint64_t length_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto rest = bytes;
  while (!rest.empty()) {
    const auto at = bytes.size() - rest.size();
    const auto packet = rank_process::take_actor_message(rest);
    if (!packet.ok()) break;
    check(packet->outcome().ok() == (packet->head.code == 0), "an outcome is a value or an error");
    const auto again = rank_process::encode(packet->head, packet->payload);
    check(bytes.size() - rest.size() == at + again.size() &&
              std::equal(again.begin(), again.end(), bytes.begin() + static_cast<long>(at)),
          "there and back");
  }

  const auto scheduler = std::make_shared<SteppedScheduler>();
  ActorSystem system(scheduler);
  const auto post = rank_process::ActorPost::make(
      {.rank = 1,
       .size = 2,
       .scheduler = scheduler.get(),
       .send = [](int to, auto) { check(to == 0 || to == 1, "an answer goes to a rank"); },
       .report = [](const Error&) {}});
  const auto clerk = system.spawn<Clerk>({.mailbox_capacity = 2});
  check(post->publish("clerk", std::make_shared<detail::PublishedActorOf<Clerk>>(clerk)).ok(),
        "a free name");
  const RemoteActor<Clerk> other(post->address("clerk", 0, Clerk::MessageSet::number()));
  const auto answer = other.ask(Length{}, std::chrono::seconds(1));
  (void)post->received(bytes);
  scheduler->advance(std::chrono::seconds(2));
  check(answer.ready(), "a question is answered");
  check(!clerk.ended(), "no message ends an actor");
  post->end({Errc::stopped, 0, "the end"});
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  const auto set = Clerk::MessageSet::number();
  const auto name = std::as_bytes(std::span(std::string_view("clerk")));
  const auto text = troupe::detail::to_bytes(Text{"text", {1, 2, 3}});
  const auto open =
      rank_process::encode({.kind = Kind::open, .from = 0, .route = 1, .set = set}, name);
  std::vector<std::vector<std::byte>> seeds;
  for (const auto& message :
       {rank_process::encode({.kind = Kind::tell, .route = 1, .type = 0, .number = 1}, text),
        rank_process::encode(
            {.kind = Kind::ask, .route = 1, .type = 1, .number = 1, .within_ns = 1000},
            troupe::detail::to_bytes(Length{3})),
        rank_process::encode({.kind = Kind::accepted, .route = 1, .count = 128}),
        rank_process::encode({.kind = Kind::refused, .route = 1, .number = 1},
                             Error{Errc::stopped, 0, "it has ended"}),
        rank_process::encode({.kind = Kind::answer, .route = 1, .number = 1},
                             troupe::detail::to_bytes(std::uint64_t{7}))}) {
    seeds.push_back(message);
    auto joined = open;
    joined.insert(joined.end(), message.begin(), message.end());
    joined.insert(joined.end(), message.begin(), message.end());
    seeds.push_back(joined);
  }
  return seeds;
}

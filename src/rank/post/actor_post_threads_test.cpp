// Posts on real threads: what several threads of each rank send arrives in order, and once, while a
// rank leaves the world and comes back, and until the end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <troupe/actor.hpp>

#include "rank/post/actor_post.hpp"

namespace troupe::rank_process {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 2, kSenders = 2, kNumbers = 4000;

struct Number {
  int sender;
  int value;
};
struct Next {
  using Reply = int;
  int sender;
};

class Clerk : public Actor<Clerk, Number, Next> {
 public:
  explicit Clerk(std::atomic<int>* wrong) : wrong_(wrong), next_(kRanks * kSenders) {}
  void on(Number number) {
    auto& next = next_[static_cast<std::size_t>(number.sender)];
    if (number.value < next) ++*wrong_;
    next = number.value + 1;
  }
  int on(Next question) { return next_[static_cast<std::size_t>(question.sender)]; }

 private:
  std::atomic<int>* wrong_;
  std::vector<int> next_;
};

/// A rank: its post, and the thread on which messages reach it.
class Node {
 public:
  Node(int rank, std::vector<std::unique_ptr<Node>>* all, ActorSystem& system,
       std::atomic<int>* reports)
      : post_(ActorPost::make({.rank = rank,
                               .size = kRanks,
                               .scheduler = &system.scheduler(),
                               .send =
                                   [all](int to, std::vector<std::byte> bytes) {
                                     (*all)[static_cast<std::size_t>(to)]->put(std::move(bytes));
                                   },
                               .report = [reports](const Error&) { ++*reports; }})),
        thread_([this] { run(); }) {}
  ~Node() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] ActorPost& post() { return *post_; }
  void put(std::vector<std::byte> bytes) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(bytes));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      const auto bytes = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      EXPECT_TRUE(post_->received(bytes).ok());
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> queue_;
  bool stop_ = false;
  std::shared_ptr<ActorPost> post_;
  std::thread thread_;
};

TEST(ActorPostThreads, ManyThreadsSendWhileARankLeavesAndComesBack) {
  std::atomic<int> wrong{0}, reports{0};
  ActorSystem system(ProductionScheduler::start({.workers = 2}).take());
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    nodes.push_back(std::make_unique<Node>(rank, &nodes, system, &reports));
  std::vector<ActorRef<Clerk>> clerks;
  for (auto& node : nodes) {
    clerks.push_back(system.spawn<Clerk>({.mailbox_capacity = 16}, &wrong));
    ASSERT_TRUE(
        node->post()
            .publish("clerk", std::make_shared<detail::PublishedActorOf<Clerk>>(clerks.back()))
            .ok());
  }
  {
    std::vector<std::jthread> senders;
    for (int sender = 0; sender < kRanks * kSenders; ++sender) {
      senders.emplace_back([&, sender] {
        const int rank = sender % kRanks;
        const RemoteActor<Clerk> other(nodes[static_cast<std::size_t>(rank)]->post().address(
            "clerk", 1 - rank, Clerk::MessageSet::number()));
        for (int i = 0; i < kNumbers; ++i) {
          (void)tell_patiently(other, Number{sender, i});  // or it is lost with the rank
          const auto asked = i % 64 == 0 ? other.ask(Next{sender}, 60s) : Future<int>();
          if (i % 128 == 0) (void)asked.wait();
        }
      });
    }
    for (int change = 0; change < 6; ++change) {
      std::this_thread::sleep_for(5ms);
      for (auto& node : nodes)
        node->post().set_excluded(change % 2 == 0 ? std::vector<std::int32_t>{1}
                                                  : std::vector<std::int32_t>{});
    }
  }
  // Behind all that was sent.
  for (int rank = 0; rank < kRanks; ++rank) {
    const RemoteActor<Clerk> other(nodes[static_cast<std::size_t>(rank)]->post().address(
        "clerk", 1 - rank, Clerk::MessageSet::number()));
    EXPECT_TRUE(tell_patiently(other, Number{rank, kNumbers}).ok());
    EXPECT_EQ(other.ask(Next{rank}, 60s).get(), kNumbers + 1);
  }
  EXPECT_EQ(wrong, 0) << "numbers came twice or out of order";
  for (auto& node : nodes) node->post().end({Errc::stopped, 0, "the end"});
  system.shutdown();
}

}  // namespace
}  // namespace troupe::rank_process

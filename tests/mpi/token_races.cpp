#include <atomic>
#include <numeric>
#include <thread>

#include "mpi_tests.hpp"

namespace troupe::test {

/// The pieces of a transfer are put where they belong although the source learns in any order that
/// they have been read: threads of the program that takes the answers, and are held up, mix it up.
void token_pieces(Context& c) {
  constexpr std::int64_t kLength = 5'000'000;  // 20 pieces
  constexpr int kRounds = 60;
  std::vector<std::int64_t> values(kLength);
  std::iota(values.begin(), values.end(), std::int64_t{1});
  const auto source = c.device().alloc<std::int64_t>(kLength);
  c.device().upload<std::int64_t>(values, source).get();
  const auto tokens = c.world().gather_values(source.token());
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  if (c.first()) {
    // Two threads are held up, with all that they took behind their own answer, until a third has
    // been answered several times more.
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        while (!stop) {
          const auto held_up = c.device().nop();
          held_up.on_ready([&](const Result<void>&) {
            const auto before = answered.load();
            const auto end = Clock::now() + 2ms;
            while (answered < before + 20 && Clock::now() < end) std::this_thread::sleep_for(50us);
          });
          held_up.wait();
        }
      });
    }
    threads.emplace_back([&] {
      for (; !stop; ++answered) c.device().nop().wait();
    });
  }
  const auto copy = c.device().alloc<std::int64_t>(kLength);
  for (int round = 0; round < kRounds && !c.first(); ++round) {
    c.device().fill(copy, std::int64_t{0});
    c.world().fetch(tokens[0], copy).get();
    const auto got = c.device().download(copy);
    const auto wrong = std::mismatch(got.begin(), got.end(), values.begin()).first - got.begin();
    c.expect(got == values, "round " + std::to_string(round) + ": element " +
                                std::to_string(wrong) + " is that of another place");
  }
  c.world().barrier();
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace troupe::test

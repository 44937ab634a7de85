#include "steps.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace troupe::info {

Steps::Steps(const Device& device, const LaunchedJob& job, BurnIn& facts)
    : device_(device), job_(job), facts_(facts) {
  (void)device.take_error();
}

bool Steps::run(const std::function<void()>& step) {
  if (!go_on_) return false;
  try {
    step();
    if (const auto none = device_.take_error(); !none.ok()) note(none.error());
  } catch (const Exception& e) {
    // A command whose operands are gone comes later than the one that failed.
    const auto none = device_.take_error();
    note(none.ok() ? e.error() : none.error());
  }
  return go_on_ = count(!facts_.error.empty()) == 0;
}

void Steps::look_for_losses(World& world) {
  const auto losses = heard_of_losses(world);
  const auto own = std::find_if(losses.begin(), losses.end(),
                                [this](const Recovery& loss) { return loss.rank == facts_.rank; });
  if (own != losses.end()) {
    facts_.error = "the device host was lost (" + own->kind + ")";
    facts_.by_another = false;
  } else if (!losses.empty() && loss_) {
    facts_.by_another = true;
  }
}

bool Steps::first_says(bool yes) const {
  return !job_.gather_text(yes ? "yes" : "").front().empty();
}

void Steps::note(const Error& error) {
  facts_.error = error.to_string();
  facts_.by_another = error.message.starts_with("rank ") &&
                      !error.message.starts_with("rank " + std::to_string(facts_.rank) + ":");
  loss_ = error.code == Errc::stale || error.code == Errc::device_lost ||
          error.code == Errc::world_reformed || error.code == Errc::peer_lost;
}

std::vector<Recovery> Steps::heard_of_losses(World& world) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::seconds(10);;) {
    const auto active = world.wait_active();
    if (!active.ok() && facts_.error.empty()) note(active.error());
    const auto losses = world.recoveries();
    const auto without_news = count(active.ok() && losses.empty());
    const bool nothing_lost = count(loss_) == 0 && without_news == job_.size();
    const bool late = first_says(Clock::now() > end);
    if (without_news == 0 || nothing_lost || late) return losses;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int Steps::count(bool yes) const {
  const auto said = job_.gather_text(yes ? "yes" : "");
  return static_cast<int>(
      said.size() - static_cast<std::size_t>(std::count(said.begin(), said.end(), std::string())));
}

}  // namespace troupe::info

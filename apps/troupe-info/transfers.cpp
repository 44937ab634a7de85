#include "transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <troupe/world.hpp>

#include "digest.hpp"

namespace troupe::info {
namespace {

constexpr int kParts = 4;  ///< messages in a buffer
constexpr int kMeasurements = 3;

std::uint64_t word_at(std::uint64_t factor, std::uint64_t i) {
  return factor * memory::Digest::mix(i + 1);
}
std::uint64_t factor_of(int rank) {
  return static_cast<std::uint64_t>(rank) + 1;
}

bool is_loss(Errc code) {
  return code == Errc::device_lost || code == Errc::device_failed || code == Errc::world_reformed ||
         code == Errc::peer_lost;
}

}  // namespace

Transfers::Transfers(Runtime& runtime, std::int64_t words)
    : runtime_(runtime), words_(words), own_factor_(factor_of(runtime.world().rank())) {
  const auto& device = runtime.device();
  source_ = device.alloc<std::uint64_t>(kParts * words, "transfers: source");
  destination_ = device.alloc<std::uint64_t>(kParts * words, "transfers: destination");
  results_ = device.alloc<std::uint64_t>(1);
  pinned_ = device.pinned<std::uint64_t>(static_cast<std::size_t>(words));
}

void Transfers::meet(const LaunchedJob& job) {
  const auto token = part(source_, 0).token();
  const auto tokens = job.gather_text({reinterpret_cast<const char*>(&token), sizeof token});
  const auto nodes = job.gather_text(std::to_string(job.node()));
  for (int step = 1; step < job.size() && !peer_; ++step) {
    const auto rank = (job.rank() + step) % job.size();
    const auto r = static_cast<std::size_t>(rank);
    if (nodes[r] != std::to_string(job.node())) continue;
    peer_ = Peer{rank, {}};
    std::memcpy(&peer_->token, tokens[r].data(), sizeof peer_->token);
  }
}

template <class Before, class Move>
void Transfers::measure(const char* name, std::int64_t words, Before before, Move move) {
  double best = 0;
  for (int attempt = 0; attempt < kMeasurements; ++attempt) {
    before();
    const auto begin = std::chrono::steady_clock::now();
    move();
    const auto seconds = seconds_since(begin);
    best = attempt == 0 ? seconds : std::min(best, seconds);
  }
  meters_[name].add(static_cast<double>(words) * sizeof(std::uint64_t), best);
}

void Transfers::run_alone() {
  const auto& device = runtime_.device();
  const auto clear = [&device](const GpuRef<std::uint64_t>& buffer) {
    device.fill(buffer, 0).get();
  };
  for (std::uint64_t i = 0; i < pinned_.size(); ++i) pinned_[i] = word_at(own_factor_, i);
  measure(
      rate::kToDevice, kParts * words_, [&] { clear(source_); },
      [&] {
        std::vector<Future<void>> copies;
        for (int i = 0; i < kParts; ++i) copies.push_back(device.copy(pinned_, part(source_, i)));
        for (const auto& copy : copies) copy.get();
      });
  for (int i = 0; i < kParts; ++i) compare(part(source_, i), own_factor_, "copies to the device");
  measure(
      rate::kCopy, kParts * words_, [&] { clear(destination_); },
      [&] { device.copy(source_, destination_).get(); });
  for (int i = 0; i < kParts; ++i)
    compare(part(destination_, i), own_factor_, "copies within the device");
  measure(
      rate::kFromDevice, kParts * words_,
      [&] { std::fill(pinned_.span().begin(), pinned_.span().end(), 0); },
      [&] {
        std::vector<Future<void>> copies;
        for (int i = 0; i < kParts; ++i) copies.push_back(device.copy(part(source_, i), pinned_));
        for (const auto& copy : copies) copy.get();
      });
  compare(host_digest(std::span<const std::uint64_t>(pinned_.span())), own_factor_,
          "copies to the host");
}

/// The agreement after each step has the ranks begin the next one at the same time.
template <class Move>
bool Transfers::measure_together(Steps& steps, const char* name, Move move) {
  double best = 0;
  for (int attempt = 0; attempt < kMeasurements; ++attempt) {
    const bool moved =
        steps.run([&] { runtime_.device().fill(destination_, 0).get(); }) && steps.run([&] {
          const auto begin = std::chrono::steady_clock::now();
          move();
          const auto seconds = seconds_since(begin);
          best = attempt == 0 ? seconds : std::min(best, seconds);
        });
    if (!moved) return false;
  }
  meters_[name].add(static_cast<double>(words_) * sizeof(std::uint64_t), best);
  return true;
}

bool Transfers::run_together(Steps& steps) {
  auto& world = runtime_.world();
  const int ranks = world.size(), rank = world.rank();
  if (ranks < 2) return true;
  const auto sum = part(destination_, 0), received = part(destination_, 1);
  const auto reduce = [&] { world.all_reduce(part(source_, 0), sum, ReduceOp::sum).get(); };
  const auto count = static_cast<std::uint64_t>(ranks);
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  const auto pass_on = [&] {
    const Transfer<std::uint64_t> sent{part(source_, 0), Rank{next}}, taken{received, Rank{last}};
    world.exchange<std::uint64_t>({&sent, 1}, {&taken, 1}).get();
  };
  return measure_together(steps, rate::kAllReduce, reduce) &&
         steps.run([&] { compare(sum, count * (count + 1) / 2, "sums over all ranks"); }) &&
         measure_together(steps, rate::kRing, pass_on) && steps.run([&] {
           compare(received, factor_of(last), fmt::format("messages from rank {}", last));
         }) &&
         steps.run([&] { fetch_from_peer(); });
}

/// A fetch that fails leaves this rank without a rate, and the others as they are; a loss ends the
/// burn-in.
void Transfers::fetch_from_peer() {
  if (!peer_ || !facts_.peer_error.empty()) return;
  const auto fetched = part(destination_, 2);
  try {
    measure(
        rate::kPeer, words_, [&] { runtime_.device().fill(fetched, 0).get(); },
        [&] { runtime_.world().fetch(peer_->token, fetched).get(); });
  } catch (const Exception& e) {
    if (is_loss(e.code())) throw;
    facts_.peer_error = fmt::format("from rank {}: {}", peer_->rank, e.error().to_string());
    destination_.renew();  // a part of it is stale
    (void)runtime_.device().take_error();
    return;
  }
  compare(fetched, factor_of(peer_->rank), fmt::format("fetches from rank {}", peer_->rank));
}

void Transfers::compare(const GpuRef<std::uint64_t>& range, std::uint64_t factor,
                        const std::string& what) {
  compare(device_digests(runtime_.device(), std::vector{range}, results_).front(), factor, what);
}

void Transfers::compare(std::uint64_t digest, std::uint64_t factor, const std::string& what) {
  ++facts_.done;
  if (digest == expected(factor)) return;
  if (facts_.wrong++ == 0) facts_.first_wrong = what;
}

std::uint64_t Transfers::expected(std::uint64_t factor) {
  const auto found = digests_.find(factor);
  if (found != digests_.end()) return found->second;
  return digests_[factor] =
             digest_of_words(static_cast<std::uint64_t>(words_),
                             [factor](std::uint64_t i) { return word_at(factor, i); });
}

std::map<std::string, double> Transfers::rates() const {
  std::map<std::string, double> rates;
  for (const auto& [name, meter] : meters_) rates[name] = meter.rate();
  return rates;
}

}  // namespace troupe::info

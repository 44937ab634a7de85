#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "catalogue/random.hpp"
#include "catalogue/values.hpp"
#include "runner.hpp"

// Rounds with a plot of their own.

namespace troupe::torture {

/// Each rank writes versions of a buffer, whole ones, while the rank before it fetches it again and
/// again: what comes is one version as a whole, and none that is older than what came before.
void Runner::play_versions(const Round& round) {
  Random random(derive(program_->seed, round_));
  const auto length =
      random.one_in(4) ? random.between(100'000, 2'000'000) : random.between(1, 20'000);
  const auto mine = device_.alloc<double>(length), copy = device_.alloc<double>(length);
  device_.fill(mine, 0.0).get();
  const auto tokens = world_.gather_values(mine.token());
  const auto& source = tokens[static_cast<std::size_t>((rank_ + 1) % ranks_)];
  world_.barrier();
  std::exception_ptr failure;
  std::jthread writer([&] {
    try {
      for (int version = 1; version <= round.special; ++version) {
        const auto filled = device_.fill(mine, static_cast<double>(version));
        if (version % 4 == 0) wait(filled, "a fill of what is being fetched");
        if (version % 8 == 0) std::this_thread::yield();
        check_outcome({}, version % 4 == 0 ? filled.wait() : Result<void>());
      }
    } catch (...) {
      failure = std::current_exception();
    }
  });
  double newest = 0;
  for (int i = 0; i < std::max(4, round.special / 4); ++i) {
    account_.advance();
    const auto fetched = world_.fetch(source, copy);
    account_.count_operations();
    wait(fetched, fmt::format("a fetch of {} elements that are being written", length));
    check_outcome({}, fetched.wait());
    if (!fetched.wait().ok()) break;
    const auto values = device_.download(copy);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least != *most || *least < newest || *most > round.special)
      throw Finding(
          fmt::format("WRONG CONTENTS: a fetch of {} elements while version {} and later "
                      "ones are written brings {} to {}",
                      length, newest, *least, *most));
    newest = *least;
  }
  account_.count_operations(round.special);
  writer.join();
  if (failure) std::rethrow_exception(failure);
  world_.barrier();
  if (any_rank(suspicious_)) {
    settle();
    check_recoveries();
  }
}

/// Fetches and puts of many pieces, each element another, while threads on all ranks wait for small
/// things: whoever waits carries out what is due, so many threads have a part in each transfer.
void Runner::play_pieces(const Round& round) {
  const auto seed = derive(program_->seed, round_);
  const auto length = Random(seed).between(2, 16) * (std::int64_t{2} << 20) / 8 / ranks_ * 2 + 5;
  const auto contents = [&](int rank) {
    const auto bytes = random_bytes(derive(seed, static_cast<std::uint64_t>(rank)),
                                    static_cast<std::size_t>(length) * 8);
    std::vector<std::uint64_t> values(static_cast<std::size_t>(length));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const int next = (rank_ + 1) % ranks_;
  const auto mine = contents(rank_), expected = contents(next);
  const auto source = device_.alloc<std::uint64_t>(length),
             fetched = device_.alloc<std::uint64_t>(length);
  device_.upload<std::uint64_t>(mine, source).get();
  const auto sources = world_.gather_values(source.token());
  world_.barrier();
  std::atomic<bool> over{false};
  std::vector<std::jthread> busy;
  for (int t = 0; t < round.threads; ++t) {
    busy.emplace_back([&] {
      const auto small = device_.alloc<float>(256);
      while (!over) {
        Future<void> last;
        for (int i = 0; i < 40; ++i) last = device_.fill(small, 1.0f);
        (void)last.wait();
      }
    });
  }
  std::string wrong;
  for (int i = 0; i < 4 + round.special / 4 && wrong.empty(); ++i) {
    account_.advance();
    account_.count_operations();
    device_.fill(fetched, std::uint64_t{0});
    const auto transfer = world_.fetch(sources[static_cast<std::size_t>(next)], fetched);
    wait(transfer, fmt::format("a fetch of {} elements", length));
    check_outcome({}, transfer.wait());
    if (!transfer.wait().ok()) break;
    const auto values = device_.download(fetched);
    const auto [a, b] = std::mismatch(values.begin(), values.end(), expected.begin());
    if (a != values.end())
      wrong = fmt::format(
          "WRONG CONTENTS: fetch {} of {} elements of 8 bytes succeeds, and element {} is wrong", i,
          length, a - values.begin());
  }
  if (!wrong.empty()) throw Finding(wrong);
  world_.barrier();
  over = true;
  busy.clear();
  if (any_rank(suspicious_)) {
    settle();
    check_recoveries();
  }
}

namespace {

/// How many slabs a rank may fill: with the cpu engine they are this machine's memory, an eighth of
/// which all ranks may take together.
std::int64_t most_slabs(std::int64_t slab, int ranks) {
  const auto all = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return std::max<std::int64_t>(4, all / 8 / ranks / slab);
}

}  // namespace

/// More buffers of a slab each than a process has descriptors by habit; then a device host is lost.
void Runner::play_slabs(const Round& round) {
  const auto slab = static_cast<std::int64_t>(runtime_.config().bytes("slab-size"));
  std::vector<GpuRef<std::int32_t>> buffers;
  std::vector<bool> written;
  const auto count = std::min<std::int64_t>(round.special, most_slabs(slab, ranks_));
  for (int i = 0; i < count; ++i) {
    account_.advance();
    auto made = device_.try_alloc<std::int32_t>(slab / 4);
    if (!made.ok()) {
      if (made.code() == Errc::out_of_memory) break;  // the limit is told of, that is all right
      throw Finding("a buffer of a slab: " + made.error().to_string());
    }
    buffers.push_back(*made);
    const auto filled = device_.fill(*made, i);
    account_.count_operations();
    wait(filled, "a fill of a new slab");
    check_outcome({}, filled.wait());
    written.push_back(
        filled.wait().ok());  // a device host that ends during it takes the slab along
  }
  world_.barrier();
  if (program_->stormy && rank_ == round.special % ranks_) {
    wait(device_.inject(memory::FaultKind::kill), "a fault that was ordered");
  }
  settle();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!written[i]) continue;
    if (!buffers[i].valid())
      throw Finding(fmt::format("slab {} of {} is lost with a device host that did not write it", i,
                                buffers.size()));
    const auto end = buffers[i].slice(buffers[i].length() - 3, 3);
    if (device_.download(end) != std::vector<std::int32_t>(3, static_cast<std::int32_t>(i)))
      throw Finding(fmt::format("WRONG CONTENTS: slab {} of {}", i, buffers.size()));
  }
  world_.barrier();
}

}  // namespace troupe::torture

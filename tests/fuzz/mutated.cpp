// A fuzzer's entry as a plain program: a seeded number of inputs, mutated from valid ones and made
// up, in bounded time.
//
//   PROGRAM [INPUTS [FIRST-SEED [SECONDS]]]
//
// Input n depends on n alone: `PROGRAM 1 n` repeats it. A broken promise ends the
// program; the number of the input it was at is printed then.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include <unistd.h>

#include "fuzz.hpp"

namespace {

using Bytes = std::vector<std::byte>;

std::uint64_t at_input = 0;

void say_where() {
  char text[64];
  const int length = std::snprintf(text, sizeof text, "at input %llu\n",
                                   static_cast<unsigned long long>(at_input));
  (void)!::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
}

/// Values that counts, sizes, kinds and indices go wrong at.
std::uint64_t interesting(std::mt19937_64& random) {
  constexpr std::uint64_t kValues[] = {0,           1,          7,     255,       0x7fff'ffff,
                                       0xffff'ffff, 1ull << 32, ~0ull, 1ull << 63};
  return random() % 3 == 0 ? random() % 64 : kValues[random() % std::size(kValues)];
}

void mutate(Bytes& bytes, const std::vector<Bytes>& seeds, std::mt19937_64& random) {
  const auto somewhere = [&] { return static_cast<std::ptrdiff_t>(random() % (bytes.size() + 1)); };
  switch (random() % 6) {
    case 0:  // one byte
      if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      return;
    case 1: {  // a field
      const std::size_t width = random() % 2 == 0 ? 4 : 8;
      if (bytes.size() < width) return;
      const auto value = interesting(random);
      const auto offset = random() % (bytes.size() - width + 1) / 4 * 4;
      std::memcpy(bytes.data() + offset, &value, width);
      return;
    }
    case 2: bytes.resize(random() % (bytes.size() + 1)); return;
    case 3: bytes.insert(bytes.end(), random() % 64, static_cast<std::byte>(random())); return;
    case 4: {  // a part is taken out
      const auto from = somewhere(), to = somewhere();
      bytes.erase(bytes.begin() + std::min(from, to), bytes.begin() + std::max(from, to));
      return;
    }
    default: {  // the end of another
      const auto& other = seeds[random() % seeds.size()];
      const auto from = static_cast<std::ptrdiff_t>(random() % (other.size() + 1));
      bytes.resize(static_cast<std::size_t>(somewhere()));
      bytes.insert(bytes.end(), other.begin() + from, other.end());
      return;
    }
  }
}

Bytes input(std::uint64_t number, const std::vector<Bytes>& seeds) {
  std::mt19937_64 random(number);
  if (random() % 16 == 0) {
    Bytes bytes(random() % 512);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  auto bytes = seeds[random() % seeds.size()];
  for (auto left = random() % 5; left > 0; --left) mutate(bytes, seeds, random);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::chrono::seconds limit(argc > 3 ? std::atoi(argv[3]) : 60);
  std::signal(SIGABRT, [](int) { say_where(); });
  const auto seeds = fuzz_seeds();
  const auto began = std::chrono::steady_clock::now();
  for (at_input = first; at_input - first < count; ++at_input) {
    const auto bytes = input(at_input, seeds);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (std::chrono::steady_clock::now() - began > limit) break;
  }
  return 0;
}

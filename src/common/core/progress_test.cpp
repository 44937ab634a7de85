// What is told of something that takes long.
#include <gtest/gtest.h>

#include <pty.h>
#include <unistd.h>

#include <thread>

#include <troupe/progress.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(LongWork, TellsRateAndTimeLeftOnceASecond) {
  const TimePoint begin = 100s;
  ProgressLine line("saving step 12", 1000, "MiB", begin);
  EXPECT_FALSE(line.at(begin + 1900ms, 90));
  EXPECT_FALSE(line.shown());
  EXPECT_EQ(line.at(begin + 2s, 100).value_or(""),
            "saving step 12: 100 of 1000 MiB, 50 MiB/s, 18 s left");
  EXPECT_TRUE(line.shown());
  EXPECT_FALSE(line.at(begin + 2900ms, 200));
  EXPECT_EQ(line.at(begin + 4s, 1000).value_or(""),
            "saving step 12: 1000 of 1000 MiB, 250 MiB/s, 0 s left");
}

TEST(LongWork, DoesNotGuessWhatIsUnknown) {
  const TimePoint begin = 0s;
  ProgressLine endless("programs", 0, "operations", begin);
  EXPECT_EQ(endless.at(begin + 4s, 10).value_or(""), "programs: 10 operations, 2.5 operations/s");
  ProgressLine stuck("loading", 10, "MiB", begin);
  EXPECT_EQ(stuck.at(begin + 4s, 0).value_or(""),
            "loading: 0 of 10 MiB, 0 MiB/s, time left unknown");
}

/// What is written to standard error by progress of which the first line is due.
std::string shown_on(bool terminal) {
  int reader = -1, writer = -1, pipe[2] = {};
  if (terminal) {
    if (::openpty(&reader, &writer, nullptr, nullptr, nullptr) != 0) return "no terminal";
  } else {
    if (::pipe(pipe) != 0) return "no pipe";
    reader = pipe[0], writer = pipe[1];
  }
  const int before = ::dup(STDERR_FILENO);
  ::dup2(writer, STDERR_FILENO);
  {
    Progress progress("loading", 100, "MiB");
    std::this_thread::sleep_for(2100ms);
    progress.reach(0);
  }
  ::dup2(before, STDERR_FILENO);
  ::close(before), ::close(writer);
  std::string text;  // all of it, which comes in pieces: nobody has the other end any more
  char piece[4096];
  for (ssize_t length = 0; (length = ::read(reader, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(length));
  ::close(reader);
  return text;
}

TEST(LongWork, IsQuietWhereThereIsNoTerminal) {
  EXPECT_EQ(shown_on(false), "");
}
TEST(LongWork, IsOneLineOnATerminalAndGoes) {
  const auto text = shown_on(true);
  EXPECT_NE(text.find("loading: 0 of 100 MiB"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\033[K")) << text;
}

}  // namespace
}  // namespace troupe

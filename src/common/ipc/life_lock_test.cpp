#include "common/ipc/life_lock.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "common/ipc/shared_memory.hpp"

namespace troupe::ipc {
namespace {

using std::chrono::milliseconds;
using Wait = LifeLock::Wait;

class LifeLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = SharedMemory::create("life-lock-test", 4096).take();
    lock_ = new (memory_.data()) LifeLock;
    lock_->init();
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      lock_->hold();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  SharedMemory memory_;
  LifeLock* lock_ = nullptr;
  pid_t child_ = -1;
};

TEST_F(LifeLockTest, ALivingHolderKeepsItsWatcherWaiting) {
  EXPECT_EQ(lock_->wait_for_end(milliseconds(20)), Wait::time_out);
}

TEST_F(LifeLockTest, ADeathIsToldBeforeTheProcessIsReaped) {
  ::kill(child_, SIGKILL);
  EXPECT_EQ(lock_->wait_for_end(milliseconds(5000)), Wait::died);
}

TEST_F(LifeLockTest, NonsenseInItsMemoryKeepsNobodyForLong) {
  std::memset(memory_.data(), 0x5a, sizeof(LifeLock));
  (void)lock_->wait_for_end(milliseconds(20));  // whatever it says, it comes back
}

}  // namespace
}  // namespace troupe::ipc

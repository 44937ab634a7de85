// Which commands may be queued, and what becomes of the others.
#include "device_host/intake/admission.hpp"

#include <gtest/gtest.h>

namespace troupe::host {
namespace {

TEST(Admission, EachReasonAloneKeepsACommand) {
  EXPECT_TRUE(may_go({}));
  EXPECT_FALSE(may_go({.behind_others = true}));
  EXPECT_FALSE(may_go({.libraries_ready = false}));
  EXPECT_FALSE(may_go({.cells_read = false}));
  EXPECT_TRUE(may_go({.collective = true}));
  EXPECT_FALSE(may_go({.collective = true, .communicator_busy = true}));
  EXPECT_FALSE(may_go({.collective = true, .opening_goes_first = true}));
  EXPECT_TRUE(may_go({.collective = true, .collectives_ahead = kCollectivesAhead - 1}));
  EXPECT_FALSE(may_go({.collective = true, .collectives_ahead = kCollectivesAhead}));
}

TEST(Admission, WhatConcernsCollectivesKeepsNoOtherCommand) {
  EXPECT_TRUE(may_go({.communicator_busy = true}));
  EXPECT_TRUE(may_go({.opening_goes_first = true}));
  EXPECT_TRUE(may_go({.collectives_ahead = kCollectivesAhead}));
}

// Commands that wait for nobody drain a full queue.
TEST(Admission, AFullQueueKeepsOnlyWhatWaitsForPeers) {
  EXPECT_TRUE(may_go({.queue_full = true}));
  EXPECT_TRUE(may_go({.waits_for_peers = true}));
  EXPECT_FALSE(may_go({.queue_full = true, .waits_for_peers = true}));
}

// Every combination, beside a list of those that lead to each fate.
TEST(Admission, EveryCourseHasItsFate) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    const auto has = [bits](unsigned bit) { return (bits >> bit & 1) != 0; };
    const Course course{has(0), has(1), has(2), has(3), has(4), has(5)};
    const bool free = course.may_go && !course.needs_thread;
    const bool threaded = course.may_go && course.needs_thread && !course.from_ring;
    const auto fate = fate_of(course);
    EXPECT_EQ(fate == Fate::queue, free) << bits;
    EXPECT_EQ(fate == Fate::set_aside, !free && course.from_ring && course.room) << bits;
    EXPECT_EQ(fate == Fate::play, threaded && course.sequence) << bits;
    EXPECT_EQ(fate == Fate::work, threaded && !course.sequence && !course.waits_for_peers) << bits;
  }
}

}  // namespace
}  // namespace troupe::host

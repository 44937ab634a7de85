#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::torture {

/// What a process has open, by kind: "socket", "pipe", "[eventfd]", "/memfd:troupe-slab",
/// "/dev/shm", "file NAME" and so on; and how many entries of /dev/shm it has mapped ("mapped
/// /dev/shm").
using Holdings = std::map<std::string, int>;

/// The holdings of a process of this machine; empty where it has ended.
Holdings holdings_of(pid_t pid);
/// The kind of what a descriptor's link in /proc says.
std::string kind_of(const std::string& link);
/// What there is more of than there was: "3 pipe (2)" for three now and two then. Kinds that
/// `may_grow` names are passed over. Empty: nothing.
std::string grown(const Holdings& then, const Holdings& now,
                  const std::vector<std::string>& may_grow);

/// Entries of /dev/shm that no process has open or mapped.
std::set<std::string> forgotten_in_dev_shm();

}  // namespace troupe::torture

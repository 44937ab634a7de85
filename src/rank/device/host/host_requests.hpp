#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include <troupe/error.hpp>

#include "common/wire/control.hpp"
#include "rank/device/host/host_link.hpp"

namespace troupe::rank_process {

/// What device hosts have been asked and have not answered. One thread.
class HostRequests {
 public:
  using Answer = std::function<void(Result<wire::ControlMessage>)>;
  /// What becomes of the answer if the host is given up.
  enum class IfLost : std::uint8_t {
    tell,   ///< it is the error
    forget  ///< there is none: whoever asks knows what becomes of hosts
  };

  void ask(const HostLink& host, wire::Control head, int fd, Answer answer,
           IfLost if_lost = IfLost::tell);
  /// The host's answer, if it is one to what it was asked.
  void answered(std::uint64_t host, wire::ControlMessage message);
  /// This host answers no more.
  void fail(std::uint64_t host, const Error& error);
  void fail_all(const Error& error);
  /// Nobody is told anything any more.
  void clear() { requests_.clear(); }

 private:
  struct Request {
    std::uint64_t host;
    Answer answer;
    IfLost if_lost;
  };
  template <class Which>
  void fail_those(Which which, const Error& error);

  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Request> requests_;
};

}  // namespace troupe::rank_process

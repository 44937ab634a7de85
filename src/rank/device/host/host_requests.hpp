#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include <troupe/error.hpp>

#include "common/wire/control.hpp"
#include "rank/device/host/host_link.hpp"

namespace troupe::rank_process {

/// What device hosts have been asked and have not answered. One thread.
class HostRequests {
 public:
  template <class Request>
  using Answer = std::function<void(Result<typename Request::Answer>)>;
  /// What becomes of the answer if the host is given up.
  enum class IfLost : std::uint8_t {
    tell,   ///< it is the error
    forget  ///< there is none: whoever asks knows what becomes of hosts
  };

  /// Errors: the request could not be sent, for want of a descriptor. With IfLost::tell that is the
  /// answer, too. That the host is gone is no error: its Watcher sees it.
  template <class Request>
  Result<void> ask(const HostLink& host, Request request, Answer<Request> answer,
                   IfLost if_lost = IfLost::tell) {
    using Expected = typename Request::Answer;
    return send(
        host, wire::ToHost(std::move(request)),
        [answer = std::move(answer)](Result<wire::FromHost> said) {
          if (!said.ok()) return answer(said.error());
          if (auto* const expected = std::get_if<Expected>(&*said))
            return answer(std::move(*expected));
          answer(Error{Errc::internal, 0, "a device host has answered something else"});
        },
        if_lost);
  }
  /// The host's answer, if it is one to what it was asked.
  void answered(std::uint64_t host, wire::FromDeviceHost message);
  /// This host answers no more.
  void fail(std::uint64_t host, const Error& error);
  void fail_all(const Error& error);
  /// Nobody is told anything any more.
  void clear() { requests_.clear(); }

 private:
  using AnyAnswer = std::function<void(Result<wire::FromHost>)>;
  struct Request {
    std::uint64_t host;
    AnyAnswer answer;
    IfLost if_lost;
  };
  Result<void> send(const HostLink& host, const wire::ToHost& request, AnyAnswer answer,
                    IfLost if_lost);
  template <class Which>
  void fail_those(Which which, const Error& error);

  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Request> requests_;
};

}  // namespace troupe::rank_process

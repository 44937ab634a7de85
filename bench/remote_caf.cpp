#include "remote_caf.hpp"

#include <array>
#include <stdexcept>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

namespace troupe::bench {
namespace {

struct CafPayload {
  std::array<std::uint64_t, 8> words{};
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& inspector, CafPayload& payload) {
  auto& w = payload.words;
  return inspector(caf::meta::type_name("CafPayload"), w[0], w[1], w[2], w[3], w[4], w[5], w[6],
                   w[7]);
}

struct Settings : caf::actor_system_config {
  Settings() {
    load<caf::io::middleman>();
    add_message_type<CafPayload>("CafPayload");
    set("scheduler.max-threads", 2);
  }
};

/// Counts payloads; a number asks how many there were.
caf::behavior counter(caf::stateful_actor<std::int64_t>* self) {
  return {[self](const CafPayload&) { ++self->state; },
          [self](std::int64_t) { return std::exchange(self->state, 0); },
          [](std::int32_t, const CafPayload& payload) { return payload; }};
}

class Side final : public RemoteCaf {
 public:
  Side() : system_(settings_), self_(system_) {}
  ~Side() override {
    if (port_ != 0) self_->send_exit(actor_, caf::exit_reason::user_shutdown);
  }
  bool publish() {
    actor_ = system_.spawn(counter);
    const auto port = system_.middleman().publish(actor_, 0, "127.0.0.1");
    if (port) port_ = *port;
    return static_cast<bool>(port);
  }
  bool find(std::uint16_t port) {
    auto found = system_.middleman().remote_actor("127.0.0.1", port);
    if (found) actor_ = *found;
    return static_cast<bool>(found);
  }

  [[nodiscard]] std::uint16_t port() const override { return port_; }
  void tell(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) self_->send(actor_, CafPayload{});
    std::int64_t counted = 0;
    self_->request(actor_, caf::infinite, std::int64_t{0})
        .receive([&](std::int64_t there) { counted = there; },
                 [](const caf::error&) { throw std::runtime_error("CAF answers with an error"); });
    if (counted != count) throw std::runtime_error("CAF has lost messages");
  }
  void ask(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      self_->request(actor_, caf::infinite, std::int32_t{0}, CafPayload{})
          .receive(
              [](const CafPayload&) {},
              [](const caf::error&) { throw std::runtime_error("CAF answers with an error"); });
    }
  }

 private:
  Settings settings_;
  caf::actor_system system_;
  caf::scoped_actor self_;
  caf::actor actor_;
  std::uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<RemoteCaf> RemoteCaf::host() {
  auto side = std::make_unique<Side>();
  return side->publish() ? std::move(side) : nullptr;
}
std::unique_ptr<RemoteCaf> RemoteCaf::connect(std::uint16_t port) {
  auto side = std::make_unique<Side>();
  return side->find(port) ? std::move(side) : nullptr;
}

}  // namespace troupe::bench

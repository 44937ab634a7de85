#include "rank/world/verification.hpp"

#include <cstring>
#include <utility>

#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kLookForRoom = std::chrono::milliseconds(1);  ///< between tries with a full ring
constexpr std::size_t kCommands = 3;

/// Submits what is not the program's business, and waits for nothing.
class OfTheWorld final : public detail::Submitter {
 public:
  explicit OfTheWorld(CommandPort& port) : port_(&port) {}
  Future<void> submit(const detail::CommandView& command) override {
    auto own = command;
    own.quiet = true;
    return port_->try_submit(own);
  }
  Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }

 private:
  CommandPort* port_;
};

}  // namespace

void Verification::begin(std::uint32_t round, std::uint32_t epoch) {
  parts_.core.device().port().gate().set_epoch(Epoch(epoch));
  if (!buffers_->on_device.valid()) buffers_->on_device.renew();
  buffers_->on_host[0] = -1;
  round_ = round, epoch_ = epoch;
  commands_.clear();
  on(world_message::VerifyOn{round});
}

void Verification::on(world_message::VerifyOn next) {
  if (next.round != round_ || parts_.member.phase() != Phase::verify) return;
  const Gate::Passage passage;
  while (commands_.size() < kCommands) {
    auto submitted = submit_next();
    if (submitted.ready() && submitted.wait().code() == Errc::would_block) {
      (void)parts_.context.schedule(kLookForRoom, next);
      return;
    }
    commands_.push_back(std::move(submitted));
  }
  parts_.context.pipe(when_all(std::exchange(commands_, {})),
                      [round = next.round](const Result<void>& outcome) {
                        return world_message::Verified{round, outcome};
                      });
}

Future<void> Verification::submit_next() {
  OfTheWorld port(parts_.core.device().port());
  const auto probe = buffers_->on_device.operand();
  switch (commands_.size()) {
    case 0: {
      const std::int64_t value = parts_.formations.place() + 1;
      memory::Fill fill{DType::i64, 1, {}, probe};
      std::memcpy(fill.pattern, &value, sizeof value);
      return detail::submit(port, fill);
    }
    case 1:
      return detail::submit(
          port, collective::AllReduce{DType::i64, ReduceOp::sum, 0, 1, probe, probe}, {}, epoch_);
    default:
      return detail::submit(port, memory::Copy{DType::i64, probe, buffers_->on_host.operand()});
  }
}

void Verification::on(world_message::Verified done) {
  const std::int64_t size = parts_.formations.members(), expected = size * (size + 1) / 2;
  if (done.outcome.ok() && buffers_->on_host[0] != expected) {
    done.outcome =
        Error{Errc::library, 0,
              "the new communicator's all_reduce gives " + std::to_string(buffers_->on_host[0]) +
                  ", not " + std::to_string(expected)};
  }
  parts_.member.verified(done.round, done.outcome);
}

}  // namespace troupe::rank_process

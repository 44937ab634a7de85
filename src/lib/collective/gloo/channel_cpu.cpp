#include "lib/collective/gloo/channel_cpu.hpp"

#include "lib/collective/gloo/communicator_cpu.hpp"

namespace troupe::host::cpu {
namespace {

/// The sending end is rank 0, which listens.
class MeshChannelEnd final : public ChannelEnd {
 public:
  MeshChannelEnd(bool receives, const std::string& network)
      : receives_(receives), network_(network), communicator_(receives ? 1 : 0, 2) {}

  Result<std::vector<std::byte>> invite() override {
    if (auto listening = communicator_.listen(network_); !listening) return listening.error();
    return communicator_.contribution();
  }

  Result<void> connect(const std::vector<std::byte>& invitation) override {
    const auto connected = communicator_.connect({invitation, {}});
    if (!connected.ok()) return reason(connected.error());
    return {};
  }

  Result<void> transfer(std::byte* data, std::uint64_t bytes) override {
    try {
      communicator_.exchange({{data, bytes, receives_ ? 0 : 1, receives_}});
    } catch (const Exception& exception) {
      return reason(exception.error());
    }
    return {};
  }

  void abort() override { communicator_.abort(); }

 private:
  /// What an abort has ended tells nothing of the other end.
  [[nodiscard]] Error reason(const Error& error) const {
    if (!communicator_.ended()->load()) return error;
    return {Errc::world_reformed, 0, "the channel was given up"};
  }

  const bool receives_;
  const std::string network_;
  Communicator communicator_;
};

}  // namespace

std::shared_ptr<ChannelEnd> make_channel_end(bool receives, const std::string& network) {
  return std::make_shared<MeshChannelEnd>(receives, network);
}

}  // namespace troupe::host::cpu

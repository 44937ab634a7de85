#include "device_host/core.hpp"

#include <utility>

#include "device_host/engine/collective_half.hpp"

namespace troupe::host {

Result<std::unique_ptr<Core>> Core::make(const wire::HostOptions& options, Port port) {
  auto flight = FlightLog::open(options.flight_fd);
  if (!flight) return flight.error();
  auto batches_bell = ipc::Doorbell::create();
  if (!batches_bell) return batches_bell.error();
  auto helpers_bell = ipc::Doorbell::create();
  if (!helpers_bell) return helpers_bell.error();
  const auto& settings = port.settings();
  auto engine = make_engine(
      {settings.device, settings.memory_limit, settings.threads, settings.interface.data(),
       settings.other_hosts != 0, settings.channels, settings.reproducible != 0,
       settings.register_buffers != 0, settings.in_process != 0, settings.check_products != 0});
  if (!engine) return engine.error();
  return std::make_unique<Core>(options, std::move(port), std::move(*flight),
                                std::move(*batches_bell), std::move(*helpers_bell),
                                std::move(*engine));
}

Core::Core(const wire::HostOptions& options, Port its_port, FlightLog its_flight,
           ipc::Doorbell batches_bell, ipc::Doorbell helpers_bell,
           std::unique_ptr<Engine> its_engine)
    : port(std::move(its_port)),
      flight(std::move(its_flight)),
      engine(std::move(its_engine)),
      command_bell(UniqueFd(options.command_bell_fd)),
      rank(ipc::Socket(UniqueFd(options.socket_fd))),
      replies(port.replies(), ipc::Doorbell(UniqueFd(options.reply_bell_fd)), port.header().halts),
      life(rank, *engine, replies),
      batches(*engine, lanes, replies, flight, settings().completion, std::move(batches_bell)),
      helpers(std::move(helpers_bell)) {
  engine->collectives().measure(flight.times());
  ActivitySink sink;
  if (flight.traces_gpu())
    sink = [this](std::uint64_t ticket, std::int64_t begin, std::int64_t end, std::uint32_t stream,
                  std::string_view name) { flight.activity(ticket, begin, end, stream, name); };
  tracing = make_tracing(std::move(sink));
}

}  // namespace troupe::host

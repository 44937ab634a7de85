#include "rank/token/token_client.hpp"

#include <fcntl.h>

#include <algorithm>
#include <thread>

#include "common/core/log.hpp"
#include "rank/device/recording/recorder.hpp"
#include "rank/token/named_command.hpp"
#include "rank/token/token_execute.hpp"

namespace troupe::rank_process {

using namespace token_message;

namespace {

/// A command naming the range would wait in its submission: so does a transfer of it.
template <class Attempt>
auto patiently(CommandPort& port, Attempt attempt) {
  for (auto pause = std::chrono::microseconds(1);;
       pause = std::min(pause * 2, std::chrono::microseconds(1000))) {
    auto outcome = attempt();
    if (outcome.code() != Errc::would_block) return outcome;
    port.poll();
    std::this_thread::sleep_for(pause);
  }
}

Error differ(const char* what, std::uint64_t source, std::uint64_t destination) {
  return {Errc::invalid, 0,
          std::string(what) + ": a source of " + std::to_string(source) + " and a destination of " +
              std::to_string(destination) + " bytes"};
}

/// Under which the FdExchange has a rank's LoanBoard; slabs have serials from 1.
constexpr std::uint64_t kBoard = 0;

/// Without a board its loans are settled by messages.
void share_board(TokenParts& parts) {
  auto board = LoanBoard::create();
  if (!board.ok()) return log::warn("net", "no board of loans: {}", board.error().to_string());
  parts.fds->offer(kBoard, std::make_shared<UniqueFd>(::fcntl((*board)->fd(), F_DUPFD_CLOEXEC, 0)));
  parts.device->loans().set_board(std::move(*board));
}

/// Of the ranks of this node, once all of them have shared theirs.
void take_boards(TokenParts& parts) {
  for (int rank = 0; parts.fds && rank < parts.size; ++rank) {
    if (rank == parts.rank || !parts.fds->reaches(rank)) continue;
    auto fd = parts.fds->take(rank, kBoard);
    auto board =
        fd.ok() ? LoanBoard::map(std::move(*fd)) : Result<std::unique_ptr<LoanBoard>>(fd.error());
    if (board.ok()) parts.boards.emplace(rank, std::move(*board));
  }
}

/// Ranks of this node between which descriptors pass, in order; all of them know the same ones.
std::vector<int> neighbours(const TokenParts& parts) {
  std::vector<int> ranks;
  for (int rank = 0; rank < parts.size; ++rank) {
    if (rank == parts.rank || parts.fds->reaches(rank)) ranks.push_back(rank);
  }
  return ranks;
}

/// Without rings messages go through the session alone.
NodeRings open_rings(const TokenParts& parts) {
  if (!parts.fds) return {};
  auto rings = NodeRings::open(*parts.fds, neighbours(parts), parts.rank);
  if (rings.ok()) return std::move(*rings);
  log::warn("net", "no messages through shared memory: {}", rings.error().to_string());
  return {};
}

Future<void> failed(CommandPort& port, const Error& error) {
  return Future<void>(Result<void>(port.outcomes().report(error)));
}

}  // namespace

/// A request of the program to another rank, and its future.
class TokenClient::Asked {
 public:
  /// `in_run`: a run goes back and asks again.
  Asked(CommandPort& port, bool in_run)
      : promise_(&port.beside()), request_(port.outcomes()), repeated_(in_run) {}
  [[nodiscard]] Future<void> future() const { return promise_.future(); }
  /// Tells the program, also where it has not kept the future.
  void end(const Result<void>& outcome) {
    // Unlike a command of this rank's own, what another rank has lost leaves nothing stale here by
    // which it would be known; unless a run goes back and asks again, the program must hear of it.
    const bool lost = outcome.code() == Errc::device_lost || outcome.code() == Errc::world_reformed;
    if (!lost || repeated_) {
      promise_.resolve(request_.end(outcome));
      return request_.told();
    }
    const auto told = request_.end(
        Error{Errc::peer_lost, 0, "asked of another rank: " + outcome.error().to_string()});
    auto error = outcome.error();
    error.read = told.error().read;
    promise_.resolve(std::move(error));
    request_.told();
  }

 private:
  Promise<void> promise_;
  Outcomes::Request request_;
  const bool repeated_;
};

/// Submits to another rank's device, or to this one's, in its own program's order.
class TokenClient::Remote final : public detail::Submitter {
 public:
  Remote(std::weak_ptr<TokenClient> router, Rank rank, int owner)
      : router_(std::move(router)), rank_(rank), owner_(owner) {}
  virtual ~Remote() = default;

  Future<void> submit(const detail::CommandView& command) override {
    const auto router = router_.lock();
    if (!router)
      return Future<void>(Result<void>(Error{Errc::stopped, 0, "the runtime has ended"}));
    auto& port = router->parts_.device->port();
    if (auto* const recorder = Recorder::of(port)) {  // it would run ahead of the recorded calls
      return recorder->refuse({Errc::unsupported, 0,
                               std::string(command.info->name) +
                                   " cannot be recorded: it is for another rank's device"});
    }
    if (owner_ < 0) {
      return failed(port, {Errc::peer_lost, 0,
                           "there is no rank " + std::to_string(rank_.value) + " in the world"});
    }
    const auto lies_there = [this](const Operand& range) {
      return range.region == (kTokenRegion | static_cast<std::uint32_t>(owner_));
    };
    auto elsewhere = std::string_view();
    for (const auto& use : command.uses())
      if (!lies_there(*use.range)) elsewhere = use.name;
    for (const auto& part : command.tail)
      if (!lies_there(part.range)) elsewhere = command.info->tail;
    if (!elsewhere.empty())
      return failed(port, {Errc::invalid, 0,
                           "operand " + std::string(elsewhere) + " of a command for rank " +
                               std::to_string(owner_) + " does not lie there"});
    const auto request = execute_request(command);
    if (!request.ok()) return failed(port, request.error());
    if (owner_ == router->parts_.rank) {
      const auto record = record_of(*request, owner_);
      auto submitted = record.ok() ? submit_named(*record, owner_, *router->parts_.device, port)
                                   : Result<Future<void>>(record.error());
      return submitted.ok() ? *submitted : failed(port, submitted.error());
    }
    const auto asked = std::make_shared<Asked>(port, router->in_run_());
    router->ask(owner_, *request,
                [asked](const TransferKey&, const Result<void>& outcome) { asked->end(outcome); });
    return asked->future();
  }
  Future<void> refuse(Error error) override {
    const auto router = router_.lock();
    return router ? router->parts_.device->submitter().refuse(std::move(error))
                  : Future<void>(std::move(error));
  }

 private:
  std::weak_ptr<TokenClient> router_;
  Rank rank_;
  int owner_;
};

class TokenClient::Lease final : public detail::Held {
 public:
  Lease(std::weak_ptr<TokenClient> router, int owner, const TransferKey& key)
      : router_(std::move(router)), owner_(owner), key_(key) {}
  ~Lease() override {
    if (const auto router = router_.lock()) router->release(owner_, key_);
  }

 private:
  std::weak_ptr<TokenClient> router_;
  int owner_;
  TransferKey key_;
};

/// A buffer of another rank or, without a slab, of this one.
class TokenClient::Mapped final : public detail::Mapping {
 public:
  struct Place {
    int owner = 0;
    TransferKey key{};
    ForeignSlabs::Id slab{};
    std::uint32_t buffer = 0;  ///< of this rank
  };
  Mapped(std::weak_ptr<TokenClient> router, std::uint32_t epoch, const Place& place)
      : router_(std::move(router)), epoch_(epoch), place_(place) {}
  ~Mapped() override {
    const auto router = router_.lock();
    if (!router) return;
    if (place_.owner == router->parts_.rank)
      router->parts_.device->port().buffers().release(place_.buffer);
    else
      (void)router->tell(Unmap{place_.owner, place_.key, place_.slab});
  }
  [[nodiscard]] std::uint32_t epoch() const noexcept override { return epoch_; }
  [[nodiscard]] bool valid() const noexcept override {
    const auto router = router_.lock();
    return router && router->epoch_ == epoch_;
  }

 private:
  std::weak_ptr<TokenClient> router_;
  std::uint32_t epoch_;
  Place place_;
};

Result<std::shared_ptr<TokenClient>> TokenClient::open(Session& mpi,
                                                       std::shared_ptr<DeviceCore> device,
                                                       const Options& options, InRun in_run) {
  std::shared_ptr<TokenClient> router(new TokenClient);
  router->in_run_ = std::move(in_run);
  auto& parts = router->parts_;
  parts.rank = mpi.rank();
  parts.size = mpi.size();
  parts.path = options.path;
  parts.timeout = options.timeout;
  parts.device = std::move(device);
  parts.send = [router = router.get()](int rank, std::vector<std::byte> message) {
    router->loop_->send(rank, std::move(message));
  };
  parts.forget = [router = router.get()](int rank) { router->loop_->forget(rank); };
  auto exchange = FdExchange::open(mpi.node(), mpi.respawns().secret());
  if (!exchange.ok())
    log::warn("net", "no memory is shared directly: {}", exchange.error().to_string());
  // A rank without one takes part all the same, and says that it does not listen.
  const FdIdentity own = exchange.ok() ? (*exchange)->identity() : FdIdentity{};
  std::vector<FdIdentity> all(static_cast<std::size_t>(mpi.size()));
  mpi.everyone().all_gather(std::as_bytes(std::span(&own, 1)),
                            std::as_writable_bytes(std::span(all)));
  if (exchange.ok()) {
    parts.fds = std::move(*exchange);
    parts.fds->set_peers(std::move(all), mpi.rank(),
                         [&mpi](int rank) { return mpi.respawns().node_of(rank); });
    share_board(parts);
  }
  auto rings = open_rings(parts);
  mpi.everyone().barrier();  // every board is shared, every inbox open
  take_boards(parts);
  if (parts.fds) rings.meet(*parts.fds);
  router->loop_ = std::make_unique<NetworkLoop>(mpi);
  router->loop_->use(std::move(rings));
  router->system_.emplace(router->loop_->scheduler());
  router->actor_ =
      router->system_->spawn<TokenActor>({.name = "tokens", .mailbox_capacity = 1u << 16}, &parts);
  parts.bulk = mpi.bulk(Bulk::Receiver{
      .place = [&parts](int rank, std::uint32_t stream,
                        std::size_t bytes) { return parts.streams.place(rank, stream, bytes); },
      .arrived = [&parts](
                     int rank, std::uint32_t stream, std::byte* where,
                     std::size_t bytes) { parts.streams.arrived(rank, stream, where, bytes); }});
  router->loop_->start({.receive =
                            [router = router.get()](std::vector<std::byte> bytes) {
                              const FromNetwork message{std::move(bytes)};
                              while (router->actor_.tell(message).code() == Errc::would_block)
                                router->loop_->run_actors();
                            },
                        .under_way = [&parts] { return parts.under_way(); },
                        .look = [&port = parts.device->port()] { port.replies().attend(); },
                        .rest = [&port = parts.device->port()] { port.replies().rest(); }});
  if (options.near != nullptr) {
    if (const auto bound = router->loop_->bind(*options.near); !bound)
      log::info("net", "the thread of tokens is not bound: {}", bound.error().message);
  }
  parts.device->pools().on_slab_dropped([&parts, actor = router->actor_](std::uint32_t region) {
    const std::lock_guard lock(parts.dropped_mutex);
    parts.dropped_regions.push_back(region);
    (void)actor.tell(SlabsDropped{});  // if that does not fit, it is seen at the next offer
  });
  mpi.everyone().barrier();  // everybody listens, and has taken the boards and the inboxes
  if (parts.fds) parts.fds->withdraw(kBoard), NodeRings::withdraw(*parts.fds);
  return router;
}

void TokenClient::end() {
  if (!loop_ || actor_.ended()) return;
  loop_->leave();
  (void)actor_.ask(End{}, std::chrono::seconds(10)).wait();
  parts_.device->pools().on_slab_dropped(nullptr);
  parts_.bulk->leave();
  actor_.stop();
  actor_.wait_ended();
  system_->shutdown();
  loop_.reset();
}

template <class M>
Result<void> TokenClient::tell(const M& message) const {
  for (;;) {
    auto told = actor_.tell(message);
    if (told.code() != Errc::would_block) return told;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

Result<Operand> TokenClient::name(const GpuToken& token, DType dtype) const {
  if (token.rank < 0 || token.rank >= parts_.size) {
    return Error{
        Errc::peer_lost, 0,
        "the token is of rank " + std::to_string(token.rank) + ", which is not in the world"};
  }
  if (token.dtype != static_cast<std::uint32_t>(dtype))
    return Error{Errc::invalid, 0,
                 "the token of buffer " + std::to_string(token.buffer) + " of rank " +
                     std::to_string(token.rank) + " is not of " + std::string(to_string(dtype))};
  Operand named{.region = kTokenRegion | static_cast<std::uint32_t>(token.rank),
                .buffer = token.buffer,
                .generation = token.generation,
                .reserved = token.dtype};
  if (__builtin_mul_overflow(token.offset, size_of(dtype), &named.offset) ||
      __builtin_mul_overflow(token.length, size_of(dtype), &named.bytes)) {
    return Error{Errc::invalid, 0,
                 "a token of " + std::to_string(token.length) + " elements from " +
                     std::to_string(token.offset) + " on names no range"};
  }
  return named;
}

Future<void> TokenClient::fetch(const GpuToken& token, DType dtype, const Operand& destination) {
  auto& port = parts_.device->port();
  const auto epoch = epoch_.load();
  const auto commit = behind();
  if (auto right = port.run_guard().check("fetch", "destination", destination); !right)
    return failed(port, right.error());
  const auto named = name(token, dtype);
  if (!named.ok()) return failed(port, named.error());
  if (named->bytes != destination.bytes)
    return failed(port, differ("fetch", named->bytes, destination.bytes));
  if (token.rank == parts_.rank) {
    const auto source = port.buffers().translate(*named);
    if (!source.ok()) return failed(port, source.error());
    return detail::submit(port, memory::Copy{dtype, *source, destination});
  }
  if (auto expected = patiently(port, [&] { return port.transfers().begin_write(destination); });
      !expected)
    return failed(port, expected.error());
  const auto asked = std::make_shared<Asked>(port, in_run_());
  const auto told = tell(Fetch{epoch, commit, *named, token.rank, destination,
                               [asked](const Result<void>& outcome) { asked->end(outcome); }});
  if (!told.ok()) {
    port.transfers().end_write(destination);
    return failed(port, told.error());
  }
  return asked->future();
}

Future<void> TokenClient::put(const Operand& source, DType dtype, const GpuToken& token) {
  auto& port = parts_.device->port();
  const auto epoch = epoch_.load();
  const auto commit = behind();
  if (auto right = port.run_guard().check("put", "source", source); !right)
    return failed(port, right.error());
  const auto named = name(token, dtype);
  if (!named.ok()) return failed(port, named.error());
  if (named->bytes != source.bytes) return failed(port, differ("put", source.bytes, named->bytes));
  if (token.rank == parts_.rank) {
    const auto destination = port.buffers().translate(*named);
    if (!destination.ok()) return failed(port, destination.error());
    return detail::submit(port, memory::Copy{dtype, source, *destination});
  }
  auto& loans = parts_.device->loans();
  auto loan = patiently(port, [&] { return loans.begin(source); });
  if (!loan.ok()) return failed(port, loan.error());
  const auto asked = std::make_shared<Asked>(port, in_run_());
  const auto told = tell(Put{epoch, commit, *loan, source, *named, token.rank,
                             [asked](const Result<void>& outcome) { asked->end(outcome); }});
  if (!told.ok()) {
    loans.end(*loan);
    return failed(port, told.error());
  }
  return asked->future();
}

template <class Request>
void TokenClient::ask(int owner, Request request,
                      std::function<void(const TransferKey&, const Result<void>&)> done) {
  const auto epoch = epoch_.load();
  request.behind = behind();
  if (const auto right = RunGuard::check(); !right) return done({}, right);
  const Ask question{epoch, owner, std::move(request), std::move(done)};
  if (const auto told = tell(question); !told.ok()) question.done({}, told);
}

Future<TokenLease> TokenClient::hold(const GpuToken& token) {
  auto& port = parts_.device->port();
  if (token.dtype >= kDTypeCount)
    return Future<TokenLease>(
        port.outcomes().report({Errc::invalid, 0, "the token is of no known dtype"}));
  const auto named = name(token, static_cast<DType>(token.dtype));
  if (!named.ok()) return Future<TokenLease>(port.outcomes().report(named.error()));
  auto promise = std::make_shared<Promise<TokenLease>>();
  auto future = promise->future();
  ask(token.rank, routed::Hold{.range = *named},
      [request = std::make_shared<Outcomes::Request>(port.outcomes()), promise, token,
       router = weak_from_this()](const TransferKey& key, const Result<void>& outcome) {
        const auto told = request->end(outcome);
        if (told.ok()) {
          promise->resolve(TokenLease(token, std::make_shared<Lease>(router, token.rank, key)));
        } else {
          promise->resolve(told.error());
        }
        request->told();
      });
  return future;
}

void TokenClient::map(const GpuToken& token, DType dtype, const MapDone& done) {
  const auto epoch = epoch_.load();
  const auto commit = behind();
  const auto named = name(token, dtype);
  if (!named.ok()) return done(named.error());
  if (const auto right = RunGuard::check(); !right) return done(right.error());
  if (token.rank == parts_.rank) {
    auto& buffers = parts_.device->port().buffers();
    const auto range = buffers.translate(*named);
    const auto held = range.ok() ? buffers.hold(*range) : Result<void>(range.error());
    if (!held.ok()) return done(held.error());
    const Mapped::Place place{.owner = token.rank, .buffer = range->buffer};
    return done(
        detail::MappedRange{std::make_shared<Mapped>(weak_from_this(), epoch, place), *range});
  }
  const auto mapped = [done, router = weak_from_this(), epoch, owner = token.rank,
                       bytes = named->bytes](const TransferKey& key,
                                             const Result<MappedBuffer>& buffer) {
    if (!buffer.ok()) return done(buffer.error());
    const Mapped::Place place{.owner = owner, .key = key, .slab = buffer->slab};
    const auto mapping = std::make_shared<Mapped>(router, epoch, place);
    if (buffer->where.bytes != bytes)
      return done(Error{Errc::invalid, 0, "a buffer of another length than its token's"});
    done(detail::MappedRange{mapping, buffer->where});
  };
  const Map question{epoch, commit, token.rank, *named, mapped};
  if (const auto told = tell(question); !told.ok()) done(told.error());
}

Future<detail::MappedRange> TokenClient::map(const GpuToken& token, DType dtype) {
  const auto promise = std::make_shared<Promise<detail::MappedRange>>();
  auto future = promise->future();
  map(token, dtype,
      [promise, request = std::make_shared<Outcomes::Request>(parts_.device->port().outcomes())](
          const Result<detail::MappedRange>& mapped) {
        const auto told = request->end(mapped.ok() ? Result<void>() : mapped.error());
        told.ok() ? promise->resolve(mapped) : promise->resolve(told.error());
        request->told();
      });
  return future;
}

Future<detail::MappedRange> TokenClient::try_map(const GpuToken& token, DType dtype) {
  const auto promise = std::make_shared<Promise<detail::MappedRange>>();
  auto future = promise->future();
  map(token, dtype,
      [promise](const Result<detail::MappedRange>& mapped) { promise->resolve(mapped); });
  return future;
}

void TokenClient::release(int owner, const TransferKey& key) {
  (void)tell(token_message::Release{owner, key});
}

void TokenClient::begin_epoch(std::uint32_t epoch) {
  if (epoch_.exchange(epoch) != epoch) committed_ = 0;
  (void)tell(EpochBegun{epoch});
}

void TokenClient::committed(std::uint32_t epoch, std::uint64_t number) {
  if (epoch != epoch_) return;
  (void)tell(Committed{epoch, number});
  committed_ = number;
}

Future<void> TokenClient::flush() {
  const auto answered = std::make_shared<Promise<void>>();
  auto future = answered->future();
  const auto told = tell(Flush{answered});
  return told.ok() ? future : Future<void>(told);
}

void TokenClient::end_epoch(std::uint32_t epoch, const Error& why) {
  (void)tell(EpochEnded{epoch, why});
}

void TokenClient::set_excluded(const std::vector<std::int32_t>& ranks) {
  (void)tell(SetExcluded{ranks});
}

void TokenClient::forget(const std::vector<std::int32_t>& ranks) {
  (void)tell(Forget{ranks});
}

RemoteDevice TokenClient::device(Rank rank, int owner) {
  return RemoteDevice(rank, std::make_shared<Remote>(weak_from_this(), rank, owner));
}

}  // namespace troupe::rank_process

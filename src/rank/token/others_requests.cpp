#include "rank/token/others_requests.hpp"

#include "rank/token/named_command.hpp"
#include "rank/token/routes.hpp"
#include "rank/token/token_actor.hpp"
#include "rank/token/token_execute.hpp"

namespace troupe::rank_process {

OthersRequests::OthersRequests(Routes& routes)
    : routes_(routes), inbox_(static_cast<std::size_t>(routes.turn.parts().size)) {}

void OthersRequests::advance_all() {
  for (int rank = 0; rank < routes_.turn.parts().size; ++rank) advance(rank);
}

void OthersRequests::advance(int requester) {
  auto& box = inbox(requester);
  const auto now = routes_.turn.now();
  while (!box.empty()) {
    // Out of the box first: what is handled may end at once, and then those behind it are next.
    auto front = std::move(box.front());
    box.pop_front();
    if (attempt(requester, front.request)) continue;
    if (!front.blocked_since) front.blocked_since = now;
    if (now - *front.blocked_since < routes_.turn.parts().timeout)
      return box.push_front(std::move(front));
    refuse(requester, front.request, in_the_way(front.request));
  }
}

Error OthersRequests::in_the_way(const Request& request) const {
  const auto& turn = routes_.turn;
  const auto me = "rank " + std::to_string(turn.rank());
  return std::visit(
      [&]<class M>(const M& said) {
        std::string why;
        if (said.key.epoch > routes_.world.epoch) {
          why = me + "'s program has not turned to epoch " + std::to_string(said.key.epoch) +
                " (World::wait_active)";
        } else if constexpr (requires { said.behind; }) {
          if (said.behind > routes_.world.committed)
            why = me + "'s program has not come to the commit behind which this was asked";
        }
        if constexpr (requires { said.range; }) {
          if (why.empty())
            why = "on " + me + " another transfer of " +
                  turn.port().buffers().describe(said.range) + " is in the way for too long";
        }
        if (why.empty()) why = "on " + me + " another transfer is in the way for too long";
        return Error{Errc::timeout, 0, std::move(why)};
      },
      request);
}

void OthersRequests::answer(int to, const TransferKey& key, const Result<void>& outcome) {
  routes_.turn.send(to, routed::Answer{key, outcome});
}

void OthersRequests::refuse(int from, const Request& request, const Error& error) {
  std::visit(
      [&]<class M>(const M& said) {
        if constexpr (std::is_same_v<M, routed::Fetch>) {
          routes_.turn.send(from, routed::Over{said.key, error});
        } else if constexpr (!std::is_same_v<M, routed::Release>) {
          answer(from, said.key, error);
        }
      },
      request);
}

bool OthersRequests::is_used(const TransferKey& key) const {
  return routes_.pulls.find(key) || routes_.lendings.find(key) || holds_.contains(key);
}

bool OthersRequests::attempt(int from, const Request& request) {
  const auto& world = routes_.world;
  return std::visit(
      [&]<class M>(const M& said) {
        constexpr bool releases = std::is_same_v<M, routed::Release>;
        const auto& key = said.key;
        if (key.requester != from || (!releases && is_used(key))) {
          answer(from, key,
                 Error{Errc::invalid, 0, "a request under a number that is not its own"});
          return true;
        }
        if constexpr (releases) {
          release(key);
          return true;
        } else {
          if (key.epoch <= world.ended || key.epoch < world.epoch) {
            refuse(from, said,
                   {Errc::world_reformed, 0,
                    "rank " + std::to_string(routes_.turn.rank()) + " has left epoch " +
                        std::to_string(key.epoch) + ", in which this was asked"});
            return true;
          }
          if (key.epoch > world.epoch || said.behind > world.committed) return false;
          if (world.is_out(from)) {
            refuse(from, said, TokenWorld::gone(routes_.turn.rank()));
            return true;
          }
          return handle(from, said);
        }
      },
      request);
}

bool OthersRequests::handle(int from, const routed::Fetch& fetch) {
  auto& turn = routes_.turn;
  const auto range = named_here(fetch.range, turn.rank(), turn.port());
  auto loan = range.ok() ? turn.device().loans().begin(*range)
                         : Result<std::shared_ptr<Loan>>(range.error());
  if (loan.code() == Errc::would_block) return false;
  if (!loan.ok()) {
    refuse(from, fetch, loan.error());
    return true;
  }
  const auto lending = routes_.lendings.lend(fetch.key, from, *loan, range->bytes);
  turn.at_once_or_then((*loan)->granted, [this, lending](const Result<void>& granted) {
    if (lending->ended) return;
    if (!granted.ok()) return routes_.lendings.over(lending, granted);
    routes_.lendings.offer(lending);
  });
  return true;
}

bool OthersRequests::handle(int from, const routed::Put& put) {
  auto& turn = routes_.turn;
  auto& port = turn.port();
  const auto range = named_here(put.range, turn.rank(), port);
  auto expected = range.ok() ? port.transfers().begin_write(*range) : Result<void>(range.error());
  if (expected.ok() && put.offer.bytes != range->bytes) {
    port.transfers().end_write(*range);
    expected =
        Error{Errc::invalid, 0,
              "a put of " + std::to_string(put.offer.bytes) + " bytes into " +
                  std::to_string(range->bytes) + " bytes of " + port.buffers().describe(*range)};
  }
  if (expected.code() == Errc::would_block) return false;
  if (!expected.ok()) {
    refuse(from, put, expected.error());
    return true;
  }
  const auto pull = routes_.pulls.expect(
      put.key, from, *range,
      [this, key = put.key, from](const Result<void>& outcome) { answer(from, key, outcome); });
  routes_.pulls.offered(pull, put.offer);
  return true;
}

bool OthersRequests::handle(int from, const routed::Execute& execute) {
  auto& turn = routes_.turn;
  Guest guest(turn.port(), execute.key.epoch);
  const auto record = record_of(execute, turn.rank());
  const auto submitted = record.ok() ? submit_named(*record, turn.rank(), turn.device(), guest)
                                     : Result<Future<void>>(record.error());
  if (!submitted.ok()) {
    refuse(from, execute, submitted.error());
    return true;
  }
  if (submitted->ready() && submitted->wait().code() == Errc::would_block) return false;
  turn.then(*submitted,
            [this, from, key = execute.key](const Result<void>& done) { answer(from, key, done); });
  return true;
}

Result<Operand> OthersRequests::keep(const TransferKey& key, const Operand& named) {
  auto& port = routes_.turn.port();
  auto range = named_here(named, routes_.turn.rank(), port);
  if (!range.ok()) return range;
  if (auto held = port.buffers().hold(*range); !held) return held.error();
  holds_.emplace(key, range->buffer);
  return range;
}

bool OthersRequests::handle(int from, const routed::Hold& hold) {
  const auto kept = keep(hold.key, hold.range);
  answer(from, hold.key, kept.ok() ? Result<void>() : kept.error());
  return true;
}

bool OthersRequests::handle(int from, const routed::Map& map) {
  const auto kept = keep(map.key, map.range);
  if (!kept.ok()) {
    answer(from, map.key, kept.error());
    return true;
  }
  routes_.sharing.share(
      kept->region, [this, from, key = map.key, range = *kept](const SharedSlabs::Id& slab) {
        if (!holds_.contains(key)) return;  // let go meanwhile
        if (slab.serial != 0)
          return routes_.turn.send(
              from, routed::Located{key, {slab.serial, slab.bytes, range.offset, range.bytes}});
        release(key);
        answer(from, key, Error{Errc::unsupported, 0, "its memory cannot be shared"});
      });
  return true;
}

void OthersRequests::release(const TransferKey& key) {
  const auto it = holds_.find(key);
  if (it == holds_.end()) return;
  routes_.turn.port().buffers().release(it->second);
  holds_.erase(it);
}

void OthersRequests::exclude(int rank) {
  std::erase_if(inbox(rank), [this](const Waiting& waiting) {
    return std::visit([](const auto& said) { return said.key.epoch; }, waiting.request) <=
           routes_.world.ended;
  });
  std::vector<TransferKey> held;
  for (const auto& [key, buffer] : holds_) {
    if (key.requester == rank) held.push_back(key);
  }
  for (const auto& key : held) release(key);
}

void OthersRequests::release_all() {
  for (const auto& [key, buffer] : holds_) routes_.turn.port().buffers().release(buffer);
  holds_.clear();
}

}  // namespace troupe::rank_process

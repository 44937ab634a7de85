#include "rank/token/own_requests.hpp"

#include <algorithm>

#include "rank/token/routes.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {

using namespace token_message;

OwnRequests::OwnRequests(Routes& routes)
    : routes_(routes), outbox_(static_cast<std::size_t>(routes.turn.parts().size)) {}

TransferKey OwnRequests::next_key(std::uint32_t epoch) {
  return {routes_.turn.rank(), epoch, next_number_++};
}

void OwnRequests::send(int owner, Outgoing outgoing) {
  outbox(owner).push_back(std::move(outgoing));
  send_ready(owner);
}

void OwnRequests::send_ready(int owner) {
  for (auto& box = outbox(owner); !box.empty() && box.front().ready; box.pop_front())
    routes_.turn.send(owner, box.front().message);
}

void OwnRequests::on(Ask ask) {
  const auto key = next_key(ask.epoch);
  if (const auto error = routes_.world.obstacle(ask.epoch, ask.owner)) {
    if (ask.done) ask.done(key, *error);
    return;
  }
  if (ask.done) requests_.emplace(key, Request{ask.owner, std::move(ask.done)});
  std::visit(
      [&](auto& request) {
        request.key = key;
        send(ask.owner, {key, std::move(request)});
      },
      ask.request);
}

void OwnRequests::on(const Release& release) {
  send(release.owner, {release.key, routed::Release{release.key}});
}

void OwnRequests::on(Fetch fetch) {
  const auto key = next_key(fetch.epoch);
  const auto pull =
      routes_.pulls.expect(key, fetch.owner, fetch.destination, std::move(fetch.done));
  if (const auto error = routes_.world.obstacle(fetch.epoch, fetch.owner))
    return routes_.pulls.fail(pull, *error);
  send(fetch.owner, {key, routed::Fetch{key, fetch.behind, fetch.token}});
}

void OwnRequests::on(Put put) {
  const auto key = next_key(put.epoch);
  const auto lending = routes_.lendings.lend(key, put.owner, put.loan, put.source.bytes);
  requests_.emplace(key, Request{put.owner, [done = std::move(put.done)](
                                                const TransferKey&, const Result<void>& outcome) {
                                   done(outcome);
                                 }});
  if (const auto error = routes_.world.obstacle(put.epoch, put.owner)) return end(key, *error);
  // Takes its place among the requests now and leaves when its source is there.
  send(put.owner, {key, routed::Put{key, put.behind, put.token, {}}, false});
  routes_.turn.at_once_or_then(put.loan->granted, [this, lending](const Result<void>& outcome) {
    granted(lending, outcome);
  });
}

void OwnRequests::granted(const LendingPtr& lending, const Result<void>& outcome) {
  const auto key = lending->key;
  const auto owner = lending->destination;
  if (waiting_put(key, owner) == nullptr) return;
  if (!outcome.ok()) {
    take_back(key, owner);
    return end(key, outcome);
  }
  routes_.lendings.make_offer(lending, [this, key, owner](const Offer& offer) {
    auto* const put = waiting_put(key, owner);
    if (put == nullptr) return;
    std::get<routed::Put>(put->message).offer = offer;
    put->ready = true;
    send_ready(owner);
  });
}

OwnRequests::Outgoing* OwnRequests::waiting_put(const TransferKey& key, int owner) {
  auto& box = outbox(owner);
  const auto it = std::find_if(box.begin(), box.end(), [&key](const Outgoing& out) {
    return out.key == key && std::holds_alternative<routed::Put>(out.message);
  });
  return it == box.end() ? nullptr : &*it;
}

bool OwnRequests::take_back(const TransferKey& key, int owner) {
  const auto taken =
      std::erase_if(outbox(owner), [&key](const Outgoing& out) { return out.key == key; });
  if (taken != 0) send_ready(owner);
  return taken != 0;
}

bool OwnRequests::withdraw(const TransferKey& key, int owner, const Error& why) {
  if (!take_back(key, owner)) return false;
  end(key, why);
  return true;
}

void OwnRequests::end(const TransferKey& key, const Result<void>& outcome) {
  if (const auto lending = routes_.lendings.find(key)) routes_.lendings.end(lending);
  const auto it = requests_.find(key);
  if (it == requests_.end()) return;
  const auto done = std::move(it->second.done);
  requests_.erase(it);
  done(key, outcome);
  count_down(key);
}

void OwnRequests::on(const Flush& flush) {
  const auto left = requests_.size() + routes_.pulls.requested_by(routes_.turn.rank());
  if (left == 0) return (void)flush.answered->resolve({});
  flushings_.push_back({next_number_, left, flush.answered});
}

void OwnRequests::count_down(const TransferKey& key) {
  std::erase_if(flushings_, [&key](Flushing& flushing) {
    if (key.number >= flushing.end || --flushing.left != 0) return false;
    flushing.answered->resolve({});
    return true;
  });
}

void OwnRequests::exclude(int rank) {
  outbox(rank).clear();
  std::vector<TransferKey> asked;
  for (const auto& [key, request] : requests_) {
    if (request.owner == rank) asked.push_back(key);
  }
  for (const auto& key : asked) end(key, TokenWorld::gone(rank));
}

void OwnRequests::end_all(const Error& why) {
  while (!requests_.empty()) end(requests_.begin()->first, why);
}

}  // namespace troupe::rank_process

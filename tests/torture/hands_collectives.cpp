#include "catalogue/values.hpp"
#include "hands.hpp"

// Hands: collectives, of the world and of groups, one by one and in bundles.

namespace troupe::torture {

Future<void> Hands::submit_collective(const Operation& op, Thread& thread) {
  if (op.bundle != 0 && !thread.bundle) thread.bundle.emplace(ranks_of(op).bundle());
  auto& ranks = op.bundle != 0 ? static_cast<Collectives&>(*thread.bundle) : ranks_of(op);
  return with_type(op.dtype, [&](auto zero) -> Future<void> {
    using T = decltype(zero);
    const auto a = op.at[0].present() ? here<T>(op.at[0]) : GpuRef<T>();
    const auto b = op.at[1].present() ? here<T>(op.at[1]) : GpuRef<T>();
    const Rank peer(op.peer);
    if (op.reduce == ReduceOp::premul_sum) return submit_scaled<T>(op, ranks, a, b);
    switch (op.kind) {
      case Kind::all_reduce: return ranks.all_reduce(a, b, op.reduce);
      case Kind::reduce: return ranks.reduce(a, b, op.reduce, peer);
      case Kind::broadcast: return ranks.broadcast(a, peer);
      case Kind::broadcast_to: return ranks.broadcast(a, b, peer);
      case Kind::gather_to: return ranks.gather(a, b, peer);
      case Kind::scatter_from: return ranks.scatter(a, b, peer);
      case Kind::all_gather: return ranks.all_gather(a, b);
      case Kind::reduce_scatter: return ranks.reduce_scatter(a, b, op.reduce);
      case Kind::all_to_all: return ranks.all_to_all(a, b);
      case Kind::all_to_all_counts: return submit_with_counts<T>(op, ranks, a, b);
      case Kind::send: return ranks.send(a, peer);
      case Kind::receive: return ranks.receive(a, peer);
      default: break;
    }
    const int n = ranks.size();
    const Transfer<T> out{a, Rank((op.place + op.peer) % n)},
        in{b, Rank((op.place - op.peer + n) % n)};
    return ranks.exchange<T>({&out, 1}, {&in, 1});
  });
}

template <class T>
Future<void> Hands::submit_scaled(const Operation& op, Collectives& ranks, const GpuRef<T>& source,
                                  const GpuRef<T>& destination) {
  T value{};
  store(op.dtype, reinterpret_cast<std::byte*>(&value), op.alpha);
  const auto scalar = op.alpha_at.present() ? ScalarOf<GpuRef<T>>(here<T>(op.alpha_at))
                                            : ScalarOf<GpuRef<T>>(value);
  switch (op.kind) {
    case Kind::all_reduce: return ranks.all_reduce_scaled(scalar, source, destination);
    case Kind::reduce: return ranks.reduce_scaled(scalar, source, destination, Rank(op.peer));
    default: return ranks.reduce_scatter_scaled(scalar, source, destination);
  }
}

template <class T>
Future<void> Hands::submit_with_counts(const Operation& op, Collectives& ranks,
                                       const GpuRef<T>& source, const GpuRef<T>& destination) {
  std::vector<std::int64_t> to, from;
  for (int peer = 0; peer < ranks.size(); ++peer) {
    to.push_back(sent(op, op.place, peer));
    from.push_back(sent(op, peer, op.place));
  }
  return ranks.all_to_all<T>(source, to, destination, from);
}

void Hands::submit_bundle(Thread& thread) {
  if (thread.bundle) (void)thread.bundle->submit();
  thread.bundle.reset();
}

}  // namespace troupe::torture

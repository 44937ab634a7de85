#include <cstdio>

#include <troupe/lib/operation_table.hpp>
#include <troupe/troupe.hpp>

// A program with an operation of its own, OWN_LIBRARY says which, that asks its own device and rank
// 0 for it: see run_own_libraries.sh.

namespace troupe::test {
namespace {

#if OWN_LIBRARY != 0
struct Own {
  static constexpr std::string_view kName = OWN_LIBRARY == 3 ? "vector.own" : "own.operation";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputes;

  OpDType dtype;
  Operand x;
#if OWN_LIBRARY == 2
  std::int64_t n = 0;
#endif

  static constexpr std::array kOperands{update("x", &Own::x)};
  Result<void> check() const {
    return {};
  }
};
const Library kOwn{tables_of(List<Own>{})};
#endif

int ask(Runtime& runtime) {
  auto& world = runtime.world();
  const auto x = runtime.device().alloc<double>(4);
  const auto tokens = world.gather_values(x.token());
#if OWN_LIBRARY != 0
  const auto tell = [&](const Result<void>& answer) {
    std::printf("rank %d: %s\n", world.rank(),
                answer.ok() ? "done" : answer.error().to_string().c_str());
  };
  Own op;
  op.dtype = DType::f64;
  op.x = x.operand();
  tell(detail::submit(runtime.device().submitter(), op).wait());
  tell(runtime.device().fill(x, 1.0).wait());
  if (world.rank() != 0) {
    op.x = RemoteRef<double>(tokens[0]).operand();
    tell(detail::submit(world.device(Rank(0)).submitter(), op).wait());
  }
#endif
  world.barrier();
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::test

int main(int argc, char** argv) {
  return troupe::run_program(argc, argv, {"troupe-own", "Asks rank 0 for an operation.", {}},
                             troupe::test::ask);
}

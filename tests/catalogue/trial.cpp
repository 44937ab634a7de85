#include "catalogue/trial.hpp"

#include <troupe/sequence.hpp>

namespace troupe::catalogue {
namespace {

Future<void> in_turn(std::vector<Future<void>> futures) {
  for (const auto& future : futures) co_await future;
}

Future<void> unless_unsupported(Future<void> future, std::shared_ptr<bool> refused, bool has_to) {
  try {
    co_await future;
  } catch (const Exception& error) {
    if (error.code() != Errc::unsupported) throw;
    *refused = true;
    co_return;
  }
  if (has_to) throw Exception({Errc::internal, 0, "a call is not refused that has to be"});
}

}  // namespace

Future<void> Trial::over() const {
  return in_turn(futures_);
}

void Trial::call_or_record(const std::function<Future<void>()>& submit) {
  if (flip() || !records_) return call(submit());
  const auto sequence = device_.record([&] { (void)submit(); });
  for (auto left = random.between(1, 3); left > 0; --left) call(sequence.run());
}

std::shared_ptr<const bool> Trial::call_or_refuse(const Future<void>& future, bool has_to) {
  auto refused = std::make_shared<bool>(false);
  call(unless_unsupported(future, refused, has_to));
  return refused;
}

std::string Trial::judge() const {
  for (const auto& check : checks_) {
    if (auto wrong = check(); !wrong.empty()) return wrong;
  }
  return {};
}

std::string Trial::difference(const std::vector<Wide>& actual, const std::vector<Wide>& expected,
                              double tolerance, double relative) {
  if (actual.size() != expected.size())
    return fmt::format("there are {} elements, not {}", actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto most = tolerance + relative * std::abs(expected[i]);
    if (std::abs(actual[i] - expected[i]) <= most) continue;
    return fmt::format("element {} is {} + {}i, not {} + {}i within {}", i, actual[i].real(),
                       actual[i].imag(), expected[i].real(), expected[i].imag(), most);
  }
  return {};
}

}  // namespace troupe::catalogue

#include "trial.hpp"

#include "account.hpp"

namespace troupe::torture {
namespace {

Future<void> in_turn(std::vector<Future<void>> futures) {
  for (const auto& future : futures) co_await future;
}

}  // namespace

Future<void> Trial::over() const {
  return in_turn(futures_);
}

std::string Trial::judge() const {
  for (const auto& check : checks_) {
    if (auto wrong = check(); !wrong.empty()) return wrong;
  }
  return {};
}

std::string Trial::difference(const std::vector<Wide>& actual, const std::vector<Wide>& expected,
                              double tolerance) {
  if (actual.size() != expected.size())
    return fmt::format("there are {} elements, not {}", actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(actual[i] - expected[i]) <= tolerance) continue;
    return fmt::format("element {} is {} + {}i, not {} + {}i within {}", i, actual[i].real(),
                       actual[i].imag(), expected[i].real(), expected[i].imag(), tolerance);
  }
  return {};
}

Calls::Calls(Device& device) {
  for (auto* add : {add_level1, add_level2, add_level3, add_lists, add_matmul, add_linear,
                    add_orthogonal, add_eigen, add_transforms, add_random, add_primitives,
                    add_sparse, add_elements, add_sparse_forms, add_direct, add_tensors})
    add(*this);
  for (const auto& info : calls()) {
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!info.dtypes.has(dtype)) continue;
      const auto make = makes_.find({info.name, dtype});
      if (make == makes_.end())
        throw Finding(fmt::format("nobody makes {} {}", info.name, to_string(dtype)));
      if (!info.may_be_missing) continue;
      Trial trial(device, 1);
      make->second(trial);
      const auto outcome = trial.over().wait();
      if (outcome.code() == Errc::unsupported) {
        missing_.insert(make->first);
        continue;
      }
      if (!outcome.ok()) throw Exception(outcome.error());
      if (const auto wrong = trial.judge(); !wrong.empty())
        throw Finding(fmt::format("{} {}, in quiet: {}", info.name, to_string(dtype), wrong));
    }
  }
  (void)device.take_error();  // what is not supported was looked at
}

std::shared_ptr<Trial> Calls::begin(const Operation& op, Device& device) const {
  const std::pair key(call_of(op).name, op.dtype);
  if (missing_.contains(key)) return nullptr;
  auto trial = std::make_shared<Trial>(device, op.data);
  makes_.at(key)(*trial);
  return trial;
}

}  // namespace troupe::torture

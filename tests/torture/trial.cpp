#include "trial.hpp"

#include <troupe/sequence.hpp>

namespace troupe::torture {
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
  if (flip()) return call(submit());
  const auto sequence = device_->record([&] { (void)submit(); });
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
  const std::initializer_list<std::pair<Kind, void (*)(Calls&)>> by_library = {
      {Kind::blas_call, add_level1},
      {Kind::blas_call, add_level2},
      {Kind::blas_call, add_level3},
      {Kind::blas_call, add_lists},
      {Kind::blas_call, add_matmul},
      {Kind::solver_call, add_linear},
      {Kind::solver_call, add_orthogonal},
      {Kind::solver_call, add_eigen},
      {Kind::fft_call, add_transforms},
      {Kind::rng_call, add_random},
      {Kind::primitives_call, add_primitives},
      {Kind::sparse_call, add_sparse},
      {Kind::primitives_call, add_elements},
      {Kind::sparse_call, add_sparse_forms},
      {Kind::direct_call, add_direct},
      {Kind::tensor_call, add_tensors},
      {Kind::dnn_call, add_layers},
      {Kind::dnn_call, add_networks},
      {Kind::outside_call, add_outside}};
  for (const auto& [kind, add] : by_library) {
    adding_ = kind;
    add(*this);
  }
  std::map<Kind, bool> libraries;  // whether they are there
  for (const auto& info : calls()) {
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!info.dtypes.has(dtype)) continue;
      const auto make = makes_.find({info.kind, info.name, dtype});
      if (make == makes_.end())
        throw Finding(fmt::format("nobody makes {} {}", info.name, to_string(dtype)));
      if (info.missing == Missing::never) continue;
      const auto known = libraries.find(info.kind);
      if (info.missing == Missing::library && known != libraries.end()) {
        if (!known->second) missing_.insert(make->first);
        continue;
      }
      Trial trial(device, 1);
      make->second(trial);
      const auto outcome = trial.over().wait();
      if (info.missing == Missing::library)
        libraries[info.kind] = outcome.code() != Errc::unsupported;
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
  const Key key(op.kind, call_of(op).name, op.dtype);
  if (missing_.contains(key)) return nullptr;
  auto trial = std::make_shared<Trial>(device, op.data);
  makes_.at(key)(*trial);
  return trial;
}

}  // namespace troupe::torture

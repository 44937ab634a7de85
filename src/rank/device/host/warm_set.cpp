#include "rank/device/host/warm_set.hpp"

#include <algorithm>

namespace troupe::rank_process {

bool WarmSet::add_kind(std::uint64_t key, Blob record) {
  const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                  [key](const auto& kind) { return kind.first == key; });
  if (known != kinds_.end()) {
    kinds_.splice(kinds_.begin(), kinds_, known);
    return false;
  }
  kinds_.emplace_front(key, std::move(record));
  if (kinds_.size() > kMaxKinds) kinds_.pop_back();
  return true;
}

bool WarmSet::add_plan(const std::string& library, Blob plan) {
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& one) {
    return one.first == library && one.second == plan;
  });
  if (known != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, known);
    return false;
  }
  if (plan.size() > kMaxPlanBytes) return false;
  plan_bytes_ += plan.size();
  plans_.emplace_front(library, std::move(plan));
  while (plans_.size() > kMaxPlans || plan_bytes_ > kMaxPlanBytes) {
    plan_bytes_ -= plans_.back().second.size();
    plans_.pop_back();
  }
  return true;
}

void WarmSet::clear_kinds() {
  kinds_.clear();
  plans_.clear();
  plan_bytes_ = 0;
}

std::vector<WarmSet::Blob> WarmSet::kinds() const {
  std::vector<Blob> records;
  for (const auto& [key, record] : kinds_) records.push_back(record);
  return records;
}

std::vector<wire::to_host::AdoptPlans::Plan> WarmSet::plans() const {
  std::vector<wire::to_host::AdoptPlans::Plan> all;
  for (const auto& [library, plan] : plans_) all.push_back({library, plan});
  return all;
}

}  // namespace troupe::rank_process

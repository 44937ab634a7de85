#include "lib/sparse/common/checks.hpp"

/// Whether indices are what operations demand of them.
namespace troupe::sparse {
namespace {

constexpr std::uint32_t kDemands =
    IndexRule::offsets | IndexRule::ordered | IndexRule::padding | IndexRule::sorted;

std::string_view text_of(const Examine::Name& name) {
  return {name.data(),
          static_cast<std::size_t>(std::find(name.begin(), name.end(), '\0') - name.begin())};
}
Examine::Name name_of(std::string_view text) {
  Examine::Name name{};
  std::copy_n(text.begin(), std::min(text.size(), name.size() - 1), name.begin());
  return name;
}

}  // namespace

Result<void> Examine::check() const {
  const bool of_offsets = (demands & IndexRule::offsets) != 0;
  const bool is_sorted = (demands & IndexRule::sorted) != 0;
  auto checks = checker(*this);
  checks.require((demands & ~kDemands) == 0, "an unknown demand")
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(step >= 1, "offsets are multiples of 1 at least")
      .require(outer_length >= 0 && outer_bound >= 0 && inner_length >= 0 && inner_bound >= 0,
               "a negative extent")
      .require(!of_offsets || outer_length >= 1, "there are no offsets")
      .require(!of_offsets || (demands & IndexRule::ordered) == 0, "offsets are no places")
      .require(!is_sorted || of_offsets || outer_length == inner_length,
               "there are not as many rows as places in them");
  if (!checks.ok()) return checks.result();
  if (outer_length > 0) checks.holds("outer", outer, outer_length);
  if (inner_length > 0) checks.holds("inner", inner, inner_length);
  return checks.holds("found", found, 1, sizeof(Finding)).result();
}

std::string Examine::describe(const Finding& finding) const {
  const auto element = [&](const Name& name) {
    return std::string(text_of(name)) + "[" + std::to_string(finding.place) + "] is " +
           std::to_string(finding.value);
  };
  const auto below = [](std::int64_t bound) { return "[0, " + std::to_string(bound) + ")"; };
  const bool by_column = text_of(outer_name).starts_with("column");
  switch (finding.fault) {
    case Fault::none: return {};
    case Fault::wrong_begin: return element(outer_name) + ", not 0";
    case Fault::outer_outside: return element(outer_name) + ", outside of " + below(outer_bound);
    case Fault::descends:
      return element(outer_name) + ", below its predecessor " + std::to_string(finding.before);
    case Fault::wrong_end: return element(outer_name) + ", not " + std::to_string(outer_bound);
    case Fault::no_multiple:
      return element(outer_name) + ", no multiple of " + std::to_string(step);
    case Fault::inner_outside:
      return element(inner_name) +
             ((demands & IndexRule::padding) != 0 ? ", neither -1 nor in " : ", outside of ") +
             below(inner_bound);
    case Fault::not_sorted:
      return element(inner_name) + ", not above its predecessor " + std::to_string(finding.before) +
             " in the same " + (by_column ? "column" : "row");
    default: return "an index is wrong";
  }
}

Result<void> Examine::verdict(const std::byte* cell) const {
  Finding finding;
  std::memcpy(&finding, cell, sizeof finding);
  if (finding.fault == Fault::none || on_failure == OnFailure::report) return {};
  return Error{Errc::invalid, 0, std::string(kName) + ": " + describe(finding)};
}

Examine examination_of(const IndexRule& rule, OnFailure on_failure) {
  Examine op;
  op.dtype = rule.dtype, op.demands = rule.demands, op.on_failure = on_failure;
  op.step = rule.step;
  op.outer_length = rule.outer.length, op.outer_bound = rule.outer.bound;
  op.inner_length = rule.inner.length, op.inner_bound = rule.inner.bound;
  op.outer_name = name_of(rule.outer.name), op.inner_name = name_of(rule.inner.name);
  op.outer = rule.outer.range, op.inner = rule.inner.range;
  return op;
}

IndexRule rule_of(const Form& form, const Operand& outer, const Operand& inner, bool is_sorted) {
  const auto extent = std::max<std::int64_t>(form.block, 1);
  IndexRule rule;
  rule.dtype = form.index_dtype;
  rule.outer = {form.outer_name(), outer, form.outer_length(), form.inner_length()};
  rule.inner = {form.inner_name(), inner, form.inner_length(), form.columns};
  rule.demands = IndexRule::offsets | (is_sorted ? IndexRule::sorted : 0u);
  switch (form.format) {
    case Format::csr: break;
    case Format::csc: rule.inner.bound = form.rows; break;
    case Format::coo:
      rule.demands = IndexRule::ordered | (is_sorted ? IndexRule::sorted : 0u);
      rule.outer.bound = form.rows;
      break;
    case Format::bsr: rule.inner.bound = form.columns / extent; break;
    case Format::sell:
      rule.demands = IndexRule::offsets | IndexRule::padding;
      rule.step = form.block;
      break;
    case Format::blocked_ell:
      rule.demands = IndexRule::padding;
      rule.inner.bound = form.columns / extent;
      break;
  }
  return rule;
}

}  // namespace troupe::sparse

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include <troupe/lib/tensor.hpp>

namespace troupe::tensor {
namespace {

constexpr std::uint64_t kRounded = 256;  ///< bytes that each sum in the scratch memory begins at

Error refusal(const std::string& what) {
  return {Errc::invalid, 0, "tensor.einsum: " + what};
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// "mk,kn->mn": the letters of each operand, and of the output.
struct Expression {
  std::vector<std::string> operands;
  std::string output;

  static Result<Expression> read(std::string_view subscripts);
  /// How many operands have the letter.
  [[nodiscard]] std::size_t users(char letter) const {
    return static_cast<std::size_t>(std::count_if(
        operands.begin(), operands.end(),
        [&](const std::string& one) { return one.find(letter) != std::string::npos; }));
  }
  /// Whether one operand alone has the letter, and the output does not.
  [[nodiscard]] bool is_lone(char letter) const {
    return users(letter) == 1 && output.find(letter) == std::string::npos;
  }
  [[nodiscard]] bool has_lone(const std::string& operand) const {
    return std::any_of(operand.begin(), operand.end(), [&](char one) { return is_lone(one); });
  }
  /// What is left of an operand's letters, each once, when the lone ones are summed up.
  [[nodiscard]] std::string kept(const std::string& operand) const {
    std::string kept;
    for (const char letter : operand) {
      if (!is_lone(letter) && kept.find(letter) == std::string::npos) kept += letter;
    }
    return kept;
  }
};

Result<Expression> Expression::read(std::string_view subscripts) {
  std::string text(subscripts);
  std::erase(text, ' ');
  if (text.find('.') != std::string::npos) return refusal("there is no ellipsis");
  const auto arrow = text.find("->");
  Expression expression;
  expression.operands.emplace_back();
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      expression.operands.emplace_back();
    } else if (is_letter(c)) {
      expression.operands.back() += c;
    } else {
      return refusal(std::string("'") + c + "' is no letter");
    }
  }
  std::string all;
  for (const auto& one : expression.operands) all += one;
  if (arrow == std::string::npos) {
    std::sort(all.begin(), all.end());
    for (const char c : all) {
      if (std::count(all.begin(), all.end(), c) == 1) expression.output += c;
    }
    return expression;
  }
  expression.output = text.substr(arrow + 2);
  for (const char c : expression.output) {
    if (!is_letter(c)) return refusal(std::string("'") + c + "' is no letter");
    if (all.find(c) == std::string::npos)
      return refusal(std::string("no operand has the output's '") + c + "'");
    if (std::count(expression.output.begin(), expression.output.end(), c) > 1)
      return refusal(std::string("the output has '") + c + "' twice");
  }
  return expression;
}

/// Sums the letters of an operand that only it has, into the first free bytes of the scratch
/// memory; the operand is what has been summed up from then on.
Result<Reduce> sum_lone(Term& operand, const std::string& letters, const std::string& kept,
                        const Operand& scratch, std::uint64_t& used) {
  Term sum;
  sum.dtype = operand.dtype, sum.modes = Modes(kept);
  std::int64_t elements = 1;
  for (const char letter : kept) {
    const auto extent = operand.extents.value[letters.find(letter)];
    sum.extents.value[sum.extents.count++] = extent;
    if (extent < 1 || __builtin_mul_overflow(elements, extent, &elements))
      return refusal("an extent is not positive, or too large");
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(elements), size_of(sum.dtype), &bytes) ||
      bytes > scratch.bytes || used > scratch.bytes - bytes)
    return refusal("'" + letters + "' is summed to '" + kept + "' first, which needs " +
                   std::to_string(elements) + " elements of scratch memory");
  sum.data = scratch, sum.data.offset += used, sum.data.bytes = bytes;
  used = (used + bytes + kRounded - 1) / kRounded * kRounded;
  auto reduced = reduction(operand, sum, sum);
  operand = sum;
  return reduced;
}

/// As the last step of an expression, which adds nothing to its result.
template <class Op>
Result<Einsum> finished(std::vector<Reduce> sums, Result<Op> last) {
  if (!last.ok()) return last.error();
  if constexpr (std::is_same_v<Op, ContractTrinary>)
    last->d = {};
  else if constexpr (!std::is_same_v<Op, Permute>)
    last->c = {};
  return Einsum{std::move(sums), *last};
}

}  // namespace

Result<Einsum> einsum_of(std::string_view subscripts, std::span<const Term> operands,
                         const Term& output, const Operand& scratch) {
  const auto read = Expression::read(subscripts);
  if (!read.ok()) return read.error();
  const auto& expression = *read;
  const auto count = expression.operands.size();
  if (count != operands.size())
    return refusal("'" + std::string(subscripts) + "' has " + std::to_string(count) +
                   " operands, the call " + std::to_string(operands.size()));
  if (count > 3) return refusal("more than three operands");
  std::vector<Term> terms(operands.begin(), operands.end());
  for (std::size_t i = 0; i < count; ++i) terms[i].modes = Modes(expression.operands[i]);
  Term result = output;
  result.modes = Modes(expression.output);

  if (count == 1) {
    return expression.has_lone(expression.operands[0])
               ? finished({}, reduction(terms[0], result, result))
               : finished({}, permutation(terms[0], result));
  }
  std::vector<Reduce> sums;
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& letters = expression.operands[i];
    if (!expression.has_lone(letters)) continue;
    if (letters.size() != terms[i].extents.count)
      return refusal("'" + letters + "' has another number of letters than its operand dimensions");
    auto sum = sum_lone(terms[i], letters, expression.kept(letters), scratch, used);
    if (!sum.ok()) return sum.error();
    sum->c = {};
    sums.push_back(*sum);
  }
  if (count == 2) return finished(std::move(sums), contraction(terms[0], terms[1], result, result));
  return finished(std::move(sums), contraction(terms[0], terms[1], terms[2], result, result));
}

}  // namespace troupe::tensor

#include <algorithm>
#include <optional>
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

/// What stands for the modes of an ellipsis, of which the last one is the first: no letter.
constexpr char kFirstOfEllipsis = 1;
constexpr char kEllipsis = '.';  ///< of any number of modes, while an expression is read

/// Letters as they were written.
std::string shown(const std::string& letters) {
  std::string text;
  for (const char c : letters) {
    if (is_letter(c))
      text += c;
    else if (!text.ends_with("..."))
      text += "...";
  }
  return text;
}

/// "mk,kn->mn": the letters of each operand, and of the output. An ellipsis becomes a letter for
/// each mode that it stands for.
struct Expression {
  std::vector<std::string> operands;
  std::string output;
  bool is_explicit = false;  ///< it has an output

  static Result<Expression> read(std::string_view subscripts);
  /// Replaces the ellipses by as many modes as these operands have there.
  Result<void> spread(std::span<const Term> terms);
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

/// The letters of one operand or of the output.
Result<std::string> letters_of(std::string_view text) {
  std::string letters;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_letter(text[i])) {
      letters += text[i];
      continue;
    }
    if (text[i] != '.') return refusal(std::string("'") + text[i] + "' is no letter");
    if (text.substr(i, 3) != "..." || letters.find(kEllipsis) != std::string::npos)
      return refusal("an ellipsis is three dots, once for each operand and the output");
    letters += kEllipsis;
    i += 2;
  }
  return letters;
}

Result<Expression> Expression::read(std::string_view subscripts) {
  std::string text(subscripts);
  std::erase(text, ' ');
  const auto arrow = text.find("->");
  Expression expression;
  expression.is_explicit = arrow != std::string::npos;
  std::string all;
  const auto inputs = text.substr(0, arrow);
  for (std::size_t begin = 0; begin <= inputs.size();) {
    const auto end = std::min(inputs.find(',', begin), inputs.size());
    auto letters = letters_of(std::string_view(inputs).substr(begin, end - begin));
    if (!letters.ok()) return letters.error();
    all += *letters;
    expression.operands.push_back(std::move(*letters));
    begin = end + 1;
  }
  if (!expression.is_explicit) {
    std::erase(all, kEllipsis);
    std::sort(all.begin(), all.end());
    expression.output = kEllipsis;
    for (const char c : all) {
      if (std::count(all.begin(), all.end(), c) == 1) expression.output += c;
    }
    return expression;
  }
  auto output = letters_of(std::string_view(text).substr(arrow + 2));
  if (!output.ok()) return output.error();
  expression.output = std::move(*output);
  for (const char c : expression.output) {
    if (c == kEllipsis) continue;
    if (all.find(c) == std::string::npos)
      return refusal(std::string("no operand has the output's '") + c + "'");
    if (std::count(expression.output.begin(), expression.output.end(), c) > 1)
      return refusal(std::string("the output has '") + c + "' twice");
  }
  return expression;
}

Result<void> Expression::spread(std::span<const Term> terms) {
  const auto replace = [](std::string& letters, std::size_t modes) {
    const auto at = letters.find(kEllipsis);
    if (at == std::string::npos) return;
    std::string all;
    for (auto i = modes; i-- > 0;) all += static_cast<char>(kFirstOfEllipsis + i);
    letters.replace(at, 1, all);
  };
  std::size_t most = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    auto& letters = operands[i];
    if (letters.find(kEllipsis) == std::string::npos) continue;
    const auto dimensions = std::min(terms[i].extents.count, kMaxModes), named = letters.size() - 1;
    if (dimensions < named)
      return refusal("'" + shown(letters) + "' has more letters than its operand dimensions");
    replace(letters, dimensions - named);
    most = std::max(most, dimensions - named);
  }
  if (most > 0 && output.find(kEllipsis) == std::string::npos)
    return refusal("an operand's ellipsis stands for dimensions, and the output has none");
  replace(output, most);
  return {};
}

/// Takes those modes from an operand along which it is one element and others are not: it is
/// repeated along them, or is not there at all.
void take_repeated(Expression& expression, std::span<Term> terms) {
  const auto without = [](Numbers& numbers, std::size_t at) {
    std::copy(numbers.value.begin() + static_cast<std::ptrdiff_t>(at) + 1, numbers.value.end(),
              numbers.value.begin() + static_cast<std::ptrdiff_t>(at));
    --numbers.count;
  };
  const auto is_longer = [&](char letter) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const auto at = expression.operands[i].find(letter);
      if (at != std::string::npos && terms[i].extents.value[at] != 1) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    auto& letters = expression.operands[i];
    auto& term = terms[i];
    for (auto at = letters.size(); at-- > 0;) {
      if (term.extents.value[at] != 1 || !is_longer(letters[at]) ||
          std::count(letters.begin(), letters.end(), letters[at]) > 1)
        continue;
      letters.erase(at, 1);
      without(term.extents, at);
      if (term.strides.count > 0) without(term.strides, at);
    }
  }
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
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
      return refusal("an extent is negative, or too large");
  }
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(elements), size_of(sum.dtype), &bytes) ||
      bytes > scratch.bytes || used > scratch.bytes - bytes)
    return refusal("'" + shown(letters) + "' is summed to '" + shown(kept) +
                   "' first, which needs " + std::to_string(elements) +
                   " elements of scratch memory");
  // A sum without elements needs no scratch memory, but must name some buffer: the operand's.
  sum.data = elements == 0 ? operand.data : scratch;
  if (elements > 0) sum.data.offset += used;
  sum.data.bytes = bytes;
  used = (used + bytes + kRounded - 1) / kRounded * kRounded;
  auto reduced = reduction(operand, sum, sum);
  operand = sum;
  return reduced;
}

/// A letter that is summed over no elements; nothing if there is none.
std::optional<char> empty_sum(const Expression& expression, std::span<const Term> terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto& letters = expression.operands[i];
    for (std::size_t at = 0; at < letters.size(); ++at) {
      if (terms[i].extents.value[at] == 0 &&
          expression.output.find(letters[at]) == std::string::npos)
        return letters[at];
    }
  }
  return std::nullopt;
}

/// The sum over the empty `letter` for each element of the result: 0. It takes the place of the
/// steps of an expression that has such a letter, as in NumPy; they would multiply the 0 by what
/// the other operands have been summed up to, which may be NaN.
Result<Reduce> sum_of_nothing(char letter, const Expression& expression, const Term& operand,
                              const Term& result) {
  Term nothing;
  nothing.dtype = operand.dtype, nothing.data = operand.data;
  nothing.modes = Modes(expression.output + letter);
  nothing.extents = result.extents;
  nothing.extents.value[nothing.extents.count++] = 0;
  return reduction(nothing, result, result);
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
  auto read = Expression::read(subscripts);
  if (!read.ok()) return read.error();
  auto& expression = *read;
  const auto count = expression.operands.size();
  if (count != operands.size())
    return refusal("'" + std::string(subscripts) + "' has " + std::to_string(count) +
                   " operands, the call " + std::to_string(operands.size()));
  if (count > 3) return refusal("more than three operands");
  if (auto spread = expression.spread(operands); !spread.ok()) return spread.error();
  std::vector<Term> terms(operands.begin(), operands.end());
  for (std::size_t i = 0; i < count; ++i) {
    const auto& letters = expression.operands[i];
    const auto dimensions = terms[i].extents.count, strides = terms[i].strides.count;
    if (dimensions > kMaxModes || (strides > 0 && strides != dimensions))
      return refusal("an operand has more than 16 dimensions, or not as many strides as extents");
    if (letters.size() != dimensions)
      return refusal("'" + shown(letters) + "' has another number of letters than its operand " +
                     "dimensions");
  }
  take_repeated(expression, terms);
  for (std::size_t i = 0; i < count; ++i) terms[i].modes = Modes(expression.operands[i]);
  Term result = output;
  result.modes = Modes(expression.output);

  if (count == 1) {
    return expression.has_lone(expression.operands[0])
               ? finished({}, reduction(terms[0], result, result))
               : finished({}, permutation(terms[0], result));
  }
  const auto letter = empty_sum(expression, terms);
  std::vector<Reduce> sums;
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& letters = expression.operands[i];
    if (!expression.has_lone(letters)) continue;
    auto sum = sum_lone(terms[i], letters, expression.kept(letters), scratch, used);
    if (!sum.ok()) return sum.error();
    sum->c = {};
    sums.push_back(*sum);
  }
  auto steps =
      count == 2
          ? finished(std::move(sums), contraction(terms[0], terms[1], result, result))
          : finished(std::move(sums), contraction(terms[0], terms[1], terms[2], result, result));
  if (!steps.ok() || !letter || result.extents.count == kMaxModes) return steps;
  return finished({}, sum_of_nothing(*letter, expression, terms[0], result));
}

}  // namespace troupe::tensor

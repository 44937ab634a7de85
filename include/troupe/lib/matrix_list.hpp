#pragma once

#include <algorithm>
#include <vector>

#include <troupe/lib/matrix.hpp>
#include <troupe/lib/operation.hpp>

/// Lists of matrices of one shape, each a buffer or a part of one.
namespace troupe::detail {

template <class M>
bool same_shapes(const std::vector<M>& list) {
  return std::all_of(list.begin(), list.end(), [&](const M& one) {
    return one.rows == list[0].rows && one.columns == list[0].columns &&
           one.leading == list[0].leading;
  });
}
/// Appends a list to a record's tail; `tag` is the number of the list.
template <class M>
void append(std::vector<TailOperand>& tail, const std::vector<M>& list, std::uint32_t tag,
            Access access) {
  for (const auto& one : list) tail.push_back({one.buffer.operand(), tag, access});
}

}  // namespace troupe::detail

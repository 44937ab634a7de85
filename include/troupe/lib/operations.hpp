#pragma once

#include <troupe/lib/blas.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/lib/vector.hpp>

namespace troupe {

template <class... Ops>
struct OperationList {
  static constexpr std::size_t kSize = sizeof...(Ops);
};

/// Every operation there is. Adding one = its struct, its line here, one function per engine, its
/// line in the conformance tests.
using Operations = OperationList<
    memory::Fill, memory::Copy, memory::Nop, memory::Fence, memory::Fault, vector::Multiply,
    vector::Divide, vector::Axpby, blas::Axpy, blas::Dot, blas::Nrm2, blas::Scal, blas::Copy,
    blas::Gemv, blas::Gemm, sparse::Spmv, sparse::SpmvSell, sparse::Gather, rng::Uniform,
    rng::Normal, collective::AllReduce, collective::Reduce, collective::Broadcast,
    collective::AllGather, collective::ReduceScatter, collective::AllToAll, collective::Exchange>;

namespace detail {
template <class... Ops>
constexpr bool opcodes_unique(OperationList<Ops...>) {
  const std::uint32_t codes[] = {opcode_of<Ops>...};
  for (std::size_t i = 0; i < sizeof...(Ops); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (codes[i] == codes[j]) return false;
    }
  }
  return true;
}
template <class... Ops>
constexpr bool plain_bytes(OperationList<Ops...>) {
  return (... && (Operation<Ops> && alignof(Ops) == 8 && sizeof(Ops) % 8 == 0));
}
static_assert(opcodes_unique(Operations{}), "two operations hash to the same opcode: rename one");
static_assert(plain_bytes(Operations{}), "an operation is not plain bytes");
}  // namespace detail

}  // namespace troupe

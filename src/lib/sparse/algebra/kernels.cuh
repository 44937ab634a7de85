#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"
#include "lib/sparse/transpose/kernels.cuh"

/// Sums of CSR matrices and products of known structure, in device memory. T is float, double,
/// float2 or double2, I std::int32_t or std::int64_t. The same inputs give the same bits in every
/// run.
namespace troupe::host::cuda::kernels {

/// Where the elements of A + B go. The columns within a row of A and B ascend.
template <class I>
struct SumStructure {
  Structure<I> a, b;
  I* new_before = nullptr;  ///< how many elements of B before this one A has none for; to work in
  I* row_begin = nullptr;
  std::int64_t* count = nullptr;  ///< nonzeros of the sum
};
/// alpha A + beta B, with room for `capacity` elements.
template <class T, class I>
struct SparseSum {
  SumStructure<I> structure;
  const T *a_value = nullptr, *b_value = nullptr;
  ScalarValue<T> alpha, beta;
  std::int64_t capacity = 0;
  I* column = nullptr;
  T* value = nullptr;
};
/// A product whose structure is known: the columns within a row of C ascend.
template <class T, class I>
struct KnownProduct {
  Structure<I> a, b, c;
  const T *a_value = nullptr, *b_value = nullptr;
  T* value = nullptr;  ///< of C
};

/// Loads the kernels onto the current device.
cudaError_t preload_algebra();

/// How much device memory count_sum() works in, beside `new_before`, which has an element more than
/// B. `nonzeros`: of B.
template <class I>
cudaError_t sum_bytes(std::int64_t nonzeros, std::size_t* bytes);
/// Queues what fills in new_before, row_begin and count. `memory`: sum_bytes() of it.
template <class I>
cudaError_t count_sum(const Launch& launch, const SumStructure<I>& sum, void* memory,
                      std::size_t bytes);
/// Queues what fills in columns and values, if there is room for them and I can count them. After
/// count_sum().
template <class T, class I>
cudaError_t fill_sum(const Launch& launch, const SparseSum<T, I>& sum);

/// Queues the product.
template <class T, class I>
cudaError_t multiply_into(const Launch& launch, const KnownProduct<T, I>& product);

}  // namespace troupe::host::cuda::kernels

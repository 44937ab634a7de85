#pragma once

#include <troupe/lib/dnn/graph.hpp>

/// Products of matrices.
namespace troupe::dnn {

/// Adds a node that multiplies matrices:
///
///     c[batch..., i, j] = sum over l of a[batch..., i, l] b[batch..., l, j]
///
/// a, b and c have as many dimensions, 3 or more: the last two are rows and columns, and of a batch
/// dimension a or b may have 1, which stands for all indices of the other (broadcast). Strides say
/// whether a matrix lies by rows or by columns. c lies by rows. Pointwise nodes behind a product
/// are computed with it: a bias is an input of extents 1..., 1, columns.
TensorId matmul(Graph& graph, TensorId a, TensorId b);

}  // namespace troupe::dnn

namespace troupe {

/// The shape of a product of packed matrices.
struct DnnMatmulOptions {
  std::int64_t batch = 1;
  std::int64_t rows = 0, columns = 0;               ///< of c
  std::int64_t inner = 0;                           ///< columns of a, rows of b
  bool by_columns_a = false, by_columns_b = false;  ///< it lies by columns instead of rows
  bool shared_a = false, shared_b = false;          ///< there is one for the whole batch; not both
};

/// Products of matrices as calls of their own.
class DnnMatmul {
 public:
  explicit DnnMatmul(detail::Submitter& submitter) : graphs_(submitter) {}

  /// c = a b for each matrix of the batch, packed one behind another; see dnn::matmul().
  template <Element T, Element C>
  Future<void> matmul(const GpuRef<T>& a, const GpuRef<T>& b, const GpuRef<C>& c,
                      const DnnMatmulOptions& shape) const {
    dnn::Graph graph;
    if (shape.shared_a && shape.shared_b && shape.batch > 1)
      graph.refuse("matmul: a and b are shared, so all of the batch would be one product");
    const auto in_a = graph.input(
        dtype_of<T>,
        matrices(shape.shared_a ? 1 : shape.batch, shape.rows, shape.inner, shape.by_columns_a));
    const auto in_b = graph.input(
        dtype_of<T>,
        matrices(shape.shared_b ? 1 : shape.batch, shape.inner, shape.columns, shape.by_columns_b));
    const auto out = dnn::matmul(graph, in_a, in_b);
    graph.output(out, dtype_of<C>);
    return graphs_.run(graph, {{in_a, a}, {in_b, b}, {out, c}});
  }

 private:
  static dnn::Layout matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                              bool by_columns) {
    const dnn::Layout by_rows{batch, rows, columns};
    if (!by_columns) return by_rows;
    return {by_rows.extents, {by_rows.strides[0], 1, rows}};
  }

  DnnGraphs graphs_;
};

}  // namespace troupe

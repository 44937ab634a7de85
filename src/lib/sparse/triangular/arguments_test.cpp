#include "real_matrix.hpp"
#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

TEST_F(BadArguments, OfTriangularSystems) {
  const auto result = put(std::vector<double>(8));
  sparse::Spsm good;
  good.dtype = DType::f64;
  good.order_x = blas::Order::row;
  good.a.index_dtype = DType::i32;
  good.a.rows = good.a.columns = 4, good.a.nonzeros = good.a.stored = 8;
  good.columns = 2, good.ldb = 4, good.ldx = 2;
  good.alpha = one;
  good.outer = i, good.inner = i, good.value = x, good.b = x, good.x = result.operand();
  const auto alone = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  const auto both = [&](auto change, Errc code = Errc::invalid) {
    alone(change, code);
    sparse::Spsv bad;
    bad.dtype = good.dtype, bad.a = good.a, bad.alpha = good.alpha;
    bad.outer = good.outer, bad.inner = good.inner, bad.value = good.value;
    bad.b = good.b, bad.x = good.x;
    change(bad);
    expect_refused(bad, code);
  };
  const auto of_extents = [&](std::int64_t n, std::int64_t nonzeros,
                              Diagonal diagonal = Diagonal::stored) {
    both([&](auto& bad) {
      bad.a.rows = bad.a.columns = n, bad.a.nonzeros = bad.a.stored = nonzeros;
      bad.diagonal = diagonal;
    });
  };
  of_extents(-1, 8);
  of_extents(4, -1);
  of_extents(4, 3);    // singular
  of_extents(16, 16);  // 17 row offsets needed
  of_extents(4, 17);
  of_extents(std::int64_t{1} << 31, 8, Diagonal::unit);
  both([](auto& bad) { bad.a.columns = 5; });
  both([](auto& bad) { bad.a.format = sparse::Format::bsr; });
  both([](auto& bad) { bad.a.format = static_cast<sparse::Format>(9); });
  both([](auto& bad) { bad.a.format = sparse::Format::sell, bad.a.block = 3; });
  both([](auto& bad) { bad.uplo = static_cast<Uplo>(2); });
  both([](auto& bad) { bad.diagonal = static_cast<Diagonal>(2); });
  both([](auto& bad) { bad.transpose = static_cast<Transpose>(3); });
  both([](auto& bad) { bad.a.index_dtype = DType::u32; });
  both([&](auto& bad) { bad.alpha = short_scalar; });
  both([&](auto& bad) { bad.inner = absent; });
  both([&](auto& bad) { bad.value = unaligned; });
  both([&](auto& bad) { bad.x = bad.value; });  // which is read as well
  both([](auto& bad) { bad.x.bytes -= 40; });   // 3 elements
  both([](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
  alone([](auto& bad) { bad.columns = -1; });
  alone([](auto& bad) { bad.columns = 3; });
  alone([](auto& bad) { bad.ldb = 3; });
  alone([](auto& bad) { bad.ldx = 1; });
  alone([](auto& bad) { bad.ldx = 3; });
  alone([](auto& bad) { bad.order_x = blas::Order::column; });
  alone([](auto& bad) { bad.order_b = static_cast<blas::Order>(2); });
  alone([](auto& bad) { bad.b = bad.x; });  // in another order
}

}  // namespace
}  // namespace troupe::test::reference

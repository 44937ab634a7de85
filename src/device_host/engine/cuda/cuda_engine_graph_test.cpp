// Graphs of the CUDA engine, parts of which are carried out or not.

#include <memory>

#include "cuda_engine_rig.hpp"

namespace troupe::host {
namespace {

class CudaGraphs : public CudaEngine {
 protected:
  static constexpr std::int64_t kFlags = 8;
  Operand x_, one_, flags_, moved_, set_;

  void SetUp() override {
    CudaEngine::SetUp();
    if (IsSkipped()) return;
    x_ = put(std::vector<double>(10, 0.0));
    one_ = put(std::vector<double>(10, 1.0));
    flags_ = put(std::vector<std::int32_t>(kFlags, 0));
    moved_ = space(kFlags * sizeof(std::int32_t));
    set_ = put(std::vector<std::int32_t>{0});
  }
  static const std::int32_t* flag(const Operand& where) {
    return reinterpret_cast<const std::int32_t*>(addresses_.find(where));
  }
  static Operand some(const Operand& flags, std::uint64_t first, std::uint64_t count) {
    auto part = flags;
    part.offset += 4 * first, part.bytes = 4 * count;
    return part;
  }
  /// x = x + by, on the lane of a library, between two places of the origin.
  void add(double by) {
    const auto lane = library_lane("vector");
    const auto start = engine_->mark(Lane::memory).take();
    engine_->wait(lane, start).take();
    queue(vectors::Axpby{DType::f64, 10, Scalar::of(by), Scalar::of(1.0), one_, x_}).take();
    const auto end = engine_->mark(lane).take();
    engine_->wait(Lane::memory, end).take();
    engine_->release(start), engine_->release(end);
  }
  /// As long as flags are set, one after another, x grows by 1; if `set_` is, by 10 more.
  std::unique_ptr<Graph> graph() {
    engine_->graphs().begin(Lane::memory).take();
    add(100);
    engine_->graphs().begin_branch(Lane::memory, flag(flags_), true).take();
    add(1);
    queue(memory::Copy{DType::i32, some(flags_, 1, kFlags - 1), some(moved_, 0, kFlags - 1)})
        .take();
    queue(memory::Copy{DType::i32, some(moved_, 0, kFlags - 1), some(flags_, 0, kFlags - 1)})
        .take();
    engine_->graphs().begin_branch(Lane::memory, flag(set_), false).take();
    add(10);
    engine_->graphs().end_branch(Lane::memory).take();
    engine_->graphs().end_branch(Lane::memory).take();
    add(0.25);
    return engine_->graphs().end(Lane::memory).take();
  }
  double launched(Graph& graph, int turns, int set_it) {
    std::vector<std::int32_t> values(kFlags, 0);
    std::fill_n(values.begin(), turns, 7);
    write(flags_, values), write(set_, std::vector<std::int32_t>{set_it});
    run(memory::Fill{DType::f64, 10, {}, x_});
    engine_->graphs().launch(graph, Lane::memory).take();
    engine_->synchronize(Lane::memory).take();
    return get<double>(x_)[9];
  }
};

TEST_F(CudaGraphs, HaveLoopsAndConditions) {
  const auto made = graph();
  engine_->graphs().finish(*made).take();
  for (const int turns : {0, 3, 1, 0, 7}) {
    for (const int set_it : {0, 1}) {
      EXPECT_EQ(launched(*made, turns, set_it), 100.25 + turns * (1 + 10 * set_it))
          << turns << " turns, " << set_it;
    }
  }
}

TEST_F(CudaGraphs, ThatAreGivenUpWithinABranchDoNoHarm) {
  engine_->graphs().begin(Lane::memory).take();
  engine_->graphs().begin_branch(Lane::memory, flag(set_), false).take();
  add(1);
  EXPECT_EQ(engine_->graphs().end(Lane::memory).code(), Errc::unsupported);
  add(2);
  engine_->synchronize(Lane::memory).take();
  EXPECT_EQ(get<double>(x_)[0], 2.0);
}

}  // namespace
}  // namespace troupe::host

#include <troupe/lib/sequence.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

sequence::Run run_of_list() {
  sequence::Run op;
  op.number = 7, op.commands = 2, op.list = cell_in(1);
  return op;
}
sequence::RepeatableRun repeatable_run_of_list() {
  sequence::RepeatableRun op;
  static_cast<sequence::Run&>(op) = run_of_list();
  return op;
}
sequence::CollectiveRun collective_run_of_list() {
  sequence::CollectiveRun op;
  static_cast<sequence::Run&>(op) = run_of_list();
  op.agreed = 99;
  return op;
}
sequence::Branch branch_forward() {
  sequence::Branch op;
  op.by = 3, op.flag = range_in(5);
  return op;
}
const std::vector<TailOperand> kNamed{{range_in(2), 0, Access::read, {}},
                                      {range_in(3), sequence::Run::kOverwritten, Access::write, {}},
                                      {range_in(4), 0, Access::update, {}}};

std::vector<std::byte> patches() {
  const sequence::Patch patch{1, 64, 8, 0, {}};
  const auto bytes = std::as_bytes(std::span(&patch, 1));
  return {bytes.begin(), bytes.end()};
}

const Samples kSequenceSamples{
    Tailed<sequence::Run>{run_of_list(), kNamed, patches()},
    Tailed<sequence::RepeatableRun>{repeatable_run_of_list(), kNamed, patches()},
    Tailed<sequence::CollectiveRun>{collective_run_of_list(), kNamed, patches()}, branch_forward()};

}  // namespace
}  // namespace troupe::test

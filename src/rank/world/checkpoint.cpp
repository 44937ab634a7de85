#include <troupe/checkpoint.hpp>

namespace troupe {

Future<void> Checkpoint::move_all(Move move, int half) {
  std::vector<Future<void>> parts;
  for (auto& entry : entries_) parts.push_back(entry(move, half));
  return when_all(std::move(parts));
}

Future<void> Checkpoint::commit(std::int64_t step) {
  current_ = 1 - current_;
  steps_[current_] = step;
  return move_all(Move::commit, static_cast<int>(current_));
}

Result<void> Checkpoint::forget() {
  steps_[0] = steps_[1] = -1;
  return move_all(Move::forget, 0).wait();
}

Result<void> Checkpoint::rollback(std::int64_t step) {
  for (std::size_t half = 0; half < 2; ++half) {
    if (steps_[half] != step || step < 0) continue;
    steps_[1 - half] = -1;
    current_ = half;
    return move_all(Move::rollback, static_cast<int>(half)).wait();
  }
  return Error{Errc::internal, 0, "no commit of step " + std::to_string(step) + " to go back to"};
}

}  // namespace troupe

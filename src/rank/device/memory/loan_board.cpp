#include "rank/device/memory/loan_board.hpp"

#include <new>

namespace troupe::rank_process {

Result<std::unique_ptr<LoanBoard>> LoanBoard::create() {
  auto memory = ipc::SharedMemory::create("troupe-loans", kPlaces * sizeof(Word));
  if (!memory) return memory.error();
  std::unique_ptr<LoanBoard> board(new LoanBoard(std::move(*memory)));
  for (std::uint64_t place = kPlaces; place > 0; --place) {
    new (&board->at(place)) Word{.version = 1, .taken = 0};
    board->free_.push_back(place);
  }
  return board;
}

Result<std::unique_ptr<LoanBoard>> LoanBoard::map(UniqueFd fd) {
  auto memory = ipc::SharedMemory::map(std::move(fd), kPlaces * sizeof(Word));
  if (!memory) return memory.error();
  return std::unique_ptr<LoanBoard>(new LoanBoard(std::move(*memory)));
}

bool LoanBoard::take(const Entry& entry) {
  if (entry.place == 0 || entry.place > kPlaces) return false;
  auto& word = at(entry.place);
  if (word.version.load(std::memory_order_seq_cst) != entry.version) return false;
  word.taken.store(entry.version, std::memory_order_seq_cst);
  return true;
}

std::uint64_t LoanBoard::claim() {
  if (free_.empty()) return 0;
  const auto place = free_.back();
  free_.pop_back();
  return place;
}

void LoanBoard::release(std::uint64_t place) {
  at(place).version.fetch_add(1, std::memory_order_seq_cst);  // for whom it is too late
  free_.push_back(place);
}

LoanBoard::Entry LoanBoard::Place::entry() const {
  if (number_ == 0) return {};
  return {number_, board_->at(number_).version.load(std::memory_order_relaxed)};
}

void LoanBoard::Place::change() const {
  if (number_ != 0) board_->at(number_).version.fetch_add(1, std::memory_order_seq_cst);
}

bool LoanBoard::Place::taken() const {
  if (number_ == 0) return false;
  const auto& word = board_->at(number_);
  return word.taken.load(std::memory_order_seq_cst) == word.version.load(std::memory_order_relaxed);
}

}  // namespace troupe::rank_process

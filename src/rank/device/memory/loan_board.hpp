#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/shared_memory.hpp"

namespace troupe::rank_process {

/// Memory that the ranks of a node share, in which the owner of lent ranges tells readers on the
/// same node, without a message, whether what they have read is right.
///
/// Each open loan has a place there. Its version grows before anything that would change what the
/// reader sees can reach the device: if it is the same when a copy has ended as it was when the
/// range was offered, the copy has seen nothing but the contents that were lent. The reader in turn
/// notes that it has read them, so that they need not be saved from a later write.
class LoanBoard {
 public:
  static constexpr std::uint32_t kPlaces = 1024;  ///< loans beyond that are settled by messages

  /// A place, and what is written there; 0: none.
  struct Entry {
    std::uint64_t place = 0;  ///< from 1
    std::uint64_t version = 0;
  };

  static Result<std::unique_ptr<LoanBoard>> create();
  /// Another rank's.
  static Result<std::unique_ptr<LoanBoard>> map(UniqueFd fd);
  [[nodiscard]] int fd() const noexcept { return memory_.fd(); }

  /// The reader, when its copy has ended. True: it is right, and the owner can see that it has been
  /// taken. Any thread.
  bool take(const Entry& entry);

  /// The owner. One thread at a time.
  class Place {
   public:
    Place() = default;
    explicit Place(LoanBoard* board) : board_(board), number_(board ? board->claim() : 0) {}
    Place(Place&& other) noexcept
        : board_(other.board_), number_(std::exchange(other.number_, 0)) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(board_, other.board_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Place() {
      if (number_ != 0) board_->release(number_);
    }
    /// For the offer.
    [[nodiscard]] Entry entry() const;
    /// What was read until now and has not been taken is not right any more.
    void change() const;
    /// The reader has got what it wanted.
    [[nodiscard]] bool taken() const;

   private:
    LoanBoard* board_ = nullptr;
    std::uint64_t number_ = 0;
  };

 private:
  struct alignas(64) Word {
    std::atomic<std::uint64_t> version;
    std::atomic<std::uint64_t> taken;  ///< the version that was
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  explicit LoanBoard(ipc::SharedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] Word& at(std::uint64_t place) const {
    return reinterpret_cast<Word*>(memory_.data())[place - 1];
  }
  std::uint64_t claim();
  void release(std::uint64_t place);

  ipc::SharedMemory memory_;
  std::vector<std::uint64_t> free_;  ///< the owner's
};

}  // namespace troupe::rank_process

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/parameter.hpp>

#include "common/wire/sequence_list.hpp"
#include "rank/device/commands/command_port.hpp"
#include "rank/device/recording/joint_access.hpp"

namespace troupe::rank_process {

/// What was recorded.
struct Recording {
  /// Where a parameter stands in the record of a command.
  struct Place {
    std::uint32_t parameter = 0;
    std::uint32_t command = 0;
    std::uint32_t offset = 0;
    bool moves = false;  ///< it is added to the offset of an operand that stands there
  };
  std::vector<wire::SequenceRecord> records;
  std::vector<Place> places;  ///< in the order of the commands
  JointAccess access;
  bool repeatable = true;
  bool branches = false;
  std::uint64_t agreed = 0;        ///< see sequence::Run
  std::uint32_t communicator = 0;  ///< of its collectives; see detail::Scope
  std::uint32_t epoch = 0;         ///< of the memory of other ranks that it reads; 0: it reads none
  std::vector<std::uint32_t> held;                 ///< buffers, once for each time
  std::vector<std::shared_ptr<const void>> keeps;  ///< beside buffers

  /// What its commands do together, with these records in the place of its own. Errors: invalid (a
  /// command is not sound).
  [[nodiscard]] Result<JointAccess> access_of(
      const std::vector<wire::SequenceRecord>& its_records) const;
  /// Whether its commands are those of the other, but for their result cells.
  [[nodiscard]] bool does_the_same(const Recording& other) const;
};

/// Where the calls of a recording go: while it is there, the submissions of its thread to the
/// port's device are kept instead of being run. Each is checked as usual, and its future has ended
/// well.
class Recorder final : public detail::Submitter {
 public:
  /// `port` outlives it.
  explicit Recorder(CommandPort& port);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The recorder of the calling thread for this port; nullptr: it does not record.
  static Recorder* of(const CommandPort& port) noexcept;

  Future<void> submit(const detail::CommandView& command) override;
  /// The recording has failed.
  Future<void> refuse(Error error) override;
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return port_->name_of(range);
  }
  /// Kept with the recording: each run uses it anew.
  Result<detail::ResultCell> result_cell(std::size_t bytes) override;
  void keep(std::shared_ptr<const void> what) override;
  /// Another recording becomes part of this one.
  Future<void> add(const Recording& other);

  /// What `calls` records is passed over if the flag is 0 then; with `again` it runs until it is.
  void branch(const Operand& flag, bool again, const std::function<void()>& calls);

  /// What has been recorded; buffers are held. Errors: what the first call that failed says.
  Result<Recording> take();

 private:
  Result<void> hold(const Operand& range);
  /// Whether it is one that can be recorded here at all. Errors: unsupported.
  [[nodiscard]] Result<void> check_kind(const OperationInfo& info, const std::byte* op) const;
  /// The record of another recording's command, with a result cell of this one's.
  Result<wire::SequenceRecord> with_own_cell(wire::SequenceRecord record);
  /// Keeps a command of this recording's own making, which is sound.
  template <Operation Op>
  void append(const Op& op);
  void agree_on(const OperationInfo& info, const std::byte* op);
  Result<void> check_operands(const detail::CommandView& command);
  [[nodiscard]] bool full(std::size_t more);
  void forget();

  CommandPort* port_;
  Recorder* outer_;  ///< of another device, on the same thread
  Recording recorded_;
  std::optional<Error> failed_;
  int depth_ = 0;  ///< branches that are open
};

}  // namespace troupe::rank_process

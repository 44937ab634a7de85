#include "rank/store/state_keeper.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/store/partners.hpp"

namespace troupe::rank_process {
namespace {

HeldPart::Image copy_of(std::span<const std::byte> image) {
  return std::make_shared<std::vector<std::byte>>(image.begin(), image.end());
}

double seconds(TimePoint time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

StateKeeper::StateKeeper(const HostGroup& members, std::span<const int> nodes,
                         std::shared_ptr<DeviceCore> device, Checkpoint& checkpoint,
                         const Options& options)
    : members_(&members),
      checkpoint_(&checkpoint),
      exchange_(members.background()),
      writer_(options.states, members.rank() == 0, members.size(), gatherer()),
      table_(lay_out(checkpoint.saved_entries())),
      device_(std::move(device)),
      direct_io_(device_),
      direct_(options.io == StateIo::direct),
      in_host_memory_(!direct_ || options.partner || options.near) {
  if (options.near)
    near_writer_.emplace(*options.near, options.publishes_near, members.size(), gatherer(),
                         "in " + options.near->folder().string() + " (checkpoint-local)", false);
  if (options.partner && members.size() > 1) {
    const auto partner = partners(nodes);
    partner_ = partner[static_cast<std::size_t>(members.rank())];
    ward_ = static_cast<int>(std::find(partner.begin(), partner.end(), members.rank()) -
                             partner.begin());
    keeps_own_ = !options.every_copy;
    ward_is_near_ =
        nodes[static_cast<std::size_t>(ward_)] == nodes[static_cast<std::size_t>(members.rank())];
  }
  if (options.before != nullptr) {
    held_ = options.before->held_;
    pending_ = options.before->pending_;
    mine_ = options.before->mine_;
    pending_mine_ = options.before->pending_mine_;
    own_ = options.before->own_;
    on_disk_ = options.before->on_disk();
    near_ = options.before->near();
    saved_ = options.before->saved();
  }
  table_.part = members.rank();
  table_.parts = members.size();
  for (const auto& place : table_.places) offsets_.push_back(place.offset);
  if (in_host_memory_ || options.takes) {
    auto pin = device_->pools().allocate_apart(table_.bytes);
    const auto ready = pin.ok() ? Result<void>() : Result<void>(pin.error());
    // Here all ranks are in step; later only the keepers' threads are.
    if (auto agreed = members.agree(ready); !agreed) throw CollectiveException(agreed.error());
    memory_ = PinnedBuffer<std::uint8_t>(std::move(pin->lease),
                                         reinterpret_cast<std::uint8_t*>(pin->data), table_.bytes,
                                         pin->where);
    checkpoint.prepare(memory_, offsets_);
  }
  exchange_.renew();
  thread_ = std::thread([this] { run(); });
}

StateKeeper::~StateKeeper() {
  close();
}

StateWriter::AllGather StateKeeper::gatherer() {
  return [this](std::span<const std::byte> value, std::span<std::byte> all) {
    exchange_.all_gather(value, all);
  };
}

std::span<std::byte> StateKeeper::image() const {
  return std::as_writable_bytes(memory_.span());
}

// The program's thread

bool StateKeeper::wait_idle(const std::function<bool()>& interrupted) {
  std::unique_lock lock(mutex_);
  const auto busy = [&] { return job_ || mapped_in_ != epoch_; };
  while (busy()) {
    changed_.wait_for(lock, std::chrono::milliseconds(5));
    if (!busy()) break;
    lock.unlock();
    if (interrupted()) return false;
    lock.lock();
  }
  return true;
}

bool StateKeeper::is_due(std::uint32_t epoch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !deciding_; });
  return turns_.is_due(epoch, job_.has_value());
}

void StateKeeper::capture(std::int64_t step, std::uint32_t epoch, bool to_disk, TimePoint since) {
  Future<void> copies{Result<void>()};
  if (in_host_memory_) {
    const auto there = memory_in(epoch);
    copies = there.ok() ? checkpoint_->save(step, memory_, offsets_) : Future<void>(there.error());
  }
  std::shared_ptr<const std::vector<Checkpoint::Committed>> direct;
  if (direct_ && to_disk) {
    direct = std::make_shared<const std::vector<Checkpoint::Committed>>(
        checkpoint_->committed(step).take());
  }
  const std::lock_guard lock(mutex_);
  check(!job_, "one commit at a time is taken out of GPU memory");
  turns_.copy(epoch);
  const auto now = SteadyClock::time();
  job_ = Job{step,
             epoch,
             to_disk,
             std::move(copies),
             std::move(direct),
             checkpoint_->half(),
             now,
             seconds(now - since)};
  changed_.notify_all();
}

bool StateKeeper::reads(std::size_t half) const {
  const std::lock_guard lock(mutex_);
  return job_ && job_->direct && job_->half == half;
}

void StateKeeper::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> StateKeeper::memory_in(std::uint32_t epoch) const {
  const std::lock_guard lock(mutex_);
  return mapped_in_ == epoch ? mapped_
                             : Error{Errc::device_lost, 0, "the epoch of the memory is over"};
}

Result<void> StateKeeper::take(std::int64_t step, std::uint32_t epoch) {
  if (auto there = memory_in(epoch); !there) return there;
  if (auto copied = checkpoint_->save(step, memory_, offsets_).wait(); !copied) return copied;
  table_.step = step;
  seal(table_, image());
  return {};
}

void StateKeeper::hold() {
  auto copy = copy_of(image());
  const std::lock_guard lock(mutex_);
  own_ = {table_.step, std::move(copy)};
}

std::int64_t StateKeeper::on_disk() const {
  const std::lock_guard lock(mutex_);
  return on_disk_;
}

std::vector<SavedCheckpoint> StateKeeper::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

std::vector<HeldPart> StateKeeper::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<HeldPart> all;
  for (const auto& part : {held_, pending_, mine_, pending_mine_, own_}) {
    if (part.step >= 0) all.push_back(HeldPart::in_memory(part.step, part.part));
  }
  return all;
}

std::int64_t StateKeeper::near() const {
  const std::lock_guard lock(mutex_);
  return near_;
}

std::int64_t StateKeeper::kept() const {
  const std::lock_guard lock(mutex_);
  return std::max(held_.step, pending_.step);
}

// The WorldActor's thread

void StateKeeper::stable(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  stable_ = std::max(stable_, step);
  changed_.notify_all();
}

void StateKeeper::activated(std::uint32_t epoch, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  epoch_ = epoch;
  epoch_began_ = step;
  stable_ = std::max(stable_, step);
  changed_.notify_all();
}

void StateKeeper::stopped() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

// Its own thread

void StateKeeper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return job_ || closing_ || mapped_in_ != epoch_; });
    if (!job_ && closing_) return;
    if (!job_) {
      map_memory(lock);
      continue;
    }
    const auto copied = settle(lock);
    if (copied) {
      const auto job = *job_;
      lock.unlock();
      try {
        carry_out(job, *copied);
        agree_on_next();
      } catch (const Exception& e) {  // a rank has died: the next keepers begin anew
        log::debug("checkpoint", "the commit of step {} stays where it is: {}", job.step, e.what());
        // Others may have got as far as to keep this state, and not the one before.
        if (*copied && keeps_own_) {
          auto mine = copy_of(image());
          const std::lock_guard again(mutex_);
          pending_mine_ = {job.step, std::move(mine)};
        }
      }
      lock.lock();
    }
    deciding_ = false;
    job_.reset();
    changed_.notify_all();
  }
}

void StateKeeper::map_memory(std::unique_lock<std::mutex>& lock) {
  const auto epoch = epoch_;
  if (memory_.size() == 0) {
    mapped_in_ = epoch;
    changed_.notify_all();
    return;
  }
  lock.unlock();
  const auto outcome = device_->pools().map_apart(memory_.operand()).wait();
  const bool gone = outcome.code() == Errc::device_lost ||
                    outcome.code() == Errc::budget_exhausted ||
                    outcome.code() == Errc::device_failed;  // as others say
  if (!outcome.ok() && !gone)
    log::error("checkpoint", "the state cannot leave the device: {}", outcome.error().to_string());
  lock.lock();
  mapped_in_ = epoch;
  mapped_ = outcome;
  changed_.notify_all();
}

std::optional<bool> StateKeeper::settle(std::unique_lock<std::mutex>& lock) {
  const auto copies = job_->copies;
  lock.unlock();
  const bool good = copies.wait().ok();
  lock.lock();
  const auto rolled_back = [&] { return epoch_ > job_->epoch && epoch_began_ < job_->step; };
  changed_.wait(lock, [&] { return stable_ >= job_->step || stopped_ || rolled_back(); });
  if (stable_ < job_->step) return std::nullopt;
  return good;
}

void StateKeeper::carry_out(const Job& job, bool copied) {
  const auto there = SteadyClock::time();
  table_.step = job.step;
  if (copied && in_host_memory_) seal(table_, image());
  const auto sealed = SteadyClock::time();
  if (!copied)
    log::warn("checkpoint", "the state of step {} was lost before it left the device", job.step);
  if (partner_ >= 0)
    give_to_partner(job.step,
                    copied ? std::span<const std::byte>(image()) : std::span<const std::byte>());
  log::debug("checkpoint",
             "step {}: {:.3f} s until it is here, {:.3f} for its checksums, {:.3f} with partners",
             job.step, seconds(there - job.captured_at), seconds(sealed - there),
             seconds(SteadyClock::time() - sealed));
  if (near_writer_) write_near(job.step, copied);
  if (!job.to_disk) return;
  const auto outcome = writer_.write(job.step, share_of(job, copied));
  if (!outcome) return;
  const SavedCheckpoint done{job.step,
                             outcome->bytes,
                             seconds(SteadyClock::time() - job.captured_at),
                             outcome->stall_seconds,
                             outcome->io,
                             outcome->write_seconds};
  if (members_->rank() == 0) {
    log::info("checkpoint",
              "step {} is on disk: {:.1f} MiB in {:.3f} s, written in {:.3f} s at {:.2f} GB/s ({})",
              done.step, static_cast<double>(done.bytes) / (1 << 20), done.seconds,
              done.write_seconds, done.write_rate() / 1e9, to_string(done.io));
  }
  const std::lock_guard lock(mutex_);
  on_disk_ = job.step;
  saved_.push_back(done);
}

StateWriter::Share StateKeeper::share_of(const Job& job, bool copied) {
  StateWriter::Share share{.lost = !copied, .stall_seconds = job.stall_seconds};
  if (!copied) return share;
  share.table = &table_;
  if (!job.direct) {
    share.write = StateWriter::of_image(image());
  } else {
    share.write = [this, &job](const std::filesystem::path& path) {
      return write_part(path, table_, *job.direct, [&](const Operand& piece, std::uint64_t offset) {
        return write_piece(path, piece, offset);
      });
    };
  }
  return share;
}

Result<file::Done> StateKeeper::write_piece(const std::filesystem::path& path, const Operand& piece,
                                            std::uint64_t offset) {
  for (bool told = false;;) {
    auto done = direct_io_.write(path, piece, offset);
    const bool by_fault = done.code() == Errc::device_lost || done.code() == Errc::world_reformed;
    if (done.ok() || !by_fault) return done;
    // The commit is stable, so both it and the half that it is in come through the fault. Commands
    // are refused until the world is re-formed; once it has ended, with another error.
    if (!std::exchange(told, true))
      log::debug("checkpoint", "a fault has cut off a piece of {}: it is written again",
                 path.string());
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::milliseconds(5), [&] { return stopped_ || closing_; }))
      return done;
  }
}

void StateKeeper::give_to_partner(std::int64_t step, std::span<const std::byte> image) {
  const auto copy = std::make_shared<std::vector<std::byte>>(
      exchange_.shift(image, partner_, ward_, std::move(spare_)));
  {
    const std::lock_guard lock(mutex_);
    pending_ = copy->empty() ? Copy{} : Copy{step, copy};
  }
  const std::uint8_t mine = !image.empty() && !copy->empty();
  std::vector<std::uint8_t> all(static_cast<std::size_t>(members_->size()));
  exchange_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const bool complete = std::find(all.begin(), all.end(), 0) == all.end();
  std::unique_lock lock(mutex_);
  pending_ = {};
  pending_mine_ = {};
  own_ = {};
  // Unless somebody reads it, the memory of the copy that is not needed serves for the next one.
  const auto before = complete ? std::exchange(held_, {step, copy}).part
                               : std::shared_ptr<const std::vector<std::byte>>(copy);
  const long users = complete ? 1 : 2;  // this function's
  spare_ = before && before.use_count() == users
               ? std::move(const_cast<std::vector<std::byte>&>(*before))
               : std::vector<std::byte>();
  lock.unlock();
  if (complete && keeps_own_) keep_own(step, image);
}

void StateKeeper::keep_own(std::int64_t step, std::span<const std::byte> image) {
  HeldPart::Image before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(mine_, {}).part;
  }
  auto kept = before != nullptr && before.use_count() == 1
                  ? std::const_pointer_cast<std::vector<std::byte>>(before)
                  : std::make_shared<std::vector<std::byte>>();
  kept->assign(image.begin(), image.end());
  const std::lock_guard lock(mutex_);
  mine_ = {step, std::move(kept)};
}

void StateKeeper::agree_on_next() {
  CopyTurns::Turn mine;
  {
    const std::lock_guard lock(mutex_);
    deciding_ = true;
    mine = turns_.passed();
  }
  std::vector<CopyTurns::Turn> all(static_cast<std::size_t>(members_->size()));
  exchange_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const std::lock_guard lock(mutex_);
  turns_.complete(*std::max_element(all.begin(), all.end()));
}

void StateKeeper::write_near(std::int64_t step, bool copied) {
  const bool wants_copy = partner_ >= 0 && !ward_is_near_;
  StateWriter::Share share{.lost = !copied || (wants_copy && held_.step != step)};
  if (!share.lost) {
    share.table = &table_;
    share.write = StateWriter::of_image(image());
    if (wants_copy) share.copy = held_.part, share.copy_of = ward_;
  }
  if (!near_writer_->write(step, share)) return;
  const std::lock_guard lock(mutex_);
  near_ = step;
}

}  // namespace troupe::rank_process

#include "rank/world/state_keeper.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/store/part_file.hpp"
#include "rank/store/partners.hpp"

namespace troupe::rank {
namespace {

double seconds(TimePoint time) {
  return std::chrono::duration<double>(time).count();
}

/// Ranks of one node name it by the same number: the lowest rank on it.
std::vector<int> nodes_of_ranks(MpiSession& mpi) {
  const auto here = mpi.gather_local_text(std::to_string(mpi.rank()));
  int lowest = mpi.rank();
  for (const auto& rank : here) lowest = std::min(lowest, std::stoi(rank));
  std::vector<int> nodes(static_cast<std::size_t>(mpi.size()));
  mpi.all_gather(std::as_bytes(std::span(&lowest, 1)), std::as_writable_bytes(std::span(nodes)));
  return nodes;
}

}  // namespace

/// What a rank says of its part.
struct StateKeeper::Written {
  std::uint32_t ok = 0;
  std::int32_t part = -1;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  std::uint32_t reserved = 0;
  double stall_seconds = 0;
};

StateKeeper::StateKeeper(MpiSession& mpi, std::shared_ptr<DeviceCore> device,
                         Checkpoint& checkpoint, Options options)
    : mpi_(&mpi),
      checkpoint_(&checkpoint),
      exchange_(mpi),
      generations_(options.folder),
      options_(std::move(options)),
      table_(lay_out(checkpoint.saved_entries())),
      device_(std::move(device)) {
  if (options_.partner && mpi.size() > 1) {
    const auto partner = partners(nodes_of_ranks(mpi));
    partner_ = partner[static_cast<std::size_t>(mpi.rank())];
    ward_ =
        static_cast<int>(std::find(partner.begin(), partner.end(), mpi.rank()) - partner.begin());
  }
  table_.part = mpi.rank();
  table_.parts = mpi.size();
  for (const auto& place : table_.places) offsets_.push_back(place.offset);
  auto pin = device_->allocate_apart(table_.bytes);
  const auto ready = pin.ok() ? Result<void>() : Result<void>(pin.error());
  // Here all ranks are in step; later only the keepers' threads are.
  if (auto agreed = mpi.agree(ready); !agreed) throw CollectiveException(agreed.error());
  memory_ = PinnedBuffer<std::uint8_t>(
      std::move(pin->lease), reinterpret_cast<std::uint8_t*>(pin->data), table_.bytes, pin->where);
  checkpoint.prepare(memory_, offsets_);
  thread_ = std::thread([this] { run(); });
}

StateKeeper::~StateKeeper() {
  close();
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

void StateKeeper::capture(std::int64_t step, std::uint32_t epoch, bool to_disk, TimePoint since) {
  bool mapped = false;
  {
    const std::lock_guard lock(mutex_);
    mapped = mapped_ && mapped_in_ == epoch;
  }
  auto copies = mapped ? checkpoint_->save(step, memory_, offsets_)
                       : Future<void>(Error{Errc::device_lost, 0, "no memory to copy to"});
  const std::lock_guard lock(mutex_);
  check(!job_, "one commit at a time is taken out of GPU memory");
  const auto now = SteadyClock::time();
  job_ = Job{step, epoch, to_disk, std::move(copies), now, seconds(now - since)};
  changed_.notify_all();
}

void StateKeeper::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::int64_t StateKeeper::rescue() {
  const auto held = this->held();
  if (held.step <= on_disk() || generations_.folder().empty()) return on_disk();
  const auto table = open_image(*held.part);
  if (!table.ok())
    log::error("checkpoint", "the partner copy is damaged: {}", table.error().message);
  if (write_state(held.step, table.ok() ? &*table : nullptr, *held.part, 0)) on_disk_ = held.step;
  return on_disk();
}

std::int64_t StateKeeper::on_disk() const {
  const std::lock_guard lock(mutex_);
  return on_disk_;
}

std::vector<SavedCheckpoint> StateKeeper::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

StateKeeper::Held StateKeeper::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
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
      carry_out(job, *copied);
      lock.lock();
    }
    job_.reset();
    changed_.notify_all();
  }
}

void StateKeeper::map_memory(std::unique_lock<std::mutex>& lock) {
  const auto epoch = epoch_;
  lock.unlock();
  const auto outcome = device_->map_apart(memory_.operand()).wait();
  if (!outcome.ok() && outcome.code() != Errc::device_lost)
    log::error("checkpoint", "the state cannot leave the device: {}", outcome.error().to_string());
  lock.lock();
  mapped_in_ = epoch;
  mapped_ = outcome.ok();
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
  if (copied) {
    table_.step = job.step;
    seal(table_, image());
  } else {
    log::warn("checkpoint", "the state of step {} was lost before it left the device", job.step);
  }
  const auto part = copied ? std::span<const std::byte>(image()) : std::span<const std::byte>();
  if (partner_ >= 0) give_to_partner(job.step, part);
  if (!job.to_disk) return;
  const auto outcome = write_state(job.step, copied ? &table_ : nullptr, part, job.stall_seconds);
  if (!outcome) return;
  const SavedCheckpoint done{job.step, outcome->bytes,
                             seconds(SteadyClock::time() - job.captured_at),
                             outcome->stall_seconds};
  if (mpi_->rank() == 0) {
    log::info("checkpoint", "step {} is on disk: {:.1f} MiB in {:.3f} s", done.step,
              static_cast<double>(done.bytes) / (1 << 20), done.seconds);
  }
  const std::lock_guard lock(mutex_);
  on_disk_ = job.step;
  saved_.push_back(done);
}

void StateKeeper::give_to_partner(std::int64_t step, std::span<const std::byte> image) {
  auto received = exchange_.shift(image, partner_, ward_, std::move(spare_));
  const std::uint8_t mine = !image.empty() && !received.empty();
  std::vector<std::uint8_t> all(static_cast<std::size_t>(mpi_->size()));
  exchange_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (std::find(all.begin(), all.end(), 0) != all.end()) {
    spare_ = std::move(received);
    return;
  }
  const std::lock_guard lock(mutex_);
  // Unless somebody reads it, the memory of the copy before serves for the next one.
  auto before = std::const_pointer_cast<std::vector<std::byte>>(std::exchange(held_.part, nullptr));
  spare_ = before && before.use_count() == 1 ? std::move(*before) : std::vector<std::byte>();
  held_ = {step, std::make_shared<std::vector<std::byte>>(std::move(received))};
}

std::optional<StateKeeper::Outcome> StateKeeper::write_state(std::int64_t step,
                                                             const PartTable* table,
                                                             std::span<const std::byte> image,
                                                             double stall_seconds) {
  Written mine{.stall_seconds = stall_seconds};
  if (table != nullptr) {
    const auto written = write_part(*table, image);
    if (!written.ok()) log::error("checkpoint", "{}", written.error().to_string());
    mine = {written.ok(), table->part, table->bytes, table->head_crc, 0, stall_seconds};
  }
  std::vector<Written> all(static_cast<std::size_t>(mpi_->size()));
  exchange_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const std::uint8_t there = mpi_->rank() == 0 && publish(step, all);
  std::vector<std::uint8_t> outcomes(all.size());
  exchange_.all_gather(std::as_bytes(std::span(&there, 1)),
                       std::as_writable_bytes(std::span(outcomes)));
  if (outcomes[0] == 0) return std::nullopt;
  Outcome outcome{};
  for (const auto& part : all) {
    outcome.bytes += part.bytes;
    outcome.stall_seconds = std::max(outcome.stall_seconds, part.stall_seconds);
  }
  return outcome;
}

Result<void> StateKeeper::write_part(const PartTable& table, std::span<const std::byte> image) {
  const auto path = generations_.begin(table.step, table.part);
  return path.ok() ? write_file(*path, image) : Result<void>(path.error());
}

bool StateKeeper::publish(std::int64_t step, const std::vector<Written>& written) {
  Manifest manifest{step, std::vector<Manifest::Part>(written.size())};
  Result<void> outcome;
  for (std::size_t rank = 0; rank < written.size(); ++rank) {
    const auto& part = written[rank];
    if (part.ok == 0) {
      outcome = Error{Errc::io, 0, "rank " + std::to_string(rank) + " could not write its part"};
    } else {
      manifest.parts[static_cast<std::size_t>(part.part)] = {part.bytes, part.crc};
    }
  }
  if (outcome.ok()) outcome = generations_.publish(manifest);
  if (outcome.ok()) return true;
  log::error("checkpoint", "the state of step {} is not on disk: {}", step,
             outcome.error().message);
  generations_.abandon(step);
  return false;
}

}  // namespace troupe::rank

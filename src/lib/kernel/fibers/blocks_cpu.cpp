#include "lib/kernel/fibers/blocks_cpu.hpp"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <utility>

#include "lib/kernel/fibers/fiber_switch.hpp"

namespace troupe::host::cpu {
namespace {

using troupe_kernel::Block;
using troupe_kernel::Index;

constexpr std::size_t kStackBytes = std::size_t{128} << 10;  ///< of a thread of a kernel
/// Each may have 1024 stacks, and the kernel of the system allows a process some 65,000 mappings.
constexpr int kMostHostThreads = 16;

std::uint64_t size_of(const Index& extent) {
  return std::uint64_t{extent.x} * extent.y * extent.z;
}

/// A stack with a page behind it that must not be touched, and where it lies.
class Stack {
 public:
  explicit Stack(FiberSwitch& told) : told_(&told) {}
  boost::context::stack_context allocate() {
    const auto made = stacks_.allocate();
    told_->set_stack(static_cast<const std::byte*>(made.sp) - made.size, made.size);
    return made;
  }
  void deallocate(boost::context::stack_context& stack) noexcept { stacks_.deallocate(stack); }

 private:
  boost::context::protected_fixedsize_stack stacks_{kStackBytes};
  FiberSwitch* told_;
};

Index place_of(std::uint64_t number, const Index& extent) {
  return {static_cast<unsigned>(number % extent.x),
          static_cast<unsigned>(number / extent.x % extent.y),
          static_cast<unsigned>(number / extent.x / extent.y)};
}

}  // namespace

/// The threads of one block at a time, on the thread that made it.
class BlockRunner::Fibers {
 public:
  ~Fibers() {
    ending_ = true;
    for (auto& fiber : fibers_) resume(*fiber);
  }

  void run(const BlockGrid& grid, std::uint64_t number) {
    shared_.resize((grid.shared_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    grid_ = &grid;
    block_ = {
        {},  place_of(number, grid.grid), grid.block, grid.grid, shared_.data(), &Fibers::wait,
        this};
    grid.table->enter(&block_);
    next_ = 0, count_ = size_of(grid.block);
    while (next_ < count_) resume(idle());
    // Each has ended or waits: the barrier is complete.
    while (!waiting_.empty()) {
      const auto released = std::exchange(waiting_, {});
      for (auto* const fiber : released) resume(*fiber);
    }
  }

 private:
  struct Fiber {
    FiberSwitch told;
    boost::context::fiber context;  ///< while it does not run
    boost::context::fiber caller;   ///< while it runs
  };

  Fiber& idle() {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>());
      auto& made = *fibers_.back();
      made.context = boost::context::fiber(std::allocator_arg, Stack(made.told),
                                           [this, &made](boost::context::fiber&& caller) {
                                             made.told.entered();
                                             made.caller = std::move(caller);
                                             live(made);
                                             made.told.before_leave(true);
                                             return std::move(made.caller);
                                           });
      return made;
    }
    auto* const taken = idle_.back();
    idle_.pop_back();
    return *taken;
  }

  /// What a fiber does: one thread of a block after another, as long as there is one that nobody
  /// has begun.
  void live(Fiber& fiber) {
    while (!ending_) {
      while (next_ < count_) {
        block_.thread = place_of(next_++, block_.extent);
        grid_->entry->run(grid_->arguments);
      }
      idle_.push_back(&fiber);
      leave(fiber);
    }
  }

  void resume(Fiber& fiber) {
    running_ = &fiber;
    fiber.told.before_resume();
    fiber.context = std::move(fiber.context).resume();
    fiber.told.after_resume();
  }
  static void leave(Fiber& fiber) {
    fiber.told.before_leave(false);
    fiber.caller = std::move(fiber.caller).resume();
    fiber.told.entered();
  }

  /// A kernel calls it, on a fiber.
  static void wait(Block* block) {
    auto& self = *static_cast<Fibers*>(block->runner);
    auto& fiber = *self.running_;
    const auto thread = block->thread;
    self.waiting_.push_back(&fiber);
    leave(fiber);
    block->thread = thread;
  }

  const BlockGrid* grid_ = nullptr;
  Block block_{};
  std::uint64_t next_ = 0, count_ = 0;
  bool ending_ = false;
  Fiber* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_, waiting_;
  std::vector<std::max_align_t> shared_;
};

BlockRunner::BlockRunner(int threads)
    : helpers_(static_cast<std::size_t>(std::clamp(threads, 1, kMostHostThreads)) - 1) {}

BlockRunner::~BlockRunner() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  begin_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void BlockRunner::run(const BlockGrid& grid) {
  if (!own_) own_ = std::make_unique<Fibers>();
  const auto wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(helpers_, size_of(grid.grid) - 1));
  while (threads_.size() < wanted) threads_.emplace_back([this] { work(); });
  {
    const std::lock_guard lock(mutex_);
    grid_ = &grid;
    next_.store(0);
    ++turn_;
  }
  if (wanted != 0) begin_.notify_all();
  help(grid, *own_);
  std::unique_lock lock(mutex_);
  grid_ = nullptr;  // who comes late finds nothing to do
  end_.wait(lock, [this] { return busy_ == 0; });
}

void BlockRunner::help(const BlockGrid& grid, Fibers& fibers) {
  const auto count = size_of(grid.grid);
  for (auto block = next_++; block < count; block = next_++) fibers.run(grid, block);
}

void BlockRunner::work() {
  Fibers fibers;
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [&] { return ending_ || (turn_ != seen && grid_ != nullptr); });
    if (ending_) return;
    seen = turn_;
    const auto& grid = *grid_;  // it lasts as long as somebody is busy with it
    ++busy_;
    lock.unlock();
    help(grid, fibers);
    lock.lock();
    if (--busy_ == 0) end_.notify_one();
  }
}

}  // namespace troupe::host::cpu

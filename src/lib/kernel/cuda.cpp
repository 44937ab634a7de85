#include <cudaTypedefs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <troupe/lib/kernel.hpp>
#include <troupe/lib/launch_arguments.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/kernel/arguments.hpp"
#include "lib/kernel/refusal_cuda.hpp"

namespace troupe::host::cuda {
namespace {

using kernel::key_of;
using kernel::ModuleKey;

constexpr std::size_t kMaxModules = 64;

struct ModuleTraits {
  using Type = cudaLibrary_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type library) { (void)cudaLibraryUnload(library); }
};

struct Loaded {
  const void* function = nullptr;   ///< a cudaKernel_t, which the runtime takes for one
  CUfunction in_context = nullptr;  ///< the same as the driver launches it soonest
  kernel::Facts facts;
};

/// What the driver launches with: the runtime would look the kernel up in its context each time.
struct Driver {
  PFN_cuKernelGetFunction_v12000 get_function = nullptr;
  PFN_cuLaunchKernelEx_v11060 launch = nullptr;
};

/// A variable whose contents come from a buffer.
struct Variable {
  void* address = nullptr;
  std::size_t bytes = 0;
  Operand contents;
  std::array<bool, Queue::kWays> holds{};  ///< the contents, as each queue sees it
};

/// Finds by a std::string_view as well.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>()(name);
  }
};

struct Module {
  Handle<ModuleTraits> library;
  /// The same once more, where nothing ever runs: what variables hold at first. Loaded for buffers
  /// that are shorter than their variables.
  Handle<ModuleTraits> pristine;
  std::unordered_map<std::string, Loaded, NameHash, std::equal_to<>> kernels;
  std::unordered_map<std::string, Variable, NameHash, std::equal_to<>> variables;
  std::array<std::optional<Queue>, Queue::kWays> used;

  /// nullptr: it has not been loaded.
  const Loaded* find(std::string_view name) {
    if (newest_ == nullptr || newest_->first != name) {
      const auto found = kernels.find(name);
      if (found == kernels.end()) return nullptr;
      newest_ = &*found;
    }
    return &newest_->second;
  }

 private:
  const std::pair<const std::string, Loaded>* newest_ = nullptr;  ///< launched again and again
};

/// The parameters of a kernel: the runtime tells of one after another, and refuses what comes
/// behind the last.
Result<void> find_parameters(const void* function, kernel::Facts& facts) {
  for (;; ++facts.parameters) {
    std::size_t offset = 0, size = 0;
    const auto status = cudaFuncGetParamInfo(function, facts.parameters, &offset, &size);
    if (status == cudaErrorInvalidValue) {
      (void)cudaGetLastError();
      return {};
    }
    if (status != cudaSuccess) return refusal(status, "cudaFuncGetParamInfo");
    if (facts.parameters == kernel::kMaxArguments)
      return Error{Errc::unsupported, 0, "kernel: it has more than 128 parameters"};
    facts.size[facts.parameters] = static_cast<std::uint16_t>(size);
  }
}

class KernelHalf final : public LibraryHalfOf<KernelHalf, kernel::Operations> {
 public:
  explicit KernelHalf(Services& services) : services_(services) {}

  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override {
    return info.traits.blocking || loads(*reinterpret_cast<const kernel::Launch*>(op), call);
  }
  Result<void> open(Queue) override {
    TROUPE_CUDA_PROPAGATE(find_in_driver("cuKernelGetFunction", 12000, driver_.get_function));
    return find_in_driver("cuLaunchKernelEx", 11060, driver_.launch);
  }
  Result<void> run(const kernel::Describe& op, const Call& call);
  Result<void> run(const kernel::Launch& op, const Call& call);

  std::vector<std::vector<std::byte>> take_new_plans() override {
    return std::exchange(plans_, {});
  }
  void adopt_plan(std::span<const std::byte> plan) override;
  [[nodiscard]] bool remembers_contents() const override { return has_variables_.load(); }
  [[nodiscard]] bool overlaps() const override { return true; }
  void overwrites(const Operand& range) override;

 private:
  Module* known(const ModuleKey& key);
  /// Whether a launch needs what is not loaded yet.
  bool loads(const kernel::Launch& op, const Call& call);
  static Result<void> load_library(Handle<ModuleTraits>& library, std::span<const std::byte> image);
  Result<Module*> load(const ModuleKey& key, std::span<const std::byte> image);
  Result<Module*> loaded(const ModuleKey& key, const Operand& where, const Call& call);
  Result<const Loaded*> kernel(Module& module, std::string_view name);
  /// Lets the queue go on only after what the module has launched on the others.
  Result<void> wait_for_other_queues(const Module& module, Queue queue);
  /// Queues what the variables of a launch need.
  Result<void> fill(Module& module, const kernel::Launch& op, const kernel::Inline& given,
                    const Call& call);
  /// Queues the end of a variable, from `bytes` on, as the image has it.
  Result<void> fill_rest(Module& module, const std::string& name, std::uint64_t bytes,
                         const kernel::Launch& op, const Call& call);

  Services& services_;
  Driver driver_;
  std::list<std::pair<ModuleKey, std::shared_ptr<Module>>> modules_;  ///< the last used first
  RetiredPlans<std::shared_ptr<Module>> retired_;
  std::vector<std::vector<std::byte>> plans_;
  std::atomic<bool> has_variables_{false};
};

Module* KernelHalf::known(const ModuleKey& key) {
  for (auto it = modules_.begin(); it != modules_.end(); ++it) {
    if (it->first != key) continue;
    modules_.splice(modules_.begin(), modules_, it);
    return it->second.get();
  }
  return nullptr;
}

bool KernelHalf::loads(const kernel::Launch& op, const Call& call) {
  const auto given = kernel::Inline::parse(op.kName, op.extent(), Parts(call.tail(), call.data()));
  if (!given) return false;  // run() says so
  auto* const module = known(key_of(op));
  if (module == nullptr || module->find(given->name()) == nullptr) return true;
  if (op.symbol_bytes == 0) return false;
  return std::any_of(call.tail().begin(), call.tail().end(), [&](const TailOperand& part) {
    if ((part.tag & kernel::Launch::kSymbol) == 0) return false;
    const auto variable =
        module->variables.find(given->symbol(part.tag & ~kernel::Launch::kSymbol));
    return variable == module->variables.end() ||
           (part.range.bytes < variable->second.bytes && !module->pristine);
  });
}

Result<void> KernelHalf::load_library(Handle<ModuleTraits>& library,
                                      std::span<const std::byte> image) {
  std::vector<std::byte> ended(image.begin(), image.end());
  ended.push_back({});  // as PTX has to be
  TROUPE_KERNEL_TRY(
      cudaLibraryLoadData(library.out(), ended.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  return {};
}

Result<Module*> KernelHalf::load(const ModuleKey& key, std::span<const std::byte> image) {
  if (services_.records()) return Services::not_recorded("a module that is not loaded");
  TROUPE_CUDA_PROPAGATE(retired_.destroy_ended());
  auto module = std::make_shared<Module>();
  TROUPE_CUDA_PROPAGATE(load_library(module->library, image));
  modules_.emplace_front(key, module);
  if (modules_.size() > kMaxModules) {
    for (const auto& queue : modules_.back().second->used) {
      if (queue)
        TROUPE_CUDA_PROPAGATE(retired_.add(modules_.back().second, services_.stream(*queue)));
    }
    modules_.pop_back();
    services_.note_given_back();
  }
  return module.get();
}

Result<Module*> KernelHalf::loaded(const ModuleKey& key, const Operand& where, const Call& call) {
  if (auto* const there = known(key)) return there;
  const std::span<const std::byte> image(call.at(where), where.bytes);
  const auto module = load(key, image);
  if (module.ok()) {
    if (auto plan = kernel::plan_of(key, image); !plan.empty()) plans_.push_back(std::move(plan));
  }
  return module;
}

Result<const Loaded*> KernelHalf::kernel(Module& module, std::string_view name) {
  if (const auto* const there = module.find(name); there != nullptr) return there;
  const std::string text(name);
  cudaKernel_t handle = nullptr;
  if (const auto status = cudaLibraryGetKernel(&handle, module.library.get(), text.c_str());
      status != cudaSuccess) {
    auto error = refusal(status, "cudaLibraryGetKernel");
    error.message += ": there is no kernel " + text + " in the image";
    return error;
  }
  Loaded one;
  one.function = handle;
  cudaFuncAttributes attributes{};
  TROUPE_KERNEL_TRY(cudaFuncGetAttributes(&attributes, one.function));  // loads it, too
  int device = 0, shared = 0;
  TROUPE_KERNEL_TRY(cudaGetDevice(&device));
  TROUPE_KERNEL_TRY(
      cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const auto own = static_cast<int>(attributes.sharedSizeBytes);
  one.facts.max_threads = static_cast<std::uint32_t>(attributes.maxThreadsPerBlock);
  one.facts.registers = static_cast<std::uint32_t>(attributes.numRegs);
  one.facts.shared_bytes = static_cast<std::uint32_t>(own);
  one.facts.local_bytes = static_cast<std::uint32_t>(attributes.localSizeBytes);
  one.facts.max_dynamic_shared = static_cast<std::uint32_t>(shared - std::min(own, shared));
  // A launch of more than 48 KiB has to be allowed.
  TROUPE_KERNEL_TRY(cudaFuncSetAttribute(one.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(one.facts.max_dynamic_shared)));
  TROUPE_CUDA_PROPAGATE(find_parameters(one.function, one.facts));
  if (const auto status = driver_.get_function(&one.in_context, reinterpret_cast<CUkernel>(handle));
      status != CUDA_SUCCESS)
    return refusal(static_cast<cudaError_t>(status), "cuKernelGetFunction");
  return &module.kernels.emplace(text, one).first->second;
}

Result<void> KernelHalf::run(const kernel::Describe& op, const Call& call) {
  const auto module = loaded(key_of(op), op.image, call);
  if (!module) return module.error();
  const auto found =
      kernel(**module, {reinterpret_cast<const char*>(call.data().data()), call.data().size()});
  if (!found) return found.error();
  auto facts = (*found)->facts;
  facts.multiprocessors = static_cast<std::uint32_t>(services_.multiprocessors());
  if (op.threads != 0) {
    int blocks = 0;
    TROUPE_KERNEL_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, (*found)->function, static_cast<int>(op.threads), op.shared_bytes));
    facts.blocks_at_once = static_cast<std::uint32_t>(blocks);
  }
  // Nothing else uses the cell, so it need not wait for the stream.
  std::memcpy(call.at(op.facts), &facts, sizeof facts);
  return {};
}

Result<void> KernelHalf::run(const kernel::Launch& op, const Call& call) {
  const auto given = kernel::Inline::parse(op.kName, op.extent(), Parts(call.tail(), call.data()));
  if (!given) return given.error();
  const auto module = loaded(key_of(op), op.image, call);
  if (!module) return module.error();
  const auto found = kernel(**module, given->name());
  if (!found) return found.error();
  TROUPE_CUDA_PROPAGATE(kernel::check_arguments(*given, (*found)->facts));
  (*module)->used[call.queue().way()] = call.queue();
  TROUPE_CUDA_PROPAGATE(fill(**module, op, *given, call));
  kernel::Arguments arguments(*given, call);
  std::array<CUlaunchAttribute, 2> attributes;
  CUlaunchConfig config{};
  config.gridDimX = op.grid[0], config.gridDimY = op.grid[1], config.gridDimZ = op.grid[2];
  config.blockDimX = op.block[0], config.blockDimY = op.block[1], config.blockDimZ = op.block[2];
  config.sharedMemBytes = op.shared_bytes;
  config.hStream = services_.stream(call.queue());
  config.attrs = attributes.data();
  if (op.cluster[0] != 0) {
    auto& cluster = attributes[config.numAttrs++];
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {op.cluster[0], op.cluster[1], op.cluster[2]};
  }
  if (op.cooperative != 0) {
    auto& cooperative = attributes[config.numAttrs++];
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
  }
  const auto status = driver_.launch(&config, (*found)->in_context, arguments.get(), nullptr);
  if (status != CUDA_SUCCESS) return refusal(static_cast<cudaError_t>(status), "cuLaunchKernelEx");
  return {};
}

Result<void> KernelHalf::wait_for_other_queues(const Module& module, Queue queue) {
  for (const auto& other : module.used) {
    if (!other || *other == queue) continue;
    Event end;
    TROUPE_CUDA_TRY(cudaEventCreateWithFlags(end.out(), cudaEventDisableTiming));
    TROUPE_CUDA_TRY(cudaEventRecord(end.get(), services_.stream(*other)));
    TROUPE_CUDA_TRY(cudaStreamWaitEvent(services_.stream(queue), end.get(), 0));
  }
  return {};
}

Result<void> KernelHalf::fill_rest(Module& module, const std::string& name, std::uint64_t bytes,
                                   const kernel::Launch& op, const Call& call) {
  if (!module.pristine)
    TROUPE_CUDA_PROPAGATE(load_library(module.pristine, {call.at(op.image), op.image.bytes}));
  void* initial = nullptr;
  std::size_t size = 0;
  TROUPE_KERNEL_TRY(cudaLibraryGetGlobal(&initial, &size, module.pristine.get(), name.c_str()));
  const auto& variable = module.variables.at(name);
  TROUPE_CUDA_TRY(cudaMemcpyAsync(static_cast<std::byte*>(variable.address) + bytes,
                                  static_cast<const std::byte*>(initial) + bytes, size - bytes,
                                  cudaMemcpyDefault, services_.stream(call.queue())));
  return {};
}

Result<void> KernelHalf::fill(Module& module, const kernel::Launch& op, const kernel::Inline& given,
                              const Call& call) {
  for (const auto& part : call.tail()) {
    if ((part.tag & kernel::Launch::kSymbol) == 0) continue;
    // Whether it is filled depends on what was launched before.
    if (services_.records()) return Services::not_recorded("the contents of a variable");
    const std::string name(given.symbol(part.tag & ~kernel::Launch::kSymbol));
    auto found = module.variables.find(name);
    if (found == module.variables.end()) {
      Variable fresh;
      TROUPE_KERNEL_TRY(
          cudaLibraryGetGlobal(&fresh.address, &fresh.bytes, module.library.get(), name.c_str()));
      found = module.variables.emplace(name, fresh).first;
    }
    auto& variable = found->second;
    if (part.range.bytes > variable.bytes)
      return Error{Errc::invalid, 0,
                   "kernel.launch: the variable " + name + " has " +
                       std::to_string(variable.bytes) + " bytes, not " +
                       std::to_string(part.range.bytes)};
    const bool same = variable.contents.region == part.range.region &&
                      variable.contents.offset == part.range.offset &&
                      variable.contents.bytes == part.range.bytes;
    auto& holds = variable.holds[call.queue().way()];
    if (same && holds) continue;
    // A buffer that changes waits for the launches that read it; a variable that gets another one
    // has to do so itself.
    if (!same && variable.contents.present())
      TROUPE_CUDA_PROPAGATE(wait_for_other_queues(module, call.queue()));
    TROUPE_CUDA_TRY(cudaMemcpyAsync(variable.address, call.at(part.range), part.range.bytes,
                                    cudaMemcpyDefault, services_.stream(call.queue())));
    if (part.range.bytes < variable.bytes)
      TROUPE_CUDA_PROPAGATE(fill_rest(module, name, part.range.bytes, op, call));
    if (!same) variable.holds = {};
    variable.contents = part.range;
    holds = true;
    has_variables_.store(true);
  }
  return {};
}

void KernelHalf::overwrites(const Operand& range) {
  for (auto& [id, module] : modules_) {
    for (auto& [name, variable] : module->variables) {
      if (troupe::detail::overlap(variable.contents, range)) variable.holds = {};
    }
  }
}

void KernelHalf::adopt_plan(std::span<const std::byte> plan) {
  kernel::with_plan(plan, [this](const ModuleKey& key, std::span<const std::byte> image) {
    if (known(key) == nullptr) (void)load(key, image);
  });
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::KernelHalf, cuda)

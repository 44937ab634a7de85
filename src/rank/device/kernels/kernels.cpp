#include <algorithm>
#include <atomic>
#include <mutex>

#include <troupe/lib/kernel.hpp>

#include "common/core/content_id.hpp"
#include "common/ipc/code_file.hpp"
#include "rank/device/device_core.hpp"

// Kernels of the program's: from source or image to commands.

namespace troupe::detail {

/// What the copies of a KernelModule share.
struct ModuleState {
  struct Entry {
    std::string name;      ///< as the program calls it
    std::string in_image;  ///< as the image does
    kernel::Facts facts;
  };
  struct Symbol {
    std::string name;
    Operand contents;
    std::shared_ptr<void> keeps;
  };
  PinnedBuffer<std::uint8_t> memory;
  ContentId id;
  std::uint64_t instance = 0;  ///< the same in no other module of this process
  ContentId origin;            ///< what it was made from: the same on ranks whose devices differ
  std::string log;
  std::vector<Entry> kernels;
  mutable std::mutex mutex;
  std::vector<Symbol> symbols;
};

}  // namespace troupe::detail

namespace troupe {
namespace {

using detail::ModuleState;

constexpr std::uint32_t kMaxGrid[] = {0x7fff'ffff, 65535, 65535}, kMaxBlock[] = {1024, 1024, 64};
constexpr std::uint32_t kMaxCluster = 8;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A module of this image, which was made from what `origin` says; asks the device for the facts of
/// its kernels. Blocks.
Result<std::shared_ptr<ModuleState>> make_module(Device device, const ContentId& origin,
                                                 std::span<const std::byte> image, std::string log,
                                                 std::vector<ModuleState::Entry> kernels) {
  static std::atomic<std::uint64_t> instances{0};
  auto state = std::make_shared<ModuleState>();
  state->origin = origin;
  state->instance = ++instances;
  try {
    state->memory = device.pinned<std::uint8_t>(image.size());
  } catch (const Exception& e) {
    return device.core().port().outcomes().report(e.error());
  }
  std::memcpy(state->memory.data(), image.data(), image.size());
  state->id = content_id(image);
  state->log = std::move(log);
  state->kernels = std::move(kernels);
  kernel::Describe op;
  op.image_id[0] = state->id.low, op.image_id[1] = state->id.high;
  op.instance = state->instance;
  op.image = state->memory.operand();
  std::vector<Future<kernel::Facts>> facts;
  for (const auto& one : state->kernels) {
    facts.push_back(detail::submit_for_value<kernel::Facts>(
        device.submitter(), op, Parts(std::span<const TailOperand>(), bytes_of(one.in_image))));
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const auto& told = facts[i].wait();
    if (!told.ok()) {  // the first speaks for the others
      for (const auto& other : facts) (void)other.wait();
      detail::set_read(told.error(), false);
      return told.error();
    }
    state->kernels[i].facts = *told;
  }
  return state;
}

/// A module whose kernels are functions of the host's; see CompileOptions::host_kernels. Blocks.
Result<std::shared_ptr<ModuleState>> make_host_module(const Device& device, const ContentId& origin,
                                                      const std::string& library,
                                                      const std::vector<std::string>& names) {
  const auto file = ipc::keep_code(library);
  if (!file) {
    auto error = file.error();
    error.message = "kernel: host functions: " + error.message;
    return device.core().port().outcomes().report(error);
  }
  std::vector<ModuleState::Entry> kernels;
  for (const auto& name : names) kernels.push_back({name, name, {}});
  return make_module(
      device, origin,
      bytes_of(std::string(kernel::kHostKernels) + file->content.text() + " " + library), {},
      std::move(kernels));
}

/// What is compiled, whatever the device that it is compiled for.
ContentId origin_of(wire::CompileJob job) {
  job.engine.clear(), job.host_compiler.clear(), job.folder.clear();
  job.compute_capability = 0;
  return content_id(wire::encode(job));
}

/// The launch but for the kernel and the arguments.
kernel::Launch launch_of(const LaunchOptions& how) {
  kernel::Launch op;
  op.grid[0] = how.grid.x, op.grid[1] = how.grid.y, op.grid[2] = how.grid.z;
  op.block[0] = how.block.x, op.block[1] = how.block.y, op.block[2] = how.block.z;
  op.cluster[0] = how.cluster.x, op.cluster[1] = how.cluster.y, op.cluster[2] = how.cluster.z;
  op.shared_bytes = how.shared_bytes;
  op.cooperative = how.cooperative ? 1 : 0;
  return op;
}

/// What is wrong with the extents of a launch; empty: nothing.
std::string wrong_extents(const kernel::Launch& op, const kernel::Facts& facts) {
  const auto &grid = op.grid, &block = op.block, &cluster = op.cluster;
  std::uint64_t threads = 1, blocks_of_cluster = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const char axis = "xyz"[i];
    const auto outside = [&](const char* what, std::uint32_t is, std::uint32_t most) {
      const bool number = is != ~0u;  // LaunchOptions::Extent's for what no 32 bits hold
      return std::string(what) + axis + " is " +
             (number ? std::to_string(is) : "negative or far too large") + ", not from 1 to " +
             std::to_string(most);
    };
    if (grid[i] == 0 || grid[i] > kMaxGrid[i]) return outside("grid.", grid[i], kMaxGrid[i]);
    if (block[i] == 0 || block[i] > kMaxBlock[i]) return outside("block.", block[i], kMaxBlock[i]);
    threads *= block[i];
    if (cluster[i] == 0 && cluster[0] + cluster[1] + cluster[2] == 0) continue;
    if (cluster[i] == 0 || cluster[i] > kMaxCluster)
      return outside("cluster.", cluster[i], kMaxCluster);
    if (grid[i] % cluster[i] != 0)
      return std::string("grid.") + axis + " is no multiple of cluster." + axis;
    blocks_of_cluster *= cluster[i];
  }
  if (blocks_of_cluster > kMaxCluster)
    return "a cluster of " + std::to_string(blocks_of_cluster) + " blocks, at most 8";
  if (threads > facts.max_threads)
    return "a block of " + std::to_string(threads) + " threads, at most " +
           std::to_string(facts.max_threads);
  if (op.shared_bytes > facts.max_dynamic_shared)
    return std::to_string(op.shared_bytes) + " bytes of dynamic shared memory, at most " +
           std::to_string(facts.max_dynamic_shared);
  return {};
}

std::string wrong_arguments(std::span<const std::uint32_t> sizes, std::size_t bytes,
                            const kernel::Facts& facts) {
  if (sizes.size() != facts.parameters)
    return "it takes " + std::to_string(facts.parameters) + " arguments, not " +
           std::to_string(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != facts.size[i])
      return "argument " + std::to_string(i + 1) + " is of " + std::to_string(facts.size[i]) +
             " bytes, not " + std::to_string(sizes[i]);
  }
  if (bytes > kernel::kMaxArgumentBytes)
    return "its arguments are of more than " + std::to_string(kernel::kMaxArgumentBytes) + " bytes";
  return {};
}

template <class Op>
Future<void> submit_as(detail::Submitter& submitter, const kernel::Launch& launch,
                       const Parts& parts) {
  Op op;
  static_cast<kernel::Launch&>(op) = launch;
  return detail::submit(submitter, op, parts);
}

/// Arguments, one behind another, and which of them are buffers.
struct Given {
  std::span<const std::uint32_t> sizes;
  std::span<const std::byte> values;
  std::span<const TailOperand> buffers;
  std::span<const InlineParameter> parameters = {};  ///< in `values`
};

std::string wrong_launch(const kernel::Launch& op, const ModuleState::Entry& entry,
                         const Given& given) {
  auto wrong = wrong_arguments(given.sizes, given.values.size(), entry.facts);
  if (wrong.empty()) wrong = wrong_extents(op, entry.facts);
  return wrong.empty() ? wrong : "kernel.launch: " + entry.name + ": " + wrong;
}

/// Submits a launch to the device of the module; `op`: see launch_of().
Future<void> submit_launch(detail::Submitter& submitter, const ModuleState& module,
                           const ModuleState::Entry& entry, kernel::Launch op, bool repeatable,
                           const Given& given) {
  if (auto wrong = wrong_launch(op, entry, given); !wrong.empty())
    return submitter.refuse({Errc::invalid, 0, std::move(wrong)});
  op.image_id[0] = module.id.low, op.image_id[1] = module.id.high;
  op.instance = module.instance;
  op.image = module.memory.operand();
  op.name_bytes = static_cast<std::uint32_t>(entry.in_image.size());
  op.arguments = static_cast<std::uint32_t>(given.sizes.size());
  std::vector<TailOperand> tail;  // where variables come behind the buffers
  std::string names;
  {
    const std::lock_guard lock(module.mutex);
    if (!module.symbols.empty()) tail.assign(given.buffers.begin(), given.buffers.end());
    for (std::size_t i = 0; i < module.symbols.size(); ++i) {
      submitter.keep(module.symbols[i].keeps);
      tail.push_back({module.symbols[i].contents,
                      kernel::Launch::kSymbol | static_cast<std::uint32_t>(i),
                      Access::read,
                      {}});
      names += module.symbols[i].name + '\0';
    }
  }
  op.symbol_bytes = static_cast<std::uint32_t>(names.size());
  const auto data = kernel::Inline::pack(entry.in_image, given.sizes, given.values, names);
  std::vector<InlineParameter> parameters(given.parameters.begin(), given.parameters.end());
  const auto values_at = kernel::Inline::padded(entry.in_image.size()) +
                         kernel::Inline::padded(given.sizes.size_bytes());
  for (auto& one : parameters) one.offset += static_cast<std::uint32_t>(values_at);
  Parts parts(names.empty() ? given.buffers : std::span<const TailOperand>(tail), data);
  parts.parameters = parameters;
  return repeatable ? submit_as<kernel::RepeatableLaunch>(submitter, op, parts)
                    : submit_as<kernel::Launch>(submitter, op, parts);
}

}  // namespace

const std::string& Kernel::name() const {
  detail::require(module_ != nullptr, "an empty Kernel");
  return module_->kernels[index_].name;
}

const kernel::Facts& Kernel::facts() const {
  detail::require(module_ != nullptr, "an empty Kernel");
  return module_->kernels[index_].facts;
}

Kernel KernelModule::kernel(std::string_view name) const {
  detail::require(state_ != nullptr, "an empty KernelModule");
  const auto& all = state_->kernels;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  if (found == all.end())
    throw Exception(
        {Errc::invalid, 0, "the module was not made for a kernel \"" + std::string(name) + "\""});
  return {state_, static_cast<std::size_t>(found - all.begin())};
}

void KernelModule::bind(std::string_view name, const Operand& contents,
                        std::shared_ptr<void> keeps) {
  check(state_ != nullptr, "an empty KernelModule");
  check(!name.empty() && name.size() < 256 && name.find('\0') == name.npos,
        "bind_symbol: a name of 1 to 255 characters");
  const std::lock_guard lock(state_->mutex);
  auto& symbols = state_->symbols;
  const auto known = std::find_if(symbols.begin(), symbols.end(),
                                  [&](const auto& one) { return one.name == name; });
  if (known != symbols.end()) {
    *known = {std::string(name), contents, std::move(keeps)};
    return;
  }
  check(symbols.size() < kernel::kMaxSymbols, "bind_symbol: at most 32 variables of a module");
  symbols.push_back({std::string(name), contents, std::move(keeps)});
}

std::span<const std::byte> KernelModule::image() const {
  detail::require(state_ != nullptr, "an empty KernelModule");
  return std::as_bytes(state_->memory.span());
}

const std::string& KernelModule::log() const {
  detail::require(state_ != nullptr, "an empty KernelModule");
  return state_->log;
}

Future<KernelModule> Kernels::compile(std::string source, CompileOptions options) const {
  auto& core = device_->core();
  wire::CompileJob job;
  job.engine = core.info().engine;
  job.compute_capability = core.info().compute_capability;
  job.file = std::move(options.file);
  job.source = std::move(source);
  job.headers.assign(options.headers.begin(), options.headers.end());
  job.names = options.names;
  for (const auto& define : options.defines) job.options.push_back("-D" + define);
  job.options.insert(job.options.end(), options.options.begin(), options.options.end());
  job.include_paths = std::move(options.include_paths);
  job.standard = std::move(options.standard);
  job.link = options.link_time_optimization;
  return core.modules().make(
      [job = std::move(job), host_kernels = ipc::code_path(options.host_kernels),
       &core](const Device& device) mutable -> Result<std::shared_ptr<ModuleState>> {
        if (job.names.empty())
          return core.port().outcomes().report(
              {Errc::invalid, 0, job.file + ": no kernel of it is named"});
        const auto origin = origin_of(job);
        if (!host_kernels.empty() && job.engine == "cpu")
          return make_host_module(device, origin, host_kernels, job.names);
        const auto file = job.file;
        const auto names = job.names;
        const auto built = core.modules().builder().build(std::move(job));
        if (!built) {
          auto error = built.error();
          error.message = file + " does not compile: " + error.message;
          return core.port().outcomes().report(error);
        }
        std::vector<ModuleState::Entry> kernels;
        for (std::size_t i = 0; i < names.size(); ++i)
          kernels.push_back({names[i], built->names.at(i), {}});
        return make_module(device, origin, built->image, built->log, std::move(kernels));
      });
}

Future<KernelModule> Kernels::load(std::span<const std::byte> image, std::vector<std::string> names,
                                   std::string host_kernels) const {
  auto& core = device_->core();
  return core.modules().make([image = std::vector<std::byte>(image.begin(), image.end()),
                              names = std::move(names), host_kernels = ipc::code_path(host_kernels),
                              &core](const Device& device) -> Result<std::shared_ptr<ModuleState>> {
    if (!host_kernels.empty() && !names.empty() && core.info().engine == "cpu")
      return make_host_module(device, content_id(image), host_kernels, names);
    if (image.empty() || names.empty())
      return core.port().outcomes().report(
          {Errc::invalid, 0, "load: there is no image, or no kernel of it is named"});
    std::vector<ModuleState::Entry> kernels;
    for (const auto& name : names) kernels.push_back({name, name, {}});
    return make_module(device, content_id(image), image, {}, std::move(kernels));
  });
}

Future<std::uint64_t> Kernels::occupancy(const Kernel& kernel, std::uint32_t threads,
                                         std::uint32_t shared_bytes) const {
  detail::require(kernel.module() != nullptr, "occupancy of an empty Kernel");
  const auto& module = *kernel.module();
  const auto& entry = module.kernels[kernel.index()];
  if (threads == 0 || threads > entry.facts.max_threads ||
      shared_bytes > entry.facts.max_dynamic_shared)
    return device_->submitter()
        .refuse({Errc::invalid, 0,
                 "kernel.describe: " + entry.name + ": no such block can be launched"})
        .then([] { return std::uint64_t{0}; });
  kernel::Describe op;
  op.image_id[0] = module.id.low, op.image_id[1] = module.id.high;
  op.instance = module.instance;
  op.threads = threads, op.shared_bytes = shared_bytes;
  op.image = module.memory.operand();
  return detail::submit_for_value<kernel::Facts>(
             device_->submitter(), op,
             Parts(std::span<const TailOperand>(), bytes_of(entry.in_image)))
      .then([](const kernel::Facts& facts) {
        return std::uint64_t{facts.blocks_at_once} * facts.multiprocessors;
      });
}

Future<void> Kernels::submit(const Kernel& kernel, const LaunchOptions& how,
                             const detail::LaunchArguments& arguments) const {
  detail::require(kernel.module() != nullptr, "launch of an empty Kernel");
  const auto& module = *kernel.module();
  auto& submitter = device_->submitter();
  submitter.keep(kernel.module());
  return submit_launch(
      submitter, module, module.kernels[kernel.index()], launch_of(how), how.repeatable,
      {arguments.sizes(), arguments.bytes(), arguments.buffers(), arguments.parameters()});
}

Future<void> Kernels::submit_there(detail::Submitter& there, const Kernel& kernel,
                                   const LaunchOptions& how,
                                   const detail::LaunchArguments& arguments) {
  detail::require(kernel.module() != nullptr, "launch of an empty Kernel");
  const auto& module = *kernel.module();
  const auto& name = module.kernels[kernel.index()].name;
  auto op = launch_of(how);
  op.image_id[0] = module.origin.low, op.image_id[1] = module.origin.high;
  op.name_bytes = static_cast<std::uint32_t>(name.size());
  op.arguments = static_cast<std::uint32_t>(arguments.sizes().size());
  // An empty grid is refused here; what else is wrong is told by the owner, whose device it is.
  const auto data = kernel::Inline::pack(name, arguments.sizes(), arguments.bytes(), {});
  const Parts parts(arguments.buffers(), data);
  return how.repeatable ? submit_as<kernel::RepeatableLaunchThere>(there, op, parts)
                        : submit_as<kernel::LaunchThere>(there, op, parts);
}

}  // namespace troupe

namespace troupe::rank_process {

Future<KernelModule> KernelModules::make(
    std::function<Result<std::shared_ptr<detail::ModuleState>>(const Device&)> make) {
  auto promise = std::make_shared<Promise<KernelModule>>();
  const auto future = promise->future();
  // As a request it holds up fences: the end of the program and a commit wait for its error.
  const auto request = std::make_shared<Outcomes::Request>(core_.port().outcomes());
  const auto started =
      builder_.start([promise, request, make = std::move(make), core = core_.weak_from_this()] {
        const auto held = core.lock();
        if (!held) return;
        const auto made = make(Device(held));
        (void)request->end({});  // an error has been reported
        if (made.ok()) held->modules().remember(*made);
        promise->resolve(made.ok() ? Result<KernelModule>(KernelModule(*made))
                                   : Result<KernelModule>(made.error()));
        request->told();
      });
  if (!started.ok()) promise->resolve(core_.port().outcomes().report(started.error()));
  return future;
}

void KernelModules::remember(const std::shared_ptr<detail::ModuleState>& module) {
  const std::lock_guard lock(mutex_);
  std::erase_if(modules_, [](const auto& one) { return one.expired(); });
  modules_.push_back(module);
}

Future<void> KernelModules::launch_for_other(detail::Submitter& submitter, const kernel::Launch& op,
                                             bool repeatable, const Parts& parts) {
  const auto given = kernel::Inline::parse(kernel::LaunchThere::kName, op.extent(), parts);
  if (!given) return submitter.refuse(given.error());
  const ContentId origin{op.image_id[0], op.image_id[1]};
  const std::lock_guard lock(mutex_);
  for (const auto& one : modules_) {
    const auto module = one.lock();
    if (module == nullptr || module->origin != origin) continue;
    const auto found = std::find_if(module->kernels.begin(), module->kernels.end(),
                                    [&](const auto& entry) { return entry.name == given->name(); });
    if (found == module->kernels.end()) continue;
    return submit_launch(submitter, *module, *found, op, repeatable,
                         {given->sizes(), given->values(), parts.tail});
  }
  return submitter.refuse({Errc::invalid, 0,
                           "kernel.launch_there: rank " + std::to_string(core_.rank()) +
                               " has made no module with the kernel " + std::string(given->name()) +
                               " from the same source, or keeps it no more"});
}

}  // namespace troupe::rank_process

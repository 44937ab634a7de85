#include <algorithm>
#include <list>
#include <memory>

#include <troupe/lib/kernel.hpp>
#include <troupe/lib/launch_arguments.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/kernel/arguments.hpp"
#include "lib/kernel/fibers/blocks_cpu.hpp"
#include "lib/kernel/fibers/loaded_image_cpu.hpp"

namespace troupe::host::cpu {
namespace {

using kernel::key_of;
using kernel::ModuleKey;

constexpr std::size_t kMaxModules = 64;
/// What a GPU of today has, so that programs meet the same limits.
constexpr std::uint32_t kMaxThreads = 1024, kMaxShared = 227u << 10;

Error no_kernel(std::string_view name) {
  return {Errc::invalid, 0, "kernel: there is no kernel " + std::string(name) + " in the image"};
}

kernel::Facts facts_of(const LoadedImage::Kernel& one) {
  kernel::Facts facts{.max_threads = kMaxThreads, .max_dynamic_shared = kMaxShared};
  facts.parameters = static_cast<std::uint32_t>(one.sizes.size());
  for (std::size_t i = 0; i < std::min(one.sizes.size(), kernel::kMaxArguments); ++i)
    facts.size[i] = static_cast<std::uint16_t>(one.sizes[i]);
  return facts;
}

class KernelHalf final : public LibraryHalfOf<KernelHalf, kernel::Operations> {
 public:
  explicit KernelHalf(Services& services)
      : services_(services), blocks_(std::make_shared<BlockRunner>(services.threads())) {}

  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op, const Call&) override {
    return info.traits.blocking ||
           known(key_of(*reinterpret_cast<const kernel::Launch*>(op))) == nullptr;
  }

  Result<void> run(const kernel::Describe& op, const Call& call) {
    const std::string_view name(reinterpret_cast<const char*>(call.data().data()),
                                call.data().size());
    const auto image = loaded(key_of(op), op.image, call);
    if (!image) return image.error();
    const auto found = (*image)->find(name);
    if (!found) return no_kernel(name);
    if (found->sizes.size() > kernel::kMaxArguments)
      return Error{Errc::unsupported, 0, "kernel: it has more than 128 parameters"};
    auto facts = facts_of(*found);
    facts.blocks_at_once = op.threads != 0 ? 1 : 0;
    facts.multiprocessors = static_cast<std::uint32_t>(services_.threads());
    std::memcpy(call.at(op.facts), &facts, sizeof facts);
    return {};
  }

  Result<void> run(const kernel::Launch& op, const Call& call) {
    const auto given =
        kernel::Inline::parse(op.kName, op.extent(), Parts(call.tail(), call.data()));
    if (!given) return given.error();
    const auto image = loaded(key_of(op), op.image, call);
    if (!image) return image.error();
    const auto found = (*image)->find(given->name());
    if (!found) return no_kernel(given->name());
    const bool threads = found->host == nullptr;
    if (threads && (op.cooperative != 0 || op.cluster[0] * op.cluster[1] * op.cluster[2] > 1))
      return Error{Errc::unsupported, 0,
                   "kernel.launch: the cpu engine has no clusters and no cooperative launches"};
    if (auto fits = kernel::check_arguments(*given, facts_of(*found)); !fits) return fits;
    auto variables = variables_of(**image, *given, call);
    if (!variables) return variables.error();
    auto arguments = std::make_shared<kernel::Arguments>(*given, call);
    return services_.submit(call, [op, image = *image, found = *found, arguments, blocks = blocks_,
                                   variables = std::move(*variables)] {
      for (const auto& [to, from, bytes] : variables) std::memcpy(to, from, bytes);
      if (found.host != nullptr) {
        return found.host->run({{op.grid[0], op.grid[1], op.grid[2]},
                                {op.block[0], op.block[1], op.block[2]},
                                op.shared_bytes},
                               arguments->get());
      }
      blocks->run({image->table(),
                   found.entry,
                   {op.grid[0], op.grid[1], op.grid[2]},
                   {op.block[0], op.block[1], op.block[2]},
                   op.shared_bytes,
                   arguments->get()});
    });
  }

  std::vector<std::vector<std::byte>> take_new_plans() override {
    return std::exchange(plans_, {});
  }
  void adopt_plan(std::span<const std::byte> plan) override {
    kernel::with_plan(plan, [this](const ModuleKey& key, std::span<const std::byte> image) {
      if (known(key) == nullptr) (void)load(key, image);
    });
  }

 private:
  struct Variable {
    void* to;
    const std::byte* from;
    std::uint64_t bytes;
  };

  std::shared_ptr<LoadedImage> known(const ModuleKey& key) {
    const auto found = std::find_if(images_.begin(), images_.end(),
                                    [&](const auto& one) { return one.first == key; });
    if (found == images_.end()) return nullptr;
    images_.splice(images_.begin(), images_, found);
    return found->second;
  }
  Result<std::shared_ptr<LoadedImage>> load(const ModuleKey& key,
                                            std::span<const std::byte> bytes) {
    auto image = LoadedImage::of(key, bytes);
    if (!image) return image;
    images_.emplace_front(key, *image);
    if (images_.size() > kMaxModules) images_.pop_back();  // a launch under way keeps its own
    return image;
  }
  Result<std::shared_ptr<LoadedImage>> loaded(const ModuleKey& key, const Operand& where,
                                              const Call& call) {
    if (auto there = known(key)) return there;
    const std::span<const std::byte> bytes(call.at(where), where.bytes);
    auto image = load(key, bytes);
    if (image.ok()) {
      if (auto plan = kernel::plan_of(key, bytes); !plan.empty()) plans_.push_back(std::move(plan));
    }
    return image;
  }
  /// Lists the copies to make before a launch: each bound buffer into its variable, and if the
  /// buffer is shorter, the image's initial contents into the rest of the variable.
  static Result<std::vector<Variable>> variables_of(LoadedImage& image, const kernel::Inline& given,
                                                    const Call& call) {
    std::vector<Variable> all;
    for (const auto& part : call.tail()) {
      if ((part.tag & kernel::Launch::kSymbol) == 0) continue;
      const std::string name(given.symbol(part.tag & ~kernel::Launch::kSymbol));
      const auto [address, bytes] = image.variable(name);
      if (address == nullptr || part.range.bytes > bytes)
        return Error{Errc::invalid, 0,
                     "kernel.launch: the image has no variable " + name + " of at least " +
                         std::to_string(part.range.bytes) + " bytes"};
      all.push_back({address, call.at(part.range), part.range.bytes});
      if (part.range.bytes == bytes) continue;
      const auto initial = image.initial(name);
      if (!initial) return initial.error();
      const auto rest = initial->subspan(part.range.bytes);
      all.push_back(
          {static_cast<std::byte*>(address) + part.range.bytes, rest.data(), rest.size()});
    }
    return all;
  }

  Services& services_;
  std::shared_ptr<BlockRunner> blocks_;
  std::list<std::pair<ModuleKey, std::shared_ptr<LoadedImage>>> images_;  ///< the last used first
  std::vector<std::vector<std::byte>> plans_;
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::KernelHalf, cpu)

#include "leaks.hpp"

#include <unistd.h>

#include <troupe/lib/dnn.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/solver.hpp>

#include <algorithm>
#include <thread>

#include "account.hpp"
#include "blows.hpp"
#include "player.hpp"

namespace troupe::torture {
namespace {

using namespace std::chrono_literals;

/// Memory is kept for reuse. A GPU's slab is a descriptor of the last of these.
const std::vector<std::string> kMemory{"/memfd:troupe-slab", "/memfd:troupe-pinned",
                                       "/memfd:troupe-apart", "/dev/nvidiactl"};
/// NCCL connects ranks when they first exchange something, cuFile opens its log when it is loaded.
const std::vector<std::string> kOnGpu{"socket", "file cufile.log"};
constexpr std::size_t kDeviceHosts = 2;  ///< the active one and the standby

Holdings of_device_hosts() {
  Holdings most;
  for (const auto pid : device_hosts()) {
    for (const auto& [kind, count] : holdings_of(pid)) most[kind] = std::max(most[kind], count);
  }
  return most;
}

/// Whether the operation works; false: it is not supported. Throws Exception.
bool works(const Future<void>& future) {
  const auto outcome = future.wait();
  if (!outcome.ok() && outcome.code() != Errc::unsupported) throw Exception(outcome.error());
  return outcome.ok();
}

/// What a library opens when it is first used, it keeps. Gives what is not supported.
std::set<Kind> use_each_library(Device& device) {
  std::set<Kind> missing;
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4);
  const auto index = device.alloc<std::int32_t>(4);
  device.fill(x, 1.0), device.fill(y, 1.0), device.fill(index, 0);
  device.vector().axpby(1.0, x, 1.0, y);
  device.blas().scal(1.0, x);
  device.sparse().gather(x, index, y);
  (void)works(device.rng().uniform(y, {.seed = 1}));
  RandomSequence sequence({.generator = rng::Generator::xorwow, .seed = 1});
  if (!works(device.rng().next(sequence, y))) missing.insert(Kind::sequence);
  device.fill(x, 1.0);
  (void)device.solver().potrf(blas::Uplo::lower, MatrixRef(x, 1, 1)).get();
  primitives::on(device).sort(x, y).get();
  const auto spectrum = device.alloc<std::complex<double>>(4);
  if (!works(fft::on(device).real_to_complex(x, spectrum, {.extents = {4}})))
    missing.insert({Kind::transform, Kind::transform_back});
  const auto image = device.alloc<float>(4), filter = device.alloc<float>(1),
             filtered = device.alloc<float>(4);
  device.fill(image, 1.0f), device.fill(filter, 1.0f);
  const ConvolutionOptions convolution{
      .input_channels = 1, .output_channels = 1, .extents = {2, 2}, .filter = {1, 1}};
  if (!works(dnn::on(device).convolution(image, filter, filtered, convolution)))
    missing.insert(Kind::convolution);
  const auto q = device.alloc<Half>(8), o = device.alloc<Half>(8);
  device.fill(q, Half{});
  if (!works(dnn::on(device).attention(q, q, q, o, {.sequence_q = 1, .dim_qk = 8})))
    missing.insert(Kind::attention);
  (void)device.take_error();  // what is not supported was looked at
  return missing;
}

/// The same on all ranks, again if meanwhile a device host is lost that a busy machine kept silent.
std::set<Kind> missing_libraries(Runtime& runtime) {
  auto& world = runtime.world();
  if (runtime.config().text("on-loss") == "shrink")
    return world.spectator() ? std::set<Kind>() : use_each_library(runtime.device());
  for (;;) {
    std::set<Kind> missing;
    bool struck = false;
    try {
      missing = use_each_library(runtime.device());
    } catch (const Exception& e) {
      if (!is_of_a_fault(e.code())) throw;
      (void)runtime.device().take_error();
      struck = true;
    }
    const auto others = world.gather_values(struck);
    if (std::find(others.begin(), others.end(), true) == others.end()) return missing;
    if (const auto epoch = world.wait_active(); !epoch.ok())
      throw CollectiveException(epoch.error());
  }
}

}  // namespace

Leaks::Leaks(Runtime& runtime, std::chrono::nanoseconds patience) : patience_(patience) {
  missing_ = missing_libraries(runtime);
  const auto end = Clock::now() + patience_;
  const auto& config = runtime.config();
  const bool rises = config.text("standby") != "off" && config.text("isolation") != "thread";
  while (rises && !runtime.world().standby_ready() && Clock::now() < end)
    std::this_thread::sleep_for(5ms);
  rank_ = holdings_of(::getpid());
  device_host_ = of_device_hosts();
  channels_ = config.text("token-path") == "nccl";
  if (!channels_) return;
  // An end to and one from each other rank stay for the next transfer.
  const int ends = 2 * (runtime.world().size() - 1);
  auto& holder = config.text("isolation") == "thread" ? rank_ : device_host_;
  for (const auto* kind : {"socket", "[eventfd]"}) holder[kind] += ends;
}

std::string Leaks::found() const {
  auto text = grown(rank_, holdings_of(::getpid()), kMemory);
  if (!text.empty()) text = "the rank has open: " + text;
  const bool on_gpu = device_host_.contains("/dev/nvidiactl");
  std::string host;  // what NCCL opens for a channel, and keeps, is not told
  if (!on_gpu || !channels_)
    host = grown(device_host_, of_device_hosts(), on_gpu ? kOnGpu : std::vector<std::string>());
  if (!host.empty()) text += (text.empty() ? "" : "; ") + ("a device host has open: " + host);
  if (const auto hosts = device_hosts().size(); hosts > kDeviceHosts)
    text += (text.empty() ? "" : "; ") + std::to_string(hosts) + " device hosts are there";
  return text;
}

void Leaks::check() {
  const auto end = Clock::now() + patience_;
  auto text = found();
  while (!text.empty() && Clock::now() < end) {
    std::this_thread::sleep_for(20ms);
    text = found();
  }
  if (!text.empty()) throw Finding("LEFT OPEN: " + text);
}

}  // namespace troupe::torture

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/core/narrow.hpp"
#include "lib/dnn/convolution/cpu.hpp"

/// oneDNN (https://oneapi-src.github.io/oneDNN) convolves in f32. Narrower operands are converted
/// before and, rounded once, after.
namespace troupe::dnn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

const dnnl::engine& host() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// A primitive and the layout that it wants the weights in.
struct Prepared {
  dnnl::convolution_forward primitive;
  memory::desc x, w, preferred_w, bias, y;
};

/// The shape: the operation without its operands, but for the presence of bias.
Convolution key_of(const Convolution& op) {
  auto key = op;
  key.x = key.w = key.y = {};
  key.bias = {};
  key.bias.region = op.bias.present() ? 1 : 0;
  key.dtype = DType::f32;
  return key;
}
bool same(const Convolution& a, const Convolution& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;  // operations have no padding
}

std::shared_ptr<const Prepared> make(const Convolution& op) {
  static constexpr Tag kData[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
  static constexpr Tag kFilter[] = {Tag::owi, Tag::ohwi, Tag::odhwi};
  static constexpr Tag kGrouped[] = {Tag::gowi, Tag::gohwi, Tag::godhwi};
  const auto form = op.rank - 1;
  const auto output = op.output_extents();
  memory::dims x{op.batch, op.input_channels}, y{op.batch, op.output_channels};
  memory::dims w{op.output_channels / op.groups, op.input_channels / op.groups};
  if (op.groups > 1) w.insert(w.begin(), op.groups);
  memory::dims strides, dilations, before, after;
  for (std::uint32_t i = 0; i < op.rank; ++i) {
    x.push_back(op.extents[i]);
    w.push_back(op.filter[i]);
    y.push_back(output[i]);
    strides.push_back(op.strides[i]);
    dilations.push_back(op.dilations[i] - 1);  // oneDNN: 0 is dense
    before.push_back(op.padding_before[i]);
    after.push_back(op.padding_after[i]);
  }
  const auto type = memory::data_type::f32;
  Prepared made;
  made.x = {x, type, kData[form]};
  made.w = {w, type, op.groups > 1 ? kGrouped[form] : kFilter[form]};
  made.y = {y, type, kData[form]};
  if (op.bias.present()) made.bias = {{op.output_channels}, type, Tag::x};
  const memory::desc any(w, type, Tag::any);
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto description =
      op.bias.present() ? dnnl::convolution_forward::desc(kind, algorithm, made.x, any, made.bias,
                                                          made.y, strides, dilations, before, after)
                        : dnnl::convolution_forward::desc(kind, algorithm, made.x, any, made.y,
                                                          strides, dilations, before, after);
  const dnnl::convolution_forward::primitive_desc chosen(description, host());
  made.preferred_w = chosen.weights_desc();
  made.primitive = dnnl::convolution_forward(chosen);
  return std::make_shared<Prepared>(std::move(made));
}

/// An operand in f32: where it is, or converted.
template <class T>
class Widened {
 public:
  Widened(const std::byte* from, std::size_t count) {
    if constexpr (std::is_same_v<T, float>) {
      // oneDNN takes no pointer to const, and does not write to its inputs.
      data_ = const_cast<std::byte*>(from);
    } else if (from != nullptr) {
      const auto* const begin = reinterpret_cast<const T*>(from);
      converted_.resize(count);
      std::transform(begin, begin + count, converted_.begin(), [](T x) { return to_float(x); });
      data_ = converted_.data();
    }
  }
  [[nodiscard]] void* get() const noexcept { return data_; }

 private:
  std::vector<float> converted_;
  void* data_ = nullptr;
};

std::size_t elements(const memory::desc& desc) {
  return desc.get_size() / sizeof(float);
}

template <class T>
void execute(const Prepared& prepared, const ConvolutionOperands& operands, int threads) {
  ::omp_set_num_threads(threads);  // of this thread
  const Widened<T> x(operands.x, elements(prepared.x)), w(operands.w, elements(prepared.w)),
      bias(operands.bias, elements(prepared.bias));
  std::vector<float> wide_y;
  void* y = operands.y;
  if constexpr (!std::is_same_v<T, float>) {
    wide_y.resize(elements(prepared.y));
    y = wide_y.data();
  }
  dnnl::stream stream(host());
  const memory given_w(prepared.w, host(), w.get());
  auto used_w = given_w;
  if (prepared.preferred_w != prepared.w) {
    used_w = memory(prepared.preferred_w, host());
    dnnl::reorder(given_w, used_w).execute(stream, const_cast<memory&>(given_w), used_w);
  }
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(prepared.x, host(), x.get())},
                                            {DNNL_ARG_WEIGHTS, used_w},
                                            {DNNL_ARG_DST, memory(prepared.y, host(), y)}};
  if (operands.bias != nullptr)
    arguments.emplace(DNNL_ARG_BIAS, memory(prepared.bias, host(), bias.get()));
  prepared.primitive.execute(stream, arguments);
  stream.wait();
  if constexpr (!std::is_same_v<T, float>) {
    std::transform(wide_y.begin(), wide_y.end(), reinterpret_cast<T*>(operands.y),
                   [](float sum) { return from_float<T>(sum); });
  }
}

}  // namespace

class Convolver::Cache {
 public:
  explicit Cache(int its_threads) : threads(its_threads) {}

  std::shared_ptr<const Prepared> find(const Convolution& key) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& entry) { return same(entry.first, key); });
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return found->second;
  }
  void add(const Convolution& key, std::shared_ptr<const Prepared> prepared) {
    if (entries_.size() == kEntries) entries_.pop_back();  // work that is queued keeps its own
    entries_.emplace_front(key, std::move(prepared));
  }

  const int threads;

 private:
  static constexpr std::size_t kEntries = 64;
  std::list<std::pair<Convolution, std::shared_ptr<const Prepared>>> entries_;  // latest use first
};

Convolver::Convolver(int threads) : cache_(std::make_unique<Cache>(std::max(1, threads))) {}
Convolver::~Convolver() = default;

bool Convolver::has(const Convolution& op) const {
  return cache_->find(key_of(op)) != nullptr;
}

Result<std::function<void()>> Convolver::prepare(const Convolution& op,
                                                 const ConvolutionOperands& operands) {
  const auto key = key_of(op);
  auto prepared = cache_->find(key);
  if (prepared == nullptr) {
    try {
      prepared = make(key);
    } catch (const dnnl::error& error) {
      return Error{Errc::unsupported, static_cast<int>(error.status),
                   std::string("dnn.convolution: oneDNN: ") + error.what()};
    }
    cache_->add(key, prepared);
  }
  auto* const function = op.dtype == DType::f16    ? &execute<Half>
                         : op.dtype == DType::bf16 ? &execute<BFloat16>
                                                   : &execute<float>;
  return std::function<void()>([function, prepared, operands, threads = cache_->threads] {
    function(*prepared, operands, threads);
  });
}

std::string Convolver::version() {
  const auto* const loaded = dnnl::version();
  return std::to_string(loaded->major) + "." + std::to_string(loaded->minor) + "." +
         std::to_string(loaded->patch);
}

const void* Convolver::symbol() {
  return reinterpret_cast<const void*>(&::dnnl_version);
}

}  // namespace troupe::dnn

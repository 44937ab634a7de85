#include "troupe_side.hpp"

#include "values.hpp"

namespace troupe::perf {
namespace {

ReduceOp op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::prod: return ReduceOp::prod;
    case Reduction::max: return ReduceOp::max;
    case Reduction::min: return ReduceOp::min;
    case Reduction::avg: return ReduceOp::avg;
    case Reduction::mulsum: return ReduceOp::premul_sum;
    default: return ReduceOp::sum;
  }
}

/// Calls of one dtype.
class Typed {
 public:
  virtual ~Typed() = default;
  virtual void prepare() = 0;
  virtual Future<void> start(const Call& call, std::int64_t shift) = 0;
  virtual void write(const Call& call, std::int64_t first, std::span<const std::byte> source) = 0;
  virtual std::vector<std::byte> read(const Call& call, std::int64_t first,
                                      std::int64_t elements) = 0;
};

template <Element T>
class TypedCalls final : public Typed {
 public:
  TypedCalls(Runtime& runtime, Collectives& ranks, std::uint64_t capacity)
      : world_(runtime.world()), device_(runtime.device()), ranks_(ranks) {
    const auto elements = static_cast<std::int64_t>(capacity / sizeof(T));
    a_ = device_.alloc<T>(elements, "source"), b_ = device_.alloc<T>(elements, "destination");
    device_.fill(a_, T{}).get(), device_.fill(b_, T{}).get();
  }

  /// Tokens of the neighbours' buffers, as these are now.
  void prepare() override {
    for (auto* buffer : {&a_, &b_})
      if (!buffer->valid()) buffer->renew();
    const auto next = static_cast<std::size_t>((ranks_.rank() + 1) % ranks_.size());
    source_ = ranks_.gather_values(a_.token())[next];
    destination_ = ranks_.gather_values(b_.token())[next];
  }

  Future<void> start(const Call& call, std::int64_t shift) override {
    const auto at = extents(call, ranks_.rank(), ranks_.size());
    const auto from = (call.in_place ? b_ : a_).slice(shift + at.source_offset, at.source);
    const auto to = b_.slice(shift + at.destination_offset, at.destination);
    const Rank root(call.root);
    switch (call.operation) {
      case Operation::all_reduce:
        return call.reduction == Reduction::mulsum
                   ? ranks_.all_reduce_scaled(scalar(), from, to)
                   : ranks_.all_reduce(from, to, op_of(call.reduction));
      case Operation::reduce:
        return call.reduction == Reduction::mulsum
                   ? ranks_.reduce_scaled(scalar(), from, to, root)
                   : ranks_.reduce(from, to, op_of(call.reduction), root);
      case Operation::reduce_scatter:
        return call.reduction == Reduction::mulsum
                   ? ranks_.reduce_scatter_scaled(scalar(), from, to)
                   : ranks_.reduce_scatter(from, to, op_of(call.reduction));
      case Operation::broadcast:
        return call.in_place ? ranks_.broadcast(to, root) : ranks_.broadcast(from, to, root);
      case Operation::all_gather: return ranks_.all_gather(from, to);
      case Operation::gather: return ranks_.gather(from, to, root);
      case Operation::scatter: return ranks_.scatter(from, to, root);
      case Operation::all_to_all: return ranks_.all_to_all(from, to);
      case Operation::all_to_all_v:
        return ranks_.all_to_all(from, sent_parts(call, ranks_.rank(), ranks_.size()), to,
                                 received_parts(call, ranks_.rank(), ranks_.size()));
      case Operation::fetch: return world_.fetch(part(source_, call, shift), to);
      case Operation::put: return world_.put(from, part(destination_, call, shift));
      default: return send_and_receive(from, to);
    }
  }

  void write(const Call& call, std::int64_t first, std::span<const std::byte> source) override {
    const auto at = extents(call, ranks_.rank(), ranks_.size());
    const std::span<const T> values(reinterpret_cast<const T*>(source.data()),
                                    source.size() / sizeof(T));
    device_
        .upload(values,
                (call.in_place ? b_ : a_).slice(at.source_offset + first, std::ssize(values)))
        .get();
  }
  std::vector<std::byte> read(const Call& call, std::int64_t first,
                              std::int64_t elements) override {
    const auto at = extents(call, ranks_.rank(), ranks_.size());
    const auto values = device_.download(b_.slice(at.destination_offset + first, elements));
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }

 private:
  [[nodiscard]] T scalar() const {
    const auto bits = bits_of(scalar_of(ranks_.rank()), dtype_of<T>);
    T value{};
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static GpuToken part(GpuToken token, const Call& call, std::int64_t shift) {
    token.offset += static_cast<std::uint64_t>(shift);
    token.length = static_cast<std::uint64_t>(call.count);
    return token;
  }
  Future<void> send_and_receive(const GpuRef<T>& from, const GpuRef<T>& to) {
    const int rank = ranks_.rank(), size = ranks_.size();
    const Transfer<T> send{from, Rank((rank + 1) % size)};
    const Transfer<T> receive{to, Rank((rank + size - 1) % size)};
    return ranks_.exchange<T>(std::span(&send, 1), std::span(&receive, 1));
  }

  World& world_;
  Device& device_;
  Collectives& ranks_;
  GpuRef<T> a_, b_;
  GpuToken source_, destination_;  ///< the next rank's
};

template <class... T>
std::unique_ptr<Typed> make_typed(DType dtype, Runtime& runtime, Collectives& ranks,
                                  std::uint64_t capacity) {
  std::unique_ptr<Typed> made;
  (void)((dtype_of<T> == dtype &&
          (made = std::make_unique<TypedCalls<T>>(runtime, ranks, capacity)) != nullptr) ||
         ...);
  return made;
}

class TroupeSide final : public Side {
 public:
  TroupeSide(Runtime& runtime, Collectives& ranks, std::uint64_t capacity)
      : runtime_(runtime), ranks_(ranks), capacity_(capacity) {}

  [[nodiscard]] std::string lacks(const Call&) const override { return {}; }

  void prepare(const Call& call) override {
    futures_.clear();
    sequence_ = {};
    Result<void> outcome;
    if (!typed_ || dtype_ != call.dtype) {
      typed_.reset();
      dtype_ = call.dtype;
      try {
        typed_ = make_typed<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t,
                            std::uint64_t, Half, float, double, BFloat16, Float8E4M3, Float8E5M2>(
            dtype_, runtime_, ranks_, capacity_);
      } catch (const Exception& e) {
        outcome = e.error();
      }
    }
    runtime_.world().agree(outcome);
    typed_->prepare();
  }
  void start(const Call& call, std::int64_t shift) override {
    if (call.count != 0) futures_.push_back(typed_->start(call, shift));
  }
  void wait() override {
    // The last one first: nobody is woken up for each of the others.
    Result<void> outcome;
    for (auto future = futures_.rbegin(); future != futures_.rend(); ++future)
      if (const auto& one = future->wait(); !one.ok()) outcome = one;
    futures_.clear();
    std::move(outcome).take();
  }
  void record(const std::function<void()>& starts) override {
    sequence_ = runtime_.device().record(starts);
    futures_.clear();  // those of recorded calls have ended
  }
  void replay() override { futures_.push_back(sequence_.run()); }
  void write(const Call& call, std::int64_t first, std::span<const std::byte> source) override {
    typed_->write(call, first, source);
  }
  std::vector<std::byte> read(const Call& call, std::int64_t first,
                              std::int64_t elements) override {
    return typed_->read(call, first, elements);
  }

 private:
  Runtime& runtime_;
  Collectives& ranks_;
  const std::uint64_t capacity_;
  std::unique_ptr<Typed> typed_;
  DType dtype_{};
  std::vector<Future<void>> futures_;
  Sequence sequence_;
};

}  // namespace

std::unique_ptr<Side> make_troupe_side(Runtime& runtime, Collectives& ranks,
                                       std::uint64_t capacity) {
  return std::make_unique<TroupeSide>(runtime, ranks, capacity);
}

}  // namespace troupe::perf

// MPI on host memory, as what troupe's calls on the cpu engine are compared with.
#include <mpi.h>

#include <climits>
#include <cstring>
#include <stdexcept>

#include "side.hpp"

namespace troupe::perf {
namespace {

MPI_Datatype datatype(DType dtype) {
  switch (dtype) {
    case DType::i8: return MPI_INT8_T;
    case DType::u8: return MPI_UINT8_T;
    case DType::i32: return MPI_INT32_T;
    case DType::u32: return MPI_UINT32_T;
    case DType::i64: return MPI_INT64_T;
    case DType::u64: return MPI_UINT64_T;
    case DType::f32: return MPI_FLOAT;
    case DType::f64: return MPI_DOUBLE;
    default: return MPI_DATATYPE_NULL;
  }
}
MPI_Op reduction(Reduction op) {
  switch (op) {
    case Reduction::sum: return MPI_SUM;
    case Reduction::prod: return MPI_PROD;
    case Reduction::min: return MPI_MIN;
    case Reduction::max: return MPI_MAX;
    default: return MPI_OP_NULL;
  }
}

void must(int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(std::string(text, static_cast<std::size_t>(length)));
}

class MpiSide final : public Side {
 public:
  explicit MpiSide(const PeerSetup& setup)
      : rank_(setup.rank),
        size_(setup.size),
        colour_(setup.colour),
        a_(setup.capacity),
        b_(setup.capacity) {}
  ~MpiSide() override {
    if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  }
  MpiSide(const MpiSide&) = delete;
  MpiSide& operator=(const MpiSide&) = delete;

  [[nodiscard]] std::string lacks(const Call& call) const override {
    if (extents(call, rank_, size_).largest() > INT_MAX / static_cast<int>(size_of(call.dtype)))
      return "MPI's counts end at 2 GiB";
    if (!traits(call.operation).reduces) return {};
    if (datatype(call.dtype) == MPI_DATATYPE_NULL) return "MPI has no such type";
    return reduction(call.reduction) == MPI_OP_NULL ? "MPI has no such reduction" : "";
  }
  /// Forms the communicator, the first time.
  void prepare(const Call&) override {
    if (communicator_ == MPI_COMM_NULL)
      must(MPI_Comm_split(MPI_COMM_WORLD, colour_, rank_, &communicator_));
  }
  void wait() override {}
  void record(const std::function<void()>&) override {
    throw std::runtime_error("MPI records nothing");
  }
  void replay() override {}

  /// Returns when it is done.
  void start(const Call& call, std::int64_t shift) override {
    const auto at = extents(call, rank_, size_);
    const auto element = size_of(call.dtype);
    auto* const from = place(call.in_place ? b_ : a_, shift + at.source_offset, element);
    auto* const to = place(b_, shift + at.destination_offset, element);
    const bool root = rank_ == call.root;
    const bool moves = !traits(call.operation).reduces;
    const int count = static_cast<int>(call.count * (moves ? static_cast<int>(element) : 1));
    const auto type = moves ? MPI_BYTE : datatype(call.dtype);
    const auto op = reduction(call.reduction);
    const void* const source = call.in_place ? MPI_IN_PLACE : from;
    switch (call.operation) {
      case Operation::all_reduce:
        return must(MPI_Allreduce(source, to, count, type, op, communicator_));
      case Operation::reduce:
        return must(
            MPI_Reduce(root ? source : from, to, count, type, op, call.root, communicator_));
      case Operation::broadcast:
        if (root && !call.in_place)
          std::memcpy(to, from, static_cast<std::size_t>(call.count) * element);
        return must(MPI_Bcast(to, count, type, call.root, communicator_));
      case Operation::all_gather:
        return must(MPI_Allgather(source, count, type, to, count, type, communicator_));
      case Operation::gather:
        return must(MPI_Gather(root ? source : from, count, type, to, count, type, call.root,
                               communicator_));
      case Operation::scatter:
        return must(MPI_Scatter(from, count, type, root && call.in_place ? MPI_IN_PLACE : to, count,
                                type, call.root, communicator_));
      case Operation::reduce_scatter: return reduce_scatter(call, from, to, count, type, op);
      case Operation::all_to_all:
        return must(MPI_Alltoall(from, count, type, to, count, type, communicator_));
      case Operation::all_to_all_v: return all_to_all_v(call, from, to, static_cast<int>(element));
      case Operation::fetch: return shift_by(-1, from, to, count);
      case Operation::send_recv:
      case Operation::put:
      case Operation::tell: return shift_by(1, from, to, count);
    }
  }

  void write(const Call& call, std::int64_t first, std::span<const std::byte> source) override {
    const auto at = extents(call, rank_, size_).source_offset + first;
    std::memcpy(place(call.in_place ? b_ : a_, at, size_of(call.dtype)), source.data(),
                source.size());
  }
  std::vector<std::byte> read(const Call& call, std::int64_t first,
                              std::int64_t elements) override {
    const auto at = extents(call, rank_, size_).destination_offset + first;
    const auto* const from = place(b_, at, size_of(call.dtype));
    return {from, from + static_cast<std::size_t>(elements) * size_of(call.dtype)};
  }

 private:
  static std::byte* place(std::vector<std::byte>& buffer, std::int64_t elements,
                          std::size_t element) {
    return buffer.data() + static_cast<std::size_t>(elements) * element;
  }
  /// In place MPI puts the result at the beginning of the source, and not where NCCL does: that
  /// takes a copy.
  void reduce_scatter(const Call& call, const std::byte* from, std::byte* to, int count,
                      MPI_Datatype type, MPI_Op op) {
    if (!call.in_place)
      return must(MPI_Reduce_scatter_block(from, to, count, type, op, communicator_));
    const auto bytes = static_cast<std::size_t>(call.count) * size_of(call.dtype);
    if (part_.size() < bytes) part_.resize(bytes);
    must(MPI_Reduce_scatter_block(from, part_.data(), count, type, op, communicator_));
    std::memcpy(to, part_.data(), bytes);
  }
  void all_to_all_v(const Call& call, const std::byte* from, std::byte* to, int element) {
    struct Parts {
      std::vector<int> lengths, places;
      Parts(const std::vector<std::int64_t>& elements, int bytes) {
        for (const auto length : elements) {
          places.push_back(places.empty() ? 0 : places.back() + lengths.back());
          lengths.push_back(static_cast<int>(length) * bytes);
        }
      }
    };
    const Parts sent(sent_parts(call, rank_, size_), element);
    const Parts received(received_parts(call, rank_, size_), element);
    must(MPI_Alltoallv(from, sent.lengths.data(), sent.places.data(), MPI_BYTE, to,
                       received.lengths.data(), received.places.data(), MPI_BYTE, communicator_));
  }
  void shift_by(int step, const std::byte* from, std::byte* to, int count) {
    must(MPI_Sendrecv(from, count, MPI_BYTE, (rank_ + step + size_) % size_, 0, to, count, MPI_BYTE,
                      (rank_ - step + size_) % size_, 0, communicator_, MPI_STATUS_IGNORE));
  }

  const int rank_, size_, colour_;
  std::vector<std::byte> a_, b_, part_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace troupe::perf

troupe::perf::Side* troupe_perf_make_peer(const troupe::perf::PeerSetup& setup) {
  return new troupe::perf::MpiSide(setup);
}

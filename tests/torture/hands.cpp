#include "hands.hpp"

#include <cstring>

#include "catalogue/random.hpp"
#include "catalogue/values.hpp"
#include "oracle.hpp"
#include "own_code.hpp"
#include "random_calls.hpp"

namespace troupe::torture {

std::vector<GpuToken> gather_tokens(World& world, Device& device, std::span<const GpuToken> mine,
                                    const GpuRef<std::uint8_t>& own,
                                    const GpuRef<std::uint8_t>& all) {
  const auto bytes = std::as_bytes(mine);
  device.upload<std::uint8_t>({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                              own);
  const auto gathered = world.all_gather(own, all);
  const auto seen = device.download(all);
  gathered.get();
  std::vector<GpuToken> tokens(seen.size() / sizeof(GpuToken));
  std::memcpy(tokens.data(), seen.data(), seen.size());
  return tokens;
}

namespace {

template <class T>
std::span<const T> as(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  std::vector<std::byte> bytes(values.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
T value_of(const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

GpuToken part_of(GpuToken token, const Slice& slice) {
  token.offset += static_cast<std::uint64_t>(slice.first);
  token.length = static_cast<std::uint64_t>(slice.count);
  return token;
}

/// The arithmetic of one device. `find` gives the reference of a slice, `index` one of indices.
template <class Refs, class T, class Find, class FindIndex>
class Arithmetic {
 public:
  template <class U>
  using Ref = typename Refs::template To<U>;

  Arithmetic(BasicVector<Refs> vector, BasicBlas<Refs> blas, BasicSparse<Refs> sparse,
             BasicRng<Refs> rng, Find find, FindIndex index)
      : vector_(vector), blas_(blas), sparse_(sparse), rng_(rng), find_(find), index_(index) {}

  Future<void> submit(const Operation& op, DType index_dtype) {
    const auto alpha = static_cast<T>(op.alpha), beta = static_cast<T>(op.beta);
    const auto a = find_(op.at[0]);
    const BasicScalarArg<Ref<T>> scalar = op.alpha_at.present()
                                              ? BasicScalarArg<Ref<T>>(find_(op.alpha_at))
                                              : BasicScalarArg<Ref<T>>(alpha);
    const auto flip = [](bool yes) { return yes ? blas::Transpose::yes : blas::Transpose::no; };
    switch (op.kind) {
      case Kind::scal: return blas_.scal(scalar, a);
      case Kind::uniform:
      case Kind::normal:
      case Kind::law:
      case Kind::sequence: return draw(rng_, op.kind, op.data, a);
      default: break;
    }
    const auto uplo = op.transpose_b ? blas::Uplo::upper : blas::Uplo::lower;
    if (op.kind == Kind::iamax) {
      const auto where = index_(op.at[1], std::int64_t{});
      return op.transpose_a ? blas_.iamin(a, where) : blas_.iamax(a, where);
    }
    if (op.kind == Kind::syrk) {
      const MatrixRef matrix(a, op.transpose_a ? op.m : op.n, op.transpose_a ? op.n : op.m),
          c(find_(op.at[2]), op.n, op.n);
      return blas_.syrk(uplo, flip(op.transpose_a), alpha, matrix, beta, c);
    }
    const auto b = find_(op.at[1]);
    switch (op.kind) {
      case Kind::axpby: return vector_.axpby(scalar, a, beta, b);
      case Kind::axpy: return blas_.axpy(scalar, a, b);
      case Kind::nrm2: return blas_.nrm2(a, b);
      case Kind::blas_copy: return blas_.copy(a, b);
      case Kind::swap: return blas_.swap(a, b);
      case Kind::gather:
        return index_dtype == DType::i32 ? sparse_.gather(a, index_(op.at[3], std::int32_t{}), b)
                                         : sparse_.gather(a, index_(op.at[3], std::int64_t{}), b);
      default: break;
    }
    const auto c = find_(op.at[2]);
    switch (op.kind) {
      case Kind::multiply: return vector_.multiply(a, b, c);
      case Kind::divide: return vector_.divide(a, b, c);
      case Kind::dot: return blas_.dot(a, b, c);
      case Kind::gemv:
        return blas_.gemv(a, b, c, {.m = op.m, .n = op.n, .transpose = flip(op.transpose_a)}, alpha,
                          beta);
      case Kind::gemm:
        // The same product by the other library for it.
        if (op.m % 2 == 0) return matmul(op, a, b, c, alpha, beta);
        return blas_.gemm(a, b, c,
                          {.m = op.m,
                           .n = op.n,
                           .k = op.k,
                           .transpose_a = flip(op.transpose_a),
                           .transpose_b = flip(op.transpose_b)},
                          alpha, beta);
      case Kind::ger: return blas_.ger(alpha, a, b, MatrixRef(c, op.m, op.n));
      case Kind::trmm:
        return blas_.trmm(blas::Side::left, uplo, blas::Transpose::no, blas::Diagonal::stored,
                          alpha, MatrixRef(a, op.m, op.m), MatrixRef(b, op.m, op.n),
                          MatrixRef(c, op.m, op.n));
      default:
        return index_dtype == DType::i32 ? multiply_sparse(op, a, b, c, std::int32_t{})
                                         : multiply_sparse(op, a, b, c, std::int64_t{});
    }
  }

 private:
  Future<void> matmul(const Operation& op, const Ref<T>& a, const Ref<T>& b, const Ref<T>& c,
                      T alpha, T beta) {
    const auto flip = [](bool yes) { return yes ? blas::Transpose::yes : blas::Transpose::no; };
    const auto matrix = [](const Ref<T>& buffer, std::int64_t rows, std::int64_t columns,
                           bool flipped) {
      return MatrixRef(buffer, flipped ? columns : rows, flipped ? rows : columns);
    };
    const auto result = matrix(c, op.m, op.n, false);
    return blas_.template matmul<T, T, T, T>(
        alpha, matrix(a, op.m, op.k, op.transpose_a), matrix(b, op.k, op.n, op.transpose_b), beta,
        result, result, {.transpose_a = flip(op.transpose_a), .transpose_b = flip(op.transpose_b)});
  }
  template <class I>
  Future<void> multiply_sparse(const Operation& op, const Ref<T>& values, const Ref<T>& x,
                               const Ref<T>& y, I zero) {
    const auto alpha = static_cast<T>(op.alpha), beta = static_cast<T>(op.beta);
    const auto begin = index_(op.at[3], zero), column = index_(op.at[4], zero);
    if (op.kind == Kind::spmv) {
      const BasicCsrMatrix<Ref<T>, Ref<I>> a{op.m, op.n, begin, column, values};
      return sparse_.spmv(a, x, y, alpha, beta);
    }
    const BasicSellMatrix<Ref<T>, Ref<I>> a{op.m,  op.n,   values.length(), op.k,
                                            begin, column, values};
    return sparse_.spmv(a, x, y, alpha, beta);
  }

  BasicVector<Refs> vector_;
  BasicBlas<Refs> blas_;
  BasicSparse<Refs> sparse_;
  BasicRng<Refs> rng_;
  Find find_;
  FindIndex index_;
};

Contents contents_of(const Program& program, const Slice& slice) {
  return program.buffers[static_cast<std::size_t>(slice.buffer)].contents;
}

}  // namespace

// Buffers

void Hands::allocate(int buffer) {
  const auto& spec = program_.buffers[static_cast<std::size_t>(buffer)];
  if (refs_.size() < program_.buffers.size()) refs_.resize(program_.buffers.size());
  with_type(spec.dtype, [&](auto zero) {
    ref(buffer) = GpuRef<decltype(zero)>();  // freed before there is another
    ref(buffer) = device_.alloc<decltype(zero)>(spec.length);
  });
}

bool Hands::valid(int buffer) {
  return std::visit([](const auto& one) { return one.valid(); }, ref(buffer));
}
void Hands::renew(int buffer) {
  std::visit([](auto& one) { one.renew(); }, ref(buffer));
}
GpuToken Hands::token(int buffer) {
  return std::visit([](const auto& one) { return one.token(); }, ref(buffer));
}

Future<void> Hands::upload(int buffer, const std::vector<std::byte>& bytes) {
  return std::visit(
      [&]<class T>(const GpuRef<T>& one) { return device_.upload<T>(as<T>(bytes), one); },
      ref(buffer));
}

std::vector<std::byte> Hands::download(const Slice& slice) {
  return std::visit(
      [&]<class T>(const GpuRef<T>& one) {
        return bytes_of<T>(device_.download(one.slice(slice.first, slice.count)));
      },
      ref(slice.buffer));
}

GpuToken Hands::token_of(const Slice& slice) const {
  return part_of(
      tokens_[static_cast<std::size_t>(slice.rank)][static_cast<std::size_t>(slice.buffer)], slice);
}

// Operations

Future<void> Hands::submit(const Operation& op, Thread& thread) {
  if (op.kind == Kind::nop)
    return op.target == op.rank ? device_.nop() : device_of(op.target).nop();
  if (op.kind == Kind::wrong) return submit_wrong(op);
  if (is_collective(op.kind)) return submit_collective(op, thread);
  if (op.kind == Kind::split) {
    split(op.group);
    return Future<void>(Result<void>());
  }
  if (is_transfer(op.kind) || op.kind == Kind::hold) return submit_transfer(op, thread);
  if (op.kind >= Kind::potrf && op.kind <= Kind::accumulate) return submit_library(op, thread);
  const bool arithmetic = op.kind >= Kind::multiply && op.kind <= Kind::sequence;
  if (arithmetic) return submit_arithmetic(op);
  return op.target == op.rank ? submit_memory(op, thread) : submit_remote_memory(op);
}

Future<void> Hands::submit_memory(const Operation& op, Thread& thread) {
  const auto& at = op.at[0];
  return with_type(op.dtype, [&](auto zero) -> Future<void> {
    using T = decltype(zero);
    const auto contents = contents_of(program_, at);
    switch (op.kind) {
      case Kind::fill: return device_.fill(here<T>(at), value_of<T>(constant_of(op, contents, 1)));
      case Kind::copy: return device_.copy(here<T>(at), here<T>(op.at[1]));
      case Kind::upload: {
        const auto bytes = uploaded_by(op, contents, at.count);
        return device_.upload<T>(as<T>(bytes), here<T>(at));
      }
      case Kind::replace:
        allocate(at.buffer);
        return device_.fill(here<T>(at), value_of<T>(constant_of(op, contents, 1)));
      case Kind::download:
        thread.seen.push_back({&op, bytes_of<T>(device_.download(here<T>(at)))});
        return Future<void>(Result<void>());
      default: break;
    }
    const auto count = static_cast<std::size_t>(at.count);
    auto pinned = std::make_shared<PinnedBuffer<T>>(device_.pinned<T>(count));
    thread.kept.push_back(pinned);
    if (op.kind == Kind::from_pinned) {
      const auto bytes = uploaded_by(op, contents, at.count);
      std::memcpy(pinned->data(), bytes.data(), bytes.size());
      return device_.copy(*pinned, here<T>(at));
    }
    const auto future = device_.copy(here<T>(at), *pinned);
    thread.seen.push_back({&op, {}, [pinned] { return bytes_of<T>(pinned->span()); }, future});
    return future;
  });
}

Future<void> Hands::submit_remote_memory(const Operation& op) {
  auto remote = device_of(op.target);
  return with_type(op.dtype, [&](auto zero) -> Future<void> {
    using T = decltype(zero);
    const RemoteRef<T> at(token_of(op.at[0]));
    if (op.kind == Kind::copy) return remote.copy(at, RemoteRef<T>(token_of(op.at[1])));
    return remote.fill(at, value_of<T>(constant_of(op, contents_of(program_, op.at[0]), 1)));
  });
}

Future<void> Hands::submit_arithmetic(const Operation& op) {
  const auto index_dtype = op.at[3].present()
                               ? program_.buffers[static_cast<std::size_t>(op.at[3].buffer)].dtype
                               : DType::i32;
  const auto typed = [&]<class T>(T) {
    if (op.target == op.rank) {
      const auto find = [this](const Slice& slice) { return here<T>(slice); };
      const auto index = [this]<class I>(const Slice& slice, I) { return here<I>(slice); };
      return Arithmetic<LocalRefs, T, decltype(find), decltype(index)>(
                 device_.vector(), device_.blas(), device_.sparse(), device_.rng(), find, index)
          .submit(op, index_dtype);
    }
    auto remote = device_of(op.target);
    const auto find = [this](const Slice& slice) { return RemoteRef<T>(token_of(slice)); };
    const auto index = [this]<class I>(const Slice& slice, I) {
      return RemoteRef<I>(token_of(slice));
    };
    return Arithmetic<RemoteRefs, T, decltype(find), decltype(index)>(
               remote.vector(), remote.blas(), remote.sparse(), remote.rng(), find, index)
        .submit(op, index_dtype);
  };
  return op.dtype == DType::f32 ? typed(float{}) : typed(double{});
}

void Hands::split(int group) {
  const SplitOf choice(group, world_.rank());
  groups_[static_cast<std::size_t>(group)] = world_.split(choice.colour, choice.key);
}

Future<void> Hands::submit_transfer(const Operation& op, Thread& thread) {
  return with_type(op.dtype, [&](auto zero) -> Future<void> {
    using T = decltype(zero);
    if (op.kind == Kind::carry) return submit_carry(op);
    if (op.kind == Kind::put) return world_.put(here<T>(op.at[0]), token_of(op.at[1]));
    const auto token = token_of(op.at[0]);
    if (op.kind == Kind::fetch) return world_.fetch(token, here<T>(op.at[1]));
    if (op.kind == Kind::hold) {
      auto lease = std::make_shared<TokenLease>();
      thread.kept.push_back(lease);
      return world_.hold(token).then([lease](const TokenLease& held) { *lease = held; });
    }
    const auto fetched = world_.fetch<T>(token);
    auto future = fetched.then([](const GpuRef<T>&) {});
    thread.seen.push_back({&op,
                           {},
                           [this, fetched] { return bytes_of<T>(device_.download(fetched.get())); },
                           future});
    return future;
  });
}

/// What the actor does is not in one order with what this rank asks of that device: that comes
/// before, and what comes behind waits. The source may be another buffer than when the round began.
Future<void> Hands::submit_carry(const Operation& op) {
  const auto before = device_of(op.at[1].rank).nop();
  if (!before.wait().ok()) return before;
  auto carried =
      world_.actor<Carrier>(Carrier::kName, home_of(op.at[1].rank))
          .ask(Carry{part_of(token(op.at[0].buffer), op.at[0]), token_of(op.at[1])}, deadline_);
  (void)carried.wait();
  return carried;
}

Future<void> Hands::submit_wrong(const Operation& op) {
  const auto from = op.at[0], to = op.at[1];
  if (op.wrong == Wrong::spoilt) {
    const auto typed = [&]<class T>(T) { return device_.fill(here<T>(to), T{}); };
    return with_type(spec_of(to).dtype, typed);
  }
  const auto here_to = here<double>(to);
  switch (op.wrong) {
    case Wrong::short_destination: {
      // A local call, on buffers of this rank: y has fewer elements than x.
      const auto x = std::get<GpuRef<double>>(ref(to.buffer)).slice(0, 40);
      return device_.blas().axpy(2.0, x, here_to.slice(0, 5));
    }
    case Wrong::gather_lengths: return world_.all_gather(here_to, here_to.slice(0, 1));
    case Wrong::token_dtype: {
      auto token = token_of({from.rank, from.buffer, from.first, to.count});
      token.dtype = static_cast<std::uint32_t>(DType::i64);
      return world_.fetch(token, here_to);
    }
    case Wrong::token_length: return world_.fetch(token_of(from), here_to);
    case Wrong::no_such_rank: return world_.device(Rank(program_.ranks + 5)).nop();
    case Wrong::freed_token:
      return world_.fetch(freed_, here_to.slice(0, static_cast<std::int64_t>(freed_.length)));
    case Wrong::odd_normal: return device_.rng().normal(here_to.slice(0, 3), {.seed = 1});
    case Wrong::spoilt:
    case Wrong::root: break;
    case Wrong::differs: {
      const bool odd = op.rank == op.peer;
      if (odd && op.data == 0) return world_.broadcast(here_to, Rank(0));
      if (odd && op.data == 1) return world_.all_reduce(here_to.slice(0, 19), ReduceOp::sum);
      return world_.all_reduce(here_to, odd ? ReduceOp::max : ReduceOp::sum);
    }
  }
  return world_.broadcast(here_to, Rank(program_.ranks + 91));
}

}  // namespace troupe::torture

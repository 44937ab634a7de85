#include "oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "catalogue/random.hpp"
#include "catalogue/values.hpp"

namespace troupe::torture {

const std::vector<std::byte>& RandomTable::numbers(DType dtype, Kind kind,
                                                   std::uint64_t set) const {
  const std::size_t group = (dtype == DType::f64 ? kKinds : 0u) + index_of(kind);
  return sets.at(group * kSets + static_cast<std::size_t>(set));
}

std::vector<std::byte> constant_of(const Operation& op, Contents contents, std::int64_t count) {
  const auto size = size_of(op.dtype);
  std::vector<std::byte> element(size), out(static_cast<std::size_t>(count) * size);
  if (contents == Contents::bits)
    element = random_bytes(op.data, size);
  else
    store(op.dtype, element.data(), op.alpha);
  for (std::size_t i = 0; i < out.size(); i += size)
    std::memcpy(out.data() + i, element.data(), size);
  return out;
}

std::vector<std::byte> uploaded_by(const Operation& op, Contents contents, std::int64_t count) {
  const auto n = static_cast<std::size_t>(count);
  return contents == Contents::bits ? random_bytes(op.data, n * size_of(op.dtype))
                                    : random_integers(op.dtype, op.data, n);
}

BufferSpec seen_by(const Program& program, const Operation& op) {
  if (has_value(op.kind)) return {DType::i64, 1, Contents::integers, {}};
  return program.buffers[static_cast<std::size_t>(op.at[0].buffer)];
}

std::vector<std::byte> bytes_of(std::int64_t value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::int64_t first_difference(const BufferSpec& spec, const std::vector<std::byte>& a,
                              const std::vector<std::byte>& b) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) return -1;
  const auto whole = size_of(spec.dtype);
  const auto dtype = part_of(spec.dtype);
  const auto size = size_of(dtype);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); i += size) {
    if (std::memcmp(a.data() + i, b.data() + i, size) == 0) continue;
    const double x = load(dtype, a.data() + i), y = load(dtype, b.data() + i);
    const bool zeros = spec.contents == Contents::integers && x == 0 && y == 0;
    const bool near = spec.contents == Contents::rounded &&
                      std::abs(x - y) * exact_limit(dtype) <= kRoundings * std::abs(y);
    if (!zeros && !near) return static_cast<std::int64_t>(i / whole);
  }
  return a.size() == b.size() ? -1
                              : static_cast<std::int64_t>(std::min(a.size(), b.size()) / whole);
}

std::string in_words(const BufferSpec& spec, std::int64_t element,
                     const std::vector<std::byte>& seen, const std::vector<std::byte>& expected) {
  const auto whole = size_of(spec.dtype), first = static_cast<std::size_t>(element) * whole;
  const auto value = [&](const std::vector<std::byte>& bytes) -> std::string {
    if (bytes.size() < first + whole) return "not there";
    const auto dtype = part_of(spec.dtype);
    std::string text = fmt::format("{:.17g}", load(dtype, bytes.data() + first));
    if (size_of(dtype) != whole)
      text += fmt::format(" {:+.17g} i", load(dtype, bytes.data() + first + size_of(dtype)));
    return text;
  };
  return fmt::format("element {} is {}, not {}", element, value(seen), value(expected));
}

Oracle::Oracle(const Program& program, const RandomTable& random)
    : program_(program), random_(random), memory_(static_cast<std::size_t>(program.ranks)) {
  for (int rank = 0; rank < program.ranks; ++rank) {
    memory_[static_cast<std::size_t>(rank)].resize(program.buffers.size());
    for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) reset(rank, b, 0);
  }
}

std::vector<std::byte> Oracle::initial(const Program& program, int rank, int buffer,
                                       std::uint64_t version) {
  const auto& spec = program.buffers[static_cast<std::size_t>(buffer)];
  const auto count = static_cast<std::size_t>(spec.length);
  const auto seed =
      derive(derive(program.seed, static_cast<std::uint64_t>(buffer * 64 + rank)), version);
  if (spec.contents == Contents::bits) return random_bytes(seed, count * size_of(spec.dtype));
  if (spec.contents != Contents::indices) return random_integers(spec.dtype, seed, count);
  std::vector<std::byte> bytes(count * size_of(spec.dtype));
  for (std::size_t i = 0; i < count; ++i)
    store(spec.dtype, bytes.data() + i * size_of(spec.dtype), static_cast<double>(spec.indices[i]));
  return bytes;
}

void Oracle::reset(int rank, int buffer, std::uint64_t version) {
  at(rank, buffer) = {initial(program_, rank, buffer, version)};
}

const std::vector<std::byte>& Oracle::contents(int rank, int buffer) const {
  return at(rank, buffer).bytes;
}
bool Oracle::unsure(int rank, int buffer) const {
  return at(rank, buffer).unsure;
}
bool Oracle::may_be_stale(int rank, int buffer) const {
  return at(rank, buffer).may_be_stale;
}
bool Oracle::must_be_stale(int rank, int buffer) const {
  return at(rank, buffer).must_be_stale;
}
void Oracle::set(int rank, int buffer, double value) {
  const auto length = program_.buffers[static_cast<std::size_t>(buffer)].length;
  for (std::int64_t i = 0; i < length; ++i) put({rank, buffer, 0, length}, i, value);
}

// Elements

double Oracle::get(const Slice& slice, std::int64_t i) const {
  const auto type = dtype(slice);
  return load(type, at(slice.rank, slice.buffer).bytes.data() +
                        static_cast<std::size_t>(slice.first + i) * size_of(type));
}

std::complex<double> Oracle::get_complex(const Slice& slice, std::int64_t i) const {
  const auto type = dtype(slice);
  if (!is_complex(type)) return get(slice, i);
  const auto* const element = at(slice.rank, slice.buffer).bytes.data() +
                              static_cast<std::size_t>(slice.first + i) * size_of(type);
  return {get(slice, i), load(part_of(type), element + size_of(type) / 2)};
}

void Oracle::put_complex(const Slice& slice, std::int64_t i, std::complex<double> value) {
  put(slice, i, value.real());
  const auto type = dtype(slice);
  if (!is_complex(type)) return;
  auto* const element = at(slice.rank, slice.buffer).bytes.data() +
                        static_cast<std::size_t>(slice.first + i) * size_of(type);
  store(part_of(type), element + size_of(type) / 2, value.imag());
}

void Oracle::put(const Slice& slice, std::int64_t i, double value) {
  const auto type = dtype(slice);
  if (value != std::floor(value) || std::abs(value) > exact_limit(type)) {
    inexact_ = std::to_string(value) + " is no exact " +
               std::string(torture::to_string(Kind::fill)) + " of " +
               std::string(troupe::to_string(type));
    return;
  }
  store(type,
        at(slice.rank, slice.buffer).bytes.data() +
            static_cast<std::size_t>(slice.first + i) * size_of(type),
        value);
}

std::vector<std::byte> Oracle::read(const Slice& slice) const {
  const auto size = size_of(dtype(slice));
  const auto& bytes = at(slice.rank, slice.buffer).bytes;
  const auto first =
      bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slice.first) * size);
  return {first, first + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slice.count) * size)};
}

void Oracle::write(const Slice& slice, const std::vector<std::byte>& bytes) {
  std::memcpy(at(slice.rank, slice.buffer).bytes.data() +
                  static_cast<std::size_t>(slice.first) * size_of(dtype(slice)),
              bytes.data(), bytes.size());
}

// Operations

void Oracle::apply(const Round& round, std::size_t step, const OutcomeOf& outcome,
                   const Look& look) {
  const auto& scripts = round.scripts[step];
  // Threads have nothing in common but what nobody writes, so each is followed on its own; where
  // its ranks meet in a collective, all of them have come as far.
  for (std::size_t thread = 0; thread < scripts[0].size(); ++thread) {
    std::vector<std::size_t> next(scripts.size(), 0);
    for (;;) {
      std::uint32_t first = UINT32_MAX;
      for (std::size_t rank = 0; rank < scripts.size(); ++rank) {
        const auto& script = scripts[rank][thread];
        for (; next[rank] < script.size() && !is_collective(script[next[rank]].kind); ++next[rank])
          apply_one(script[next[rank]], outcome(script[next[rank]]), look);
        if (next[rank] < script.size()) first = std::min(first, script[next[rank]].id);
      }
      if (first == UINT32_MAX) break;
      std::vector<const Operation*> parts;
      for (std::size_t rank = 0; rank < scripts.size(); ++rank) {
        const auto& script = scripts[rank][thread];
        if (next[rank] < script.size() && script[next[rank]].id == first)
          parts.push_back(&script[next[rank]++]);
      }
      collective(parts, outcome);
    }
  }
}

void Oracle::apply_one(const Operation& op, Outcome outcome, const Look& look) {
  if (outcome != Outcome::done) {
    for (const auto& to : written(op)) {
      auto& memory = at(to.rank, to.buffer);
      memory.may_be_stale = true;
      memory.unsure = memory.unsure || outcome == Outcome::unsure;
      memory.must_be_stale = memory.must_be_stale || outcome == Outcome::spoilt;
    }
    return;
  }
  const auto of_unsure = [this](const Slice& slice) {
    return slice.present() && at(slice.rank, slice.buffer).unsure;
  };
  const bool unknown = of_unsure(op.alpha_at) || std::any_of(op.at.begin(), op.at.end(), of_unsure);
  switch (op.kind) {
    case Kind::download:
    case Kind::to_pinned:
    case Kind::fetch_new: return unknown ? void() : look(op, read(op.at[0]));
    default: break;
  }
  if (unknown) {
    for (const auto& to : written(op)) at(to.rank, to.buffer).unsure = true;
    return;
  }
  if (has_value(op.kind)) look(op, bytes_of(value_of(op)));
  compute(op);
}

void Oracle::compute(const Operation& op) {
  const auto& a = op.at[0];
  const auto& b = op.at[1];
  const auto& c = op.at[2];
  const auto alpha = op.alpha_at.present() ? get(op.alpha_at, 0) : op.alpha;
  const auto contents_of = [&](const Slice& slice) {
    return program_.buffers[static_cast<std::size_t>(slice.buffer)].contents;
  };
  switch (op.kind) {
    case Kind::fill:
    case Kind::replace: return write(a, constant_of(op, contents_of(a), a.count));
    case Kind::upload:
    case Kind::from_pinned: return write(a, uploaded_by(op, contents_of(a), a.count));
    case Kind::copy:
    case Kind::blas_copy:
    case Kind::fetch:
    case Kind::put:
    case Kind::carry: return move(a, b);
    case Kind::multiply:
      for (std::int64_t i = 0; i < a.count; ++i) put(c, i, get(a, i) * get(b, i));
      return;
    case Kind::divide:
      for (std::int64_t i = 0; i < a.count; ++i) put(c, i, get(a, i) / get(b, i));
      return;
    case Kind::axpby:
    case Kind::axpy:
    case Kind::accumulate:
      for (std::int64_t i = 0; i < a.count; ++i) {
        const auto old = op.kind == Kind::axpby ? op.beta * get(b, i) : get(b, i);
        put(b, i, alpha * get(a, i) + old);
      }
      return;
    case Kind::scal:
      for (std::int64_t i = 0; i < a.count; ++i) put(a, i, alpha * get(a, i));
      return;
    case Kind::dot:
    case Kind::nrm2: {
      double sum = 0;
      for (std::int64_t i = 0; i < a.count; ++i)
        sum += get(a, i) * get(op.kind == Kind::dot ? b : a, i);
      return op.kind == Kind::dot ? put(c, 0, sum) : put(b, 0, std::sqrt(sum));
    }
    case Kind::gemv:
    case Kind::gemm: return product(op);
    case Kind::ger:
    case Kind::syrk:
    case Kind::trmm: return special_product(op);
    case Kind::iamax: return extreme(op);
    case Kind::swap:
      for (std::int64_t i = 0; i < a.count; ++i) {
        const auto of_a = get(a, i);
        put(a, i, get(b, i));
        put(b, i, of_a);
      }
      return;
    case Kind::spmv:
    case Kind::spmv_sell:
    case Kind::gather: return sparse(op);
    case Kind::potrf: return factorise(op);
    case Kind::syevd:
    case Kind::gesvd:
    case Kind::gesv: return of_diagonal(op);
    case Kind::sort: return sort(op);
    case Kind::reduce_local: return reduce_local(op);
    case Kind::scan: return scan(op);
    case Kind::select: return select(op);
    case Kind::spgemm: return multiply_sparse(op);
    case Kind::transform:
    case Kind::transform_back: return transform(op);
    case Kind::convolution: return convolve(op);
    case Kind::attention: return attend(op);
    case Kind::combine:
      for (std::int64_t i = 0; i < a.count; ++i)
        put(c, i, alpha * get(a, i) + get(b, b.count - 1 - i));
      return;
    case Kind::smooth: return smooth(op);
    case Kind::tally: return tally(op);
    case Kind::uniform:
    case Kind::normal:
    case Kind::law:
    case Kind::sequence:
      if (!random_.lacks(op)) write(a, random_.numbers(op.dtype, op.kind, op.data));
      return;
    default: return;
  }
}

}  // namespace troupe::torture

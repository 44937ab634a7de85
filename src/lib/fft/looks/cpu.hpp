#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "common/core/narrow.hpp"
#include "device_host/engine/cpu/await.hpp"
#include "device_host/engine/cpu/spoil.hpp"
#include "lib/fft/looks/checked_transform.hpp"

/// The looks at Fourier transforms on the cpu engine: see sums.hpp.
namespace troupe::host::cpu {

/// The sums of all transforms of a batch; `data` has numbers of N.
template <class N>
std::vector<sums::FftSums> sums_of(const CheckedSide& side, std::int64_t batch, const N* data) {
  using sums::Number;
  const auto& layout = side.layout;
  const auto last = layout.rank - 1;
  std::array<std::vector<Number>, fft::kMaxRank> tables;
  for (std::size_t i = 0; i < fft::kMaxRank; ++i) {
    for (std::int64_t k = 0; k < side.weights[i].n; ++k)
      tables[i].push_back(sums::weight(side.weights[i], k));
  }
  using Indices = std::array<std::int64_t, fft::kMaxRank>;
  const auto weight = [&](const Indices& at) {
    return tables[0][static_cast<std::size_t>(at[0])] *
           (tables[1][static_cast<std::size_t>(at[1])] *
            tables[2][static_cast<std::size_t>(at[2])]);
  };
  const auto number = [](N x) {
    if constexpr (std::is_same_v<N, double>) {
      return x;
    } else {
      return double{to_float(x)};
    }
  };
  std::vector<sums::FftSums> all(static_cast<std::size_t>(batch));
  for (std::int64_t b = 0; b < batch; ++b) {
    Indices at{};
    for (at[0] = 0; at[0] < layout.extents[0]; ++at[0]) {
      for (at[1] = 0; at[1] < layout.extents[1]; ++at[1]) {
        sums::FftSums row;  // apart, so that few terms are added to a large sum
        for (at[2] = 0; at[2] < layout.extents[2]; ++at[2]) {
          const auto place = b * layout.distance + at[0] * layout.pitch[0] +
                             at[1] * layout.pitch[1] + at[2] * layout.pitch[2];
          const Number x = side.complex
                               ? Number{number(data[2 * place]), number(data[2 * place + 1])}
                               : Number{number(data[place]), 0};
          if (!side.half) {
            add_element(row, x, weight(at));
            continue;
          }
          Indices image;
          for (std::size_t i = 0; i < fft::kMaxRank; ++i)
            image[i] = at[i] == 0 ? 0 : side.weights[i].n - at[i];
          add_half(row, x, weight(at), weight(image),
                   at[last] == 0 || 2 * at[last] == side.weights[last].n);
        }
        auto& sum = all[static_cast<std::size_t>(b)];
        sum.sum = sum.sum + row.sum, sum.mirrored = sum.mirrored + row.mirrored;
        sum.size += row.size;
      }
    }
  }
  return all;
}

/// A look at a batch of transforms. Its work on the queue shares what it notes.
template <class N>
class FftLook {
 public:
  FftLook(const CheckedTransform& transform, std::byte* input, std::byte* output, const Call& call,
          Services& services)
      : services_(services), call_(call), state_(std::make_shared<State>()) {
    state_->transform = transform;
    state_->input = input, state_->output = output;
  }

  Result<void> before() {
    return services_.submit(call_, [state = state_] { state->note_input(); });
  }
  Result<WrongProduct> after(bool wrong) {
    return submit_and_wait(services_, call_, [state = state_, wrong] {
      if (wrong) state->spoil();
      return state->judge();
    });
  }
  Result<void> restore() {
    if (!state_->transform.destroys_input) return {};
    return submit_in_time(services_, call_, [state = state_] { state->put_back(); });
  }

 private:
  struct State {
    CheckedTransform transform;
    std::byte *input = nullptr, *output = nullptr;
    std::vector<std::byte> saved;
    std::vector<sums::FftSums> of_input;

    void note_input() {
      if (transform.destroys_input) saved.assign(input, input + transform.input_bytes);
      of_input = sums_of(transform.input, transform.batch, reinterpret_cast<const N*>(input));
    }
    void put_back() const { std::memcpy(input, saved.data(), saved.size()); }
    /// An element in the middle of the last transform.
    void spoil() const {
      const auto& layout = transform.output.layout;
      auto place = (transform.batch - 1) * layout.distance;
      for (std::size_t i = 0; i < fft::kMaxRank; ++i)
        place += layout.extents[i] / 2 * layout.pitch[i];
      spoil_element(reinterpret_cast<N*>(output)[transform.output.complex ? 2 * place : place]);
    }
    [[nodiscard]] WrongProduct judge() const {
      if (of_input.empty()) return {};  // the queue failed
      const auto of_output =
          sums_of(transform.output, transform.batch, reinterpret_cast<const N*>(output));
      for (std::size_t b = 0; b < of_output.size(); ++b) {
        const auto judged =
            sums::judge(of_input[b], of_output[b].sum, transform.volume, transform.input.half,
                        transform.lopsided, transform.rounding);
        if (judged.wrong) return describe(transform, static_cast<std::int64_t>(b), judged);
      }
      return std::nullopt;
    }
  };

  Services& services_;
  const Call& call_;
  std::shared_ptr<State> state_;
};

}  // namespace troupe::host::cpu

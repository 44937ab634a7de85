#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <troupe/device.hpp>
#include <troupe/lib/operations.hpp>

#include "reference/types.hpp"

/// Calls that a file describes, for judges that compare what they compute with what another library
/// does. A request is
///
///     {"library": "blas", "call": "gemv", "dtype": "f64",
///      "arrays": {"a": {"offset": 0, "count": 12, "rows": 3, "columns": 4, "leading": 3}, …},
///      "alpha": [2.0, 0.0], "transpose": "yes"}
///
/// `offset` is in bytes of the file of operands, `count` in elements. A matrix has "rows",
/// "columns" and "leading". Factors are pairs, real and imaginary.
namespace troupe::judge {

class Call {
 public:
  /// `operands` is the whole file, and outlives the call.
  Call(Device& device, const nlohmann::json& request, std::vector<std::byte>& operands)
      : device_(&device), request_(&request), operands_(&operands) {}

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] bool has(std::string_view name) const;
  /// Numbers, strings, and lists of these: call.cpp has the types.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const {
    return get<std::int64_t>(name);
  }
  /// Which of the words it is.
  template <class E>
  [[nodiscard]] E choice(std::string_view name,
                         std::initializer_list<std::string_view> words) const {
    return static_cast<E>(index_of(name, words));
  }
  [[nodiscard]] blas::Transpose transpose(std::string_view name = "transpose") const {
    return choice<blas::Transpose>(name, {"no", "yes", "conjugate"});
  }
  [[nodiscard]] blas::Uplo uplo() const { return choice<blas::Uplo>("uplo", {"lower", "upper"}); }
  [[nodiscard]] blas::Diagonal diagonal() const {
    return choice<blas::Diagonal>("diagonal", {"stored", "unit"});
  }
  template <class T>
  [[nodiscard]] T factor(std::string_view name) const {
    const auto parts = number(name);
    using Part = RealOf<T>;
    if constexpr (ComplexElement<T>)
      return {static_cast<Part>(parts.real()), static_cast<Part>(parts.imag())};
    else
      return static_cast<T>(parts.real());
  }

  /// The array of that name, in a buffer with its contents. Once for each name.
  template <class T>
  GpuRef<T> buffer(std::string_view name) {
    const auto [bytes, count] = array(name);
    auto* const host = reinterpret_cast<T*>(bytes);
    const auto ref = device_->alloc<T>(static_cast<std::int64_t>(count));
    if (count > 0) device_->upload<T>(std::span<const T>(host, count), ref);
    downloads_.emplace_back([this, host, ref] {
      const auto values = device_->download(ref);
      std::copy(values.begin(), values.end(), host);
    });
    return ref;
  }
  template <class T>
  MatrixRef<GpuRef<T>> matrix(std::string_view name) {
    return {buffer<T>(name), of(name, "rows"), of(name, "columns"), of(name, "leading")};
  }
  /// What a call has answered becomes the only element of an array, which no buffer stands for.
  template <class T>
  void answer(std::string_view name, T value) {
    std::memcpy(array(name).first, &value, sizeof value);
  }
  /// "rows", "length", … of an array.
  [[nodiscard]] std::int64_t of(std::string_view name, const char* what) const;

  /// What all buffers hold now, to where their contents came from.
  void download() const {
    for (const auto& one : downloads_) one();
  }

 private:
  /// Where its contents are, and how many elements they have.
  [[nodiscard]] std::pair<std::byte*, std::size_t> array(std::string_view name) const;
  [[nodiscard]] std::complex<double> number(std::string_view name) const;
  [[nodiscard]] std::size_t index_of(std::string_view name,
                                     std::initializer_list<std::string_view> words) const;

  Device* device_;
  const nlohmann::json* request_;
  std::vector<std::byte>* operands_;
  std::vector<std::function<void()>> downloads_;
};

/// What is asked for where numbers do not allow it: an error, or a report in the status.
inline OnFailure on_failure(const Call& c) {
  return c.has("report") ? OnFailure::report : OnFailure::error;
}

/// By "NAME DTYPE". They throw troupe::Exception.
using Runs = std::map<std::string, void (*)(Call&)>;
void add_run(Runs& runs, std::string_view name, DType dtype, void (*run)(Call&));

/// What adds calls of T by name: each is given the Call and what `library` makes of the device.
/// Neither captures anything, so that a call is one function, and not the many of a std::function:
/// there are hundreds, in several types each.
template <class T, class Library>
auto calls_of(Runs& runs, Library) {
  return [&runs]<class Made>(std::string_view name, Made) {
    add_run(runs, name, dtype_of<T>, [](Call& c) { Made{}(c, Library{}(c.device())); });
  };
}

using test::reference::for_numbers;
using test::reference::for_types;

void add_random(Runs& runs);
void add_primitives(Runs& runs);
void add_sparse(Runs& runs);
void add_tensors(Runs& runs);
void add_dnn(Runs& runs);
void add_dnn_layers(Runs& runs);

}  // namespace troupe::judge

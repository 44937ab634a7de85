#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

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
/// `offset` is in bytes of the file of operands, `count` in elements. A vector has "length" and
/// "increment", a matrix "rows", "columns" and "leading", a list of matrices "batch" and "stride"
/// beside them. Factors are pairs, real and imaginary.
namespace troupe::judge {

class Call {
 public:
  /// `operands` is the whole file, and outlives the call.
  Call(Device& device, const nlohmann::json& request, std::vector<std::byte>& operands)
      : device_(&device), request_(&request), operands_(&operands) {}

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] bool has(const std::string& name) const { return request_->contains(name); }
  template <class T>
  [[nodiscard]] T get(const std::string& name) const {
    return request_->at(name).get<T>();
  }
  [[nodiscard]] std::int64_t integer(const std::string& name) const {
    return get<std::int64_t>(name);
  }
  /// Which of the words it is.
  template <class E>
  [[nodiscard]] E choice(const std::string& name, const std::vector<std::string>& words) const {
    const auto found = std::find(words.begin(), words.end(), get<std::string>(name));
    check(found != words.end(), "an unknown word in a request");
    return static_cast<E>(found - words.begin());
  }
  [[nodiscard]] blas::Transpose transpose(const std::string& name = "transpose") const {
    return choice<blas::Transpose>(name, {"no", "yes", "conjugate"});
  }
  [[nodiscard]] blas::Uplo uplo() const { return choice<blas::Uplo>("uplo", {"lower", "upper"}); }
  [[nodiscard]] blas::Side side() const { return choice<blas::Side>("side", {"left", "right"}); }
  [[nodiscard]] blas::Diagonal diagonal() const {
    return choice<blas::Diagonal>("diagonal", {"stored", "unit"});
  }
  template <class T>
  [[nodiscard]] T factor(const std::string& name) const {
    const auto parts = get<std::vector<double>>(name);
    using Part = RealOf<T>;
    if constexpr (ComplexElement<T>)
      return {static_cast<Part>(parts.at(0)), static_cast<Part>(parts.at(1))};
    else
      return static_cast<T>(parts.at(0));
  }

  /// The array of that name, in a buffer with its contents. Once for each name.
  template <class T>
  GpuRef<T> buffer(const std::string& name) {
    const auto& array = request_->at("arrays").at(name);
    const auto count = array.at("count").get<std::size_t>();
    auto* const host =
        reinterpret_cast<T*>(operands_->data() + array.at("offset").get<std::size_t>());
    const auto ref = device_->alloc<T>(static_cast<std::int64_t>(count));
    if (count > 0) device_->upload<T>(std::span<const T>(host, count), ref);
    downloads_.push_back([this, host, ref] {
      const auto values = device_->download(ref);
      std::copy(values.begin(), values.end(), host);
    });
    return ref;
  }
  template <class T>
  VectorRef<GpuRef<T>> vector(const std::string& name) {
    return {buffer<T>(name), of(name, "length"), of(name, "increment")};
  }
  template <class T>
  MatrixRef<GpuRef<T>> matrix(const std::string& name) {
    return {buffer<T>(name), of(name, "rows"), of(name, "columns"), of(name, "leading")};
  }
  template <class T>
  std::vector<MatrixRef<GpuRef<T>>> matrices(const std::string& name) {
    const auto all = buffer<T>(name);
    const auto rows = of(name, "rows"), columns = of(name, "columns"),
               leading = of(name, "leading"), stride = of(name, "stride");
    std::vector<MatrixRef<GpuRef<T>>> list;
    for (std::int64_t i = 0; i < of(name, "batch"); ++i)
      list.push_back({all.slice(i * stride, stride), rows, columns, leading});
    return list;
  }
  /// What a call has answered becomes the only element of an array, which no buffer stands for.
  template <class T>
  void answer(const std::string& name, T value) {
    const auto offset = request_->at("arrays").at(name).at("offset").get<std::size_t>();
    std::memcpy(operands_->data() + offset, &value, sizeof value);
  }
  /// "rows", "length", … of an array.
  [[nodiscard]] std::int64_t of(const std::string& name, const char* what) const {
    return request_->at("arrays").at(name).at(what).get<std::int64_t>();
  }

  /// What all buffers hold now, to where their contents came from.
  void download() const {
    for (const auto& one : downloads_) one();
  }

 private:
  Device* device_;
  const nlohmann::json* request_;
  std::vector<std::byte>* operands_;
  std::vector<std::function<void()>> downloads_;
};

/// By "NAME DTYPE". They throw troupe::Exception.
using Runs = std::map<std::string, std::function<void(Call&)>>;

/// What adds calls of T by name: each is given the Call and what `library` makes of the device.
template <class T, class Library>
auto calls_of(Runs& runs, Library library) {
  return [&runs, library](const std::string& name, auto call) {
    runs[name + " " + std::string(to_string(dtype_of<T>))] = [library, call](Call& c) {
      call(c, library(c.device()));
    };
  };
}

using test::reference::for_numbers;
using test::reference::for_types;

void add_level1(Runs& runs);
void add_level2(Runs& runs);
void add_level3(Runs& runs);
void add_lists(Runs& runs);
void add_linear(Runs& runs);
void add_eigen(Runs& runs);
void add_transforms(Runs& runs);
void add_random(Runs& runs);
void add_primitives(Runs& runs);
void add_sparse(Runs& runs);
void add_direct(Runs& runs);

}  // namespace troupe::judge

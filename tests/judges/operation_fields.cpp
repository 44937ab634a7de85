#include "operation_fields.hpp"

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>
#include <troupe/lib/operations.hpp>

#include "common/core/fields.hpp"

namespace troupe::judge {
namespace {

using nlohmann::json;

// The names of fields and of enumerators, as the compiler writes them.

template <class T>
struct Wrapped {
  T value;
};
template <class T>
struct PointerTo {
  const T* field;
};
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"  // nobody reads it
#endif
template <class T>
extern const Wrapped<T> nowhere;
template <class T, std::size_t I>
constexpr auto pointer_to_field() {
  const auto& field = std::get<I>(tie_fields(nowhere<T>.value));
  return PointerTo<std::remove_cvref_t<decltype(field)>>{&field};
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

template <auto value>
constexpr std::string_view written() {
  return __PRETTY_FUNCTION__;
}
constexpr bool is_of_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
/// The name that ends in front of the last of these characters.
constexpr std::string_view last_name(std::string_view text, char behind) {
  text = text.substr(0, text.rfind(behind));
  while (!text.empty() && !is_of_name(text.back())) text.remove_suffix(1);
  std::size_t from = text.size();
  while (from > 0 && is_of_name(text[from - 1])) --from;
  return text.substr(from);
}
/// "[with auto P = PointerTo<…>{(& nowhere<…>.Wrapped<…>::value.blas::Gemv::alpha)}; …]"
template <class T, std::size_t I>
constexpr std::string_view name_of_field() {
  return last_name(written<pointer_to_field<T, I>()>(), '}');
}
/// Empty where a number has no name: "[with auto value = troupe::blas::Uplo::upper; …]", or
/// "(troupe::blas::Uplo)7".
template <auto value>
constexpr std::string_view name_of_value() {
  auto text = written<value>();
  text.remove_prefix(text.find("value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  if (text.front() == '(') return {};
  return text.substr(text.rfind(':') + 1);
}
constexpr std::size_t kMostEnumerators = 32;
template <class E>
std::string_view name_of(E value) {
  constexpr auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{name_of_value<static_cast<E>(I)>()...};
  }
  (std::make_index_sequence<kMostEnumerators>{});
  const auto number = static_cast<std::size_t>(value);
  return number < names.size() ? names[number] : std::string_view();
}

template <class T>
constexpr bool is_array = false;
template <class T, std::size_t N>
constexpr bool is_array<std::array<T, N>> = true;

template <class T>
json fields(const T& from);

template <class T>
json value_of(const T& value) {
  if constexpr (std::is_same_v<T, OpDType> || std::is_same_v<T, DType>) {
    return std::string(to_string(static_cast<DType>(value)));
  } else if constexpr (std::is_same_v<T, std::byte>) {
    return std::to_integer<unsigned>(value);
  } else if constexpr (std::is_enum_v<T>) {
    const auto name = name_of(value);
    return name.empty() ? json(static_cast<std::int64_t>(value)) : json(std::string(name));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, Scalar>) {
    return value_of(value.value);
  } else if constexpr (is_array<T>) {
    auto list = json::array();
    for (const auto& one : value) list.push_back(value_of(one));
    return list;
  } else {
    return fields(value);
  }
}

template <class T>
json fields(const T& from) {
  auto all = json::object();
  const auto tied = tie_fields(from);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto add = [&all]<class F>(std::string_view name, const F& field) {
      if constexpr (!std::is_same_v<F, Operand>) all[std::string(name)] = value_of(field);
    };
    (add(name_of_field<T, I>(), std::get<I>(tied)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(tied)>>{});
  return all;
}

using Writers = std::map<std::uint32_t, json (*)(const std::byte*)>;
template <class... Ops>
void add(Writers& writers, List<Ops...>) {
  (writers.emplace(opcode_of<Ops>,
                   [](const std::byte* op) { return fields(*reinterpret_cast<const Ops*>(op)); }),
   ...);
}

}  // namespace

json fields_of(const OperationInfo& info, const std::byte* op) {
  static const auto all = [] {
    Writers made;
    add(made, blas::Operations{});
    add(made, direct::Operations{});
    add(made, fft::Operations{});
    add(made, solver::Operations{});
    return made;
  }();
  const auto own = all.find(info.opcode);
  return own == all.end() ? json() : own->second(op);
}

}  // namespace troupe::judge

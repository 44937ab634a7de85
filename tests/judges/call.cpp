#include "call.hpp"

#include <array>

#include <nlohmann/json.hpp>

namespace troupe::judge {

bool Call::has(std::string_view name) const {
  return request_->contains(std::string(name));
}

template <class T>
T Call::get(std::string_view name) const {
  return request_->at(std::string(name)).get<T>();
}
template bool Call::get<bool>(std::string_view) const;
template double Call::get<double>(std::string_view) const;
template float Call::get<float>(std::string_view) const;
template std::int32_t Call::get<std::int32_t>(std::string_view) const;
template std::int64_t Call::get<std::int64_t>(std::string_view) const;
template std::uint32_t Call::get<std::uint32_t>(std::string_view) const;
template std::uint64_t Call::get<std::uint64_t>(std::string_view) const;
template std::string Call::get<std::string>(std::string_view) const;
template std::array<std::int64_t, 2> Call::get(std::string_view) const;
template std::array<std::uint32_t, 2> Call::get(std::string_view) const;
template std::array<std::int64_t, fft::kMaxRank> Call::get(std::string_view) const;
template std::vector<double> Call::get(std::string_view) const;
template std::vector<std::int64_t> Call::get(std::string_view) const;
template std::vector<std::string> Call::get(std::string_view) const;
template std::vector<std::array<std::int64_t, 3>> Call::get(std::string_view) const;
template nlohmann::json Call::get<nlohmann::json>(std::string_view) const;

std::complex<double> Call::number(std::string_view name) const {
  const auto& parts = request_->at(std::string(name));
  return {parts.at(0).get<double>(), parts.at(1).get<double>()};
}

std::size_t Call::index_of(std::string_view name,
                           std::initializer_list<std::string_view> words) const {
  const auto found = std::find(words.begin(), words.end(), get<std::string>(name));
  check(found != words.end(), "an unknown word in a request");
  return static_cast<std::size_t>(found - words.begin());
}

std::int64_t Call::of(std::string_view name, const char* what) const {
  return request_->at("arrays").at(std::string(name)).at(what).get<std::int64_t>();
}

std::pair<std::byte*, std::size_t> Call::array(std::string_view name) const {
  const auto& one = request_->at("arrays").at(std::string(name));
  return {operands_->data() + one.at("offset").get<std::size_t>(),
          one.at("count").get<std::size_t>()};
}

void add_run(Runs& runs, std::string_view name, DType dtype, void (*run)(Call&)) {
  runs[std::string(name) + " " + std::string(to_string(dtype))] = run;
}

}  // namespace troupe::judge

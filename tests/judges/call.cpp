#include "call.hpp"

#include <array>

#include <nlohmann/json.hpp>

namespace troupe::judge {

bool Call::has(const std::string& name) const {
  return request_->contains(name);
}

template <class T>
T Call::get(const std::string& name) const {
  return request_->at(name).get<T>();
}
template bool Call::get<bool>(const std::string&) const;
template double Call::get<double>(const std::string&) const;
template float Call::get<float>(const std::string&) const;
template std::int32_t Call::get<std::int32_t>(const std::string&) const;
template std::int64_t Call::get<std::int64_t>(const std::string&) const;
template std::uint32_t Call::get<std::uint32_t>(const std::string&) const;
template std::uint64_t Call::get<std::uint64_t>(const std::string&) const;
template std::string Call::get<std::string>(const std::string&) const;
template std::array<std::int64_t, 2> Call::get(const std::string&) const;
template std::array<std::uint32_t, 2> Call::get(const std::string&) const;
template std::array<std::int64_t, fft::kMaxRank> Call::get(const std::string&) const;
template std::vector<double> Call::get(const std::string&) const;
template std::vector<std::int64_t> Call::get(const std::string&) const;
template std::vector<std::string> Call::get(const std::string&) const;
template std::vector<std::array<std::int64_t, 3>> Call::get(const std::string&) const;
template nlohmann::json Call::get<nlohmann::json>(const std::string&) const;

std::complex<double> Call::number(const std::string& name) const {
  const auto& parts = request_->at(name);
  return {parts.at(0).get<double>(), parts.at(1).get<double>()};
}

std::size_t Call::index_of(const std::string& name, const std::vector<std::string>& words) const {
  const auto found = std::find(words.begin(), words.end(), get<std::string>(name));
  check(found != words.end(), "an unknown word in a request");
  return static_cast<std::size_t>(found - words.begin());
}

std::int64_t Call::of(const std::string& name, const char* what) const {
  return request_->at("arrays").at(name).at(what).get<std::int64_t>();
}

std::pair<std::byte*, std::size_t> Call::array(const std::string& name) const {
  const auto& one = request_->at("arrays").at(name);
  return {operands_->data() + one.at("offset").get<std::size_t>(),
          one.at("count").get<std::size_t>()};
}

}  // namespace troupe::judge

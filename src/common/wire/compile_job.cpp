#include "common/wire/compile_job.hpp"

#include <sys/stat.h>

#include <cstring>
#include <string_view>

namespace troupe::wire {
namespace {

/// Numbers and texts, each text behind its length.
class Writer {
 public:
  Writer& add(std::uint64_t number) { return append(&number, sizeof number); }
  Writer& add(std::string_view text) { return add(text.size()).append(text.data(), text.size()); }
  Writer& add(const std::vector<std::string>& texts) {
    add(texts.size());
    for (const auto& text : texts) add(std::string_view(text));
    return *this;
  }
  Writer& append(const void* data, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + bytes);
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// The same from bytes of which nothing is known; after the first thing that is wrong it gives
/// zeros and empty texts.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> bytes() { return take(number()); }
  std::string text() {
    const auto bytes = this->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// How many elements follow: no more than there are bytes.
  std::uint64_t count() {
    const auto value = number();
    if (value > left_.size()) sound_ = false;
    return sound_ ? value : 0;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> all(count());
    for (auto& one : all) one = text();
    return all;
  }
  /// Nothing was wrong, and nothing is left.
  [[nodiscard]] bool ended() const { return sound_ && left_.empty(); }

 private:
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left_.size()) sound_ = false;
    if (!sound_) return {};
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  std::span<const std::byte> left_;
  bool sound_ = true;
};

}  // namespace

std::vector<std::byte> encode(const CompileJob& job) {
  Writer out;
  out.add(static_cast<std::uint64_t>(job.step));
  out.add(job.engine).add(static_cast<std::uint64_t>(job.compute_capability));
  out.add(job.file).add(job.source).add(job.headers.size());
  for (const auto& [name, text] : job.headers) out.add(name).add(text);
  out.add(job.names).add(job.options).add(job.include_paths).add(job.standard);
  out.add(std::uint64_t{job.link}).add(job.host_compiler).add(job.folder);
  return out.take();
}

std::vector<std::byte> encode(const CompileOutcome& outcome) {
  Writer out;
  out.add(static_cast<std::uint64_t>(outcome.code)).add(outcome.log).add(outcome.compiler);
  out.add(outcome.image.size()).append(outcome.image.data(), outcome.image.size());
  out.add(outcome.names).add(std::uint64_t{outcome.known}).add(outcome.inputs.size());
  for (const auto& input : outcome.inputs)
    out.add(input.path)
        .add(std::uint64_t{input.is_file})
        .add(input.content.low)
        .add(input.content.high);
  out.add(outcome.identity);
  return out.take();
}

Result<CompileJob> decode_job(std::span<const std::byte> bytes) {
  Reader in(bytes);
  CompileJob job;
  const auto step = in.number();
  job.engine = in.text();
  job.compute_capability = static_cast<std::int64_t>(in.number());
  job.file = in.text(), job.source = in.text();
  for (auto left = in.count(); left != 0; --left) {
    auto name = in.text();
    job.headers.emplace_back(std::move(name), in.text());
  }
  job.names = in.texts(), job.options = in.texts(), job.include_paths = in.texts();
  job.standard = in.text(), job.link = in.number() != 0;
  job.host_compiler = in.text(), job.folder = in.text();
  if (!in.ended() || step > static_cast<std::uint64_t>(CompileStep::rest))
    return Error{Errc::invalid, 0, "a malformed compile job"};
  job.step = static_cast<CompileStep>(step);
  return job;
}

Result<CompileOutcome> decode_outcome(std::span<const std::byte> bytes) {
  Reader in(bytes);
  CompileOutcome outcome;
  const auto code = in.number();
  outcome.log = in.text(), outcome.compiler = in.text();
  const auto image = in.bytes();
  outcome.image.assign(image.begin(), image.end());
  outcome.names = in.texts();
  outcome.known = in.number() != 0;
  for (auto left = in.count(); left != 0; --left) {
    CompileInput input{in.text(), in.number() != 0, {}};
    input.content.low = in.number(), input.content.high = in.number();
    outcome.inputs.push_back(std::move(input));
  }
  outcome.identity = in.text();
  if (!in.ended() || code > static_cast<std::uint64_t>(Errc::internal))
    return Error{Errc::invalid, 0, "a malformed outcome of a compile job"};
  outcome.code = static_cast<Errc>(code);
  return outcome;
}

std::string file_stamp(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return path + " " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) +
         "." + std::to_string(info.st_mtim.tv_nsec) + "\n";
}

bool stamps_hold(const std::string& stamps) {
  for (std::size_t at = 0; at < stamps.size();) {
    const auto end = stamps.find('\n', at);
    if (end == std::string::npos) return false;
    const auto line = stamps.substr(at, end + 1 - at);
    const auto time = line.rfind(' ');
    const auto size =
        time == std::string::npos || time == 0 ? std::string::npos : line.rfind(' ', time - 1);
    if (size == std::string::npos || file_stamp(line.substr(0, size)) != line) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace troupe::wire

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "common/wire/compile_input.hpp"

/// What a rank and troupe-compile, the process that compiles its kernels, say to each other.
namespace troupe::wire {

/// Descriptors of troupe-compile: where the job stands, and where the outcome is to be written.
inline constexpr int kCompileJobFd = 3, kCompileOutcomeFd = 4;

/// The part of the work that it is asked for.
enum class CompileStep : std::uint64_t {
  whole,       ///< an image
  preprocess,  ///< cpu: the preprocessed source, in the job's folder, and its `identity`
  rest         ///< cpu: an image of what preprocess has left in the folder
};

struct CompileJob {
  CompileStep step = CompileStep::whole;
  std::string engine;                   ///< "cuda" or "cpu"
  std::int64_t compute_capability = 0;  ///< 90 of 9.0; cuda
  std::string file;                     ///< what messages call the source
  std::string source;
  std::vector<std::pair<std::string, std::string>> headers;  ///< name and text
  std::vector<std::string> names;                            ///< name expressions of kernels
  std::vector<std::string> options;                          ///< of the compiler, -D included
  std::vector<std::string> include_paths;
  std::string standard;       ///< "c++20"
  bool link = false;          ///< optimise at link time, by nvJitLink; cuda
  std::string host_compiler;  ///< as it is found on PATH, or a path; cpu
  std::string folder;         ///< for its temporary files; removed by the rank. Does not matter to
                              ///< the result; cpu
};

struct CompileOutcome {
  Errc code = Errc::ok;
  std::string log;       ///< of the compiler, as it stands; warnings where there is an image
  std::string compiler;  ///< which files it was, with sizes and times: see file_stamp()
  std::vector<std::byte> image;
  std::vector<std::string> names;  ///< of the kernels in the image, in the order of the job's
  /// All that the image was made from is known: by the job and `inputs`, or by the job and the
  /// `identity`. Otherwise nothing may be kept.
  bool known = false;
  std::vector<CompileInput> inputs;  ///< files; cuda
  std::string identity;              ///< of the preprocessed source and of the compiler; cpu
};

std::vector<std::byte> encode(const CompileJob& job);
std::vector<std::byte> encode(const CompileOutcome& outcome);
/// Errors: invalid.
Result<CompileJob> decode_job(std::span<const std::byte> bytes);
Result<CompileOutcome> decode_outcome(std::span<const std::byte> bytes);

/// A line that tells a file from another version of it: its path, size and time of change. Empty if
/// there is no such file.
std::string file_stamp(const std::string& path);
/// Whether all files of these lines still are what they were.
bool stamps_hold(const std::string& stamps);

}  // namespace troupe::wire

#include "common/keeper/job.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <type_traits>

#include "common/ipc/system_error.hpp"

namespace troupe::keeper {
namespace {

struct Head {
  std::uint64_t magic = 0x74726f7570652d6b;  // "troupe-k"
  std::uint32_t card_bytes = sizeof(Card);
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t deaths = 0;
  std::uint32_t several_hosts = 0;
  std::uint32_t slabs = 0;
  std::uint32_t cores = 0;
  std::array<std::uint64_t, 2> cookie{};
};
static_assert(std::is_trivially_copyable_v<Card> && std::is_trivially_copyable_v<Head>);

}  // namespace

Result<UniqueFd> write_job(const Job& job) {
  UniqueFd fd(::memfd_create("troupe-job", MFD_CLOEXEC));
  if (!fd) return ipc::system_error("memfd_create");
  const Head head{.rank = job.rank,
                  .size = job.size(),
                  .incarnation = job.incarnation,
                  .deaths = job.deaths,
                  .several_hosts = job.several_hosts,
                  .slabs = job.slabs,
                  .cores = job.cores,
                  .cookie = job.cookie};
  const auto put = [&](const void* data, std::size_t bytes, std::size_t at) {
    return ::pwrite(fd.get(), data, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
  };
  if (!put(&head, sizeof head, 0) || !put(&job.own, sizeof job.own, sizeof head) ||
      !put(job.cards.data(), job.cards.size() * sizeof(Card), sizeof head + sizeof job.own))
    return ipc::system_error("pwrite");
  return fd;
}

Result<Job> read_job(int fd) {
  const Error malformed{Errc::invalid, 0,
                        std::string(kEnvironment) +
                            " is set, but no keeper has started this "
                            "process"};
  struct stat about {};
  Head head{};
  if (::fstat(fd, &about) != 0 || ::pread(fd, &head, sizeof head, 0) != sizeof head)
    return malformed;
  if (head.magic != Head().magic || head.card_bytes != sizeof(Card) || head.size < 1 ||
      head.rank < Job::kSpare || head.rank >= head.size)
    return malformed;
  Job job{.rank = head.rank,
          .incarnation = head.incarnation,
          .deaths = head.deaths,
          .several_hosts = head.several_hosts,
          .slabs = head.slabs,
          .cores = head.cores,
          .cookie = head.cookie};
  const auto bytes = static_cast<std::size_t>(head.size) * sizeof(Card);
  constexpr auto kCards = sizeof head + sizeof job.own;
  if (static_cast<std::size_t>(about.st_size) != kCards + bytes) return malformed;
  if (::pread(fd, &job.own, sizeof job.own, sizeof head) != sizeof job.own) return malformed;
  job.cards.resize(static_cast<std::size_t>(head.size));
  if (::pread(fd, job.cards.data(), bytes, kCards) != static_cast<ssize_t>(bytes)) return malformed;
  return job;
}

}  // namespace troupe::keeper

#include "keeper/estate.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <span>

namespace troupe::keeper {

Estate::Estate() : file_(::memfd_create("troupe-estate", MFD_CLOEXEC)) {}

void Estate::keep(std::uint32_t incarnation, const FromRank& slab, UniqueFd memory) {
  if (memory) slabs_[{incarnation, slab.region}] = {slab.bytes, std::move(memory)};
}

void Estate::drop(std::uint32_t incarnation, std::uint32_t region) {
  slabs_.erase({incarnation, region});
}

void Estate::drop_before(std::uint32_t incarnation) {
  std::erase_if(slabs_, [&](const auto& slab) { return slab.first.first < incarnation; });
}

void Estate::clear() {
  slabs_.clear();
  if (file_ && ::ftruncate(file_.get(), 0) != 0) file_.reset();
}

void Estate::give(const ipc::Socket& line) const {
  for (const auto& [name, slab] : slabs_) {
    const ToRank message{.kind = ToRank::Kind::slab,
                         .incarnation = name.first,
                         .region = name.second,
                         .bytes = slab.bytes};
    (void)line.send(std::as_bytes(std::span(&message, 1)), slab.memory.get());
  }
}

}  // namespace troupe::keeper

// Whatever the bytes, a control message between a rank and its device host is refused or keeps its
// promises; and so are packed contributions and what they say of groups.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include <troupe/error.hpp>

#include "common/wire/control.hpp"
#include "common/wire/formation.hpp"
#include "fuzz.hpp"

using namespace troupe;
using namespace troupe::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  static auto pair = ipc::Socket::make_pair();
  check(pair.ok(), "socketpair");
  if (size > 0 && size <= ipc::Socket::kMaxPacket) {  // an empty packet says the peer has left
    check(pair->first.send(bytes).ok(), "send");
    const auto got = receive_control(pair->second);
    check(got.ok() || got.code() == Errc::internal, "a malformed message is Errc::internal");
    if (got.ok()) {
      check(got->has_value(), "the message is there");
      check(sizeof(Control) + (*got)->text.size() == size && !(*got)->fd,
            "nothing is added or lost");
    }
  }
  const UniqueFd file(::memfd_create("blobs", MFD_CLOEXEC));
  check(::write(file.get(), data, size) == static_cast<ssize_t>(size), "write");
  const auto blobs = unpack_blobs(file.get());
  check(blobs.ok() || blobs.code() == Errc::internal, "malformed contributions are Errc::internal");
  std::size_t total = 0;
  if (blobs.ok()) {
    for (const auto& blob : *blobs) total += sizeof(std::uint64_t) + blob.size();
  }
  check(total <= size, "no more comes out than is in it");
  if (const auto groups = decode_groups(bytes); groups.ok())
    check(encode_groups(*groups).size() == size, "groups are what they were");
  if (const auto contribution = decode_contribution(bytes); contribution.ok())
    check(encode_contribution(*contribution).size() == size, "a contribution is what it was");
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  std::vector<std::vector<std::byte>> seeds;
  constexpr std::string_view kText = "what happened";
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(ControlKind::communicator_broken);
       ++kind) {
    for (const auto text : {kText, std::string_view()}) {
      Control head{.kind = static_cast<ControlKind>(kind), .region = 3, .request = 9};
      head.text_bytes = static_cast<std::uint32_t>(text.size());
      auto& packet = seeds.emplace_back(sizeof head + text.size());
      std::memcpy(packet.data(), &head, sizeof head);
      std::copy(text.begin(), text.end(), reinterpret_cast<char*>(packet.data() + sizeof head));
    }
  }
  seeds.push_back(
      encode_groups(std::vector<FormingGroup>{{3, GroupState::held, {2, 0}}, {4, {}, {1}}}));
  seeds.push_back(
      encode_contribution(Contribution{{kWorld, GroupState::held, seeds.front()}, {2, {}, {}}}));
  const std::uint64_t packed[] = {3, 8, 1, 0, 16, 2, 3};
  const auto view = std::as_bytes(std::span(packed));
  seeds.emplace_back(view.begin(), view.end());
  return seeds;
}

#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "rank/token/foreign_slabs.hpp"
#include "rank/token/token_message.hpp"

namespace troupe::rank_process {

struct Routes;

namespace token_message {

/// A buffer of another rank that is mapped here.
struct MappedBuffer {
  ForeignSlabs::Id slab;
  Operand where;  ///< in the slab's mapping
};
/// Asks for one. Its key is made here, and given to `done`.
struct Map {
  std::uint32_t epoch;
  std::uint64_t behind;  ///< this commit of the program
  int owner;
  Operand token;
  std::function<void(const TransferKey&, const Result<MappedBuffer>&)> done;
};
/// The program has let go of it.
struct Unmap {
  int owner;
  TransferKey key;
  ForeignSlabs::Id slab;
};

}  // namespace token_message

/// Buffers of other ranks that commands of this rank's program read where they are: held by their
/// owners, their slabs mapped into this rank's device host. The TokenActor's turns.
class Maps {
 public:
  explicit Maps(Routes& routes) : routes_(routes) {}

  void on(token_message::Map map);
  /// Lets go once the commands that the program has submitted until now have ended.
  void on(const token_message::Unmap& unmap);
  /// The owner holds the buffer, and says where it is.
  void on(int from, const routed::Located& located);

 private:
  void refuse(int owner, const TransferKey& key, const Error& error);

  Routes& routes_;
  /// By request, until its answer is given to whoever asked.
  std::map<TransferKey, token_message::MappedBuffer> mapped_;
};

}  // namespace troupe::rank_process

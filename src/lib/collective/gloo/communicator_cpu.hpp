#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/lib/collective.hpp>

namespace gloo {
class Context;
}

namespace troupe::host::cpu {

class Mesh;

/// The collectives of one world, by Gloo. A failed communicator stays failed; make a new one.
///
/// One thread at a time uses it, but for abort() and ended(). The collectives block until this
/// rank's part is done and throw troupe::Exception: peer_lost when a connection broke, else library
/// or out_of_memory.
class Communicator {
 public:
  Communicator(int rank, int size);
  ~Communicator();

  /// Opens this rank's port, on the named network interface or, with no name, on those that peers
  /// may reach. Errors: invalid, io.
  Result<void> listen(const std::string& interface);
  [[nodiscard]] std::vector<std::byte> contribution() const;
  /// Blocks until all ranks are connected and have exchanged a first message. Errors: invalid,
  /// peer_lost, io, library.
  Result<void> connect(const std::vector<std::vector<std::byte>>& contributions);
  /// Any thread: everything that blocks here, now or later, ends at once.
  void abort() noexcept;
  /// True once abort() was called.
  [[nodiscard]] const std::shared_ptr<std::atomic<bool>>& ended() const noexcept { return ended_; }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// What is done with the elements.
  struct How {
    DType dtype{};
    ReduceOp op{};
    const std::byte* scalar = nullptr;  ///< an element, for premul_sum
  };
  // As the operations of the same name; counts in elements.
  void all_reduce(const How& how, std::size_t count, std::byte* source, std::byte* destination);
  void reduce(const How& how, int root, std::size_t count, std::byte* source,
              std::byte* destination);
  void broadcast(int root, std::size_t bytes, std::byte* data);
  void all_gather(std::size_t bytes, std::byte* source, std::byte* destination);
  void reduce_scatter(const How& how, std::size_t count, std::byte* source, std::byte* destination);
  void all_to_all(std::size_t bytes, std::byte* source, std::byte* destination);

  struct Message {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    int peer = 0;
    bool receive = false;
  };
  /// Those of a rank to itself must agree in number and lengths.
  void exchange(const std::vector<Message>& messages);

 private:
  enum class Reduction { all, root, scatter };
  struct ReduceCall {
    Reduction kind{};
    How how;
    int root = 0;
    std::size_t count = 0;  ///< elements of the result
    std::byte* source = nullptr;
    std::byte* destination = nullptr;
  };
  void reduce_any(const ReduceCall& call);
  [[nodiscard]] std::size_t source_count(const ReduceCall& call) const;
  void reduce_native(const ReduceCall& call);
  void reduce_pairwise(const ReduceCall& call);
  /// Runs the body with Gloo's exceptions turned into troupe's.
  void guarded(const std::function<void()>& body);

  int rank_;
  int size_;
  std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<Mesh> mesh_;              // none for a world of one
  std::shared_ptr<gloo::Context> context_;  // over the mesh
};

}  // namespace troupe::host::cpu

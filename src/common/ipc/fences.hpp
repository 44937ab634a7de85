#pragma once

namespace troupe::ipc {

/// Both halves of a store-then-load handshake between two processes, made cheap for the side that
/// does it often.
///
/// The frequent side stores, calls light_fence() and loads; the rare side (about to sleep) stores,
/// calls heavy_fence() and loads. At least one of the two then sees the other's store.
/// light_fence() costs nothing where the kernel has membarrier(2) (Linux 4.16): heavy_fence() makes
/// it run a full barrier on every core that runs a process which takes part. Elsewhere both are
/// full fences.
void light_fence() noexcept;
void heavy_fence() noexcept;

}  // namespace troupe::ipc

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

/// Makes this process take part. It does so by itself when this code is loaded; but the kernel lets
/// a process that has several threads wait for a grace period of RCU, which takes tens of seconds
/// on a machine under load. So a program that loads this code late calls it before it has threads.
void take_part_in_fences() noexcept;

}  // namespace troupe::ipc

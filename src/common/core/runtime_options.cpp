#include <troupe/config.hpp>

namespace troupe {

std::vector<OptionSpec> runtime_options() {
  using enum OptionType;
  // A table: name, type, default, placeholder, help, choices, minimum, maximum.
  // clang-format off
  std::vector<OptionSpec> options = {
      {"engine", text, "auto", "auto|cpu|cuda",
       "engine of the device host; auto: cuda where there is a GPU", {"auto", "cpu", "cuda"}},
      {"isolation", text, "process", "process|thread",
       "where the device host runs; thread is for debuggers", {"process", "thread"}},
      {"standby", text, "world", "off|local|world",
       "a warm device host ready to take over; world (or on): in a communicator formed ahead of time",
       {"off", "local", "world", "on"}},
      {"device-host", text, "", "PATH",
       "the device host's executable, or a wrapper that runs it (gdb, perf, compute-sanitizer), which has 20 s to "
       "end when the program ends; empty: the one installed beside the library"},
      {"kernel-cache", text, "auto", "DIR|auto|none",
       "folder of compiled kernels, for any number of jobs; auto: troupe/kernels in the user's folder of caches"},
      {"tuning-cache", text, "auto", "FILE|auto|none",
       "file of what tuning has found, for any number of jobs; auto: troupe/tuning in the user's folder of caches"},
      {"host-compiler", text, "c++", "PATH",
       "C++ compiler that compiles a program's kernels for the cpu engine"},
      {"library-path", list, "", "DIR,...",
       "folders of the modules of a program's own libraries, before the program's own and ../libexec/troupe beside it"},
      {"slab-size", bytes, "64MiB", "SIZE",
       "the first pieces of physical device memory; the more is held, the larger are the next, up to "
       "2GiB", {}, "2MiB"},
      {"ring-size", bytes, "4MiB", "SIZE", "size of the command ring", {}, "64KiB", "1GiB"},
      {"pinned-pool", bytes, "64MiB", "SIZE", "pinned host memory that is kept for reuse"},
      {"memory-limit", bytes, "0", "SIZE", "the most device memory a rank may take; 0: no limit"},
      {"completion", text, "event", "event|host_fn|sync",
       "how the device host learns that work is done", {"event", "host_fn", "sync"}},
      {"spin", duration, "auto", "TIME|auto",
       "how long a waiter spins before it sleeps; auto: by the number of cores", {"auto"}},
      {"gloo-interface", text, "", "NAME",
       "network interface of the cpu engine's collectives; empty: chosen by address"},
      {"heartbeat-timeout", duration, "3s", "TIME",
       "a device host silent for this long is dead", {}, "500ms"},
      {"check", list, "none", "none|collectives,indices",
       "collectives: compare what the ranks of all hosts call before each collective; those of one "
       "host always are compared; indices: look at the indices of sparse matrices and vectors before each "
       "operation, which waits for the device",
       {"none", "collectives", "indices"}},
      {"op-timeout", duration, "600s", "TIME",
       "deadline of an operation, collectives above all; 0: none"},
      {"stall-report", duration, "60s", "TIME",
       "after so long without progress a line says who waits for whom; 0: never"},
      {"phase-timeout", duration, "30s", "TIME", "deadline of each phase of a recovery", {}, "1ms"},
      {"token-path", text, "auto", "auto|peer|network|nccl",
       "how the bytes of a token travel: from GPU to GPU of a node, over MPI, or by NCCL; auto: the first "
       "where it can be, else the second", {"auto", "peer", "network", "nccl"}},
      {"token-timeout", duration, "60s", "TIME",
       "a transfer of a token that makes no progress for this long fails", {}, "1ms"},
      {"restart-budget", integer, "3", "N", "restarts allowed within restart-window, and between two commits of a run", {}, "0"},
      {"restart-window", duration, "60s", "TIME", "the time over which restarts are counted", {}, "1ms"},
      {"on-loss", text, "respawn", "respawn|shrink|stop",
       "what a spent restart-budget, or a GPU that is gone, means; respawn: the job ends at once, with status 75; "
       "shrink: it goes on without the rank; stop: it goes on to the next commit, saves it in checkpoint-dir and "
       "ends with status 75",
       {"respawn", "shrink", "stop"}},
      {"rejoin-after", duration, "60s", "TIME",
       "with on-loss = shrink: when a rank that is out of the world tries its GPU again; 0: never"},
      {"on-health", text, "warn", "warn|shrink",
       "what a GPU that says of itself that it is failing means; warn: a line in the log and at the end; shrink: with "
       "on-loss = shrink its rank leaves the world after the next commit",
       {"warn", "shrink"}},
      {"nvml", text, "auto", "PATH|auto|none",
       "NVIDIA's management library, which tells of the health of GPUs; auto: the driver's, where the engine has GPUs"},
      {"checkpoint-dir", text, "", "DIR",
       "folder, seen by all ranks, in which runs save their state; empty: none"},
      {"checkpoint-every", integer, "0", "N",
       "steps between states on disk; 0: only when the run is asked to stop", {}, "0"},
      {"checkpoint-io", text, "auto", "direct|pinned|auto",
       "how states go to disk and back; direct: straight from GPU memory, or the job is refused; pinned: by way of pinned "
       "memory; auto: direct where the file system can", {"direct", "pinned", "auto"}},
      {"restart", integer, "auto", "auto|never|STEP",
       "what a run goes on from; auto: the newest good state in checkpoint-dir", {"auto", "never"}, "0"},
      {"partner", text, "auto", "auto|on|off",
       "copy each commit into the host memory of another node's rank; auto: with on-loss = shrink",
       {"auto", "on", "off"}},
      {"rehearse", flag, "off", "on|off",
       "do each interval between commits again, with a device host lost on the way, and compare the states"},
      {"rehearse-tolerance", real, "0", "EPS",
       "by how much of its entry's largest value a floating-point number may differ then; 0: bit for bit", {}, "0", "1"},
      {"stop-signal", text, "USR1", "USR1|USR2|TERM|none",
       "on this signal the run saves its state and ends with status 75", {"USR1", "USR2", "TERM", "none"}},
      {"replay", flag, "on", "on|off",
       "run again on the next device host what was in flight and can be"},
      {"reproducible", flag, "off", "on|off",
       "the same bits from run to run and after a recovery: sums over ranks in one order, by algorithms that may be slower"},
      {"register-buffers", flag, "off", "on|off",
       "all GPU memory is registered with NCCL's communicators, which lets some collectives copy less"},
      {"flight-records", integer, "1024", "N",
       "operations that the flight recorder keeps; 0: it is off", {}, "0", "1048576"},
      {"flight-dir", text, "troupe-flight", "DIR",
       "folder, made when needed, of the flight recorder's dumps after a fault or SIGUSR2; none: nowhere"},
      {"trace", text, "", "FILE",
       "a trace of all ranks for ui.perfetto.dev, written at the end; empty: none"},
      {"trace-kernels", flag, "off", "on|off",
       "the trace also tells, by CUPTI, which kernels and copies the GPU ran for each command"},
      {"metrics", text, "", "FILE",
       "figures of the job for Prometheus' textfile collector, for each rank in a file with its number; empty: none"},
      {"bind", text, "auto", "auto|none",
       "cores for troupe's own threads; auto: of those allowed, the ones near the GPU", {"auto", "none"}},
      {"actor-workers", integer, "2", "N", "threads that run the program's own actors", {}, "1", "1024"},
      {"seed", integer, "1", "N", "seed of every random choice", {}, "0"},
      {"log-level", text, "info", "LEVELS",
       "trace|debug|info|warn|error|off, also per component: info,world=debug"},
      {"config", text, "", "FILE", "read settings from FILE"},
      {"print-config", flag, "off", "", "print every setting and its source, then exit"},
      {"version", flag, "off", "", "print the version, then exit"},
      {"help", flag, "off", "", "print this text, then exit", {}, {}, {}, true, 'h'},
  };
  // clang-format on
  // The others say where and how to compute, not what.
  for (auto& option : options) option.shapes_result = option.name == "seed";
  return options;
}

}  // namespace troupe

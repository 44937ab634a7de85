#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include <troupe/clock.hpp>

#include "common/ipc/doorbell.hpp"
#include "common/ipc/ring.hpp"
#include "common/ipc/shared_memory.hpp"
#include "common/wire/control.hpp"
#include "common/wire/formation.hpp"
#include "common/wire/host_options.hpp"
#include "common/wire/port_layout.hpp"
#include "common/wire/record.hpp"
#include "device_host/batches.hpp"
#include "device_host/channels.hpp"
#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/engine/tracing.hpp"
#include "device_host/flight_log.hpp"
#include "device_host/helpers.hpp"
#include "device_host/lane_actor.hpp"
#include "device_host/lanes.hpp"
#include "device_host/preparation.hpp"
#include "device_host/rendezvous.hpp"
#include "device_host/replies.hpp"
#include "device_host/sequences.hpp"
#include "device_host/set_aside.hpp"
#include "device_host/surrender.hpp"

namespace troupe::host {

/// The process (or thread) that owns one CUDA context on behalf of a rank.
///
/// One thread, the reactor, goes round: it takes commands from the ring and queues them on the
/// engine's queues in program order, answers the batches that are done, serves control messages,
/// and stamps its heartbeat. It never blocks: what may take long runs on helper threads, and a
/// command whose library is being opened or is at work, or that would wait until other ranks come,
/// is set aside. It owns nothing that cannot be made again.
class DeviceHost {
 public:
  /// Takes the descriptors in `options`.
  static Result<std::unique_ptr<DeviceHost>> create(const wire::HostOptions& options);
  ~DeviceHost();

  /// Serves until told to end or until the rank is gone; returns the exit status.
  int run();

  /// Collectives that are launched ahead: beyond that the next one is set aside until one has
  /// ended. When a communicator is given up, each of NCCL's takes some 4 ms until it sees that.
  static constexpr Sequence kCollectivesAhead = 4;

 private:
  enum class Mode {
    standby,  ///< context and handles ready, owns nothing, the ring is not ours yet
    active,   ///< issuing
    paused,   ///< halted or quiesced: nothing is issued, nothing answered
    lost      ///< the context is dead; waiting to be replaced
  };

  DeviceHost(const wire::HostOptions& options, ipc::SharedMemory segment, FlightLog flight,
             ipc::Doorbell host_fn_bell, ipc::Doorbell helper_bell, ipc::Doorbell channel_bell,
             std::unique_ptr<Engine> engine);

  void beat(TimePoint now) { header().heartbeat_ns.store(now.count(), std::memory_order_release); }
  [[nodiscard]] wire::PortHeader& header() const {
    return *reinterpret_cast<wire::PortHeader*>(segment_.data());
  }
  [[nodiscard]] const wire::HostSettings& settings() const { return header().settings; }

  // issue.cpp
  bool issue();
  /// Queues what was set aside and can be queued now. True if anything was.
  bool issue_set_aside();
  enum class Step { queued, blocked, ended };
  enum class Source { ring, set_aside };
  /// `entry`: that of a command which is set aside.
  Step issue_one(std::span<const std::byte> record, SetAside::Entry* entry);
  /// What to do with command_ if not all of its operands are mapped; nothing: they are.
  std::optional<Step> check_mapped(Source source);
  /// The same of a command of a sequence. Errors: internal.
  /// True if the range is mapped, or no memory at all.
  [[nodiscard]] bool is_reachable(const Operand& range) const;
  [[nodiscard]] Result<void> all_mapped(const wire::Command& command) const;
  Step issue_on_lane(std::span<const std::byte> record, SetAside::Entry* entry);
  /// Queues command_ on the engine, or carries it out where it is the reactor's own.
  Result<void> run(const Call& call);
  /// Whether a command is right for the communicator that it is for. Errors: invalid.
  [[nodiscard]] Result<void> fits_communicator(const wire::Command& command) const;
  /// The command leaves the ring, whatever becomes of it.
  void note_taken(std::uint64_t ticket) {
    auto& newest = header().issued_ticket;
    if (ticket > newest.load(std::memory_order_relaxed))
      newest.store(ticket, std::memory_order_release);
  }
  /// From here on the command was given to the GPU.
  void note_issued(const wire::CommandHeader& command) {
    note_taken(command.ticket);
    flight_.issued(command.ticket, command.opcode);
  }
  void take(Source source) {
    if (source == Source::ring) commands_.pop();
  }
  /// The engine has not taken the command.
  Step not_queued(std::uint64_t ticket, Source source, const Result<void>& outcome);
  /// The command needs no lane, or failed before it got to one.
  Step answered(std::uint64_t ticket, Source source, const Result<void>& outcome);
  Step corrupt(const Error& error);

  // issue_sequence.cpp
  /// A run whose commands are queued one by one. Its entry stays set aside until all are.
  struct Play {
    Playing playing;
    Waits waits;
    Result<void> outcome;  ///< of what a helper did for it
  };
  /// The sequence that command_ runs, as it wants it. Errors: invalid.
  Result<SequenceTable::Known*> find_sequence();
  /// As lane_ready(), of `origin` and all lanes of the sequence.
  Result<bool> lanes_ready(const RecordedSequence& sequence, Lane origin);
  /// As Lanes::queue_of(): the run and all of its commands take the detours, or none of them does.
  [[nodiscard]] Queue queue_of(const RecordedSequence& sequence, Lane lane,
                               const Waits& waits) const;
  /// The same for all of its commands.
  [[nodiscard]] Result<void> fits_communicator(const RecordedSequence& sequence) const;
  /// As CollectiveHalf::new_links(), of all of its commands.
  [[nodiscard]] std::vector<Link> new_links(const RecordedSequence& sequence);
  /// Whether each of its queues has less than `most` commands with those of the sequence.
  [[nodiscard]] bool has_room(const RecordedSequence& sequence, Queue queue,
                              std::uint64_t most) const;
  /// Whether its graph can be launched on the queue; makes it do what the run wants.
  bool takes_graph(SequenceTable::Known& known, Queue queue);
  /// Destroys the graphs that are void once what was queued before that has ended: CUDA keeps
  /// whoever destroys a running graph waiting, and one with a collective may run until its
  /// communicator is given up.
  void destroy_void_graphs();
  /// command_, which runs the sequence, has been queued. The result cells of its commands are read
  /// when it has ended.
  void add_run(const RecordedSequence& sequence, Queue queue, const Waits& waits, Sequence place);
  /// Whether the sequence may run again: its last run has been judged, if it is to be.
  [[nodiscard]] bool cells_are_read(std::uint64_t number) const {
    const auto run = to_be_judged_.find(number);
    return run == to_be_judged_.end() || lanes_.completed(run->second.first) >= run->second.second;
  }
  /// Adds to `waits` all that stands on the queues of the sequence.
  void wait_for_lanes(const RecordedSequence& sequence, Queue queue, Waits& waits) const;
  /// The commands of the sequence have been queued, its run at this place of `queue`.
  Result<void> note_places(const RecordedSequence& sequence, Queue queue, Sequence place);
  /// The graph has been launched: the queues of its sequence go on behind it.
  Result<void> follow_graph(SequenceTable::Known& known, Queue queue, Sequence place);
  Step begin_play(SetAside::Entry& entry, const SequenceTable::Known& known, Queue queue,
                  const Waits& waits);
  /// command_ is the entry's.
  Step play_on(SetAside::Entry& entry);
  Result<void> run_step(const RecordedSequence::Step& step, const Call& call);
  /// Passes a branch, which is the next step. False: what its flag depends on is still at work.
  Result<bool> pass_branch(Playing& playing);
  /// A run that waits at a branch can go on.
  [[nodiscard]] bool play_can_go_on();
  /// Whether commands of the sequence would stand behind some that wait for other ranks.
  [[nodiscard]] bool waits_for_peers(const RecordedSequence& sequence, Queue queue,
                                     const Waits& waits) const;
  /// Has a helper queue the next step, which may block.
  void begin_step(SetAside::Entry& entry, Play& play);
  Step end_play(SetAside::Entry& entry, Result<void> outcome);
  /// What they have queued is in flight, and nothing else of them will be.
  void abandon_plays();
  Result<std::unique_ptr<Graph>> make_graph(const std::shared_ptr<const RecordedSequence>& sequence,
                                            Queue queue);
  /// Records a graph of the sequence that has just been played for command_.
  void record_graph(const Playing& playing);

  // libraries.cpp
  /// Loads those of the rank's libraries that come with its program, and notes which lane of the
  /// rank each library has, or why it is unknown.
  void know_libraries();
  /// Whether a command can be queued on the lane now; if its library is not open, begins to open
  /// it. Errors: why it cannot be opened, or was given up.
  Result<bool> lane_ready(Lane lane);
  /// Whether commands wait on the device for other ranks: collectives of several hosts, and what
  /// goes over channels.
  [[nodiscard]] bool waits_on_device() const;
  /// Where they do: whether a library is being opened. Its kernels stop what is queued behind them
  /// until the running ones end, and a command that begins now might wait for just that.
  [[nodiscard]] bool opening_goes_first() const;
  void open_lane(Lane lane);
  void lane_opened(Lane lane, const Result<void>& opened, const Result<void>& detour);
  /// A call of the lane's library has failed, and the context is sound.
  void library_failed(Lane lane, const Error& error);
  /// A command that may block is carried out on a thread of its library.
  struct Work;
  /// Begins to carry out the entry's command. Errors: the engine's; nothing has begun.
  Result<void> begin_work(SetAside::Entry& entry, Queue queue, const Waits& waits);
  void work_ended(Work& work, const Result<void>& outcome);
  /// Tells the engine's halves what is about to be written, or remembers it for one at work.
  void note_overwritten(std::span<const OperandUse> operands);
  /// The lane's actor no longer works.
  void work_over(Lane lane);
  /// Tells the rank whether commands of the library wait for it; see PortHeader::held_up.
  void hold_up(Lane lane, bool held_up);
  void tell_plans(Lane lane, const std::vector<std::vector<std::byte>>& plans);

  // preparations.cpp
  /// Tells the rank of a kind of command that has come before.
  void note_kind(const wire::Command& command, std::span<const std::byte> record);
  void prepare(wire::ControlMessage message);
  void adopt_plans(wire::ControlMessage message);
  /// Keeps a plan that is the result of a measurement; false: it is none.
  bool keep_measured(Lane lane, const std::vector<std::byte>& plan);
  /// Carries on what is to be prepared. True if anything changed.
  bool advance_preparations();
  void begin_preparation(const std::shared_ptr<Preparation>& one);
  void run_preparation(Preparation& one);
  void preparation_ended(const std::shared_ptr<Preparation>& one, const Result<void>& outcome);
  /// What has not begun is forgotten: the rank's own, or what commands asked for.
  void drop_preparations(Preparation::For whom);

  // issue.cpp
  /// Has a helper connect this rank with peers; no collective is queued meanwhile.
  void open_links(std::uint32_t communicator, std::vector<Link> links);

  // own_operations.cpp
  /// What the reactor carries out itself. Both are about command_.
  struct OwnOperation {
    std::uint32_t opcode;
    /// Without a lane; nothing: the command takes its lane. nullptr: all commands do.
    std::optional<Step> (*carry_out)(DeviceHost& host, Source source);
    /// On its lane. nullptr: no command takes one.
    Result<void> (*run)(DeviceHost& host, const Call& call);
  };
  struct Own;
  /// nullptr: it is for a library.
  static const OwnOperation* own_operation(std::uint32_t opcode);
  void suffer(memory::FaultKind kind);

  // channels.cpp
  Result<void> make_channel_end(std::uint64_t number, bool receives);
  /// Has a thread of its own carry out command_, which is for an end of a channel. `makes`: the end
  /// is made first; whether it receives.
  Step work_on_channel(std::uint64_t number, Source source, std::optional<bool> makes,
                       std::function<Result<void>(ChannelEnd&)> work);
  Step drop_channel(std::uint64_t number, Source source);
  void bury_channels();

  // control.cpp
  bool serve_control();
  void handle(wire::ControlMessage message);
  void make_slab(const wire::Control& request);
  void map(wire::ControlMessage message);
  /// Answers a request to map. What fails on a standby fails its promotion.
  void mapped(const wire::Control& request, const Result<std::byte*>& address);
  void drop(std::uint32_t region);
  /// To unmap pinned memory waits for all that runs (cudaHostUnregister does), so it is done when
  /// no collective does.
  void unmap_dropped();
  void promote(const wire::Control& request);

  // formation.cpp
  void contribute(const wire::ControlMessage& message);
  /// Gives the communicators and channels up, or the forming of them.
  void abandon_communicators();
  /// The same at once, from any thread, without what the reactor keeps of them.
  void abort_communicators();
  void connect(wire::ControlMessage message);
  void collective_lane_opened(bool open);
  /// Answers a request to connect that still waits for its lane.
  void drop_held_connect();
  void contribute_group(const wire::Control& request);
  void connect_group(const wire::ControlMessage& message);
  void drop_group(const wire::Control& request);
  /// A communicator that this rank contributes to: where its members will meet, and its place.
  struct Begun {
    Place place;
    wire::GroupState state{};
    Rendezvous::Card card{};
  };
  Result<Begun> begin_communicator(const Place& place, wire::GroupState state);
  /// On a helper: the card, and what the library has to say.
  Result<wire::Share> share_of(const Begun& begun);
  /// Whom to connect with, by their shares.
  struct Joining {
    Place place;
    std::vector<std::vector<std::byte>> contributions;
  };
  /// Finds the members on this host, by the cards that it takes off their shares.
  Result<Joining> meet(const Place& place, std::vector<std::vector<std::byte>> shares);
  /// For the communicators that a request to connect is about.
  Result<std::vector<Joining>> meet_all(const wire::ControlMessage& message);
  /// Those that were begun and are not among these; nobody meets there any more.
  std::vector<std::uint32_t> take_others(const std::vector<Joining>& all);
  void send_contribution(const wire::Control& request, const Result<std::vector<std::byte>>& made);
  [[nodiscard]] Rendezvous* rendezvous_of(std::uint32_t communicator) const;
  /// Whether commands are issued and answered. Pauses if the rank has halted this host.
  bool active();
  void begin_probe(const wire::Control& request);
  /// Answers the probe if it is over.
  bool look_at_probe();
  void quiesce(const wire::Control& request);
  void finish_quiesce();
  void answer(const wire::Control& request, const Result<void>& outcome);
  /// An out_of_memory tells what has taken how much.
  [[nodiscard]] Error with_memory_use(Error error);
  void send(wire::Control head, std::string_view text = {}, int fd = -1);
  /// Runs `job` on a helper. False if all helpers are busy: `request` is answered with an error.
  bool on_helper(const wire::Control& request, Helpers::Job job);

  /// A standby that stays alone prepares first.
  void say_ready_or_prepare();
  /// Answers what is done; during quiescence, sees whether all is drained. True if anything
  /// changed.
  bool complete();
  /// Loses the device if it is lost by what nobody answers. True if it is.
  bool look_for_loss();
  void lose(const Error& error);
  void break_communicator(const Error& error);
  void wait(TimePoint now);
  void end(int status) { exit_status_ = status; }

  wire::HostOptions options_;
  ipc::SharedMemory segment_;
  FlightLog flight_;
  ipc::Doorbell command_bell_;
  ipc::Socket socket_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Tracing> tracing_;  ///< nullptr: nobody wants to see what is given to the engine
  AddressMap addresses_;
  Lanes lanes_;
  LaneActors actors_;
  std::size_t working_ = 0;  ///< actors that are
  /// Outcomes of work that ended, until they may be answered.
  std::vector<std::pair<std::uint64_t, Result<void>>> held_answers_;
  ipc::RingConsumer commands_;
  Replies replies_;
  Batches batches_;
  wire::Command command_;
  SetAside set_aside_;
  SequenceTable sequences_;
  std::vector<std::pair<std::shared_ptr<Graph>, Waits>>
      void_graphs_;  ///< with what was queued when they became so
  std::map<SetAside::Number, Play> plays_;
  bool play_waits_ = false;  ///< one of them, at a branch
  /// By sequence: where its last run stands, whose result cells have yet to be read.
  std::map<std::uint64_t, std::pair<Queue, Sequence>> to_be_judged_;
  /// The meeting places of the communicators, of those to come too, by number.
  std::map<std::uint32_t, std::unique_ptr<Rendezvous>> rendezvous_;
  Rendezvous* meeting_ = nullptr;  ///< where the newest collective has come to
  bool opening_links_ = false;
  std::size_t forming_groups_ = 0;  ///< on helpers, beside the work: no collective is queued
  std::vector<std::pair<std::byte*, std::uint64_t>> dropped_pinned_;
  bool set_aside_due_ = false;  ///< something has changed since they were offered last
  std::array<std::uint32_t, kLaneCount> lanes_of_rank_{};  ///< by lane; 0: the rank has none
  Mode mode_ = Mode::standby;
  bool alone_ = false;  ///< the command issued last wants to be alone
  bool blocked_ =
      false;  ///< the oldest command waits for its library, a mapping, or room in the engine
  KindTable kinds_;
  TimePoint kind_told_{};  ///< when the rank was told of one
  std::vector<std::shared_ptr<Preparation>> preparations_;
  /// Results of measurements, for each time that their library is opened; they do not open it.
  std::deque<std::pair<Lane, std::vector<std::byte>>> measured_;
  std::optional<HeldMark> behind_fault_;  ///< one that was ordered, until it shows
  std::optional<wire::Control> probe_;  ///< the request to answer when the engine's probe has ended
  std::optional<wire::Control> quiescing_;  ///< the request to answer when all lanes are drained
  std::optional<wire::ControlMessage> held_connect_;  ///< until the collective lane is open
  std::optional<Error> promote_failure_;
  std::optional<int> exit_status_;
  TimePoint last_progress_{};
  // Last: their threads use the rest.
  Helpers helpers_;
  Channels channels_;
  Surrender surrender_;
};

}  // namespace troupe::host

#pragma once

#include <kvlane/detail/async_place.hpp>
#include <kvlane/detail/async_room.hpp>
#include <kvlane/detail/async_rooms.hpp>
#include <kvlane/detail/callback_loop.hpp>
#include <kvlane/detail/post_in_progress.hpp>
#include <kvlane/fwd.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/request.hpp>
#include <kvlane/result.hpp>
#include <kvlane/ticket.hpp>
#include <kvlane/waiter_base.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace kvlane::detail {

/// One async_admit, from its start until its handler runs. Lives in memory from the handler's allocator, which only the
/// initiating thread and the handler's executor touch (and a context that shuts down).
///
/// It belongs to the initiating thread until it has joined the line, and then to whoever takes it out of line: that one
/// posts it to the handler's executor.
template <class Net, class Handler, class IoExecutor>
class async_operation final : public async_waiter, public parked_operation {
  using handler_executor = typename Net::template associated_executor<Handler, IoExecutor>::type;
  using posting_executor = decltype(Net::posting(std::declval<handler_executor const&>()));
  using io_work = decltype(Net::working(std::declval<IoExecutor const&>()));
  using default_allocator = typename Net::default_allocator;
  using associated_allocator = typename Net::template associated_allocator<Handler, default_allocator>;
  using allocator_type =
      typename std::allocator_traits<typename associated_allocator::type>::template rebind_alloc<async_operation>;
  using allocator_traits = std::allocator_traits<allocator_type>;
  using room = async_room<Net>;

 public:
  /// Asks the queue. The handler runs later, on its own executor, whatever the answer. \throws as `enqueue`, and what
  /// allocator and executors throw: then the handler is destroyed, and the request has left no trace
  template <class Queue>
  static void start(Handler&& handler, IoExecutor const& io_executor, Queue& queue, request const& r) {
    // Callbacks that this causes wait until nothing here needs a context any more: one of them might destroy it.
    callback_loop::deferral const later;
    // All that is associated with the handler is read before the handler moves.
    auto const slot = Net::cancellation_slot(handler);
    owner op{make(std::move(handler), io_executor)};
    auto const place = op->place_;  // may outlive the operation
    if (!op->sit(&queue, io_executor)) return;
    // Before anybody can take the waiter out of line: whoever does shall not have to touch the slot.
    if (slot.is_connected()) cancellable(slot, place);
    room_use const io_room{*op->io_room()};
    auto outcome = queue.enqueue(r, place->place(), arrival{op.get()});
    if (outcome)
      tell_at_once(std::move(op), std::move(*outcome));
    else
      stay(std::move(op), *place, *io_room, io_executor);
  }

  void refuse(rejection const& why) noexcept override { hand_over(why); }
  void abandon() noexcept override {
    departure leaving{*this};
    leaving.land_io();  // the handler might own that context
    destroy();
  }
  void launch() noexcept override {
    try {
      post();
    } catch (...) {
      own_room_->park(*this, *executor_);
    }
  }
  void drop() noexcept override {
    place_->settled();
    destroy();
  }

 private:
  using room_list = std::array<room*, 2>;

  /// For as long as it has not joined the line.
  struct undo {
    void operator()(async_operation* op) const noexcept {
      op->take_off();
      op->abandon();
    }
  };
  using owner = std::unique_ptr<async_operation, undo>;

  /// From its rooms, counted as in flight: it has landed when this is destroyed, and then it may be gone, and so may the
  /// I/O context.
  class departure {
   public:
    explicit departure(async_operation& op) noexcept : rooms_{op.rooms_} {
      op.leave_rooms();
      if (op.io_work_) io_work_.emplace(std::move(*op.io_work_));  // not swapped: an executor need not be assignable
      op.io_work_.reset();
    }
    departure(departure const&) = delete;
    departure& operator=(departure const&) = delete;
    ~departure() {
      land_io();
      if (rooms_[0] != nullptr) rooms_[0]->land();
    }
    /// Nothing is left to do in the I/O context. (Where that is the handler's, there is only one room.)
    void land_io() noexcept {
      io_work_.reset();
      if (auto* const r = std::exchange(rooms_[1], nullptr)) r->land();
    }

   private:
    room_list rooms_;
    std::optional<io_work> io_work_;
  };

  /// The initiating thread needs the room until it has returned, whatever becomes of the operation.
  class room_use {
   public:
    explicit room_use(room& r) noexcept : room_{r} { room_.take_off(); }
    room_use(room_use const&) = delete;
    room_use& operator=(room_use const&) = delete;
    ~room_use() { room_.land(); }
    [[nodiscard]] room& operator*() const noexcept { return room_; }

   private:
    room& room_;
  };

  /// The queue's completion.
  struct arrival {
    using is_shell_completion = void;
    void left_line() const noexcept { operation->take_off(); }
    void operator()(admission outcome) const noexcept { operation->hand_over(std::move(outcome)); }
    async_operation* operation;
  };

  /// What the handler's executor is given: small, and nothing to do with the handler's allocator.
  class runner {
   public:
    explicit runner(async_operation& op) noexcept : operation_{&op} {}
    runner(runner&& other) noexcept : operation_{std::exchange(other.operation_, nullptr)} {}
    runner& operator=(runner&&) = delete;
    ~runner() {
      if (operation_ != nullptr && !post_in_progress::note_dropped(operation_)) operation_->drop();
    }
    void operator()() { std::exchange(operation_, nullptr)->run(); }

   private:
    async_operation* operation_;
  };

  struct canceller {
    template <class CancellationType>
    void operator()(CancellationType type) const noexcept {
      auto const keep = place;  // the slot may be given to another operation meanwhile
      if (type != CancellationType::none) keep->cancel();
    }
    std::shared_ptr<async_place> place;
  };

  async_operation(Handler&& handler, handler_executor const& executor, IoExecutor const& io_executor,
                  allocator_type const& allocator)
      : allocator_{allocator},
        executor_{Net::posting(executor)},
        place_{std::make_shared<async_place>(*this)},
        handler_{std::move(handler)} {
    if (!is_same(executor, io_executor)) io_work_.emplace(Net::working(io_executor));
  }
  ~async_operation() = default;

  template <class Executor>
  [[nodiscard]] static bool is_same(Executor const& a, IoExecutor const& b) noexcept {
    if constexpr (std::is_same_v<Executor, IoExecutor>) return a == b;
    return false;
  }
  [[nodiscard]] static async_operation* make(Handler&& handler, IoExecutor const& io_executor) {
    auto const executor = Net::template associated_executor<Handler, IoExecutor>::get(handler, io_executor);
    allocator_type allocator{associated_allocator::get(handler, default_allocator{})};
    auto* const memory = allocator_traits::allocate(allocator, 1);
    try {
      return ::new (static_cast<void*>(memory)) async_operation{std::move(handler), executor, io_executor, allocator};
    } catch (...) {
      allocator_traits::deallocate(allocator, memory, 1);
      throw;
    }
  }
  template <class Slot>
  static void cancellable(Slot slot, std::shared_ptr<async_place> place) {
    slot.template emplace<canceller>(std::move(place));
  }
  static void tell_at_once(owner op, admission outcome) {
    op->outcome_ = std::move(outcome);
    op->take_off();
    departure const leaving{*op};
    op->post();
    op.release();
  }
  static void stay(owner op, async_place& place, room& io_room, IoExecutor const& io_executor) {
    op.release();  // it waits, and may even be gone already
    auto const deadline = ticket_access::waiter(place.place())->deadline();
    if (deadline != time_point::max()) {
      try {
        io_room.keep_deadline(deadline, *ticket_access::owner(place.place()), Net::for_timer(io_executor));
      } catch (...) {
        if (place.withdraw()) throw;
        return;  // its outcome is on its way, so the deadline does not matter
      }
    }
    place.joined();
  }

  // -- rooms

  /// False when one of its contexts is being destroyed.
  [[nodiscard]] bool sit(void const* queue, IoExecutor const& io_executor) {
    auto& own_context = Net::context(*executor_);
    auto& io_context = Net::context(io_executor);
    for (auto& s : seats_) s.place = &place_;
    rooms_[0] = own_room_ = Net::template use_service<async_rooms<Net>>(own_context).enter(queue, seats_[0]);
    if (own_room_ == nullptr) return false;
    if (&own_context == &io_context) return true;
    rooms_[1] = Net::template use_service<async_rooms<Net>>(io_context).enter(queue, seats_[1]);
    return rooms_[1] != nullptr;
  }
  [[nodiscard]] room* io_room() const noexcept { return rooms_[1] != nullptr ? rooms_[1] : rooms_[0]; }
  void take_off() noexcept {
    for (auto* r : rooms_)
      if (r != nullptr) r->take_off();
  }
  void leave_rooms() noexcept {
    for (std::size_t i = 0; i != rooms_.size(); ++i)
      if (auto* const r = std::exchange(rooms_[i], nullptr)) r->leave(seats_[i]);
  }

  // -- from the outcome to the handler

  void hand_over(admission outcome) noexcept {
    outcome_ = std::move(outcome);
    departure const leaving{*this};
    launch();
  }
  /// \throws what the executor throws, and then it has not been posted
  void post() {
    auto const executor = *executor_;  // the operation may be gone before `execute` returns
    post_in_progress const posting{this};
    Net::execute(executor, runner{*this});
    if (posting.dropped()) drop();
  }
  void run() {
    place_->settled();
    std::unique_ptr<async_operation, destroyer> self{this};  // also if moving the handler throws
    auto handler = std::move(handler_);
    auto outcome = std::move(outcome_);
    self.reset();
    std::move(handler)(std::move(outcome));
  }
  struct destroyer {
    void operator()(async_operation* op) const noexcept { op->destroy(); }
  };
  void destroy() noexcept {
    auto allocator = allocator_;
    this->~async_operation();
    allocator_traits::deallocate(allocator, this, 1);
  }

  allocator_type allocator_;
  std::optional<posting_executor> executor_;
  std::optional<io_work> io_work_;
  std::shared_ptr<async_place> place_;
  std::array<async_seat, 2> seats_{};
  room_list rooms_{};         // where it sits
  room* own_room_ = nullptr;  // of the handler's context
  admission outcome_;
  Handler handler_;
};

}  // namespace kvlane::detail

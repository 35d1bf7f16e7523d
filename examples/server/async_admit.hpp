#pragma once
// stand-in
#include <kvlane/admission_queue.hpp>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>

#include <memory>
namespace kvlane {
template <class Queue, class Token>
auto async_admit(Queue& q, request const& r, Token&& token) {
  return asio::async_initiate<Token, void(admission)>(
      [&q](auto handler, request asked) {
        auto ex = asio::get_associated_executor(handler);
        auto slot = asio::get_associated_cancellation_slot(handler);
        struct op {
          decltype(handler) h;
          ticket place;
        };
        auto o = std::make_shared<op>(op{std::move(handler), {}});
        auto finish = [o, ex, w = asio::make_work_guard(ex)](admission a) {
          asio::post(ex, [o, a = std::move(a)]() mutable {
            auto h = std::move(o->h);
            h(std::move(a));
          });
        };
        auto now = q.enqueue(asked, o->place, finish);
        if (now)
          finish(std::move(*now));
        else if (slot.is_connected())
          slot.assign([o, ex](asio::cancellation_type) {
            if (auto why = o->place.cancel_with_reason())
              asio::post(ex, [o, why = *why]() mutable {
                auto h = std::move(o->h);
                h(admission{why});
              });
          });
      },
      token, r);
}
}  // namespace kvlane

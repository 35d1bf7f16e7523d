#pragma once

// Everything that needs nothing but the standard library. The Asio shell and the HTTP mapping have headers of their own.

// IWYU pragma: begin_exports
#include <kvlane/admission_core.hpp>
#include <kvlane/admission_queue.hpp>
#include <kvlane/affinity.hpp>
#include <kvlane/blocking.hpp>
#include <kvlane/clock.hpp>
#include <kvlane/config.hpp>
#include <kvlane/error.hpp>
#include <kvlane/fwd.hpp>
#include <kvlane/hold.hpp>
#include <kvlane/inbox.hpp>
#include <kvlane/lane_pool.hpp>
#include <kvlane/lease.hpp>
#include <kvlane/observer.hpp>
#include <kvlane/ordering/cache_aware.hpp>
#include <kvlane/ordering/cache_aware_scan.hpp>
#include <kvlane/ordering/candidates.hpp>
#include <kvlane/ordering/fcfs.hpp>
#include <kvlane/ordering/order_by.hpp>
#include <kvlane/ordering/policy.hpp>
#include <kvlane/ordering/seed_order.hpp>
#include <kvlane/ordering_options.hpp>
#include <kvlane/prewarm.hpp>
#include <kvlane/prompt.hpp>
#include <kvlane/rejection.hpp>
#include <kvlane/request.hpp>
#include <kvlane/result.hpp>
#include <kvlane/service_estimator.hpp>
#include <kvlane/service_rates.hpp>
#include <kvlane/snapshot.hpp>
#include <kvlane/ticket.hpp>
#include <kvlane/token_budget.hpp>
#include <kvlane/token_limit.hpp>
#include <kvlane/waiter_base.hpp>
#include <kvlane/work.hpp>
// IWYU pragma: end_exports

#pragma once

#include "completion_task.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace server {

/// The requests that are being served, by tag. A task leaves it when its last share goes, which is when its coroutine has
/// ended. Thread safety: safe. Lifetime: tasks may outlive it.
class task_list {
 public:
  [[nodiscard]] std::shared_ptr<completion_task> add(std::unique_ptr<completion_task> task) {
    auto const tag = task->tag();
    std::shared_ptr<completion_task> const listed{task.release(), [list = state_](completion_task* t) {
                                                    list->remove(t->tag());
                                                    delete t;
                                                  }};
    std::lock_guard const lock{state_->mutex};
    state_->tasks.emplace(tag, listed);
    return listed;
  }

  [[nodiscard]] std::vector<std::shared_ptr<completion_task>> all() const {
    std::vector<std::shared_ptr<completion_task>> found;
    std::lock_guard const lock{state_->mutex};
    found.reserve(state_->tasks.size());
    for (auto const& [tag, weak] : state_->tasks)
      if (auto task = weak.lock()) found.push_back(std::move(task));
    return found;
  }

 private:
  struct state {
    void remove(std::uint64_t tag) {
      std::lock_guard const lock{mutex};
      tasks.erase(tag);
    }

    std::mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<completion_task>> tasks;
  };

  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace server

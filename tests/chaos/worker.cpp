// SPDX-License-Identifier: BSL-1.0
// One worker process: clients of its own, tasks on each, one history. Ends at SIGTERM, when the section of each task
// has ended.
#include <holdfast/holdfast.hpp>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <list>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "chaos/arguments.hpp"
#include "chaos/candidate_task.hpp"
#include "chaos/kept_task.hpp"
#include "chaos/latch_task.hpp"
#include "chaos/observer_task.hpp"
#include "chaos/task.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

/// The clients of a worker, and the tasks of each.
struct crew {
  std::size_t clients, tasks, long_tasks;
};

// Five servers are busy with fewer callers: each asks all of them, again and again; so are those that have replicas and
// sentinels beside them. With more, every process stands
// still now and then for want of a processor, and nothing that takes time can be judged.
constexpr crew crew_of(campaign c) {
  return c == campaign::red ? crew{1, 8, 2} : fails_over(c) ? crew{2, 6, 2} : crew{2, 10, 2};
}

constexpr auto pulse_period = 5ms;
constexpr auto worth_telling = 5ms;

/// Writes down what the library tells of what nobody waits for.
class witness final : public observer {
 public:
  witness(workplace& place, std::size_t client_number) : place_(place), client_number_(client_number) {}

  void on(const event& e) noexcept override {
    using kind = event_kind;
    if (e.kind != kind::lost && e.kind != kind::suspended && e.kind != kind::restored && e.kind != kind::closed &&
        e.kind != kind::release_failed && e.kind != kind::release_given_up && e.kind != kind::vote_withheld &&
        e.kind != kind::passed)
      return;
    auto line = place_.log.write("told");
    line.add("what", to_string(e.kind))
        .add("client", client_number_)
        .add("lock", e.name)
        .add("id", e.id)
        .add("error", e.reason.message());
  }

 private:
  workplace& place_;
  const std::size_t client_number_;
};

/// Writes down when this process, or its event loop, stood still: nothing can be asked of it then. Beat follows beat
/// without a gap, in which the process might be stopped, until all that is judged has ended.
asio::awaitable<void> beat(workplace& place) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (auto last = now(); !place.ended;) {
    timer.expires_after(pulse_period);
    co_await timer.async_wait(asio::use_awaitable);
    const auto since = std::exchange(last, now());
    if (std::chrono::nanoseconds(last - since) > pulse_period + worth_telling)
      place.log.write("stall").add("since", since);
  }
}

class worker {
 public:
  worker(asio::io_context& io, const arguments& given)
      : io_(io),
        place_{history(given.text("history")), guarded_resource(given.text("resource")), given.list("servers")},
        campaign_(campaign_of(given.text("campaign"))), all_turns_(given.text("turns") == "all"), workload_(campaign_),
        stop_(io, SIGTERM) {
    place_.log.write("started").add("worker", given.number("worker")).add("life", given.number("life"));
    dice seeds(static_cast<std::uint64_t>(given.number("seed")));
    const auto own_locks = "lock-of-" + given.text("worker") + "-" + given.text("life") + "-";
    const auto crew = crew_of(campaign_);
    for (std::size_t number = 0; number < crew.clients; ++number) {
      auto& redis = clients_.emplace_back(io.get_executor(), settings(given.list("redis"), number));
      for (std::size_t i = 0; i < crew.tasks; ++i)
        tasks_.emplace_back(place_, redis, number, seeds.below(UINT64_MAX),
                            [this](dice& d) { return workload_.draw_section(d); });
      for (std::size_t i = 0; i < crew.long_tasks; ++i)
        tasks_.emplace_back(place_, redis, number, seeds.below(UINT64_MAX),
                            [this, own = own_locks + std::to_string(tasks_.size())](dice& d) {
                              return workload_.draw_long_section(d, own);
                            });
    }
    auto of_all = static_cast<std::size_t>(given.number("worker")) * crew.clients;
    for (auto& redis : clients_) {
      if (has_kept_locks(campaign_)) kept_.emplace_back(place_, redis, client_ttl(campaign_), of_all);
      if (has_latches(campaign_))
        latches_.emplace_back(place_, redis, of_all, workers * crew.clients, seeds.below(UINT64_MAX));
      ++of_all;
    }
    if (!has_elections(campaign_)) return;
    const auto home = given.text("worker") + "-" + given.text("life") + "-";
    candidates_.emplace_back(place_, clients_.front(), home, seeds.below(UINT64_MAX));
    observers_.emplace_back(place_, clients_.back());
  }

  void start() {
    stop_.async_wait([this](const error_code&, int) { place_.stopping = true; });
    asio::co_spawn(io_, beat(place_), rethrow);
    working_ = tasks_.size() + kept_.size() + latches_.size() + candidates_.size() + observers_.size();
    for (auto& t : tasks_) asio::co_spawn(io_, work(t), rethrow);
    for (auto& t : kept_) asio::co_spawn(io_, work(t), rethrow);
    for (auto& t : latches_) asio::co_spawn(io_, work(t), rethrow);
    for (auto& t : candidates_) asio::co_spawn(io_, work(t), rethrow);
    for (auto& t : observers_) asio::co_spawn(io_, work(t), rethrow);
  }

 private:
  static void rethrow(std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  }

  config settings(const std::vector<std::string>& urls, std::size_t number) {
    config c;
    if (urls.size() == 1) {
      c.url = urls.front();
    } else {
      c.red_lock.primaries = urls;
      c.red_lock.longest_ttl = longest_ttl(campaign_);
    }
    c.ttl = client_ttl(campaign_);
    c.poll_cap = poll_cap;
    c.turns = all_turns_ || number == 1;
    c.connect_timeout = 500ms;
    c.reconnect_cap = 300ms;
    c.observer = std::make_shared<witness>(place_, number);
    return c;
  }

  template <class Task>
  asio::awaitable<void> work(Task& t) {
    co_await t.run();
    if (--working_ > 0) co_return;
    for (auto& c : clients_) co_await c.shutdown(1s);
    place_.log.write("ended");
    place_.ended = true;
  }

  asio::io_context& io_;
  workplace place_;
  const campaign campaign_;
  const bool all_turns_;
  const workload workload_;
  asio::signal_set stop_;
  std::list<client> clients_;
  std::list<task> tasks_;
  std::list<kept_task> kept_;
  std::list<latch_task> latches_;
  std::list<candidate_task> candidates_;
  std::list<observer_task> observers_;
  std::size_t working_ = 0;
};

}  // namespace
}  // namespace holdfast::chaos

int main(int argc, char** argv) {
  try {
    boost::asio::io_context io(1);
    holdfast::chaos::worker worker(io, holdfast::chaos::arguments(argc, argv));
    worker.start();
    io.run();  // returns when nothing of the library's is pending any more
    return EXIT_SUCCESS;
  } catch (const std::exception& failed) {
    std::cerr << "worker: " << failed.what() << '\n';
    return EXIT_FAILURE;
  }
}

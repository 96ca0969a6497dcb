// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "topology/quorum.hpp"
#include "unit/sync/engine_fixture.hpp"

namespace holdfast::test {

/// An engine before five primaries whose links, clock and answers the test plays; each runs the real scripts, and
/// answers when the test says so.
class quorum_fixture {
 public:
  static constexpr std::size_t primaries = 5;

  explicit quorum_fixture(config c = {}) : settings(std::move(c)) {
    if (settings.red_lock.longest_ttl == 0ms) settings.red_lock.longest_ttl = 60s;
    settings.observer = events;
    std::vector<std::unique_ptr<detail::topology>> each;
    for (std::size_t n = 0; n < primaries; ++n) {
      auto one = std::make_unique<fake_topology>(clock, timers);
      one->run_ids = {"run" + std::to_string(n)};
      one->address = "node" + std::to_string(n);
      one->auto_acknowledge = true;
      one->bytes_may_change = true;
      one->link_down();  // until there is an engine to hear that it is up
      one->run();
      at.push_back(one.get());
      nodes.push_back(std::make_unique<simulated_server>(clock));
      vote(n);
      each.push_back(std::move(one));
    }
    timers.on_step = [this] { run(); };
    servers.emplace(timers, clock, std::move(each));
    const detail::environment around{clock, timers, *servers, random, settings};
    around.blocks->close();  // as in engine_fixture
    locks.emplace(around, std::weak_ptr<detail::lease_home>(),
                  detail::owner_fields(detail::uuid{random.next(), random.next()}));
    for (auto* one : at) one->link_up();
    run();
  }
  ~quorum_fixture() { locks.reset(); }

  /// Its marker says that it votes.
  void vote(std::size_t n) { nodes[n]->command({"SET", "holdfast:redlock", "run" + std::to_string(n) + " 60000"}); }
  lock_call lock(const std::string& name) { return ask(name, detail::lock_request::wait_mode::forever); }
  lock_call try_lock(const std::string& name) { return ask(name, detail::lock_request::wait_mode::once); }
  lock_call try_lock_for(const std::string& name, nanoseconds wait) {
    return ask(name, detail::lock_request::wait_mode::until_deadline, std::nullopt, clock.now() + wait);
  }
  /// lock() and its grant by all.
  lock_call granted(const std::string& name) {
    const auto c = lock(name);
    answer_all();
    REQUIRE(c.granted());
    return c;
  }
  /// lock() by the owner of that lease.
  lock_call nested(const lock_call& outer) {
    const auto& of = *outer.value()->of;
    return ask(of.keys()->name, detail::lock_request::wait_mode::forever, of.owner);
  }
  verb_call unlock(const lock_call& c) {
    verb_call v;
    locks->unlock(c.value(), [v](const std::optional<detail::failure>& failed) { v.answer(failed); });
    return v;
  }

  /// These nodes answer their commands, and those that follow.
  void answer(std::initializer_list<std::size_t> voters) {
    run();
    for (bool any = true; any;) {
      any = false;
      for (const auto n : voters)
        for (const auto open : at[n]->open())
          if (at[n]->sent(open).written) {
            at[n]->reply(open, nodes[n]->run(at[n]->sent(open)));
            run();
            any = true;
          }
    }
  }
  void answer_all() { answer({0, 1, 2, 3, 4}); }
  void run() {
    for (bool any = true; any;) {
      any = false;
      for (auto* one : at) any = one->run() || any;
    }
  }
  void advance(nanoseconds by) { timers.advance(by); }
  /// "ABC": the primaries that have the key.
  std::string where(const std::string& key) {
    std::string text;
    for (std::size_t n = 0; n < primaries; ++n)
      if (nodes[n]->command({"EXISTS", key}).integer == 1) text += static_cast<char>('A' + n);
    return text;
  }
  void publish(std::size_t n, const std::string& name) {
    at[n]->push("redisson_lock__channel:{" + name + "}", "0");
    run();
  }
  void publish_everywhere(const std::string& name) {
    for (std::size_t n = 0; n < primaries; ++n) publish(n, name);
  }
  /// Each runs its release, and answers that it has so many subscribers.
  void free_and_tell(long long subscribers) {
    for (std::size_t n = 0; n < primaries; ++n)
      for (const auto open : at[n]->open()) {
        nodes[n]->run(at[n]->sent(open));
        at[n]->reply(open, redis::reply(replies::integer(subscribers)));
      }
    run();
  }
  std::string heard() {
    std::string text;
    for (; events->read < events->all.size(); ++events->read)
      text += (text.empty() ? "" : " ") + std::string(to_string(events->all[events->read].what));
    return text;
  }

  manual_clock clock;
  manual_timers timers{clock};
  std::vector<fake_topology*> at;
  std::vector<std::unique_ptr<simulated_server>> nodes;
  chosen_random random;
  config settings;
  const std::shared_ptr<event_log> events = std::make_shared<event_log>();
  std::optional<detail::quorum> servers;
  std::optional<detail::engine> locks;

 private:
  lock_call ask(const std::string& name, detail::lock_request::wait_mode wait,
                std::optional<owner_id> who = std::nullopt, detail::time_point deadline = detail::time_point::max()) {
    const auto c = calls_.emplace_back();
    const detail::lock_request r{.owner = who.value_or(owner()),
                                 .bound = who.has_value(),
                                 .wait = wait,
                                 .asked = detail::resolve_terms(settings, {}),
                                 .deadline = deadline};
    c.place(locks->lock(std::make_shared<const detail::lock_keys>(detail::red_plain_lock, name), r,
                        [c](detail::lock_answer a) { c.answer(a.failed, std::move(a.value)); }));
    run();
    return c;
  }

  std::deque<lock_call> calls_;  // the engine refers to live leases
};

}  // namespace holdfast::test

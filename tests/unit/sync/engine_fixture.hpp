// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/observer.hpp>
#include <holdfast/owner.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/arguments.hpp"
#include "lua_scripts.hpp"
#include "protocol/derived_keys.hpp"
#include "support/catch.hpp"
#include "support/fake_topology.hpp"
#include "support/manual_clock.hpp"
#include "support/replies.hpp"
#include "sync/engine.hpp"
#include "unit/sync/simulated_server.hpp"

namespace holdfast::test {

using namespace std::chrono_literals;
using detail::nanoseconds;
using detail::time_point;
using kind = event_kind;
using record_ptr = std::shared_ptr<detail::lease_record>;

/// The same number each time, 0 unless the test sets it: without jitter.
struct chosen_random final : detail::random_source {
  std::uint64_t number = 0;
  std::uint64_t next() override { return number; }
};

struct event_log final : observer {
  struct entry {
    kind what;
    std::string name;
    error_code reason;
    nanoseconds waited, held;
    std::size_t waiters;
    std::string detail;
    std::optional<holdfast::owner> owner;
    std::string id;
    std::optional<std::uint64_t> token;
    std::size_t count;
    milliseconds ttl;
    loss_cause cause;
    std::string lock_kind;
  };
  std::vector<entry> all;
  std::size_t read = 0;  // by heard()

  void on(const event& e) noexcept override {
    all.push_back({e.kind, std::string(e.name), e.reason, e.waited, e.held, e.waiters, std::string(e.detail), e.owner,
                   std::string(e.id), e.token, e.count, e.ttl, e.cause, std::string(e.lock_kind)});
  }
};

inline bool had(const record_ptr& lease) { return lease != nullptr; }
inline bool had(const std::vector<record_ptr>& leases) { return !leases.empty(); }

/// What became of one call of a verb. Copies share it.
template <class T>
class call {
 public:
  bool waits() const { return state_->answers == 0; }
  error_code error() const {
    REQUIRE(state_->answers == 1);
    return redis::error_of(state_->failed);
  }
  bool succeeded() const { return state_->answers == 1 && !state_->failed; }
  bool failed_with(error_code why) const { return state_->answers == 1 && redis::error_of(state_->failed) == why; }
  std::string detail() const { return state_->failed ? state_->failed->detail : std::string(); }
  const T& value() const {
    REQUIRE(succeeded());
    return state_->value;
  }

  // Of a lock.
  bool granted() const { return succeeded() && had(state_->value); }
  bool refused() const { return succeeded() && !had(state_->value); }
  void cancel() const {
    if (const auto place = state_->place) place->cancel();
  }
  void place(detail::cancellable_ptr p) const { state_->place = std::move(p); }
  detail::cancellable_ptr place() const { return state_->place; }

  void answer(const std::optional<detail::failure>& failed, T value = {}) const {
    CHECK(++state_->answers == 1);
    state_->failed = failed;
    state_->value = std::move(value);
  }

 private:
  struct state {
    int answers = 0;
    std::optional<detail::failure> failed;
    T value{};
    detail::cancellable_ptr place;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};
using lock_call = call<record_ptr>;
using multi_call = call<std::vector<record_ptr>>;
using verb_call = call<bool>;

inline lease_state state(const lock_call& c) { return c.value()->state(); }

struct asking {
  std::optional<owner> who{};
  lock_options options{};
  const detail::kind* kind = &detail::plain_lock;
  const void* coroutine = nullptr;
  std::uint8_t amount = 1;
};
inline asking by(owner who, lock_options options = {}) { return {who, options}; }
inline asking with(lock_options options) { return {std::nullopt, options}; }
/// A call without owner by this coroutine.
inline asking of(const void* coroutine) { return {std::nullopt, {}, &detail::plain_lock, coroutine}; }
inline asking fenced(std::optional<owner> who = {}) { return {who, {}, &detail::fenced_lock}; }
inline asking simple(std::optional<owner> who = {}) { return {who, {}, &detail::simple_lock}; }

/// Of a client that asks Redis for each hold. What is different in turns is tested in taking_turns_test.
inline config without_turns() {
  config c;
  c.turns = false;
  c.push = push_mode::automatic;
  return c;
}

/// An engine whose clock, timers, server and randomness the test plays. Verbs return what becomes of the call; the
/// server's answers go to the oldest command that has none. Time moves by advance() alone.
class engine_fixture {
 public:
  explicit engine_fixture(config c = without_turns()) : settings(std::move(c)) {
    settings.observer = events;
    timers.on_step = [this] { server.run(); };
    const detail::environment around{clock, timers, server, random, settings};
    around.blocks->close();  // it keeps nothing, so that each block is the heap's, which may guard it
    locks.emplace(around, std::weak_ptr<detail::lease_home>(),
                  detail::owner_fields(detail::uuid{random.next(), random.next()}));
  }
  ~engine_fixture() { locks.reset(); }

  // Verbs.
  lock_call lock(const std::string& name, asking a = {}) {
    return ask(name, a, detail::lock_request::wait_mode::forever);
  }
  lock_call try_lock(const std::string& name, asking a = {}) {
    return ask(name, a, detail::lock_request::wait_mode::once);
  }
  lock_call try_lock_for(const std::string& name, nanoseconds wait, asking a = {}) {
    return ask(name, a, detail::lock_request::wait_mode::until_deadline, wait);
  }
  lock_call lock_any(const std::vector<std::string>& names, asking a = {}) {
    return ask_any(names, a, detail::lock_request::wait_mode::forever);
  }
  lock_call try_lock_any(const std::vector<std::string>& names, asking a = {}) {
    return ask_any(names, a, detail::lock_request::wait_mode::once);
  }
  lock_call try_lock_any_for(const std::vector<std::string>& names, nanoseconds wait, asking a = {}) {
    return ask_any(names, a, detail::lock_request::wait_mode::until_deadline, wait);
  }
  multi_call lock_all(const std::vector<std::string>& names, asking a = {}) {
    return ask_all(names, a, detail::lock_request::wait_mode::forever);
  }
  multi_call try_lock_all(const std::vector<std::string>& names, asking a = {}) {
    return ask_all(names, a, detail::lock_request::wait_mode::once);
  }
  multi_call try_lock_all_for(const std::vector<std::string>& names, nanoseconds wait, asking a = {}) {
    return ask_all(names, a, detail::lock_request::wait_mode::until_deadline, wait);
  }
  verb_call unlock(const record_ptr& lease) {
    verb_call c;
    locks->unlock(lease, [c](const std::optional<detail::failure>& failed) { c.answer(failed); });
    return c;
  }
  verb_call unlock(const lock_call& c) { return unlock(c.value()); }
  void unlock(const multi_call& c) {
    for (const auto& lease : c.value()) unlock(lease);
  }
  void drop(const lock_call& c) {
    REQUIRE(c.value()->try_release());
    locks->drop(c.value());
  }
  /// Whatever was granted.
  void unlock_all() {
    for (const auto& c : calls_)
      if (c.granted()) unlock(c);
    for (const auto& c : multi_calls_)
      if (c.granted()) unlock(c);
  }
  verb_call renew(const lock_call& l, milliseconds ttl = 0ms) {
    verb_call c;
    locks->renew(l.value(), ttl, [c](const std::optional<detail::failure>& failed) { c.answer(failed); });
    return c;
  }
  verb_call force_unlock(const std::string& name, const detail::kind& of = detail::plain_lock) {
    verb_call c;
    locks->force_unlock(keys(name, of), [c](const auto& answer) { c.answer(answer.failed, answer.value); });
    return c;
  }
  void feed(const lock_call& l) {
    if (l.value()->feed()) locks->fed(l.value());
  }
  verb_call close(nanoseconds grace = 1s) {
    verb_call c;
    locks->close(grace, [c] { c.answer({}); });
    return c;
  }
  /// lock() and its grant.
  lock_call hold(const std::string& name, asking a = {}) {
    auto c = lock(name, a);
    grants();
    REQUIRE(c.granted());
    return c;
  }

  // The server's answers.
  void answers(redis::reply r) {
    run();
    REQUIRE_FALSE(server.open().empty());
    server.reply(server.open().front(), std::move(r));
    run();
  }
  void grants() { answers(replies::nil()); }
  void grants_token(long long token) { answers(replies::integers({token})); }
  void busy(milliseconds holder_ttl) { answers(replies::integer(holder_ttl.count())); }
  void reenters() { answers(replies::integer(1)); }
  void confirms() { answers(replies::integers(std::vector<long long>(unanswered().keys().size(), 1))); }
  void confirms_nothing() { answers(replies::integers(std::vector<long long>(unanswered().keys().size(), 0))); }
  void frees() { answers(replies::integer(1)); }

  void not_yours() { answers(replies::nil()); }
  void errs(const std::string& text) { answers(replies::error(text)); }
  void fails(errc why) {
    run();
    REQUIRE_FALSE(server.open().empty());
    server.fail(server.open().front(), why);
    run();
  }
  void acknowledges(const std::string& name) {
    server.acknowledge(channel(name));
    run();
  }
  void publishes(const std::string& name) {
    server.push(channel(name), "0");
    run();
  }
  void link_down(detail::node_id node = 0) {
    server.link_down(node);
    run();
  }
  void link_up(detail::node_id node = 0) {
    server.link_up(node);
    run();
  }
  void lives_on(detail::node_id node, const std::string& name) {
    server.place(name, node);
    server.place(channel(name), node);
  }
  void move(const std::vector<std::string>& names, detail::node_id node) {
    for (const auto& name : names) server.place(channel(name), node);
    server.move(names, node);
    run();
  }
  /// No command, no timer and no queue refers to it.
  bool only_leases_keep(const detail::hold& h) const {
    auto leases = std::count_if(calls_.begin(), calls_.end(),
                                [&](const auto& c) { return c.granted() && c.value()->of.get() == &h; });
    for (const auto& c : multi_calls_)
      if (c.granted())
        leases += std::count_if(c.value().begin(), c.value().end(), [&](const auto& l) { return l->of.get() == &h; });
    return h.use_count() == leases;
  }
  void run() { server.run(); }
  void advance(nanoseconds by) { timers.advance(by); }

  // What the server sees.
  const fake_topology::command& unanswered() { return server.sent(server.open().at(0)); }
  std::size_t in_flight() const { return server.open().size(); }
  std::size_t sent(std::string_view script) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < server.count(); ++i) n += script_of(server.sent(i)) == script;
    return n;
  }
  /// "acquire(a; 30000, #1)": script, keys, arguments; owner fields as their number alone.
  std::string wire(std::size_t n) const {
    const auto& c = server.sent(n);
    std::string text(script_of(c));
    const auto add = [&](char before, const std::string& word) {
      (text += before) += before == '(' ? "" : " ";
      const auto colon = word.find(':');
      text += word.starts_with(uuid) && colon == uuid.size() ? "#" + word.substr(colon + 1) : word;
    };
    char before = '(';
    for (const auto& k : c.keys()) add(std::exchange(before, ','), k);
    before = ';';
    for (const auto& a : c.arguments()) add(std::exchange(before, ','), a);
    return text + ")";
  }
  std::string last_sent() const { return server.count() == 0 ? "nothing" : wire(server.count() - 1); }
  detail::shared_keys keys(std::string_view name, const detail::kind& of = detail::plain_lock) const {
    return std::make_shared<const detail::lock_keys>(of, name, detail::naming{settings.key_prefix});
  }
  std::size_t subscribers(const std::string& name) const { return server.subscribers(channel(name)); }
  std::string channel(const std::string& name) const { return detail::channel_of(*keys(name)); }

  /// The kinds of events since the last call: "acquired lost".
  std::string heard() {
    std::string text;
    for (; events->read < events->all.size(); ++events->read) {
      if (!text.empty()) text += ' ';
      text += to_string(events->all[events->read].what);
    }
    return text;
  }
  const event_log::entry& last_event() const { return events->all.at(events->all.size() - 1); }

  /// Nobody waits, nothing is held, sent or subscribed, no timer runs.
  void check_nothing_is_left() {
    run();
    CHECK(locks->idle());
    CHECK(timers.idle());
    CHECK(server.open().empty());
    CHECK_FALSE(server.watched());
    for (const auto& name : names_) CHECK(subscribers(name) == 0);
  }

  /// From now on the simulated node answers at once, also what it is asked to subscribe.
  void play() {
    server.auto_acknowledge = true;
    server.on_command = [this](const fake_topology::command& c) -> std::optional<redis::reply> { return obey(c); };
  }
  /// As play(), also for what was sent before.
  void play_all() {
    play();
    for (const auto command : server.open())
      if (server.sent(command).written) server.reply(command, obey(server.sent(command)));
    run();
  }
  /// What the simulated node does with a command.
  redis::reply obey(const fake_topology::command& c) {
    auto r = node.run(c);
    for (const auto& [to, payload] : node.published()) server.push(to, payload);
    return r;
  }

  std::string expected_run;  // of lock_all()
  int moved = 0;             // calls of it that ended because the run has changed

  manual_clock clock;
  manual_timers timers{clock};
  fake_topology server{clock, timers};
  simulated_server node{clock};
  chosen_random random;
  config settings;
  const std::shared_ptr<event_log> events = std::make_shared<event_log>();
  std::optional<detail::engine> locks;
  const std::string uuid = "00000000-0000-8000-8000-000000000000";

 private:
  lock_call ask(const std::string& name, const asking& a, detail::lock_request::wait_mode wait,
                nanoseconds limit = {}) {
    const auto c = begin(name);
    c.place(locks->lock(keys(name, *a.kind), request(a, wait, limit), answer_to(c)));
    return c;
  }
  lock_call ask_any(const std::vector<std::string>& names, const asking& a, detail::lock_request::wait_mode wait,
                    nanoseconds limit = {}) {
    lock_call c;
    std::vector<detail::shared_keys> of;
    for (const auto& name : names) {
      c = begin(name);
      of.push_back(keys(name, *a.kind));
    }
    c.place(locks->lock_any(std::move(of), request(a, wait, limit), answer_to(c)));
    return c;
  }
  multi_call ask_all(const std::vector<std::string>& names, const asking& a, detail::lock_request::wait_mode wait,
                     nanoseconds limit = {}) {
    const auto c = multi_calls_.emplace_back();
    std::vector<detail::shared_keys> of;
    for (const auto& name : names) {
      names_.push_back(name);
      of.push_back(keys(name, *a.kind));
    }
    auto answer = [this, c](detail::multi_answer outcome) {
      moved += outcome.value.moved;
      c.answer(outcome.failed, std::move(outcome.value.leases));
    };
    c.place(locks->lock_all(std::move(of), expected_run, request(a, wait, limit), std::move(answer)));
    return c;
  }
  lock_call begin(const std::string& name) {
    names_.push_back(name);
    return calls_.emplace_back();
  }
  detail::lock_request request(const asking& a, detail::lock_request::wait_mode wait, nanoseconds limit) {
    detail::lock_request r{.owner = a.who.value_or(owner()),
                           .bound = a.who.has_value(),
                           .wait = wait,
                           .asked = detail::resolve_terms(settings, a.options),
                           .note = detail::shared_text::copy_of(a.options.note)};
    if (wait == detail::lock_request::wait_mode::until_deadline) r.deadline = clock.now() + limit;
    r.coroutine = a.coroutine;
    r.amount = a.amount;
    return r;
  }
  static detail::lock_handler answer_to(const lock_call& c) {
    return [c](detail::lock_answer answer) { c.answer(answer.failed, std::move(answer.value)); };
  }
  static std::string_view script_of(const fake_topology::command& c) {
    if (c.argv[0] == "SET") return "set";
    if (!c.argv[0].starts_with("EVAL")) return "no script";
    for (const auto& [name, text] : detail::lua::all_scripts)
      if (c.argv[1] == text.sha1 || c.argv[1] == text.body) return name;
    return "unknown";
  }

  std::deque<lock_call> calls_;  // the engine refers to live leases
  std::deque<multi_call> multi_calls_;
  std::vector<std::string> names_;
};

}  // namespace holdfast::test

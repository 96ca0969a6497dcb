// SPDX-License-Identifier: BSL-1.0
#include "topology/sentinel/sentinel.hpp"

#include <algorithm>
#include <utility>

#include "redis/tls.hpp"
#include "topology/failover_time.hpp"

namespace holdfast::detail {
namespace {

// Longer than the pause between a caller's unlock() and its next lock(): such a pause stops and restarts nothing.
constexpr std::chrono::milliseconds lingering{5};
constexpr std::chrono::milliseconds longest_reconnect_pause{1'000};
constexpr std::chrono::milliseconds longest_question{1'000};

// A sentinel that is away is looked for more often than a primary.
redis::endpoint introduced_to_sentinels(const server_list& servers) {
  auto any = servers.servers.front();
  any.reconnect_cap = std::min(any.reconnect_cap, longest_reconnect_pause);
  if (any.use_tls) redis::check(any.tls);
  return any;
}

redis::endpoint not_found_yet(const server_list& servers) {
  if (servers.discovered.use_tls) redis::check(servers.discovered.tls);
  return servers.discovered.with({servers.primary_name, 0, {}});
}

std::vector<redis::address> addresses(const std::vector<redis::endpoint>& servers) {
  std::vector<redis::address> all;
  for (const auto& endpoint : servers) all.push_back(endpoint.at);
  return all;
}

redis::io_services through(redis::io_services services, redis::transport& network) {
  return {std::move(services.strand), services.time, services.alarms, services.random, network,
          std::move(services.counts)};
}

}  // namespace

sentinel::sentinel(const redis::io_services& services, const server_list& servers, const config& behaviour,
                   redis::connection::event_sink events)
    : services_(services), any_sentinel_(introduced_to_sentinels(servers)), primary_name_(servers.primary_name),
      strict_(behaviour.sentinel.strict), ttl_(behaviour.ttl),
      answer_timeout_(std::min(behaviour.command_timeout, longest_question)), events_(std::move(events)),
      resolver_(primary_name_, addresses(servers.servers), strict_, reach_of(servers.node_map)),
      gate_(services.network), look_(services.alarms), linger_(services.alarms) {
  const auto gated = through(services, gate_);
  const auto primary = not_found_yet(servers);
  make_connections(gated, primary, answer_timeout_, [this](const event& event) { hear(event); });
  replicas_.emplace(gated, primary);
  commands_->expect_failover(redis::failover::expected);
  commands_->on_link_change([this](bool up) { on_link(up); });
  commands_->tolerate([this](const redis::failure& why) { return tolerate(why); });
  channels_->tolerate([this](const redis::failure& why) { return tolerate(why); });
  commands_->on_idle([this] { sleep_soon(); });
  channels_->on_idle([this] { sleep_soon(); });
}

redis::ticket sentinel::execute(std::string_view key, redis::request asked) {
  wake();
  const auto ticket = one_server::execute(key, std::move(asked));
  if (commands_->idle()) sleep_soon();  // refused
  return ticket;
}

subscription sentinel::subscribe(std::string_view channel, subscriber& subscriber) {
  wake();
  return one_server::subscribe(channel, subscriber);
}

void sentinel::replicated(std::string_view key, const replica_demand& wanted, replicas_handler done) {
  replicas_->ask(key, wanted, std::move(done));
}

void sentinel::start_pushing(std::string_view key) {
  wake();
  one_server::start_pushing(key);
  if (commands_->idle()) sleep_soon();  // refused
}

void sentinel::keep_watch(bool on) {
  if (on) wake();
  one_server::keep_watch(on);
}

redis::failure sentinel::trouble(std::string_view key) const {
  return gate_.is_open() ? one_server::trouble(key)
                         : redis::failure{errc::unreachable, resolver_.trouble(services_.now()).detail};
}

std::string sentinel::where(std::string_view key) const {
  return known_address_ ? one_server::where(key) : "the primary " + primary_name_ + " of its sentinels";
}

void sentinel::close() {
  look_.stop();
  linger_.stop();
  watches_.clear();
  one_server::close();
  replicas_->close();
}

void sentinel::wake() {
  if (awake_ || commands_->closed()) return;
  awake_ = true;
  resolver_.start(services_.now());
  for (const auto& watch : watches_) watch->listen(true);
  pump();
}

void sentinel::sleep_soon() {
  if (awake_ && !linger_.due()) linger_.start(services_.now() + lingering, [this] { sleep_if_idle(); });
}

void sentinel::sleep_if_idle() {
  if (!commands_->idle() || !channels_->idle()) return;
  awake_ = false;
  resolver_.stop();
  look_.stop();
  for (const auto& watch : watches_) watch->listen(false);
  commands_->rest();
  channels_->rest();
}

// A call inside of it only notes that another pass is needed: the calls below may answer at once.
void sentinel::pump() {
  if (std::exchange(pumping_, true)) {
    pump_again_ = true;
    return;
  }
  do {
    pump_again_ = false;
    attend_to_known();
    ask();
    follow();
    report_trust(services_.now());
  } while (pump_again_ && !commands_->closed());
  pumping_ = false;
  if (const auto next = resolver_.next_look(services_.now()); next && awake_ && !commands_->closed())
    look_.start(*next, [this] {
      resolver_.look(services_.now());
      pump();
    });
}

// For news that come inside a call of a connection. That connection may have to move, which it cannot inside its call.
void sentinel::pump_soon() {
  if (awake_) look_.start(services_.now(), [this] { pump(); });
}

void sentinel::attend_to_known() {
  const auto known = resolver_.known();
  std::erase_if(watches_, [&](const auto& watch) {
    return std::none_of(known.begin(), known.end(), [&](const auto& sentinel) { return sentinel.id == watch->id(); });
  });
  sentinel_watch::listener& listener = *this;
  for (const auto& sentinel : known) {
    if (std::any_of(watches_.begin(), watches_.end(), [&](const auto& watch) { return sentinel.id == watch->id(); }))
      continue;
    const auto node = any_sentinel_.with(sentinel.at);
    watches_.push_back(
        std::make_unique<sentinel_watch>(services_, node, sentinel.id, primary_name_, answer_timeout_, listener));
    watches_.back()->listen(awake_);
  }
}

void sentinel::ask() {
  for (const auto& question : resolver_.take_due(services_.now()))
    for (const auto& watch : watches_)
      if (watch->id() == question.whom) watch->ask(question.for_others);
}

void sentinel::follow() {
  const auto now = services_.now();
  if (const auto& target = resolver_.target(); target && resolver_.ready())
    if (!known_address_ || commands_->node().at != *target) move_to(redis::address(*target));
  const bool open = resolver_.open(now);
  const bool was_open = gate_.is_open();
  using state = connect_gate::state;
  if (open)
    gate_.set(state::open);
  else
    gate_.set(resolver_.hopeless(now) ? state::hopeless : state::closed, resolver_.trouble(now));
  commands_->hold(!resolver_.ready());
  if (was_open && !open && strict_ && resolver_.ready() && !resolver_.trusted(now))
    send_both(commands_->node().at, resolver_.trouble(now).detail);
}

void sentinel::move_to(const redis::address& to) {
  const auto from = commands_->address();
  const auto there = commands_->node().with(to).to_string();
  if (std::exchange(known_address_, true)) report(event_kind::primary_changed, errc{}, "from " + from + " to " + there);
  send_both(to, from + ": the primary is " + there + " now");
}

void sentinel::send_both(const redis::address& to, const std::string& cause) {
  commands_->retarget(to, {errc::unreachable, cause});
  channels_->retarget(to, {errc::unreachable, cause});
  replicas_->retarget(to, {errc::unreachable, cause});
}

void sentinel::report_trust(time_point now) {
  if (!resolver_.unreachable(now)) {
    if (resolver_.trusted(now)) reported_unreachable_ = false;
  } else if (!std::exchange(reported_unreachable_, true)) {
    report(event_kind::sentinels_unreachable, errc::unreachable, resolver_.trouble(now).detail);
  }
}

void sentinel::on_news(sentinel_watch::sentinel_id id) {
  resolver_.ask_soon(id, services_.now());
  pump();
}

void sentinel::on_answer(sentinel_watch::sentinel_id id, const sentinel_answer& answer) {
  resolver_.replied(id, answer, services_.now());
  if (answer.down_after && !reported_short_ttl_)
    if (const auto text = shorter_than(sentinel_failover, *answer.down_after, ttl_)) {
      reported_short_ttl_ = true;
      report(event_kind::ttl_shorter_than_failover, errc{}, *text);
    }
  pump();
}

void sentinel::on_failed(sentinel_watch::sentinel_id id, const redis::failure& why) {
  resolver_.failed(id, why, services_.now());
  pump();
}

void sentinel::on_down(sentinel_watch::sentinel_id id, const redis::failure& why) {
  resolver_.down(id, why, services_.now());
  pump();
}

void sentinel::on_identified(sentinel_watch::sentinel_id id, const std::string& run) {
  resolver_.identified(id, run);
  pump();
}

void sentinel::on_listed(const std::vector<listed_sentinel>& others) {
  resolver_.listed(others, services_.now());
  pump();
}

void sentinel::on_link(bool up) {
  if (!up) {
    resolver_.ask_all_soon(services_.now());
    pump_soon();
  }
  tell_link(up);
}

void sentinel::hear(const event& event) {
  if (event.kind == event_kind::outage && event.reason == errc::not_primary)
    tolerate({errc::not_primary, {}});  // an established connection got the refusal of a replica
  if (events_) events_(event);
}

bool sentinel::tolerate(const redis::failure& why) {
  if (why.code != errc::not_primary || !gate_.is_open()) return false;  // closed: the refusal is a sentinel's
  resolver_.refused(commands_->node().at, services_.now());
  resolver_.ask_all_soon(services_.now());
  pump_soon();
  return true;
}

void sentinel::report(event_kind kind, errc reason, const std::string& detail) const {
  if (!events_ || commands_->closed()) return;
  event event{kind, {}};
  if (reason != errc{}) event.reason = reason;
  event.detail = detail;
  events_(event);
}

}  // namespace holdfast::detail

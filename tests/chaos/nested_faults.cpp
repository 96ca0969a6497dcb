// SPDX-License-Identifier: BSL-1.0
#include "chaos/nested_faults.hpp"

#include <array>
#include <string_view>
#include <thread>

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using direction = test::proxy::direction;
using rule = test::proxy::rule;

constexpr auto servers = nested_rig::servers;
constexpr auto longest = 1000ms;

constexpr std::array names{"none",
                           "full",
                           "stopped",
                           "writes paused",
                           "all paused",
                           "restarted",
                           "clients killed",
                           "subscribers killed",
                           "scripts flushed",
                           "cut",
                           "refused",
                           "requests swallowed",
                           "replies swallowed",
                           "requests held",
                           "replies held",
                           "delayed",
                           "forgotten",
                           "cut before replies",
                           "reply lost",
                           "messages lost"};

rule of_replies(rule::action what, std::size_t n, std::string command) {
  rule r;
  r.what = what;
  r.n = n;
  r.command = std::move(command);
  return r;
}

}  // namespace

void nested_faults::rage(milliseconds time) {
  places_.assign(2 * servers + on_.links().size(), {});
  const auto end_of_all = steady_clock::now() + time;
  while (steady_clock::now() < end_of_all) {
    const auto target = dice_.below(places_.size());
    if (places_[target].now == kind::none && dice_.per_mille(600)) begin(target);
    std::this_thread::sleep_for(dice_.between(5ms, 60ms));
    for (std::size_t n = places_.size(); n-- > 0;)
      if (places_[n].now != kind::none && places_[n].until <= steady_clock::now()) end(n);
  }
  // A server that is full is asked to be so no more when it answers again.
  for (const auto server_itself : {true, false})
    for (std::size_t n = 0; n < places_.size(); ++n)
      if ((n < servers) == server_itself && places_[n].now != kind::none) {
        if (n < servers) std::this_thread::sleep_until(places_[n].until);
        end(n);
      }
}

std::string nested_faults::name_of(std::size_t target) const {
  if (target < 2 * servers) return "server " + std::to_string(target % servers);
  const auto link = target - 2 * servers;
  return "link " + std::to_string(link) + " to server " + std::to_string(on_.links()[link].server);
}

void nested_faults::begin(std::size_t target) {
  using enum kind;
  static constexpr std::array of_servers{stop,         stop,         pause_writes,     pause_everything, restart,
                                         kill_clients, kill_clients, kill_subscribers, flush_scripts};
  static constexpr std::array of_links{
      cut,          cut,   refuse, swallow_requests,   swallow_replies,    hold_requests,
      hold_replies, delay, forget, cut_before_replies, cut_before_replies, lose_reply,
      lose_messages};
  const auto server = target % servers;
  const auto lasts = dice_.per_mille(300) ? dice_.between(300ms, longest) : dice_.between(20ms, 300ms);
  auto& place = places_[target];
  if (target >= 2 * servers) {
    place.now = of_links[dice_.below(of_links.size())];
  } else if (target >= servers) {
    if (places_[server].now != none) return;  // it does not answer
    place.now = full;
  } else {
    place.now = of_servers[dice_.below(of_servers.size())];
  }
  place.until = steady_clock::now() + lasts;
  book_.note("fault begins: " + name_of(target) + ' ' + names[static_cast<std::size_t>(place.now)] + " for " +
             std::to_string(lasts.count()) + " ms");
  if (target >= 2 * servers)
    begin_on_link(*on_.links()[target - 2 * servers].way, place.now);
  else
    begin_on_server(server, place.now, lasts);
}

void nested_faults::begin_on_server(std::size_t server, kind k, milliseconds lasts) {
  switch (k) {
    case kind::full: return set_full(server, true);
    case kind::stop: return on_.server(server).stop();
    case kind::pause_writes: on_.ask(server)("CLIENT", "PAUSE", lasts.count(), "WRITE"); return;
    case kind::pause_everything: on_.ask(server)("CLIENT", "PAUSE", lasts.count(), "ALL"); return;
    case kind::restart: return on_.server(server).restart();
    case kind::kill_clients: on_.ask(server)("CLIENT", "KILL", "TYPE", "normal"); return;
    case kind::kill_subscribers: on_.ask(server)("CLIENT", "KILL", "TYPE", "pubsub"); return;
    case kind::flush_scripts: on_.ask(server)("SCRIPT", "FLUSH"); return;
    default: return;
  }
}

void nested_faults::begin_on_link(test::proxy& link, kind k) {
  switch (k) {
    case kind::cut: return link.cut();
    case kind::refuse: link.refuse(); return link.cut();
    case kind::swallow_requests: return link.swallow(direction::to_server);
    case kind::swallow_replies: return link.swallow(direction::to_client);
    case kind::hold_requests: return link.hold(direction::to_server);
    case kind::hold_replies: return link.hold(direction::to_client);
    case kind::delay:
      link.delay(direction::to_server, dice_.between(1ms, 60ms));
      return link.delay(direction::to_client, dice_.between(1ms, 60ms));
    case kind::forget: return link.forget();
    case kind::cut_before_replies:
      for (std::size_t n = 1; n <= 5; ++n)
        link.at_reply(of_replies(rule::action::cut_before, n * (1 + dice_.below(8)), "EVALSHA"));
      return;
    case kind::lose_reply: return link.at_reply(of_replies(rule::action::drop_rest, 1 + dice_.below(8), "EVALSHA"));
    case kind::lose_messages: {
      auto all = of_replies(rule::action::drop, 1, "message");
      all.times = test::proxy::always;
      return link.at_reply(all);
    }
    default: return;
  }
}

void nested_faults::end(std::size_t target) {
  auto& place = places_[target];
  if (target >= 2 * servers) {
    on_.links()[target - 2 * servers].way->heal();  // what was forgotten stays so: the client finds out
  } else if (target >= servers) {
    if (places_[target % servers].now != kind::none) return;  // when it answers again
    set_full(target % servers, false);
  } else if (place.now == kind::stop) {
    on_.server(target).cont();
  }
  book_.note("fault ends: " + name_of(target) + ' ' + names[static_cast<std::size_t>(place.now)]);
  place.now = kind::none;
}

void nested_faults::set_full(std::size_t server, bool full) {
  on_.ask(server)("CONFIG", "SET", "maxmemory", full ? 1 : 0);
}

}  // namespace holdfast::chaos

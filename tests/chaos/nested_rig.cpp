// SPDX-License-Identifier: BSL-1.0
#include "chaos/nested_rig.hpp"

#include <utility>

#include "support/run_coro.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

// Killed, it loses nothing that it has confirmed.
test::redis_options keeping_its_data() {
  test::redis_options o;
  o.tcp = true;
  o.arguments = {"--appendonly", "yes", "--appendfsync", "no", "--save", "", "--maxmemory-policy", "noeviction"};
  return o;
}

}  // namespace

const nested_names& names_of_chaos() {
  using enum lock_name::kind;
  static const nested_names all{{{"a.m0", plain},
                                 {"a.m1", plain},
                                 {"a.m2", plain},
                                 {"a.m3", plain},
                                 {"a.f0", fenced},
                                 {"a.f1", fenced},
                                 {"a.s0", simple},
                                 {"a.s1", simple}},
                                {{"b.m0", plain}, {"b.m1", plain}, {"b.m2", plain}, {"b.f0", fenced}, {"b.s0", simple}},
                                {{"r.r0", red}, {"r.r1", red}, {"r.q0", red_simple}},
                                {{"a.xm", plain}, {"b.xf", fenced}, {"r.xr", red}}};
  return all;
}

nested_rig::nested_rig(asio::io_context& io, call_book& book) {
  for (std::size_t n = 0; n < servers; ++n) servers_.push_back(std::make_unique<test::real_redis>(keeping_its_data()));
  connect(io, book, {0}, false, true);
  connect(io, book, {0}, true, false);
  connect(io, book, {1}, true, true);
  auto& red = connect(io, book, {2, 3, 4}, false, true);
  test::run(io, red_lock::initialise(red));
}

client& nested_rig::connect(asio::io_context& io, call_book& book, std::vector<std::size_t> to, bool tcp, bool turns) {
  config c;
  std::vector<std::string> urls;
  for (const auto n : to) {
    links_.push_back({n, std::make_unique<test::proxy>(*servers_[n], test::proxy_options{tcp})});
    urls.push_back(links_.back().way->url());
  }
  if (urls.size() == 1) {
    c.url = urls.front();
  } else {
    c.primaries = urls;
    c.delayed_restart = false;  // they keep what they have confirmed
  }
  c.ttl = nested_ttl;
  c.command_timeout = nested_command_timeout;
  c.connect_timeout = 500ms;
  c.reconnect_cap = 300ms;
  c.poll_cap = 1s;
  c.health_check_interval = 1s;
  c.turns = turns;
  c.observer = std::make_shared<book_observer>(book, "client " + std::to_string(clients_.size()));
  return clients_.emplace_back(io.get_executor(), std::move(c));
}

std::vector<std::string> nested_rig::locks(std::size_t which) const { return ask(which)("KEYS", "?.*").strings(); }

std::vector<std::string> nested_rig::holders(std::size_t which, const std::string& lock) const {
  auto server = ask(which);
  if (server("TYPE", lock) == "hash") return server("HKEYS", lock).strings();
  const auto value = server("GET", lock);
  return value.is_nil() ? std::vector<std::string>() : std::vector{value.to_string()};
}

std::vector<std::string> nested_rig::channels(std::size_t which) const {
  return ask(which)("PUBSUB", "CHANNELS").strings();
}

}  // namespace holdfast::chaos

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

std::vector<lock_name> numbered(const std::string& prefix, lock_name::kind by, int count) {
  std::vector<lock_name> all;
  for (int n = 0; n < count; ++n) all.push_back({prefix + std::to_string(n), by});
  return all;
}

std::vector<lock_name> operator+(std::vector<lock_name> all, const std::vector<lock_name>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

const nested_names& names_of_chaos() {
  using enum lock_name::kind;
  static const nested_names all{numbered("a.m", plain, 7) + numbered("a.f", fenced, 4) + numbered("a.s", simple, 4),
                                numbered("b.m", plain, 4) + numbered("b.f", fenced, 2) + numbered("b.s", simple, 2),
                                numbered("r.r", red, 3) + numbered("r.q", red_simple, 2),
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
    c.red_lock.primaries = urls;
    c.red_lock.delayed_restart = false;  // they keep what they have confirmed
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
  return ask(which)("PUBSUB", "CHANNELS", "[^_]*").strings();  // that of pushed changes stays
}

}  // namespace holdfast::chaos

// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "integration/world.hpp"
#include "support/proxy.hpp"

namespace holdfast::test {

inline constexpr reentrancy both[] = {reentrancy::reentrant, reentrancy::not_reentrant};

/// Independent servers, and clients whose locks a majority of them grants. The first is world::server.
struct red_world : world {
  explicit red_world(std::size_t n = 5, redis_options options = {}) : world(options) {
    for (std::size_t i = 1; i < n; ++i) others.emplace_back(options);
    for (std::size_t i = 0; i < n; ++i) eyes.emplace_back(node(i));
  }

  real_redis& node(std::size_t i) { return i == 0 ? server : others.at(i - 1); }
  std::size_t size() const { return eyes.size(); }

  config settings() {
    auto c = world::settings();
    c.url = config().url;
    for (std::size_t i = 0; i < size(); ++i) c.red_lock.primaries.push_back(node(i).url());
    return c;
  }
  template <class Change>
  client make(Change change) {
    auto c = settings();
    change(c);
    return client(io.get_executor(), std::move(c));
  }
  client make() {
    return make([](config&) {});
  }
  /// The servers are a new installation: an operator makes their markers.
  template <class Change>
  client founded(Change change) {
    auto c = make(change);
    run(red_lock::initialise(c));
    return c;
  }
  client founded() {
    return founded([](config&) {});
  }
  /// A client of some of the servers, which has no path to the others.
  client that_sees(const std::vector<std::size_t>& nodes, const std::function<void(config&)>& change = {}) {
    auto c = settings();
    if (change) change(c);
    for (std::size_t i = 0; i < size(); ++i)
      if (std::find(nodes.begin(), nodes.end(), i) == nodes.end())
        c.red_lock.primaries[i] = "redis+unix://" + node(i).folder() + "/nobody" + std::to_string(i);
    return client(io.get_executor(), std::move(c));
  }

  /// Starts a server anew, perhaps with other options, and looks at it again.
  void restart(std::size_t i) {
    node(i).restart();
    eyes[i] = raw_client(node(i));
  }
  /// How often clients and their scripts have called these commands there.
  long long calls(std::size_t i, std::initializer_list<std::string_view> commands) {
    const auto stats = eyes[i]("INFO", "commandstats").to_string();
    long long all = 0;
    for (const auto command : commands) {
      const auto label = "cmdstat_" + std::string(command) + ":calls=";
      const auto at = stats.find(label);
      if (at != stats.npos) all += std::stoll(stats.substr(at + label.size()));
    }
    return all;
  }
  /// Where the lock of this name is.
  std::string where(const std::string& name) {
    std::string text;
    for (std::size_t i = 0; i < size(); ++i)
      if (node(i).running() && eyes[i]("EXISTS", name) == 1) text += static_cast<char>('A' + i);
    return text;
  }

  std::deque<real_redis> others;
  std::deque<raw_client> eyes;
};

/// The same, with a proxy before each server.
struct proxied_red_world : red_world {
  explicit proxied_red_world(std::size_t n = 5, redis_options options = {}) : red_world(n, options) {
    for (std::size_t i = 0; i < n; ++i) nets.emplace_back(node(i));
  }

  template <class Change>
  client through(Change change) {
    return make([&](config& c) {
      for (std::size_t i = 0; i < size(); ++i) c.red_lock.primaries[i] = nets[i].url();
      change(c);
    });
  }
  client through() {
    return through([](config&) {});
  }

  std::deque<proxy> nets;
};

}  // namespace holdfast::test

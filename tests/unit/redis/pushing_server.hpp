// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "unit/redis/scripted_network.hpp"

namespace holdfast::test {

/// A server that pushes changes of tracked keys to another client of it, as Redis does in RESP2.
struct pushing_server : scripted_host {
  using words = std::vector<std::string>;

  explicit pushing_server(std::string r = "aa") : run(std::move(r)) {}

  redis::reply answer(connection& from, const words& argv) override {
    const auto& name = argv[0];
    const auto caching = std::exchange(cached_for, nullptr) == &from;
    if (name == "INFO")
      return replies::string("# Server\r\nredis_version:" + version + "\r\nredis_mode:" + mode + "\r\nrun_id:" + run +
                             "\r\n");
    if (name == "AUTH") return replies::ok();
    if (name == "ROLE") return introduced.insert(&from), strings({"master"});
    if (name == "CLIENT" && argv[1] == "ID") return replies::integer(introduce(from));
    if (name == "CLIENT" && argv[1] != "TRACKING" && argv[1] != "CACHING") return replies::ok();
    if (name == "CLUSTER" || name == "CONFIG") return cluster_answer(name);
    if (name == "PING" && introduced.insert(&from).second) return replies::status("PONG");
    heard.push_back(name == "CLIENT" ? argv[1] : name);
    if (stalls && name == "GET") forgotten.insert(&from);
    if (name == "PING") return replies::status("PONG");
    if (name == "SUBSCRIBE" || name == "UNSUBSCRIBE" || name == "SSUBSCRIBE" || name == "SUNSUBSCRIBE")
      return subscribe(from, argv);
    if (name == "CLIENT" && argv[1] == "TRACKING") return track(from, argv);
    if (name == "CLIENT") return cache(from);
    if (caching) tracked[argv.at(1)].insert(&from);
    return replies::ok();
  }

  /// Another client has changed the key.
  void change(const std::string& key) {
    for (auto* by : std::exchange(tracked[key], {})) push(by, strings({key}));
  }
  void flush_all() {
    tracked.clear();
    for (const auto& each : redirects) push(each.first, {});
  }
  void push(connection* by, redis::reply payload) {
    for (const auto& [to, id] : ids)
      if (connections.contains(by) && connections.contains(to) && redirects[by] == id)
        to->send(
            replies::array({replies::string("message"), replies::string("__redis__:invalidate"), std::move(payload)}));
  }
  connection* pubsub() const {
    for (auto* each : connections)
      if (listening.contains(each)) return each;
    return nullptr;
  }
  connection* commands() const {
    for (auto* each : connections)
      if (!listening.contains(each)) return each;
    return nullptr;
  }
  words take_heard() { return std::exchange(heard, {}); }
  virtual redis::reply cluster_answer(const std::string&) { return replies::array({}); }

  std::string run, mode = "standalone", version = "7.0.15";
  std::string refuses_tracking, refuses_caching, refuses_channel;
  bool ends_upon_tracking = false;
  bool stalls = false;  // answers nothing more on a connection from a GET on
  words heard;          // after the handshakes
  std::map<connection*, long long> ids, redirects;
  std::set<connection*> listening, introduced;
  std::map<std::string, std::set<connection*>> tracked;
  long long last_id = 10;

 private:
  /// Another connection may have been at its place.
  long long introduce(connection& from) {
    for (auto* all : {&listening, &introduced}) all->erase(&from);
    redirects.erase(&from);
    return ids[&from] = ++last_id;
  }
  redis::reply subscribe(connection& from, const words& argv) {
    if (argv[1] == "__redis__:invalidate" && !refuses_channel.empty()) return replies::error(refuses_channel);
    listening.insert(&from);
    auto word = argv[0];
    for (auto& c : word) c = static_cast<char>(c | 0x20);
    return replies::array({replies::string(word), replies::string(argv[1]), replies::integer(1)});
  }
  redis::reply track(connection& from, const words& argv) {
    if (ends_upon_tracking) from.end();
    if (!refuses_tracking.empty()) return replies::error(refuses_tracking);
    if (argv.size() != 7 || argv[2] != "ON" || argv[3] != "REDIRECT" || argv[5] != "OPTIN" || argv[6] != "NOLOOP")
      return replies::error("ERR syntax error");
    redirects[&from] = std::stoll(argv[4]);
    return replies::ok();
  }
  redis::reply cache(connection& from) {
    if (!refuses_caching.empty()) return replies::error(refuses_caching);
    if (!redirects.contains(&from)) return replies::error("ERR CLIENT CACHING can be called only when");
    cached_for = &from;
    return replies::ok();
  }

  connection* cached_for = nullptr;
};

}  // namespace holdfast::test

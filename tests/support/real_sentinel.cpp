// SPDX-License-Identifier: BSL-1.0
#include "support/real_sentinel.hpp"

#include <algorithm>
#include <stdexcept>

#include "support/raw_client.hpp"
#include "support/wait_for_servers.hpp"

namespace holdfast::test {
namespace {

const std::string here = "127.0.0.1";
const std::string service_url = "redis+sentinel://localhost/mymaster?min_replicas=1";

std::vector<std::string> replica_of(const real_redis& primary) {
  return {"--replicaof", here, std::to_string(primary.port())};
}

// The replicas come at once, and not one after another.
redis_options server_options(std::vector<std::string> more = {}) {
  redis_options o;
  o.tcp = true;
  o.service_url = service_url;
  o.arguments = {"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"};
  o.arguments.insert(o.arguments.end(), more.begin(), more.end());
  return o;
}

std::string id_of(std::size_t sentinel) { return std::string(40, static_cast<char>('a' + sentinel)); }

std::string configuration(std::size_t sentinel, const std::deque<real_redis>& servers,
                          std::chrono::milliseconds down_after) {
  const std::string name = real_sentinel::name;
  std::string text = "sentinel myid " + id_of(sentinel) + "\nsentinel monitor " + name + " " + here + " " +
                     std::to_string(servers[0].port()) + " 2\nsentinel down-after-milliseconds " + name + " " +
                     std::to_string(down_after.count()) + "\nsentinel failover-timeout " + name +
                     " 3000\nsentinel parallel-syncs " + name + " 2\n";
  for (std::size_t n = 1; n < servers.size(); ++n)
    text += "sentinel known-replica " + name + " " + here + " " + std::to_string(servers[n].port()) + "\n";
  if (const auto login = servers[0].login(); login.size() == 3)
    text += "sentinel auth-user " + name + " " + login[1] + "\nsentinel auth-pass " + name + " " + login[2] +
            "\nsentinel sentinel-user " + login[1] + "\nsentinel sentinel-pass " + login[2] + "\n";
  return text;
}

redis_options sentinel_options(std::size_t n, const std::deque<real_redis>& servers,
                               std::chrono::milliseconds down_after) {
  redis_options o;
  o.tcp = true;
  o.service_url = service_url;
  o.sentinel = true;
  o.configuration = configuration(n, servers, down_after);
  o.arguments = {"--sentinel"};
  return o;
}

}  // namespace

real_sentinel::real_sentinel(std::chrono::milliseconds down_after) : down_after_(down_after) {
  servers_.emplace_back(server_options());
  while (servers_.size() < servers) servers_.emplace_back(server_options(replica_of(servers_[0])));
  while (sentinels_.size() < sentinels)
    sentinels_.emplace_back(sentinel_options(sentinels_.size(), servers_, down_after));
  introduce_sentinels();
  wait_for_servers("sentinels that know everybody", sentinels_, [this] { return whole(); });
  replicate();
}

// They would introduce themselves through the primary, every two seconds.
void real_sentinel::introduce_sentinels() {
  const auto primary = here + "," + std::to_string(servers_[primary_].port());
  for (std::size_t from = 0; from < sentinels; ++from) {
    const auto hello =
        here + "," + std::to_string(sentinels_[from].port()) + "," + id_of(from) + ",0," + name + "," + primary + ",0";
    for (std::size_t to = 0; to < sentinels; ++to)
      if (to != from) patiently(sentinels_.at(to))("PUBLISH", "__sentinel__:hello", hello);
  }
}

std::string real_sentinel::url() const {
  std::string hosts;
  for (const auto& s : sentinels_) hosts += (hosts.empty() ? "" : ",") + here + ":" + std::to_string(s.port());
  return "redis+sentinel://" + hosts + "/" + name;
}

void real_sentinel::replicate(unsigned replicas) {
  raw_client eye(primary());
  wait_for_servers("replication", servers_, [&] {
    eye("PUBLISH", "mark", "");
    return eye("WAIT", replicas, 1'000).integer() >= replicas;
  });
}

std::size_t real_sentinel::announced_by(std::size_t sentinel) {
  const auto address = briefly(sentinels_.at(sentinel))("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name).strings();
  const auto found = std::find_if(servers_.begin(), servers_.end(),
                                  [&](const auto& s) { return std::to_string(s.port()) == address.at(1); });
  if (found == servers_.end()) throw std::runtime_error("a sentinel announces a stranger");
  return static_cast<std::size_t>(found - servers_.begin());
}

bool real_sentinel::agreed(std::size_t server) {
  for (std::size_t n = 0; n < sentinels; ++n)
    if (lives(sentinels_[n]) && announced_by(n) != server) return false;
  return true;
}

bool real_sentinel::announced() {
  for (const auto next : {replica_number(0), replica_number(1)})
    if (agreed(next)) {
      primary_ = next;
      return true;
    }
  return false;
}

void real_sentinel::wait_for_failover() {
  wait_for_servers("a failover", sentinels_, [this] { return announced(); });
}

// Sentinels that are quick see a busy server as down. So they are quick until the servers of the failover are known.
void real_sentinel::lose_primary() {
  be_quick();
  primary().kill();
  wait_for_failover();
  set_down_after(down_after_);
}

void real_sentinel::set_down_after(std::chrono::milliseconds silence) {
  for (auto& sentinel : sentinels_)
    if (lives(sentinel)) patiently(sentinel)("SENTINEL", "SET", name, "down-after-milliseconds", silence.count());
}

void real_sentinel::begin_fail_over() {
  wait_for_servers("a failover that begins", sentinels_, [this] {
    const auto living = std::find_if(sentinels_.begin(), sentinels_.end(), lives);
    briefly (*living)("SENTINEL", "FAILOVER", name);
    return true;
  });
}

void real_sentinel::fail_over() {
  begin_fail_over();
  wait_for_failover();
}

// What each sentinel says: nobody is away, nothing is under way, nobody is missing.
bool real_sentinel::whole() {
  for (auto& sentinel : sentinels_) {
    auto ask = briefly(sentinel);
    const auto primary = ask("SENTINEL", "MASTER", name);
    if (primary.field("flags") != "master" || primary.field("num-slaves") != std::to_string(servers - 1) ||
        primary.field("num-other-sentinels") != std::to_string(sentinels - 1))
      return false;
    const auto replicas = ask("SENTINEL", "REPLICAS", name), others = ask("SENTINEL", "SENTINELS", name);
    for (const auto& each : replicas.array())
      if (each.field("flags") != "slave") return false;
    for (const auto& each : others.array())
      if (const auto flags = *each.field("flags");
          flags.find("s_down") != flags.npos || flags.find("disconnected") != flags.npos)
        return false;  // the opinion "master_down" is forgotten late
  }
  return agreed(announced_by(0));
}

// The sentinels themselves would wait for ten seconds before they demote a primary that is back.
void real_sentinel::repair() {
  primary_ = announced_by(0);
  if (!agreed(primary_)) throw std::runtime_error("the sentinels disagree");
  for (auto& sentinel : sentinels_)
    if (briefly(sentinel)("SENTINEL", "MASTER", name).field("flags")->find("failover_in_progress") != std::string::npos)
      throw std::runtime_error("a failover is under way");
  if (!primary().running()) {
    primary().options() = server_options();
    primary().restart();
  }
  const auto role = briefly(primary())("ROLE").array().at(0).text;
  if (role != "master") briefly(primary())("REPLICAOF", "NO", "ONE");
  for (const auto n : {replica_number(0), replica_number(1)}) {
    auto& replica = servers_[n];
    if (!replica.running()) {
      replica.options() = server_options(replica_of(primary()));
      replica.restart();
    }
    auto ask = briefly(replica);
    const auto is = ask("ROLE").array();
    if (is.at(0).text != "slave" || is.at(2).number != primary().port()) ask("REPLICAOF", here, primary().port());
  }
}

void real_sentinel::mend(const std::function<void()>& meanwhile) {
  for (auto* all : {&servers_, &sentinels_})
    for (auto& each : *all)
      if (each.running()) each.cont();
  for (auto& each : sentinels_)
    if (!each.running()) each.restart();
  set_down_after(down_after_);
  wait_for_servers("the rig to be whole again", sentinels_, [&] {
    if (meanwhile) meanwhile();
    repair();
    return whole();
  });
  replicate();
}

void real_sentinel::reset() {
  mend();
  for (auto& each : servers_) {
    raw_client ask(each);
    ask("CONFIG", "SET", "replica-priority", 100);
    ask("CONFIG", "SET", "min-replicas-to-write", 0);
  }
  patiently(primary())("FLUSHALL");
  replicate();
}

}  // namespace holdfast::test

// SPDX-License-Identifier: BSL-1.0
#include "support/real_cluster.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "support/wait_for_servers.hpp"

namespace holdfast::test {
namespace {

constexpr unsigned all_slots = 16'384;

// A replica stays with its primary, also when another shard has none, and comes at once.
redis_options node_options() {
  redis_options o;
  o.tcp = true;
  o.service_url = "redis+cluster://localhost?min_replicas=1";
  o.arguments = {"--cluster-enabled",
                 "yes",
                 "--cluster-config-file",
                 "nodes.conf",
                 "--cluster-node-timeout",
                 "1000",
                 "--cluster-migration-barrier",
                 "100",
                 "--cluster-replica-validity-factor",
                 "0",
                 "--repl-diskless-sync",
                 "yes",
                 "--repl-diskless-sync-delay",
                 "0",
                 "--repl-ping-replica-period",
                 "1"};
  return o;
}

unsigned number(const std::string& text) { return static_cast<unsigned>(std::stoul(text)); }

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool mentions(const std::string& flags, const std::string& flag) {
  return ("," + flags + ",").find("," + flag + ",") != std::string::npos;
}

std::vector<std::vector<std::string>> known_to(const real_redis& node) {
  std::istringstream in(patiently(node)("CLUSTER", "NODES").text);
  std::vector<std::vector<std::string>> all;
  for (std::string line; std::getline(in, line);) all.push_back(words_of(line));
  return all;
}

}  // namespace

bool real_cluster::self::has(unsigned slot) const {
  return std::any_of(slots.begin(), slots.end(),
                     [&](const auto& range) { return range.first <= slot && slot <= range.second; });
}

real_cluster::real_cluster(const adjustment& adjust) {
  while (nodes_.size() < nodes) {
    auto options = node_options();
    if (adjust) adjust(nodes_.size(), options);
    nodes_.emplace_back(std::move(options));
  }
  form();
  wait_until_whole();
  replicate();
}

void real_cluster::form() {
  for (std::size_t n = 0; n < nodes; ++n) {
    raw_client ask(nodes_[n]);
    ids_.push_back(ask("CLUSTER", "MYID").text);
    ask("CLUSTER", "SET-CONFIG-EPOCH", n + 1);
    for (std::size_t other = 0; other < n; ++other) ask("CLUSTER", "MEET", "127.0.0.1", nodes_[other].port());
    if (n >= shards) continue;
    std::vector<std::string> add{"CLUSTER", "ADDSLOTS"};
    for (unsigned slot = all_slots * n / shards; slot < all_slots * (n + 1) / shards; ++slot)
      add.push_back(std::to_string(slot));
    if (ask.call(add).is_error()) throw std::runtime_error("a node does not take its slots");
  }
  for (std::size_t n = shards; n < nodes; ++n)
    wait_for_servers("a node to know its primary", nodes_,
                     [&] { return briefly(nodes_[n])("CLUSTER", "REPLICATE", ids_[n - shards]) == "OK"; });
}

std::string real_cluster::url() const {
  std::string hosts;
  for (const auto& n : nodes_) hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(n.port());
  return "redis+cluster://" + hosts;
}

void real_cluster::configure(const std::string& parameter, const std::string& value) {
  for (auto& n : nodes_) {
    patiently(n)("CONFIG", "SET", parameter, value);
    n.options().arguments.insert(n.options().arguments.end(), {"--" + parameter, value});
  }
}

unsigned real_cluster::slot_of(std::string_view key) {
  const auto living = std::find_if(nodes_.begin(), nodes_.end(), lives);
  return static_cast<unsigned>(patiently(*living)("CLUSTER", "KEYSLOT", key).integer());
}

// <id> <address> <flags> <primary> <sent> <received> <epoch> <link> <slot> <from>-<to> [<slot>->-<id>] [<slot>-<-<id>]
real_cluster::self real_cluster::look(std::size_t n) {
  for (const auto& words : known_to(nodes_.at(n))) {
    if (!mentions(words.at(2), "myself")) continue;
    self s;
    s.primary = mentions(words[2], "master");
    for (std::size_t i = 8; i < words.size(); ++i) {
      const auto& word = words[i];
      const auto dash = word.find('-');
      if (word[0] == '[')
        s.moving.push_back(number(word.substr(1, dash - 1)));
      else
        s.slots.emplace_back(number(word), number(dash == word.npos ? word : word.substr(dash + 1)));
    }
    return s;
  }
  throw std::runtime_error("a node does not know itself");
}

std::vector<real_cluster::range> real_cluster::slots_of(std::size_t n) { return look(n).slots; }

std::vector<std::size_t> real_cluster::primaries() {
  std::vector<std::size_t> all;
  for (std::size_t n = 0; n < nodes; ++n)
    if (lives(nodes_[n]) && look(n).primary) all.push_back(n);
  return all;
}

std::size_t real_cluster::owner(unsigned slot) {
  for (const auto n : primaries())
    if (look(n).has(slot)) return n;
  throw std::runtime_error("nobody has slot " + std::to_string(slot));
}

std::string real_cluster::name_on(std::size_t primary, std::string_view stem) { return names_on(primary, 1, stem)[0]; }

std::vector<std::string> real_cluster::names_on(std::size_t primary, std::size_t count, std::string_view stem) {
  const auto has = look(primary);
  raw_client ask(nodes_.at(primary));
  std::vector<std::string> names;
  std::vector<unsigned> taken;
  for (int i = 0; names.size() < count; ++i) {
    const auto name = std::string(stem) + std::to_string(i);
    const auto slot = static_cast<unsigned>(ask("CLUSTER", "KEYSLOT", name).integer());
    if (!has.has(slot) || std::find(taken.begin(), taken.end(), slot) != taken.end()) continue;
    names.push_back(name);
    taken.push_back(slot);
  }
  return names;
}

void real_cluster::replicate() {
  for (const auto n : primaries()) {
    const auto mark = name_on(n, "mark");
    raw_client ask(nodes_[n]);
    wait_for_servers("replication", nodes_, [&] {
      ask("SET", mark, "1", "PX", 1);
      return ask("WAIT", 1, 1'000) == 1;
    });
    ask("DEL", mark);
  }
}

bool real_cluster::whole(std::size_t n) {
  return briefly(nodes_[n])("CLUSTER", "INFO").text.find("cluster_state:ok") != std::string::npos;
}

bool real_cluster::all_whole() {
  for (std::size_t n = 0; n < nodes; ++n) {
    if (!lives(nodes_[n]) || !whole(n)) return false;
    const auto known = known_to(nodes_[n]);
    if (known.size() != nodes) return false;
    for (const auto& words : known)
      if (words.at(2).find("fail") != std::string::npos || words[2].find("handshake") != std::string::npos)
        return false;
  }
  return primaries().size() == shards;
}

void real_cluster::wait_until_whole() {
  wait_for_servers("a whole cluster", nodes_, [this] { return all_whole(); });
}

bool real_cluster::all_say(const std::string& id, unsigned slot) {
  for (std::size_t n = 0; n < nodes; ++n) {
    if (!lives(nodes_[n])) continue;
    const auto map = briefly(nodes_[n])("CLUSTER", "SLOTS");
    const bool agrees = std::any_of(map.array().begin(), map.array().end(), [&](const value& range) {
      return range.elements.at(0).integer() <= slot && slot <= range.elements.at(1).integer() &&
             range.elements.at(2).elements.at(2) == id;
    });
    if (!agrees) return false;
  }
  return true;
}

bool real_cluster::promoted(std::size_t primary) {
  const auto next = partner_of(primary);
  const auto s = look(next);
  return s.primary && !s.slots.empty() && whole(next) && all_say(ids_[next], s.slots[0].first);
}

std::size_t real_cluster::wait_for_promotion(std::size_t primary) {
  wait_for_servers("a promotion", nodes_, [&] { return promoted(primary); });
  return partner_of(primary);
}

std::size_t real_cluster::fail_over(std::size_t primary) {
  patiently(nodes_.at(partner_of(primary)))("CLUSTER", "FAILOVER");
  return wait_for_promotion(primary);
}

void real_cluster::begin_move(unsigned slot, std::size_t to) {
  const auto from = owner(slot);
  patiently(nodes_.at(to))("CLUSTER", "SETSLOT", slot, "IMPORTING", ids_[from]);
  patiently(nodes_[from])("CLUSTER", "SETSLOT", slot, "MIGRATING", ids_.at(to));
}

bool real_cluster::move_some_keys(unsigned slot, std::size_t to, std::size_t at_most) {
  raw_client ask(nodes_[owner(slot)]);
  const auto keys = ask("CLUSTER", "GETKEYSINSLOT", slot, at_most).strings();
  if (keys.empty()) return false;
  std::vector<std::string> migrate{"MIGRATE", "127.0.0.1", std::to_string(nodes_.at(to).port()), "", "0", "5000"};
  if (const auto login = nodes_.at(to).login(); login.size() == 3)
    migrate.insert(migrate.end(), {"AUTH2", login[1], login[2]});
  migrate.push_back("KEYS");
  migrate.insert(migrate.end(), keys.begin(), keys.end());
  if (const auto reply = ask.call(migrate); reply.is_error()) throw server_error(reply.text);
  return true;
}

void real_cluster::move_keys(unsigned slot, std::size_t to) {
  while (move_some_keys(slot, to, 100)) {
  }
}

// The target first: should the source do it before, nobody would have the slot for a moment.
void real_cluster::end_move(unsigned slot, std::size_t to) {
  const auto from = owner(slot);
  patiently(nodes_.at(to))("CLUSTER", "SETSLOT", slot, "NODE", ids_[to]);
  patiently(nodes_[from])("CLUSTER", "SETSLOT", slot, "NODE", ids_[to]);
  for (const auto n : primaries())
    if (n != to && n != from) patiently(nodes_[n])("CLUSTER", "SETSLOT", slot, "NODE", ids_[to]);
}

void real_cluster::move(unsigned slot, std::size_t to) {
  begin_move(slot, to);
  move_keys(slot, to);
  end_move(slot, to);
}

void real_cluster::mend() {
  for (auto& n : nodes_)
    if (n.running())
      n.cont();
    else
      n.restart();
  wait_until_whole();
  replicate();
}

void real_cluster::reset() {
  mend();
  for (const auto n : primaries()) {
    raw_client ask(nodes_[n]);
    for (const auto slot : look(n).moving) ask("CLUSTER", "SETSLOT", slot, "STABLE");
    ask("FLUSHALL");
  }
  replicate();
}

}  // namespace holdfast::test

// SPDX-License-Identifier: BSL-1.0
// What a node says of its place among others: roles, slots, a sentinel's answers.
#include <utility>

#include "testing/sim/node.hpp"

namespace holdfast::sim {
namespace {

using kind = reply::kind;

reply array_of(std::vector<reply> all) { return {kind::array, 0, {}, std::move(all)}; }

reply unknown_command(const arguments& args) {
  auto text = "ERR unknown command '" + args.front() + "', with args beginning with: ";
  for (std::size_t i = 1; i < args.size(); ++i) text += '\'' + args[i] + "' ";
  return error_reply(std::move(text));
}

}  // namespace

void node::follow(peer primary) {
  primary_ = std::move(primary);
  if (data_.refuses == refusal::none) data_.refuses = refusal::replica;
}

void node::lead() {
  primary_.reset();
  if (data_.refuses == refusal::replica) data_.refuses = refusal::none;
}

void node::resemble(const keyspace::entries& all, long long offset) {
  tick();
  data_.keys.replace(all);
  offset_ = offset;
  compare_tracked();
}

void node::wrote() {
  ++offset_;
  on_write();
}

reply node::role() const {
  if (primary_)
    return array_of({string_reply("slave"), string_reply(primary_->host), integer_reply(primary_->port),
                     string_reply("connected"), integer_reply(offset_)});
  if (is_replica())  // of nobody who answers
    return array_of({string_reply("slave"), string_reply("elsewhere"), integer_reply(6379), string_reply("connect"),
                     integer_reply(-1)});
  std::vector<reply> all;
  for (const auto& each : followers())
    all.push_back(array_of(
        {string_reply(each.host), string_reply(std::to_string(each.port)), string_reply(std::to_string(each.offset))}));
  return array_of({string_reply("master"), integer_reply(offset_), array_of(std::move(all))});
}

std::string_view node::mode() const noexcept { return sentinel_ ? "sentinel" : slots_ ? "cluster" : "standalone"; }

reply node::info(const arguments& args) const {
  if (refuse_info_) return error_reply("NOPERM this user has no permissions to run the 'info' command");
  const auto section = args.size() > 1 ? lower(args[1]) : std::string();
  std::string text;
  const auto begin = [&](std::string_view title) {
    const bool asked = section.empty() || section == lower(title);
    if (asked) (text += text.empty() ? "# " : "\r\n# ").append(title).append("\r\n");
    return asked;
  };
  const auto line = [&](std::string_view label, const std::string& value) {
    text.append(label).append(":").append(value).append("\r\n");
  };
  if (begin("Server")) {
    line("redis_version", "7.0.15");
    line("redis_mode", std::string(mode()));
    line("run_id", run_id());
  }
  if (!sentinel_ && begin("Replication")) {
    line("role", is_replica() ? "slave" : "master");
    if (primary_) {
      line("master_host", primary_->host);
      line("master_port", std::to_string(primary_->port));
      line("master_link_status", "up");
    }
    const auto all = followers();
    line("connected_slaves", std::to_string(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i)
      line("slave" + std::to_string(i), "ip=" + all[i].host + ",port=" + std::to_string(all[i].port) +
                                            ",state=online,offset=" + std::to_string(all[i].offset) + ",lag=0");
    line("master_repl_offset", std::to_string(offset_));
  }
  if (!sentinel_ && begin("Cluster")) line("cluster_enabled", slots_ ? "1" : "0");
  return string_reply(std::move(text));
}

reply node::cluster(const arguments& args) const {
  if (args.size() < 2) return wrong_number_of_arguments("cluster");
  if (!slots_) return error_reply("ERR This instance has cluster support disabled");
  const auto verb = lower(args[1]);
  if (verb == "slots" && args.size() == 2) return slots_->slots();
  if (verb == "myid" && args.size() == 2) return string_reply(slots_->identity_of(slots_->self()).id);
  if (verb == "keyslot" && args.size() == 3) return integer_reply(slot_of(args[2]));
  return error_reply("ERR unknown subcommand '" + args[1] + "'. Try CLUSTER HELP.");
}

void node::watch_over(std::string name, std::function<reply(const arguments&)> answers) {
  watched_ = std::move(name);
  sentinel_ = std::move(answers);
}

reply node::answer_as_sentinel(session_id id, const std::string& name, const arguments& args) {
  if (name == "client") return client(id, args);
  if (name == "ping" && args.size() == 1) return status_reply("PONG");
  if (name == "info") return info(args);
  if (name == "role") return array_of({string_reply("sentinel"), array_of({string_reply(watched_)})});
  if (name == "publish") return error_reply("ERR Only HELLO messages are accepted by Sentinel instances.");
  if (name != "sentinel") return unknown_command(args);
  if (args.size() < 2) return wrong_number_of_arguments(name);
  const auto verb = lower(args[1]);
  if (verb == "myid" && args.size() == 2) return string_reply(name_);
  if (verb != "master" && verb != "sentinels" && verb != "get-master-addr-by-name")
    return error_reply("ERR unknown subcommand '" + args[1] + "'. Try SENTINEL HELP.");
  if (args.size() != 3) return wrong_number_of_arguments("sentinel|" + verb);
  if (args[2] == watched_) return sentinel_(args);
  return verb == "get-master-addr-by-name" ? reply{} : error_reply("ERR No such master with that name");
}

}  // namespace holdfast::sim

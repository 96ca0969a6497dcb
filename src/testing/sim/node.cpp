// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/node.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using kind = reply::kind;

/// What a server answers although it does not touch its data at present.
bool answers(refusal why, std::string_view name) {
  if (why == refusal::busy) return name == "auth" || name == "script";
  return name == "client" || name == "info" || name == "role" || name == "subscribe" || name == "unsubscribe" ||
         name == "auth" || name == "select" || name == "script" || name == "time" || name == "ssubscribe" ||
         name == "sunsubscribe" || name == "cluster" || name == "asking";
}

reply unknown_subcommand(const arguments& args) {
  auto upper = args[0];
  for (auto& byte : upper) byte = static_cast<char>(std::toupper(static_cast<unsigned char>(byte)));
  return error_reply("ERR unknown subcommand '" + args[1] + "'. Try " + upper + " HELP.");
}

}  // namespace

node::node(std::function<std::int64_t()> wall_clock_us, outlet send, std::function<void(session_id)> end,
           std::string name)
    : wall_clock_us_(std::move(wall_clock_us)), send_(std::move(send)), end_(std::move(end)),
      host_([this](const arguments& args) { return called_by_script(args); }), name_(std::move(name)) {
  data_.on_refused = [this](std::string_view error) { on_refused(error); };
  data_.publish = [this](std::string_view channel, std::string_view payload, bool sharded) {
    return publish(channel, payload, sharded);
  };
  data_.on_access = [this](const std::string& key) { access(key); };
  data_.on_read = [this](const std::string& key) { note_read(key); };
  data_.on_change = [this](const std::string& key) { push_change(key, true); };
  data_.on_flush = [this] { push_flush(); };
  data_.subscribers = [this](std::string_view channel, bool sharded) { return subscribers(channel, sharded); };
  tick();
}

node::session_id node::connect() {
  sessions_.emplace(++last_id_, session());
  return last_id_;
}

void node::disconnect(session_id id) {
  sessions_.erase(id);
  for (auto& [key, tracked] : tracked_) tracked.by.erase(id);
}

void node::tick() {
  data_.time_us = wall_clock_us_();
  data_.keys.at(data_.time_us / 1000);
}

keyspace& node::tamper() {
  tick();
  return data_.keys;
}

const keyspace& node::keys() {
  tick();
  return data_.keys;
}

std::vector<node::session_id> node::sessions() const {
  std::vector<session_id> all;
  for (const auto& [id, session] : sessions_) all.push_back(id);
  return all;
}

reply node::execute(const arguments& args) {
  tick();
  asking_ = true;  // who looks on goes by what is there
  caching_ = false;
  current_ = 0;
  return answer(0, lower(args.front()), args);
}

std::vector<reply> node::execute(session_id id, const arguments& args) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {};
  auto& from = found->second;
  tick();
  asking_ = std::exchange(from.asking, false);
  const auto name = lower(args.front());
  caching_ = name == "client" ? from.caching : std::exchange(from.caching, false);
  current_ = id;
  if (data_.refuses == refusal::busy && !answers(data_.refuses, name)) return {refused(text_of(data_.refuses))};
  if (auto elsewhere = misdirected(args)) return {std::move(*elsewhere)};
  if (((name == "subscribe" || name == "ssubscribe") && args.size() > 1) || name == "unsubscribe" ||
      name == "sunsubscribe")
    return subscribe(from, name, args);
  if (name == "ping" && from.listens())
    return {reply{kind::array, 0, {}, {string_reply("pong"), string_reply(args.size() > 1 ? args[1] : "")}}};
  if (from.listens())
    return {error_reply("ERR Can't execute '" + name +
                        "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")};
  if (name == "asking" && slots_) {
    from.asking = true;
    return {status_reply("OK")};
  }
  auto reply = answer(id, name, args);
  if (!connected(id)) return {};
  return {std::move(reply)};
}

std::optional<reply> node::misdirected(const arguments& args) const {
  if (!slots_) return std::nullopt;
  const auto keys = keys_of(args);
  const slot_view::question question{keys.keys, keys.channels, asking_};
  const auto where = slots_->ask(question, [&](const auto& key) { return data_.keys.find(key) != nullptr; });
  return where == slot_view::answer::mine ? std::nullopt : std::optional(error_reply(slots_->text_of(where, question)));
}

reply node::called_by_script(const arguments& args) {
  if (const auto elsewhere = misdirected(args)) {
    const auto& why = elsewhere->text;
    return error_reply(
        why.starts_with("CROSSSLOT")         ? "ERR Script attempted to access keys that do not hash to the same slot"
        : why.starts_with("CLUSTERDOWN The") ? "ERR Script attempted to execute a command while the cluster is down"
                                             : "ERR Script attempted to access a non local key in a cluster node");
  }
  return run_command(data_, args);
}

reply node::answer(session_id id, const std::string& name, const arguments& args) {
  data_.wrote = false;
  if (sentinel_) return answer_as_sentinel(id, name, args);
  if ((data_.refuses == refusal::loading || data_.refuses == refusal::busy) && !answers(data_.refuses, name))
    return refused(text_of(data_.refuses));
  auto reply = [&] {
    if (name == "eval" || name == "evalsha") return evaluate(name, args);
    if (name == "script") return script(args);
    if (name == "client") return client(id, args);
    if (name == "ping")
      return args.size() > 2    ? wrong_number_of_arguments(name)
             : args.size() == 2 ? string_reply(args[1])
                                : status_reply("PONG");
    if (name == "info") return info(args);
    if (name == "role") return role();
    if (name == "cluster") return cluster(args);
    if (name == "asking") return error_reply("ERR This instance has cluster support disabled");
    if (name == "subscribe" || name == "ssubscribe") return wrong_number_of_arguments(name);
    auto response = run_command(data_, args);
    on_command(args, response);
    return response;
  }();
  if (data_.wrote) wrote();
  return reply;
}

reply node::refused(std::string_view error) {
  on_refused(error);
  return error_reply(std::string(error));
}

reply node::evaluate(const std::string& name, const arguments& args) {
  if (args.size() < 3) return wrong_number_of_arguments(name);
  long long keys = 0;
  if (!to_integer(args[2], keys)) return error_reply("ERR value is not an integer or out of range");
  if (keys > static_cast<long long>(args.size()) - 3)
    return error_reply("ERR Number of keys can't be greater than number of args");
  if (keys < 0) return error_reply("ERR Number of keys can't be negative");
  auto digest = name == "evalsha" ? lower(args[1]) : std::string();
  if (name == "eval") {
    std::string failure;
    digest = host_.load(args[1], failure);
    if (!failure.empty()) return error_reply(failure);
  }
  if (!host_.knows(digest)) {
    if (on_script) on_script(digest, args, error_reply("NOSCRIPT"));
    return error_reply("NOSCRIPT No matching script. Please use EVAL.");
  }
  const std::span<const std::string> rest(args.begin() + 3, args.end());
  const auto declared = rest.first(static_cast<std::size_t>(keys));
  script_keys_ = declared;
  auto reply = host_.run(digest, declared, rest.subspan(static_cast<std::size_t>(keys)));
  script_keys_ = {};
  if (on_script) on_script(digest, args, reply);
  return reply;
}

reply node::script(const arguments& args) {
  const auto verb = args.size() > 1 ? lower(args[1]) : std::string();
  if (verb == "flush" && args.size() == 2) {
    host_.forget_all();
    return status_reply("OK");
  }
  if (verb == "load" && args.size() == 3) {
    std::string failure;
    auto digest = host_.load(args[2], failure);
    return failure.empty() ? string_reply(std::move(digest)) : error_reply(failure);
  }
  if (verb == "exists" && args.size() > 2) {
    reply all{kind::array, 0, {}, {}};
    for (auto digest = args.begin() + 2; digest != args.end(); ++digest)
      all.elements.push_back(integer_reply(host_.knows(lower(*digest))));
    return all;
  }
  return args.size() < 2 ? wrong_number_of_arguments("script") : unknown_subcommand(args);
}

reply node::client(session_id id, const arguments& args) {
  const auto verb = args.size() > 1 ? lower(args[1]) : std::string();
  if (verb == "id") return integer_reply(id);
  if (verb == "setname") return status_reply("OK");
  long long victim = 0;
  if (verb == "kill" && args.size() == 4 && lower(args[2]) == "id" && to_integer(args[3], victim)) {
    if (refuse_client_kill_) {
      on_kill_refused(victim);
      return refused("NOPERM this user has no permissions to run the 'client|kill' command");
    }
    if (!connected(victim)) return integer_reply(0);
    disconnect(victim);
    end_(victim);
    return integer_reply(1);
  }
  const auto by = sessions_.find(id);
  if (verb == "tracking" && by != sessions_.end()) return track(by->second, args);
  if (verb == "caching" && by != sessions_.end()) return cache(by->second, args);
  return args.size() < 2 ? wrong_number_of_arguments("client") : unknown_subcommand(args);
}

void node::restart(bool keep_data) {
  sessions_.clear();
  tracked_.clear();
  next_end_.reset();
  last_id_ = 0;
  ++run_;
  host_.forget_all();
  if (!keep_data) {
    data_.keys.clear();
    wrote();
  }
  data_.refuses = primary_ ? refusal::replica : refusal::none;
}

}  // namespace holdfast::sim

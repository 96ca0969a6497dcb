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

reply unknown_subcommand(const arguments& a) {
  auto upper = a[0];
  for (auto& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return error_reply("ERR unknown subcommand '" + a[1] + "'. Try " + upper + " HELP.");
}

}  // namespace

node::node(std::function<std::int64_t()> wall_clock_us, outlet send, std::function<void(session_id)> end,
           std::string name)
    : wall_clock_us_(std::move(wall_clock_us)), send_(std::move(send)), end_(std::move(end)),
      host_([this](const arguments& a) { return called_by_script(a); }), name_(std::move(name)) {
  data_.on_refused = [this](std::string_view error) { on_refused(error); };
  data_.publish = [this](std::string_view channel, std::string_view payload, bool sharded) {
    return publish(channel, payload, sharded);
  };
  tick();
}

node::session_id node::connect() {
  sessions_.emplace(++last_id_, session());
  return last_id_;
}

void node::disconnect(session_id id) { sessions_.erase(id); }

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
  for (const auto& [id, s] : sessions_) all.push_back(id);
  return all;
}

reply node::execute(const arguments& a) {
  tick();
  asking_ = true;  // who looks on goes by what is there
  return answer(0, lower(a.front()), a);
}

std::vector<reply> node::execute(session_id id, const arguments& a) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {};
  auto& from = found->second;
  tick();
  asking_ = std::exchange(from.asking, false);
  const auto name = lower(a.front());
  if (data_.refuses == refusal::busy && !answers(data_.refuses, name)) return {refused(text_of(data_.refuses))};
  if (auto elsewhere = misdirected(a)) return {std::move(*elsewhere)};
  if (((name == "subscribe" || name == "ssubscribe") && a.size() > 1) || name == "unsubscribe" ||
      name == "sunsubscribe")
    return subscribe(from, name, a);
  if (name == "ping" && from.listens())
    return {reply{kind::array, 0, {}, {string_reply("pong"), string_reply(a.size() > 1 ? a[1] : "")}}};
  if (from.listens())
    return {error_reply("ERR Can't execute '" + name +
                        "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")};
  if (name == "asking" && slots_) {
    from.asking = true;
    return {status_reply("OK")};
  }
  auto r = answer(id, name, a);
  if (!connected(id)) return {};
  return {std::move(r)};
}

std::optional<reply> node::misdirected(const arguments& a) const {
  if (!slots_) return std::nullopt;
  const auto keys = keys_of(a);
  const slot_view::question q{keys.keys, keys.channels, asking_};
  const auto where = slots_->ask(q, [&](const auto& key) { return data_.keys.find(key) != nullptr; });
  return where == slot_view::answer::mine ? std::nullopt : std::optional(error_reply(slots_->text_of(where, q)));
}

reply node::called_by_script(const arguments& a) {
  if (const auto elsewhere = misdirected(a)) {
    const auto& why = elsewhere->text;
    return error_reply(
        why.starts_with("CROSSSLOT")         ? "ERR Script attempted to access keys that do not hash to the same slot"
        : why.starts_with("CLUSTERDOWN The") ? "ERR Script attempted to execute a command while the cluster is down"
                                             : "ERR Script attempted to access a non local key in a cluster node");
  }
  return run_command(data_, a);
}

reply node::answer(session_id id, const std::string& name, const arguments& a) {
  data_.wrote = false;
  if (sentinel_) return answer_as_sentinel(id, name, a);
  if ((data_.refuses == refusal::loading || data_.refuses == refusal::busy) && !answers(data_.refuses, name))
    return refused(text_of(data_.refuses));
  auto r = [&] {
    if (name == "eval" || name == "evalsha") return evaluate(name, a);
    if (name == "script") return script(a);
    if (name == "client") return client(id, a);
    if (name == "ping")
      return a.size() > 2 ? wrong_number_of_arguments(name) : a.size() == 2 ? string_reply(a[1]) : status_reply("PONG");
    if (name == "info") return info(a);
    if (name == "role") return role();
    if (name == "cluster") return cluster(a);
    if (name == "asking") return error_reply("ERR This instance has cluster support disabled");
    if (name == "subscribe" || name == "ssubscribe") return wrong_number_of_arguments(name);
    auto said = run_command(data_, a);
    on_command(a, said);
    return said;
  }();
  if (data_.wrote) wrote();
  return r;
}

reply node::refused(std::string_view error) {
  on_refused(error);
  return error_reply(std::string(error));
}

reply node::evaluate(const std::string& name, const arguments& a) {
  if (a.size() < 3) return wrong_number_of_arguments(name);
  long long keys = 0;
  if (!to_integer(a[2], keys)) return error_reply("ERR value is not an integer or out of range");
  if (keys > static_cast<long long>(a.size()) - 3)
    return error_reply("ERR Number of keys can't be greater than number of args");
  if (keys < 0) return error_reply("ERR Number of keys can't be negative");
  auto digest = name == "evalsha" ? lower(a[1]) : std::string();
  if (name == "eval") {
    std::string failure;
    digest = host_.load(a[1], failure);
    if (!failure.empty()) return error_reply(failure);
  }
  if (!host_.knows(digest)) {
    if (on_script) on_script(digest, a, error_reply("NOSCRIPT"));
    return error_reply("NOSCRIPT No matching script. Please use EVAL.");
  }
  const std::span<const std::string> rest(a.begin() + 3, a.end());
  auto r = host_.run(digest, rest.first(static_cast<std::size_t>(keys)), rest.subspan(static_cast<std::size_t>(keys)));
  if (on_script) on_script(digest, a, r);
  return r;
}

reply node::script(const arguments& a) {
  const auto verb = a.size() > 1 ? lower(a[1]) : std::string();
  if (verb == "flush" && a.size() == 2) {
    host_.forget_all();
    return status_reply("OK");
  }
  if (verb == "load" && a.size() == 3) {
    std::string failure;
    auto digest = host_.load(a[2], failure);
    return failure.empty() ? string_reply(std::move(digest)) : error_reply(failure);
  }
  if (verb == "exists" && a.size() > 2) {
    reply all{kind::array, 0, {}, {}};
    for (auto digest = a.begin() + 2; digest != a.end(); ++digest)
      all.elements.push_back(integer_reply(host_.knows(lower(*digest))));
    return all;
  }
  return a.size() < 2 ? wrong_number_of_arguments("script") : unknown_subcommand(a);
}

reply node::client(session_id id, const arguments& a) {
  const auto verb = a.size() > 1 ? lower(a[1]) : std::string();
  if (verb == "id") return integer_reply(id);
  if (verb == "setname") return status_reply("OK");
  long long victim = 0;
  if (verb == "kill" && a.size() == 4 && lower(a[2]) == "id" && to_integer(a[3], victim)) {
    if (refuse_client_kill_) {
      on_kill_refused(victim);
      return refused("NOPERM this user has no permissions to run the 'client|kill' command");
    }
    if (!connected(victim)) return integer_reply(0);
    disconnect(victim);
    end_(victim);
    return integer_reply(1);
  }
  return a.size() < 2 ? wrong_number_of_arguments("client") : unknown_subcommand(a);
}

void node::restart(bool keep_data) {
  sessions_.clear();
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

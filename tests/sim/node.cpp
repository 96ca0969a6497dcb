// SPDX-License-Identifier: BSL-1.0
#include "sim/node.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using kind = reply::kind;

reply push_of(std::string_view what, const std::string& channel, reply last) {
  return {kind::array, 0, {}, {string_reply(std::string(what)), string_reply(channel), std::move(last)}};
}

/// What a server answers although it does not touch its data at present.
bool answers(refusal why, std::string_view name) {
  if (why == refusal::busy) return name == "auth" || name == "script";
  return name == "client" || name == "info" || name == "role" || name == "subscribe" || name == "unsubscribe" ||
         name == "auth" || name == "select" || name == "script" || name == "time";
}

reply unknown_subcommand(const arguments& a) {
  auto upper = a[0];
  for (auto& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return error_reply("ERR unknown subcommand '" + a[1] + "'. Try " + upper + " HELP.");
}

}  // namespace

node::node(std::function<std::int64_t()> wall_clock_us, outlet send, std::function<void(session_id)> end)
    : wall_clock_us_(std::move(wall_clock_us)), send_(std::move(send)), end_(std::move(end)),
      host_([this](const arguments& a) { return run_command(data_, a); }) {
  data_.on_refused = [this](std::string_view error) { on_refused(error); };
  data_.publish = [this](std::string_view channel, std::string_view payload) { return publish(channel, payload); };
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

reply node::execute(const arguments& a) {
  tick();
  return answer(0, lower(a.front()), a);
}

std::vector<reply> node::execute(session_id id, const arguments& a) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return {};
  tick();
  const auto name = lower(a.front());
  if (data_.refuses == refusal::busy && !answers(data_.refuses, name)) return {refused(text_of(data_.refuses))};
  if ((name == "subscribe" && a.size() > 1) || name == "unsubscribe")
    return subscribe(found->second, a, name == "subscribe");
  if (name == "ping" && !found->second.channels.empty())
    return {reply{kind::array, 0, {}, {string_reply("pong"), string_reply(a.size() > 1 ? a[1] : "")}}};
  if (!found->second.channels.empty())
    return {error_reply("ERR Can't execute '" + name +
                        "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")};
  auto r = answer(id, name, a);
  if (!connected(id)) return {};
  return {std::move(r)};
}

reply node::answer(session_id id, const std::string& name, const arguments& a) {
  data_.wrote = false;
  if ((data_.refuses == refusal::loading || data_.refuses == refusal::busy) && !answers(data_.refuses, name))
    return refused(text_of(data_.refuses));
  if (name == "eval" || name == "evalsha") return evaluate(name, a);
  if (name == "script") return script(a);
  if (name == "client") return client(id, a);
  if (name == "ping")
    return a.size() > 2 ? wrong_number_of_arguments(name) : a.size() == 2 ? string_reply(a[1]) : status_reply("PONG");
  if (name == "info") return string_reply("# Server\r\nrun_id:" + std::to_string(run_) + "\r\n");
  if (name == "role") return role();
  if (name == "subscribe") return wrong_number_of_arguments(name);
  auto r = run_command(data_, a);
  on_command(a, r);
  return r;
}

reply node::role() const {
  if (!is_replica()) return {kind::array, 0, {}, {string_reply("master"), integer_reply(0), {kind::array, 0, {}, {}}}};
  return {kind::array,
          0,
          {},
          {string_reply("slave"), string_reply("elsewhere"), integer_reply(6379), string_reply("connected"),
           integer_reply(0)}};
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

std::vector<reply> node::subscribe(session& s, const arguments& a, bool on) {
  arguments channels(a.begin() + 1, a.end());
  if (!on && channels.empty()) channels.assign(s.channels.begin(), s.channels.end());
  std::vector<reply> answers;
  for (const auto& channel : channels) {
    on ? void(s.channels.insert(channel)) : void(s.channels.erase(channel));
    answers.push_back(
        push_of(on ? "subscribe" : "unsubscribe", channel, integer_reply(static_cast<long long>(s.channels.size()))));
  }
  if (answers.empty())
    answers.push_back({kind::array, 0, {}, {string_reply("unsubscribe"), reply{}, integer_reply(0)}});
  return answers;
}

long long node::publish(std::string_view channel, std::string_view payload) {
  on_publish(channel, payload);
  long long receivers = 0;
  for (const auto& [id, s] : sessions_) {
    if (!s.channels.contains(channel)) continue;
    ++receivers;
    send_(id, push_of("message", std::string(channel), string_reply(std::string(payload))));
  }
  return receivers;
}

void node::restart(bool keep_data) {
  sessions_.clear();
  last_id_ = 0;
  ++run_;
  host_.forget_all();
  if (!keep_data) data_.keys.clear();
  data_.refuses = refusal::none;
}

std::size_t node::subscriptions() const {
  std::size_t n = 0;
  for (const auto& [id, s] : sessions_) n += s.channels.size();
  return n;
}

}  // namespace holdfast::sim

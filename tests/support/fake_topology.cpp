// SPDX-License-Identifier: BSL-1.0
#include "support/fake_topology.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "redis/error_replies.hpp"

namespace holdfast::test {
namespace {

std::size_t take_length(std::string_view& bytes, char type) {
  const auto end = bytes.find("\r\n");
  std::size_t number = 0;
  if (bytes.empty() || bytes[0] != type || end == bytes.npos ||
      std::from_chars(bytes.data() + 1, bytes.data() + end, number).ptr != bytes.data() + end)
    throw std::runtime_error("not a RESP command: \"" + std::string(bytes.substr(0, 64)) + "\"");
  bytes.remove_prefix(end + 2);
  return number;
}

std::string take_argument(std::string_view& bytes) {
  const auto length = take_length(bytes, '$');
  if (bytes.size() < length + 2 || bytes.substr(length, 2) != "\r\n")
    throw std::runtime_error("a RESP argument of wrong length");
  std::string argument(bytes.substr(0, length));
  bytes.remove_prefix(length + 2);
  return argument;
}

// Where the keys of EVAL end.
std::size_t end_of_keys(const std::vector<std::string>& argv) {
  if (argv.size() < 3 || !argv[0].starts_with("EVAL")) throw std::logic_error("not a script: " + argv.at(0));
  return std::min(argv.size(), 3 + static_cast<std::size_t>(std::stoul(argv[2])));
}

}  // namespace

std::vector<std::vector<std::string>> decode_commands(std::string_view bytes) {
  std::vector<std::vector<std::string>> all;
  while (!bytes.empty()) {
    auto& argv = all.emplace_back();
    for (auto left = take_length(bytes, '*'); left > 0; --left) argv.push_back(take_argument(bytes));
  }
  return all;
}

std::vector<std::string> fake_topology::command::keys() const {
  const auto end = end_of_keys(argv);
  return {argv.begin() + 3, argv.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<std::string> fake_topology::command::arguments() const {
  return {argv.begin() + static_cast<std::ptrdiff_t>(end_of_keys(argv)), argv.end()};
}

std::string fake_topology::command::line() const {
  std::string all;
  for (const auto& argument : argv) (all += all.empty() ? "" : " ") += argument;
  return all;
}

fake_topology::fake_topology(manual_clock& clock, manual_timers& timers) : clock_(clock), timers_(timers) {}

std::vector<std::size_t> fake_topology::open() const {
  std::vector<std::size_t> numbers;
  for (std::size_t n = 0; n < commands_.size(); ++n)
    if (commands_[n].what.open) numbers.push_back(n);
  return numbers;
}

fake_topology::entry& fake_topology::open_entry(std::size_t n) {
  auto& which = commands_.at(n);
  if (!which.what.open)
    throw std::logic_error("command " + std::to_string(n) + " has its answer: " + which.what.line());
  return which;
}

void fake_topology::finish(entry& which, detail::outcome result) {
  which.what.open = false;
  which.timeout.reset();
  if (which.what.written) {
    result.sent = which.what.sent;
    result.server = which.server;
  }
  post([asked = std::exchange(which.asked, {}), result = std::move(result)] { asked->answered(result); });
}

void fake_topology::reply(std::size_t n, redis::reply answer) {
  auto& which = open_entry(n);
  if (!which.what.written) throw std::logic_error("command " + std::to_string(n) + " was never written");
  last_reply_[which.what.node] = clock_.now();
  if (redis::shows_work(answer)) last_answer_[which.what.node] = clock_.now();
  const bool tracked = which.what.track && pushing && !answer.is_error();
  finish(which, {.error = {}, .reply = std::move(answer), .tracked = tracked});
  which.answered = true;
}

void fake_topology::reply_after_part(std::size_t n, redis::reply answer) {
  auto& sent = open_entry(n);
  finish(sent, {.error = {}, .reply = std::move(answer), .ran_in_part = true});
  sent.answered = true;
}

void fake_topology::fail(std::size_t n, errc error, std::string detail) {
  auto& which = open_entry(n);
  finish(which, {make_error_code(error), {}, std::move(detail)});
  which.answered = true;
}

detail::node_id fake_topology::node_of(std::string_view key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? 0 : found->second;
}

void fake_topology::move(const std::vector<std::string>& keys, detail::node_id node) {
  for (const auto& key : keys) {
    place(key, node);
    for (auto& each : commands_)
      if (each.what.open && !each.what.written && each.what.key == key) each.what.node = node;
  }
  const auto group = keys.size() == 1 ? std::optional(group_of(keys.front())) : std::nullopt;
  post([this, group] {
    if (hear_of_moves_) hear_of_moves_(group);
  });
  if (up(node) && !blocked_) write_all(node);
}

std::vector<std::string> fake_topology::name_on_each_primary(std::string_view stem) const {
  std::vector<std::string> names;
  for (const auto& end : each_primary) names.push_back(std::string(stem) + end);
  return names;
}

void fake_topology::replicated(std::string_view key, const replica_demand& what, replicas_handler done) {
  replica_questions.push_back({std::string(key), what.wanted, what.server, what.deadline});
  replica_answers_.push_back(std::move(done));
}

void fake_topology::replicas_have(unsigned had, const std::optional<redis::failure>& failed) {
  if (replica_answers_.empty()) throw std::logic_error("nobody has asked for replicas");
  auto done = std::move(replica_answers_.front());
  replica_answers_.pop_front();
  post([done = std::move(done), failed, had] { done(failed, had); });
}

redis::ticket fake_topology::execute(std::string_view key, redis::request asked) {
  std::string bytes;
  asked.command->append_to(bytes);
  if (refusal) {
    post([asked = std::move(asked.command), why = *refusal] {
      asked->answered({make_error_code(why), {}, "refused"});
    });
    return 0;
  }
  const auto decoded = decode_commands(bytes);
  if (decoded.size() != 1) throw std::logic_error("execute() takes one command");
  const auto& how = asked.terms;
  const auto n = commands_.size();
  const auto node = node_of(key);
  commands_.push_back({{n, std::string(key), node, decoded[0], clock_.now(), how.timeout, how.rank, how.waits_for_reply,
                        how.divisible, how.track},
                       std::move(asked.command),
                       how.tell_late});
  if (up(node) && !blocked_) write(commands_[n]);
  const bool waits_in_a_living_link = up(node) && blocked_;  // which costs no time
  if (commands_[n].what.open && !waits_in_a_living_link) watch(n);
  return n + 1;
}

void fake_topology::write(entry& which) {
  std::string bytes;
  which.asked->append_to(bytes);
  if (bytes_may_change) which.what.argv = decode_commands(bytes).at(0);
  if (decode_commands(bytes).at(0) != which.what.argv)
    throw std::logic_error("what command " + std::to_string(which.what.number) + " refers to has changed");
  which.what.written = true;
  which.what.sent = clock_.now();
  const auto due = which.timeout ? which.timeout->due() : std::nullopt;
  which.asked->written(clock_.now(), due ? *due - clock_.now() : which.what.timeout);
  which.server = server_;
  if (!on_command) return;
  if (auto answer = on_command(which.what)) reply(which.what.number, *std::move(answer));
}

// Where there is no connection its time counts from the call on, else from the write on.
void fake_topology::watch(std::size_t n) {
  auto& which = commands_[n];
  if (which.timeout) return;
  if (which.what.waits_for_reply && !which.tell_late) return;
  which.timeout = std::make_unique<detail::timer>(timers_);
  which.timeout->start(detail::saturating_add(clock_.now(), which.what.timeout), [this, n] {
    commands_[n].timeout.reset();
    on_timeout(n);
    run();
  });
}

void fake_topology::on_timeout(std::size_t n) {
  auto& which = commands_[n];
  detail::outcome late{
      make_error_code(which.what.written ? errc::unconfirmed : errc::unreachable), {}, "fake:6379: no answer"};
  if (!which.what.waits_for_reply) return finish(which, std::move(late));
  late.sent = which.what.sent;
  which.tell_late = false;
  post([asked = which.asked, late = std::move(late)] { asked->late(late); });
}

bool fake_topology::withdraw(redis::ticket t) {
  if (t == 0) return true;  // refused
  auto& which = commands_.at(t - 1);
  if (!which.what.open || which.what.written) return false;
  which.what.open = false;
  which.timeout.reset();
  const auto dropped = std::exchange(which.asked, {});
  return true;
}

bool fake_topology::answered_since(std::string_view key, detail::time_point when) {
  return last_answer_[node_of(key)] > when;
}

bool fake_topology::answering(std::string_view key) {
  const auto node = node_of(key);
  return up(node) && std::none_of(commands_.begin(), commands_.end(), [&](const entry& e) {
           return e.what.node == node && e.what.written && !e.answered &&
                  std::max(e.what.sent, last_reply_[node]) + silence_limit <= clock_.now();
         });
}

detail::subscription fake_topology::subscribe(std::string_view channel, detail::subscriber& who) {
  auto kept = std::make_shared<listener>(listener{std::string(channel), &who});
  std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
  listeners_.push_back(kept);
  subscribe_calls_.emplace_back(channel);
  ask(kept);
  return kept;
}

void fake_topology::ask(const std::shared_ptr<listener>& who) {
  if (auto_acknowledge && up(node_of(who->channel))) acknowledge(who->channel);
}

void fake_topology::acknowledge(std::string_view channel) {
  if (!up(node_of(channel))) throw std::logic_error("the link is down");
  bool any = false;
  for (const auto& weak : listeners_) {
    const auto found = weak.lock();
    if (!found || found->channel != channel || found->acknowledged) continue;
    found->acknowledged = any = true;
    post([weak] {
      if (const auto alive = weak.lock()) alive->who->on_subscribed();
    });
  }
  if (!any) throw std::logic_error("nobody waits for the acknowledgement of " + std::string(channel));
}

void fake_topology::refuse(std::string_view channel, errc error, std::string detail) {
  for (const auto& weak : listeners_)
    if (const auto found = weak.lock(); found && found->channel == channel)
      post([weak, error, detail] {
        if (const auto alive = weak.lock()) alive->who->on_subscribe_failed(make_error_code(error), detail);
      });
}

std::size_t fake_topology::push(std::string_view channel, std::string_view payload) {
  std::size_t receivers = 0;
  for (const auto& weak : listeners_) {
    const auto found = weak.lock();
    if (!found || found->channel != channel || !found->acknowledged) continue;
    ++receivers;
    post([weak, text = std::string(payload)] {
      if (const auto alive = weak.lock()) alive->who->on_message(text);
    });
  }
  return receivers;
}

void fake_topology::begin_pushing(detail::node_id node) {
  pushing = true;
  change({}, node);
}

void fake_topology::forget_pushes(detail::node_id node) {
  pushing = false;
  change({}, node);
}

void fake_topology::change(std::string key, detail::node_id node) {
  post([this, key = std::move(key), node] {
    if (hear_of_changes_) hear_of_changes_(key, node);
  });
}

std::size_t fake_topology::subscribers(std::string_view channel) const {
  return static_cast<std::size_t>(std::count_if(listeners_.begin(), listeners_.end(), [&](const auto& weak) {
    const auto found = weak.lock();
    return found && found->channel == channel;
  }));
}

std::size_t fake_topology::subscribe_calls(std::string_view channel) const {
  return static_cast<std::size_t>(std::count(subscribe_calls_.begin(), subscribe_calls_.end(), channel));
}

void fake_topology::link_down(detail::node_id node) {
  if (!down_.insert(node).second) return;
  for (std::size_t n = 0; n < commands_.size(); ++n) {
    auto& which = commands_[n];
    if (!which.what.open || which.what.node != node) continue;
    if (which.what.written)
      finish(which, {make_error_code(errc::unconfirmed), {}, "fake:6379: connection ended"});
    else
      watch(n);
  }
  for (auto& which : commands_) which.answered |= which.what.node == node && which.what.written;
  for (const auto& weak : listeners_)
    if (const auto found = weak.lock(); found && node_of(found->channel) == node) found->acknowledged = false;
  post([this, node] {
    if (listener_) listener_(node, false);
  });
}

void fake_topology::link_up(detail::node_id node) {
  if (down_.erase(node) == 0) return;
  last_reply_[node] = last_answer_[node] = clock_.now();
  post([this, node] {
    if (listener_) listener_(node, true);
  });
  write_all(node);
  for (const auto& weak : listeners_)
    if (const auto found = weak.lock(); found && !found->acknowledged && node_of(found->channel) == node) ask(found);
}

void fake_topology::write_all(detail::node_id node) {
  for (std::size_t n = 0; n < commands_.size(); ++n) {
    const auto& what = commands_[n].what;
    if (!what.open || what.written || what.node != node) continue;
    write(commands_[n]);
    if (what.open) watch(n);
  }
}

void fake_topology::unblock() {
  blocked_ = false;
  std::set<detail::node_id> nodes;
  for (const auto& each : commands_) nodes.insert(each.what.node);
  for (const auto node : nodes)
    if (up(node)) write_all(node);
}

void fake_topology::close() {
  for (auto& c : commands_) {
    c.what.open = false;
    c.timeout.reset();
    const auto dropped = std::exchange(c.asked, {});
  }
}

bool fake_topology::run() {
  if (running_ || ready_.empty()) return false;  // a timer inside a handler: the outer loop goes on
  struct run_until_it_leaves {
    bool& running;
    explicit run_until_it_leaves(bool& r) : running(r) { running = true; }
    ~run_until_it_leaves() { running = false; }
  } const here(running_);
  while (!ready_.empty()) {
    const auto act = std::move(ready_.front());
    ready_.pop_front();
    act();
  }
  return true;
}

}  // namespace holdfast::test

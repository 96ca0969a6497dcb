// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/function.hpp"
#include "support/manual_clock.hpp"
#include "support/replies.hpp"
#include "sync/claim/terms.hpp"
#include "topology/topology.hpp"

namespace holdfast::test {

/// The commands in RESP bytes. Throws on anything but whole commands.
std::vector<std::vector<std::string>> decode_commands(std::string_view bytes);

/// One server, or several, that the test plays by hand. Records what is sent; every handler runs from run(), or at its
/// timeout from the timers, never inside execute(), subscribe(), reply() and so on. Put
/// `timers.on_step = [&] { server.run(); };` to have it pumped while time advances.
class fake_topology final : public detail::topology {
 public:
  struct command {
    std::size_t number;
    std::string key;
    detail::node_id node;  // that owned the key then
    std::vector<std::string> argv;
    detail::time_point sent;      // asked for, or written since
    detail::nanoseconds timeout;  // of its delivery
    detail::urgency rank;
    bool waits_for_reply, divisible;
    bool track;
    bool written = false;  // false: sent while the link was down or blocked
    bool open = true;      // neither answered nor timed out nor withdrawn

    /// Of EVAL and EVALSHA: what follows the count of keys.
    std::vector<std::string> keys() const;
    std::vector<std::string> arguments() const;
    std::string line() const;  // argv joined by blanks
  };

  fake_topology(manual_clock& clock, manual_timers& timers);
  fake_topology(const fake_topology&) = delete;
  fake_topology& operator=(const fake_topology&) = delete;

  // What was sent.
  std::size_t count() const noexcept { return commands_.size(); }
  /// Number n since the start. Throws std::out_of_range.
  const command& sent(std::size_t n) const { return commands_.at(n).what; }
  const command& last() const { return commands_.at(count() - 1).what; }
  /// The numbers of those without an answer.
  std::vector<std::size_t> open() const;

  // Answers. All throw std::logic_error for a command that is not open.
  void reply(std::size_t n, redis::reply answer);
  /// An earlier copy has ended inside its script.
  void reply_after_part(std::size_t n, redis::reply answer);
  void reply_last(redis::reply answer) { reply(count() - 1, std::move(answer)); }
  /// The connection's own answer: unreachable, unconfirmed, auth_failed, overloaded…
  void fail(std::size_t n, errc error, std::string detail = "fake:6379");
  /// Asked at each command; an answer given here is as reply(), none leaves the command to the test or to its deadline.
  std::function<std::optional<redis::reply>(const command&)> on_command;
  std::function<void(bool)> on_watch;  // called by keep_watch()

  // Subscriptions.
  bool auto_acknowledge = false;
  /// Throws std::logic_error when nobody waits for the acknowledgement of this channel.
  void acknowledge(std::string_view channel);
  void refuse(std::string_view channel, errc error, std::string detail = "NOPERM");
  /// To those whose subscription is acknowledged; how many they are.
  std::size_t push(std::string_view channel, std::string_view payload);
  std::size_t subscribers(std::string_view channel) const;      // living subscriptions
  std::size_t subscribe_calls(std::string_view channel) const;  // ever

  // Pushed changes.
  bool pushing = false;           // commands that ask for it are tracked
  std::size_t pushes_wanted = 0;  // calls of start_pushing() since the last stop_pushing()
  /// From now on the node pushes changes.
  void begin_pushing(detail::node_id node = 0);
  /// The node has forgotten all that it was asked to push.
  void forget_pushes(detail::node_id node = 0);
  /// Another client has changed the key; empty: any key of the node.
  void change(std::string key, detail::node_id node = 0);

  // The nodes. A key, or a channel, that was never placed lives on node 0.
  void place(std::string key, detail::node_id node) { places_.insert_or_assign(std::move(key), node); }
  /// The same with keys that lived elsewhere, which is told: what was not written yet goes with its key.
  void move(const std::vector<std::string>& keys, detail::node_id node);
  /// The group of a key; without it all have one.
  std::function<detail::key_group(std::string_view)> grouped_by;
  /// What replicated() was asked.
  struct question {
    std::string key;
    unsigned replicas;
    std::uint64_t server;
    detail::time_point deadline;
  };
  std::vector<question> replica_questions;
  /// Answers the oldest question: so many replicas have it.
  void replicas_have(unsigned had, const std::optional<redis::failure>& failed = {});
  /// What connect() probes, behind its stem; at first one name.
  std::vector<std::string> each_primary{""};

  // The link to a node. While it is down, commands are kept unwritten; up again, they are written and subscriptions
  // wait for a new acknowledgement.
  /// What was written ends as unconfirmed.
  void link_down(detail::node_id node = 0);
  void link_up(detail::node_id node = 0);
  /// A link that is down was idle when it ended: that is no outage.
  bool link_ended_idle = false;
  /// The links are up, and what is sent from now on waits behind other bytes.
  void block() { blocked_ = true; }
  void unblock();
  bool watched() const noexcept { return watched_; }
  /// What the nodes say of their runs; empty: nothing.
  std::vector<std::string> run_ids;
  /// From now on another server answers.
  void change_server() { ++server_; }
  void change_server_back() { --server_; }
  /// From now on a server answers of which nobody knows whether it is the same.
  void withhold_run() { server_ = 0; }
  /// So long without an answer to what was written is silence: answering() says so.
  detail::nanoseconds silence_limit = std::chrono::milliseconds(500);

  /// Commands are refused with this error, which run() tells, and are not sent; without it they are sent.
  std::optional<errc> refusal;

  /// A command that is written later than it was sent may say something else.
  bool bytes_may_change = false;
  /// For texts.
  std::string address = "fake:6379";

  /// What trouble() says.
  redis::failure why_silent{errc::unreachable, "fake:6379: no answer in time"};

  /// Runs the handlers that are due, and those that they cause; false when there was none.
  bool run();
  bool idle() const noexcept { return ready_.empty(); }

  // detail::topology
  detail::node_id node_of(std::string_view key) const override;
  detail::key_group group_of(std::string_view key) const noexcept override { return grouped_by ? grouped_by(key) : 0; }
  void on_keys_moved(std::function<void(std::optional<detail::key_group>)> hear) override {
    hear_of_moves_ = std::move(hear);
  }
  std::vector<std::string> name_on_each_primary(std::string_view stem) const override;
  std::string run_of(std::string_view key) const override { return run_ids.empty() ? "" : run_ids.at(node_of(key)); }
  std::uint64_t server_of(std::string_view) const override { return server_; }
  void replicated(std::string_view key, const replica_demand& what, replicas_handler done) override;
  redis::ticket execute(std::string_view key, redis::request asked) override;
  bool withdraw(redis::ticket t) override;
  bool answering(std::string_view key) override;
  bool answered_since(std::string_view key, detail::time_point when) override;
  redis::failure trouble(std::string_view) const override { return why_silent; }
  bool in_outage(std::string_view key) const override { return !up(node_of(key)) && !link_ended_idle; }
  std::string where(std::string_view) const override { return address; }
  detail::subscription subscribe(std::string_view channel, detail::subscriber& who) override;
  void start_pushing(std::string_view) override { ++pushes_wanted; }
  void stop_pushing() override { pushes_wanted = 0; }
  bool pushes(std::string_view) const override { return pushing; }
  void on_key_changed(change_listener hear) override { hear_of_changes_ = std::move(hear); }
  void keep_watch(bool on) override {
    watched_ = on;
    if (on_watch) on_watch(on);
  }
  void on_link_change(link_listener hear) override { listener_ = std::move(hear); }
  /// Drops what was not answered.
  void close() override;

 private:
  struct entry {
    command what;
    redis::command_ptr asked;  // null once it was answered
    bool tell_late;
    std::unique_ptr<detail::timer> timeout{};  // while it is watched
    std::uint64_t server = 0;
    bool answered = false;  // also after its sender has stopped waiting
  };
  struct listener {
    std::string channel;
    detail::subscriber* who;
    bool acknowledged = false;
  };

  entry& open_entry(std::size_t n);
  void finish(entry& which, detail::outcome result);
  void write(entry& which);
  void write_all(detail::node_id node);
  bool up(detail::node_id node) const { return !down_.contains(node); }
  void watch(std::size_t n);
  void on_timeout(std::size_t n);
  void post(detail::function<void()> act) { ready_.push_back(std::move(act)); }
  void ask(const std::shared_ptr<listener>& who);

  manual_clock& clock_;
  manual_timers& timers_;
  std::deque<entry> commands_;  // a deque: references stay good while handlers send more
  std::vector<std::weak_ptr<listener>> listeners_;
  std::vector<std::string> subscribe_calls_;
  std::deque<detail::function<void()>> ready_;
  std::deque<replicas_handler> replica_answers_;
  link_listener listener_;
  std::function<void(std::optional<detail::key_group>)> hear_of_moves_;
  change_listener hear_of_changes_;
  std::map<std::string, detail::node_id, std::less<>> places_;
  std::set<detail::node_id> down_;
  std::map<detail::node_id, detail::time_point> last_reply_, last_answer_;  // the second: refusals left out
  std::uint64_t server_ = 1;
  bool blocked_ = false, watched_ = false, running_ = false;
};

}  // namespace holdfast::test

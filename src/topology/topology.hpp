// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function.hpp"
#include "base/lease_clock.hpp"
#include "redis/failure.hpp"
#include "redis/outcome.hpp"
#include "redis/request.hpp"

namespace holdfast::detail {

using redis::delivery;
using redis::outcome;
using redis::subscriber;
using redis::subscription;
using redis::urgency;

/// One of the servers; 0 where there is one alone.
using node_id = std::uint32_t;
/// Keys that a script may have together: a slot of a cluster; 0 where any may.
using key_group = std::uint32_t;

/// Which server owns this key now, and how to talk to it. Used, closed and destroyed on the client's strand, or when
/// nobody runs it.
class topology {
 public:
  using handler = redis::handler;
  using link_listener = std::function<void(node_id node, bool up)>;

  virtual ~topology() = default;

  /// The server that owns `key` at present. The number of one that is gone is not used again.
  virtual node_id node_of(std::string_view key) const = 0;
  /// Keys of one script must have the same.
  virtual key_group group_of(std::string_view) const noexcept { return 0; }
  /// The same by the strictest servers that there are: what looks like one server may have a cluster behind it.
  static key_group smallest_group_of(std::string_view key) noexcept;
  /// One name for each primary that there is at present, made of this stem, whose keys live there.
  virtual std::vector<std::string> name_on_each_primary(std::string_view stem) const { return {std::string(stem)}; }
  /// Which run of a server owns `key`, by what it said when it was connected last; another one after each start. Empty:
  /// it was not connected yet, or does not say, or keys may get another server: what they keep is their group.
  virtual std::string run_of(std::string_view key) const = 0;
  /// The outcome::server that an answer by the owner of `key` would have now, as it said when it was connected last. 0:
  /// it was not connected yet, or does not say.
  virtual std::uint64_t server_of(std::string_view key) const = 0;

  /// Sends the command to the server that owns `key`; connects first where needed. Obligations of one server run in the
  /// order of the calls, and so do the others; between the two there is no order before they are written. answered() is
  /// called exactly once, on the strand, never inside execute(), unless the command is withdrawn; see delivery for
  /// when. After the end of the client nothing is called. What says that another server has the key, or that its server
  /// cannot serve it yet, is dealt with here.
  virtual redis::ticket execute(std::string_view key, redis::request asked) = 0;
  /// True: the command has not run and never will. Nothing is called any more, except where execute() has refused it
  /// (ticket 0): then answered() is still to come. False: it was written, and is not sent anew where it is refused.
  virtual bool withdraw(redis::ticket ticket) = 0;
  /// There is a connection to the server that owns `key`, and it is not silent for longer than a command may wait.
  virtual bool answering(std::string_view key) = 0;
  /// The server that owns `key` has answered a command after `when`, or has let us in or kept us out for good since. To
  /// refuse what it may accept later is no answer.
  virtual bool answered_since(std::string_view key, time_point when) = 0;
  /// Why no answer comes at present from the server that owns `key`, node and cause: unreachable, or server_refused
  /// where the server refuses connections.
  virtual redis::failure trouble(std::string_view key) const = 0;
  /// The same, if that server has answered nothing after `when`, or is not answering(). Empty otherwise.
  virtual std::optional<redis::failure> silence_since(std::string_view key, time_point when) {
    if (answering(key) && answered_since(key, when)) return std::nullopt;
    return trouble(key);
  }

  /// Keys are spread over the servers by their slots: keys of one script must be in one slot.
  virtual bool has_slots() const noexcept { return false; }
  /// How many independent primaries have each key, so that a majority decides; 1: one server has it, and decides.
  virtual std::size_t primaries() const noexcept { return 1; }
  /// One of them, by its number, which is its node_id: what needs a majority is sent to each by itself.
  virtual topology& primary(std::size_t) noexcept { return *this; }
  /// The last connection to the server that owns `key` has ended, or could not be made.
  virtual bool in_outage(std::string_view key) const = 0;
  /// The server's address, for texts.
  virtual std::string where(std::string_view key) const = 0;
  /// Several primaries have answered within this time.
  virtual void note_round(lease_clock::duration) {}

  /// What is wanted of replicas: that so many have what a server has answered, whose number is outcome::server.
  struct copies {
    unsigned wanted;
    std::uint64_t server;
    time_point deadline;
  };
  using copies_handler = function<void(const std::optional<redis::failure>&, unsigned had)>;
  /// Asks how many replicas have all that the server that owns `key` has executed until now, or the server that the key
  /// is moving to, if that one has granted; and waits for as many as are wanted until the deadline. `done` hears how
  /// many have it, or why that is not known: also because another server owns the key now; perhaps inside the call. A
  /// topology without replicas says that none has it. The key, of a lock that was granted, is changed to what it is.
  virtual void replicated(std::string_view, const copies&, copies_handler done) { done(std::nullopt, 0); }

  virtual subscription subscribe(std::string_view channel, subscriber& subscriber) = 0;

  /// While true the connections in use are watched and re-made even with no command pending, so that an outage is
  /// noticed at once.
  virtual void keep_watch(bool on) = 0;
  /// Called on the strand when the connection to a server goes down that was up, and when it is up again; or is not
  /// needed any more: if that server has keys again, the connection is made by the first command. One listener.
  virtual void on_link_change(link_listener listener) = 0;
  /// Called on the strand when keys have another server than before: links need not have changed. One listener, which
  /// hears which group has moved; nothing: several may have.
  virtual void on_keys_moved(std::function<void(std::optional<key_group>)>) {}

  /// Closes all connections at once and drops what is pending. No command, subscriber, listener or event sink is
  /// called any more.
  virtual void close() = 0;
};

}  // namespace holdfast::detail

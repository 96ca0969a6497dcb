// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>

#include "base/random.hpp"
#include "redis/resp.hpp"
#include "testing/sim/scheduler.hpp"
#include "testing/sim/server.hpp"
#include "testing/sim/trace.hpp"

namespace holdfast::sim {

namespace asio = boost::asio;
using strand = asio::strand<asio::any_io_executor>;

class route;

/// The strand of a client, for the events of its connections. An event on its way may outlive the client, which leaves
/// then.
class home {
 public:
  explicit home(strand on) : strand_(std::move(on)) {}

  template <class Handler>
  void post(Handler handler) const {
    if (strand_) asio::post(*strand_, std::move(handler));
  }
  /// From now on nothing is posted, and nothing of its context is touched.
  void leave() noexcept { strand_.reset(); }

 private:
  std::optional<strand> strand_;
};
using home_ptr = std::shared_ptr<home>;

/// One connection: bytes arrive in order each way, if they arrive. The client's end of it is a stream of
/// sim::transport.
class wire final : public server_connection, public std::enable_shared_from_this<wire> {
 public:
  using read_handler = std::function<void(error_code, std::size_t)>;

  wire(route& way, home_ptr at);

  // The client's end.
  void write(std::string_view bytes);
  void read(asio::mutable_buffer into, read_handler done);
  /// Ends a pending read with operation_aborted.
  void cancel();
  void close();
  bool has_input() const noexcept { return !inbox_.empty(); }
  bool ended() const noexcept { return ended_ || closed_; }
  const sim::home& client() const noexcept { return *home_; }
  const std::string& name() const noexcept { return name_; }
  const flow& up() const noexcept { return up_; }
  const flow& down() const noexcept { return down_; }
  /// How much of so many bytes is taken at once.
  std::size_t take_at_once(std::size_t size);

  // The node's end.
  void send_down(const reply& reply, bool message) override;
  void end_from_server() override;
  /// CLIENT KILL.
  void kill() override;
  /// CLIENT KILL was refused.
  void spare() noexcept override { spared_ = true; }

  // Faults.
  void lose_up() noexcept { loses_up_ = true; }
  void lose_down() noexcept { loses_down_ = true; }
  /// What is on its way to the node arrives no earlier.
  void hold_up_until(time_point when) noexcept { held_until_ = when; }
  /// Both ends break now.
  void end();
  /// The client's end breaks now.
  void end_at_client();
  /// The node notices, after all that was sent before.
  void end_at_server(nanoseconds delay);
  bool loses() const noexcept { return !closed_ && !ended_ && (loses_up_ || loses_down_); }

 private:
  friend class route;
  void arrive(const std::shared_ptr<std::vector<std::string>>& command);
  void execute(const std::vector<std::string>& command);
  void wake_reader();
  bool reply_is_lost(const std::vector<std::string>& command, const reply& reply);

  route& way_;
  const home_ptr home_;
  const std::string name_;
  const flow up_, down_;
  node::session_id session_ = 0;
  redis::reader parser_;  // of what the client writes
  std::string inbox_;
  asio::mutable_buffer into_;
  read_handler reading_;
  time_point up_free_{}, down_free_{}, held_until_{};
  bool ended_ = false, closed_ = false, loses_up_ = false, loses_down_ = false, spared_ = false;
};

/// The way between one client and the node: its connections, and the weather on it.
class route {
 public:
  using dialled = std::function<void(error_code, std::shared_ptr<wire>)>;

  route(scheduler& plan, server& to, detail::random_source& random, trace& log, std::string name)
      : plan_(plan), server_(to), random_(random), log_(log), name_(std::move(name)) {}
  route(const route&) = delete;
  route& operator=(const route&) = delete;

  /// `done` is called where the client hears, once; never while the way is blocked.
  void dial(const home_ptr& from, dialled done);
  server& to() const noexcept { return server_; }
  /// Those that the client has not closed.
  std::vector<std::shared_ptr<wire>> wires();
  /// A connection of the client's swallows what it is given, or new ones are not made.
  bool troubled() const;

  // Weather.
  struct speed {
    nanoseconds latency{}, jitter{};  // each way
  };
  speed usual, now;
  bool blocked = false;           // no new connections
  bool unreachable = false;       // each is told so at once
  bool loses_next_reply = false;  // of a command about a lock: its connection ends instead
  bool loses_messages = false;    // of subscriptions; replies arrive
  nanoseconds message_delay{};    // of messages, and of what follows on their connection
  // What came of it, counted.
  struct harm {
    std::uint64_t lost = 0, slowed = 0, messages_lost = 0, messages_delayed = 0;
  };
  harm did;
  std::function<void()> on_message_lost;
  std::function<void(const std::string& key)> on_pushed;  // a changed key has reached the client
  std::function<void(wire&)> at_next_write;               // once, while what was written is on its way
  std::function<void()> on_killed;                        // a connection that the client still has
  // A command that runs although the client wanted its connection to be ended.
  std::function<void(const std::vector<std::string>&)> on_unfenced;

 private:
  friend class wire;
  nanoseconds delay() {
    if (now.latency != usual.latency) ++did.slowed;
    return now.latency + random_.up_to(now.jitter);
  }
  void note(std::string_view act, std::string_view about = {}) { log_.note(plan_.now(), name_, act, about); }

  scheduler& plan_;
  server& server_;
  detail::random_source& random_;
  trace& log_;
  const std::string name_;
  const flow dials_{name_ + " dials", this, &server_}, is_answered_{name_ + " is answered", &server_, this};
  std::size_t wires_made_ = 0;
  std::vector<std::weak_ptr<wire>> wires_;
};

/// A reply as a server sends it.
std::string encode(const reply& reply);

}  // namespace holdfast::sim

// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timers.hpp"
#include "redis/connection.hpp"
#include "redis/io_services.hpp"
#include "redis/pubsub.hpp"

namespace holdfast::redis {

/// The changes of keys that one server pushes: pairs its two connections. The command connection reads keys, and the
/// server pushes their changes to the pub/sub connection (CLIENT TRACKING of Redis 6, in RESP2).
///
///   idle ── start() ──> subscribing ── subscribed ──> asking ── OK ──> pushing
///                            ^                           │ the end of either connection │
///                            └───────────────────────────┴──────────────────────────────┘
///   stop(): the pair stays as it is, until a connection ends
///   refused: idle, until start() after the next command connection; postponed: until start()
///
/// The server forgets the pair with either connection, and what was tracked with it. It pushes no word of that in
/// RESP2. So each end, and each beginning, is reported as a change of any key.
///
/// Used on the strand only, in a shared_ptr. The last owner calls close(): from then on nothing is called any more.
class push_feed final : private push_listener, public std::enable_shared_from_this<push_feed> {
 public:
  /// Gets each key that has changed; empty: any may have. Called on the strand, never inside a call.
  using listener = std::function<void(std::string_view key)>;

  /// Both connections lead to the same server.
  push_feed(const io_services& services, std::shared_ptr<connection> commands, std::shared_ptr<pubsub> channels);
  push_feed(const push_feed&) = delete;
  push_feed& operator=(const push_feed&) = delete;

  void on_changed(listener listener) { listener_ = std::move(listener); }
  /// Keeps both connections, and has the server push, until stop().
  void start();
  /// Sends nothing: the server goes on while both connections last. Nothing holds the io_context any more.
  void stop();
  bool started() const noexcept { return started_; }
  /// The server has confirmed it, and neither connection has ended since.
  bool pushing() const noexcept { return commands_->pushes() == push_state::on; }
  void close();

 private:
  void on_push_ready(const handshake::identity& client) override;
  void on_pushed(const std::vector<std::string>& keys) override;
  void on_push_lost() override;
  void on_push_refused(const failure& why) override;
  void on_state();
  void give_up();
  void any_changed() noexcept;
  void refuse_soon(failure why);

  const io_services services_;
  const std::shared_ptr<connection> commands_;
  const std::shared_ptr<pubsub> channels_;
  listener listener_;
  detail::timer notice_;                      // at once: that any key may have changed
  std::optional<handshake::identity> ready_;  // the client to push to
  bool started_ = false;
  bool pushed_ = false;  // by the last notice
  bool closed_ = false;
  std::int64_t refused_on_ = -1;  // this connection, by link::times_up()
};

}  // namespace holdfast::redis

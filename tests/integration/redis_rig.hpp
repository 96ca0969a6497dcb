// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/asio_timers.hpp"
#include "redis/connection.hpp"
#include "redis/pubsub.hpp"
#include "redis/sockets.hpp"
#include "support/least_rights.hpp"
#include "support/plain_command.hpp"
#include "support/proxy.hpp"
#include "support/raw_client.hpp"
#include "support/real_redis.hpp"
#include "support/run_coro.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

/// What a connection needs around it, driven by the test's own thread.
namespace holdfast::test {

inline redis::endpoint unix_endpoint(std::string path) {
  redis::endpoint node;
  node.at.unix_path = std::move(path);
  return node;
}

inline redis::endpoint tcp_endpoint(std::string host, std::uint16_t port) {
  redis::endpoint node;
  node.at.host = std::move(host);
  node.at.port = port;
  return node;
}

inline void need_redis() {
  if (!real_redis::available()) skip("no redis-server found");
}

class redis_rig {
 public:
  using milliseconds = std::chrono::milliseconds;

  ~redis_rig() {
    for (auto& c : made_) c->close();
    timers->close();
    if (io.stopped()) io.restart();
    io.run_for(std::chrono::seconds{5});  // aborted handlers
  }

  redis::io_services services() { return services_at(detail::system_clock(), *timers); }
  redis::io_services services_at(const detail::clock& clock, detail::timers& timers) {
    return {strand, clock, timers, random, network};
  }

  std::shared_ptr<redis::connection> connect(const redis::endpoint& node) {
    auto c = std::make_shared<redis::connection>(services(), node, [this](const event& e) {
      events.emplace_back(to_string(e.kind));
      details.emplace_back(e.detail);
      reasons.push_back(e.reason);
    });
    c->on_link_change([this](bool up) { links += up ? '+' : '-'; });
    made_.push_back(c);
    return c;
  }

  std::shared_ptr<redis::pubsub> hub(const redis::endpoint& node,
                                     milliseconds answer_timeout = std::chrono::seconds{2}) {
    auto h = std::make_shared<redis::pubsub>(services(), node, answer_timeout);
    made_.push_back(h);
    return h;
  }

  /// Runs the context until `done`; false after `limit`. Never returns early because there is nothing to do.
  bool until(const std::function<bool()>& done, milliseconds limit = std::chrono::seconds{20}) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      if (io.stopped()) io.restart();
      io.run_one_for(milliseconds{5});
    }
    return true;
  }
  void run_for(milliseconds time) {
    until([] { return false; }, time);
  }
  /// Throws unless the context runs out of work.
  void must_become_idle(milliseconds limit = std::chrono::seconds{10}) { drain(io, limit); }

  /// Where the answer of a command goes.
  struct answer {
    int times = 0;
    redis::outcome got;
    detail::time_point when{};

    bool has(errc code) const { return times == 1 && got.error == code; }
    bool is(std::string_view text) const { return times == 1 && !got.error && got.reply.text == text; }
    bool is(long long number) const { return times == 1 && !got.error && got.reply.integer == number; }
  };
  using answer_ptr = std::shared_ptr<answer>;

  answer_ptr send(redis::connection& c, std::initializer_list<std::string_view> argv,
                  milliseconds timeout = std::chrono::seconds{20}, redis::urgency rank = redis::urgency::refusable) {
    auto a = std::make_shared<answer>();
    c.execute(plain_command(redis::make_command(argv), {.timeout = timeout, .rank = rank}, [a](redis::outcome o) {
      ++a->times;
      a->got = std::move(o);
      a->when = detail::lease_clock::now();
    }));
    if (a->times != 0) throw std::runtime_error("the handler ran inside execute()");
    return a;
  }
  answer_ptr call(redis::connection& c, std::initializer_list<std::string_view> argv,
                  milliseconds timeout = std::chrono::seconds{20}) {
    auto a = send(c, argv, timeout);
    until([&] { return a->times != 0; }, timeout + std::chrono::seconds{5});
    return a;
  }

  std::size_t count(std::string_view what) const {
    return static_cast<std::size_t>(std::count(events.begin(), events.end(), what));
  }

  asio::io_context io;
  redis::strand strand{io.get_executor()};
  std::shared_ptr<detail::asio_timers> timers = std::make_shared<detail::asio_timers>(strand);
  detail::system_random random;
  redis::sockets network;
  std::vector<std::string> events, details;
  std::vector<error_code> reasons;
  std::string links;  // "+-+": up, down, up

 private:
  std::vector<std::shared_ptr<redis::link>> made_;
};

/// The same with a server, and a proxy before it, both made when asked for.
class server_rig : public redis_rig {
 public:
  server_rig() {
    least_rights::skip_if_in_force("connections carry any command here");
    need_redis();
  }

  real_redis& server(redis_options options = {}) {
    if (!server_) server_.emplace(std::move(options));
    return *server_;
  }
  proxy& between() {
    if (!between_) between_.emplace(server());
    return *between_;
  }
  raw_client& admin() {
    if (!admin_) admin_.emplace(server());
    return *admin_;
  }
  redis::endpoint direct() { return unix_endpoint(server().socket_path()); }
  redis::endpoint proxied() { return unix_endpoint(between().socket_path()); }

 private:
  std::optional<real_redis> server_;
  std::optional<proxy> between_;
  std::optional<raw_client> admin_;
};

/// A server on a unix socket that answers with whatever the test says.
class scripted_server {
 public:
  /// `answer`: bytes that came, on the n-th connection (from 0), to bytes to send; "" sends nothing, "close" ends the
  /// connection.
  using script = std::function<std::string(std::string_view bytes, std::size_t connection)>;
  using milliseconds = std::chrono::milliseconds;

  scripted_server(asio::io_context& io, script answer)
      : script_(std::move(answer)), acceptor_(io, asio::local::stream_protocol::endpoint(path())) {
    accept();
  }
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;
  /// Handlers that are under way find it gone, and its connections closed.
  ~scripted_server() {
    boost::system::error_code ignored;
    for (const auto& s : sockets_) s->close(ignored);
  }

  std::string path() const { return folder_.path() + "/s.sock"; }
  std::size_t connections() const noexcept { return sockets_.size(); }
  /// To the newest connection.
  void send(std::string_view bytes) { asio::write(*sockets_.back(), asio::buffer(bytes)); }
  /// To the n-th connection, when nothing is on its way there; `done` hears whether it had ended.
  void write(std::size_t connection, std::string bytes, std::function<void(bool failed)> done) {
    write(sockets_.at(connection), std::move(bytes), std::move(done));
  }
  void close(std::size_t connection) { sockets_.at(connection)->close(); }
  void close_after(std::size_t connection, std::string bytes) {
    write(connection, std::move(bytes), [s = sockets_.at(connection)](bool) { s->close(); });
  }
  /// From now on byte by byte, with so long a pause after each.
  void trickle(milliseconds pause) { pause_ = pause; }

  /// What a healthy server answers to the handshake of a command connection.
  static std::string greeting(int id = 1) {
    return ":" + std::to_string(id) + "\r\n$15\r\n\r\nrun_id:ab12\r\n\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
  }

 private:
  using socket = asio::local::stream_protocol::socket;

  void accept() {
    acceptor_.async_accept([this, here = std::weak_ptr(here_)](const boost::system::error_code& failed, socket s) {
      if (failed || here.expired()) return;
      sockets_.push_back(std::make_shared<socket>(std::move(s)));
      read(sockets_.back(), sockets_.size() - 1);
      accept();
    });
  }
  void read(const std::shared_ptr<socket>& s, std::size_t number) {
    const auto in = std::make_shared<std::array<char, 65536>>();
    s->async_read_some(asio::buffer(*in),
                       [this, here = std::weak_ptr(here_), s, in, number](const auto& failed, std::size_t size) {
                         if (failed || here.expired()) return;
                         auto out = script_({in->data(), size}, number);
                         if (out == "close") return s->close();
                         write(s, std::move(out), [this, here, s, number](bool failed_too) {
                           if (!failed_too && !here.expired()) read(s, number);
                         });
                       });
  }
  void write(const std::shared_ptr<socket>& s, std::string bytes, std::function<void(bool failed)> done) {
    const auto out = std::make_shared<std::string>(std::move(bytes));
    if (pause_ != milliseconds{} && out->size() > 1) {
      const auto pause = std::make_shared<asio::steady_timer>(s->get_executor(), pause_);
      return asio::async_write(*s, asio::buffer(*out, 1), [this, s, out, pause, done](const auto& failed, std::size_t) {
        if (failed) return done(true);
        pause->async_wait([this, s, out, pause, done](const auto&) { write(s, out->substr(1), done); });
      });
    }
    asio::async_write(*s, asio::buffer(*out), [s, out, done](const auto& failed, std::size_t) { done(!!failed); });
  }

  const std::shared_ptr<int> here_ = std::make_shared<int>();
  temp_folder folder_;
  script script_;
  milliseconds pause_{};
  asio::local::stream_protocol::acceptor acceptor_;
  std::vector<std::shared_ptr<socket>> sockets_;
};

}  // namespace holdfast::test

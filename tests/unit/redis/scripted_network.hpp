// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/io_services.hpp"
#include "redis/transport.hpp"
#include "support/manual_clock.hpp"
#include "support/replies.hpp"
#include "support/run_at.hpp"
#include "support/seeded_random.hpp"

/// Servers in memory, which a test plays: each answers commands by a function, at once.
namespace holdfast::test {

inline std::string encode(const redis::reply& r) {
  using kind = redis::reply::kind;
  const auto bulk = [&] { return '$' + std::to_string(r.text.size()) + "\r\n" + r.text + "\r\n"; };
  std::string all;
  switch (r.type) {
    case kind::nil: return "$-1\r\n";
    case kind::integer: return ':' + std::to_string(r.integer) + "\r\n";
    case kind::status: return '+' + r.text + "\r\n";
    case kind::error: return '-' + r.text + "\r\n";
    case kind::string: return bulk();
    case kind::array: break;
  }
  all = '*' + std::to_string(r.elements.size()) + "\r\n";
  for (const auto& e : r.elements) all += encode(e);
  return all;
}

inline redis::reply strings(const std::vector<std::string>& texts) {
  std::vector<redis::reply> elements;
  for (const auto& t : texts) elements.push_back(replies::string(t));
  return replies::array(std::move(elements));
}

/// What listens at one address.
struct scripted_host {
  class connection;

  virtual ~scripted_host() = default;
  virtual redis::reply answer(connection& from, const std::vector<std::string>& argv) = 0;

  bool refuses = false;                                // connections
  bool silent = false;                                 // takes connections and commands, and says nothing
  std::size_t takes_at_once = std::string_view::npos;  // bytes; the rest of a write comes later
  detail::lease_clock::duration delay{};               // of each answer
  std::set<connection*> connections;
  int made = 0;                     // connections ever
  std::set<connection*> forgotten;  // by a load balancer between: what is sent on them disappears
  bool resets = false;              // such a connection ends when something is sent on it

  void forget_connections() { forgotten = connections; }
};

/// The client's end, and the server's.
class scripted_host::connection final : public redis::stream,
                                        public std::enable_shared_from_this<scripted_host::connection> {
 public:
  connection(scripted_host& to, const redis::io_services& given) : to_(&to), given_(given) {
    to.connections.insert(this);
    ++to.made;
  }
  ~connection() override { connection::close(); }

  void async_read_some(boost::asio::mutable_buffer into, handler done) override {
    into_ = into;
    reading_ = std::make_shared<handler>(std::move(done));
    wake();
  }
  void async_write(boost::asio::const_buffer bytes, handler done) override {
    error_code failed;
    take({static_cast<const char*>(bytes.data()), bytes.size()}, failed);
    if (ended_ && !failed) return;  // the reader hears of the end first
    given_.post([done = std::move(done), failed, size = bytes.size()] { done(failed, size); });
  }
  std::size_t write_now(std::string_view bytes, error_code& failed) override {
    return take(bytes.substr(0, to_ ? to_->takes_at_once : 0), failed);
  }
  input peek() override { return !inbox_.empty() ? input::some : ended_ ? input::ended : input::none; }
  void cancel() override { finish(boost::asio::error::operation_aborted, 0); }
  void close() override {
    if (to_) to_->connections.erase(this);
    if (to_) to_->forgotten.erase(this);
    to_ = nullptr;
    ended_ = true;
    cancel();
  }

  /// By the server.
  void send(const redis::reply& r) {
    if (ended_ || to_->forgotten.contains(this)) return;
    inbox_ += encode(r);
    wake();
  }
  void send_later(const redis::reply& r, detail::lease_clock::duration delay) {
    run_at(given_.alarms, given_.now() + delay, [self = shared_from_this(), r] { self->send(r); });
  }
  void end() {
    ended_ = true;
    wake();
  }

 private:
  std::size_t take(std::string_view bytes, error_code& failed) {
    if (ended_) return failed = boost::asio::error::broken_pipe, 0;
    if (to_->forgotten.contains(this)) {
      if (to_->resets) end();
      return bytes.size();
    }
    if (to_->silent) return bytes.size();
    parser_.feed(bytes);
    while (const auto* const command = parser_.next()) {
      std::vector<std::string> argv;
      for (const auto& e : command->elements) argv.push_back(e.text);
      const auto said = to_->answer(*this, argv);
      if (to_->delay > detail::lease_clock::duration::zero())
        send_later(said, to_->delay);
      else
        send(said);
    }
    return bytes.size();
  }
  void finish(error_code failed, std::size_t size) {
    if (const auto done = std::exchange(reading_, nullptr))
      given_.post([done, failed, size] { (*done)(failed, size); });
  }
  void wake() {
    if (!reading_) return;
    if (inbox_.empty()) {
      if (ended_) finish(boost::asio::error::eof, 0);
      return;
    }
    const auto size = std::min(inbox_.size(), into_.size());
    std::copy_n(inbox_.data(), size, static_cast<char*>(into_.data()));
    inbox_.erase(0, size);
    finish({}, size);
  }

  scripted_host* to_;
  const redis::io_services given_;
  redis::reader parser_;
  std::string inbox_;
  boost::asio::mutable_buffer into_;
  std::shared_ptr<handler> reading_;
  bool ended_ = false;
};

class scripted_network final : public redis::transport {
 public:
  std::map<redis::address, scripted_host*> hosts;

  std::shared_ptr<attempt> connect(const redis::io_services& given, const redis::endpoint& node, detail::time_point,
                                   handler done) override {
    const auto made = std::make_shared<dialling>(std::move(done));
    given.post([this, made, given, &node] {
      if (!made->done) return;
      const auto found = hosts.find(node.at);
      if (found == hosts.end()) return;  // a black hole
      const auto tell = std::exchange(made->done, nullptr);
      if (found->second->refuses)
        tell(nullptr, redis::fail(node, errc::unreachable, "connection refused"));
      else
        tell(std::make_shared<scripted_host::connection>(*found->second, given), {});
    });
    return made;
  }

 private:
  struct dialling final : attempt {
    explicit dialling(handler d) : done(std::move(d)) {}
    void cancel() override { done = nullptr; }
    const char* phase() const noexcept override { return "connecting"; }
    handler done;
  };
};

/// What a connection to them is given, on the test's clock.
struct scripted_environment {
  scripted_environment() {
    alarms.on_step = [this] { poll(); };
  }
  void poll() {
    io.restart();
    io.poll();
  }
  redis::io_services services(std::shared_ptr<observer> counts = {}) {
    return {strand, clock, alarms, random, network, std::move(counts)};
  }

  boost::asio::io_context io;
  redis::strand strand{io.get_executor()};
  manual_clock clock;
  manual_timers alarms{clock};
  fixed_random random;
  scripted_network network;
};

}  // namespace holdfast::test

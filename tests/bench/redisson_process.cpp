// SPDX-License-Identifier: BSL-1.0
#include "bench/redisson_process.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "support/redisson_peer.hpp"
#include "support/redisson_scripts.hpp"

namespace holdfast::bench {
namespace {

using boost::system::error_code;
constexpr auto ttl = "30000";  // ms
using test::redisson_peer;
namespace scripts = test::redisson;

asio::awaitable<void> wait_for(asio::steady_timer& event) {
  error_code cancelled;
  co_await event.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

void forget(std::deque<asio::steady_timer*>& all, asio::steady_timer& which) {
  if (const auto found = std::find(all.begin(), all.end(), &which); found != all.end()) all.erase(found);
}

}  // namespace

redisson_process::wire::wire(asio::io_context& io, const std::string& path) : socket(io) {
  socket.connect(asio::local::stream_protocol::endpoint(path));
}

redisson_process::redisson_process(asio::io_context& io, const std::string& path, std::string name)
    : io_(io), name_(std::move(name)), channel_(redisson_peer::channel(name_)), uuid_(redisson_peer::new_uuid()),
      commands_(io, path), messages_(io, path) {
  listen(commands_, [this](const redis::reply& r) {
    auto* const q = asked_.front();
    asked_.pop_front();
    if (!q) return;
    q->reply = r;
    q->answered.cancel();
  });
  listen(messages_, [this](const redis::reply& r) { hear_message(r); });
}

void redisson_process::stop() {
  commands_.socket.close();
  messages_.socket.close();
}

template <class Hear>
void redisson_process::listen(wire& on, Hear hear) {
  on.socket.async_read_some(asio::buffer(on.in), [this, &on, hear](error_code failed, std::size_t size) {
    if (failed) return;
    on.replies.feed({on.in.data(), size});
    while (const auto r = on.replies.next()) {
      if (r->is_error()) throw std::runtime_error(r->text);
      hear(*r);
    }
    listen(on, hear);
  });
}

void redisson_process::send(wire& on, const std::string& command) {
  on.out += command;
  flush(on);
}

void redisson_process::flush(wire& on) {
  if (!on.writing.empty() || on.out.empty()) return;
  std::swap(on.writing, on.out);
  asio::async_write(on.socket, asio::buffer(on.writing), [this, &on](error_code failed, std::size_t) {
    if (failed) return;
    on.writing.clear();
    flush(on);
  });
}

asio::awaitable<redis::reply> redisson_process::ask(std::string command) {
  question q{timer(io_, timer::time_point::max()), {}};
  asked_.push_back(&q);
  send(commands_, command);
  co_await wait_for(q.answered);
  co_return std::move(q.reply);
}

// Empty: acquired. Else the holder's TTL.
asio::awaitable<std::optional<long long>> redisson_process::acquire(const std::string& owner) {
  auto command = redis::make_command({"EVAL", scripts::acquire_script, "1", name_, ttl, owner});
  const auto said = co_await ask(std::move(command));
  if (said.type == redis::reply::kind::nil) co_return std::nullopt;
  co_return said.integer;
}

asio::awaitable<void> redisson_process::lock(int thread) {
  const auto me = owner(thread);
  if (!co_await acquire(me)) co_return;
  if (waiting_++ == 0) {
    confirmed_ = false;
    send(messages_, redis::make_command({"SUBSCRIBE", channel_}));
  }
  co_await subscribed();
  for (;;) {
    const auto busy_for = co_await acquire(me);
    if (!busy_for) break;
    co_await wait_for_message(*busy_for);
  }
  if (--waiting_ > 0) co_return;
  permits_ = 0;
  send(messages_, redis::make_command({"UNSUBSCRIBE", channel_}));
}

asio::awaitable<void> redisson_process::unlock(int thread) {
  const auto latch = redisson_peer::latch_key(name_, redisson_peer::new_request());
  const auto latch_ttl = std::to_string(scripts::latch_ttl);
  const auto me = owner(thread);
  auto command = redis::make_command({"EVAL", scripts::unlock_script, "3", name_, channel_, latch, ttl, me, latch_ttl});
  co_await ask(std::move(command));
  asked_.push_back(nullptr);  // nobody waits for it
  send(commands_, redis::make_command({"DEL", latch}));
}

asio::awaitable<void> redisson_process::subscribed() {
  if (confirmed_) co_return;
  timer event(io_, timer::time_point::max());
  confirming_.push_back(&event);
  co_await wait_for(event);
}

asio::awaitable<void> redisson_process::wait_for_message(long long at_most_ms) {
  if (permits_ > 0) {
    --permits_;
    co_return;
  }
  timer event(io_);
  event.expires_after(std::chrono::milliseconds(at_most_ms));
  parked_.push_back(&event);
  co_await wait_for(event);
  forget(parked_, event);
}

void redisson_process::hear_message(const redis::reply& what) {
  const auto& word = what.elements.at(0).text;
  if (word == "subscribe") {
    confirmed_ = true;
    for (auto* event : std::exchange(confirming_, {})) event->cancel();
  } else if (word == "message") {
    if (parked_.empty()) {
      ++permits_;
    } else {
      auto* const next = parked_.front();
      parked_.pop_front();
      next->cancel();
    }
  }
}

}  // namespace holdfast::bench

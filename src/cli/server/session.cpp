// SPDX-License-Identifier: BSL-1.0
#include "cli/server/session.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "cli/server/patience.hpp"
#include "redis/failure.hpp"
#include "redis/transport.hpp"

namespace holdfast::cli {
namespace {

/// An administrator's answers are longer than those about locks: CLIENT LIST of 10,000 clients, a batch of SCAN.
constexpr std::chrono::milliseconds longest_work{100};
constexpr redis::reader_limits limits{.elements = 65'536, .depth = 8, .bytes = 16 * 1024 * 1024};

void append(std::string& out, const words& command) {
  std::vector<std::string_view> arguments(command.begin(), command.end());
  redis::append_command(out, arguments);
}

/// Something that ends later, and a waiter that gives up after a while.
struct awaited_end {
  explicit awaited_end(const asio::any_io_executor& executor) : alarm(executor) {}

  void finish() {
    done = true;
    alarm.cancel();
  }
  /// False: it did not end in time.
  asio::awaitable<bool> within(milliseconds limit) {
    patience left(limit);
    while (!done && !left.is_over()) {
      const auto begin = std::chrono::steady_clock::now();
      const auto planned = left.next();
      alarm.expires_after(planned);
      boost::system::error_code ignored;
      co_await alarm.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      left.waited(planned, std::chrono::steady_clock::now() - begin);
    }
    co_return done;
  }

  asio::steady_timer alarm;
  bool done = false;
};

struct connecting : awaited_end {
  using awaited_end::awaited_end;

  std::shared_ptr<redis::stream> made;
  redis::failure why;
};

}  // namespace

struct session::transfer : awaited_end {
  transfer(const asio::any_io_executor& executor, std::shared_ptr<redis::stream> over)
      : awaited_end(executor), wire(std::move(over)) {}

  void on_end(const error_code& failed, std::size_t bytes) {
    why = failed;
    size = bytes;
    finish();
  }

  const std::shared_ptr<redis::stream> wire;  // lives until the handler was called, also after close()
  std::array<char, 16 * 1024> room;           // of a read
  std::string bytes;                          // of a write
  error_code why;
  std::size_t size = 0;
};

session::session(asio::any_io_executor executor, redis::endpoint node, std::shared_ptr<redis::stream> wire,
                 milliseconds limit)
    : executor_(std::move(executor)), node_(std::move(node)), wire_(std::move(wire)), limit_(limit), reader_(limits) {}

asio::awaitable<std::unique_ptr<session>> session::open(network& over, redis::endpoint node, milliseconds limit) {
  const auto end = std::make_shared<connecting>(over.executor());
  const auto kept = std::make_shared<redis::endpoint>(node);  // the attempt refers to it
  const auto services = over.services();
  const auto attempt = services.network.connect(services, *kept, services.now() + node.connect_timeout,
                                                [end, kept](std::shared_ptr<redis::stream> made, redis::failure why) {
                                                  end->made = std::move(made);
                                                  end->why = std::move(why);
                                                  end->finish();
                                                });
  const bool in_time = co_await end->within(node.connect_timeout);
  if (!in_time) {
    attempt->cancel();
    throw error(errc::unreachable, node.to_string() + ": no connection in time (" + attempt->phase() + ")");
  }
  if (!end->made) throw error(end->why.code, end->why.detail);
  std::unique_ptr<session> made(new session(over.executor(), std::move(node), std::move(end->made), limit));
  co_await made->introduce();
  co_return made;
}

asio::awaitable<void> session::introduce() {
  redis::handshake greeting(node_, redis::handshake::purpose::commands);
  auto progress = redis::handshake::progress::more;
  while (progress == redis::handshake::progress::more) {
    if (auto bytes = greeting.take_output(); !bytes.empty()) co_await write(std::move(bytes));
    const auto reply = co_await answer();
    progress = greeting.on_reply(reply);
  }
  if (progress == redis::handshake::progress::failed) throw error(greeting.why().code, greeting.why().detail);
  facts_ = greeting.server();
}

asio::awaitable<redis::reply> session::ask(words command) {
  const auto begin = std::chrono::steady_clock::now();
  co_await send(std::move(command));
  auto reply = co_await answer();
  count_work(begin);
  co_return reply;
}

asio::awaitable<std::vector<redis::reply>> session::ask_all(std::vector<words> commands) {
  const auto begin = std::chrono::steady_clock::now();
  std::string bytes;
  for (const auto& command : commands) append(bytes, command);
  if (!bytes.empty()) co_await write(std::move(bytes));
  std::vector<redis::reply> answers;
  answers.reserve(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) answers.push_back(co_await answer());
  if (!commands.empty()) count_work(begin);
  co_return answers;
}

std::chrono::microseconds work_in(std::chrono::microseconds took, std::chrono::microseconds fastest) noexcept {
  return std::min<std::chrono::microseconds>(took - fastest, longest_work);
}

void session::count_work(std::chrono::steady_clock::time_point begin) noexcept {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  fastest_ = std::min(fastest_.value_or(took), took);
  work_ += work_in(took, *fastest_);
}

asio::awaitable<void> session::send(words command) {
  std::string bytes;
  append(bytes, command);
  co_await write(std::move(bytes));
}

asio::awaitable<redis::reply> session::answer() {
  auto reply = co_await next(limit_);
  if (!reply) give_up("no answer in " + std::to_string(limit_.count()) + " ms");
  co_return std::move(*reply);
}

asio::awaitable<void> session::write(std::string bytes) {
  const auto end = std::make_shared<transfer>(executor_, wire_);
  end->bytes = std::move(bytes);
  wire_->async_write(asio::buffer(end->bytes), redis::stream::handler::to<&transfer::on_end>(end));
  const bool in_time = co_await end->within(limit_);
  if (!in_time) give_up("it takes no bytes");
  if (end->why) give_up(end->why.message());
}

asio::awaitable<std::optional<redis::reply>> session::next(milliseconds wait) {
  for (;;) {
    if (auto* reply = reader_.next()) co_return std::move(*reply);
    if (reader_.failed()) throw error(errc::protocol_error, node_.to_string() + ": " + reader_.failure());
    if (!reading_) {
      reading_ = std::make_shared<transfer>(executor_, wire_);
      wire_->async_read_some(asio::buffer(reading_->room), redis::stream::handler::to<&transfer::on_end>(reading_));
    }
    const auto read = reading_;
    const bool in_time = co_await read->within(wait);
    if (!in_time) co_return std::nullopt;
    reading_.reset();
    if (read->why) give_up(read->why == asio::error::eof ? "the server closed the connection" : read->why.message());
    reader_.feed({read->room.data(), read->size});
  }
}

std::string session::words_of(const redis::reply& error) const { return redis::quoted(node_, error.text); }

void session::give_up(const std::string& cause) const {
  throw error(errc::unreachable, node_.to_string() + ": " + cause);
}

}  // namespace holdfast::cli

// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/network.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include "redis/subscription_table.hpp"

namespace holdfast::sim {
namespace {

/// After this time the node notices a client's end that is gone silently.
constexpr auto keepalive = std::chrono::seconds(5);

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) (line += line.empty() ? "" : " ") += word.find('\n') == word.npos ? word : "<text>";
  return line;
}

std::string line_of(const reply& reply) {
  if (reply.type == reply::kind::nil) return "nil";
  if (reply.type == reply::kind::integer) return std::to_string(reply.integer);
  if (reply.type != reply::kind::array) return reply.text;
  std::string line = "[";
  for (const auto& element : reply.elements) (line += line.size() == 1 ? "" : " ") += line_of(element);
  return line + "]";
}

/// A command of a handshake or a check: no other client can tell whether it has run.
bool is_private(const std::vector<std::string>& command) {
  static constexpr std::string_view of_handshake[] = {"auth", "hello", "info", "ping", "role", "select"};
  static constexpr std::string_view of_client[] = {"id", "setinfo", "setname"};
  const auto is_among = [](const auto& all, const std::string& word) {
    return std::find(std::begin(all), std::end(all), lower(word)) != std::end(all);
  };
  return is_among(of_handshake, command.front()) ||
         (command.size() > 1 && lower(command[0]) == "client" && is_among(of_client, command[1]));
}

/// The key of a push; empty: it is none, or about all keys.
std::string pushed_key(const reply& reply) {
  if (reply.elements.size() != 3 || reply.elements[1].text != redis::push_channel) return {};
  const auto& keys = reply.elements[2].elements;
  return keys.size() == 1 ? keys[0].text : std::string();
}

}  // namespace

wire::wire(route& way, home_ptr at)
    : way_(way), home_(std::move(at)), name_(way.name_ + '/' + std::to_string(++way.wires_made_)),
      up_{name_ + " up", &way, &way.server_}, down_{name_ + " down", &way.server_, &way} {}

std::size_t wire::take_at_once(std::size_t size) {
  constexpr std::uint64_t one_in = 64;
  return way_.random_.next() % one_in == 0 ? size / 2 : size;
}

void wire::write(std::string_view bytes) {
  parser_.feed(bytes);
  while (auto* const reply = parser_.next()) {
    auto command = std::make_shared<std::vector<std::string>>();
    for (auto& word : reply->elements) command->push_back(std::move(word.text));
    up_free_ = std::max(up_free_, way_.plan_.now() + way_.delay());
    way_.plan_.send(
        up_, up_free_, [self = shared_from_this(), command] { self->arrive(command); }, is_private(*command));
  }
  if (!way_.at_next_write) return;
  way_.plan_.after(way_.random_.up_to(2 * (way_.now.latency + way_.now.jitter)),
                   [self = shared_from_this(), act = std::exchange(way_.at_next_write, nullptr)] { act(*self); });
}

void wire::arrive(const std::shared_ptr<std::vector<std::string>>& command) {
  if (way_.plan_.now() < held_until_)
    return way_.plan_.at(held_until_, [self = shared_from_this(), command] { self->arrive(command); });
  if (loses_up_) {
    ++way_.did.lost;
    return way_.note("lost", line_of(*command));
  }
  way_.server_.arrive([self = shared_from_this(), command] { self->execute(*command); });
}

void wire::execute(const std::vector<std::string>& command) {
  if (!way_.server_.program().connected(session_)) return way_.note("fenced", line_of(command));
  way_.note("runs", line_of(command));
  if (spared_) way_.on_unfenced(command);
  for (const auto& reply : way_.server_.program().execute(session_, command)) {
    if (reply_is_lost(command, reply)) return end();
    send_down(reply, false);
  }
}

bool wire::reply_is_lost(const std::vector<std::string>& command, const reply& reply) {
  const auto name = lower(command.front());
  const bool about_a_lock = name == "eval" || name == "evalsha" || is_data_command(name);
  if (!about_a_lock || reply.text.starts_with("NOSCRIPT") || !std::exchange(way_.loses_next_reply, false)) return false;
  way_.note("reply lost", line_of(reply));
  return true;
}

void wire::end() {
  end_at_client();
  end_at_server({});
}

void wire::send_down(const reply& reply, bool message) {
  if (message && way_.loses_messages) {
    way_.note("message lost");
    ++way_.did.messages_lost;
    return way_.on_message_lost();
  }
  way_.note(message ? "message" : "answers", line_of(reply));
  down_free_ = std::max(down_free_, way_.plan_.now() + way_.delay() + (message ? way_.message_delay : nanoseconds()));
  if (message && way_.message_delay != nanoseconds()) ++way_.did.messages_delayed;
  way_.plan_.send(down_, down_free_, [self = shared_from_this(), bytes = encode(reply), key = pushed_key(reply)] {
    if (self->ended_ || self->closed_) return;
    if (self->loses_down_) {
      ++self->way_.did.lost;
      return;
    }
    self->inbox_ += bytes;
    if (!key.empty() && self->way_.on_pushed) self->way_.on_pushed(key);
    self->wake_reader();
  });
}

void wire::read(asio::mutable_buffer into, read_handler done) {
  into_ = into;
  reading_ = std::move(done);
  wake_reader();
}

void wire::wake_reader() {
  if (!reading_ || (inbox_.empty() && !ended_)) return;
  const auto size = asio::buffer_copy(into_, asio::buffer(inbox_));
  inbox_.erase(0, size);
  const error_code why = size == 0 ? asio::error::eof : error_code{};
  home_->post([done = std::exchange(reading_, nullptr), why, size] { done(why, size); });
}

void wire::cancel() {
  if (!reading_) return;
  home_->post([done = std::exchange(reading_, nullptr)] { done(asio::error::operation_aborted, 0); });
}

void wire::close() {
  if (std::exchange(closed_, true)) return;
  cancel();
  end_at_server(loses_up_ ? nanoseconds(keepalive) : nanoseconds());
}

void wire::end_at_client() {
  loses_down_ = true;
  if (std::exchange(ended_, true)) return;
  way_.note("connection reset");
  wake_reader();
}

void wire::end_at_server(nanoseconds delay) {
  const auto when = std::max({up_free_, held_until_, way_.plan_.now() + way_.delay()}) + delay;
  way_.plan_.send(up_, when, [self = shared_from_this()] {
    self->way_.server_.arrive([self] { self->way_.server_.program().disconnect(self->session_); });
  });
}

void wire::kill() {
  if (!ended() && !loses_down_) way_.on_killed();
  end_from_server();
}

void wire::end_from_server() {
  way_.plan_.send(down_, std::max(down_free_, way_.plan_.now() + way_.delay()), [self = shared_from_this()] {
    if (!self->loses_down_) self->end_at_client();
  });
  session_ = 0;
}

void route::dial(const home_ptr& from, dialled done) {
  const auto answer = [this, from, done = std::move(done)](error_code why, std::shared_ptr<wire> wire) {
    plan_.send(is_answered_, plan_.now() + delay(),
               [from, done, why, wire] { from->post([done, why, wire] { done(why, wire); }); });
  };
  plan_.send(
      dials_, plan_.now() + delay(),
      [this, from, answer] {
        if (blocked) {
          ++did.lost;
          return note("connect lost");
        }
        if (unreachable) return answer(asio::error::network_unreachable, nullptr);
        if (server_.down()) return answer(asio::error::connection_refused, nullptr);
        const auto dialled_wire = std::make_shared<wire>(*this, from);
        wires_.push_back(dialled_wire);
        server_.expect(dialled_wire);
        server_.arrive([this, dialled_wire] {
          dialled_wire->session_ = server_.accept(dialled_wire);
          note("connected");
        });
        answer({}, dialled_wire);
      },
      true);
}

std::vector<std::shared_ptr<wire>> route::wires() {
  std::vector<std::shared_ptr<wire>> open;
  std::erase_if(wires_, [&](const auto& each) {
    const auto wire = each.lock();
    if (wire && !wire->ended()) open.push_back(wire);
    return !wire;
  });
  return open;
}

bool route::troubled() const {
  return blocked || std::any_of(wires_.begin(), wires_.end(), [](const auto& each) {
           const auto wire = each.lock();
           return wire && !wire->ended() && wire->loses();
         });
}

std::string encode(const reply& reply) {
  using kind = reply::kind;
  switch (reply.type) {
    case kind::nil: return "$-1\r\n";
    case kind::integer: return ":" + std::to_string(reply.integer) + "\r\n";
    case kind::status: return "+" + reply.text + "\r\n";
    case kind::error: return "-" + reply.text + "\r\n";
    case kind::string: return "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
    case kind::array: break;
  }
  auto bytes = "*" + std::to_string(reply.elements.size()) + "\r\n";
  for (const auto& response : reply.elements) bytes += encode(response);
  return bytes;
}

}  // namespace holdfast::sim

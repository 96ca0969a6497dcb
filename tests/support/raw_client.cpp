// SPDX-License-Identifier: BSL-1.0
#include "support/raw_client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <ostream>
#include <system_error>

#include "redis/resp.hpp"
#include "support/net.hpp"
#include "support/real_redis.hpp"

namespace holdfast::test {
namespace {

using std::chrono::steady_clock;

std::optional<long long> number_in(std::string_view text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

long long must_be_number(std::string_view text) {
  const auto number = number_in(text);
  if (!number) throw std::runtime_error("not RESP: \"" + std::string(text) + "\" where a number should be");
  return *number;
}

std::optional<std::size_t> parse_array(std::string_view bytes, std::size_t used, long long count, value& out) {
  for (long long i = 0; i < count; ++i) {
    const auto length = parse_value(bytes.substr(used), out.elements.emplace_back());
    if (!length) return std::nullopt;
    used += *length;
  }
  return used;
}

// MONITOR: 1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
std::vector<std::string> quoted_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t i = text.find('"'); i != text.npos; i = text.find('"', i + 1)) {
    auto& word = words.emplace_back();
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\' || i + 1 >= text.size()) {
        word += text[i];
        continue;
      }
      switch (const char escape = text[++i]) {
        case 'n': word += '\n'; break;
        case 'r': word += '\r'; break;
        case 't': word += '\t'; break;
        case 'a': word += '\a'; break;
        case 'b': word += '\b'; break;
        case 'x':
          word += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
          i += 2;
          break;
        default: word += escape;
      }
    }
  }
  return words;
}

}  // namespace

std::optional<std::size_t> parse_value(std::string_view bytes, value& out) {
  out = {};
  const auto end = bytes.find("\r\n");
  if (end == bytes.npos) return std::nullopt;
  const auto line = bytes.substr(1, end - 1);
  auto used = end + 2;
  switch (bytes[0]) {
    case '+': out.type = value::kind::status, out.text = line; return used;
    case '-': out.type = value::kind::error, out.text = line; return used;
    case ':': out.type = value::kind::integer, out.number = must_be_number(line); return used;
    case '$': {
      const auto length = must_be_number(line);
      if (length < 0) return used;
      if (bytes.size() < used + static_cast<std::size_t>(length) + 2) return std::nullopt;
      out.type = value::kind::string;
      out.text = bytes.substr(used, static_cast<std::size_t>(length));
      return used + static_cast<std::size_t>(length) + 2;
    }
    case '*': {
      const auto count = must_be_number(line);
      if (count < 0) return used;
      out.type = value::kind::array;
      return parse_array(bytes, used, count, out);
    }
    default: throw std::runtime_error("not RESP: \"" + std::string(bytes.substr(0, 32)) + "\"");
  }
}

std::string value::to_string() const {
  switch (type) {
    case kind::nil: return "(nil)";
    case kind::integer: return std::to_string(number);
    case kind::array: {
      std::string all = "[";
      for (const auto& element : elements) (all += all.size() > 1 ? ", " : "") += element.to_string();
      return all + "]";
    }
    default: return text;
  }
}

long long value::integer() const {
  if (type == kind::integer) return number;
  const auto parsed = type == kind::string || type == kind::status ? number_in(text) : std::nullopt;
  if (!parsed) throw std::runtime_error("not an integer: " + to_string());
  return *parsed;
}

const std::vector<value>& value::array() const {
  if (type != kind::array) throw std::runtime_error("not an array: " + to_string());
  return elements;
}

std::vector<std::string> value::strings() const {
  std::vector<std::string> all;
  for (const auto& element : array()) all.push_back(element.to_string());
  return all;
}

std::optional<std::string> value::field(std::string_view name) const {
  for (std::size_t i = 0; i + 1 < array().size(); i += 2)
    if (elements[i].text == name) return elements[i + 1].to_string();
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, const value& v) { return out << v.to_string(); }

raw_client::raw_client(const real_redis& server) : raw_client(server.socket_path()) {
  if (const auto login = server.login(); !login.empty()) checked(call(login));
}
raw_client::raw_client(const std::string& unix_path) : socket_(connect_unix(unix_path)) {}
raw_client::raw_client(const std::string& ip, std::uint16_t port) : socket_(connect_tcp(ip, port)) {}

value raw_client::checked(value reply) {
  if (reply.is_error()) throw server_error(reply.text);
  return reply;
}

value raw_client::call(const std::vector<std::string>& argv) {
  send(argv);
  return must_receive();
}

void raw_client::send(const std::vector<std::string>& argv) {
  std::string bytes;
  const std::vector<std::string_view> words(argv.begin(), argv.end());
  redis::append_command(bytes, words);
  send_bytes(bytes);
}

void raw_client::send_bytes(std::string_view bytes) {
  const auto deadline = steady_clock::now() + patience;
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_ready(socket_.get(), POLLOUT, deadline))
        throw std::runtime_error("raw_client: the server does not read");
    } else if (errno != EINTR) {
      throw_errno("raw_client: send");
    }
  }
}

bool raw_client::fill(steady_clock::time_point deadline) {
  if (!socket_) throw std::runtime_error("raw_client: closed");
  if (!wait_ready(socket_.get(), POLLIN, deadline)) return false;
  char block[16384];
  const auto got = ::recv(socket_.get(), block, sizeof block, 0);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0) throw_errno("raw_client: receive");
  if (got == 0) throw std::runtime_error("raw_client: the server closed the connection");
  buffer_.append(block, static_cast<std::size_t>(got));
  return true;
}

std::optional<value> raw_client::receive(milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    value reply;
    if (const auto length = parse_value(buffer_, reply)) {
      buffer_.erase(0, *length);
      return reply;
    }
    if (!fill(deadline)) return std::nullopt;
  }
}

value raw_client::must_receive() {
  auto reply = receive(patience);
  if (!reply) throw std::runtime_error("raw_client: no reply");
  return *std::move(reply);
}

void raw_client::subscribe(std::string_view channel) {
  send({"SUBSCRIBE", std::string(channel)});
  for (;;) {
    const auto reply = checked(must_receive());
    if (reply.array().at(0) == "subscribe" && reply.elements.at(1) == channel) return;
    if (reply.elements[0] == "message")
      early_messages_.push_back({reply.elements.at(1).text, reply.elements.at(2).text});
  }
}

void raw_client::unsubscribe(std::string_view channel) {
  send({"UNSUBSCRIBE", std::string(channel)});
  while (!(checked(must_receive()).array().at(0) == "unsubscribe")) {
  }
}

std::optional<raw_client::message> raw_client::next_message(milliseconds timeout) {
  if (!early_messages_.empty()) {
    auto first = early_messages_.front();
    early_messages_.erase(early_messages_.begin());
    return first;
  }
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    const auto reply = receive(std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
    if (!reply) return std::nullopt;
    if (reply->array().at(0) == "message") return message{reply->elements.at(1).text, reply->elements.at(2).text};
  }
}

void raw_client::monitor() { (*this)("MONITOR"); }

std::optional<raw_client::monitor_line> raw_client::next_monitor_line(milliseconds timeout) {
  const auto reply = receive(timeout);
  if (!reply) return std::nullopt;
  const std::string_view line = reply->text;
  const auto dot = line.find('.'), open = line.find('['), close = line.find(']', open);
  if (close == line.npos || dot > open) throw std::runtime_error("not a MONITOR line: " + reply->text);
  monitor_line result;
  result.at = std::chrono::seconds(must_be_number(line.substr(0, dot))) +
              std::chrono::microseconds(must_be_number(line.substr(dot + 1, 6)));
  const auto client = line.substr(open + 1, close - open - 1);
  result.from = client.substr(client.find(' ') + 1);
  result.argv = quoted_words(line.substr(close + 1));
  return result;
}

bool raw_client::closed_within(milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    if (!wait_ready(socket_.get(), POLLIN, deadline)) return false;
    char block[4096];
    const auto got = ::recv(socket_.get(), block, sizeof block, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
    if (got > 0) buffer_.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace holdfast::test

// SPDX-License-Identifier: BSL-1.0
#include "support/proxy_connection.hpp"

#include <sys/socket.h>

#include <cctype>
#include <cerrno>
#include <exception>
#include <utility>

namespace holdfast::test {
namespace {

using std::chrono::steady_clock;
using action = proxy::rule::action;
using direction = proxy::direction;

std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string first_word(const value& unit) {
  return unit.elements.empty() ? std::string() : in_capitals(unit.elements[0].text);
}

}  // namespace

proxy_connection::proxy_connection(std::size_t number, unique_fd client, unique_fd server) : number_(number) {
  sides[index(direction::to_server)].fd = std::move(client);
  sides[index(direction::to_client)].fd = std::move(server);
}

void proxy_connection::forget(bool resets) {
  forgotten_ = true;
  resets_ = resets;
  for (auto& side : sides) side.out.lost_bytes = true;  // healed by an end
}

void proxy_connection::read(direction from, proxy_faults& faults, proxy::counters& n) {
  auto& source = sides[index(from)];
  char block[65536];
  while (!dead && !source.ended) {
    const auto got = ::recv(source.fd.get(), block, sizeof block, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (forgotten_ && got > 0) {
      to_be_reset |= resets_ && from == direction::to_server;
      continue;
    }
    if (got <= 0) {
      source.ended = true;
      if (!forgotten_ || from == direction::to_server) source.out.end();
      return;
    }
    source.unparsed.append(block, static_cast<std::size_t>(got));
    pass_on(from, faults, n);
  }
}

void proxy_connection::pass_on(direction where, proxy_faults& faults, proxy::counters& n) {
  auto& unparsed = sides[index(where)].unparsed;
  while (!opaque_ && !unparsed.empty()) {
    value unit;
    std::optional<std::size_t> length;
    try {
      length = parse_value(unparsed, unit);
    } catch (const std::exception&) {
      opaque_ = true;
      break;
    }
    if (!length) return;
    auto bytes = unparsed.substr(0, *length);
    unparsed.erase(0, *length);
    pass_unit(where, unit, std::move(bytes), faults, n);
  }
  if (!unparsed.empty()) forward(where, std::exchange(unparsed, {}), false, faults.paces[index(where)]);
}

void proxy_connection::pass_unit(direction where, const value& unit, std::string bytes, proxy_faults& faults,
                                 proxy::counters& n) {
  const bool push = where == direction::to_client && pushes_ && awaited_.empty();
  const auto name = where == direction::to_server ? name_of_command(unit, n) : name_of_reply(unit, n);
  auto& out = sides[index(where)].out;
  bool then_cut = false;
  for (auto& rule : faults.rules) {
    if (rule.where != where || (rule.what.connection && *rule.what.connection != number_)) continue;
    if (rule.what.command.empty() ? push : in_capitals(rule.what.command) != name) continue;
    ++rule.seen;
    if (rule.seen < rule.what.n || rule.seen - rule.what.n >= rule.what.times) continue;
    ++n.fired;
    switch (rule.what.what) {
      case action::drop: out.lost_bytes |= !push; return;
      case action::drop_rest: out.dropped = true; break;
      case action::hold_rest: out.held_from_here(); break;
      case action::cut_before: out.push({}, steady_clock::now(), true); return;
      case action::cut_after: then_cut = true; break;
    }
  }
  forward(where, std::move(bytes), then_cut, faults.paces[index(where)]);
}

void proxy_connection::forward(direction where, std::string bytes, bool then_cut, const pacing& pace) {
  auto& out = sides[index(where)].out;
  if (out.dropped || pace.swallowed)
    out.lost_bytes = true;
  else
    out.push(std::move(bytes), steady_clock::now() + pace.delay, then_cut);
}

std::string proxy_connection::name_of_command(const value& command, proxy::counters& n) {
  auto name = first_word(command);
  if (name == "SUBSCRIBE" || name == "PSUBSCRIBE" || name == "SSUBSCRIBE" || name == "MONITOR") pushes_ = true;
  if (!pushes_) awaited_.push_back(name);
  ++n.commands[name];
  return name;
}

std::string proxy_connection::name_of_reply(const value& reply, proxy::counters& n) {
  ++n.replies;
  if (awaited_.empty()) return first_word(reply);
  auto name = std::move(awaited_.front());
  awaited_.pop_front();
  return name;
}

}  // namespace holdfast::test

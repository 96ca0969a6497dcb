// SPDX-License-Identifier: BSL-1.0
#include "redis/handshake.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "base/escape.hpp"
#include "redis/error_replies.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t longest_facts = 64;

using version_number = std::array<int, 3>;
/// The first versions that push no write of a client's own scripts to it.
constexpr version_number first_of_6_2{6, 2, 8}, first_of_later{7, 0, 5};

/// Empty: it does not begin with three numbers.
std::optional<version_number> parse_version(std::string_view text) {
  version_number parsed{};
  const auto* at = text.data();
  const auto* const end = at + text.size();
  for (std::size_t n = 0; n < parsed.size(); ++n) {
    if (n > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [rest, failed] = std::from_chars(at, end, parsed[n]);
    if (failed != std::errc()) return std::nullopt;
    at = rest;
  }
  return parsed;
}

// A server without SELECT, a proxy for example, or an ACL without it.
bool is_withheld(std::string_view error) {
  return error.starts_with("NOPERM") || error.starts_with("ERR unknown") || error.starts_with("ERR Unknown") ||
         error.starts_with("ERR Syntax error") || error.starts_with("ERR syntax error");
}

error_code code_of(const reply& error) { return classify(error.text, errc::protocol_error).code; }

// The rest of the line after the label; empty if there is no such line.
std::string_view line_of_info(std::string_view text, std::string_view label) {
  const auto at = text.find(label);
  if (at == text.npos) return {};
  const auto rest = text.substr(at + label.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}

constexpr std::string_view sentinel = "a Sentinel; the URL of what it watches begins with redis+sentinel://";

// The words of Redis 6 and later, and those of earlier versions.
bool has_no_password(std::string_view answer) {
  return answer.find("without any password configured") != answer.npos ||
         answer.find("no password is set") != answer.npos;
}

// The server's words are not used: a server that does not know AUTH quotes its arguments, the password too.
std::string meaning_of_auth_refusal(std::string_view answer, bool with_user) {
  const auto says = [&](std::string_view words) { return answer.find(words) != answer.npos; };
  if (has_no_password(answer)) return "the server has no password: leave user and password out";
  if (with_user && says("wrong number of arguments"))
    return "the server has no users, as Redis before 6: leave the user out";
  if (says("unknown command") || says("Unknown command")) return "the server has no AUTH: leave user and password out";
  const auto first = answer.substr(0, answer.find(' '));
  return first == "ERR" ? "AUTH: the server refuses the password" : "AUTH: " + std::string(first);
}

}  // namespace

std::string server_facts::to_string() const {
  const auto shown = valkey.empty() ? version : "Valkey " + valkey;
  const auto both = shown.empty() || mode.empty() ? shown + mode : shown + ", " + mode;
  return detail::escaped(both, longest_facts);
}

bool server_facts::pushes_own_writes() const noexcept {
  const auto known = parse_version(version);
  if (!known) return false;
  const bool of_6_2 = (*known)[0] == first_of_6_2[0] && (*known)[1] == first_of_6_2[1];
  return *known < (of_6_2 ? first_of_6_2 : first_of_later);
}

handshake::handshake(const endpoint& node, purpose why, std::optional<identity> predecessor)
    : node_(node), predecessor_(std::move(predecessor)) {
  if (!node.login.user.empty())
    send(step::auth, {"AUTH", node.login.user, node.login.password});
  else if (!node.login.password.empty())
    send(step::auth, {"AUTH", node.login.password});
  if (why == purpose::commands && node.db != 0) send(step::select, {"SELECT", std::to_string(node.db)});
  if (!node.client_name.empty()) send(step::set_name, {"CLIENT", "SETNAME", node.client_name});
  send(step::id, {"CLIENT", "ID"});
  send(step::info, {"INFO", "server"});
  if (why == purpose::commands && !node.any_role)
    send(step::role, {"ROLE"});
  else
    send(step::ping, {"PING"});
}

void handshake::send(step step, std::initializer_list<std::string_view> argv) {
  append_command(output_, std::span(argv.begin(), argv.size()));
  awaited_.push_back(step);
}

handshake::progress handshake::on_reply(const reply& reply) {
  if (awaited_.empty()) {
    refuse(errc::protocol_error, "a reply that nobody asked for");
    return progress::failed;
  }
  const auto step = awaited_.front();
  awaited_.pop_front();
  if (!accept(step, reply)) return progress::failed;
  if (awaited_.empty() && step != step::kill) fence_predecessor();
  return awaited_.empty() ? progress::done : progress::more;
}

bool handshake::accept(step step, const reply& reply) {
  if (reply.is_error() && step != step::kill) {
    // A server that accepts no connection answers the first command by this, whichever it is.
    const auto code = code_of(reply);
    if (code == errc::server_refused || reply.text.starts_with("DENIED"))
      return refuse(code, quoted(node_, reply.text));
    if (step == step::auth) {
      auth_refused_ = quoted(node_, meaning_of_auth_refusal(reply.text, !node_.login.user.empty()));
      // The server may be of another mode than expected. INFO shows it, and is the better cause.
      if (has_no_password(reply.text)) return true;
    }
    if (!auth_refused_.empty()) return refuse(errc::auth_failed, auth_refused_);
    if (code == errc::auth_failed) return refuse(code, quoted(node_, reply.text));
    if (code == errc::not_primary && step != step::set_name) return refuse(code, quoted(node_, reply.text));
  }
  switch (step) {
    case step::auth:
    case step::set_name:
    case step::ping: break;
    case step::select:
      if (reply.is_error())
        return refuse(is_withheld(reply.text) ? code_of(reply) : errc::invalid_config, quoted(node_, reply.text));
      break;
    case step::id: return accept_id(reply);
    case step::info: return accept_info(reply);
    case step::role: return accept_role(reply);
    case step::kill:
      if (reply.is_error()) fencing_refused_ = "CLIENT KILL: " + quoted(node_, reply.text);
      break;
  }
  return true;
}

bool handshake::accept_id(const reply& reply) {
  if (reply.type == reply::kind::integer)
    client_ = reply.integer;
  else if (reply.is_error())
    fencing_refused_ = "CLIENT ID: " + quoted(node_, reply.text);
  else
    return refuse(errc::protocol_error, "CLIENT ID answered without a number");
  return true;
}

bool handshake::accept_info(const reply& reply) {
  const std::string_view text = reply.type == reply::kind::string ? std::string_view(reply.text) : std::string_view();
  const auto redis_word = line_of_info(text, "\nredis_mode:"), valkey_word = line_of_info(text, "\nserver_mode:");
  server_.mode = valkey_word.empty() ? redis_word : valkey_word;
  server_.version = line_of_info(text, "\nredis_version:");
  server_.valkey = line_of_info(text, "\nvalkey_version:");
  server_.run = line_of_info(text, "\nrun_id:");
  if (!accept_mode()) return false;
  if (!auth_refused_.empty()) return refuse(errc::auth_failed, auth_refused_);
  if (server_.run.empty() && fencing_refused_.empty())
    fencing_refused_ = "INFO: " + (reply.is_error() ? quoted(node_, reply.text) : std::string("no run_id"));
  return true;
}

bool handshake::accept_mode() {
  const auto& mode = server_.mode;
  switch (node_.expected) {
    case server_mode::standalone:
      if (mode == "cluster") return refuse(errc::not_primary, cluster_node);
      return mode != "sentinel" || refuse(errc::not_primary, sentinel);
    case server_mode::sentinel:
      if (mode == "cluster") return refuse(errc::not_primary, cluster_node);
      return mode.empty() || mode == "sentinel" ||
             refuse(errc::not_primary, "no Sentinel; the URL of a server begins with redis://, not redis+sentinel://");
    case server_mode::cluster:
      if (mode == "sentinel") return refuse(errc::not_primary, sentinel);
      return mode.empty() || mode == "cluster" ||
             refuse(errc::not_primary, "no cluster; the URL of one server begins with redis://, not redis+cluster://");
  }
  return true;
}

bool handshake::accept_role(const reply& reply) {
  if (reply.is_error()) return true;
  if (reply.type != reply::kind::array || reply.elements.empty())
    return refuse(errc::protocol_error, "ROLE answered without a role");
  const auto& role = reply.elements.front().text;
  primary_ = role == "master";
  replica_ = role == "slave";
  if (role == (node_.expected == server_mode::sentinel ? "sentinel" : "master")) return true;
  if (role == "sentinel") return refuse(errc::not_primary, sentinel);
  if (replica_) return refuse(errc::not_primary, "the server is a replica");
  return refuse(errc::not_primary, "the server's role is " + quoted(node_, role));
}

void handshake::fence_predecessor() {
  if (!predecessor_ || predecessor_->run != server_.run) return;
  send(step::kill, {"CLIENT", "KILL", "ID", std::to_string(predecessor_->client)});
}

std::optional<handshake::identity> handshake::id() const {
  return client_ && !server_.run.empty() ? std::optional(identity{*client_, server_.run}) : std::nullopt;
}

bool handshake::refuse(error_code code, std::string_view cause) {
  failure_ = fail(node_, code, cause);
  return false;
}

}  // namespace holdfast::redis

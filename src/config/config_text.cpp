// SPDX-License-Identifier: BSL-1.0
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/config.hpp>
#include <holdfast/error.hpp>

#include "base/escape.hpp"
#include "config/url.hpp"

namespace holdfast {
namespace {

const char* text_of(bool value) { return value ? "true" : "false"; }
std::string quoted(const std::string& value) { return detail::in_quotes(value, 64, '"'); }

std::string text_of_url(const std::string& url) { return detail::in_quotes(redacted(url), std::string::npos, '"'); }

std::string urls(const std::vector<std::string>& all) {
  std::string text = "[";
  for (const auto& url : all) text += (text.size() > 1 ? " " : "") + text_of_url(url);
  return text + ']';
}

std::string text_of(const std::vector<std::pair<std::string, std::string>>& node_map) {
  std::string text = "[";
  for (const auto& [told, reach] : node_map) text += (text.size() > 1 ? " " : "") + quoted(told) + "->" + quoted(reach);
  return text + ']';
}

const char* text_of(pubsub_mode mode) {
  switch (mode) {
    case pubsub_mode::automatic: return "auto";
    case pubsub_mode::classic: return "classic";
    case pubsub_mode::sharded: return "sharded";
    case pubsub_mode::both: return "both";
  }
  return "unknown";
}

const char* password_text(const std::string& password) { return password.empty() ? "\"\"" : "***"; }

std::ostream& operator<<(std::ostream& out, const tls_config& tls) {
  return out << "{ca_file=" << quoted(tls.ca_file) << " ca_dir=" << quoted(tls.ca_dir)
             << " certificate_file=" << quoted(tls.certificate_file) << " key_file=" << quoted(tls.key_file)
             << " server_name=" << quoted(tls.server_name)
             << " insecure_skip_verification=" << text_of(tls.insecure_skip_verification) << '}';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const config& c) {
  return out << "url=" << text_of_url(c.url) << " user=" << quoted(c.user) << " password=" << password_text(c.password)
             << " credentials=" << (c.credentials ? "set" : "none") << " client_name=" << quoted(c.client_name)
             << " tls=" << c.tls << " key_prefix=" << quoted(c.key_prefix) << " ttl=" << c.ttl.count()
             << "ms command_timeout=" << c.command_timeout.count() << "ms connect_timeout=" << c.connect_timeout.count()
             << "ms drift=" << std::to_string(c.drift) << " poll_cap=" << c.poll_cap.count()
             << "ms reconnect_cap=" << c.reconnect_cap.count()
             << "ms health_check_interval=" << c.health_check_interval.count() << "ms token_ttl=" << c.token_ttl.count()
             << "ms pending_commands=" << c.pending_commands << " turns=" << text_of(c.turns)
             << " min_replicas=" << c.min_replicas << " sentinel_user=" << quoted(c.sentinel_user)
             << " sentinel_password=" << password_text(c.sentinel_password)
             << " sentinel_tls=" << (c.sentinel_tls ? text_of(*c.sentinel_tls) : "unset")
             << " strict_sentinel=" << text_of(c.strict_sentinel) << " pubsub=" << text_of(c.pubsub)
             << " node_map=" << text_of(c.node_map) << " primaries=" << urls(c.primaries)
             << " longest_ttl=" << c.longest_ttl.count() << "ms delayed_restart=" << text_of(c.delayed_restart)
             << " observer=" << (c.observer ? "set" : "none") << " quiet=" << text_of(c.quiet);
}

std::string redacted(std::string_view url) {
  std::string out;
  try {
    std::size_t done = 0;
    for (const auto& [begin, length] : detail::parse_url(url).secrets) {
      out.append(url, done, begin - done) += "***";
      done = begin + length;
    }
    return out.append(url, done);
  } catch (const error&) {
    // Who knows where the password stands in it: nothing but the scheme is shown.
    return std::string(detail::scheme_of(url)) + "***";
  }
}

}  // namespace holdfast

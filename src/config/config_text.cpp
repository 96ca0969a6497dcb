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
  for (const auto& [announced, reach] : node_map)
    text += (text.size() > 1 ? " " : "") + quoted(announced) + "->" + quoted(reach);
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

const char* text_of(push_mode mode) {
  switch (mode) {
    case push_mode::automatic: return "auto";
    case push_mode::off: return "off";
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

std::ostream& operator<<(std::ostream& out, const config& config) {
  return out << "url=" << text_of_url(config.url) << " user=" << quoted(config.user)
             << " password=" << password_text(config.password)
             << " credentials=" << (config.credentials ? "set" : "none")
             << " client_name=" << quoted(config.client_name) << " tls=" << config.tls
             << " key_prefix=" << quoted(config.key_prefix) << " ttl=" << config.ttl.count()
             << "ms command_timeout=" << config.command_timeout.count()
             << "ms connect_timeout=" << config.connect_timeout.count() << "ms drift=" << std::to_string(config.drift)
             << " poll_cap=" << config.poll_cap.count() << "ms reconnect_cap=" << config.reconnect_cap.count()
             << "ms health_check_interval=" << config.health_check_interval.count()
             << "ms token_ttl=" << config.token_ttl.count() << "ms push=" << text_of(config.push)
             << " turns=" << text_of(config.turns) << " notes=" << text_of(config.notes)
             << " observer=" << (config.observer ? "set" : "none") << " quiet=" << text_of(config.quiet)
             << " pending_commands=" << config.pending_commands << " min_replicas=" << config.min_replicas
             << " node_map=" << text_of(config.node_map) << " sentinel.user=" << quoted(config.sentinel.user)
             << " sentinel.password=" << password_text(config.sentinel.password)
             << " sentinel.tls=" << (config.sentinel.tls ? text_of(*config.sentinel.tls) : "unset")
             << " sentinel.strict=" << text_of(config.sentinel.strict)
             << " cluster.pubsub=" << text_of(config.cluster.pubsub)
             << " red_lock.primaries=" << urls(config.red_lock.primaries)
             << " red_lock.longest_ttl=" << config.red_lock.longest_ttl.count()
             << "ms red_lock.delayed_restart=" << text_of(config.red_lock.delayed_restart);
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

// SPDX-License-Identifier: BSL-1.0
#include "cli/access.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "cli/output.hpp"
#include "config/url.hpp"

namespace holdfast::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void refuse_passwords(const std::vector<std::string>& urls) {
  for (const auto& url : urls) {
    const auto parts = detail::parse_url(url);
    if (parts.find("password") || parts.find("sentinel_password"))
      throw usage_error(
          "a password on the command line can be read by everybody on this machine: use HOLDFAST_URL, "
          "HOLDFAST_PASSWORD or --password-file");
  }
}

/// The first line of the file.
std::string read_password(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) throw usage_error("--password-file cannot be read, or is empty");
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool of_several(const config& settings) { return !settings.red_lock.primaries.empty(); }

}  // namespace

config config_of(const access_options& options) {
  refuse_passwords(options.urls);
  const auto urls = options.urls.empty() ? words_in(environment("HOLDFAST_URL")) : options.urls;
  config settings;
  if (urls.size() == 1)
    settings.url = urls.front();
  else if (!urls.empty())
    settings.red_lock.primaries = urls;
  settings.user = options.user.empty() ? environment("HOLDFAST_USER") : options.user;
  settings.password =
      options.password_file.empty() ? environment("HOLDFAST_PASSWORD") : read_password(options.password_file);
  settings.sentinel.password = environment("HOLDFAST_SENTINEL_PASSWORD");
  return settings;
}

std::string without_secrets(std::string text, const std::vector<std::string>& arguments) {
  for (const auto& argument : arguments) {
    const auto begin = argument.find("redis");
    if (begin == argument.npos || argument.find("://") == argument.npos) continue;
    const auto url = argument.substr(begin);
    const auto safe = shown(redacted(url)), bare = shown(url);
    for (auto at = text.find(bare); at != text.npos; at = text.find(bare, at + safe.size()))
      text.replace(at, bare.size(), safe);
  }
  return text;
}

void check(const lock_options_given& wanted, const config& settings) {
  if (wanted.fenced && (wanted.simple || wanted.red || of_several(settings)))
    throw usage_error("--fenced goes with neither --simple nor --red");
  if (wanted.fair && (wanted.fenced || wanted.simple || wanted.red || of_several(settings)))
    throw usage_error("--fair goes with no other kind, and with one server");
  if (wanted.permits > 0 && (wanted.fenced || wanted.simple || wanted.fair || wanted.red || of_several(settings)))
    throw usage_error("--permits goes with no other kind, and with one server");
  if (wanted.shared && wanted.exclusive) throw usage_error("--shared reads, and --exclusive writes: give one of them");
  if ((wanted.shared || wanted.exclusive) &&
      (wanted.fenced || wanted.simple || wanted.fair || wanted.red || wanted.permits > 0 || of_several(settings)))
    throw usage_error("--shared and --exclusive go with no other kind, and with one server");
  if (wanted.take > 0 && wanted.permits == 0) throw usage_error("--take goes with --permits");
  if (wanted.take > wanted.permits) throw usage_error("--take is at most the number of --permits");
  if (wanted.red && !of_several(settings)) throw usage_error("--red needs an odd number of --url, from 3 to 9");
}

mutex mutex_of(const client& client, const lock_options_given& wanted, const config& settings) {
  check(wanted, settings);
  if (of_several(settings))
    return client.red_lock(wanted.name, wanted.simple ? reentrancy::not_reentrant : reentrancy::reentrant);
  if (wanted.permits > 0) return client.expirable_semaphore(wanted.name, wanted.permits).as_mutex();
  if (wanted.shared) return client.shared_mutex(wanted.name).reader();
  if (wanted.exclusive) return client.shared_mutex(wanted.name).writer();
  if (wanted.simple) return client.simple_mutex(wanted.name);
  if (wanted.fenced) return client.fenced_mutex(wanted.name);
  if (wanted.fair) return client.fair_mutex(wanted.name);
  if (wanted.election) return client.election(wanted.name).candidate({});
  return client.mutex(wanted.name);
}

const char* kind_of(const lock_options_given& wanted, const config& settings) {
  if (of_several(settings)) return "red_lock";
  if (wanted.permits > 0) return "expirable_semaphore";
  if (wanted.shared) return "shared_mutex_reader";
  if (wanted.exclusive) return "shared_mutex";
  if (wanted.simple) return "simple_mutex";
  if (wanted.fair) return "fair_mutex";
  return wanted.fenced ? "fenced_mutex" : "mutex";
}

}  // namespace holdfast::cli

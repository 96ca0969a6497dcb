// SPDX-License-Identifier: BSL-1.0
#include "support/least_rights.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/child_process.hpp"
#include "support/skip.hpp"

namespace holdfast::test::least_rights {
namespace {

using words = std::vector<std::string>;

std::string environment(const char* name) {
  const char* given = std::getenv(name);
  return given != nullptr ? given : "";
}

std::string program() { return environment("HOLDFAST_TEST_ACL"); }

/// redis-cli ACL SETUSER locker on '>PASSWORD' RULE...: no word has a blank.
words rule_of(const std::string& line, const std::string& label) {
  std::istringstream in(line);
  words rule;
  for (std::string word; in >> word;) {
    std::erase(word, '\'');
    rule.push_back(std::move(word));
  }
  if (rule.size() < 7 || rule[5] != ">PASSWORD") throw std::runtime_error("holdfast acl printed: " + line);
  rule.erase(rule.begin(), rule.begin() + 6);
  std::erase_if(rule, [&](const auto& word) { return label + word == environment("HOLDFAST_TEST_ACL_WITHOUT"); });
  return rule;
}

/// The lines for servers and, behind a URL of sentinels, for these.
std::vector<words> print_rules(const std::string& url, const std::string& version) {
  child_process acl({.executable = program(),
                     .argv = {"holdfast", "acl", "--url", url, "--server-version", version, "--fenced", "--simple",
                              "--permits", "--fair", "--shared", "--latch", "--election", "--notes", "--braces"}});
  std::vector<words> rules;
  while (const auto line = acl.read_line(std::chrono::seconds(20)))
    rules.push_back(rule_of(*line, rules.empty() ? "" : "sentinel:"));
  if (acl.wait(std::chrono::seconds(20)) != 0) throw std::runtime_error("holdfast acl failed");
  return rules;
}

}  // namespace

bool in_force() { return !program().empty(); }

void skip_if_in_force(const std::string& reason) {
  if (in_force()) skip("under the printed ACL: " + reason);
}

std::vector<words> users(const std::string& url, bool of_sentinel, const std::string& server_version,
                         const std::string& password) {
  static std::mutex guard;
  static std::map<std::pair<std::string, std::string>, std::vector<words>> printed;
  const std::lock_guard lock(guard);
  auto& rules = printed[{url, server_version}];
  if (rules.empty()) rules = print_rules(url, server_version);
  words user{"default", "on", password.empty() ? "nopass" : '>' + password};
  const auto& rule = rules.at(of_sentinel ? 1 : 0);
  user.insert(user.end(), rule.begin(), rule.end());
  return {{rig_user, "on", std::string(">") + rig_password, "~*", "&*", "+@all"}, std::move(user)};
}

}  // namespace holdfast::test::least_rights

// SPDX-License-Identifier: BSL-1.0
#include "judge.hpp"

#include <algorithm>
#include <stdexcept>

namespace holdfast::demo {
namespace {

constexpr long long many_keys = 100'000;

}  // namespace

server_link& judge::server() {
  if (!link_) throw std::logic_error("the judge has no server to look at");
  return *link_;
}

std::vector<judge::holder> judge::read_holders(const test::value& reply) {
  const auto words = reply.strings();
  std::vector<holder> all;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) all.push_back({words[i], std::stoll(words[i + 1])});
  return all;
}

std::optional<milliseconds> judge::ttl(const std::string& lock) {
  if (!link_) return std::nullopt;
  const auto left = server()("PTTL", lock).integer();
  if (left == -2) return std::nullopt;
  return milliseconds(left);
}

std::optional<judge::end_of_key> judge::end_of(const std::string& lock) {
  const auto before = steady_clock::now();
  const auto left = ttl(lock);
  const auto after = steady_clock::now();
  if (!left) return std::nullopt;
  return end_of_key{before + *left - milliseconds(1), after + *left + milliseconds(1)};
}

long long judge::subscribers(const std::string& lock) {
  return server()("PUBSUB", "NUMSUB", channel_of(lock)).array().at(1).integer();
}

std::vector<std::string> judge::channels_with(const std::string& part) {
  return server()("PUBSUB", "CHANNELS", "*" + part + "*").strings();
}

std::vector<std::string> judge::keys_with(const std::string& part, const std::vector<std::string>& known) {
  std::vector<std::string> all;
  if (server()("DBSIZE").integer() > many_keys) {
    std::copy_if(known.begin(), known.end(), std::back_inserter(all), [&](const auto& key) { return exists(key); });
    return all;
  }
  std::string cursor = "0";
  do {
    const auto reply = server()("SCAN", cursor, "MATCH", "*" + part + "*", "COUNT", 1000);
    for (auto& key : reply.array().at(1).strings()) all.push_back(std::move(key));
    cursor = reply.array().at(0).text;
  } while (cursor != "0");
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool judge::check(bool ok, std::string expected, std::string seen) {
  if (!ok) problems_.emplace_back(std::move(expected), std::move(seen));
  return ok;
}

void judge::verdict(const std::string& text) {
  shown_.verdict(problems_.empty(), problems_.empty() ? text : counted(problems_.size(), "thing") + " went wrong");
  for (const auto& [expected, seen] : problems_) shown_.problem(expected, seen);
  if (!problems_.empty()) ++failed_scenes_;
  problems_.clear();
}

std::string to_string(const std::vector<judge::holder>& holders) {
  if (holders.empty()) return "nobody";
  std::string all;
  for (const auto& [field, count] : holders) {
    const auto colon = std::min(field.find(':'), field.size());
    all += (all.empty() ? "" : ", ") + field.substr(0, 4) + "…" + field.substr(colon) + " = " + std::to_string(count);
  }
  return all;
}

}  // namespace holdfast::demo

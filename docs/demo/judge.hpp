// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server_link.hpp"
#include "timeline.hpp"

namespace holdfast::demo {

/// Reads what is true from the server itself, and keeps account of what was expected and not found.
class judge {
 public:
  struct holder {
    std::string field;
    long long count = 0;
    friend bool operator==(const holder&, const holder&) = default;
  };
  /// When a key ends, by PTTL and this machine's clock: between these two.
  struct end_of_key {
    steady_clock::time_point earliest, latest;
  };

  judge(timeline& shown, const std::string& url, std::string folder) : shown_(shown), folder_(std::move(folder)) {
    look_at(url);
  }

  /// From now on all is read from that server.
  void look_at(const std::string& url) { link_.emplace(url, folder_); }
  /// There is no server to look at, until the next look_at().
  void look_away() { link_.reset(); }

  std::vector<holder> holders(const std::string& lock) { return read_holders(server()("HGETALL", lock)); }
  std::optional<milliseconds> ttl(const std::string& lock);  ///< nothing: no such key, or no server to look at
  std::optional<end_of_key> end_of(const std::string& lock);
  bool exists(const std::string& lock) { return server()("EXISTS", lock) == 1; }
  long long subscribers(const std::string& lock);
  std::vector<std::string> channels_with(const std::string& part);
  /// Of a database with very many keys only `known` are looked at.
  std::vector<std::string> keys_with(const std::string& part, const std::vector<std::string>& known);
  void remove(const std::string& lock) { server()("DEL", lock); }

  /// Returns `ok`. What was wrong is shown with the scene's verdict.
  bool check(bool ok, std::string expected, std::string seen);
  /// Ends a scene: "ok: text", or what was wrong.
  void verdict(const std::string& text);
  int failed_scenes() const noexcept { return failed_scenes_; }

 private:
  server_link& server();
  static std::vector<holder> read_holders(const test::value& reply);

  timeline& shown_;
  const std::string folder_;
  std::optional<server_link> link_;
  std::vector<std::pair<std::string, std::string>> problems_;
  int failed_scenes_ = 0;
};

/// "71d2…:1 → 2": who holds how often; "nobody".
std::string to_string(const std::vector<judge::holder>& holders);

}  // namespace holdfast::demo

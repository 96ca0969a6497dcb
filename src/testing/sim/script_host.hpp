// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "redis/resp.hpp"
#include "testing/sim/commands.hpp"

struct lua_State;

namespace holdfast::sim {

/// Runs scripts on Lua 5.1 as Redis 7 does: KEYS, ARGV, redis.call, pcall, error_reply, status_reply, sha1hex, and
/// Redis' conversions between RESP and Lua.
class script_host {
 public:
  /// `call` runs what a script calls.
  using caller = std::function<reply(const arguments&)>;
  explicit script_host(caller call);

  /// The script's digest; from now on it is known. `failure` is Redis' answer to a text that does not compile.
  std::string load(const std::string& body, std::string& failure);
  bool knows(std::string_view digest) const { return scripts_.contains(digest); }
  /// False: there was none.
  bool forget_all();
  /// Of a known script.
  reply run(std::string_view digest, std::span<const std::string> keys, std::span<const std::string> args);

 private:
  static int on_call(lua_State*);
  static int on_pcall(lua_State*);
  int call(bool protect);

  struct closer {
    void operator()(lua_State*) const;
  };
  caller call_;
  std::unique_ptr<lua_State, closer> lua_;
  std::map<std::string, int, std::less<>> scripts_;  // digest → reference of its function
};

}  // namespace holdfast::sim

// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/script_host.hpp"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "testing/sim/sha1.hpp"

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
}

namespace holdfast::sim {
namespace {

using kind = reply::kind;

constexpr int deepest_reply = 16;
/// Whose answers these are.
constexpr std::string_view version_text = "7.0.15";
constexpr int version_number = 0x07000f;

void push(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

void push_table(lua_State* lua, const char* field, std::string_view text) {
  lua_createtable(lua, 0, 1);
  push(lua, text);
  lua_setfield(lua, -2, field);
}

void push_reply(lua_State* lua, const reply& reply) {
  switch (reply.type) {
    case kind::nil: return lua_pushboolean(lua, 0);
    case kind::integer: return lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
    case kind::string: return push(lua, reply.text);
    case kind::status: return push_table(lua, "ok", reply.text);
    case kind::error: return push_table(lua, "err", reply.text);
    case kind::array: break;
  }
  lua_createtable(lua, static_cast<int>(reply.elements.size()), 0);
  for (std::size_t i = 0; i < reply.elements.size(); ++i) {
    push_reply(lua, reply.elements[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

std::string text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* bytes = lua_tolstring(lua, index, &size);
  return {bytes, size};
}

/// The text of a field of the table at the top, if it is one.
bool text_field(lua_State* lua, const char* name, std::string& out) {
  lua_getfield(lua, -1, name);
  const bool there = lua_type(lua, -1) == LUA_TSTRING;
  if (there) out = text_at(lua, -1);
  lua_pop(lua, 1);
  return there;
}

/// The value at the top as Redis sends it; stays there.
reply to_reply(lua_State* lua, int depth = 0) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: return string_reply(text_at(lua, -1));
    case LUA_TBOOLEAN: return lua_toboolean(lua, -1) ? integer_reply(1) : reply{};
    case LUA_TNUMBER: return integer_reply(static_cast<long long>(lua_tonumber(lua, -1)));
    case LUA_TTABLE: break;
    default: return {};
  }
  if (depth > deepest_reply) return error_reply("ERR reached lua stack limit");
  std::string text;
  if (text_field(lua, "err", text)) return error_reply(std::move(text));
  if (text_field(lua, "ok", text)) return status_reply(std::move(text));
  reply all{kind::array, 0, {}, {}};
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    all.elements.push_back(to_reply(lua, depth + 1));
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return all;
}

std::string as_argument(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TNUMBER) return text_at(lua, index);
  std::array<char, 64> digits;
  std::snprintf(digits.data(), digits.size(), "%.17g", lua_tonumber(lua, index));
  return digits.data();
}

void set_words(lua_State* lua, const char* global, std::span<const std::string> words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  for (std::size_t i = 0; i < words.size(); ++i) {
    push(lua, words[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
  lua_setglobal(lua, global);
}

int single_field(lua_State* lua, const char* field) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    push_table(lua, "err", "ERR wrong number or type of arguments");
    return 1;
  }
  auto text = text_at(lua, 1);
  if (text.starts_with('-')) text.erase(0, 1);
  push_table(lua, field, text);
  return 1;
}

int on_error_reply(lua_State* lua) { return single_field(lua, "err"); }
int on_status_reply(lua_State* lua) { return single_field(lua, "ok"); }

int on_sha1hex(lua_State* lua) {
  push(lua, sha1_of(as_argument(lua, 1)));
  return 1;
}

/// Notes the line of the script at which it failed; what was raised stays as it is.
int on_failure(lua_State* lua) {
  lua_Debug at;
  for (int level = 1; lua_getstack(lua, level, &at) == 1; ++level) {
    lua_getinfo(lua, "Sl", &at);
    if (std::string_view(at.what) == "C") continue;
    *static_cast<int*>(lua_touserdata(lua, lua_upvalueindex(1))) = at.currentline;
    break;
  }
  return 1;
}

script_host& self(lua_State* lua) { return *static_cast<script_host*>(lua_touserdata(lua, lua_upvalueindex(1))); }

}  // namespace

void script_host::closer::operator()(lua_State* lua) const { lua_close(lua); }

script_host::script_host(caller call) : call_(std::move(call)), lua_(luaL_newstate()) {
  auto* lua = lua_.get();
  for (const auto open : {luaopen_base, luaopen_string, luaopen_table, luaopen_math}) {
    lua_pushcfunction(lua, open);
    lua_call(lua, 0, 0);
  }
  lua_createtable(lua, 0, 7);
  const auto define = [&](const char* name, lua_CFunction function) {
    lua_pushlightuserdata(lua, this);
    lua_pushcclosure(lua, function, 1);
    lua_setfield(lua, -2, name);
  };
  define("call", on_call);
  define("pcall", on_pcall);
  define("error_reply", on_error_reply);
  define("status_reply", on_status_reply);
  define("sha1hex", on_sha1hex);
  push(lua, version_text);
  lua_setfield(lua, -2, "REDIS_VERSION");
  lua_pushnumber(lua, version_number);
  lua_setfield(lua, -2, "REDIS_VERSION_NUM");
  lua_setglobal(lua, "redis");
}

std::string script_host::load(const std::string& body, std::string& failure) {
  auto digest = sha1_of(body);
  if (knows(digest)) return digest;
  if (luaL_loadbuffer(lua_.get(), body.data(), body.size(), "@user_script") != 0) {
    failure = "ERR Error compiling script (new function): " + text_at(lua_.get(), -1);
    lua_pop(lua_.get(), 1);
    return digest;
  }
  scripts_.emplace(digest, luaL_ref(lua_.get(), LUA_REGISTRYINDEX));
  return digest;
}

bool script_host::forget_all() {
  const auto forgotten = std::exchange(scripts_, {});
  for (const auto& [digest, function] : forgotten) luaL_unref(lua_.get(), LUA_REGISTRYINDEX, function);
  return !forgotten.empty();
}

reply script_host::run(std::string_view digest, std::span<const std::string> keys, std::span<const std::string> args) {
  auto* lua = lua_.get();
  set_words(lua, "KEYS", keys);
  set_words(lua, "ARGV", args);
  int line = 0;
  lua_pushlightuserdata(lua, &line);
  lua_pushcclosure(lua, on_failure, 1);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, scripts_.find(digest)->second);
  const bool failed = lua_pcall(lua, 0, 1, -2) != 0;
  auto answer = to_reply(lua);
  lua_pop(lua, 2);
  if (!failed) return answer;
  const auto cause = answer.is_error() ? answer.text : "ERR " + answer.text;
  return error_reply(cause + " script: " + std::string(digest) + ", on @user_script:" + std::to_string(line) + ".");
}

int script_host::on_call(lua_State* lua) {
  const int results = self(lua).call(false);
  return results == 0 ? lua_error(lua) : results;
}

int script_host::on_pcall(lua_State* lua) {
  const int results = self(lua).call(true);
  return results == 0 ? 1 : results;
}

// The answer is on top; 0 instead of 1 says that it is an error, to be raised where nothing of C++ is left to be
// unwound.
int script_host::call(bool protect) {
  auto* lua = lua_.get();
  const auto answer = [&]() -> reply {
    const int count = lua_gettop(lua);
    if (count == 0) return error_reply("ERR Please specify at least one argument for this redis.call() call");
    arguments words;
    for (int i = 1; i <= count; ++i) {
      const int type = lua_type(lua, i);
      if (type != LUA_TSTRING && type != LUA_TNUMBER)
        return error_reply("ERR Lua redis lib command arguments must be strings or integers");
      words.push_back(as_argument(lua, i));
    }
    const auto name = lower(words.front());
    if (!is_data_command(name)) return error_reply("ERR Unknown Redis command called from script");
    auto reply = call_(words);
    if (reply.is_error() && reply.text.starts_with("ERR wrong number of arguments"))
      return error_reply("ERR Wrong number of args calling Redis command from script");
    return reply;
  }();
  push_reply(lua, answer);
  return answer.is_error() && !protect ? 0 : 1;
}

}  // namespace holdfast::sim

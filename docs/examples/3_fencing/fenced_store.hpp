// SPDX-License-Identifier: BSL-1.0
#pragma once
// A resource in Redis that checks fencing tokens: what a client of any kind does with fenced_task.lua.
#include <hiredis/hiredis.h>

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

class fenced_store {
 public:
  using command = std::vector<std::string>;

  /// `url`: redis+unix:///path/of/the/socket
  explicit fenced_store(const std::string& url)
      : redis_(redisConnectUnix(url.substr(std::string_view("redis+unix://").size()).c_str()), redisFree) {
    if (!redis_ || redis_->err) throw std::runtime_error("no connection to the store");
    std::ostringstream text;
    text << std::ifstream(FENCED_TASK_LUA).rdbuf();  // installed as share/holdfast/fencing/fenced_task.lua
    script_ = text.str();
  }

  /// Does the whole task in one step, or nothing: false when a newer holder was here.
  bool run(std::uint64_t token, std::initializer_list<command> task) {
    command eval{"EVAL", script_, "2", "balance:fence", "balance", std::to_string(token)};
    for (const auto& one : task) {
      eval.push_back(std::to_string(one.size()));
      eval.insert(eval.end(), one.begin(), one.end());
    }
    return send(eval)->element[0]->integer == 1;
  }

  /// One plain command: nobody checks who sends it.
  std::string run_unfenced(const command& one) {
    const auto r = send(one);
    return r->type == REDIS_REPLY_INTEGER ? std::to_string(r->integer) : r->str ? std::string(r->str, r->len) : "";
  }

 private:
  using reply = std::unique_ptr<redisReply, void (*)(void*)>;

  reply send(const command& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& w : words) {
      texts.push_back(w.data());
      sizes.push_back(w.size());
    }
    auto* raw = redisCommandArgv(redis_.get(), static_cast<int>(words.size()), texts.data(), sizes.data());
    reply r(static_cast<redisReply*>(raw), freeReplyObject);
    if (!r) throw std::runtime_error("the store does not answer");
    if (r->type == REDIS_REPLY_ERROR) throw std::runtime_error(std::string(r->str, r->len));
    return r;
  }

  std::unique_ptr<redisContext, void (*)(redisContext*)> redis_;
  std::string script_;
};

// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <iostream>
#include <string>
#include <string_view>

#include "../3_fencing/process.hpp"
#include "support/raw_client.hpp"

/// What the stories of this folder have in common: a server that is spoken to in plain commands.
struct plain_redis : holdfast::test::raw_client {
  /// `url`: redis+unix:///path/of/the/socket
  explicit plain_redis(const std::string& url) : raw_client(url.substr(std::string_view("redis+unix://").size())) {}

  /// What the server does by itself when the TTL of a key is over: the story need not wait for it.
  void expire(std::string_view key) { (*this)("PEXPIREAT", key, 1); }
};

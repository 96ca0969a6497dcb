// SPDX-License-Identifier: BSL-1.0
#include "protocol/keys.hpp"

#include "protocol/kind.hpp"
#include "support/catch.hpp"

using namespace holdfast::detail;

TEST_CASE("keys and channels are Redisson's") {
  CHECK(lock_keys(plain_lock, "orders:42").lock == "orders:42");
  CHECK(channel_of(lock_keys(plain_lock, "orders:42")) == "redisson_lock__channel:{orders:42}");
  CHECK(token_key(lock_keys(plain_lock, "orders:42", "p:")) == "redisson_lock_token:{p:orders:42}");
  CHECK(token_key(lock_keys(plain_lock, "{orders}:42")) == "redisson_lock_token:{orders}:42");
  CHECK(lock_keys(plain_lock, "orders:42", "p:").name == "orders:42");
  CHECK(lock_keys(plain_lock, "{orders}:42").lock == "{orders}:42");
  CHECK(channel_of(lock_keys(plain_lock, "{orders}:42")) == "redisson_lock__channel:{orders}:42");
}

TEST_CASE("any opening brace keeps a channel from getting braces of its own") {
  CHECK(channel_of(lock_keys(plain_lock, "a{")) == "redisson_lock__channel:a{");
  CHECK(channel_of(lock_keys(plain_lock, "{}a")) == "redisson_lock__channel:{}a");
  CHECK(channel_of(lock_keys(plain_lock, "a}")) == "redisson_lock__channel:{a}}");
}

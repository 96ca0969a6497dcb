// SPDX-License-Identifier: BSL-1.0
#include "redis/error_replies.hpp"

#include <cstddef>

#include "support/catch.hpp"
#include "support/no_memory.hpp"
#include "support/replies.hpp"
#include "support/skip.hpp"

using namespace holdfast;
using namespace holdfast::test;
using redis::classify;

TEST_CASE("what redis refuses means the same whoever has asked") {
  for (const auto otherwise : {errc::server_refused, errc::protocol_error}) {
    CHECK(classify("NOAUTH Authentication required.", otherwise).code == errc::auth_failed);
    CHECK(classify("DENIED Redis is running in protected mode", otherwise).code == errc::no_permission);
    CHECK(classify("READONLY You can't write against a read only replica.", otherwise).code == errc::not_primary);
    CHECK(classify("ERR max number of clients reached", otherwise).code == errc::server_refused);
    CHECK(classify("ERR unknown command 'ROLE'", otherwise).code == errc::protocol_error);
  }
}

TEST_CASE("words that nobody knows mean what the asker says") {
  for (const auto* words : {"ERR something new", "", "-", "OUCH"}) {
    CHECK(classify(words, errc::server_refused).code == errc::server_refused);
    CHECK(classify(words, errc::protocol_error).code == errc::protocol_error);
  }
}

TEST_CASE("words without end are cut, and no longer for what they mean") {
  for (const auto* begins : {"MOVED", "WRONGTYPE", "whatever"}) {
    const auto said = classify(begins + std::string(1'000, '\xff'), errc::server_refused);
    CHECK(said.detail.size() <= 1'000);
    CHECK(said.detail.ends_with("…"));
  }
}

TEST_CASE("a server that cannot serve yet shows no work") {
  namespace replies = test::replies;
  CHECK(redis::shows_work(replies::ok()));
  CHECK(redis::shows_work(replies::error("WRONGTYPE Operation against a key")));
  CHECK(redis::shows_work(replies::error("TRYAGAIN Multiple keys request during rehashing of slot")));
  CHECK_FALSE(redis::shows_work(replies::error("LOADING Redis is loading the dataset in memory")));
}

TEST_CASE("whether an answer shows a server at work is seen without memory") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  const auto unknown_script = replies::error("NOSCRIPT No matching script. Please use EVAL.");
  const auto loading = replies::error("LOADING Redis is loading the dataset in memory, and so on");
  bool works = false, waits = true, allocated = true;
  {
    const failing_allocations none(0, std::size_t(-1));
    works = redis::shows_work(unknown_script);
    waits = redis::shows_work(loading);
    allocated = none.happened();
  }
  CHECK(works);
  CHECK_FALSE(waits);
  CHECK_FALSE(allocated);
}

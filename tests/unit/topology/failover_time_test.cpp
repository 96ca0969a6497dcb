// SPDX-License-Identifier: BSL-1.0
#include "topology/failover_time.hpp"

#include <optional>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using namespace holdfast::test;
using namespace std::chrono_literals;

TEST_CASE("a TTL outlives a failover from 1.6 times its duration on") {
  CHECK_FALSE(shorter_than(sentinel_failover, 1s, 5'280ms));
  CHECK(shorter_than(sentinel_failover, 1s, 5'279ms) ==
        "a TTL of 5279 ms may end during a failover: 1.6 * (down-after-milliseconds 1000 + 2300) = 5280 ms");
  CHECK(shorter_than(sentinel_failover, 30s, 30s));
  CHECK_FALSE(shorter_than(sentinel_failover, 30s, 52s));
  CHECK(shorter_than(sentinel_failover, std::chrono::milliseconds(2'147'483'647), 24h));
  CHECK_FALSE(shorter_than(cluster_failover, 15s, 30s));
  CHECK(shorter_than(cluster_failover, 15s, 29s) ==
        "a TTL of 29000 ms may end during a failover: 1.6 * (cluster-node-timeout 15000 + 3700) = 29920 ms");
}

TEST_CASE("only a number of milliseconds is taken for a node timeout") {
  std::optional<std::chrono::milliseconds> told;
  node_timeout_question question([&](std::chrono::milliseconds value) { told = value; });
  std::string bytes;
  question.append_to(bytes);
  CHECK(bytes == "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$20\r\ncluster-node-timeout\r\n");

  const auto answer = [](std::string value) {
    return replies::array({replies::string("cluster-node-timeout"), replies::string(std::move(value))});
  };
  for (const auto& useless :
       {replies::error("NOPERM this user has no permissions to run the 'config|get' command"), replies::nil(),
        replies::array({}), replies::array({replies::string("cluster-node-timeout")}), answer(""), answer("15s"),
        answer("-1"), answer("99999999999999999999"),
        replies::array({replies::string("cluster-node-timeout"), replies::array({})})})
    question.answered({{}, useless, {}});
  question.answered({errc::unreachable, {}, "gone"});
  CHECK_FALSE(told);
  question.answered({{}, answer("15000"), {}});
  CHECK(told == 15s);
}

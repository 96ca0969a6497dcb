// SPDX-License-Identifier: BSL-1.0
#include "cli/server/diagnosis.hpp"

#include "support/catch.hpp"

using namespace holdfast::cli;
using namespace std::chrono_literals;

TEST_CASE("the lag of replicas is that of the slowest") {
  CHECK(replica_lag(info_text("role:master\r\nconnected_slaves:0\r\n")) == 0s);
  CHECK(replica_lag(info_text("connected_slaves:2\r\n"
                              "slave0:ip=10.0.0.8,port=6379,state=online,offset=70,lag=3\r\n"
                              "slave1:ip=10.0.0.9,port=6379,state=online,offset=98,lag=1\r\n")) == 3s);
  CHECK(replica_lag(info_text("connected_slaves:1\r\nslave0:ip=10.0.0.8,port=6379,state=wait_bgsave\r\n")) == 0s);
}

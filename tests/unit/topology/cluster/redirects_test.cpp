// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/redirects.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "support/catch.hpp"

using namespace holdfast;
using namespace holdfast::detail;
using namespace std::chrono_literals;
using redis::address;
using kind = redirects::step::kind;

namespace {

address at(std::string host, int port) { return {std::move(host), static_cast<std::uint16_t>(port), {}}; }

const address sender = at("10.0.0.1", 7000), b = at("10.0.0.2", 7001), c = at("10.0.0.3", 7002);

/// One command, on a clock that the test moves.
struct fixture {
  redirects::step answer(std::string_view error, const address& by = sender) {
    return policy.on_reply({redis::reply::kind::error, 0, std::string(error), {}}, by, {}, now);
  }

  redirects policy;
  time_point now{};
};

}  // namespace

TEST_CASE("a redirect names a slot and an address") {
  const auto read = [](std::string_view error) { return read_redirect(error, sender, {}); };
  const auto moved = read("MOVED 3999 10.0.0.2:7001");
  REQUIRE(moved);
  CHECK(moved->type == redirect::kind::moved);
  CHECK(moved->slot == 3999);
  CHECK(moved->to == b);
  CHECK(read("ASK 5 ::1:7001")->type == redirect::kind::ask);
  CHECK(read("ASK 5 ::1:7001")->to == at("::1", 7001));
  CHECK(read("MOVED 1 :7001")->to == at("10.0.0.1", 7001));
  CHECK(read("MOVED 16383 node-1.example:1")->to == at("node-1.example", 1));
  const auto reach = [](const address&) { return at("localhost", 17001); };
  CHECK(read_redirect("MOVED 1 10.0.0.2:7001", sender, reach)->to == at("localhost", 17001));
}

TEST_CASE("a redirect that leads nowhere is none") {
  for (const auto* error : {"MOVED 16384 h:1", "MOVED -1 h:1", "MOVED 1 h:0", "MOVED 1 h:65536", "MOVED 1 ?:7001",
                            "MOVED 1 h", "MOVED 1", "MOVED ", "MOVED", "MOVED x h:1", "MOVED 1 a b:1",
                            "ASK 1 h:", "MOVED  h:1", "MOVED 99999999999999999999 h:1", "ERR MOVED 1 h:1"})
    CHECK_FALSE(read_redirect(error, sender, {}));
}

TEST_CASE_METHOD(fixture, "a MOVED is followed at once, by the map, which is asked for") {
  const auto s = answer("MOVED 1 10.0.0.2:7001");
  CHECK(s.type == kind::by_map);
  CHECK(s.pause == 0ms);
  CHECK(s.refresh);
  REQUIRE(s.moved);
  CHECK(s.moved->to == b);
}

TEST_CASE_METHOD(fixture, "the first MOVED after any number of ASK is followed at once, and a second is not") {
  for (int i = 0; i < 20; ++i) (void)answer("ASK 1 10.0.0.2:7001");
  CHECK(answer("MOVED 1 10.0.0.2:7001").pause == 0ms);
  CHECK(answer("MOVED 1 10.0.0.1:7000", b).pause == 100ms);
}

TEST_CASE_METHOD(fixture, "a MOVED to the sender pauses before it is followed") {
  const auto s = answer("MOVED 1 10.0.0.1:7000");
  CHECK(s.type == kind::by_map);
  CHECK(s.pause == 2ms);
}

TEST_CASE_METHOD(fixture, "nodes that send us to each other for ever cost ten commands in a second") {
  CHECK(answer("MOVED 1 10.0.0.2:7001").pause == 0ms);
  CHECK(answer("MOVED 1 10.0.0.1:7000", b).pause == 2ms);
  CHECK(answer("MOVED 1 10.0.0.2:7001").pause == 4ms);
  CHECK(answer("MOVED 1 10.0.0.1:7000", b).pause == 8ms);
  CHECK(answer("MOVED 1 10.0.0.2:7001").pause == 16ms);
  for (int i = 0; i < 20; ++i) CHECK(answer("MOVED 1 10.0.0.1:7000", b).pause == 100ms);
}

TEST_CASE_METHOD(fixture, "an ASK is followed with ASKING, and says nothing of the map") {
  const auto s = answer("ASK 1 10.0.0.2:7001");
  CHECK(s.type == kind::to_named);
  CHECK(s.to == b);
  CHECK(s.asking);
  CHECK(s.pause == 0ms);
  CHECK_FALSE(s.refresh);
  CHECK_FALSE(s.moved);
}

TEST_CASE_METHOD(fixture,
                 "a stale map and a slot that moves away are followed without a pause, not an ASK to the sender") {
  CHECK(answer("MOVED 1 10.0.0.2:7001").pause == 0ms);
  CHECK(answer("ASK 1 10.0.0.3:7002", b).pause == 0ms);
  CHECK(answer("ASK 1 10.0.0.2:7001", c).pause == 2ms);
  CHECK(fixture().answer("ASK 1 10.0.0.1:7000").pause == 2ms);
}

TEST_CASE_METHOD(fixture, "TRYAGAIN is tried again at the same node, with pauses that grow") {
  auto pause = 2ms;
  for (int i = 0; i < 12; ++i) {
    const auto s = answer("TRYAGAIN Multiple keys request during rehashing of slot");
    CHECK(s.type == kind::same_node);
    CHECK_FALSE(s.refresh);
    CHECK(s.pause == pause);
    pause = std::min(2 * pause, 100ms);
  }
}

TEST_CASE_METHOD(fixture, "TRYAGAIN is an answer to whoever can ask for each key by itself") {
  policy = redirects(true);
  CHECK(answer("TRYAGAIN Multiple keys request during rehashing of slot").type == kind::deliver);
  CHECK(answer("CLUSTERDOWN x").type == kind::by_map);
}

TEST_CASE_METHOD(fixture,
                 "a named node that cannot be reached sends a command back to the map, which is asked for anew") {
  CHECK(answer("ASK 5 10.0.0.2:7001").type == kind::to_named);
  const auto lost = policy.on_named_lost();
  CHECK(lost.type == kind::by_map);
  CHECK(lost.refresh);
  CHECK(lost.pause == 2ms);
}

TEST_CASE_METHOD(fixture, "TRYAGAIN has a bound of its own") {
  CHECK(answer("TRYAGAIN x").type == kind::same_node);
  now += 900ms;
  CHECK(answer("TRYAGAIN x").type == kind::same_node);
  SECTION("it is over") {
    now += 100ms;
    CHECK(answer("TRYAGAIN x").type == kind::deliver);
  }
  SECTION("another answer begins it anew") {
    CHECK(answer("ASK 1 10.0.0.2:7001").type == kind::to_named);
    now += 900ms;
    CHECK(answer("TRYAGAIN x", b).type == kind::same_node);
  }
}

TEST_CASE_METHOD(fixture, "a node that does not serve now is asked again, by a newer map") {
  const auto* error =
      GENERATE("CLUSTERDOWN The cluster is down", "READONLY You can't write against a read only replica.",
               "LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down",
               "ERR Error running script (call to f_x): @user_script:1: -READONLY You can't write against a replica.",
               "ERR Script attempted to access a non local key in a cluster node", "MOVED 1 ?:7001",
               "MOVED 16384 10.0.0.2:7001", "ASK 1 h:0");
  for (const auto pause : {2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 100ms, 100ms}) {
    const auto s = answer(error);
    CHECK(s.type == kind::by_map);
    CHECK(s.refresh);
    CHECK_FALSE(s.moved);
    CHECK(s.pause == pause);
  }
}

TEST_CASE_METHOD(fixture, "every other answer is delivered") {
  for (const auto* error : {"NOSCRIPT No matching script", "CROSSSLOT Keys in request don't hash to the same slot",
                            "WRONGTYPE x", "OOM x", "ERR x", "ASKED 1 h:1", "MOVED", ""})
    CHECK(answer(error).type == kind::deliver);
  CHECK(policy.on_reply({redis::reply::kind::string, 0, "MOVED 1 h:1", {}}, sender, {}, now).type == kind::deliver);
}

// SPDX-License-Identifier: BSL-1.0
// Measurements of a connection and its commands in flight, against a server that the test plays itself.
#include <holdfast/metrics.hpp>

#include <memory>
#include <string>

#include "integration/redis_rig.hpp"
#include "redis/connection.hpp"
#include "support/catch.hpp"
#include "support/prometheus_text.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using measure = measurement_kind;

namespace {

/// Adds up what it is told, and hands it on to the metrics.
struct adding final : observer {
  metrics numbers;
  std::int64_t in_flight = 0, left_over = 0;
  std::uint64_t number = 0;

  void measured(const measurement& m) noexcept override {
    if (m.kind == measure::connection_up) number = m.connection->number;
    if (m.kind == measure::in_flight) in_flight += m.count;
    if (m.kind == measure::connection_down) left_over += in_flight;
    numbers.measured(m);
  }
};

/// A server that lets clients in and then is silent, except for what the test sends.
struct fixture : redis_rig {
  fixture() {
    auto given = services();
    given.counts = told;
    c = std::make_shared<redis::connection>(given, unix_endpoint(server.path()), nullptr);
  }
  ~fixture() { c->close(); }

  std::string sample(const std::string& of) const {
    return of + R"({role="command",node=")" + unix_endpoint(server.path()).to_string() + "\"}";
  }
  bool in_flight(int n) const {
    return told->in_flight == n && prometheus_text(told->numbers)[sample("holdfast_connection_in_flight")] == n;
  }
  bool connections(int n) const { return prometheus_text(told->numbers)[sample("holdfast_connections")] == n; }
  answer_ptr ping(milliseconds timeout = 20s) { return send(*c, {"PING"}, timeout); }

  const std::shared_ptr<adding> told = std::make_shared<adding>();
  scripted_server server{io, [](std::string_view bytes, std::size_t n) -> std::string {
                           if (bytes.find("ROLE") != bytes.npos)
                             return scripted_server::greeting(static_cast<int>(n) + 1);
                           return bytes.find("KILL") != bytes.npos ? ":1\r\n" : "";
                         }};
  std::shared_ptr<redis::connection> c;
};

}  // namespace

TEST_CASE_METHOD(fixture, "commands in flight are counted number by number, and a connection that is lost has none") {
  const auto one = ping(), two = ping(), three = ping();
  CHECK(in_flight(0));  // nothing was written
  REQUIRE(until([&] { return in_flight(3); }));
  server.send("+PONG\r\n");
  REQUIRE(until([&] { return one->times == 1; }));
  CHECK(in_flight(2));
  const auto four = ping();
  REQUIRE(until([&] { return in_flight(3); }));
  server.send("+PONG\r\n-ERR\r\n");
  REQUIRE(until([&] { return three->times == 1; }));
  CHECK(in_flight(1));

  SECTION("the server ends it") {
    const auto before = told->number;
    server.close(0);
    REQUIRE(until([&] { return four->times == 1; }));
    CHECK(four->has(errc::unconfirmed));
    CHECK((in_flight(0) && connections(0)));
    const auto five = ping();
    REQUIRE(until([&] { return in_flight(1); }));
    CHECK((connections(1) && told->number > before));
    server.send("+PONG\r\n");
    REQUIRE(until([&] { return five->times == 1; }));
    CHECK(in_flight(0));
  }
  SECTION("its client ends it") {
    c->close();
    CHECK((in_flight(0) && connections(0)));
  }
  SECTION("it is given up for its silence") {
    server.send("+PONG\r\n");
    REQUIRE(until([&] { return four->times == 1; }));
    const auto five = ping(20ms);
    REQUIRE(until([&] { return five->times == 1 && connections(0); }));
    CHECK(in_flight(0));
  }
  CHECK(told->left_over == 0);
}

TEST_CASE_METHOD(fixture, "a command whose sender has given it up is in flight until its answer comes") {
  const auto patient = ping(), hasty = ping(30ms);
  REQUIRE(until([&] { return hasty->times == 1; }));
  CHECK(in_flight(2));
  server.send("+PONG\r\n+PONG\r\n");
  REQUIRE(until([&] { return patient->times == 1; }));
  CHECK((in_flight(0) && connections(1)));
}

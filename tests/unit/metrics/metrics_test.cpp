// SPDX-License-Identifier: BSL-1.0
#include <holdfast/metrics.hpp>

#include <array>
#include <iomanip>
#include <locale>
#include <set>
#include <thread>

#include "metrics/label.hpp"
#include "metrics/text_format.hpp"
#include "support/no_memory.hpp"
#include "support/prometheus_text.hpp"
#include "support/skip.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using measure = measurement_kind;
using detail::label_of;
using detail::text_format;

namespace {

/// What is held, by the ids of the holds: knows nothing of numbers. Hands all on to the metrics.
struct ledger final : observer {
  std::shared_ptr<metrics> numbers = std::make_shared<metrics>();
  std::set<std::string> held;
  bool sound = true;

  void on(const event& e) noexcept override {
    if (e.kind == kind::acquired) sound = sound && held.emplace(e.id).second;
    if (ends_hold(e.kind)) sound = sound && held.erase(std::string(e.id)) == 1;
    numbers->on(e);
  }
  void measured(const measurement& m) noexcept override { numbers->measured(m); }
};

struct counted : engine_fixture {
  explicit counted(config c = config()) : engine_fixture(std::move(c)) {
    settings.observer = book;
    play();
  }
  double operator[](const std::string& series) const { return prometheus_text(*book->numbers)[series]; }
  /// By the metrics, and by the ids.
  bool held(std::size_t n, const std::string& of = "mutex") const {
    return book->sound && book->held.size() == n && (*this)["holdfast_lock_held{kind=\"" + of + "\"}"] == double(n);
  }
  bool waiters(int n) const { return (*this)[R"(holdfast_lock_waiters{kind="mutex"})"] == n; }
  int calls(const std::string& outcome) const {
    return int((*this)["holdfast_lock_wait_duration_seconds_count{kind=\"mutex\",outcome=\"" + outcome + "\"}"]);
  }
  int holds(const std::string& end) const {
    return int((*this)["holdfast_lock_hold_duration_seconds_count{kind=\"mutex\",end=\"" + end + "\"}"]);
  }
  int lost(const std::string& reason) const {
    return int((*this)["holdfast_lock_lost_total{kind=\"mutex\",reason=\"" + reason + "\"}"]);
  }
  lock_call get(const std::string& name, asking a = {}) {
    auto c = lock(name, a);
    run();
    REQUIRE(c.granted());
    return c;
  }

  std::shared_ptr<ledger> book = std::make_shared<ledger>();
};

event acquired(std::string_view name, std::string_view of = "mutex") {
  return {.kind = kind::acquired, .name = name, .lock_kind = of};
}
event released(std::string_view name, std::string_view of = "mutex") {
  return {.kind = kind::released, .name = name, .lock_kind = of};
}

/// Of the server that is written so.
connection_facts at(std::string_view node, std::uint64_t number, std::string_view role = "command") {
  return {.number = number, .role = role, .node = node, .address = node, .port = 6379};
}

}  // namespace

// ---- what is held and who waits

TEST_CASE_METHOD(counted,
                 "held, waiting and ended are right at each step of a life with re-entries, passes and losses") {
  const owner anna;
  const auto outer = get("a", by(anna));
  CHECK((held(1) && waiters(0) && calls("acquired") == 1));
  const auto inner = get("a", by(anna));
  CHECK((held(1) && calls("reentered") == 1 && calls("acquired") == 1));
  const auto second = lock("a"), third = lock("a"), fourth = lock("a");
  CHECK((waiters(3) && held(1)));
  CHECK(try_lock("a").refused());
  CHECK((waiters(3) && calls("not_acquired") == 1));
  fourth.cancel();
  CHECK((waiters(2) && calls("acquire_cancelled") == 1));

  CHECK(unlock(inner).succeeded());
  CHECK((held(1) && holds("released") == 0 && second.waits()));
  unlock(outer);
  run();
  REQUIRE(second.granted());
  CHECK((held(1) && waiters(1) && holds("passed") == 1 && calls("acquired") == 2));
  unlock(second);
  run();
  REQUIRE(third.granted());
  CHECK((held(1) && waiters(0) && holds("passed") == 2 && calls("acquired") == 3));
  unlock(third);
  run();
  CHECK((held(0) && holds("released") == 1));

  SECTION("broken by this client") {
    const auto mine = get("b");
    CHECK(held(1));
    force_unlock("b");
    advance(1ms);
    CHECK((held(0) && holds("lost") == 1 && lost("forced") == 1 && lost("denied") == 0));
    unlock(mine);
    run();
    CHECK((held(0) && holds("lost") == 1 && holds("released") == 1));
  }
  SECTION("gone when it is renewed") {
    const auto mine = get("b");
    node.clear();
    advance(11s);
    CHECK((held(0) && lost("denied") == 1));
  }
  SECTION("gone when it is released") {
    const auto mine = get("b");
    node.clear();
    unlock(mine);
    run();
    CHECK((held(0) && lost("denied") == 1 && holds("lost") == 1));
  }
  SECTION("without a server until it ends") {
    const auto one = get("b"), two = get("c");
    CHECK(held(2));
    server.on_command = nullptr;
    link_down();
    CHECK(held(2));
    advance(31s);
    CHECK((held(0) && lost("unconfirmed") == 2));
  }
  SECTION("renewed by nobody") {
    const auto mine = get("b", with({.ttl = 1s}));
    advance(2s);
    CHECK((held(0) && lost("not_renewed") == 1));
  }
  SECTION("shutdown") {
    const auto one = get("b"), two = get("c");
    const auto waiting = lock("c");
    CHECK((held(2) && waiters(1)));
    close();
    CHECK((held(0) && waiters(0) && holds("closed") == 2 && lost("unconfirmed") == 0));
    run();
    CHECK((held(0) && calls("acquire_cancelled") == 2));
  }
  SECTION("the end of the client without shutdown") {
    const auto mine = get("b");
    const auto waiting = lock("b");
    locks->abandon();
    CHECK((held(0) && waiters(0) && holds("closed") == 1));
  }
}

TEST_CASE_METHOD(
    counted, "who wants any stands in the line of each, who wants all in one after the other, and has a hold of each") {
  const auto a = get("a"), b = get("b"), c = get("c");
  CHECK(held(3));
  const auto any = lock_any({"a", "b"});
  run();
  CHECK((any.waits() && waiters(2)));
  unlock(a);
  run();
  CHECK((any.granted() && waiters(0) && held(3)));
  const auto all = lock_all({"b", "c"});
  run();
  CHECK((all.waits() && waiters(1)));  // in one line after the other
  all.cancel();
  CHECK((waiters(0) && held(3) && calls("acquire_cancelled") == 1));
  const auto again = lock_all({"b", "c"});
  unlock(b);
  unlock(c);
  run();
  advance(50ms);
  CHECK((again.granted() && waiters(0) && held(3)));
  unlock(again);
  unlock(any);
  run();
  CHECK(held(0));
}

TEST_CASE_METHOD(counted, "each kind of lock has series of its own") {
  const auto a = get("a"), b = get("b", fenced());
  CHECK((*this)[R"(holdfast_lock_held{kind="mutex"})"] == 1);
  CHECK((*this)[R"(holdfast_lock_held{kind="fenced_mutex"})"] == 1);
  CHECK(detail::simple_lock.name == "simple_mutex");
  CHECK(detail::red_plain_lock.name == "red_lock");
  CHECK(detail::red_simple_lock.name == "red_lock");
}

// ---- the rest of the list

TEST_CASE_METHOD(counted, "a renewal tells what was left of the validity, and a wake-up whether it was of use") {
  const auto mine = get("a");
  advance(10s);
  CHECK((*this)[R"(holdfast_lock_renewals_total{outcome="confirmed"})"] == 1);
  // 30 s less the drift, of which 10 s have passed: 0.66
  CHECK((*this)[R"(holdfast_lock_renewal_slack_ratio_bucket{le="0.6"})"] == 0);
  CHECK((*this)[R"(holdfast_lock_renewal_slack_ratio_bucket{le="0.7"})"] == 1);

  server.on_command = nullptr;
  advance(10s);
  errs("LOADING later");
  CHECK((*this)[R"(holdfast_lock_renewals_total{outcome="failed"})"] == 1);
  CHECK((*this)[R"(holdfast_lock_renewals_total{outcome="confirmed"})"] == 1);
}

TEST_CASE_METHOD(counted, "what is left when a renewal is confirmed is less by the time of its answer") {
  const auto mine = get("a");
  server.on_command = nullptr;
  advance(10s);
  REQUIRE(in_flight() == 1);
  advance(2s);
  confirms();  // 30 s less the drift, of which 12 s have passed: 0.59
  CHECK((*this)[R"(holdfast_lock_renewal_slack_ratio_bucket{le="0.5"})"] == 0);
  CHECK((*this)[R"(holdfast_lock_renewal_slack_ratio_bucket{le="0.6"})"] == 1);
}

TEST_CASE_METHOD(counted, "a wake-up is useful, spurious or a poll") {
  const auto result = [&](const char* what) {
    return (*this)["holdfast_lock_wakeups_total{result=\"" + std::string(what) + "\"}"];
  };
  node.hold("a", "c6ae660e-4bf6-8605-ae66-59d052e0c483:1", clock.now() + 60s);
  const auto mine = lock("a");
  run();
  CHECK((mine.waits() && waiters(1)));
  CHECK((result("useful") == 0 && result("spurious") == 0 && result("poll") == 0));
  publishes("a");
  CHECK((result("useful") == 0 && result("spurious") == 1 && result("poll") == 0));
  advance(6s);
  CHECK((result("useful") == 0 && result("spurious") == 1 && result("poll") == 1));
  node.clear();
  publishes("a");
  CHECK(mine.granted());
  CHECK((result("useful") == 1 && result("spurious") == 1 && result("poll") == 1));
  CHECK(waiters(0));
}

TEST_CASE("commands and connections have their series") {
  metrics m;
  const auto first = at("redis", 1), second = at("redis", 2), messages = at("redis", 3, "pubsub");
  m.measured({.kind = measure::connection_up, .connection = &first, .count = 1});
  m.measured({.kind = measure::in_flight, .connection = &first, .count = 3});
  m.measured({.kind = measure::command, .script = true, .name = "acquire", .connection = &first, .took = 1ms});
  m.measured({.kind = measure::command, .script = true, .name = "acquire", .connection = &first, .took = 1ms + 1ns});
  m.measured({.kind = measure::in_flight, .connection = &first, .count = -3});
  m.measured({.kind = measure::connection_down, .connection = &first, .count = 1});
  m.measured(
      {.kind = measure::command, .name = "HGET", .connection = &first, .took = 2h, .failure = errc::unconfirmed});
  m.measured({.kind = measure::connection_up, .connection = &second, .count = 2});
  m.measured({.kind = measure::in_flight, .connection = &second, .count = 2});
  m.measured({.kind = measure::connection_up, .connection = &messages, .count = 1});
  m.fence_rejected();
  const prometheus_text said(m);
  const std::string server = R"(,server_address="redis",server_port="6379")";
  const std::string acquire =
      R"(db_system_name="redis",db_operation_name="EVALSHA",db_stored_procedure_name="acquire")" + server;
  CHECK(said["db_client_operation_duration_seconds_bucket{" + acquire + ",le=\"0.001\"}"] == 1);
  CHECK(said["db_client_operation_duration_seconds_bucket{" + acquire + ",le=\"0.0025\"}"] == 2);
  CHECK(said["db_client_operation_duration_seconds_sum{" + acquire + "}"] == 0.002000001);
  const std::string hget =
      R"(db_system_name="redis",db_operation_name="HGET")" + server + R"(,error_type="unconfirmed")";
  CHECK(said["db_client_operation_duration_seconds_bucket{" + hget + ",le=\"3600\"}"] == 0);
  CHECK(said["db_client_operation_duration_seconds_bucket{" + hget + ",le=\"+Inf\"}"] == 1);
  CHECK(said[R"(holdfast_connections{role="command",node="redis"})"] == 1);
  CHECK(said[R"(holdfast_connections{role="pubsub",node="redis"})"] == 1);
  CHECK(said[R"(holdfast_connection_in_flight{role="command",node="redis"})"] == 2);
  CHECK(said[R"(holdfast_connection_in_flight{role="pubsub",node="redis"})"] == 0);
  CHECK(said[R"(holdfast_connection_reconnects_total{role="command",node="redis"})"] == 1);
  CHECK(said[R"(holdfast_connection_reconnects_total{role="pubsub",node="redis"})"] == 0);
  CHECK(said["holdfast_lock_fence_rejections_total"] == 1);
}

TEST_CASE("a command is counted at the server of its connection, by its text, wherever that stands") {
  metrics m;
  const auto one = at("a", 1), again = at("a", 2), elsewhere = at("b", 3);
  const std::string copy = "HGET";
  for (const auto* where : {&one, &again, &elsewhere})
    m.measured({.kind = measure::connection_up, .connection = where});
  for (int round = 0; round < 3; ++round)
    for (const auto* where : {&one, &again, &elsewhere})
      for (const std::string_view name : {std::string_view("HGET"), std::string_view("PTTL"), std::string_view(copy)})
        m.measured({.kind = measure::command, .name = name, .connection = where, .took = 1ms});
  const prometheus_text said(m);
  const auto counted = [&](const std::string& name, const std::string& server) {
    return said["db_client_operation_duration_seconds_count{db_system_name=\"redis\",db_operation_name=\"" + name +
                "\",server_address=\"" + server + "\",server_port=\"6379\"}"];
  };
  CHECK((counted("HGET", "a") == 12 && counted("PTTL", "a") == 6));
  CHECK((counted("HGET", "b") == 6 && counted("PTTL", "b") == 3));
}

TEST_CASE("before anything has happened there are all families, and zeros for what an alarm looks at") {
  const prometheus_text said{metrics()};
  CHECK(said.families().size() == 17);
  CHECK(said.has(R"(holdfast_lock_renewals_total{outcome="failed"})"));
  CHECK(said.has(R"(holdfast_events_total{event="lost"})"));
  metrics m;
  m.on(acquired("a"));
  CHECK(prometheus_text(m).has(R"(holdfast_lock_lost_total{kind="mutex",reason="denied"})"));
}

// ---- names

TEST_CASE("a lock's name is no label unless that is asked for") {
  metrics m;
  m.on(acquired("orders:42"));
  CHECK(prometheus_text::written_by(m).find("orders") == std::string::npos);
}

TEST_CASE("so many names have series of their own, and all others share one") {
  metrics m({.lock_names = 2});
  for (const auto* name : {"a", "b", "c", "d", "a"}) m.on(acquired(name));
  m.on(acquired("a", "simple_mutex"));
  for (const auto* name : {"b", "d"}) m.on(released(name));
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="a"})"] == 2);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="b"})"] == 0);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="other"})"] == 1);
  CHECK(said[R"(holdfast_lock_held{kind="simple_mutex",lock="other"})"] == 1);
  const auto before = said.size();
  for (int n = 0; n < 1'000; ++n) m.on(acquired("more:" + std::to_string(n)));
  CHECK(prometheus_text(m).size() == before);
  CHECK(prometheus_text(m)[R"(holdfast_lock_held{kind="mutex",lock="other"})"] == 1'001);
}

TEST_CASE("a call without a name, as of any_of, takes no lock's series from it") {
  metrics m({.lock_names = 5});
  m.on({.kind = kind::not_acquired, .lock_kind = "mutex"});
  m.on(acquired("a"));
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="a"})"] == 1);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="other"})"] == 0);
}

TEST_CASE("a lock that is called other is one of the others") {
  metrics m({.lock_names = 5});
  m.on(acquired("other"));
  m.on({.kind = kind::acquire_failed, .lock_kind = "mutex"});  // of several, none
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="other"})"] == 1);
  CHECK(said[R"(holdfast_lock_wait_duration_seconds_count{kind="mutex",lock="other",outcome="acquire_failed"})"] == 1);
}

TEST_CASE("whatever a name has in it, its label is valid UTF-8 on one line") {
  CHECK(label_of("orders:42 ä€😀") == "orders:42 ä€😀");
  CHECK(label_of("\"\\") == "\"\\");
  CHECK(label_of(std::string_view("\n\r\t\0\x7f", 5)) == R"(\x0a\x0d\x09\x00\x7f)");
  CHECK(label_of("\xff\xfe") == R"(\xff\xfe)");
  CHECK(label_of("\xc0\xaf") == R"(\xc0\xaf)");                  // overlong
  CHECK(label_of("\xed\xa0\x80") == R"(\xed\xa0\x80)");          // half of a surrogate pair
  CHECK(label_of("\xf4\x90\x80\x80") == R"(\xf4\x90\x80\x80)");  // beyond the last character
  CHECK(label_of("\xe2\x82") == R"(\xe2\x82)");                  // cut off
  CHECK(label_of("\xc2\x85") == R"(\xc2\x85)");                  // a control character of C1
  CHECK(label_of(std::string(125, 'x')) == std::string(125, 'x'));
  CHECK(label_of(std::string(65'536, 'x')) == std::string(125, 'x') + "…");
  CHECK(label_of(std::string(65'536, '\xff')).size() <= detail::longest_label);
}

TEST_CASE("names that look the same in a label share its series") {
  metrics m({.lock_names = 10});
  const std::string quoted = "a\"b\\c\nd\xff";
  m.on(acquired(quoted));
  m.on(acquired("a\"b\\c\\x0ad\\xff"));
  m.on(released(quoted));
  for (const char end : {'1', '2'}) m.on(acquired(std::string(1'000, 'x') + end));
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_held{kind="mutex",lock="a\"b\\c\\x0ad\\xff"})"] == 1);
  CHECK(said["holdfast_lock_held{kind=\"mutex\",lock=\"" + std::string(125, 'x') + "…\"}"] == 2);
}

TEST_CASE("kinds, commands and servers beyond the room are other ones") {
  metrics m;
  std::vector<std::string> texts;
  for (int n = 0; n < 1'000; ++n) texts.push_back(std::to_string(n));
  for (std::uint64_t n = 0; n < texts.size(); ++n) {
    const auto& text = texts[n];
    const auto there = at(text, n + 1);
    m.on(acquired("a", text));
    m.measured({.kind = measure::command, .name = text});
    m.measured({.kind = measure::command, .name = "0", .connection = &there});
    m.measured({.kind = measure::connection_up, .connection = &there});
    m.measured({.kind = measure::in_flight, .connection = &there, .count = 1});
  }
  for (const auto& text : texts) m.on(released("a", text));
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_hold_duration_seconds_count{kind="other",end="released"})"] == 1'000 - 15);
  CHECK(said[R"(holdfast_lock_held{kind="other"})"] == 0);
  const auto commands = [&](const std::string& name, const std::string& server) {
    return said[R"(db_client_operation_duration_seconds_count{db_system_name="redis",db_operation_name=")" + name +
                "\",server_address=\"" + server + "}"];
  };
  CHECK(commands("other", "other\"") == 1'000 - 63);
  CHECK(commands("0", R"(31",server_port="6379")") == 1);
  CHECK(commands("0", "other\"") == 1 + 1'000 - 32);
  CHECK(said[R"(holdfast_connections{role="other",node="other"})"] == 1'000 - 256);
  CHECK(said[R"(holdfast_connection_in_flight{role="other",node="other"})"] == 1'000 - 256);
  CHECK(said[R"(holdfast_connection_in_flight{role="command",node="255"})"] == 1);
}

TEST_CASE("kinds, roles and servers are labels as valid as names, whoever made them up") {
  metrics m({.lock_names = 1});
  const std::string odd = "a\nb\xff", same = "a\\x0ab\\xff";
  m.on(acquired("x", odd));
  m.on(acquired("y", same));
  m.on(acquired("y", "other"));
  const auto there = at(odd, 1, odd);
  m.measured({.kind = measure::connection_up, .connection = &there});
  m.measured({.kind = measure::command, .name = "HGET", .connection = &there});
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_held{kind="a\\x0ab\\xff",lock="x"})"] == 1);
  CHECK(said[R"(holdfast_lock_held{kind="a\\x0ab\\xff",lock="other"})"] == 1);
  CHECK(said[R"(holdfast_lock_held{kind="other",lock="other"})"] == 1);
  CHECK(said[R"(holdfast_connections{role="a\\x0ab\\xff",node="a\\x0ab\\xff"})"] == 1);
  CHECK(said[R"(db_client_operation_duration_seconds_count{db_system_name="redis",db_operation_name="HGET",)"
             R"(server_address="a\\x0ab\\xff",server_port="6379"})"] == 1);
}

TEST_CASE("a kind of lock is known by its text, wherever that stands") {
  metrics m;
  const std::string copy = "mutex";
  m.on(acquired("a"));
  m.on(acquired("a", copy));
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_held{kind="mutex"})"] == 2);
}

TEST_CASE("a connection is known by its number, and another in its place by its server") {
  metrics m;
  const std::array servers{"a", "b", "c"};
  for (std::uint64_t n = 1; n <= 6'000; ++n) {
    const auto there = at(servers[n % 3], n);
    m.measured({.kind = measure::connection_up, .connection = &there});
  }
  const auto first = at("b", 1);
  m.measured({.kind = measure::connection_down, .connection = &first});
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_connections{role="command",node="a"})"] == 2'000);
  CHECK(said[R"(holdfast_connections{role="command",node="b"})"] == 1'999);
  CHECK(said[R"(holdfast_connections{role="command",node="c"})"] == 2'000);
}

TEST_CASE("events that nobody should make are counted, and nothing else is touched") {
  metrics m;
  for (const auto what : {measure::connection_up, measure::in_flight, measure::connection_down})
    m.measured({.kind = what, .count = 1});
  m.on({.kind = static_cast<kind>(200), .lock_kind = "mutex"});
  m.measured({.kind = static_cast<measure>(200)});
  m.on({.kind = kind::lost, .lock_kind = "mutex", .cause = static_cast<loss_cause>(200)});
  m.on({.kind = kind::acquired});
  const prometheus_text said(m);
  CHECK(said[R"(holdfast_lock_lost_total{kind="mutex",reason="none"})"] == 1);
  CHECK(said["holdfast_lock_held"] == 1);
}

// ---- the text

TEST_CASE("numbers are printed in digits, to the nanosecond") {
  CHECK(text_format::in_billionths(0) == "0");
  CHECK(text_format::in_billionths(1) == "0.000000001");
  CHECK(text_format::in_billionths(1'500'000'000) == "1.5");
  CHECK(text_format::in_billionths(20'000'000'000) == "20");
  CHECK(text_format::in_billionths(-1) == "-0.000000001");
  CHECK(text_format::in_billionths(std::numeric_limits<std::int64_t>::max()) == "9223372036.854775807");
  CHECK(text_format::in_billionths(std::numeric_limits<std::int64_t>::min()) == "-9223372036.854775808");
}

TEST_CASE("neither the stream's flags nor its locale change the text") {
  struct grouping : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\1"; }
  };
  metrics m;
  for (int n = 0; n < 1'234; ++n) m.on({.kind = kind::acquired, .waited = 1'500us, .lock_kind = "mutex"});
  std::ostringstream odd;
  odd.imbue(std::locale(std::locale::classic(), new grouping));
  odd << std::hex << std::setfill('*') << std::setw(100'000) << std::scientific;
  m.write(odd);
  CHECK(odd.str() == prometheus_text::written_by(m));
  CHECK(prometheus_text(m)[R"(holdfast_lock_wait_duration_seconds_sum{kind="mutex",outcome="acquired"})"] == 1.851);
}

TEST_CASE("a stream that fails throws what it throws, and the numbers stay") {
  metrics m;
  m.on(acquired("a"));
  std::ostringstream broken;
  broken.setstate(std::ios::badbit);
  m.write(broken);
  CHECK(broken.str().empty());
  broken.clear();
  broken.exceptions(std::ios::badbit);
  struct full : std::streambuf {
  } nowhere;
  broken.std::ostream::rdbuf(&nowhere);
  CHECK_THROWS_AS(m.write(broken), std::ios_base::failure);
  CHECK(prometheus_text(m)[R"(holdfast_lock_held{kind="mutex"})"] == 1);
}

// ---- threads and memory

TEST_CASE("clients on several threads count exactly while others write") {
  metrics m({.lock_names = GENERATE(0U, 3U)});
  constexpr int times = 20'000;
  std::atomic<bool> over{false};
  std::atomic<bool> sound{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto name = std::to_string(t);
      const auto there = at("n", static_cast<std::uint64_t>(t) + 1);
      for (int n = 0; n < times; ++n) {
        m.on(acquired(name, n % 2 == 0 ? "mutex" : "simple_mutex"));
        m.measured({.kind = measure::command, .script = true, .name = "acquire", .connection = &there, .took = 1us});
        m.measured({.kind = n % 2 == 0 ? measure::connection_up : measure::connection_down, .connection = &there});
        m.on(released(name, n % 2 == 0 ? "mutex" : "simple_mutex"));
      }
    });
  threads.emplace_back([&] {
    while (!over) {
      const prometheus_text said(m);  // agrees with itself, or throws
      for (const auto& [series, value] : said.samples())
        if (series.starts_with("holdfast_lock_held") && (value < 0 || value > 4)) sound = false;
    }
  });
  for (int t = 0; t < 4; ++t) threads[static_cast<std::size_t>(t)].join();
  over = true;
  threads.back().join();
  CHECK(sound);
  const prometheus_text said(m);
  double ended = 0, commands = 0;
  for (const auto& [series, value] : said.samples()) {
    if (series.starts_with("holdfast_lock_held")) CHECK(value == 0);
    if (series.starts_with("holdfast_lock_hold_duration_seconds_count")) ended += value;
    if (series.starts_with("db_client_operation_duration_seconds_count")) commands += value;
  }
  CHECK((ended == 4 * times && commands == 4 * times));
  CHECK(said[R"(holdfast_connections{role="command",node="n"})"] == 0);
}

TEST_CASE("what is known already is counted without memory") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator");
  metrics m;
  const auto there = at("redis", 1);
  const auto tell = [&] {
    m.on(acquired("a"));
    m.measured({.kind = measure::command, .name = "acquire", .connection = &there});
    m.measured({.kind = measure::in_flight, .connection = &there, .count = 1});
    m.measured({.kind = measure::wait_began, .lock_kind = "mutex"});
    m.measured({.kind = measure::renewed, .left = 1s, .ttl = 3s});
    m.on(released("a"));
  };
  tell();
  const failing_allocations none(0, 1'000);
  tell();
  CHECK_FALSE(none.happened());
}

TEST_CASE("where there is no memory for a connection, what begins and what ends are counted in the same place") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator");
  const std::string server(60, 's');
  const auto there = at(server, 1);
  for (std::size_t n = 0;; ++n) {
    metrics m;
    bool happened = false;
    {
      const failing_allocations some(n, 1);
      m.measured({.kind = measure::connection_up, .connection = &there});
      m.measured({.kind = measure::in_flight, .connection = &there, .count = 1});
      m.measured({.kind = measure::command, .name = "acquire", .connection = &there});
      happened = some.happened();
    }
    m.measured({.kind = measure::in_flight, .connection = &there, .count = -1});
    m.measured({.kind = measure::connection_down, .connection = &there});
    const prometheus_text said(m);
    for (const auto& [series, value] : said.samples())
      if (series.starts_with("holdfast_connection")) CHECK(value == 0);
    if (!happened) break;
  }
}

TEST_CASE("connections that have one place are counted each at its own node, without memory too") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator");
  const std::string here(60, 'a'), elsewhere(60, 'b');
  const auto first = at(here, 1), second = at(elsewhere, 1 + 1024);
  metrics m;
  m.measured({.kind = measure::connection_up, .connection = &first});
  m.measured({.kind = measure::connection_up, .connection = &second});
  {
    const failing_allocations none(0, 1'000);
    m.measured({.kind = measure::connection_down, .connection = &first});
    m.measured({.kind = measure::connection_down, .connection = &second});
    CHECK_FALSE(none.happened());
  }
  const prometheus_text said(m);
  for (const auto& node : {here, elsewhere})
    CHECK(said["holdfast_connections{role=\"command\",node=\"" + node + "\"}"] == 0);
}

TEST_CASE("where there is no memory for a name, what begins and what ends are counted in the same place") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator");
  const std::string a(100, 'a'), b(100, 'b');
  for (std::size_t n = 0;; ++n) {
    metrics m({.lock_names = 10});
    bool happened = false;
    {
      const failing_allocations some(n, 1);
      m.on(acquired(a));
      m.on(acquired(b));
      happened = some.happened();
    }
    m.on(released(a));
    m.on(released(b));
    const prometheus_text said(m);
    for (const auto& [series, value] : said.samples())
      if (series.starts_with("holdfast_lock_held")) CHECK(value == 0);
    if (!happened) break;
  }
}

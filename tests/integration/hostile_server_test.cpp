// SPDX-License-Identifier: BSL-1.0
// A server that is broken or means harm: a clear error or none at all, in time, in bounded memory, and nothing raw for
// a terminal.
#include "integration/hostile_world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using kind = event_kind;
using texts = std::vector<std::string>;

namespace {

constexpr auto in_time = 5s;
constexpr std::size_t memory_bound = 64 << 20;

const auto deafening = "-ERR \x1b[2J\x1b]0;owned\x07" + std::string(100'000, '!') + "\r\n";
const texts no_answer_to_any_script{
    "+OK\r\n", "*0\r\n", "*1\r\n$1\r\n1\r\n", "*2\r\n:1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n", "*1\r\n:-2\r\n", deafening};
/// None of these is RESP2 within the caps.
const texts no_reply_at_all{"$9223372036854775807\r\nx",
                            "$-2\r\n",
                            "*4294967295\r\n",
                            "*9223372036854775807\r\n",
                            "*-2\r\n",
                            "*1025\r\n",
                            "%1\r\n+a\r\n:1\r\n",
                            "~1\r\n:1\r\n",
                            ">2\r\n+message\r\n+x\r\n",
                            "|1\r\n+a\r\n:1\r\n:2\r\n",
                            "(123456789012345678901234567890\r\n",
                            "=7\r\ntxt:abc\r\n",
                            "!3\r\nERR\r\n",
                            ",nan\r\n",
                            "#t\r\n",
                            "_\r\n",
                            "\x1b[2J\n",
                            ":1e3\r\n"};

}  // namespace

TEST_CASE("an answer that no script gives is an error that can be printed and no lock") {
  hostile_world w;
  const auto bad = GENERATE(from_range(no_answer_to_any_script));
  CAPTURE(bad.substr(0, 20));
  auto redis = w.make();
  auto held = w.run(redis.mutex("held").lock({.ttl = 10s}));
  w.wrong = [&](const auto& argv, std::size_t) { return argv[0] == "EVALSHA" ? std::optional(bad) : std::nullopt; };
  const auto expected = bad == deafening ? errc::server_refused : errc::protocol_error;
  const auto check = [&](const hostile_world::failure& told) {
    CHECK(told.code == expected);
    CHECK(printable(told.text));
    CHECK(told.text.size() < 1500);
  };
  check(w.failure_of(redis.mutex("m").try_lock()));
  check(w.failure_of(redis.mutex("m").force_unlock()));
  check(w.failure_of(held.renew(20s)));
  CHECK(held.held());
  const auto freed = w.failure_of(held.unlock());
  CHECK(freed.code == (bad == deafening ? errc::unconfirmed : errc::protocol_error));
  CHECK(printable(freed.text));
  CHECK_FALSE(held.held());
  CHECK(w.all_is_printable());
}

TEST_CASE("a holder's ttl beyond all bounds is contention and ends with the deadline") {
  hostile_world w;
  w.wrong = [](const auto& argv, std::size_t) -> std::optional<std::string> {
    if (argv[0] == "PTTL" || hostile_world::is(argv, lua::acquire.sha1)) return ":9223372036854775806\r\n";
    return std::nullopt;
  };
  auto redis = w.make();
  CHECK_FALSE(w.run(redis.mutex("m").try_lock()));
  CHECK_FALSE(w.run(redis.mutex("m").try_lock_for(100ms)));
  const auto shown = w.run(redis.mutex("m").remaining_ttl()).value();
  CHECK(std::chrono::steady_clock::now() + shown > std::chrono::steady_clock::now());  // no overflow
}

TEST_CASE("what is no reply at all ends the connection before memory is taken and the next one serves") {
  hostile_world w;
  auto bad = GENERATE(from_range(no_reply_at_all));
  CAPTURE(bad);
  w.wrong = [&](const auto& argv, std::size_t connection) {
    return argv[0] == "EVALSHA" && connection == 0 ? std::optional(bad) : std::nullopt;
  };
  auto redis = w.make();
  const auto before = resident_bytes();
  CHECK(w.run(redis.mutex("m").lock()).held());
  CHECK(resident_bytes() < before + memory_bound);
  CHECK(w.server.connections() == 2);
  CHECK(w.heard->count(kind::outage) == 1);
  CHECK(w.all_is_printable());
}

TEST_CASE("arrays without end cost no memory and no stack") {
  hostile_world w;
  const bool deep = GENERATE(true, false);
  w.wrong = [&](const auto& argv, std::size_t connection) -> std::optional<std::string> {
    if (argv[0] != "EVALSHA" || connection != 0) return std::nullopt;
    std::string out = deep ? "" : "*1000\r\n";
    for (int i = 0; i < 100'000; ++i) out += deep ? "*1\r\n" : "*1000\r\n";
    return out;
  };
  auto redis = w.make();
  const auto before = resident_bytes();
  CHECK(w.run(redis.mutex("m").lock()).held());
  CHECK(resident_bytes() < before + memory_bound);
  CHECK(w.server.connections() == 2);
}

TEST_CASE("a reply without end is cut off at the cap") {
  hostile_world w;
  const auto start = GENERATE(as<std::string>{}, "$536870913\r\n", "+", "-ERR ", ":");
  CAPTURE(start);
  std::size_t sent = 0;
  const std::string more(64 * 1024, 'x');
  const std::function<void()> go_on = [&] {
    w.server.write(0, more, [&](bool failed) {
      if (failed) return;
      sent += more.size();
      go_on();
    });
  };
  w.wrong = [&](const auto& argv, std::size_t connection) -> std::optional<std::string> {
    if (argv[0] != "EVALSHA" || connection != 0) return std::nullopt;
    asio::post(w.io, go_on);
    return start;
  };
  auto redis = w.make();
  const auto before = resident_bytes();
  CHECK(w.run(redis.mutex("m").lock()).held());
  CHECK(resident_bytes() < before + memory_bound);
  CHECK(sent < 4u << 20);  // one mebibyte, and what sockets hold
}

TEST_CASE("a server that closes at any point of the handshake is tried again and then serves") {
  hostile_world w;
  const std::string greeting = "+OK\r\n:1\r\n$15\r\n\r\nrun_id:ab12\r\n\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
  const auto bytes = GENERATE_COPY(range(std::size_t{0}, greeting.size()));
  CAPTURE(bytes);
  w.wrong = [&](const auto& argv, std::size_t connection) -> std::optional<std::string> {
    if (connection != 0) return std::nullopt;
    if (argv[0] != "ROLE") return "";
    w.server.close_after(0, greeting.substr(0, bytes));
    return "";
  };
  auto redis = w.make();
  CHECK(w.run(redis.mutex("m").lock()).held());
  CHECK(w.server.connections() == 2);
}

TEST_CASE("a server that trickles its bytes is understood") {
  hostile_world w;
  w.server.trickle(1ms);
  auto redis = w.make();
  auto lease = w.run(redis.mutex("m").lock());
  CHECK(lease.held());
  w.run(lease.unlock());
  CHECK(w.heard->count(kind::outage) == 0);
}

TEST_CASE("an answer that is trickled without end costs its connection and the next one serves") {
  hostile_world w;
  w.wrong = [&](const auto& argv, std::size_t connection) -> std::optional<std::string> {
    if (argv[0] != "EVALSHA" || connection != 0) return std::nullopt;
    w.server.trickle(1ms);
    return "+" + std::string(100'000, 'O');
  };
  auto redis = w.make();
  CHECK(w.run(redis.mutex("m").lock()).held());
  CHECK(w.server.connections() == 2);
}

TEST_CASE("a handshake that is trickled without end costs the connect timeout and no more") {
  hostile_world w;
  w.server.trickle(1ms);
  w.wrong = [](const auto& argv, std::size_t) -> std::optional<std::string> {
    return argv[0] == "CLIENT" ? std::optional("+" + std::string(100'000, 'O')) : std::nullopt;
  };
  auto redis = w.make(50ms);
  CHECK(w.failure_of(redis.mutex("m").try_lock_for(300ms)).code == errc::unreachable);
  CHECK(w.server.connections() >= 2);
}

TEST_CASE("a refusal in the handshake is told without its escape sequences") {
  hostile_world w;
  const auto asked = GENERATE(as<std::string>{}, "CLIENT", "INFO", "ROLE");
  w.wrong = [&](const auto& argv, std::size_t) { return argv[0] == asked ? std::optional(deafening) : std::nullopt; };
  auto redis = w.make();
  CHECK(w.failure_of(redis.mutex("m").try_lock()).code == error_code{});
  CHECK(w.heard->count(kind::fencing_degraded) == (asked == "ROLE" ? 0 : 1));
  CHECK(w.all_is_printable());
}

TEST_CASE("a server that refuses the connection for now refuses each command, and serves when it does no more") {
  hostile_world w;
  const auto words = GENERATE(as<std::string>{}, "ERR max number of clients reached",
                              "LOADING Redis is loading the dataset", "BUSY Redis is busy running a script.");
  CAPTURE(words);
  bool refuses = true;
  w.wrong = [&](const auto&, std::size_t) { return refuses ? std::optional('-' + words + "\r\n") : std::nullopt; };
  auto redis = w.make();
  for (const auto& f :
       {w.failure_of(redis.connect()), w.failure_of(redis.mutex("m").try_lock()),
        w.failure_of(redis.mutex("m").try_lock_for(150ms)), w.failure_of(redis.mutex("m").is_locked())}) {
    INFO(f.text);
    CHECK(f.code == errc::server_refused);
    CHECK(f.text.find(words) != f.text.npos);
  }
  CHECK(w.heard->count(kind::outage) == 1);  // the connection's
  std::optional<result<lease>> got;
  asio::co_spawn(w.io, as_result(redis.mutex("m").lock()),
                 [&](std::exception_ptr, auto r) { got.emplace(std::move(r)); });
  const auto attempts = w.server.connections();
  const auto until = [&](auto condition) {
    const auto end = std::chrono::steady_clock::now() + in_time;
    while (!condition() && std::chrono::steady_clock::now() < end) w.io.run_one_for(1ms);
    REQUIRE(condition());
  };
  until([&] { return w.server.connections() > attempts; });
  CHECK_FALSE(got);
  refuses = false;
  until([&] { return got.has_value(); });
  CHECK(got->value().held());
}

TEST_CASE("messages of any shape neither end a wait nor the connection that they come on") {
  hostile_world w;
  bool free = false;
  std::size_t attempts = 0, hub = 0;
  w.wrong = [&](const auto& argv, std::size_t connection) -> std::optional<std::string> {
    if (argv[0] == "SUBSCRIBE") hub = connection;
    if (!hostile_world::is(argv, lua::acquire.sha1)) return std::nullopt;
    ++attempts;
    return free ? "$-1\r\n" : ":20000\r\n";
  };
  auto redis = w.make();
  std::optional<result<lease>> got;
  asio::co_spawn(w.io, as_result(redis.mutex("m").lock()),
                 [&](std::exception_ptr, auto r) { got.emplace(std::move(r)); });
  const auto until = [&](auto condition) {
    const auto end = std::chrono::steady_clock::now() + in_time;
    while (!condition() && std::chrono::steady_clock::now() < end) w.io.run_one_for(1ms);
    REQUIRE(condition());
  };
  until([&] { return attempts == 2; });  // once before and once after the acknowledgement

  const std::string channel = "redisson_lock__channel:{m}";
  const auto odd = message("nobody's", "0") + message("", "0") + "*3\r\n" + bulk("message") + ":1\r\n*0\r\n" +
                   "*3\r\n" + bulk("message") + "*1\r\n" + bulk(channel) + "$-1\r\n" +
                   message(channel, std::string(900'000, 'x'));
  w.server.write(hub, odd + message(channel, "\x1b[2J\r\n"), [](bool) {});
  until([&] { return attempts == 3; });  // one of them was a hint, whatever it said
  CHECK_FALSE(got);
  free = true;
  w.server.write(hub, message(channel, "0"), [](bool) {});
  until([&] { return got.has_value(); });
  CHECK(got->value().held());
  CHECK(attempts == 4);
  CHECK(w.server.connections() == 2);
}

TEST_CASE("an acknowledgement of something else ends the pub/sub connection and the waiter is served by the next") {
  hostile_world w;
  const auto bad = GENERATE(as<std::string>{}, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n", "+OK\r\n", ":1\r\n",
                            "*0\r\n", "*3\r\n*0\r\n*0\r\n*0\r\n", ">1\r\n+x\r\n", "$-1\r\n$-1\r\n");
  CAPTURE(bad);
  std::size_t subscriptions = 0, attempts = 0;
  w.wrong = [&](const auto& argv, std::size_t) -> std::optional<std::string> {
    if (argv[0] == "SUBSCRIBE" && ++subscriptions == 1) return bad;
    if (!hostile_world::is(argv, lua::acquire.sha1)) return std::nullopt;
    return ++attempts == 1 ? ":20000\r\n" : "$-1\r\n";
  };
  auto redis = w.make();
  CHECK(w.run(redis.mutex("m").lock()).held());
  CHECK(subscriptions == 2);
}

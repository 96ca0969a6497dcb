// SPDX-License-Identifier: BSL-1.0
// Arguments, settings and keys that cannot be right: refused with a text that says why, before anything is written.
#include <limits>

#include "integration/world.hpp"

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::milliseconds;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// A client that holds a lock, which nothing here may cost it, on a server where nothing here may write.
struct busy_world : world {
  ~busy_world() {
    CHECK(held.held());
    CHECK(keys_stored() == 1);
    CHECK(heard->count(event_kind::lost) == 0);
  }
  long long keys_stored() { return eye("DBSIZE").integer(); }

  template <class T>
  void refused(asio::awaitable<T> op, errc code, const std::string& cause) {
    try {
      (void)run(std::move(op));
      FAIL_CHECK("not refused: " << cause);
    } catch (const boost::system::system_error& e) {
      INFO(e.what());
      CHECK(e.code() == code);
      CHECK(contains(e.what(), cause));
    }
    CHECK(keys_stored() == 1);
  }
  /// By all three ways to lock.
  void refused(const holdfast::mutex& m, lock_options options, errc code, const std::string& cause) {
    refused(m.lock(options), code, cause);
    refused(m.try_lock(options), code, cause);
    refused(m.try_lock_for(1s, options), code, cause);
  }

  client redis = make();
  lease held = run(redis.mutex("held").lock());
};

}  // namespace

TEST_CASE_METHOD(busy_world, "a name is 1 byte to 64 KiB") {
  for (const auto& [name, cause] :
       {std::pair(std::string(), "the name is empty"), std::pair(std::string(65'537, 'x'), "65537 bytes")}) {
    auto m = redis.mutex(name);
    refused(m, {}, errc::invalid_name, cause);
    refused(m.force_unlock(), errc::invalid_name, cause);
    refused(m.is_locked(), errc::invalid_name, cause);
    refused(m.hold_count(owner{}), errc::invalid_name, cause);
    refused(m.held_by(owner{}), errc::invalid_name, cause);
    refused(m.holder(), errc::invalid_name, cause);
    refused(m.remaining_ttl(), errc::invalid_name, cause);
  }
  auto longest = run(redis.mutex(std::string(65'536, 'x')).lock());
  run(longest.unlock());
  auto shortest = run(redis.mutex(std::string_view("\0", 1)).lock());
  run(shortest.unlock());
}

TEST_CASE_METHOD(busy_world, "a ttl is 10 ms to 24 h and at least 100 ms when it is renewed") {
  auto m = redis.mutex("m");
  for (const auto ttl : {0ms, -1ms, 9ms, milliseconds(24h) + 1ms, milliseconds::max(), milliseconds::min()}) {
    refused(m, {.ttl = ttl}, errc::invalid_ttl, std::to_string(ttl.count()) + " ms");
    refused(m, {.ttl = ttl, .renew = true}, errc::invalid_ttl, std::to_string(ttl.count()) + " ms");
  }
  refused(m, {.ttl = 99ms, .renew = true}, errc::invalid_ttl, "renewed ttl of 99 ms");
  for (const lock_options& good :
       {lock_options{.ttl = 10ms}, {.ttl = 99ms}, {.ttl = 100ms, .renew = true}, {.ttl = 24h}})
    CHECK(run(m.try_lock_for(5s, good)));
  until([&] { return keys_stored() == 1; }, 5s);
}

TEST_CASE_METHOD(busy_world, "max_hold is for renewed leases and 1 ms to 24 h") {
  auto m = redis.mutex("m");
  refused(m, {.ttl = 1s, .max_hold = 1s}, errc::invalid_ttl, "max_hold is for renewed leases");
  refused(m, {.renew = false, .max_hold = 1s}, errc::invalid_ttl, "max_hold is for renewed leases");
  for (const auto most : {0ms, -1ms, milliseconds(24h) + 1ms, milliseconds::max(), milliseconds::min()})
    refused(m, {.max_hold = most}, errc::invalid_ttl, "max_hold of " + std::to_string(most.count()) + " ms");
}

TEST_CASE_METHOD(busy_world, "a wait is not negative and may be endless") {
  auto m = redis.mutex("m");
  for (const auto wait : {-1ms, milliseconds::min()}) {
    refused(m.try_lock_for(wait), errc::invalid_wait, "a wait of " + std::to_string(wait.count()) + " ms");
    refused(redis.shutdown(wait), errc::invalid_wait, std::to_string(wait.count()) + " ms");
  }
  refused(redis.shutdown(milliseconds(24h) + 1ms), errc::invalid_wait, "86400001 ms");
  eye("HSET", "m", "stranger:1", 1);
  eye("PEXPIRE", "m", 150);
  auto got = run(m.try_lock_for(milliseconds::max()));  // busy first, then its own
  REQUIRE(got);
  run(got->unlock());
}

TEST_CASE_METHOD(busy_world, "a renewal's ttl is 10 ms to 24 h and never shortens") {
  for (const auto ttl : {5ms, 9ms, -1ms, milliseconds(24h) + 1ms, milliseconds::max(), milliseconds::min()})
    refused(held.renew(ttl), errc::invalid_ttl, std::to_string(ttl.count()) + " ms");
  run(held.renew(10ms));
  CHECK(held.valid_for() > 10s);
  CHECK(eye("PTTL", "held").integer() > 10'000);
}

TEST_CASE_METHOD(busy_world, "force_unlock leaves a hash alone that is data") {
  using words = std::vector<std::string>;
  const auto make = GENERATE(values<words>({{"HSET", "m", "status", "paid"},
                                            {"HSET", "m", "total", "30"},
                                            {"HSET", "m", "a:1", "paid"},
                                            {"HSET", "m", "a:1", "1", "b:1", "1"}}));
  CAPTURE(make);
  REQUIRE_FALSE(eye.call(make).is_error());
  const auto before = eye("DUMP", "m").to_string();
  auto m = redis.mutex("m");
  CHECK(code_of(m.force_unlock()) == errc::corrupt_lock);
  CHECK(eye("DUMP", "m") == before);
  eye("DEL", "m");
  eye("HSET", "m", "stranger:1", 1);  // without a TTL, as after PERSIST
  CHECK(run(m.force_unlock()));
  CHECK_FALSE(run(m.is_locked()));
}

TEST_CASE_METHOD(busy_world, "a key of another type is a corrupt lock and is left alone") {
  using words = std::vector<std::string>;
  const auto make =
      GENERATE(values<words>({{"SET", "m", "1"}, {"RPUSH", "m", "1"}, {"SADD", "m", "1"}, {"ZADD", "m", "1", "1"}}));
  CAPTURE(make.front());
  REQUIRE_FALSE(eye.call(make).is_error());
  const auto before = eye("DUMP", "m").to_string();
  auto m = redis.mutex("m");
  for (const auto code :
       {code_of(m.lock()), code_of(m.try_lock()), code_of(m.try_lock_for(5s)), code_of(m.force_unlock())})
    CHECK(code == errc::corrupt_lock);
  const auto text = text_of_failure([&] { (void)run(m.lock()); });
  CAPTURE(text);
  CHECK(contains(text, "WRONGTYPE"));
  CHECK(contains(text, "lock 'm'"));
  CHECK(run(m.is_locked()));
  CHECK(eye("DUMP", "m") == before);
  CHECK(eye("PTTL", "m") == -1);
  eye("DEL", "m");
}

TEST_CASE_METHOD(busy_world, "a stranger's lock without a ttl is corrupt and is left alone until it is broken") {
  eye("HSET", "m", "stranger:1", 2);
  auto m = redis.mutex("m");
  for (const auto code : {code_of(m.lock()), code_of(m.try_lock()), code_of(m.try_lock_for(5s))})
    CHECK(code == errc::corrupt_lock);
  CHECK(contains(text_of_failure([&] { (void)run(m.lock()); }), "no TTL"));
  CHECK(run(m.remaining_ttl()) == milliseconds::max());
  CHECK(eye("HGETALL", "m").to_string() == "[stranger:1, 2]");
  CHECK(eye("PTTL", "m") == -1);
  CHECK(run(m.force_unlock()));
  auto got = run(m.lock());
  run(got.unlock());
}

TEST_CASE("a url that cannot be right is refused when the client is made") {
  struct row {
    const char *url, *cause;
  };
  const auto [url, cause] = GENERATE(values<row>({{"", "empty"},
                                                  {"localhost", "begins with none of"},
                                                  {"http://localhost", "begins with none of"},
                                                  {"redis://", "no host"},
                                                  {"redis://:canary@", "no host"},
                                                  {"redis://h:0", "port"},
                                                  {"redis://h:65536", "port"},
                                                  {"redis://h:12x", "port"},
                                                  {"redis://a:b:1", "more than one ':'"},
                                                  {"redis://[::1", "without ']'"},
                                                  {"redis://[zz]", "IPv6"},
                                                  {"redis://h/x", "db"},
                                                  {"redis://h/-1", "db"},
                                                  {"redis://h/1?db=2", "twice"},
                                                  {"redis://h?colour=red", "colour"},
                                                  {"redis://h?ttl=soon", "ttl"},
                                                  {"redis://:canary%zz@h", "'%'"},
                                                  {"redis://:canary%0d%0ax@h", "line break"},
                                                  {"redis://:canary/x@h", "'@' after the host"},
                                                  {"redis://u@h", "a user without password"},
                                                  {"redis://h#x", "'#'"},
                                                  {"redis://h ost", "blank"},
                                                  {"redis+unix://", "path"},
                                                  {"redis://h?ca_file=/x", "rediss://"},
                                                  {"rediss://h?key_file=/x", "certificate_file"}}));
  CAPTURE(url);
  asio::io_context io;
  config c;
  c.url = url;
  try {
    const client made(io.get_executor(), c);
    FAIL("not refused");
  } catch (const error& e) {
    INFO(e.what());
    CHECK(e.code() == errc::invalid_config);
    CHECK(contains(e.what(), cause));
    CHECK_FALSE(contains(e.what(), "canary"));
    CHECK_FALSE(contains(redacted(url), "canary"));
  }
}

TEST_CASE("settings outside their range are refused when the client is made") {
  using change = void (*)(config&);
  struct row {
    const char* field;
    errc code;
    change make;
  };
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN;
  const row rows[] = {
      {"ttl", errc::invalid_ttl, [](config& c) { c.ttl = 99ms; }},
      {"ttl", errc::invalid_ttl, [](config& c) { c.ttl = milliseconds(24h) + 1ms; }},
      {"ttl", errc::invalid_ttl, [](config& c) { c.url = "redis://h?ttl=5"; }},
      {"command_timeout", errc::invalid_config, [](config& c) { c.command_timeout = 4ms; }},
      {"command_timeout", errc::invalid_config, [](config& c) { c.command_timeout = milliseconds::max(); }},
      {"connect_timeout", errc::invalid_config, [](config& c) { c.connect_timeout = 0ms; }},
      {"poll_cap", errc::invalid_config, [](config& c) { c.poll_cap = -1ms; }},
      {"reconnect_cap", errc::invalid_config, [](config& c) { c.reconnect_cap = 61s; }},
      {"drift", errc::invalid_config, [](config& c) { c.drift = -0.01; }},
      {"drift", errc::invalid_config, [](config& c) { c.drift = 0.21; }},
      {"drift", errc::invalid_config, [](config& c) { c.drift = nan(); }},
      {"pending_commands", errc::invalid_config, [](config& c) { c.pending_commands = 0; }},
      {"password", errc::invalid_config, [](config& c) { c.password = "canary\r\nx"; }},
      {"client_name", errc::invalid_config, [](config& c) { c.client_name = "two words"; }},
      {"key_prefix", errc::invalid_config, [](config& c) { c.key_prefix = std::string(65'536, 'x'); }}};
  asio::io_context io;
  for (const auto& [field, code, make] : rows) {
    config c;
    make(c);
    try {
      const client made(io.get_executor(), c);
      FAIL_CHECK("not refused: " << field);
    } catch (const error& e) {
      INFO(e.what());
      CHECK(e.code() == code);
      CHECK(contains(e.what(), field));
      CHECK_FALSE(contains(e.what(), "canary"));
    }
  }
}

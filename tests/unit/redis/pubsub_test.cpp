// SPDX-License-Identifier: BSL-1.0
// Against a server that the test plays itself: what is asked of it, in order.
#include "redis/pubsub.hpp"

#include <cctype>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/no_memory.hpp"
#include "support/skip.hpp"
#include "unit/redis/counting_subscriber.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;

namespace {

/// A server that knows subscriptions and nothing else.
struct fixture : redis_rig {
  fixture()
      : server(io, [this](std::string_view bytes, std::size_t connection) {
          auto& parser = parsers[connection];
          parser.feed(bytes);
          std::string out;
          while (const auto* const command = parser.next()) out += answer(connection, *command);
          return out;
        }) {}

  std::string answer(std::size_t connection, const redis::reply& command) {
    const auto& name = command.elements[0].text;
    if (name == "PING") return "+PONG\r\n";
    if (name == "INFO") {
      const auto text = "\r\nrun_id:" + run + "\r\n" + version;
      return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }
    const auto& what = command.elements[1].text;
    if (what == "ID") return ":" + std::to_string(connection + 10) + "\r\n";
    if (name == "CLIENT") {
      fenced.push_back(command.elements[3].text);
      return kill_answer;
    }
    verbs.push_back(name);
    const bool subscribes = name.ends_with("SUBSCRIBE") && !name.ends_with("UNSUBSCRIBE");
    if (subscribes && refuses) return "-NOPERM no channel\r\n";
    if (name.starts_with("SS") && !redirect.empty()) return redirect;
    subscribers[what] += subscribes ? 1 : -1;
    return said(in_small_letters(name), what);
  }
  static std::string in_small_letters(std::string word) {
    for (auto& c : word) c = static_cast<char>(std::tolower(c));
    return word;
  }
  static std::string said(const std::string& word, const std::string& channel) {
    return "*3\r\n$" + std::to_string(word.size()) + "\r\n" + word + "\r\n$1\r\n" + channel + "\r\n:1\r\n";
  }
  ~fixture() {
    if (timed) timed->close();
  }

  /// Its clock and its timers move by subscribed_in_time() alone.
  std::shared_ptr<redis::pubsub> hub_on_test_time(
      std::optional<redis::channel_kind> channels = redis::channel_kind::classic) {
    timed = std::make_shared<redis::pubsub>(services_at(clock, alarms), unix_endpoint(server.path()), 2s, channels);
    return timed;
  }
  bool subscribed_in_time(const counting_subscriber& l, int times) {
    return until([&] {
      alarms.advance(1ms);
      return l.subscribed == times;
    });
  }
  void publish() { server.send("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n0\r\n"); }

  manual_clock clock;
  manual_timers alarms{clock};
  std::map<std::size_t, redis::reader> parsers;
  std::map<std::string, int> subscribers;
  std::vector<std::string> fenced;
  std::string kill_answer = ":1\r\n";
  std::string run = "ab12", version, redirect;
  std::vector<std::string> verbs;
  bool refuses = false;
  std::shared_ptr<redis::pubsub> timed;
  scripted_server server;
};

}  // namespace

TEST_CASE_METHOD(fixture, "who leaves while it is being told leaves nothing subscribed") {
  const auto h = hub(unix_endpoint(server.path()));
  counting_subscriber leaves, stays;
  auto one = h->subscribe("c", leaves);
  redis::subscription two;
  const bool in_company = GENERATE(false, true);
  if (in_company) two = h->subscribe("c", stays);
  SECTION("told that it is subscribed") {
    leaves.then = [&] { one.reset(); };
    REQUIRE(until([&] { return !one && subscribers["c"] == 1; }));
  }
  SECTION("told a message") {
    REQUIRE(until([&] { return leaves.subscribed == 1; }));
    leaves.then = [&] { one.reset(); };
    publish();
    REQUIRE(until([&] { return !one; }));
    CHECK(leaves.messages == 1);
  }
  if (in_company) {
    REQUIRE(until([&] { return stays.subscribed == 1; }));
    publish();
    REQUIRE(until([&] { return stays.messages != 0; }));
    CHECK(subscribers["c"] == 1);
    two.reset();
  }
  CHECK(until([&] { return subscribers["c"] == 0; }));
  CHECK(leaves.messages <= 1);
}

TEST_CASE("a subscription that finds no memory leaves its channel to others") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  for (const bool in_company : {false, true}) {
    bool failed = true;
    std::size_t n = 0;
    for (; failed; ++n) {
      INFO("allocation " << n << " fails, in company: " << in_company);
      const guarded_blocks guard;
      fixture f;
      const auto h = f.hub(unix_endpoint(f.server.path()));
      counting_subscriber first, starves, next;
      redis::subscription one, two;
      if (in_company) {
        one = h->subscribe("c", first);
        REQUIRE(f.until([&] { return first.subscribed == 1; }));
      }
      {
        const failing_allocations here(n);
        try {
          two = h->subscribe("c", starves);
        } catch (const std::bad_alloc&) {
        }
        two.reset();
        failed = here.happened();
      }
      two = h->subscribe("c", next);
      CHECK(f.until([&] { return next.subscribed == 1; }));
    }
    CHECK(n > 4);
  }
}

TEST_CASE_METHOD(fixture, "a new connection ends the one before it, and so what that one had subscribed") {
  const auto h = hub_on_test_time();
  std::vector<std::string> refused;
  h->on_fencing_refused([&](const std::string& words) { refused.push_back(words); });
  counting_subscriber a;
  auto s = h->subscribe("c", a);
  REQUIRE(subscribed_in_time(a, 1));
  CHECK(fenced.empty());
  server.close(0);
  SECTION("on the same server") {
    REQUIRE(subscribed_in_time(a, 2));
    CHECK(fenced == std::vector<std::string>{"10"});
    CHECK(refused.empty());
  }
  SECTION("on the same server, which refuses") {
    kill_answer = "-NOPERM no client|kill\r\n";
    REQUIRE(subscribed_in_time(a, 2));
    CHECK(refused == std::vector<std::string>{"CLIENT KILL: NOPERM no client|kill"});
  }
  SECTION("not on another server or another run of it") {
    run = "cd34";
    REQUIRE(subscribed_in_time(a, 2));
    CHECK(fenced.empty());
    run = "ef56";
    server.close(1);
    REQUIRE(subscribed_in_time(a, 3));
    CHECK(fenced.empty());
  }
}

TEST_CASE_METHOD(fixture, "who leaves while it is told that its channel is refused is not asked for again") {
  refuses = true;
  const auto h = hub(unix_endpoint(server.path()));
  counting_subscriber leaves, other;
  auto one = h->subscribe("c", leaves);
  leaves.then = [&] { one.reset(); };
  REQUIRE(until([&] { return !one; }));
  refuses = false;
  auto two = h->subscribe("d", other);
  REQUIRE(until([&] { return other.subscribed == 1; }));
  two.reset();
  REQUIRE(until([&] { return subscribers["d"] == 0; }));
  CHECK(leaves.failed == 1);
  CHECK(subscribers["c"] == 0);
}

TEST_CASE_METHOD(fixture, "channels are sharded where the server has such, if that is left to it") {
  const auto h = hub_on_test_time(std::nullopt);
  counting_subscriber a;
  std::vector<std::string> expected{"SSUBSCRIBE"};
  SECTION("Redis 7") { version = "redis_version:7.0.15\r\n"; }
  SECTION("a later one") { version = "redis_version:10.2.0\r\n"; }
  SECTION("one that does not say") {}
  SECTION("Redis 6") {
    version = "redis_version:6.2.14\r\n";
    expected = {"SUBSCRIBE"};
  }
  SECTION("one that does not say, and has none") {
    redirect = "-ERR unknown command 'SSUBSCRIBE'\r\n";
    expected = {"SSUBSCRIBE", "SUBSCRIBE"};
  }
  const auto s = h->subscribe("c", a);
  REQUIRE(subscribed_in_time(a, 1));
  CHECK(verbs == expected);
}

TEST_CASE_METHOD(fixture, "a channel that has moved is told of once, and no subscriber is") {
  const auto h = hub_on_test_time(redis::channel_kind::sharded);
  std::vector<std::string> moved;
  counting_subscriber a;
  redis::subscription one;
  h->on_moved([&](std::string_view channel, std::string_view words) {
    moved.emplace_back(std::string(channel) + ": " + std::string(words));
    one.reset();
  });
  SECTION("away from here") {
    one = h->subscribe("c", a);
    REQUIRE(subscribed_in_time(a, 1));
    server.send(said("sunsubscribe", "c"));
    REQUIRE(until([&] { return !moved.empty(); }));
    CHECK(moved == std::vector<std::string>{"c: "});
  }
  SECTION("before it was asked for") {
    redirect = "-MOVED 1 127.0.0.1:7001\r\n";
    one = h->subscribe("c", a);
    REQUIRE(until([&] {
      alarms.advance(1ms);
      return !moved.empty();
    }));
    CHECK(moved == std::vector<std::string>{"c: MOVED 1 127.0.0.1:7001"});
    redirect.clear();
  }
  // It comes back, on the same connection.
  const auto before = a.subscribed;
  one = h->subscribe("c", a);
  REQUIRE(subscribed_in_time(a, before + 1));
  CHECK(verbs == std::vector<std::string>{"SSUBSCRIBE", "SSUBSCRIBE"});
  CHECK(a.failed == 0);
  CHECK(server.connections() == 1);
}

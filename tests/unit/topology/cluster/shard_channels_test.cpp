// SPDX-License-Identifier: BSL-1.0
// Against nodes that the test plays: who is asked, and who hears what.
#include "topology/cluster/shard_channels.hpp"

#include <functional>
#include <map>
#include <new>
#include <string>
#include <tuple>
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
using detail::node_id;
using detail::shard_channels;
using redis::channel_kind;

namespace {

constexpr node_id nobody = 0, a = 1, b = 2;

struct fixture : redis_rig {
  using place = std::tuple<node_id, bool, std::string>;  // node, classic, channel

  explicit fixture(std::vector<shard_channels::way> ways = {channel_kind::sharded})
      : channels(std::make_shared<shard_channels>(
            services_at(clock, alarms),
            shard_channels::environment{
                [this](std::string_view channel) { return owners[std::string(channel)]; },
                [this](node_id node, const shard_channels::way& by, std::string_view channel, redis::subscriber& who) {
                  const place at{node, by == channel_kind::classic, channel};
                  ++asked[node];
                  here[at] = &who;
                  return std::shared_ptr<void>(&who, [this, at](void*) { here.erase(at); });
                }},
            std::move(ways))) {
    owners["c"] = a;
  }
  ~fixture() { channels->close(); }

  redis::subscriber& at(node_id node, bool classic = false) { return *here.at({node, classic, "c"}); }
  bool is_at(node_id node) const { return here.contains({node, false, "c"}); }
  /// The node sends it away; the map may know of it.
  void send_away(node_id from, node_id to) {
    owners["c"] = to;
    channels->moved(from, "c");
  }
  void run() {
    until([this] { return io.poll() == 0; });
  }

  manual_clock clock;
  manual_timers alarms{clock};
  std::map<std::string, node_id> owners;
  std::map<place, redis::subscriber*> here;
  std::map<node_id, int> asked;
  std::shared_ptr<shard_channels> channels;
};

struct both_ways : fixture {
  both_ways() : fixture({std::nullopt, channel_kind::classic}) {}
};

}  // namespace

TEST_CASE_METHOD(fixture, "all subscribers of a channel share one subscription at the owner of its slot") {
  counting_subscriber one, two;
  auto first = channels->subscribe("c", one), second = channels->subscribe("c", two);
  CHECK(asked[a] == 1);
  at(a).on_message("too early");
  at(a).on_subscribed();
  at(a).on_message("0");
  for (const auto* l : {&one, &two}) {
    CHECK(l->subscribed == 1);
    CHECK(l->messages == 1);
  }
  first.reset();
  CHECK(is_at(a));
  CHECK_FALSE(channels->empty());
  second.reset();
  CHECK(here.empty());
  CHECK(channels->empty());
}

TEST_CASE("a subscriber of a channel that finds no memory leaves it to others") {
  if (!failing_allocations::available()) skip("the sanitizer has the allocator for itself");
  bool failed = true;
  std::size_t n = 0;
  for (; failed; ++n) {
    INFO("allocation " << n << " fails");
    const guarded_blocks guard;
    fixture f;
    counting_subscriber starves, next;
    {
      const failing_allocations here(n);
      try {
        f.channels->subscribe("c", starves).reset();
      } catch (const std::bad_alloc&) {
      }
      failed = here.happened();
    }
    CHECK(f.channels->empty());
    const auto s = f.channels->subscribe("c", next);
    f.at(a).on_subscribed();
    CHECK(next.subscribed == 1);
  }
  CHECK(n > 4);
}

TEST_CASE_METHOD(fixture, "who comes late is told that the channel is subscribed, though not inside the call") {
  counting_subscriber one, late, gone;
  const auto first = channels->subscribe("c", one);
  at(a).on_subscribed();
  const auto second = channels->subscribe("c", late);
  channels->subscribe("c", gone).reset();
  CHECK(late.subscribed == 0);
  run();
  CHECK(one.subscribed == 1);
  CHECK(late.subscribed == 1);
  CHECK(gone.subscribed == 0);
}

TEST_CASE_METHOD(fixture, "a channel moves with its slot, and every subscriber hears that it is subscribed anew") {
  counting_subscriber one;
  const auto s = channels->subscribe("c", one);
  at(a).on_subscribed();
  SECTION("its node says so") { send_away(a, b); }
  SECTION("the map says so") {
    owners["c"] = b;
    channels->map_changed();
  }
  SECTION("its node is gone") {
    owners["c"] = b;
    channels->node_gone(a);
  }
  CHECK_FALSE(is_at(a));
  REQUIRE(is_at(b));
  at(b).on_subscribed();
  CHECK(one.subscribed == 2);
  CHECK(one.failed == 0);
  channels->moved(a, "c");  // of the past
  CHECK(is_at(b));
  channels->map_changed();
  CHECK(asked == std::map<node_id, int>{{a, 1}, {b, 1}});
}

TEST_CASE_METHOD(fixture, "a channel whose slot has no owner waits for the map") {
  owners["c"] = nobody;
  counting_subscriber one;
  const auto s = channels->subscribe("c", one);
  CHECK(here.empty());
  CHECK(channels->any_homeless());
  owners["c"] = a;
  channels->map_changed();
  CHECK_FALSE(channels->any_homeless());
  CHECK(channels->any_at(a));
  CHECK_FALSE(channels->any_at(b));
  at(a).on_subscribed();
  owners["c"] = nobody;
  channels->map_changed();
  CHECK(here.empty());
  CHECK(alarms.idle());
  owners["c"] = a;
  channels->map_changed();
  at(a).on_subscribed();
  CHECK(one.subscribed == 2);
}

TEST_CASE_METHOD(fixture, "without a better map the node that has sent a channel away is asked again after a pause") {
  counting_subscriber one;
  auto s = channels->subscribe("c", one);
  send_away(a, a);
  CHECK(here.empty());
  SECTION("the pause ends") {
    alarms.advance(19ms);
    CHECK(here.empty());
    alarms.advance(1ms);
    CHECK(is_at(a));
    CHECK(asked[a] == 2);
  }
  SECTION("a better map comes first") {
    owners["c"] = b;
    channels->map_changed();
    CHECK(is_at(b));
  }
  SECTION("nobody wants it any more") { s.reset(); }
  SECTION("another channel pauses, too") {
    owners["d"] = a;
    alarms.advance(10ms);
    const auto other = channels->subscribe("d", one);
    channels->moved(a, "d");
    alarms.advance(10ms);
    CHECK(asked[a] == 3);
    alarms.advance(10ms);
    CHECK(asked[a] == 4);
  }
  CHECK(alarms.idle());
}

TEST_CASE_METHOD(fixture, "two nodes that send a channel to each other are asked seldom") {
  counting_subscriber one;
  const auto s = channels->subscribe("c", one);
  for (int i = 0; i < 1000; ++i) {
    if (is_at(a)) send_away(a, b);
    if (is_at(b)) send_away(b, a);
    alarms.advance(1ms);
  }
  CHECK(asked[a] + asked[b] <= 10);
}

TEST_CASE_METHOD(fixture, "a refusal is told to all, and asked for again by who comes after it") {
  counting_subscriber one, two;
  const auto first = channels->subscribe("c", one);
  at(a).on_subscribe_failed(errc::no_permission, "no");
  CHECK(one.failed == 1);
  CHECK(asked[a] == 1);
  channels->map_changed();
  CHECK(asked[a] == 1);
  const auto second = channels->subscribe("c", two);
  CHECK(asked[a] == 2);
  at(a).on_subscribed();
  CHECK(one.subscribed == 1);
  CHECK(two.subscribed == 1);
}

TEST_CASE_METHOD(fixture, "why nobody is known for a slot is told to the subscribers of its channels alone") {
  counting_subscriber one, other, homeless;
  const auto first = channels->subscribe("c", one);
  auto second = channels->subscribe("d", homeless), third = channels->subscribe("e", other);
  homeless.then = [&] {
    second.reset();
    third.reset();
  };
  channels->tell_homeless(redis::failure{errc::auth_failed, "no"});
  CHECK(homeless.failed == 1);
  CHECK(one.failed + other.failed == 0);
}

TEST_CASE_METHOD(both_ways, "by both ways a channel is subscribed when both say so, and heard by either") {
  counting_subscriber one;
  auto s = channels->subscribe("c", one);
  at(a, true).on_subscribed();
  CHECK(one.subscribed == 0);
  at(a, false).on_subscribed();
  CHECK(one.subscribed == 1);
  at(a, true).on_message("0");
  at(a, false).on_message("0");
  CHECK(one.messages == 2);
  SECTION("they move together") {
    send_away(a, b);
    CHECK(here.size() == 2);
    at(b, false).on_subscribed();
    CHECK(one.subscribed == 1);
    at(b, true).on_subscribed();
    CHECK(one.subscribed == 2);
  }
  SECTION("one that is subscribed anew may have missed something") {
    at(a, true).on_subscribed();
    CHECK(one.subscribed == 2);
  }
  SECTION("while one is refused it is not subscribed, though the other says so once more") {
    at(a, false).on_subscribe_failed(errc::no_permission, "no");
    at(a, true).on_subscribed();
    CHECK(one.subscribed == 1);
    at(a, false).on_subscribed();
    CHECK(one.subscribed == 2);
  }
  s.reset();
  CHECK(here.empty());
}

TEST_CASE_METHOD(fixture, "whoever is told may leave and come and close") {
  counting_subscriber one, two;
  auto first = channels->subscribe("c", one), second = channels->subscribe("c", two);
  redis::subscription again;
  SECTION("the last leaves") {
    one.then = two.then = [&] {
      first.reset();
      second.reset();
    };
    at(a).on_subscribed();
    CHECK(one.subscribed + two.subscribed == 1);
    CHECK(here.empty());
  }
  SECTION("and comes again") {
    one.then = [&] {
      first.reset();
      second.reset();
      again = channels->subscribe("c", two);
    };
    at(a).on_subscribed();
    CHECK(is_at(a));
    CHECK(two.subscribed == 0);
  }
  SECTION("refused, all leave") {
    one.then = two.then = [&] {
      first.reset();
      second.reset();
    };
    at(a).on_subscribe_failed(errc::no_permission, "no");
    CHECK(here.empty());
  }
  SECTION("it is closed") {
    at(a).on_subscribed();
    one.then = [&] { channels->close(); };
    at(a).on_message("0");
    CHECK(two.messages == 0);
    CHECK(here.empty());
    CHECK_FALSE(channels->subscribe("c", one));
  }
}

TEST_CASE_METHOD(fixture, "a subscription may outlive the channels") {
  counting_subscriber one;
  const auto s = channels->subscribe("c", one);
  at(a).on_subscribed();
  const auto late = channels->subscribe("c", one);
  channels->close();
  run();
  CHECK(one.subscribed == 1);
  CHECK(here.empty());
}

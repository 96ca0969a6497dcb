// SPDX-License-Identifier: BSL-1.0
// Against nodes that the test plays itself: what is asked of each, in order.
#include "topology/cluster/cluster.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "integration/redis_rig.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::slot_of;

namespace {

struct listener final : redis::subscriber {
  void on_subscribed() override { ++subscribed; }
  void on_message(std::string_view) override { ++messages; }
  void on_subscribe_failed(error_code error, const std::string&) override { failed.push_back(error); }

  int subscribed = 0, messages = 0;
  std::vector<error_code> failed;
};

std::string bulk(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

/// Nodes that know the handshake, the map that the test gives them, and subscriptions; what else they answer the test
/// says. They tell of each other as "node:1", "node:2" …
struct fixture : redis_rig {
  static constexpr int nobody = 0, dead = 4;  // cannot be reached; the latter, and those above, may be told of
  struct node {
    node(fixture& in, int n)
        : number(n), server(in.io, [&in, this](std::string_view bytes, std::size_t connection) {
            ++writes;
            auto& parser = parsers[connection];
            parser.feed(bytes);
            std::string out;
            while (const auto* const c = parser.next()) {
              const auto said = in.answer(*this, *c);
              if (said == "close") return said;
              out += said;
            }
            return out;
          }) {}

    int number;
    int writes = 0;  // reads that brought something, to be exact
    std::string mode = "cluster", role = "master";
    std::map<std::size_t, redis::reader> parsers;
    std::vector<std::string> heard;  // commands about keys, and ASKING
    std::map<std::string, int> subscribers;
    scripted_server server;
  };

  fixture() {
    for (int n = 1; n <= 3; ++n) nodes.push_back(std::make_unique<node>(*this, n));
  }
  ~fixture() {
    if (made) made->close();
  }

  detail::cluster& servers(std::vector<int> seeds = {1}) {
    detail::cluster::plan p;
    for (const int s : seeds) p.seeds.push_back(at(s));
    p.reach = [this](const redis::address& told) { return at(told.port); };
    p.answer_timeout = answer_timeout;
    p.ways = {way};
    p.ttl = 30s;
    p.discovered.reconnect_cap = 50ms;
    p.discovered.logins = logins;
    made = std::make_unique<detail::cluster>(time_stands ? services_at(clock, alarms) : services(), std::move(p),
                                             [this](const event& e) {
                                               events.emplace_back(to_string(e.kind));
                                               if (e.kind == event_kind::slots_moved) moved += e.count;
                                             });
    made->on_link_change([this](detail::node_id, bool up) { links += up ? '+' : '-'; });
    made->on_keys_moved([this](std::optional<detail::key_group> group) {
      ++keys_moved;
      if (group) moved_group = group;
    });
    return *made;
  }
  redis::address at(int n) const {
    if (n == nobody || n >= dead) return unix_endpoint(nodes.front()->server.path() + ".none" + std::to_string(n)).at;
    return unix_endpoint(nodes.at(static_cast<std::size_t>(n) - 1)->server.path()).at;
  }
  node& of(int n) { return *nodes.at(static_cast<std::size_t>(n) - 1); }

  std::string answer(node& by, const redis::reply& c) {
    const auto& name = c.elements[0].text;
    if (name == "PING") return "+PONG\r\n";
    if (name == "INFO")
      return bulk("\r\nrun_id:run" + std::to_string(by.number) + "\r\nredis_mode:" + by.mode + "\r\n");
    if (name == "ROLE") return "*3\r\n" + bulk(by.role) + ":0\r\n*0\r\n";
    if (name == "CLIENT") return ":1\r\n";
    if (name == "CONFIG") return ++timeouts_asked, node_timeout;
    if (name == "CLUSTER") return ++maps_told, map_of ? map_of(by) : map();
    if (name == "SSUBSCRIBE") {
      ++by.subscribers[c.elements[1].text];
      return moved_to(c.elements[1].text, by.number == 1 ? 2 : 1);
    }
    if (name.ends_with("SUBSCRIBE")) {
      const bool on = name == "SUBSCRIBE";
      by.subscribers[c.elements[1].text] += on ? 1 : -1;
      return "*3\r\n" + bulk(on ? "subscribe" : "unsubscribe") + bulk(c.elements[1].text) + ":1\r\n";
    }
    if (name == "WAIT") return ":1\r\n";
    if (name == "EVAL") {
      by.heard.push_back("mark " + c.elements.at(3).text);
      return ":1\r\n";
    }
    by.heard.push_back(c.elements.size() > 1 ? c.elements[1].text : name);
    if (name == "ASKING") return "+OK\r\n";
    return says ? says(by, by.heard.back()) : "+" + std::to_string(by.number) + "\r\n";
  }
  /// Slots from 0 on belong to node 1 up to `split`, the rest to node 2, as long as the test says nothing else.
  std::string map() const {
    std::string out;
    int rows = 0;
    for (std::size_t first = 0, last = 0; first < detail::slot_count; first = last) {
      while (last < detail::slot_count && owner(last) == owner(first)) ++last;
      if (owner(first) == 0) continue;
      ++rows;
      out += "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last - 1) + "\r\n*2\r\n" + bulk("node") +
             ':' + std::to_string(owner(first)) + "\r\n";
    }
    return '*' + std::to_string(rows) + "\r\n" + out;
  }
  int owner(std::size_t slot) const {
    const auto own = owners.find(static_cast<detail::slot_number>(slot));
    return own != owners.end() ? own->second : slot < detail::slot_count / 2u ? lower : upper;
  }

  answer_ptr ask(const std::string& key, redis::delivery how = {.timeout = 20s}) {
    auto a = std::make_shared<redis_rig::answer>();
    ticket = made->execute(key, plain_command(redis::make_command({"TEST", key}), how, [a](redis::outcome o) {
                             ++a->times;
                             a->got = std::move(o);
                           }));
    return a;
  }
  answer_ptr call(const std::string& key, redis::delivery how = {.timeout = 20s}) {
    auto a = ask(key, how);
    until([&] { return a->times != 0; });
    return a;
  }
  std::pair<error_code, unsigned> replicas_of(detail::cluster& c, const std::string& key, std::uint64_t server) {
    std::optional<std::pair<error_code, unsigned>> said;
    c.replicated(key, {.wanted = 1, .server = server, .deadline = detail::lease_clock::now() + 20s},
                 [&](const std::optional<redis::failure>& failed, unsigned had) {
                   said.emplace(failed ? failed->code : error_code(), had);
                 });
    until([&] { return said.has_value(); });
    return said.value();
  }
  std::string moved_to(const std::string& key, int n) const {
    return "-MOVED " + std::to_string(slot_of(key)) + " node:" + std::to_string(n) + "\r\n";
  }

  detail::shard_channels::way way = redis::channel_kind::classic;
  std::vector<std::unique_ptr<node>> nodes;
  int lower = 1, upper = 2;                   // owners of the halves
  std::map<detail::slot_number, int> owners;  // of single slots
  std::function<std::string(node&)> map_of;   // instead of map()
  std::function<std::string(node&, const std::string& key)> says;
  bool time_stands = false;
  manual_clock clock;
  manual_timers alarms{clock};
  std::unique_ptr<detail::cluster> made;
  std::shared_ptr<const redis::login_source> logins;
  redis::ticket ticket = 0;
  std::chrono::milliseconds answer_timeout = 500ms;
  std::string node_timeout = "-NOPERM x\r\n";
  int timeouts_asked = 0;
  int maps_told = 0, keys_moved = 0;
  std::optional<detail::key_group> moved_group;
  std::size_t moved = 0;
};

// Of the lower half, and of the upper.
const std::string low = "bar", high = "foo";

}  // namespace

TEST_CASE_METHOD(fixture, "a command goes to the owner of its slot, and the map is asked for once") {
  REQUIRE(slot_of(low) < detail::slot_count / 2u);
  REQUIRE(slot_of(high) >= detail::slot_count / 2u);
  auto& c = servers();
  const auto one = ask(low), two = ask(high);
  REQUIRE(until([&] { return one->times + two->times == 2; }));
  CHECK(one->is("1"));
  CHECK(two->is("2"));
  CHECK(call(high)->is("2"));
  CHECK(maps_told == 1);
  CHECK(c.node_of(low) != c.node_of(high));
  CHECK(c.group_of("{bar}1") == c.group_of(low));
  CHECK(c.run_of(high).empty());
  CHECK(c.answering(low));
  CHECK(links == "++");
  CHECK(of(3).server.connections() == 0);
  CHECK(moved == 0);
}

TEST_CASE_METHOD(fixture, "each connection to a node of a cluster asks for a login of its own") {
  std::set<std::string> asked;
  logins = std::make_shared<const redis::login_source>([&](const login_request& r) {
    CHECK_FALSE(r.sentinel);
    asked.emplace(r.host);
    return login{};
  });
  servers();
  CHECK(call(low)->times == 1);
  CHECK(call(high)->times == 1);
  CHECK(asked == std::set<std::string>{of(1).server.path(), of(2).server.path()});
}

TEST_CASE_METHOD(fixture, "a burst of MOVED is followed, and the map is asked for once more") {
  auto& c = servers();
  REQUIRE(call(low)->is("1"));
  lower = 2;
  says = [this](node& by, const std::string& key) { return by.number == 1 ? moved_to(key, 2) : "+2\r\n"; };
  std::vector<answer_ptr> all;
  for (int i = 0; i < 100; ++i) all.push_back(ask("{bar}" + std::to_string(i)));
  REQUIRE(until([&] { return std::all_of(all.begin(), all.end(), [](auto& a) { return a->times == 1; }); }));
  for (const auto& a : all) CHECK(a->is("2"));
  REQUIRE(until([&] { return maps_told == 2; }));
  CHECK(until([&] { return c.node_of("a") == c.node_of(high); }));
  CHECK(keys_moved >= 1);
  CHECK(moved_group == detail::slot_of("{bar}"));
  CHECK(until([&] { return moved == detail::slot_count / 2u; }));
  CHECK(maps_told == 2);
}

TEST_CASE_METHOD(fixture, "an ASK is followed with ASKING in front, and the map stays") {
  servers();
  REQUIRE(call(low)->is("1"));
  says = [](node& by, const std::string& key) {
    return by.number == 1 ? "-ASK " + std::to_string(slot_of(key)) + " node:3\r\n" : "+3\r\n";
  };
  CHECK(call(low)->is("3"));
  CHECK(of(3).heard == std::vector<std::string>{"ASKING", low});
  CHECK(call(low)->is("3"));
  CHECK(of(3).heard == std::vector<std::string>{"ASKING", low, "ASKING", low});
  CHECK(of(1).heard.size() == 3);
  CHECK(maps_told == 1);
}

TEST_CASE_METHOD(fixture,
                 "a script that has ended because its slot was being moved is sent again, and is known to have run") {
  servers();
  int times = 0;
  says = [&](node&, const std::string&) {
    return ++times == 2 ? "-ERR Script attempted to access a non local key in a cluster node script: f\r\n" : "+1\r\n";
  };
  const auto whole = call(low), in_part = call(low);
  CHECK(whole->is("1"));
  CHECK_FALSE(whole->got.ran_in_part);
  CHECK(in_part->is("1"));
  CHECK(in_part->got.ran_in_part);
}

TEST_CASE_METHOD(fixture,
                 "a command that is sent to a node which cannot be reached goes back to the owner of its slot") {
  servers();
  REQUIRE(call(low)->is("1"));
  of(3).role = "slave";
  int asks = 3;
  says = [&](node& by, const std::string& key) {
    return by.number == 1 && asks-- > 0 ? "-ASK " + std::to_string(slot_of(key)) + " node:3\r\n" : "+1\r\n";
  };
  CHECK(call(low, {.timeout = 20s, .waits_for_reply = true})->is("1"));
  CHECK(of(3).heard.empty());
}

TEST_CASE_METHOD(fixture, "a node that a slot is moving to is connected again after it could not be reached") {
  servers();
  REQUIRE(call(low)->is("1"));
  of(3).role = "slave";
  int asks = 0;
  says = [&](node& by, const std::string& key) -> std::string {
    if (by.number != 1) return "+3\r\n";
    if (++asks == 2) of(3).role = "master";
    return "-ASK " + std::to_string(slot_of(key)) + " node:3\r\n";
  };
  CHECK(call(low, {.timeout = 20s, .waits_for_reply = true})->is("3"));
  CHECK(asks > 2);
  CHECK(asks <= 5);  // it is tried with each, and not found by chance
}

TEST_CASE_METHOD(fixture, "the node that a slot is moving to is asked for the replicas of what it has granted") {
  owners[slot_of("else")] = 3;  // it stays in use
  auto& c = servers();
  REQUIRE(call(low)->is("1"));
  says = [](node& by, const std::string& key) {
    return by.number == 1 ? "-ASK " + std::to_string(slot_of(key)) + " node:3\r\n" : "+3\r\n";
  };
  const auto granted = call(low);
  REQUIRE(granted->is("3"));
  CHECK(replicas_of(c, low, granted->got.server) == std::pair(error_code(), 1u));
  CHECK(of(1).heard == std::vector{low, low});
  CHECK(of(3).heard == std::vector<std::string>{"ASKING", low, "ASKING", "mark " + low});

  lower = 2;  // it has moved elsewhere in the end
  says = [this](node& by, const std::string& key) { return by.number == 1 ? moved_to(key, 2) : "+2\r\n"; };
  REQUIRE(call(low)->is("2"));
  CHECK(replicas_of(c, low, granted->got.server) == std::pair(error_code(errc::unreachable), 0u));
}

TEST_CASE_METHOD(fixture, "a node that had a slot before is not asked for the replicas of what it has granted") {
  auto& c = servers();
  const auto granted = call(low);
  REQUIRE(granted->is("1"));
  lower = 2;
  says = [this](node& by, const std::string& key) { return by.number == 1 ? moved_to(key, 2) : "+2\r\n"; };
  REQUIRE(call(low)->is("2"));
  CHECK(replicas_of(c, low, granted->got.server) == std::pair(error_code(errc::unreachable), 0u));
  CHECK(of(1).heard == std::vector{low, low});
}

TEST_CASE_METHOD(fixture, "what is refused while a slot moves is sent again until it is done") {
  servers();
  int left = 5;
  const auto* error = GENERATE("-TRYAGAIN x\r\n", "-CLUSTERDOWN x\r\n", "-LOADING x\r\n", "-MASTERDOWN x\r\n");
  says = [&](node&, const std::string&) { return left-- > 0 ? error : "+done\r\n"; };
  CHECK(call(low)->is("done"));
  CHECK(of(1).heard.size() == 6);
}

TEST_CASE_METHOD(fixture, "what is refused until its deadline ends unreachable, with the last refusal's words") {
  servers();
  says = [](node&, const std::string&) { return "-CLUSTERDOWN The cluster is down\r\n"; };
  const auto a = call(low, {.timeout = 300ms});
  CHECK(a->has(errc::unreachable));
  CHECK(a->got.detail.find("CLUSTERDOWN The cluster is down") != std::string::npos);
  CHECK(of(1).heard.size() < 15);
}

TEST_CASE_METHOD(fixture, "TRYAGAIN is an answer at the deadline, and after a second") {
  servers();
  says = [](node&, const std::string&) { return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"; };
  const auto timeout = GENERATE(300ms, 20'000ms);
  const auto a = call(low, {.timeout = timeout});
  CHECK(a->times == 1);
  CHECK_FALSE(a->got.error);
  CHECK(a->got.reply.text.starts_with("TRYAGAIN"));
  CHECK(of(1).heard.size() < 30);
}

TEST_CASE_METHOD(fixture, "who waits for as long as it takes hears once that it is late, and is answered in the end") {
  servers();
  bool down = true;
  says = [&](node&, const std::string&) { return down ? "-CLUSTERDOWN x\r\n" : "+done\r\n"; };
  int late = 0;
  answer_ptr a = std::make_shared<redis_rig::answer>();
  const auto done = [a](redis::outcome o) {
    ++a->times;
    a->got = std::move(o);
  };
  // Long enough for a slow machine to hear one refusal. Without one the command would be late for another reason.
  made->execute(low, plain_command(redis::make_command({"TEST", low}), {.timeout = 500ms, .waits_for_reply = true},
                                   done, [&](const redis::outcome& o) {
                                     ++late;
                                     CHECK(o.error == errc::unreachable);
                                   }));
  REQUIRE(until([&] { return late == 1 && of(1).heard.size() > 6; }));
  down = false;
  REQUIRE(until([&] { return a->times == 1; }));
  CHECK(a->is("done"));
  CHECK(late == 1);
}

TEST_CASE_METHOD(fixture, "a command that is withdrawn between two sends is not sent any more") {
  auto& c = servers();
  says = [](node& by, const std::string&) { return by.number == 1 ? "-TRYAGAIN x\r\n" : "+2\r\n"; };
  answer_ptr a;
  std::size_t sent = 0;
  for (bool between = false; !between;) {  // it is at the node now and then
    a = ask(low);
    const auto before = of(1).heard.size();
    REQUIRE(until([&] { return of(1).heard.size() >= before + 8; }));
    run_for(5ms);
    sent = of(1).heard.size();
    between = c.withdraw(ticket);
  }
  CHECK(call(high)->is("2"));
  run_for(150ms);  // longer than the longest pause
  CHECK(of(1).heard.size() == sent);
  CHECK(a->times == 0);
  CHECK_FALSE(c.withdraw(ticket));
}

TEST_CASE_METHOD(fixture, "a command that was withdrawn too late is not followed where it is refused") {
  auto& c = servers();
  REQUIRE(call(low)->is("1"));
  bool withdrawn = true;
  answer_ptr a;
  says = [&](node&, const std::string& key) {
    withdrawn = c.withdraw(ticket);
    return moved_to(key, 2);
  };
  a = ask(low);
  REQUIRE(until([&] { return a->times == 1; }));
  CHECK_FALSE(withdrawn);
  CHECK(a->has(errc::unreachable));
  CHECK(of(2).heard.empty());
}

TEST_CASE_METHOD(fixture, "what was not written to a primary that is gone goes to the one that takes its place") {
  servers({1, 2});
  of(1).role = "slave";  // a replica by now, and the map does not know yet
  const auto a = ask(low), b = ask(low);
  REQUIRE(until([&] { return std::find(events.begin(), events.end(), "outage") != events.end(); }));
  CHECK(a->times == 0);
  lower = 3;
  REQUIRE(until([&] { return a->times + b->times == 2; }));
  CHECK(a->is("3"));
  CHECK(b->is("3"));
  CHECK(of(1).heard.empty());
  CHECK(of(3).heard.size() == 2);
}

TEST_CASE_METHOD(fixture, "what was written and not answered is unconfirmed, and the map is asked for at once") {
  servers({1, 2});
  REQUIRE(call(high)->is("2"));
  says = [](node&, const std::string&) { return "close"; };
  CHECK(call(high)->has(errc::unconfirmed));
  CHECK(until([&] { return maps_told == 2; }));
  CHECK(links == "+-");
}

TEST_CASE_METHOD(fixture, "a command whose slot has no owner waits for one, and the map is asked for each second") {
  lower = 0;
  servers();
  CHECK(call(low, {.timeout = 50ms})->has(errc::unreachable));
  const auto a = ask(low);
  lower = 3;
  REQUIRE(until([&] { return a->times == 1; }));
  CHECK(a->is("3"));
}

TEST_CASE_METHOD(fixture, "a replica may tell the map, and a node that does not answer is not waited for") {
  of(1).role = "slave";
  lower = 3;
  SECTION("a replica") { servers({1}); }
  SECTION("a node that says nothing") {
    map_of = [this](node& by) { return by.number == 3 ? std::string() : map(); };
    servers({3, 2});
  }
  SECTION("a node that says what is no map") {
    map_of = [this](node& by) { return by.number == 3 ? "*1\r\n:1\r\n" : map(); };
    servers({3, 2});
  }
  CHECK(call(high)->is("2"));
}

TEST_CASE_METHOD(fixture, "a node that cannot be reached is not waited for before the next is asked for the map") {
  answer_timeout = 1h;
  servers({nobody, 2});
  CHECK(call(high)->is("2"));
}

TEST_CASE_METHOD(fixture, "a node that has left the cluster, or has not joined it, is not the last to be asked") {
  const auto* view = GENERATE("*0\r\n", "*1\r\n*3\r\n:0\r\n:0\r\n*2\r\n$4\r\nnode\r\n:3\r\n");
  map_of = [&](node& by) { return by.number == 3 ? view : map(); };
  time_stands = true;  // so it is the same round
  servers({3, 2});
  const auto one = ask(high), two = ask(low);
  CHECK(until([&] { return alarms.run_due(), one->times + two->times == 2; }));
  CHECK(one->is("2"));
  CHECK(two->is("1"));
  CHECK(moved <= 1);
}

TEST_CASE_METHOD(fixture, "a seed with an old map does not hide the other seeds, and each dead node is told once") {
  map_of = [this](node& by) {
    const auto now = std::pair(lower, upper);
    if (by.number == 3) lower = dead, upper = dead + 1;
    const auto said = map();
    std::tie(lower, upper) = now;
    return said;
  };
  servers({3, 2});
  const auto one = ask(high, {.timeout = 20s, .waits_for_reply = true}),
             two = ask(low, {.timeout = 20s, .waits_for_reply = true});
  CHECK(until([&] { return one->times + two->times == 2; }));
  CHECK(one->is("2"));
  CHECK(two->is("1"));
  CHECK(std::count(events.begin(), events.end(), "outage") == 2);
}

TEST_CASE_METHOD(fixture, "a server that is no cluster is told to who waits for it, with the right scheme") {
  of(1).mode = "standalone";
  auto& c = servers();
  const auto a = call(low);
  CHECK(a->has(errc::not_primary));
  CHECK(a->got.detail.find("begins with redis://") != std::string::npos);
  CHECK(c.in_outage(low));
  listener l;
  const auto s = c.subscribe("c", l);
  REQUIRE(until([&] { return l.failed.size() == 1; }));
}

TEST_CASE_METHOD(fixture, "a subscription is at the owner of its slot, and follows it") {
  auto& c = servers();
  listener l;
  auto s = c.subscribe("{bar}c", l);
  REQUIRE(until([&] { return l.subscribed == 1; }));
  CHECK(of(1).subscribers["{bar}c"] == 1);
  owners[slot_of(low)] = 2;
  says = [this](node& by, const std::string& key) { return by.number == 1 ? moved_to(key, 2) : "+2\r\n"; };
  CHECK(call(low)->is("2"));
  REQUIRE(until([&] { return l.subscribed == 2; }));
  CHECK(of(2).subscribers["{bar}c"] == 1);
  REQUIRE(until([&] { return of(1).subscribers["{bar}c"] == 0; }));
  s.reset();
  CHECK(until([&] { return of(2).subscribers["{bar}c"] == 0; }));
}

TEST_CASE_METHOD(fixture, "two nodes that send a channel to each other are asked with longer and longer pauses") {
  way = redis::channel_kind::sharded;
  auto& c = servers();
  listener l;
  const auto before = detail::lease_clock::now();
  const auto s = c.subscribe("c", l);
  REQUIRE(until([&] { return of(1).subscribers["c"] + of(2).subscribers["c"] == 5; }));
  CHECK(detail::lease_clock::now() - before >= 40ms + 80ms + 160ms);
  CHECK(l.subscribed == 0);
  CHECK(l.failed.empty());
}

TEST_CASE_METHOD(fixture, "a node that has no slot any more is left") {
  auto& c = servers();
  c.keep_watch(true);
  REQUIRE(call(low)->is("1"));
  REQUIRE(call(high)->is("2"));
  lower = 2;
  says = [this](node& by, const std::string& key) { return by.number == 1 ? moved_to(key, 2) : "+2\r\n"; };
  CHECK(call(low)->is("2"));
  REQUIRE(until([&] { return keys_moved >= 3; }));
  CHECK(call(low)->is("2"));
  const auto connections = of(1).server.connections();
  REQUIRE(until([&] { return c.name_on_each_primary("x").size() == 1; }));
  says = {};
  CHECK(call(low)->is("2"));
  CHECK(of(1).server.connections() == connections);
}

TEST_CASE_METHOD(fixture, "the link to a node that nobody needs any more is not down") {
  auto& c = servers();
  c.keep_watch(true);
  REQUIRE(call(low)->is("1"));
  CHECK(links == "+");
  lower = 2;
  of(1).role = "slave";
  for (std::size_t n = 0; n < of(1).server.connections(); ++n) of(1).server.close(n);
  REQUIRE(until([&] { return links.size() >= 3; }));
  CHECK(links == "+-+");
  CHECK(c.node_of(low) == c.node_of(high));
}

TEST_CASE_METHOD(fixture, "a node to which nothing was sent since the last hold ended is not watched") {
  auto& c = servers();
  REQUIRE(call(low)->is("1"));
  REQUIRE(call(high)->is("2"));
  c.keep_watch(true);
  c.keep_watch(false);
  REQUIRE(call(low)->is("1"));
  c.keep_watch(true);
  const auto before = links;
  const auto end_connections = [&] {
    for (std::size_t n = 0; n < of(2).server.connections(); ++n) of(2).server.close(n);
  };
  SECTION("its end is not noticed") {
    end_connections();
    CHECK(call(low)->is("1"));
    CHECK(links == before);
  }
  SECTION("with the first command it is") {
    CHECK(call(high)->is("2"));
    end_connections();
    CHECK(until([&] { return links == before + "-+"; }));
  }
}

TEST_CASE_METHOD(fixture, "each primary has a name of its own for what is to be asked of all") {
  auto& c = servers();
  CHECK(c.name_on_each_primary("stem") == std::vector<std::string>{"stem"});
  REQUIRE(call(low)->is("1"));
  owners[7] = 3;
  const auto names = c.name_on_each_primary("stem");
  REQUIRE(names.size() == 2);
  CHECK(c.node_of(names[0]) != c.node_of(names[1]));
  CHECK(names[0].starts_with("stem"));
}

TEST_CASE_METHOD(fixture, "one node is asked for the node timeout, and a TTL that is too short for it is told once") {
  const auto nt = GENERATE(15'000, 15'100);
  node_timeout = "*2\r\n" + bulk("cluster-node-timeout") + bulk(std::to_string(nt));
  servers();
  for (int i = 0; i < 6; ++i) CHECK(call(i % 2 ? low : high)->is(i % 2 ? "1" : "2"));
  CHECK(timeouts_asked == 1);
  CHECK(std::count(events.begin(), events.end(), "ttl_shorter_than_failover") == (nt > 15'000 ? 1 : 0));
}

TEST_CASE_METHOD(fixture, "nothing is called after close(), and with nothing to do the context ends") {
  auto& c = servers();
  REQUIRE(call(low)->is("1"));
  const auto a = ask(low), b = ask("nowhere");
  SECTION("closed") {
    c.close();
    run_for(20ms);
    CHECK(a->times + b->times == 0);
  }
  SECTION("idle") {
    REQUIRE(until([&] { return a->times + b->times == 2; }));
  }
}

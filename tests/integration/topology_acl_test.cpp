// SPDX-License-Identifier: BSL-1.0
// The users of docs/guide/operating.md, on the nodes of a cluster, on the servers of Sentinel and on the sentinels.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "integration/cluster_world.hpp"
#include "integration/sentinel_world.hpp"
#include "support/server_version.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

/// The words of the command under `<!-- run: name -->`, behind `redis-cli`, as a shell would give them to it.
std::vector<std::string> command_of_the_page(const std::string& name) {
  std::ifstream file(OPERATING_MD);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto marker = "<!-- run: " + name + " -->\n\n```sh\nredis-cli ";
  const auto at = page.find(marker);
  REQUIRE(at != page.npos);
  std::vector<std::string> words(1);
  bool quoted = false;
  for (auto i = at + marker.size(); page[i] != '\n'; ++i) {
    if (page[i] == '\'')
      quoted = !quoted;
    else if (page[i] == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += page[i];
  }
  return words;
}

void allow(const real_redis& server, const std::vector<std::string>& names) {
  raw_client to(server);
  if (std::ranges::find(names, "acl of a cluster") != names.end()) need_redis_7("+ssubscribe in an ACL");
  for (const auto& name : names) CHECK(to.call(command_of_the_page(name)) == "OK");
}

const auto as_locker = [](config& c) { c.user = "locker", c.password = "secret", c.key_prefix = "app:"; };

}  // namespace

TEST_CASE("the ACL lines of the operating page are enough in a cluster, wherever its slots are") {
  calm_cluster_world w;
  for (std::size_t n = 0; n < w.rig.nodes; ++n)
    allow(w.rig.node(n), {"acl", "acl of a fenced_mutex", "acl of a cluster", "acl of min_replicas"});
  auto redis = w.make([](config& c) { as_locker(c), c.min_replicas = 1; }), other = w.make(as_locker);
  w.run(redis.connect());
  auto held = w.run(redis.fenced_mutex("m").lock());
  started<lease> waits(w, other.mutex("m").lock());
  w.until([&] { return w.awaited("app:m"); });
  w.rig.fail_over(w.rig.owner_of("app:m"));
  w.run(held.renew());
  w.run(held.unlock());
  w.until([&] { return waits.succeeded(); });
  w.run(waits.answer->value().unlock());
  CHECK_FALSE(w.told(event_kind::fencing_degraded));
}

TEST_CASE("the ACL lines of the operating page are enough for sentinels and the servers that they watch") {
  sentinel_world w;
  for (std::size_t n = 0; n < w.rig.servers; ++n) {
    allow(w.rig.server(n), {"acl", "acl of min_replicas"});
    raw_client(w.rig.server(n)).call({"ACL", "SETUSER", "locker", "-del"});  // for force_unlock() alone
  }
  for (std::size_t n = 0; n < w.rig.sentinels; ++n) allow(w.rig.sentinel(n), {"acl of a sentinel"});
  auto redis = w.make([](config& c) {
    as_locker(c);
    c.sentinel.user = "watcher", c.sentinel.password = "other", c.min_replicas = 1;
  });
  w.run(redis.connect());
  auto held = w.run(redis.mutex("m").lock());
  w.rig.begin_fail_over();
  w.until_announced();
  w.until([&] { return w.told(event_kind::restored); });
  w.run(held.unlock());
  CHECK(w.locks().empty());
  CHECK_FALSE(w.told(event_kind::fencing_degraded));
  CHECK_FALSE(w.told(event_kind::sentinels_unreachable));
}

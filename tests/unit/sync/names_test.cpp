// SPDX-License-Identifier: BSL-1.0
// Names of locks as keys and channels.
#include <regex>

#include "support/seeded_random.hpp"
#include "unit/sync/engine_fixture.hpp"

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("names of any bytes are keys and channels as Redisson makes them") {
  for (const auto& name : {std::string("\0a", 2), std::string("a\r\n$5\r\n"), std::string("{x}y"), std::string("a{"),
                           std::string(65'536, '%')}) {
    engine_fixture fixture;
    const auto a = fixture.hold(name);
    CHECK(fixture.server.last().keys() == std::vector<std::string>{name});
    CHECK(fixture.server.last().key == name);
    fixture.lock(name);
    const auto channel =
        name.find('{') == name.npos ? "redisson_lock__channel:{" + name + "}" : "redisson_lock__channel:" + name;
    CHECK(fixture.server.subscribers(channel) == 1);
    fixture.unlock(a);
    CHECK(fixture.server.last().keys() == std::vector<std::string>{name});
    CHECK(fixture.server.last().arguments().at(1) == channel);
    CHECK(fixture.last_event().name == name);
  }
}

TEST_CASE("the prefix is part of keys and channels and not of what the user sees") {
  config settings;
  settings.key_prefix = "app:{1}:";
  engine_fixture fixture(settings);
  const auto a = fixture.hold("a");
  CHECK(fixture.server.last().keys() == std::vector<std::string>{"app:{1}:a"});
  fixture.unlock(a);
  CHECK(fixture.server.last().keys() == std::vector<std::string>{"app:{1}:a"});
  CHECK(fixture.server.last().arguments().at(1) == "redisson_lock__channel:app:{1}:a");
  fixture.frees();
  CHECK(fixture.last_event().name == "a");
  CHECK(a.value()->of->keys()->name == "a");
}

TEST_CASE("owner fields are a uuid of version 8 and never repeat") {
  config settings;
  manual_clock clock;
  manual_timers timers(clock);
  fake_topology server(clock, timers);
  seeded_random random(7);
  detail::engine locks({clock, timers, server, random, settings}, {},
                       detail::owner_fields(detail::uuid{random.next(), random.next()}));
  std::vector<std::string> fields;
  for (int i = 0; i < 3; ++i) {
    const detail::lock_request request{
        .owner = owner(), .wait = detail::lock_request::wait_mode::once, .asked = detail::resolve_terms(settings, {})};
    locks.lock(std::make_shared<const detail::lock_keys>(detail::plain_lock, "n" + std::to_string(i)), request,
               [](const detail::lock_answer&) {});
    fields.push_back(server.last().arguments().at(1));
  }
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+");
  for (const auto& field : fields) CHECK(std::regex_match(field, form));
  CHECK(fields[0] != fields[1]);
  CHECK(fields[1] != fields[2]);
  CHECK(fields[0].substr(0, 36) == fields[2].substr(0, 36));
}

// SPDX-License-Identifier: BSL-1.0
// The check that a resource in Redis makes: docs/examples/3_fencing/fenced_task.lua, as it stands there.
#include <fstream>
#include <sstream>

#include "integration/world.hpp"

using namespace holdfast::test;
using texts = std::vector<std::string>;

namespace {

struct fixture {
  fixture() {
    std::ostringstream text;
    text << std::ifstream(FENCED_TASK_LUA).rdbuf();
    script = text.str();
    REQUIRE_FALSE(script.empty());
  }
  template <class... Word>
  value task(const std::string& token, Word... words) {
    return w.eye("EVAL", script, "3", "fence", "a", "b", token, words...);
  }
  std::string get(const char* key) { return w.eye("GET", key).to_string(); }

  world w;
  std::string script;
};

}  // namespace

TEST_CASE_METHOD(fixture, "a fenced task is done whole with the newest token or a newer one") {
  CHECK(task("41", "3", "SET", "a", "1", "3", "SET", "b", "2").array()[0] == 1);
  CHECK(get("a") == "1");
  CHECK(get("b") == "2");
  CHECK(get("fence") == "41");
  CHECK(task("41", "2", "INCR", "a").array()[1] == 2);
  CHECK(task("9007199254740991", "2", "INCR", "a").array()[1] == 3);
  CHECK(get("fence") == "9007199254740991");
}

TEST_CASE_METHOD(fixture, "a fenced task with an older token is done not at all and is told the newest") {
  task("42");
  const auto refused = task("41", "3", "SET", "a", "1", "3", "SET", "b", "2").array();
  CHECK(refused[0] == 0);
  CHECK(refused[1] == 42);
  CHECK(w.keys() == texts{"fence"});
}

TEST_CASE_METHOD(fixture, "a fenced task that is malformed is refused before anything is written") {
  for (const auto* token : {"0", "-1", "1.5", "9007199254740992", "many", ""})
    CHECK_THROWS_WITH(task(token, "3", "SET", "a", "1"), contains_text("FENCE"));
  CHECK_THROWS_WITH(task("1", "4", "SET", "a", "1"), contains_text("FENCE"));
  CHECK_THROWS_WITH(task("1", "0"), contains_text("FENCE"));
  CHECK_THROWS_WITH(task("1", "3", "SET", "a", "1", "-1"), contains_text("FENCE"));
  CHECK_THROWS_WITH(task("1", "3", "SET", "a", "1", "1.5", "x", "y"), contains_text("FENCE"));
  CHECK(w.keys().empty());
}

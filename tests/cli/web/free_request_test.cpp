// SPDX-License-Identifier: BSL-1.0
#include "cli/web/free_request.hpp"

#include <string>

#include "support/catch.hpp"

using namespace holdfast::cli;

namespace {

key_facts held_by(std::vector<std::string> holders) {
  key_facts key;
  key.lock.emplace();
  for (auto& holder : holders) key.lock->holds.push_back({std::move(holder)});
  return key;
}

}  // namespace

TEST_CASE("a request to free a lock names it and its holders") {
  const auto request = read_free_request(R"({"name": "x", "holders": ["a", "b"]})");
  REQUIRE(request);
  CHECK(request->name == "x");
  CHECK(request->holders == std::vector<std::string>{"a", "b"});
  for (const char* bad : {"", "x", "[]", "{}", R"({"name": "x"})", R"({"name": "", "holders": []})",
                          R"({"name": 1, "holders": []})", R"({"name": "x", "holders": [1]})",
                          R"({"name": "x", "name_hex": "1", "holders": []})", R"({"name_hex": "zz", "holders": []})"}) {
    INFO(bad);
    CHECK_FALSE(read_free_request(bad));
  }
}

TEST_CASE("a name that is no text is given by its bytes") {
  const auto request = read_free_request(R"({"name": "shown", "name_hex": "ff003c", "holders": []})");
  REQUIRE(request);
  CHECK(request->name == std::string("\xff\0<", 3));
}

TEST_CASE("a lock is freed only if each of its holders was shown") {
  CHECK(objection_to({"x", {"a"}}, held_by({"a"})).empty());
  CHECK(objection_to({"x", {"a", "b", "c"}}, held_by({"c", "a"})).empty());
  CHECK(objection_to({"x", {"a"}}, held_by({"b"})) == "another holds it now");
  CHECK(objection_to({"x", {"a"}}, held_by({"a", "b"})) == "another holds it now");
  CHECK(objection_to({"x", {}}, held_by({"a"})) == "another holds it now");
  CHECK(objection_to({"x", {"a"}}, {}) == "it is no longer held");
  CHECK(objection_to({"x", {"\\xff"}}, held_by({"\xff"})).empty());
}

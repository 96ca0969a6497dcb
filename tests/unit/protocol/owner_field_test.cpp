// SPDX-License-Identifier: BSL-1.0
#include "protocol/owner_field.hpp"

#include <regex>
#include <set>
#include <string>

#include "support/catch.hpp"

using namespace holdfast::detail;

TEST_CASE("owner fields are a uuid of version 8 and a number that grows") {
  owner_fields fields(uuid(0x0123456789abcdef, 0xffffffffffffffff));
  CHECK(fields.client_uuid() == "01234567-89ab-8def-bfff-ffffffffffff");
  const auto first = fields.next(), second = fields.next();
  CHECK(std::string_view(first.to_text()) == std::string(fields.client_uuid()) + ":1");
  CHECK(std::string_view(second.to_text()) == std::string(fields.client_uuid()) + ":2");
  CHECK(first < second);
}

TEST_CASE("an owner field of any number has its whole text, and an empty one has none") {
  const uuid client(0, 0);
  const owner_field largest(client, (std::uint64_t{1} << 56) - 1);
  CHECK(std::string_view(largest.to_text()).ends_with(":72057594037927935"));
  CHECK(std::string_view(owner_field().to_text()).empty());
  CHECK(owner_field().empty());
}

TEST_CASE("a field of several permits has as many numbers, and each is an id of 16 bytes") {
  owner_fields fields(uuid(0x0123456789abcdef, 0));
  CHECK(fields.next().amount() == 1);
  const auto three = fields.next(3), after = fields.next();
  CHECK(three.amount() == 3);
  CHECK(std::string_view(three.to_text()).ends_with(":2"));
  CHECK(std::string_view(after.to_text()).ends_with(":5"));
  const auto third = three.permit(2);
  CHECK(std::string(third.begin(), third.end()) ==
        std::string("\x01\x23\x45\x67\x89\xab\x8d\xef\0\0\0\0\0\0\0\x04", 16));
  CHECK(three != owner_field(*fields.client(), 2));
}

TEST_CASE("version and variant of the uuid do not depend on the random bits") {
  const std::regex v8("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> all;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::string high(uuid(1ULL << i, 0).text()), low(uuid(0, 1ULL << i).text());
    CHECK(std::regex_match(high, v8));
    CHECK(std::regex_match(low, v8));
    all.insert({high, low});
  }
  CHECK(all.size() == 1 + 60 + 62);  // each of the 122 bits counts; the other six all give the same uuid
}

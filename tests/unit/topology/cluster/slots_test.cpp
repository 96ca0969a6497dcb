// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/slots.hpp"

#include "support/catch.hpp"

using namespace holdfast::detail;

TEST_CASE("the slot of a key is that of Redis Cluster") {
  CHECK(slot_of("123456789") == 0x31C3 % slot_count);
  CHECK(slot_of("foo") == 12182);
  CHECK(slot_of("") == 0);
  CHECK(slot_of("\xff\x80") < slot_count);
}

TEST_CASE("a hash tag alone decides the slot, if it is not empty and is closed") {
  CHECK(slot_of("{user1000}.following") == slot_of("user1000"));
  CHECK(slot_of("a{b}{c}") == slot_of("b"));
  CHECK(slot_of("foo{{bar}}zap") == slot_of("{bar"));
  CHECK(slot_of("foo{}{bar}") != slot_of("bar"));
  CHECK(slot_of("}a{b}") == slot_of("b"));
  CHECK(slot_of("a{b") != slot_of("b"));
}

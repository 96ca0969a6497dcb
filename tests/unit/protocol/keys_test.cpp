// SPDX-License-Identifier: BSL-1.0
#include "protocol/keys.hpp"

#include <random>
#include <string>

#include "protocol/derived_keys.hpp"
#include "protocol/kind.hpp"
#include "support/catch.hpp"
#include "topology/cluster/slots.hpp"

using namespace holdfast::detail;

TEST_CASE("keys and channels are Redisson's") {
  CHECK(lock_keys(plain_lock, "orders:42").lock == "orders:42");
  CHECK(channel_of(lock_keys(plain_lock, "orders:42")) == "redisson_lock__channel:{orders:42}");
  CHECK(token_key(lock_keys(plain_lock, "orders:42", {"p:"})) == "redisson_lock_token:{p:orders:42}");
  CHECK(token_key(lock_keys(plain_lock, "{orders}:42")) == "redisson_lock_token:{orders}:42");
  CHECK(lock_keys(plain_lock, "orders:42", {"p:"}).name == "orders:42");
  CHECK(lock_keys(plain_lock, "{orders}:42").lock == "{orders}:42");
  CHECK(channel_of(lock_keys(plain_lock, "{orders}:42")) == "redisson_lock__channel:{orders}:42");
}

TEST_CASE("any opening brace keeps a channel from getting braces of its own") {
  CHECK(channel_of(lock_keys(plain_lock, "a{")) == "redisson_lock__channel:a{");
  CHECK(channel_of(lock_keys(plain_lock, "{}a")) == "redisson_lock__channel:{}a");
  CHECK(channel_of(lock_keys(plain_lock, "a}")) == "redisson_lock__channel:{a}}");
}

TEST_CASE("all that is derived from a name that fits a cluster is in one slot, and most others would split") {
  std::mt19937 random(7);
  int fits = 0, refused = 0, split = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string name(1 + random() % 7, 'a');
    for (auto& c : name) c = "{}ab:"[random() % 5];
    bool same = true;
    for (const auto* of : {&plain_lock, &fenced_lock, &simple_lock}) {
      const lock_keys k(*of, name);
      same = same && slot_of(k.lock) == slot_of(channel_of(k)) && slot_of(k.lock) == slot_of(note_key(k));
      same = same && (of->layout.token.empty() || slot_of(k.lock) == slot_of(token_key(k)));
    }
    if (!fits_a_cluster(name)) {
      ++refused;
      split += !same;
      continue;
    }
    ++fits;
    if (!same) FAIL("the keys of " << name << " are in several slots");
  }
  CHECK(fits > 50'000);
  CHECK(split > refused * 99 / 100);
}

TEST_CASE("what counts for a cluster is the name with its prefix") {
  CHECK(fits_a_cluster(lock_keys(plain_lock, "a").lock));
  CHECK(fits_a_cluster(lock_keys(plain_lock, "}a", {"{b"}).lock));
  CHECK_FALSE(fits_a_cluster(lock_keys(plain_lock, "a", {"{b"}).lock));
  CHECK_FALSE(fits_a_cluster(lock_keys(plain_lock, "{a}", {"{}"}).lock));
}

TEST_CASE("the fault of a name is found when the names of its lock are made") {
  const naming one_server{.prefix = "p:"}, cluster{.prefix = "p:", .in_slots = true};
  const auto fault_of = [](std::string_view name, const naming& by) { return lock_keys(plain_lock, name, by).fault; };
  for (const auto& by : {one_server, cluster}) {
    CHECK(fault_of(std::string_view("\0", 1), by) == name_fault::none);
    CHECK(fault_of(std::string(65'536, '\xff'), by) == name_fault::none);
    CHECK(fault_of("{a}", by) == name_fault::none);
    CHECK(fault_of("", by) == name_fault::empty);
    CHECK(fault_of(std::string(65'537, '}'), by) == name_fault::too_long);
  }
  CHECK(fault_of("a}", one_server) == name_fault::none);
  CHECK(fault_of("a}", cluster) == name_fault::splits_slots);
}

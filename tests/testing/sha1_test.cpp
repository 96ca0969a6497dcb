// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/sha1.hpp"

#include <string>

#include "lua_scripts.hpp"
#include "support/catch.hpp"

using holdfast::sim::sha1_of;

TEST_CASE("SHA-1 is that of FIPS 180, also where the length fills a block") {
  CHECK(sha1_of("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK(sha1_of("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  CHECK(sha1_of(std::string(1'000'000, 'a')) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  CHECK(sha1_of(std::string(55, 'a')) == "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  CHECK(sha1_of(std::string(56, 'a')) == "c2db330f6083854c99d4b5bfb6e8f29f201be699");
  CHECK(sha1_of(std::string(63, 'a')) == "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
  CHECK(sha1_of(std::string(64, 'a')) == "0098ba824b5c16427bd7a1122a5a442a25ec644d");
  CHECK(sha1_of(std::string(65, 'a')) == "11655326c708d70319be2610e8a57d9a5b959d3b");
}

TEST_CASE("the digest of a script is the one that the build has given it") {
  namespace lua = holdfast::detail::lua;
  for (const auto& script : {lua::acquire, lua::acquire_fenced, lua::release, lua::renew, lua::simple_acquire})
    CHECK(sha1_of(script.body) == script.sha1);
}

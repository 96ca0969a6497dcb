// SPDX-License-Identifier: BSL-1.0
#include "protocol/note/note.hpp"

#include <string>

#include "protocol/derived_keys.hpp"
#include "unit/protocol/expected_calls.hpp"

using namespace holdfast;
using namespace holdfast::test;
using namespace std::chrono_literals;
using detail::kept_note;

namespace {

redis::outcome answer_of(redis::reply reply) { return {.error = {}, .reply = std::move(reply)}; }
redis::reply text(std::string bytes) { return {redis::reply::kind::string, 0, std::move(bytes), {}}; }

}  // namespace

TEST_CASE("a note is written beside the lock of each kind, with its age and its owner field") {
  const auto words_of_note = detail::text_of_note(1500ms, u1, "order 42");
  for (const auto* of : {&detail::plain_lock, &detail::simple_lock, &detail::red_plain_lock}) {
    const detail::lock_keys keys(*of, "a", {.prefix = "p:"});
    CHECK(operands(detail::write_note(keys, 1s, words_of_note)) ==
          words{"1", "holdfast_note:{p:a}", "1000", "1500 " + std::string(some_client.text()) + ":1 order 42"});
    CHECK(by_digest(detail::read_note(keys)) == words{"GETRANGE", "holdfast_note:{p:a}", "0", "511"});
  }
  CHECK(detail::note_key(detail::lock_keys(detail::plain_lock, "{a}b")) == "holdfast_note:{a}b");
}

TEST_CASE("a note is an instant, a field, and any bytes") {
  const auto note = kept_note::parse(std::string_view("1750000000000 u:1 a b\n\0c", 24));
  REQUIRE(note);
  CHECK(note->since.time_since_epoch() == 1'750'000'000'000ms);
  CHECK(note->field == "u:1");
  CHECK(note->words == std::string_view("a b\n\0c", 6));
  CHECK(kept_note::parse("0 u:1 ")->words.empty());
  CHECK(kept_note::parse("0 u:1")->words.empty());
  CHECK(kept_note::parse("0 u:1 " + std::string(500, 'x'))->words.size() == 200);
}

TEST_CASE("a text of another form is no note") {
  for (const auto* other : {"", " ", "x", "1", "1 ", "-1 u:1 x", "+1 u:1 x", "1.5 u:1 x", "0x1 u:1 x", "1  x",
                            " 1 u:1 x", "100000000000000 u:1 x", "99999999999999999999 u:1 x"}) {
    CAPTURE(other);
    CHECK_FALSE(kept_note::parse(other));
  }
}

TEST_CASE("the note of another field is nobody's") {
  const auto found = detail::texts_in(answer_of(text("5 u:1 x")));
  REQUIRE(detail::note_of("u:1", found));
  CHECK(detail::note_of("u:1", found)->words == "x");
  for (const auto* other : {"u:2", "u", "u:11", ""}) CHECK_FALSE(detail::note_of(other, found));
  CHECK(detail::texts_in(answer_of({redis::reply::kind::error, 0, "5 u:1 x", {}})).empty());
  CHECK(detail::texts_in({.error = errc::unconfirmed, .reply = text("5 u:1 x")}).empty());
}

TEST_CASE("one of several primaries that has the note is enough") {
  redis::votes all;
  all.outcomes = {answer_of(text("")), std::nullopt, answer_of(text("5 u:2 y")),
                  redis::outcome{.error = errc::unreachable, .reply = {}}, answer_of(text("5 u:1 x"))};
  redis::outcome decided;
  decided.error = errc::quorum_failed;
  decided.of_each = &all;
  const auto texts = detail::texts_in(decided);
  REQUIRE(detail::note_of("u:1", texts));
  CHECK(detail::note_of("u:1", texts)->words == "x");
  CHECK_FALSE(detail::note_of("u:3", texts));
}

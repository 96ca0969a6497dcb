// SPDX-License-Identifier: BSL-1.0
#include "redis/resp.hpp"

#include <array>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/no_memory.hpp"
#include "support/skip.hpp"

using holdfast::redis::make_command;
using holdfast::redis::reader;
using holdfast::redis::reader_limits;
using holdfast::redis::reply;
using namespace std::string_literals;
using kind = reply::kind;

namespace {

std::string show(const reply& r) {
  switch (r.type) {
    case kind::nil: return "nil";
    case kind::integer: return std::to_string(r.integer);
    case kind::status: return '+' + r.text;
    case kind::string: return '"' + r.text + '"';
    case kind::error: return '-' + r.text;
    case kind::array: break;
  }
  std::string out = "[";
  for (const auto& e : r.elements) out += show(e) + ' ';
  return out + ']';
}

// Everything that `bytes` give when they come in pieces of `piece`.
std::vector<std::string> read(std::string_view bytes, std::size_t piece = std::string_view::npos,
                              reader_limits limits = {}) {
  reader r(limits);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto part = bytes.substr(at, piece);
    at += part.size();
    r.feed(part);
    while (auto whole = r.next()) out.push_back(show(*whole));
  }
  if (r.failed()) {
    CHECK_FALSE(r.failure().empty());
    CHECK(r.failure().size() < 100);
    out.push_back("failed");
  }
  return out;
}

using list = std::vector<std::string>;
const list failed{"failed"};

}  // namespace

TEST_CASE("a command is an array of binary-safe strings") {
  CHECK(make_command({"SET", "k\0y\r\n"s, ""}) == "*3\r\n$3\r\nSET\r\n$5\r\nk\0y\r\n\r\n$0\r\n\r\n"s);
  std::string out = "before";
  holdfast::redis::append_command(out, std::array<std::string_view, 1>{"PING"});
  CHECK(out == "before*1\r\n$4\r\nPING\r\n");
  CHECK(make_command({std::string(12345, 'x')}).starts_with("*1\r\n$12345\r\nx"));
}

TEST_CASE("a command is whole whatever the sizes of its arguments") {
  const std::string text(2000, 'x');
  for (std::size_t first = 0; first < 1100; ++first) {
    const auto a = text.substr(0, first), b = text.substr(0, 1100 - first);
    const auto expected = "*3\r\n$" + std::to_string(a.size()) + "\r\n" + a + "\r\n$" + std::to_string(b.size()) +
                          "\r\n" + b + "\r\n$2\r\n-7\r\n";
    std::string out;
    holdfast::redis::command_writer to(out);
    to.begin(3);
    to.add(a);
    to.add_encoded("$" + std::to_string(b.size()) + "\r\n" + b + "\r\n");
    to.add(-7);
    to.flush();
    REQUIRE(out == expected);
  }
}

TEST_CASE("every kind of RESP2 reply is read") {
  CHECK(read("+OK\r\n") == list{"+OK"});
  CHECK(read("-ERR no\r\n") == list{"-ERR no"});
  CHECK(read(":-42\r\n") == list{"-42"});
  CHECK(read(":9223372036854775807\r\n") == list{"9223372036854775807"});
  CHECK(read("$3\r\na\0b\r\n"s) == list{"\"a\0b\""s});
  CHECK(read("$0\r\n\r\n") == list{"\"\""});
  CHECK(read("$-1\r\n") == list{"nil"});
  CHECK(read("*-1\r\n") == list{"nil"});
  CHECK(read("*0\r\n") == list{"[]"});
  CHECK(read("*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n$-1\r\n") == list{"[1 [\"a\" [] ] nil ]"});
}

TEST_CASE("replies are the same however the bytes are cut") {
  const auto bytes = "+OK\r\n*3\r\n:1\r\n*2\r\n$1\r\na\r\n*0\r\n$-1\r\n-ERR x\r\n$7\r\n\r\n\0*1\r\n\r\n:7\r\n"s;
  const auto whole = read(bytes);
  CHECK(whole.size() == 5);
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) CHECK(read(bytes, piece) == whole);
}

TEST_CASE("an incomplete reply is not given") {
  const auto bytes = "*2\r\n$3\r\nabc\r\n:12\r\n"s;
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK(read(bytes.substr(0, size)).empty());
}

TEST_CASE("what is not RESP2 fails and stays failed") {
  for (const auto bytes : {"hello\r\n", "$-2\r\n", "*-2\r\n", ":abc\r\n", "$abc\r\n", "*1x\r\n:1\r\n",
                           ":99999999999999999999\r\n", "\x15\x03\x01"}) {
    CAPTURE(bytes);
    CHECK(read(bytes) == failed);
  }
  reader r;
  r.feed("+OK\r\n!");
  CHECK(r.next());
  CHECK_FALSE(r.next());
  CHECK(r.failed());
  r.feed("+OK\r\n");
  CHECK_FALSE(r.next());
}

TEST_CASE("RESP3 types fail without a crash") {
  for (const auto bytes :
       {",1.5\r\n", ",nan\r\n", "#t\r\n", "%1\r\n+a\r\n:1\r\n", "~1\r\n:1\r\n", ">2\r\n+message\r\n+x\r\n",
        "|1\r\n+a\r\n:1\r\n:2\r\n", "(123456789012345678901234567890\r\n", "=7\r\ntxt:abc\r\n", "!3\r\nERR\r\n",
        "_\r\n", "*1\r\n_\r\n", "*1\r\n,1.5\r\n", "*2\r\n%0\r\n#t\r\n"}) {
    CAPTURE(bytes);
    CHECK(read(bytes) == failed);
    CHECK(read(bytes, 1) == failed);
  }
}

TEST_CASE("an array that is too long is refused before memory is taken for it") {
  CHECK(read("*1025\r\n") == failed);
  CHECK(read("*4294967295\r\n") == failed);
  CHECK(read("*2147483647\r\n") == failed);
  CHECK(read("*9223372036854775807\r\n") == failed);
  CHECK(read("*1\r\n*1025\r\n") == failed);
  std::string longest = "*1024\r\n";
  for (int i = 0; i < 1024; ++i) longest += ":1\r\n";
  CHECK(read(longest).size() == 1);
  CHECK(read(longest) != failed);
}

TEST_CASE("arrays nest eight deep and no deeper") {
  const auto nested = [](int depth) {
    std::string out;
    for (int i = 0; i < depth; ++i) out += "*1\r\n";
    return out + ":1\r\n";
  };
  CHECK(read(nested(8)) == list{"[[[[[[[[1 ] ] ] ] ] ] ] ]"});
  CHECK(read(nested(9)) == failed);
  CHECK(read(nested(10'000)) == failed);
  CHECK(read(nested(3), 1, {.depth = 2}) == failed);
}

TEST_CASE("a reply that is too large fails as soon as that can be seen") {
  const std::string block(64 * 1024, 'x');
  for (const auto& start : {"$536870912\r\n"s, "+"s, "$9223372036854775000\r\n"s}) {
    reader r;
    r.feed(start);
    CHECK_FALSE(r.next());
    int blocks = 0;
    for (; !r.failed() && blocks < 100; ++blocks) {
      r.feed(block);
      CHECK_FALSE(r.next());
    }
    CHECK(blocks <= 17);
  }
  // Many small values count as one large reply.
  std::string many = "*1024\r\n";
  for (int i = 0; i < 1024; ++i) many += "$2000\r\n" + std::string(2000, 'y') + "\r\n";
  CHECK(read(many, 32 * 1024) == failed);
  std::string wide = "*1000\r\n";
  for (int i = 0; i < 1000; ++i)
    wide += "*1024\r\n" + [] {
      std::string s;
      for (int k = 0; k < 1024; ++k) s += ":1\r\n";
      return s;
    }();
  CHECK(read(wide, 32 * 1024) == failed);
}

TEST_CASE("the largest reply is read however the bytes are cut and one byte more never is") {
  constexpr reader_limits limits{.bytes = 300};
  const auto bulk = [](std::size_t size) {
    return '$' + std::to_string(size) + "\r\n" + std::string(size, 'x') + "\r\n";
  };
  const auto largest = read(bulk(300), std::string_view::npos, limits);
  CHECK(largest != failed);
  for (std::size_t piece = 1; piece < 310; ++piece) {
    CHECK(read(bulk(300), piece, limits) == largest);
    CHECK(read(bulk(301), piece, limits) == failed);
  }
}

TEST_CASE("many replies that arrive together are not one large reply") {
  std::string bytes;
  for (int i = 0; i < 40; ++i) bytes += "$50000\r\n" + std::string(50000, 'z') + "\r\n";
  const auto got = read(bytes);
  CHECK(got.size() == 40);
  CHECK(got.back() != "failed");
}

TEST_CASE("a reader can be moved") {
  reader a;
  a.feed("*2\r\n:1\r\n");
  CHECK_FALSE(a.next());
  reader b = std::move(a);
  b.feed(":2\r\n");
  CHECK(show(*b.next()) == "[1 2 ]");
}

TEST_CASE(
    "a reply for which there is no memory ends the reader with a text and leaks nothing, whichever allocation failed") {
  if (!holdfast::test::failing_allocations::available()) holdfast::test::skip("the sanitizer has the allocator");
  constexpr auto for_good = std::numeric_limits<std::size_t>::max();
  constexpr std::size_t piece = 1000;
  const std::string word(100, 'w');
  const auto bulk = "$100\r\n" + word + "\r\n";
  const auto bytes = GENERATE_COPY(
      as<std::string>{}, "*3\r\n" + bulk + "*2\r\n:7\r\n-" + word + "\r\n$-1\r\n+" + word + "\r\n",  // whole
      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",                                                        // too deep
      "$69990\r\n" + std::string(69'990, 'x') + "\r\n" + bulk,  // a large one that ends with its piece, then another
      bulk + "?\r\n");                                          // not RESP
  const auto times = GENERATE_COPY(as<std::size_t>{}, 1, for_good);
  CAPTURE(bytes.substr(0, 20), times);
  for (std::size_t n = 0;; ++n) {
    bool made = false, thrown = false, ended = false, told = false, happened = false;
    long long leaked = 0;
    {
      const holdfast::test::failing_allocations none(n, times);
      try {
        std::optional<reader> r(std::in_place, reader_limits{.depth = 4});
        made = true;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
          r->feed(std::string_view(bytes).substr(at, piece));
          while (r->next()) {
          }
        }
        ended = r->failed();
        told = !r->failure().empty();
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      happened = none.happened();
      leaked = none.leaked();
    }
    if (!happened) break;
    CAPTURE(n, made);
    CHECK(thrown == !made);  // out of nothing but the making of a reader
    CHECK((thrown || (ended && told)));
    CHECK(leaked == 0);
  }
}

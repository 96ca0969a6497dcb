// SPDX-License-Identifier: BSL-1.0
// Bytes of a server, as they are: replies keep to the caps, and are the same however the bytes are cut.
#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "redis/resp.hpp"

using namespace holdfast;
using fuzz::require;
using redis::reader;
using redis::reader_limits;
using redis::reply;

namespace {

bool same(const reply& a, const reply& b) {
  return a.type == b.type && a.integer == b.integer && a.text == b.text &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(), same);
}

std::size_t size_of(const reply& r) {
  std::size_t size = r.text.size() + r.elements.size() * sizeof(reply);
  for (const auto& e : r.elements) size += size_of(e);
  return size;
}

void keeps_to(const reader_limits& limits, const reply& r, std::size_t depth) {
  require(r.elements.size() <= limits.elements, "no array is longer than allowed");
  require(r.elements.empty() || depth < limits.depth, "no array is deeper than allowed");
  for (const auto& e : r.elements) keeps_to(limits, e, depth + 1);
}

struct result {
  std::vector<reply> replies;
  bool failed = false;
};

/// The bytes in pieces, each as long as `length` says for its place.
template <class Length>
result read(std::string_view bytes, const reader_limits& limits, Length length) {
  reader r(limits);
  result got;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto piece = bytes.substr(at, length(at));
    at += piece.size();
    r.feed(piece);
    while (auto* const whole = r.next()) got.replies.push_back(std::move(*whole));
  }
  got.failed = r.failed();
  require(got.failed != r.failure().empty(), "a failure has a text, and nothing else has");
  require(r.failure().size() < 200 && fuzz::printable(r.failure()), "the text of a failure can be printed");
  if (got.failed) {
    r.feed("+OK\r\n");
    require(!r.next() && r.failed(), "after a failure there is nothing");
  }
  return got;
}

void check(std::string_view bytes, const reader_limits& limits) {
  const auto whole = read(bytes, limits, [&](std::size_t) { return bytes.size(); });
  for (const auto& r : whole.replies) {
    keeps_to(limits, r, 0);
    require(size_of(r) <= limits.bytes, "no reply is larger than allowed");
  }
  const auto cut_as = [&](const result& other) {
    require(whole.failed == other.failed, "a failure does not depend on the cutting");
    require(std::equal(whole.replies.begin(), whole.replies.end(), other.replies.begin(), other.replies.end(), same),
            "replies do not depend on the cutting");
  };
  cut_as(read(bytes, limits, [](std::size_t) { return std::size_t{1}; }));
  cut_as(
      read(bytes, limits, [&](std::size_t at) { return std::size_t{1} + static_cast<unsigned char>(bytes[at]) % 31; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(bytes, {});
  check(bytes, {.elements = 3, .depth = 2, .bytes = 512});
  return 0;
}

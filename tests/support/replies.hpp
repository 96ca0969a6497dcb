// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "redis/resp.hpp"

/// Replies as a server would send them, for tests that play it.
namespace holdfast::test::replies {

inline redis::reply nil() { return {}; }
inline redis::reply integer(long long number) { return {redis::reply::kind::integer, number, {}, {}}; }
inline redis::reply status(std::string text) { return {redis::reply::kind::status, 0, std::move(text), {}}; }
inline redis::reply ok() { return status("OK"); }
inline redis::reply string(std::string bytes) { return {redis::reply::kind::string, 0, std::move(bytes), {}}; }
inline redis::reply error(std::string text) { return {redis::reply::kind::error, 0, std::move(text), {}}; }
inline redis::reply array(std::vector<redis::reply> elements) {
  return {redis::reply::kind::array, 0, {}, std::move(elements)};
}
inline redis::reply integers(const std::vector<long long>& numbers) {
  std::vector<redis::reply> elements;
  for (const auto number : numbers) elements.push_back(integer(number));
  return array(std::move(elements));
}

}  // namespace holdfast::test::replies

// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/keyspace.hpp"

#include <algorithm>

namespace holdfast::sim {

const std::string* hash_value::find(std::string_view name) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const field& each) { return each.first == name; });
  return found == fields_.end() ? nullptr : &found->second;
}

bool hash_value::set(std::string_view name, std::string value) {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const field& each) { return each.first == name; });
  if (found != fields_.end()) {
    found->second = std::move(value);
    return false;
  }
  fields_.emplace_back(name, std::move(value));
  return true;
}

bool hash_value::erase(std::string_view name) {
  return std::erase_if(fields_, [&](const field& each) { return each.first == name; }) != 0;
}

std::optional<double> sorted_set::score_of(std::string_view name) const {
  const auto found = scores_.find(name);
  return found == scores_.end() ? std::nullopt : std::optional(found->second);
}

bool sorted_set::set(std::string_view name, double score) {
  const bool fresh = !erase(name);
  scores_.emplace(name, score);
  members_.emplace(score, name);
  return fresh;
}

bool sorted_set::erase(std::string_view name) {
  const auto found = scores_.find(name);
  if (found == scores_.end()) return false;
  members_.erase({found->second, found->first});
  scores_.erase(found);
  return true;
}

keyspace::entry* keyspace::find(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (!over(found->second)) return &found->second;
  entries_.erase(found);
  return nullptr;
}

const keyspace::entry* keyspace::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() || over(found->second) ? nullptr : &found->second;
}

keyspace::entry& keyspace::put(std::string_view key, std::string value) {
  erase(key);
  return entries_.emplace(key, entry{std::move(value), {}}).first->second;
}

bool keyspace::erase(std::string_view key) {
  if (!find(key)) return false;
  entries_.erase(entries_.find(key));
  return true;
}

}  // namespace holdfast::sim

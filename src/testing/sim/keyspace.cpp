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

hash_value* keyspace::hash_to_write(std::string_view key) {
  if (auto* found = find(key)) return std::get_if<hash_value>(&found->value);
  return &std::get<hash_value>(entries_.emplace(key, entry{hash_value(), {}}).first->second.value);
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

// SPDX-License-Identifier: BSL-1.0
#include "sim/judge/storage.hpp"

namespace holdfast::sim {
namespace {

template <class Map>
auto& at_or_new(Map& in, std::string_view key) {
  const auto found = in.find(key);
  return found != in.end() ? found->second : in[std::string(key)];
}

}  // namespace

std::optional<time_point> storage::kept_until(server& at, std::string_view name, std::string_view field) const {
  const auto* of = semaphore_of(name);
  const auto* e = std::as_const(at.program().keys()).find(of ? of->permits : name);
  if (!stored(e, field)) return std::nullopt;
  if (!of && shared_of(name)) {
    const auto end = end_of(at, *shared_of(name), *e, field);
    return end > plan_.now() ? std::optional(end) : std::nullopt;
  }
  if (!of) return end_of(at, *e);
  const auto score = e->sorted() ? e->sorted()->score_of(field) : std::nullopt;
  const auto end = score ? end_of(at, *score) : time_point();
  return end > plan_.now() ? std::optional(end) : std::nullopt;
}

// A slot moves key by key.
time_point storage::end_of(server& at, const shared_names& of, const keyspace::entry& lock,
                           std::string_view field) const {
  if (shared_names::writes(field)) return end_of(at, lock);
  const auto key = of.deadline_of(field);
  auto& other = holder(0, key);
  for (auto* each : {&at, &other})
    if (const auto* deadline = std::as_const(each->program().keys()).find(key))
      return std::min(end_of(at, lock), end_of(*each, *deadline));
  return {};
}

std::optional<time_point> storage::backed_until(std::string_view name, std::string_view field) const {
  std::vector<time_point> each;
  const auto* of = semaphore_of(name);
  for (std::size_t node = 0; node < nodes_; ++node)
    if (const auto end = kept_until(holder(node, of ? of->permits : name), name, field)) each.push_back(*end);
  if (each.size() < majority()) return std::nullopt;
  const auto nth = each.begin() + static_cast<std::ptrdiff_t>(majority() - 1);
  std::nth_element(each.begin(), nth, each.end(), std::greater<>());
  return *nth;
}

std::optional<time_point> storage::backed_until(std::string_view name, const std::vector<std::string>& fields) const {
  auto all = time_point::max();
  for (const auto& field : fields) {
    const auto until = backed_until(name, field);
    if (!until) return std::nullopt;
    all = std::min(all, *until);
  }
  return all;
}

std::optional<time_point> storage::majority_since(std::vector<time_point> each) const {
  if (each.size() < majority()) return std::nullopt;
  const auto nth = each.begin() + static_cast<std::ptrdiff_t>(majority() - 1);
  std::nth_element(each.begin(), nth, each.end());
  return *nth;
}

template <class Use>
void storage::each_backing(Use use) const {
  struct kept {
    std::string_view key, field;
    time_point until;
  };
  std::vector<kept> all;
  for (std::size_t node = 0; node < nodes_; ++node)
    each_field(node, [&](const std::string& key, const std::string& field, time_point end) {
      all.push_back({key, field, end});
    });
  std::sort(all.begin(), all.end(), [](const kept& one, const kept& other) {
    return std::tie(one.key, one.field, other.until) < std::tie(other.key, other.field, one.until);
  });
  for (std::size_t first = 0, i = 0; i < all.size(); ++i) {
    if (all[i].key != all[first].key || all[i].field != all[first].field) first = i;
    if (i - first + 1 == majority()) use(all[i].key, all[i].field, all[i].until);
  }
}

void storage::note_backing() {
  const auto now = plan_.now();
  for (auto& [key, fields] : backing_)
    std::erase_if(fields, [&](const auto& each) { return each.second.front().until < now; });
  each_backing([&](std::string_view key, std::string_view field, time_point until) {
    auto& seen = at_or_new(at_or_new(backing_, key), field);
    std::erase_if(seen, [&](const auto& each) { return each.until <= until || each.until < now; });
    seen.push_back({until, now});
  });
}

std::optional<time_point> storage::last_backed(const std::string& name, const std::vector<std::string>& fields,
                                               time_point until) const {
  const auto known = backing_.find(name);
  if (known == backing_.end()) return std::nullopt;
  auto all = time_point::max();
  for (const auto& field : fields) {
    const auto last = last_backed(known->second, field, until);
    if (!last) return std::nullopt;
    all = std::min(all, *last);
  }
  return all;
}

std::optional<time_point> storage::last_backed(const by_text<std::vector<backing>>& fields, std::string_view field,
                                               time_point until) const {
  const auto found = fields.find(field);
  if (found == fields.end()) return std::nullopt;
  const auto& seen = found->second;  // the longer, the earlier
  const auto last = std::find_if(seen.rbegin(), seen.rend(), [&](const auto& each) { return each.until >= until; });
  return last == seen.rend() ? std::nullopt : std::optional(last->seen);
}

}  // namespace holdfast::sim

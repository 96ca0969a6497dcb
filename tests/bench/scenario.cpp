// SPDX-License-Identifier: BSL-1.0
#include "bench/scenario.hpp"

#include <algorithm>

namespace holdfast::bench {

bool matches(const scenario& s, std::string_view beginning) {
  const auto begins_so = [&](const std::string& name) { return name.starts_with(beginning); };
  return begins_so(s.name) || std::ranges::any_of(s.bounds, begins_so, &bound::target);
}

std::vector<bound> run(const scenario& s, const plan& p) {
  auto rows = s.bounds;
  const auto give_up = [&](const std::exception& e, const figures& seen) {
    for (auto& row : rows) {
      row.why = e.what();
      row.made_of = seen;
    }
  };
  try {
    const auto found = s.measure(p);
    if (found.size() != rows.size()) throw std::logic_error("as many findings as bounds are wanted");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].value = found[i].value;
      rows[i].made_of = found[i].made_of;
    }
  } catch (const not_finished& e) {
    give_up(e, e.seen);
  } catch (const std::exception& e) {
    give_up(e, {});
  }
  return rows;
}

}  // namespace holdfast::bench

// SPDX-License-Identifier: BSL-1.0
#pragma once
#include "support/raw_client.hpp"
#include "testing/sim/commands.hpp"

namespace holdfast::sim {

/// A simulated node's reply as a real server's.
inline test::value as_value(const reply& r) {
  test::value v;
  v.type = static_cast<test::value::kind>(r.type);
  v.number = r.integer;
  v.text = r.text;
  for (const auto& e : r.elements) v.elements.push_back(as_value(e));
  return v;
}

}  // namespace holdfast::sim

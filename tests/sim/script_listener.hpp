// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "sim/coverage.hpp"
#include "sim/deployment.hpp"
#include "sim/judge/judge.hpp"

namespace holdfast::sim {

/// Tells the judge what each script and each SET has answered at its node.
class script_listener {
 public:
  script_listener(sim::judge& judge, deployment& servers, trace& log, coverage& met)
      : judge_(judge), servers_(servers), log_(log), met_(met) {}

  void listen();

 private:
  void on_script(std::size_t machine, std::string_view digest, const arguments& a, const reply& r);
  void on_command(std::size_t machine, const arguments& a, const reply& r);
  void permits_granted(std::size_t machine, const arguments& a, const reply& r);
  bool replaced(std::size_t machine, const std::string& key) const;
  void token_given(std::size_t machine, const std::string& name, const std::string& field, const reply& first,
                   long long spare = 0);
  void look_for_another(std::size_t machine, std::string_view name, const arguments& a, const reply& r);
  void on_several(std::size_t machine, std::string_view name, const arguments& a, const reply& r);

  sim::judge& judge_;
  deployment& servers_;
  trace& log_;
  coverage& met_;
};

}  // namespace holdfast::sim

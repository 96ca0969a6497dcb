// SPDX-License-Identifier: BSL-1.0
#include <holdfast/metrics.hpp>
#include <holdfast/observer.hpp>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace holdfast;

namespace {

struct listener final : observer {
  listener(std::string n, std::vector<std::string>& all, bool ids) : name(std::move(n)), heard(all), wants(ids) {}
  void on(const event& e) noexcept override { heard.push_back(name + ": " + std::string(to_string(e.kind))); }
  void measured(const measurement& m) noexcept override { heard.push_back(name + ": " + std::to_string(m.count)); }
  bool wants_ids() const noexcept override { return wants; }

  const std::string name;
  std::vector<std::string>& heard;
  const bool wants;
};

}  // namespace

TEST_CASE("two observers hear everything, the first one first") {
  std::vector<std::string> heard;
  const auto both = tee(std::make_shared<listener>("a", heard, false), std::make_shared<listener>("b", heard, false));
  both->on({event_kind::lost, {}});
  both->measured({.kind = measurement_kind::wait_began, .count = 7});
  CHECK(heard == std::vector<std::string>{"a: lost", "b: lost", "a: 7", "b: 7"});
}

TEST_CASE("ids are made if one of two observers wants them") {
  std::vector<std::string> heard;
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      const auto both =
          tee(std::make_shared<listener>("a", heard, first), std::make_shared<listener>("b", heard, second));
      CHECK(both->wants_ids() == (first || second));
    }
}

TEST_CASE("of two observers one that is null is left out") {
  std::vector<std::string> heard;
  const auto one = std::make_shared<listener>("a", heard, false);
  CHECK(tee(one, nullptr) == one);
  CHECK(tee(nullptr, one) == one);
  CHECK(tee(nullptr, nullptr) == nullptr);
}

TEST_CASE("two observers live as long as what passes on to them, and metrics may be one") {
  std::vector<std::string> heard;
  auto counted = std::make_shared<metrics>();
  auto own = std::make_shared<listener>("own", heard, false);
  const std::weak_ptr<observer> first = counted, second = own;
  auto both = tee(std::move(counted), tee(std::move(own), std::make_shared<listener>("third", heard, true)));
  REQUIRE_FALSE(first.expired());
  both->on({event_kind::outage, {}});
  CHECK(heard == std::vector<std::string>{"own: outage", "third: outage"});
  std::ostringstream text;
  std::dynamic_pointer_cast<metrics>(first.lock())->write(text);
  CHECK(text.str().find("outage") != std::string::npos);
  both.reset();
  CHECK(first.expired());
  CHECK(second.expired());
}

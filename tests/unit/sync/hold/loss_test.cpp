// SPDX-License-Identifier: BSL-1.0
#include "sync/hold/loss.hpp"

#include "support/catch.hpp"

using namespace holdfast;
using detail::loss_facts;

namespace {

constexpr loss_facts within_validity{errc::lost, false, false, false, false};
constexpr loss_facts after_validity{errc::lost, true, false, false, false};

loss_facts with(loss_facts loss, bool loss_facts::*fact) {
  loss.*fact = true;
  return loss;
}

}  // namespace

TEST_CASE("a loss within the validity is Redis' word, and other fields in the key explain it before a force_unlock") {
  CHECK(cause_of(within_validity) == loss_cause::denied);
  const auto forced = with(within_validity, &loss_facts::forced);
  CHECK(cause_of(forced) == loss_cause::forced);
  CHECK(text_of_loss(forced, {}) == detail::by_force());
  const auto shared = with(forced, &loss_facts::shared);
  CHECK(cause_of(shared) == loss_cause::corrupt);
  CHECK(text_of_loss(shared, {}).starts_with("its key has other fields"));
}

TEST_CASE("a downgrade that was not confirmed explains a loss within the validity, and none after it") {
  const auto half_done = with(within_validity, &loss_facts::half_done);
  CHECK(cause_of(half_done) == loss_cause::unconfirmed);
  CHECK(text_of_loss(half_done, {}).find("downgrade") != std::string::npos);
  CHECK(text_of_loss(with(after_validity, &loss_facts::half_done), {}).find("downgrade") == std::string::npos);
}

TEST_CASE("a loss after the validity has its cause in the clock, whatever Redis has answered since") {
  for (const auto fact : {&loss_facts::shared, &loss_facts::forced})
    CHECK(cause_of(with(after_validity, fact)) == loss_cause::unconfirmed);
  CHECK(cause_of(with(after_validity, &loss_facts::renewal_paused)) == loss_cause::not_renewed);
}

TEST_CASE("the trouble of a server is told where a renewal was wanted, and nowhere else") {
  CHECK(tells_trouble(after_validity));
  CHECK(text_of_loss(after_validity, "node: refused").ends_with("confirmed it again: node: refused"));
  CHECK_FALSE(tells_trouble(with(after_validity, &loss_facts::renewal_paused)));
  CHECK_FALSE(tells_trouble(within_validity));
  CHECK_FALSE(tells_trouble(loss_facts{errc::closed, true, false, false, false}));
}

TEST_CASE("a client that is closed loses its holds without a cause") {
  const loss_facts closed{errc::closed, true, true, true, true};
  CHECK(cause_of(closed) == loss_cause::none);
  CHECK(text_of_loss(closed, {}) == "the client was closed");
  CHECK(cause_of(loss_facts{errc::corrupt_lock, true, false, false, false}) == loss_cause::corrupt);
}

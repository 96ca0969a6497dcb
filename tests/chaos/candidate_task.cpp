// SPDX-License-Identifier: BSL-1.0
#include "chaos/candidate_task.hpp"

#include <utility>

#include "chaos/pause.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds between_campaigns = 100ms, usual_lead = 80ms;
constexpr milliseconds shortest_campaign{1}, longest_campaign{1500};
// Each observer must have heard of a long lead before that ends.
constexpr milliseconds least_long_lead{450}, longest_lead{700};
constexpr unsigned long_leads = 300, proclaiming = 400, dropped = 100;  // of a thousand leads

}  // namespace

candidate_task::candidate_task(workplace& place, client& redis, std::string home, std::uint64_t seed)
    : place_(place), election_(redis.election(election_name)), home_(std::move(home)), dice_(seed) {}

asio::awaitable<void> candidate_task::run() {
  while (!place_.stopping) {
    co_await pause(dice_.around(between_campaigns));
    co_await campaign();
  }
}

asio::awaitable<void> candidate_task::campaign() {
  const auto operation = place_.next_operation();
  const auto value = home_ + std::to_string(operation);
  const auto wait = dice_.between(shortest_campaign, longest_campaign);
  place_.log.write("campaign").add("op", operation).add("value", value);
  auto granted = co_await as_result(election_.try_campaign_for(wait, value));
  if (granted && *granted) {
    co_await lead(operation, std::move(**granted));
  } else {
    place_.log.write("not_elected").add("op", operation);
  }
}

asio::awaitable<void> candidate_task::lead(std::uint64_t operation, lease leadership) {
  place_.log.write("elected").add("op", operation).add("term", leadership.token().value_or(0));
  const auto half = draw_lead() / 2;
  co_await pause(half);
  if (dice_.per_mille(proclaiming)) co_await proclaim(operation, leadership);
  co_await pause(half);
  co_await resign(operation, std::move(leadership));
}

std::chrono::microseconds candidate_task::draw_lead() {
  if (dice_.per_mille(long_leads)) return dice_.between(least_long_lead, longest_lead);
  return dice_.around(usual_lead);
}

asio::awaitable<void> candidate_task::proclaim(std::uint64_t operation, const lease& leadership) {
  const auto value = home_ + std::to_string(operation) + "-again";
  place_.log.write("proclaim").add("op", operation).add("value", value);
  const auto done = co_await as_result(election_.proclaim(leadership, value));
  if (done) place_.log.write("proclaimed").add("op", operation);
}

asio::awaitable<void> candidate_task::resign(std::uint64_t operation, lease leadership) {
  place_.log.write("resign").add("op", operation);
  if (dice_.per_mille(dropped)) co_return;
  const auto done = co_await as_result(leadership.unlock());
  if (done) place_.log.write("resigned").add("op", operation);
}

}  // namespace holdfast::chaos

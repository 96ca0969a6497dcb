// SPDX-License-Identifier: BSL-1.0
// Listeners of a lease that ends.
#include <boost/asio/error.hpp>

#include "unit/sync/lease_end_listener.hpp"

using namespace holdfast;
using namespace holdfast::test;
namespace asio = boost::asio;

TEST_CASE_METHOD(lease_end_listener, "listeners hear of a loss once and after the state says so") {
  const auto a = hold("a");
  bool held = true;
  locks->when_ended(a.value(), [&](error_code) { held = a.value()->of->exclusive(); });
  watch(a);
  advance(10s);
  confirms_nothing();
  CHECK_FALSE(held);
  CHECK(ends == std::vector<error_code>{errc::lost});
  unlock(a);
  close();
  CHECK(ends.size() == 1);
}

TEST_CASE_METHOD(lease_end_listener, "listeners hear not_held when the lease is released") {
  const owner alice;
  const auto outer = hold("a", by(alice)), inner = lock("a", by(alice));
  reenters();
  watch(inner);
  watch(outer);
  unlock(inner);
  CHECK(ends == std::vector<error_code>{errc::not_held});
  reenters();
  drop(outer);
  CHECK(ends.size() == 2);
  frees();
}

TEST_CASE_METHOD(lease_end_listener, "who listens after the end is told at once") {
  const auto a = hold("a"), b = hold("b");
  advance(10s);
  answers(replies::integers({0, 1}));
  CHECK(watch(a) == nullptr);
  unlock(b);
  CHECK(watch(b) == nullptr);
  CHECK(ends == std::vector<error_code>{errc::lost, errc::not_held});
}

TEST_CASE_METHOD(lease_end_listener, "a listener that is cancelled hears no more") {
  const auto a = hold("a");
  const auto first = watch(a);
  watch(a);
  first->cancel();
  CHECK(ends == std::vector<error_code>{asio::error::operation_aborted});
  advance(10s);
  confirms_nothing();
  CHECK(ends.size() == 2);
  first->cancel();
  CHECK(ends.size() == 2);
}

TEST_CASE_METHOD(lease_end_listener, "a listener may cancel others from its call") {
  const auto a = hold("a");
  detail::cancellable_ptr second;
  locks->when_ended(a.value(), [&](error_code) { second->cancel(); });
  second = watch(a);
  advance(10s);
  confirms_nothing();
  CHECK(ends == std::vector<error_code>{errc::lost});
}

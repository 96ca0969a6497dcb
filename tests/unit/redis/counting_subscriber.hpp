// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "redis/outcome.hpp"

namespace holdfast::test {

/// A subscriber that counts its notifications, and may act on each.
struct counting_subscriber final : redis::subscriber {
  void on_subscribed() override {
    ++subscribed;
    if (then) then();
  }
  void on_message(std::string_view) override {
    ++messages;
    if (then) then();
  }
  void on_subscribe_failed(error_code, const std::string&) override {
    ++failed;
    if (then) then();
  }

  int subscribed = 0, messages = 0, failed = 0;
  std::function<void()> then;
};

}  // namespace holdfast::test

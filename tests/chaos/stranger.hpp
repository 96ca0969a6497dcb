// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>

#include "chaos/history.hpp"
#include "chaos/workload.hpp"
#include "support/raw_client.hpp"

namespace holdfast::chaos {

/// Another program, in a thread, while it lives: ten times a second it deletes a lock of a kept_task by DEL, UNLINK or
/// an expiry. It writes down each change that was made, from its command to the answer.
class stranger {
 public:
  stranger(const std::string& history_path, std::string server, std::uint64_t seed);

 private:
  void change(const std::stop_token& end);
  void change_one(test::raw_client& server);

  history log_;
  const std::string server_;
  dice dice_;
  std::jthread thread_;
};

}  // namespace holdfast::chaos

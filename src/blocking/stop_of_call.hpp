// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <stop_token>
#include <utility>

#include "blocking/io_thread.hpp"

namespace holdfast::blocking::detail {

/// While it lives, a request of the stop cancels the call.
class stop_of_call {
 public:
  stop_of_call(io_thread& home, call_ptr of, const std::stop_token& stop)
      : on_stop_(stop, cancel{home, std::move(of)}) {}

 private:
  struct cancel {
    void operator()() const noexcept try { home.cancel(of); } catch (...) {
      // No memory: the thread waits for the end of its call.
    }
    io_thread& home;
    const call_ptr of;
  };

  const std::stop_callback<cancel> on_stop_;
};

}  // namespace holdfast::blocking::detail

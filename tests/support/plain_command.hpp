// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "redis/request.hpp"

namespace holdfast::test {

/// A command of these bytes that calls functions back. `writes`: only a primary answers it without an error.
inline redis::request plain_command(std::string bytes, redis::delivery how, redis::handler done,
                                    redis::handler late = {}, bool writes = true) {
  struct command final : redis::command {
    command(std::string b, redis::handler d, redis::handler l, bool w)
        : bytes(std::move(b)), done(std::move(d)), when_late(std::move(l)), writes(w) {}
    void append_to(std::string& out) const override { out += bytes; }
    void answered(const redis::outcome& o) override { done(o); }
    void late(const redis::outcome& o) override { when_late(o); }
    bool shows_primary(const redis::reply& r) const noexcept override { return writes && !r.is_error(); }

    const std::string bytes;
    const redis::handler done, when_late;
    const bool writes;
  };
  how.tell_late = static_cast<bool>(late);
  return {std::make_shared<command>(std::move(bytes), std::move(done), std::move(late), writes), how};
}

}  // namespace holdfast::test

// SPDX-License-Identifier: BSL-1.0
#include "sync/line/discipline.hpp"

#include "protocol/derived_keys.hpp"

namespace holdfast::detail {
namespace {

class first_asks_alone final : public discipline {
 public:
  bool asks(std::size_t place) const noexcept override { return place == 0; }
  std::size_t served_at_once(std::size_t) const noexcept override { return 1; }
  std::string channel(const lock_keys& keys) const override { return channel_of(keys); }
  call attempt_of(const lock_keys& keys, const lock_request& request, const attempts& tries) const override {
    return step_of(keys.of, tries).make(keys, request.asked.ttl, tries.field);
  }
  answer<acquire_answer> read(const kind& row, const attempts& tries, const redis::outcome& outcome) const override {
    return step_of(row, tries).read(outcome);
  }
  bool refuses_first_try(const attempts& tries, const redis::outcome& outcome) const noexcept override {
    return tries.first_try && !outcome.error && outcome.reply.is_error();
  }
  // A grant that waits for replicas is unanswered as well.
  primary_set may_have_granted(const attempts& tries) const noexcept override {
    return tries.unanswered > 0 ? everywhere : nowhere;
  }

 private:
  static const decltype(kind::acquire)& step_of(const kind& row, const attempts& tries) noexcept {
    return tries.first_try ? row.first_acquire : row.acquire;
  }
};

constexpr first_asks_alone the_first_asks;

}  // namespace

const discipline& first_asks() noexcept { return the_first_asks; }

}  // namespace holdfast::detail

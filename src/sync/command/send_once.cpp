// SPDX-License-Identifier: BSL-1.0
#include "sync/command/send_once.hpp"

#include <optional>
#include <utility>

#include "sync/command/environment.hpp"
#include "sync/command/script_command.hpp"

namespace holdfast::detail {
namespace {

class one_call : public script_command {
 public:
  explicit one_call(topology::handler done) : done_(std::move(done)) {}

 private:
  // The captures end with the call, even if the executor keeps the command a little longer.
  void on_answer(const outcome& answer) final { std::exchange(done_, {})(answer); }

  topology::handler done_;  // emptied when it is called
};

class bounded_call final : public one_call {
 public:
  bounded_call(topology::handler done, const clock& time, time_point end)
      : one_call(std::move(done)), time_(time), end_(end) {}

 private:
  // A copy by text shares the end of the first one: its answer would be useless later.
  std::optional<nanoseconds> time_left_for_copies() const override { return end_ - time_.now(); }

  const clock& time_;
  const time_point end_;
};

}  // namespace

void send_once(const environment& env, const call& asked, const delivery& delivery, topology::handler done) {
  // From the pool: with hundreds of locks under way, malloc and free were a fifth of the cost of a pair.
  make_pooled<one_call>(env.blocks, std::move(done))->send(env, asked, delivery);
}

void send_until(const environment& env, time_point end, const call& asked, urgency rank, topology::handler done) {
  make_pooled<bounded_call>(env.blocks, std::move(done), env.time, end)
      ->send(env, asked, {.timeout = end - env.now(), .rank = rank});
}

void send_to_primary(const environment& env, std::size_t primary, const call& asked, const delivery& delivery,
                     topology::handler done) {
  make_pooled<one_call>(env.blocks, std::move(done))->send(env.servers.primary(primary), asked, delivery);
}

}  // namespace holdfast::detail

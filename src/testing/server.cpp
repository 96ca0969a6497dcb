// SPDX-License-Identifier: BSL-1.0
#include <holdfast/testing/server.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <stdexcept>
#include <utility>

#include "base/escape.hpp"
#include "protocol/kind.hpp"
#include "testing/stage.hpp"

namespace holdfast::testing {
namespace {

/// The owner field of the client that takes locks over.
const std::string rival = "another-client:1";

constexpr auto longest = std::chrono::hours(24 * 365 * 10);

std::string said(const std::string& text) { return "holdfast::testing: " + text; }

std::string quoted(std::string_view key) {
  constexpr std::size_t longest_name = 80;
  return '\'' + detail::escaped(key, longest_name) + '\'';
}

void check_forward(nanoseconds by) {
  if (by < nanoseconds::zero() || by > longest)
    throw std::invalid_argument(
        said("time goes on by 0 to ten years, and never back: not by " + std::to_string(by.count()) + " ns"));
}

/// Another string or hash is no lock: a fencing counter, or the test's own data.
std::optional<lock_holder> holder_in(const sim::keyspace& keys, std::string_view key) {
  const auto* e = keys.find(key);
  if (!e || key.starts_with("redisson_lock_token:")) return std::nullopt;
  lock_holder found;
  found.ttl = e->expires ? milliseconds(*e->expires - keys.now()) : milliseconds::max();
  if (const auto* text = e->text()) {
    found.id = *text;
    found.count = 1;
    return found;
  }
  const auto& fields = e->hash()->fields();
  long long count = 0;
  if (fields.size() != 1 || !sim::to_integer(fields.front().second, count)) return std::nullopt;
  found.id = fields.front().first;
  found.count = static_cast<unsigned>(count);
  return found;
}

sim::refusal refusal_of(refusal why) {
  switch (why) {
    case refusal::none: break;
    case refusal::out_of_memory: return sim::refusal::out_of_memory;
    case refusal::disk_failed: return sim::refusal::disk_failed;
    case refusal::too_few_replicas: return sim::refusal::no_replicas;
    case refusal::read_only: return sim::refusal::replica;
    case refusal::loading: return sim::refusal::loading;
  }
  return sim::refusal::none;
}

}  // namespace

server::server(context where)
    : stage_(std::make_shared<stage>(
          stage::context{std::move(where.executor), std::move(where.poll), std::move(where.inside)})) {}

server::~server() { stage_->end(); }

client server::make_client(config c) { return make_client(stage_->executor(), std::move(c)); }

client server::make_client(asio::any_io_executor executor, config c) {
  if (!stage_->is_of(executor))
    throw std::invalid_argument(said("a client runs on the io_context of its server, and this executor is another's"));
  return stage_->make_client(executor, std::move(c));
}

link server::link_of(const client& of) const {
  auto* way = stage_->way_of(of);
  if (!way) throw std::invalid_argument(said("this is no client of this server"));
  return {stage_, *way};
}

lease server::held_lease(std::string_view name) {
  stage_->check_outside("held_lease()");
  if (!own_) own_.emplace(make_client());
  auto got = run(own_->fenced_mutex(name).try_lock());
  if (!got) throw std::logic_error(said(quoted(name) + " is held by " + holder(name).value_or(lock_holder()).id));
  return std::move(*got);
}

lease server::lost_lease(std::string_view name) {
  auto l = held_lease(name);
  lose(name);
  try {
    run(l.renew());
  } catch (const error& e) {
    if (e.code() != errc::lost) throw;
  }
  return l;
}

void server::run_until_idle() {
  stage_->check_outside("run_until_idle()");
  stage_->run_due();
}

void server::advance(nanoseconds by) {
  stage_->check_outside("advance()");
  check_forward(by);
  stage_->run_until(stage_->now() + by);
}

void server::pause_process(nanoseconds by) {
  check_forward(by);
  stage_->pause_until(stage_->now() + by);
}

nanoseconds server::elapsed() const noexcept { return stage_->now() - sim::virtual_clock().now(); }

void server::run_to_its_end(asio::awaitable<void> what, nanoseconds at_most) {
  stage_->check_outside("run()");
  check_forward(at_most);
  struct outcome {
    bool done = false;
    std::exception_ptr failed{};
    asio::cancellation_signal stop{};
  };
  const auto end = stage_->now() + at_most;
  const auto result = std::make_shared<outcome>();
  asio::co_spawn(stage_->executor(), std::move(what),
                 asio::bind_cancellation_slot(result->stop.slot(), [result](std::exception_ptr failed) {
                   result->done = true;
                   result->failed = failed;
                 }));
  const auto give_up = [&](const std::string& why) {
    result->stop.emit(asio::cancellation_type::terminal);
    stage_->run_due();
    throw std::logic_error(said("the coroutine has not ended: " + why));
  };
  stage_->run_due();
  while (!result->done) {
    const auto next = stage_->plan().next();
    if (!next) give_up("nothing will happen any more in virtual time; does it wait for a timer or a socket of Asio?");
    if (*next > end) {
      stage_->run_until(end);
      give_up("its time is over");
    }
    stage_->step();
  }
  if (result->failed) std::rethrow_exception(result->failed);
}

asio::awaitable<void> server::sleep_for(nanoseconds how_long) {
  check_forward(how_long);
  return [](std::shared_ptr<stage> on, time_point until) -> asio::awaitable<void> {
    // It never fires: what is due in virtual time ends its wait.
    const auto alarm =
        std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    bool due = false;
    on->plan().at(until, [&due, waiting = std::weak_ptr(alarm)] {
      const auto a = waiting.lock();
      if (!a) return;
      due = true;
      a->cancel();
    });
    error_code failed;
    co_await alarm->async_wait(asio::redirect_error(asio::use_awaitable, failed));
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
  }(stage_, stage_->now() + how_long);
}

std::vector<stored_lock> server::locks() const {
  const auto& keys = stage_->machine().program().keys();
  std::vector<stored_lock> all;
  for (const auto& [key, entry] : keys.all())
    if (auto who = holder_in(keys, key)) all.push_back({key, std::move(*who)});
  return all;
}

std::optional<lock_holder> server::holder(std::string_view key) const {
  return holder_in(stage_->machine().program().keys(), key);
}

void server::lose(std::string_view key) {
  if (!holder(key)) throw std::logic_error(said("nobody holds " + quoted(key)));
  stage_->machine().program().tamper().erase(key);
}

void server::take_over(std::string_view key, milliseconds ttl, format as) {
  if (ttl < milliseconds(1) || ttl > longest) throw std::invalid_argument(said("a TTL is 1 ms to ten years"));
  auto& keys = stage_->machine().program().tamper();
  if (const auto* e = keys.find(key)) as = e->text() ? format::string : format::hash;
  sim::keyspace::entry taken{rival, keys.now() + ttl.count()};
  if (as == format::hash) {
    sim::hash_value count;
    count.set(rival, "1");
    taken.value = std::move(count);
  }
  keys.restore(key, std::move(taken));
}

void server::give_back(std::string_view key) {
  const auto who = holder(key);
  if (!who || who->id != rival) throw std::logic_error(said("take_over() has not got " + quoted(key)));
  auto& program = stage_->machine().program();
  const detail::lock_keys at(program.keys().find(key)->text() ? detail::simple_lock : detail::plain_lock, key);
  program.tamper().erase(key);
  program.execute({"PUBLISH", detail::channel_of(at), "0"});
}

void server::stop_answering() { stage_->machine().stop(); }
void server::answer_again() { stage_->machine().resume(); }
void server::shut_down() { stage_->machine().shut_down(); }

void server::start() {
  if (stage_->machine().down()) stage_->machine().start(true);
}

void server::restart() {
  shut_down();
  start();
}

void server::restart_empty() {
  shut_down();
  stage_->machine().start(false);
}

void server::refuse(refusal why) { stage_->machine().program().refuse(refusal_of(why)); }

void server::step_clock(milliseconds by) {
  if (by < -longest || by > longest) throw std::invalid_argument(said("a clock is stepped by ten years at most"));
  stage_->machine().clock().step(by);
}

void server::check() {
  run_until_idle();
  if (const auto text = stage_->held().text(stage_->now()); !text.empty()) throw std::logic_error(said(text));
}

}  // namespace holdfast::testing

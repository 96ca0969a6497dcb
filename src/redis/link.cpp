// SPDX-License-Identifier: BSL-1.0
#include "redis/link.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <utility>

#include <boost/asio/error.hpp>

#include "base/assert.hpp"
#include "base/on_its_way.hpp"
#include "redis/login.hpp"

namespace holdfast::redis {

namespace {

constexpr std::size_t input_size = 32 * 1024;
constexpr std::size_t write_at_once = 256 * 1024;
// After this many replies other handlers run on the executor before more are handed on.
constexpr int replies_at_once = 256;
// A connection that was quiet for longer is looked at before it is written to: servers close idle connections.
constexpr auto trusted_without_look = std::chrono::milliseconds{5};
// A connection that received something within this time is trusted: no round trip is spent on a busy one, and no load
// balancer forgets a connection so soon.
constexpr std::chrono::seconds longest_trust{1};
// Limits of the wait for an answer to PING. At least the first, or half of it for a command that has little time; at
// most the second, unless the server is far away.
constexpr std::chrono::milliseconds least_answer_limit{20}, usual_answer_limit{100};

detail::lease_clock::duration trust_of(std::chrono::milliseconds interval) {
  using duration = detail::lease_clock::duration;
  return interval.count() == 0 ? duration::max() : std::min<duration>(interval / 2, longest_trust);
}

}  // namespace

/// The state of one connection. Its handlers keep it alive, and with it the buffers and the link.
struct link::session {
  session(std::shared_ptr<stream> stream, const reader_limits& limits) : wire(std::move(stream)), parser(limits) {}

  void read(const error_code& failed, std::size_t size) {
    std::exchange(reads_for, nullptr)->on_read(*this, failed, size);
  }
  void written(const error_code& failed, std::size_t) { std::exchange(writes_for, nullptr)->on_written(*this, failed); }

  std::shared_ptr<stream> wire;
  std::shared_ptr<link> reads_for, writes_for;  // while a handler is pending
  std::atomic<bool> digesting{false};           // a handler is on its way to hand on replies that were read
  reader parser;
  std::string out;
  std::array<char, input_size> in;
};

link::link(const io_services& services, endpoint node)
    : services_(services), node_(std::move(node)), counts_(services_.counts.get()), backoff_(node_.reconnect_cap),
      timer_(services.alarms), replacement_(services.alarms), trusted_silence_(trust_of(node_.health_check_interval)) {}

detail::lease_clock::duration link::answer_limit(detail::lease_clock::duration time_left) const noexcept {
  using duration = detail::lease_clock::duration;
  if (time_left == duration::max()) return node_.silence_limit;  // a lost packet takes TCP more than 200 ms
  const auto usual = std::clamp<duration>(node_.silence_limit / 4, least_answer_limit, usual_answer_limit);
  const auto affordable = std::max<duration>(time_left / 2, least_answer_limit / 2);
  return std::max(std::min(usual, affordable), std::min<duration>(2 * round_trip_, node_.silence_limit));
}

void link::close() {
  if (closed()) return;
  tear_down();
  state_ = state::closed;
  on_close();
}

void link::tear_down() {
  counts_.connection_down();
  timer_.stop();
  replacement_.stop();
  if (attempt_) std::exchange(attempt_, nullptr)->cancel();
  if (session_) std::exchange(session_, nullptr)->wire->close();
  handshake_.reset();
  reading_ = writing_ = starved_ = replacing_ = false;
  replace_at_ = detail::time_point::max();
}

void link::demand_changed() noexcept {
  if (state_ == state::down && wanted()) pause_then_connect();
  if (state_ == state::pausing && !wanted()) {
    timer_.stop();
    state_ = state::down;
  }
  if (state_ == state::up) watch_input();
}

void link::pause_then_connect() noexcept {
  timer_.start(std::max(backoff_.not_before(), services_.now()), [this] { begin_attempt(); });
  state_ = state::pausing;
}

void link::begin_attempt() try {
  if (inherited()) return;
  const auto now = services_.now();
  const auto deadline = now + node_.connect_timeout;
  state_ = state::connecting;
  standing_failure_.reset();
  backoff_.on_attempt(now, services_.random);
  timer_.start(deadline, [this] { on_attempt_timeout(); });
  auto done = [self = shared_from_this()](std::shared_ptr<stream> wire, failure why) {
    self->on_connected(std::move(wire), std::move(why));
  };
  attempt_ = services_.network.connect(services_, node_, deadline, std::move(done));
} catch (const std::bad_alloc&) {
  drop(without_memory());
}

void link::on_attempt_timeout() {
  const auto self = shared_from_this();
  drop_for([this] {
    const auto limit = std::to_string(node_.connect_timeout.count());
    return fail(node_, errc::unreachable, "no connection within " + limit + " ms (" + phase() + ')');
  });
}

const char* link::phase() const {
  if (attempt_) return attempt_->phase();
  return state_ == state::greeting ? "connected, no answer to the handshake" : "not begun";
}

void link::on_connected(std::shared_ptr<stream> wire, failure why) {
  HOLDFAST_ASSERT(state_ == state::connecting);
  attempt_.reset();
  if (!wire) return drop(std::move(why));
  if (!detail::if_memory([&] { session_ = std::make_shared<session>(std::move(wire), node_.limits); }))
    return drop(without_memory());
  state_ = state::greeting;
  greeted_ = services_.now();
  if (!log_in()) return;
  if (!detail::if_memory([this] { handshake_.emplace(introduce()); })) return drop(without_memory());
  flush();
}

// False: there is no login, or the callback has closed the link.
bool link::log_in() {
  if (!node_.logins) return true;
  const auto self = shared_from_this();
  const auto asking = session_;
  connection_login given{.failed = without_memory()};
  detail::if_memory([&] { given = ask_for_login(node_, services_.now(), services_.random); });
  if (session_ != asking) return false;
  if (given.failed) return drop(std::move(*given.failed)), false;
  node_.login = std::move(given.user);
  replace_at_ = given.replace_at;
  return true;
}

// A password may change after the callback has returned the old one. So the first refusal is an outage, and the
// callback is asked again. The second in a row is final.
failure link::refused_login(failure why) {
  if (!node_.logins || why.code != errc::auth_failed || std::exchange(login_refused_, true)) return why;
  return {errc::unreachable, why.detail + "; config::credentials is asked again"};
}

// True: nothing may be written to the present connection.
bool link::replace_if_due(detail::time_point now) {
  if (!replacing_ && now < replace_at_) return false;
  replacing_ = true;
  if (!may_be_replaced()) return true;
  tear_down();
  state_ = state::down;
  backoff_.forget(now);
  detail::each_step step;
  step([this] {
    last_failure_ = fail(node_, errc::unreachable, "the login of the connection ends: it is replaced").detail;
  });
  step([this] { on_replaced(); });
  demand_changed();
  step.rethrow();
  return true;
}

void link::watch_replacement() noexcept {
  if (replace_at_ == detail::time_point::max() || replacing_) return;
  if (state_ != state::up || !wanted()) return replacement_.stop();
  if (!replacement_.due()) replacement_.start(replace_at_, [this] { replace_if_due(services_.now()); });
}

void link::greet(const reply& reply) {
  const auto progress = handshake_->on_reply(reply);
  met_replica_ = handshake_->replica();
  switch (progress) {
    case handshake::progress::more: return flush_soon();
    case handshake::progress::failed: return drop(refused_login(handshake_->why()));
    case handshake::progress::done: return come_up();
  }
}

void link::come_up() {
  timer_.stop();
  state_ = state::up;
  last_failure_.clear();
  login_refused_ = false;
  counts_.connection_up(role(), node_);
  const auto now = services_.now();
  round_trip_ = now - greeted_;
  backoff_.on_ready(now);
  const auto introduced = *std::exchange(handshake_, std::nullopt);
  run_ = introduced.server().run;
  on_up(introduced);
  if (up()) flush_soon();
}

// With nothing else on the wire waiting gains nothing. A burst that follows finds this command outstanding.
void link::flush_alone(detail::time_point now) noexcept {
  if (!flush_posted_ && !writing_ && up() && now < replace_at_ && look(now) == stream::input::none)
    return write_out(now);
  flush_soon();
}

void link::flush_soon() noexcept try {
  if (flush_posted_) return;
  services_.post([self = shared_from_this(), coming = detail::on_its_way(flush_posted_)]() mutable {
    coming.arrived();
    self->flush();
  });
} catch (const std::bad_alloc&) {
  drop_soon();
}

// Closes the socket and writes nothing more: a partial write stays partial. The timer of the attempt is free, because
// an established connection does not need it.
void link::drop_soon() noexcept {
  if (!session_) return;
  starved_ = writing_ = true;
  session_->wire->close();
  timer_.start(services_.now(), [this] { drop(without_memory()); });
}

void link::flush() {
  if (writing_ || (state_ != state::greeting && state_ != state::up)) return;
  const auto now = services_.now();
  if (state_ == state::up && replace_if_due(now)) return;
  if (state_ == state::greeting || still_usable(now)) write_out(now);
}

// Without memory some commands may count as written already.
void link::write_out(detail::time_point now) try {
  HOLDFAST_ASSERT(session_ && (state_ == state::greeting || state_ == state::up));
  if (inherited()) return;
  auto& out = session_->out;
  for (bool more = true; more && !writing_;) {
    out.clear();
    if (state_ == state::greeting)
      out = handshake_->take_output();
    else
      fill(out, write_at_once, now);
    if (out.empty()) break;
    more = out.size() >= write_at_once;
    error_code failed;
    const auto written = session_->wire->write_now(out, failed);
    writing_ = failed || written < out.size();
    if (writing_ && !failed) write_rest(written);
  }
  if (!writing_ && out.capacity() > 2 * write_at_once) out = {};
  watch_input();
} catch (const std::bad_alloc&) {
  drop_soon();
}

stream::input link::look(detail::time_point now) {
  if (reading_ || session_->digesting || now - last_input_ < trusted_without_look) return stream::input::none;
  const auto seen = session_->wire->peek();
  const bool perhaps_a_ticket = seen == stream::input::some && session_->wire->secured();
  return perhaps_a_ticket ? stream::input::none : seen;
}

bool link::still_usable(detail::time_point now) {
  switch (look(now)) {
    case stream::input::none: return true;
    case stream::input::some:
      drop_for([this] { return fail(node_, errc::protocol_error, "bytes that nobody asked for"); });
      return false;
    case stream::input::ended:
      drop_for([this] { return fail(node_, errc::unreachable, "closed by the server while idle"); });
      return false;
  }
  return false;
}

void link::write_rest(std::size_t from) {
  session_->writes_for = shared_from_this();
  session_->wire->async_write(asio::buffer(session_->out) + from, stream::handler::to<&session::written>(session_));
}

void link::on_written(const session& session, const error_code& failed) {
  if (&session != session_.get() || failed) return;
  writing_ = false;
  flush();
}

void link::watch_input() noexcept {
  watch_replacement();
  const bool needed = state_ == state::greeting || (state_ == state::up && expects_input());
  if (reading_ && !needed && !writing_) session_->wire->cancel();  // would end the write as well
  if (!needed || reading_ || starved_ || session_->digesting) return;
  HOLDFAST_ASSERT(session_);
  if (!detail::if_memory([this] { read_more(); })) drop_soon();
}

void link::read_more() {
  session_->reads_for = shared_from_this();
  session_->wire->async_read_some(asio::buffer(session_->in), stream::handler::to<&session::read>(session_));
  reading_ = true;
}

void link::on_read(session& session, const error_code& failed, std::size_t size) {
  if (&session != session_.get()) return;
  reading_ = false;
  if (starved_) return drop(without_memory());
  if (failed == asio::error::operation_aborted)
    return watch_input();  // cancelled for lack of demand, and the demand may be back
  if (failed) return drop_for([&] { return lost(failed); });
  session.parser.feed({session.in.data(), size});
  take_replies(session_ptr(session_));
}

void link::take_replies(const session_ptr& session) {
  last_input_ = services_.now();
  detail::each_step step;  // a reply without memory takes none from the others
  for (int taken = 0; auto* const reply = session->parser.next(); ++taken) {
    if (state_ == state::greeting) {
      if (!detail::if_memory([&] { greet(*reply); }) && session == session_) drop(without_memory());
    } else {
      step([&] { on_reply(std::move(*reply)); });
    }
    if (session != session_) break;
    if (taken >= replies_at_once && detail::if_memory([&] { take_replies_soon(session); })) break;
  }
  if (session == session_ && session->parser.failed()) step([&] { drop_for([&] { return garbled(*session); }); });
  if (session == session_ && up()) step([this] { on_settled(); });
  if (session == session_ && replacing_) step([this] { replace_if_due(last_input_); });
  if (session == session_) watch_input();
  step.rethrow();
}

void link::take_replies_soon(const session_ptr& session) {
  services_.post([self = shared_from_this(), session, coming = detail::on_its_way(session->digesting)]() mutable {
    if (session != self->session_) return;
    coming.arrived();
    self->take_replies(session);
  });
}

failure link::garbled(const session& session) const {
  if (session.parser.out_of_memory()) return fail(node_, errc::unreachable, "no memory for a reply");
  constexpr char tls_alert = 0x15;
  const bool tls = state_ == state::greeting && !session.wire->secured() && session.in[0] == tls_alert;
  return fail(node_, errc::protocol_error, tls ? "the server expects TLS: rediss://" : session.parser.failure());
}

failure link::lost(const error_code& failed) {
  if (const auto cause = session_->wire->tls_cause(failed); !cause.empty()) return fail(node_, errc::tls_failed, cause);
  const std::string during = state_ == state::greeting ? " during the handshake" : "";
  if (failed == asio::error::eof) return fail(node_, errc::unreachable, "closed by the server" + during);
  return fail(node_, errc::unreachable, failed.message() + during);
}

void link::drop(failure why) {
  detail::each_step step;
  step([&] { end(why); });
  demand_changed();
  step.rethrow();
}

void link::retarget(address to, failure why) {
  if (closed()) return;
  const auto self = shared_from_this();
  detail::each_step step;
  if (up()) step([&] { end(why); });
  if (closed()) return step.rethrow();
  tear_down();
  state_ = state::down;
  counts_.forget();
  node_.at = std::move(to);
  standing_failure_.reset();
  backoff_.forget(services_.now());
  step([&] { last_failure_ = why.detail; });
  demand_changed();
  step.rethrow();
}

void link::follow(std::string_view run) {
  if (!up() || run.empty() || run_.empty() || run_ == run) return;
  drop_for([this] { return fail(node_, errc::unreachable, "the name leads to another server now"); });
}

void link::rest() {
  if ((state_ != state::connecting && state_ != state::greeting) || wanted()) return;
  tear_down();
  state_ = state::down;
}

void link::end(const failure& why) {
  const auto now = services_.now();
  const bool was_up = up(), useful = was_useful(), forgotten = doubtful(now);
  tear_down();
  HOLDFAST_ASSERT(!session_ && !attempt_);
  state_ = state::down;
  if (!detail::if_memory([&] { last_failure_ = why.detail; })) last_failure_.clear();
  if (was_up) {
    if (useful)
      backoff_.on_lost(now, forgotten, services_.random);
    else
      backoff_.on_failed(now, true, services_.random);
    on_down(why);
  } else {
    const bool mends = mends_itself(why);
    backoff_.on_failed(now, mends, services_.random);
    if (!mends) detail::if_memory([&] { standing_failure_ = why; });
    on_attempt_failed(why);
  }
}

const failure* link::standing_failure() const {
  return standing_failure_ && services_.now() < backoff_.not_before() ? &*standing_failure_ : nullptr;
}

bool link::input_waiting() {
  return session_ && (session_->digesting || session_->wire->peek() == stream::input::some);
}

std::string link::why_down() const {
  if (!last_failure_.empty()) return last_failure_;
  return fail(node_, errc::unreachable, std::string("no connection yet (") + phase() + ')').detail;
}

}  // namespace holdfast::redis

// SPDX-License-Identifier: BSL-1.0
#include "cli/web/lock_site.hpp"

#include <boost/json/serialize.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <sstream>
#include <utility>

#include "cli/hold_breaking.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "cli/web/page.hpp"
#include "cli/web/server_survey.hpp"

namespace holdfast::cli {
namespace {

constexpr milliseconds snapshot_time{500};  // the age of a text that is shared by readers
constexpr std::chrono::seconds survey_time{30};

http_answer json_answer(std::shared_ptr<const std::string> body) { return {.body = std::move(body)}; }

http_answer text_answer(unsigned status, std::string body) {
  return {.status = status,
          .type = "text/plain; charset=utf-8",
          .body = std::make_shared<const std::string>(std::move(body))};
}

http_answer free_answer(unsigned status, std::string_view reason) {
  json::object answer;
  answer["freed"] = status == 200;
  answer["text"] = reason;
  return {.status = status, .body = std::make_shared<const std::string>(json::serialize(answer))};
}

asio::awaitable<void> warm(client& redis, lock_options_given wanted, const config& settings) {
  try {
    co_await mutex_of(redis, wanted, settings).is_locked();
  } catch (const error&) {
    // break_hold() reports what matters.
  }
}

}  // namespace

std::string random_secret() {
  detail::system_random random;
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(random.next()),
                static_cast<unsigned long long>(random.next()));
  return text.data();
}

lock_site::lock_site(gate_settings gate, config given, const detail::settings& settings, network& over,
                     std::function<void()> on_ready)
    : gate_(gate), may_free_(!gate.token.empty()), given_(std::move(given)), settings_(settings), over_(over),
      on_ready_(std::move(on_ready)), feed_(over.executor()) {
  given_.observer = numbers_;
}

asio::awaitable<http_answer> lock_site::answer(route to, std::string body) {
  switch (to) {
    case route::page: co_return page();
    case route::locks: co_return json_answer(locks());
    case route::metrics: co_return metrics_page();
    case route::health: co_return text_answer(200, "ok\n");
    case route::readiness: co_return readiness();
    case route::servers: {
      auto text = co_await servers();
      co_return json_answer(std::move(text));
    }
    case route::free: {
      const auto request = read_free_request(body);
      if (!request) co_return free_answer(400, "the body has a name and the holders that were shown");
      co_return co_await free(*request);
    }
    case route::events: break;  // the server streams them
  }
  co_return text_answer(404, "");
}

http_answer lock_site::page() {
  auto nonce = random_secret();
  auto body = std::make_shared<const std::string>(page_with(nonce));
  return {.type = "text/html; charset=utf-8", .body = std::move(body), .nonce = std::move(nonce)};
}

http_answer lock_site::readiness() const {
  if (on_ready_) return text_answer(503, "not ready: the locks were not read yet\n");
  return is_away_ ? text_answer(503, "not ready: Redis does not answer\n") : text_answer(200, "ready\n");
}

http_answer lock_site::metrics_page() const {
  std::ostringstream out;
  numbers_->write(out);
  out << board_.gauges() << "# HELP holdfast_page_readers Pages that are open.\n# TYPE holdfast_page_readers gauge\n"
      << "holdfast_page_readers " << feed_.readers()
      << "\n# HELP holdfast_page_redis_up 1 if Redis answers.\n# TYPE holdfast_page_redis_up gauge\n"
      << "holdfast_page_redis_up " << (is_away_ ? 0 : 1) << '\n';
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = std::make_shared<const std::string>(out.str())};
}

/// Readers that ask at the same time share one text: many of them need the memory of one.
lock_site::text lock_site::locks() {
  const auto now = clock::now();
  if (snapshot_ && now - snapshot_at_ < snapshot_time) return snapshot_;
  snapshot_ = std::make_shared<const std::string>("{" + board_.snapshot(now) + ",\"log\":" + log_.snapshot(now) +
                                                  ",\"away\":" + (is_away_ ? "true" : "false") +
                                                  ",\"may_free\":" + (may_free_ ? "true" : "false") + "}");
  snapshot_at_ = now;
  return snapshot_;
}

asio::awaitable<lock_site::text> lock_site::servers() {
  const bool is_old = surveyed_at_ == clock::time_point{} || clock::now() - surveyed_at_ >= survey_time;
  if (is_surveying_ || !is_old) co_return servers_;
  is_surveying_ = true;
  try {
    auto found = co_await survey_servers(over_, settings_);
    servers_ = std::make_shared<const std::string>(std::move(found));
    surveyed_at_ = clock::now();
  } catch (const std::exception&) {
    // No memory: the next request asks again.
  }
  is_surveying_ = false;
  co_return servers_;
}

asio::awaitable<http_answer> lock_site::free(free_request request) {
  if (is_freeing_) co_return free_answer(409, "another lock is being freed: try again");
  is_freeing_ = true;
  unsigned status = 200;
  std::string reason;
  try {
    reason = co_await break_shown_hold(request);
    if (!reason.empty()) status = 409;
  } catch (const std::exception& failed) {
    status = 502;
    reason = failed.what();
  }
  is_freeing_ = false;
  json::object event;
  put_bytes(event, "name", request.name);
  event["event"] = status == 200 ? "freed" : "not freed";
  event["text"] = reason;
  log(std::move(event));
  co_return free_answer(status, reason);
}

/// Decision: the holder is compared, then its hold is broken by the public API. A lock that changes hands between the
/// two, within a round trip, is freed from its new holder. Its lease reports the loss as any other. So the client that
/// breaks it connects before, by a read whose answer does not matter.
asio::awaitable<std::string> lock_site::break_shown_hold(const free_request& request) {
  lock_options_given wanted;
  wanted.name = request.name;
  client redis(co_await asio::this_coro::executor, given_);
  co_await warm(redis, wanted, given_);
  const auto reader = co_await lock_reader::open(over_, settings_);
  const auto key = co_await reader->read(request.name);
  if (auto reason = refusal_of(key, wanted); !reason.empty()) co_return reason;
  if (const auto objection = objection_to(request, key); !objection.empty()) co_return std::string(objection);
  const bool had_holder = co_await break_hold(redis, given_, wanted, key);
  co_return had_holder ? "" : "it is no longer held";
}

std::string lock_site::greeting() const { return event_text("hello", "{}"); }

void lock_site::publish(std::string_view event, const std::string& data) {
  snapshot_.reset();
  feed_.publish(event_text(event, data));
}

void lock_site::log(json::object event) { publish("log", log_.add(std::move(event), clock::now())); }

void lock_site::on_event(const lock_event& event) {
  if (event.happened == "unreachable") is_away_ = true;
  if (event.happened == "connected") is_away_ = false;
  log(json_of(event));
}

void lock_site::on_poll(const lock_map& locks) {
  const auto changes = board_.replace(locks, clock::now());
  if (!changes.empty()) publish("change", changes);
  if (const auto ready = std::exchange(on_ready_, nullptr)) ready();
}

void lock_site::on_lock(const std::string& name, const lock_facts* lock) {
  const auto changes = board_.set(name, lock, clock::now());
  if (!changes.empty()) publish("change", changes);
}

}  // namespace holdfast::cli

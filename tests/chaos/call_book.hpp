// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::chaos {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using call_instant = std::chrono::steady_clock::time_point;

/// A call or body that encloses other calls. Its cancellation ends them at once.
struct cancel_scope {
  std::shared_ptr<const cancel_scope> outer{};
  bool by_loss = false;  ///< the body of a with_lock(): a loss cancels it, at an instant that nobody tells
  std::optional<call_instant> cancelled{};  ///< since when
};

/// One call of the library, as its caller sees it.
struct call_terms {
  std::size_t task = 0;
  std::string what{};                   ///< for the trace: verb, locks, terms
  std::optional<milliseconds> limit{};  ///< the header promises an answer by then
  bool throws_retry = true;             ///< unreachable, server_refused, quorum_failed and overloaded are answers
  bool throws_not_held = false;
  bool outlives_cancel = false;   ///< a cancellation may come too late for it, and shortens no limit
  bool not_before_limit = false;  ///< unreachable and quorum_failed are no answers before the limit
  std::shared_ptr<const cancel_scope> scope{};
};

/// Judges each call and each grant, and keeps what happened last for the report of a violation. Any thread; calls and
/// leases are those of one event loop.
class call_book {
 public:
  /// Of a call that lasts.
  using number = std::uint64_t;

  number begin(call_terms);
  /// `own_cancel`: when the caller has cancelled this call alone.
  void end(number, error_code, std::string_view answer = {}, std::optional<call_instant> own_cancel = {});
  /// The coroutine was cancelled before the call could answer.
  void left(number);

  void note(std::size_t task, std::string text);
  /// An event of an observer.
  void note_event(std::string_view kind, std::string text);
  /// Of no task.
  void note(std::string text) { note(nobody, std::move(text)); }
  void violation(std::string text, std::string_view about = {});

  /// The event loop was late by so much, at that instant. Judges the calls that have ended before.
  void beat(call_instant now, std::chrono::nanoseconds late);

  /// Whether a lease that is held may be held beside the others, by its id.
  void check_alone(const lease&);
  void enter(const lease&);
  void leave(const lease&);
  /// The last lease of a hold has been unlocked, and Redis has said so.
  void released(std::string_view id, bool confirmed);
  /// Whether the hold with this owner field was unlocked, and not granted again.
  bool was_released(const std::string& field) const;

  std::size_t calls() const;
  std::size_t open_calls() const;
  std::size_t violations() const;
  /// Says of each call that still lasts since when.
  void tell_open_calls();
  /// A line with what was seen.
  std::string summary() const;
  /// Forgets what only a round needs.
  void next_round();

  static constexpr std::size_t nobody = ~std::size_t{};

 private:
  struct open_call {
    call_terms terms;
    call_instant begun;
  };
  struct late_call {
    open_call call;
    call_instant ended, limit;
    std::string answer;
  };
  struct line {
    call_instant at;
    std::size_t task;
    std::string text;
  };

  void add_line(std::size_t task, std::string text);
  void tell(std::string text, std::string_view about, std::size_t task);
  void judge_code(const open_call&, error_code, std::optional<call_instant> own_cancel, call_instant now);
  void judge(const late_call&);
  std::chrono::nanoseconds held_up(call_instant from, call_instant to) const;

  mutable std::mutex guard_;
  const call_instant start_ = std::chrono::steady_clock::now();
  number last_ = 0;
  std::size_t ended_ = 0, violations_ = 0;
  std::map<number, open_call> open_;
  std::vector<late_call> late_;
  std::deque<line> lines_;
  std::deque<std::pair<call_instant, std::chrono::nanoseconds>> beats_;
  std::map<std::string, std::vector<const lease*>> held_;  // by name
  std::map<std::string, bool, std::less<>> released_;      // by owner field
  std::map<std::string, std::size_t, std::less<>> answers_, events_;
};

/// The observer of a client: its events go to the trace.
class book_observer final : public observer {
 public:
  book_observer(call_book& book, std::string client) : book_(book), client_(std::move(client)) {}
  void on(const event& e) noexcept override;

 private:
  call_book& book_;
  const std::string client_;
};

/// A call's place in the book, also when its coroutine is cancelled.
class booked {
 public:
  booked(call_book& book, call_terms terms) : book_(book), number_(book.begin(std::move(terms))) {}
  booked(const booked&) = delete;
  booked& operator=(const booked&) = delete;
  ~booked() {
    if (!ended_) book_.left(number_);
  }
  void end(error_code e, std::string_view answer = {}, std::optional<call_instant> own_cancel = {}) {
    ended_ = true;
    book_.end(number_, e, answer, own_cancel);
  }

 private:
  call_book& book_;
  const call_book::number number_;
  bool ended_ = false;
};

/// Awaits `call`, and has it judged.
template <class T>
asio::awaitable<result<T>> booked_call(call_book& book, call_terms terms, asio::awaitable<T> call) {
  booked entry(book, std::move(terms));
  auto got = co_await as_result(std::move(call));
  entry.end(got ? error_code() : got.error());
  co_return got;
}

}  // namespace holdfast::chaos

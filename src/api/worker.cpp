// SPDX-License-Identifier: BSL-1.0
#include <boost/system/errc.hpp>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include <holdfast/keep_running.hpp>

#include "api/on_strand.hpp"
#include "api/restart_rules.hpp"
#include "api/worker_record.hpp"
#include "sync/worker/worker_table.hpp"

namespace holdfast::detail {
namespace {

/// An exception of a body or of lock(), in words.
struct failure_facts {
  std::string text;
  error_code code{};
};

failure_facts facts_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& failed) {
    return {failed.what(), failed.code()};
  } catch (const std::bad_alloc& failed) {
    return {failed.what(), make_error_code(boost::system::errc::not_enough_memory)};
  } catch (const std::exception& failed) {
    return {failed.what()};
  } catch (...) {
    return {"an exception of an unknown type"};
  }
}

/// A loss that the guard of the run has found: see with_lock().
run_outcome outcome_of(const error_code& code) noexcept {
  return code == errc::lost || code == errc::closed ? run_outcome::lost : run_outcome::threw;
}

std::shared_ptr<core> client_of(const std::weak_ptr<core>& home) {
  auto client = home.lock();
  if (!client) throw error(refused_by(home), {});
  return client;
}

std::string_view kind_of(const mutex& lock) noexcept {
  const auto& keys = access::keys(lock);
  return keys ? keys->of.name : std::string_view();
}

std::string_view kind_of(const any_of& lock) noexcept {
  const auto& locks = access::locks(lock);
  return locks ? locks->front()->of.name : std::string_view();
}

}  // namespace

worker_terms::worker_terms(const keep_options& given)
    : options_(given), record_(given.monitor ? access::record(*given.monitor) : nullptr) {
  options_.monitor = nullptr;
  if (!record_) record_ = std::make_shared<worker_record>();
}

struct worker::parts {
  parts(const std::weak_ptr<core>& home, std::string_view lock_kind, std::string_view lock_name,
        const keep_options& options, std::shared_ptr<worker_record> of)
      : rules(options), client(client_of(home)), record(std::move(of)),
        counted(std::make_shared<counted_worker>(counted_worker{.lock_kind = lock_kind})), name(lock_name) {
    record->begin(client);
    move_to(worker_state::waiting);
  }
  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;
  ~parts() {
    record->stop();
    try {
      if (state == worker_state::running) count_run(run_outcome::cancelled);
      move_to(worker_state::stopped);
    } catch (...) {
      // No memory: the observer counts the worker until its client ends.
    }
  }

  /// For the observer. The strand knows the moves by their numbers: two posts of one thread may overtake each other.
  void move_to(worker_state state) {
    client->enter_later([client = client, worker = counted,
                         move = worker_move{.number = ++moves, .to = state, .name = name}]() mutable {
      if (auto* const locks = client->locks()) locks->workers().move(worker, std::move(move));
    });
  }
  void enter(worker_state next) {
    state = next;
    record->enter(next);
    move_to(next);
  }
  void count_run(run_outcome outcome) const {
    client->enter_later([client = client, worker = counted, name = name, outcome] {
      if (auto* const locks = client->locks()) locks->workers().run_ended(*worker, name, outcome);
    });
  }

  restart_rules rules;
  restart_rules::decision next{};
  const std::shared_ptr<core> client;
  const std::shared_ptr<worker_record> record;
  const counted_worker_ptr counted;
  worker_state state = worker_state::waiting;
  std::string name;  // of the lock; of an any_of the last one that was taken
  std::uint64_t moves = 0;
};

worker::worker(std::unique_ptr<parts> made) : parts_(std::move(made)) {}

worker::worker(const mutex& lock, const worker_terms& terms)
    : worker(std::make_unique<parts>(access::home(lock), kind_of(lock), lock.name(), terms.options_, terms.record_)) {}

worker::worker(const any_of& lock, const worker_terms& terms)
    : worker(std::make_unique<parts>(access::home(lock), kind_of(lock), "", terms.options_, terms.record_)) {}

worker::~worker() = default;

void worker::wait_for_lock() {
  if (parts_->state != worker_state::waiting) parts_->enter(worker_state::waiting);
}

void worker::begin_run(std::string_view name) {
  parts_->name = name;
  parts_->state = worker_state::running;
  parts_->record->begin_run(name);
  parts_->move_to(worker_state::running);
}

bool worker::goes_on(const std::exception_ptr& failed) {
  const bool ran = parts_->state == worker_state::running;
  const auto facts = failed ? facts_of(failed) : failure_facts{};
  if (ran) {
    parts_->state = worker_state::waiting;  // the run is counted
    const auto outcome = failed ? outcome_of(facts.code) : run_outcome::returned;
    parts_->count_run(outcome);
    parts_->next = parts_->rules.run_ended(outcome, parts_->record->elapsed());
  } else {
    parts_->next = parts_->rules.wait_failed(facts.code);
  }
  using act = restart_rules::act;
  const bool orderly_end = parts_->next.then == act::finish;
  if (failed && !orderly_end)
    parts_->record->note_failure(facts.text, facts.code, parts_->rules.failures_in_row());
  else
    parts_->record->note_success();
  if (parts_->next.then == act::fail) std::rethrow_exception(failed);
  if (orderly_end) return false;
  parts_->enter(parts_->next.next);
  return true;
}

asio::awaitable<void> worker::pause() {
  auto wait = [shortest = parts_->next.shortest, longest = parts_->next.longest](
                  engine& locks, const std::shared_ptr<caller<void>>& to, const auto&) {
    auto place = locks.workers().pause(shortest, longest, [to](const auto& failed) { to->answer(failed); });
    if (place) to->cancels(std::move(place));
  };
  return on_strand<void>(parts_->client, std::move(wait), errc::shutting_down);
}

}  // namespace holdfast::detail

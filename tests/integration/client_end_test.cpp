// SPDX-License-Identifier: BSL-1.0
// Ends a client after the first, second, … handler that its context runs, in runs in which the server refuses, answers
// late, or never: every step of such a run, found by the test itself. Whatever is left of the run then must find nobody
// gone. Run under AddressSanitizer.
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "integration/hostile_world.hpp"

using namespace holdfast;
using namespace holdfast::test;

namespace {

using command = hostile_world::command;

/// What the server does with a script once the leases were granted.
enum class conduct { refuses, answers_late, hangs };

/// How a client ends.
enum class ending { destroyed, shut_down, outlives_its_context };

/// A client, its server and its callers on one context, all of which this ends.
class run_of_a_client {
 public:
  run_of_a_client(conduct how, std::size_t pending_commands) : how_(how) {
    config c;
    c.url = "redis+unix://" + server_->path();
    c.command_timeout = 5ms;
    c.pending_commands = pending_commands;
    c.observer = heard_;
    redis_.emplace(io_->get_executor(), c);
    const owner me;
    for (int i = 0; i < 4; ++i) held_.push_back(granted("m" + std::to_string(i), me));
    bad_ = true;
    start(redis_->mutex("free").lock());
    start(redis_->mutex("free").try_lock_for(3ms));
    start(redis_->mutex("other").try_lock());
    start(redis_->mutex("m0", me).lock());
    start(redis_->mutex("m0").is_locked());
    start(redis_->mutex("m1").force_unlock());
    start(held_[0].renew());
    start(held_[1].unlock());
    start(held_[2].lost());
    start(redis_->connect());
    held_[3] = lease();
  }
  ~run_of_a_client() {
    server_.reset();
    held_.clear();
    redis_.reset();
  }

  /// Runs so many handlers; false when all callers were answered before.
  bool step(int handlers) {
    if (io_->stopped()) io_->restart();
    for (int i = 0; i < handlers && answered_ < started_; ++i) io_->run_one_for(1s);
    return answered_ < started_ - forever;
  }

  void end(ending how) {
    switch (how) {
      case ending::destroyed: redis_.reset(); break;
      case ending::shut_down: start(redis_->shutdown(0ms)); break;
      case ending::outlives_its_context: {
        server_.reset();
        io_.reset();
        return;
      }
    }
    until([this] { return answered_ == started_; });
    held_.clear();
    redis_.reset();
    until([this] { return heard_.use_count() == 1; });  // the client's inside is gone
  }

 private:
  static constexpr int forever = 3;  // both lock() and lost()

  lease granted(const std::string& name, const owner& who) {
    while (true) {
      try {
        return run(*io_, redis_->mutex(name, who).lock(), 5s);
      } catch (const error& e) {
        if (e.code() != errc::overloaded) throw;
      }
    }
  }

  template <class T>
  void start(asio::awaitable<T> op) {
    ++started_;
    asio::co_spawn(*io_, std::move(op), [this](std::exception_ptr, auto&&...) { ++answered_; });
  }

  template <class Condition>
  void until(Condition condition) {
    const auto limit = std::chrono::steady_clock::now() + 10s;
    if (io_->stopped()) io_->restart();
    while (!condition()) {
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("the condition was not met in time");
      if (io_->run_one_for(10ms) == 0 && io_->stopped()) io_->restart();
    }
  }

  std::string respond(std::string_view bytes, std::size_t connection) {
    std::string out;
    for (const auto& argv : decode_commands(bytes)) {
      const bool script = argv[0] == "EVALSHA" || argv[0] == "EVAL";
      const auto right = hostile_world::right(argv, connection);
      if (!bad_ || !script) {
        out += right;
      } else if (how_ == conduct::refuses) {
        out += "-NOREPLICAS Not enough good replicas to write.\r\n";
      } else if (how_ == conduct::answers_late) {
        later(connection, right);
      }
    }
    return out;
  }
  void later(std::size_t connection, const std::string& answer) {
    const auto delay = std::make_shared<asio::steady_timer>(*io_, 7ms);
    delay->async_wait([this, delay, connection, answer](const error_code& failed) {
      if (!failed && server_) server_->write(connection, answer, [](bool) {});
    });
  }

  const conduct how_;
  bool bad_ = false;
  int started_ = 0, answered_ = 0;
  std::shared_ptr<recorder> heard_ = std::make_shared<recorder>();
  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
  std::optional<scripted_server> server_{std::in_place, *io_,
                                         [this](std::string_view bytes, std::size_t n) { return respond(bytes, n); }};
  std::optional<client> redis_;
  std::vector<lease> held_;
};

void end_everywhere(const std::string& what, conduct how) {
  constexpr int enough = 200;
  int steps = 0;
  for (const std::size_t pending : {1U, 65'536U})
    for (const auto end : {ending::destroyed, ending::shut_down, ending::outlives_its_context}) {
      bool running = true;
      for (int handlers = 0; running && handlers < enough; ++handlers, ++steps) {
        INFO(what << ", " << pending << " pending, ending " << static_cast<int>(end) << " after " << handlers
                  << " handlers");
        run_of_a_client r(how, pending);
        running = r.step(handlers);
        r.end(end);
      }
    }
  std::cout << what << ": " << steps << " ends\n";
  CHECK(steps > 6 * 20);
}

}  // namespace

TEST_CASE("a client may end at every step of a run in which commands are refused") {
  end_everywhere("refused", conduct::refuses);
}
TEST_CASE("a client may end at every step of a run in which commands are answered late") {
  end_everywhere("late", conduct::answers_late);
}
TEST_CASE("a client may end at every step of a run in which commands are never answered") {
  end_everywhere("never", conduct::hangs);
}

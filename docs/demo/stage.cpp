// SPDX-License-Identifier: BSL-1.0
#include "stage.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace holdfast::demo {

using namespace std::chrono_literals;

namespace {

// Empty also where the kernel does not tell.
std::set<pid_t> child_processes() {
  std::set<pid_t> all;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid; file >> pid;) all.insert(pid);
  }
  return all;
}

std::string listed(const std::vector<std::string>& all, const char* none) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? none : text;
}

}  // namespace

stage::stage(asio::any_io_executor executor, setting where)
    : judge(shown, where.url, where.folder), executor_(std::move(executor)), where_(std::move(where)) {}

stage::~stage() {
  try {
    clear();
    for (const auto& key : judge.keys_with(where_.id, keys_)) judge.remove(key);
  } catch (const std::exception&) {  // the server is gone, and the keys of a private one with it
  }
}

void stage::clear() {
  for (auto& one : actors_) one.process.kill();
  hear();
  actors_.clear();
}

asio::awaitable<std::vector<actor*>> stage::start(std::vector<job> jobs) {
  std::vector<actor*> started;
  for (auto& one : jobs) {
    one.prefix = where_.prefix;
    one.folder = where_.folder;
    if (std::find(keys_.begin(), keys_.end(), key(one.lock)) == keys_.end()) keys_.push_back(key(one.lock));
    test::child_process::options program;
    program.executable = "/proc/self/exe";
    program.argv = one.arguments();
    program.argv.insert(program.argv.begin(), "holdfast_demo");
    started.push_back(&actors_.emplace_back(actor{one, test::child_process(program), {}}));
    started.back()->order(one.url.empty() ? where_.url : one.url);
  }
  for (auto* one : started) co_await expect(*one, "ready");
  co_return started;
}

asio::awaitable<actor*> stage::start(job one) {
  std::vector<job> jobs{std::move(one)};
  const auto started = co_await start(std::move(jobs));
  co_return started[0];
}

asio::awaitable<void> stage::end(std::vector<actor*> who) {
  for (auto* one : who) one->order("end");
  for (auto* one : who) {
    auto ended = [one] { return one->process.wait(0ms).has_value(); };
    co_await until(ended, 5s);
    const auto status = one->process.wait(0ms);
    hear();
    judge.check(status == 0, "process " + one->what.actor + " to end by itself, with status 0",
                status ? "status " + std::to_string(*status) : "that it still runs after 5 s");
  }
}

void stage::hear() {
  std::vector<std::pair<news, actor*>> heard;
  for (auto& one : actors_)
    while (const auto line = one.process.read_line(0ms))
      if (auto parsed = news::parse(*line)) heard.emplace_back(*std::move(parsed), &one);
  std::stable_sort(heard.begin(), heard.end(), [](const auto& a, const auto& b) { return a.first.at < b.first.at; });
  for (auto& [what, from] : heard) {
    const auto ttl = what.holds ? judge.ttl(key(from->what.lock)) : std::nullopt;
    if (!what.text.empty()) shown.line(what.at, what.who, ttl, what.text);
    from->inbox.push_back(std::move(what));
  }
}

asio::awaitable<news> stage::expect(actor& from, std::string event, milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  for (;;) {
    const bool alive = from.process.running();  // before hear(): its last words are not lost
    hear();
    const auto found = std::find_if(from.inbox.begin(), from.inbox.end(),
                                    [&](const news& one) { return one.event == event || one.event == "failed"; });
    if (found != from.inbox.end()) {
      auto result = std::move(*found);
      from.inbox.erase(found);
      if (result.event == event) co_return result;
      throw scene_failed(from.what.actor + " to say \"" + event + "\"", from.what.actor + " " + result.text);
    }
    if (!alive) throw scene_failed(from.what.actor + " to say \"" + event + "\"", "that its process ended");
    if (steady_clock::now() > deadline)
      throw scene_failed(from.what.actor + " to say \"" + event + "\"", "nothing of it for " + in_ms(patience));
    co_await pause(1ms);
  }
}

asio::awaitable<void> stage::pause(milliseconds time) {
  const auto end = steady_clock::now() + time;
  asio::steady_timer timer(executor_);
  do {
    timer.expires_at(std::min(end, steady_clock::now() + 5ms));
    co_await timer.async_wait(asio::use_awaitable);
    hear();
  } while (steady_clock::now() < end);
}

asio::awaitable<bool> stage::until(std::function<bool()> condition, milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  while (!condition()) {
    if (steady_clock::now() > deadline) co_return false;
    co_await pause(2ms);
  }
  co_return true;
}

void stage::say(std::string_view who, std::string_view text, const std::string& lock) {
  hear();
  const auto ttl = lock.empty() ? std::nullopt : judge.ttl(key(lock));
  shown.line(steady_clock::now(), who, ttl, text);
}

asio::awaitable<void> stage::check_nothing_is_left() {
  shown.scene("At the end");
  auto no_key = [this] { return judge.keys_with(where_.id, keys_).empty(); };
  auto no_channel = [this] { return judge.channels_with(where_.id).empty(); };
  if (!co_await until(no_key))
    judge.check(false, "no key of the demo", listed(judge.keys_with(where_.id, keys_), "none"));
  if (!co_await until(no_channel))
    judge.check(false, "no subscription of the demo", listed(judge.channels_with(where_.id), "none"));
  for (const auto& one : actors_)
    judge.check(!one.process.running(), "no worker process",
                "process " + std::to_string(one.process.pid()) + " of " + one.what.actor);
  for (const auto pid : child_processes())
    judge.check(pid == where_.server, "no child process but the server", "process " + std::to_string(pid));
  judge.verdict("no key, no subscription, no process is left");
}

}  // namespace holdfast::demo

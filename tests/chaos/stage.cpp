// SPDX-License-Identifier: BSL-1.0
#include "chaos/stage.hpp"

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "chaos/workload.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto last_section = 15s;  // a waiter that takes longer has been forgotten
constexpr std::string_view token_keys = "redisson_lock_token:";

// Killed, it loses nothing that it has confirmed: it writes to the file before it answers. Not so with `everysec`,
// which keeps back for up to two seconds what it would write while an fsync is under way.
test::redis_options keeping_its_data() {
  test::redis_options o;
  o.arguments = {"--appendonly", "yes", "--appendfsync", "no", "--save", ""};
  return o;
}

std::vector<std::string> residue(test::raw_client& server) {
  auto keys = server("KEYS", "*").strings();
  std::erase_if(keys, [](const auto& key) { return key.starts_with(token_keys); });
  return keys;
}

}  // namespace

stage::stage(std::string worker_program, std::string folder, std::size_t workers, std::uint64_t seed, history& log)
    : worker_program_(std::move(worker_program)), folder_(std::move(folder)), seed_(seed), log_(log),
      server_(keeping_its_data()) {
  for (std::size_t i = 0; i < workers; ++i) {
    crew_.push_back(std::make_unique<member>(server_));
    start(i);
  }
}

void stage::start(std::size_t worker) {
  auto& who = *crew_.at(worker);
  const auto name = "worker-" + std::to_string(worker) + "-" + std::to_string(++who.life);
  test::child_process::options what;
  what.executable = worker_program_;
  what.argv = {worker_program_,
               "--redis",
               who.link.url(),
               "--server",
               server_.socket_path(),
               "--resource",
               resource_.socket_path(),
               "--history",
               folder_ + "/" + name + ".jsonl",
               "--worker",
               std::to_string(worker),
               "--life",
               std::to_string(who.life),
               "--seed",
               std::to_string(seed_ * 1'000'003 + worker * 1'009 + static_cast<std::uint64_t>(who.life))};
  what.output_file = folder_ + "/" + name + ".log";
  what.pipes = false;
  who.process.emplace(std::move(what));
}

void stage::kill(std::size_t worker) {
  auto& who = *crew_.at(worker);
  if (const auto status = who.process->wait(0ms)) return note_end(worker, *status);  // by itself, which it must not
  log_.write("killed").add("worker", worker).add("life", who.life);  // before: nothing is claimed for the dead
  who.process->kill();
}

void stage::finish() {
  for (auto& who : crew_) who->process->signal(SIGTERM);
  const auto end = steady_clock::now() + last_section;
  for (std::size_t i = 0; i < crew_.size(); ++i) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(std::max(steady_clock::duration::zero(), end - steady_clock::now()));
    const auto status = crew_[i]->process->wait(left);
    note_end(i, status.value_or(-1));
    if (!status) crew_[i]->process->kill();
  }
}

void stage::note_end(std::size_t worker, int status) {
  log_.write("ended").add("worker", worker).add("life", crew_[worker]->life).add("status", status);
}

void stage::look_for_residue() {
  auto server = ask_server();
  for (const auto& key : residue(server))
    log_.write("unreleased").add("key", key).add("ttl", server("PTTL", key).integer());
  const auto end = steady_clock::now() + longest_ttl + 5s;
  // Nothing can be waited for but time: an expired key goes when the server looks at it.
  while (!residue(server).empty() && steady_clock::now() < end) std::this_thread::sleep_for(20ms);
  for (const auto& key : residue(server))
    log_.write("residue").add("key", key).add("ttl", server("PTTL", key).integer());
  const auto connections = server("CLIENT", "LIST").to_string();
  log_.write("end")
      .add("channels", server("PUBSUB", "CHANNELS").array().size())
      .add("connections", std::count(connections.begin(), connections.end(), '\n'));
}

}  // namespace holdfast::chaos

// SPDX-License-Identifier: BSL-1.0
#include "chaos/stage.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "chaos/workload.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto last_section = 15s;  // a waiter that takes longer has been forgotten
constexpr std::string_view token_keys = "redisson_lock_token:", vote_marker = "holdfast:redlock";
constexpr std::string_view latches = "redisson_unlock_latch:";   // a peer whose connection ends leaves one to its TTL
constexpr std::string_view marks_of_latches = "holdfast_done:";  // for a minute
constexpr std::string_view marks_of_servers[] = {" name=sentinel-", " flags=S", " flags=M", " cmd=restore-asking"};

// Killed, it loses nothing that it has confirmed: it writes to the file before it answers. Not so with `everysec`,
// which keeps back for up to two seconds what it would write while an fsync is under way.
test::redis_options keeping_its_data() {
  test::redis_options o;
  o.arguments = {"--appendonly", "yes", "--appendfsync", "no", "--save", ""};
  return o;
}

std::vector<std::string> residue(test::raw_client& server) {
  auto keys = server("KEYS", "*").strings();
  std::erase_if(keys, [](const auto& key) {
    const bool of_latch = key.starts_with(latch_names) || key.starts_with(marks_of_latches);
    return of_latch || key.starts_with(token_keys) || key.starts_with(latches) || key == semaphore_name ||
           key == vote_marker;
  });
  return keys;
}

/// The members of a queue in which clients wait for their turn; nothing: the key is none.
std::optional<std::vector<std::string>> places_in(test::raw_client& server, const std::string& key) {
  if (key.starts_with("redisson_lock_queue:")) return server("LRANGE", key, 0, -1).strings();
  for (const auto* sorted : {"holdfast_queue:", "holdfast_readers:", "redisson_lock_timeout:"})
    if (key.starts_with(sorted)) return server("ZRANGE", key, 0, -1).strings();
  return std::nullopt;
}

/// `places`: the clients of a key in which they wait for their turn. A place of a fair_mutex is <client>:<number>.
void tell_left(history& log, std::string_view event, test::raw_client& server, const std::string& key) {
  auto line = log.write(event);
  line.add("key", key).add("ttl", server("PTTL", key).integer());
  const auto members = places_in(server, key);
  if (!members) return;
  std::string places;
  for (const auto& member : *members) places += member.substr(0, member.find(':')) + ' ';
  line.add("places", places);
}

/// Of locks. Sentinels talk over a channel of their own on each server, and a server pushes changes on another.
std::size_t channels_of(test::raw_client& server) {
  std::size_t all = 0;
  for (const auto* word : {"CHANNELS", "SHARDCHANNELS"})
    if (const auto reply = server.call({"PUBSUB", word}); !reply.is_error())
      for (const auto& channel : reply.strings()) all += !channel.starts_with("__");
  return all;
}

/// The connections of clients: of no sentinel, replica or primary, and of none that has sent a key here; nor this one.
std::size_t clients_of(test::raw_client& server) {
  std::istringstream lines(server("CLIENT", "LIST").to_string());
  std::size_t all = 0;
  for (std::string line; std::getline(lines, line);)
    all += std::none_of(std::begin(marks_of_servers), std::end(marks_of_servers),
                        [&](std::string_view mark) { return line.find(mark) != line.npos; });
  return all - 1;
}

std::string data_of(const test::real_redis& server) { return server.folder() + "/data"; }
std::string copy_of(const test::real_redis& server) { return server.folder() + "/kept"; }

}  // namespace

std::string_view who_takes_turns(std::uint64_t seed) noexcept { return seed % 2 == 0 ? "all" : "one"; }

stage::stage(campaign c, programs with, std::string folder, std::size_t workers, std::uint64_t seed, history& log)
    : campaign_(c), programs_(std::move(with)), folder_(std::move(folder)), seed_(seed), log_(log) {
  if (c == campaign::sentinel) rig_ = make_sentinel_rig(log);
  if (c == campaign::cluster) rig_ = make_cluster_rig(log);
  if (!rig_)
    for (std::size_t i = 0; i < lock_servers(c); ++i)
      servers_.push_back(std::make_unique<test::real_redis>(keeping_its_data()));
  if (c == campaign::red) found_red_lock();
  for (std::size_t i = 0; i < workers; ++i) {
    auto& who = *crew_.emplace_back(std::make_unique<member>());
    const test::proxy_options way{.tcp = i % 2 == 1};  // else a unix socket
    for (const auto& server : servers_) who.links.push_back(std::make_unique<test::proxy>(*server, way));
    start(i);
  }
  for (std::size_t i = 0; i < peers(c); ++i) start_peer(i);
}

// As an operator does by hand: each server may vote at once.
void stage::found_red_lock() {
  for (std::size_t i = 0; i < servers(); ++i) {
    auto server = ask(i);
    const auto info = server("INFO", "server").to_string();
    constexpr std::string_view before = "run_id:";
    const auto run = info.substr(info.find(before) + before.size(), 40);
    server("SET", vote_marker, run + ' ' + std::to_string(longest_ttl(campaign_).count()));
  }
}

void stage::start(std::size_t worker) {
  auto& who = *crew_.at(worker);
  const auto name = "worker-" + std::to_string(worker) + "-" + std::to_string(++who.life);
  test::child_process::options what;
  what.executable = programs_.worker;
  std::string urls, paths;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    urls += who.links[i]->url() + ' ';
    paths += server(i).socket_path() + ' ';
  }
  if (rig_) urls = rig_->url();
  what.argv = {programs_.worker,
               "--campaign",
               std::string(to_string(campaign_)),
               "--redis",
               urls,
               "--servers",
               paths,
               "--resource",
               resource_.socket_path(),
               "--history",
               folder_ + "/" + name + ".jsonl",
               "--worker",
               std::to_string(worker),
               "--life",
               std::to_string(who.life),
               "--turns",
               std::string(who_takes_turns(seed_)),
               "--seed",
               std::to_string(seed_ * 1'000'003 + worker * 1'009 + static_cast<std::uint64_t>(who.life))};
  what.output_file = folder_ + "/" + name + ".log";
  what.pipes = false;
  who.process.emplace(std::move(what));
}

void stage::start_peer(std::size_t number) {
  const auto name = "peer-" + std::to_string(number);
  test::child_process::options what;
  what.executable = programs_.peer;
  what.argv = {programs_.peer,
               "--server",
               server(0).socket_path(),
               "--history",
               folder_ + "/" + name + ".jsonl",
               "--seed",
               std::to_string(seed_ * 1'000'003 + number)};
  what.output_file = folder_ + "/" + name + ".log";
  what.pipes = false;
  peers_.emplace_back(std::move(what));
}

// What its file ends with may be half written: then it is cut off there when it is read.
void stage::keep_data(std::size_t which) {
  std::filesystem::remove_all(copy_of(server(which)));
  std::filesystem::copy(data_of(server(which)), copy_of(server(which)), std::filesystem::copy_options::recursive);
}

void stage::restart_with_kept_data(std::size_t which) {
  server(which).kill();
  std::filesystem::remove_all(data_of(server(which)));
  std::filesystem::rename(copy_of(server(which)), data_of(server(which)));
  server(which).restart();
}

void stage::kill(std::size_t worker) {
  auto& who = *crew_.at(worker);
  if (const auto status = who.process->wait(0ms)) return note_end(worker, *status);  // by itself, which it must not
  log_.write("killed").add("worker", worker).add("life", who.life);  // before: nothing is claimed for the dead
  who.process->kill();
}

void stage::finish() {
  for (auto& who : crew_) who->process->signal(SIGTERM);
  for (auto& peer : peers_) peer.signal(SIGTERM);
  const auto end = steady_clock::now() + last_section;
  for (std::size_t i = 0; i < crew_.size(); ++i) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(std::max(steady_clock::duration::zero(), end - steady_clock::now()));
    const auto status = crew_[i]->process->wait(left);
    note_end(i, status.value_or(-1));
    if (!status) crew_[i]->process->kill();
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const auto status = peers_[i].wait(last_section);
    log_.write("peer_ended").add("peer", i).add("status", status.value_or(-1));
    if (!status) peers_[i].kill();
  }
}

void stage::note_end(std::size_t worker, int status) {
  log_.write("ended").add("worker", worker).add("life", crew_[worker]->life).add("status", status);
}

std::vector<test::real_redis*> stage::primaries() {
  if (rig_) return rig_->primaries();
  std::vector<test::real_redis*> all;
  for (const auto& s : servers_) all.push_back(s.get());
  return all;
}

std::vector<test::real_redis*> stage::everybody() { return rig_ ? rig_->everybody() : primaries(); }

void stage::watch_until(steady_clock::time_point end) {
  constexpr auto glance = 3ms;
  if (rig_)
    for (; steady_clock::now() + glance < end; std::this_thread::sleep_for(glance)) rig_->watch();
  std::this_thread::sleep_until(end);
}

void stage::look_for_residue() {
  look_for_keys();
  std::size_t channels = 0, connections = 0;
  for (const auto* server : everybody()) {
    test::raw_client ask(*server);
    channels += channels_of(ask);
    connections += clients_of(ask);
  }
  log_.write("end").add("channels", channels).add("connections", connections);
}

void stage::keep_logs() {
  std::size_t number = 0;
  for (const auto* server : everybody())
    std::ofstream(folder_ + "/server-" + std::to_string(number++) + ".log") << server->log();
}

void stage::look_for_keys() {
  std::vector<test::raw_client> all;
  for (const auto* server : primaries()) all.emplace_back(*server);
  for (auto& server : all)
    for (const auto& key : residue(server)) tell_left(log_, "unreleased", server, key);
  const auto end = steady_clock::now() + longest_ttl(campaign_) + 5s;
  for (auto& server : all) {
    // Nothing can be waited for but time: an expired key goes when the server looks at it.
    while (!residue(server).empty() && steady_clock::now() < end) std::this_thread::sleep_for(20ms);
    for (const auto& key : residue(server)) tell_left(log_, "residue", server, key);
  }
}

}  // namespace holdfast::chaos

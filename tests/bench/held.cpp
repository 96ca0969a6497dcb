// SPDX-License-Identifier: BSL-1.0
// What it costs to keep many locks: renewals, memory, bytes; and how a server that was overloaded for a while recovers.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "bench/baselines.hpp"
#include "bench/child_run.hpp"
#include "bench/holder.hpp"
#include "bench/meter.hpp"
#include "bench/redlock_node.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using test::real_redis;

constexpr int abreast = 256;

/// Counts what happens to leases.
struct tally final : observer {
  long lost = 0;
  void on(const event& e) noexcept override {
    if (e.kind == event_kind::lost) ++lost;
  }
};

config settings_of(const real_redis& server, milliseconds ttl) {
  auto c = of_url(server.unix_url());
  c.ttl = ttl;
  return c;
}

double number_of(test::raw_client& server, const char* section, std::string_view name) {
  return number_in(server("INFO", section).to_string(), name);
}

/// Lets a client do what it has to for so long.
void go_on(asio::io_context& io, clock::duration how_long) { io.run_for(how_long); }

// ---- ten thousand, a million

struct keeping {
  long n = 0;
  milliseconds ttl{};
  milliseconds before{}, measured{};  // before: since the last was taken
};

struct kept_result {
  long lost = 0;
  double client_cpu = 0, server_cpu = 0, scripts = 0, bytes_in = 0;  // while it was measured
  double lock_bytes = 0, longest_script_ms = 0;
};

/// Takes all that `h` has room for. Returns the bytes on the heap then.
std::size_t heap_with_all(asio::io_context& io, holder& h) {
  take_all(io, h, abreast, clock::now() + plan::patience);
  must_hold(h);
  return ::mallinfo2().uordblks;
}

void keep(const real_redis& server, const keeping& what, const teller<kept_result>& tell) {
  asio::io_context io(1);
  const auto seen = std::make_shared<tally>();
  auto settings = settings_of(server, what.ttl);
  settings.observer = seen;
  auto redis = make_client(io, std::move(settings));
  test::raw_client admin(server);
  // The first half also makes what a client needs once. The second half needs only what each lock needs.
  holder h(redis, what.n / 2);
  h.leases.reserve(static_cast<std::size_t>(what.n));
  const auto half = heap_with_all(io, h);
  h.leases.resize(static_cast<std::size_t>(what.n));
  kept_result r;
  r.lock_bytes = static_cast<double>(heap_with_all(io, h) - half) / static_cast<double>(what.n - what.n / 2);
  go_on(io, what.before);
  admin("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "4096");
  meter m(admin);  // which sets the bytes to zero
  go_on(io, what.measured);
  const auto used = m.stop();
  r.bytes_in = number_of(admin, "stats", "total_net_input_bytes");
  r.client_cpu = used.client_cpu;
  r.server_cpu = used.server_cpu;
  r.scripts = static_cast<double>(used.scripts);
  const auto log = admin("SLOWLOG", "GET", "-1");
  for (const auto& entry : log.array())
    r.longest_script_ms = std::max(r.longest_script_ms, static_cast<double>(entry.array().at(2).integer()) / 1e3);
  r.lost = seen->lost + (what.n - h.held());
  tell(r);
}

kept_result keep_in_child(const keeping& what) {
  const real_redis server;
  load_scripts(server);
  child_run<kept_result> run([&](const teller<kept_result>& tell) { keep(server, what, tell); });
  return run.result_until(clock::now() + plan::patience + what.before + what.measured);
}

std::vector<finding> ten_thousand(const plan& p) {
  const milliseconds ttl(6000);
  const keeping what{p.scaled(10'000), ttl, p.scaled(4'000) * 1ms, p.scaled(15'000) * 1ms + 200ms};
  const auto periods = std::chrono::duration<double>(what.measured) / (ttl / 3);
  const auto locks = static_cast<double>(what.n);
  const auto name = static_cast<double>(name_of(what.n / 2).size());
  std::vector<double> ours, bare, paced, scripts, bytes, memory;
  long lost = 0;
  p.rounds("held-10k", [&] {
    const auto r = keep_in_child(what);
    lost += r.lost;
    ours.push_back(r.client_cpu);
    const real_redis beside;
    const auto commands = std::max(std::lround(r.scripts), 1L);
    bare.push_back(bare_renewals(beside.socket_path(), what.n, ttl, commands, pace::as_answered));
    paced.push_back(bare_renewals(beside.socket_path(), what.n, ttl, commands, pace::when_due));
    scripts.push_back(r.scripts / periods);
    bytes.push_back(r.bytes_in / (locks * periods) - name);
    memory.push_back(r.lock_bytes);
  });
  if (lost > 0) throw not_finished(std::to_string(lost) + " lost");
  return {
      {median(ours) / median(bare), {{"holdfast_s", median(ours)}, {"bare_s", median(bare)}, {"rounds", ours.size()}}},
      {median(ours) / median(paced),
       {{"holdfast_s", median(ours)}, {"bare_s", median(paced)}, {"rounds", ours.size()}}},
      {median(scripts)},
      {median(bytes)},
      {median(memory)}};
}

std::vector<finding> ten_thousand_beside_redlock(const plan& p) {
  const keeping what{p.scaled(10'000), 6s, p.scaled(2'000) * 1ms, p.scaled(6'000) * 1ms + 200ms};
  std::vector<double> ours, theirs;
  p.rounds("held-10k/redlock", [&] {
    const auto r = keep_in_child(what);
    if (r.lost > 0) throw not_finished(std::to_string(r.lost) + " lost");
    ours.push_back(r.client_cpu);
    const real_redis server;
    theirs.push_back(redlock_node::renewals(server.socket_path(), what.n, what.ttl, what.before, what.measured));
  });
  const auto a = median(ours), b = median(theirs);
  return {{a / b, {{"holdfast_s", a}, {"redlock_s", b}, {"rounds", ours.size()}}}};
}

std::vector<finding> a_million(const plan& p) {
  const keeping what{p.scaled(1'000'000), 30s, p.scaled(10'000) * 1ms, p.scaled(30'000) * 1ms + 100ms};
  const auto seconds = std::chrono::duration<double>(what.measured).count();
  std::vector<double> lost, client, server, script;
  p.rounds("held-1m", [&] {
    const auto r = keep_in_child(what);
    lost.push_back(static_cast<double>(r.lost));
    client.push_back(r.client_cpu / seconds);
    server.push_back(r.server_cpu / seconds);
    script.push_back(r.longest_script_ms);
  });
  return {{median(lost)}, {median(client)}, {median(server)}, {median(script)}};
}

// ---- an overloaded server

/// Runs for a share of the time alone.
class throttled {
 public:
  throttled(const real_redis& server, double share)
      : works_([&server, share] {
          constexpr auto slice = 100ms;
          const auto runs = std::chrono::duration_cast<clock::duration>(slice * share);
          for (;;) {
            ::kill(server.pid(), SIGSTOP);
            std::this_thread::sleep_for(slice - runs);
            ::kill(server.pid(), SIGCONT);
            std::this_thread::sleep_for(runs);
          }
          return true;
        }),
        pid_(server.pid()) {}
  throttled(const throttled&) = delete;
  throttled& operator=(const throttled&) = delete;
  ~throttled() {
    works_.kill();
    ::kill(pid_, SIGCONT);
  }

 private:
  test::forked works_;
  const pid_t pid_;
};

struct recovery_result {
  double needs = 0;  // of a core, by the server
  long lost_meanwhile = 0, lost_later = 0;
  double late_at_first = 0;   // renewals that were due
  double seconds_behind = 0;  // until renewals keep up again; what is measured at most, if they never did
};

recovery_result recover(const real_redis& server, const plan& p) {
  asio::io_context io(1);
  const auto seen = std::make_shared<tally>();
  auto settings = settings_of(server, 30s);
  settings.observer = seen;
  auto redis = make_client(io, std::move(settings));
  test::raw_client admin(server);
  holder h(redis, p.scaled(300'000));
  take_all(io, h, abreast, clock::now() + plan::patience);
  must_hold(h);
  const auto period = p.scaled(10'000) * 1ms;
  go_on(io, period);
  recovery_result r;
  const auto used = cpu_of(admin);
  go_on(io, period / 2);
  r.needs = (cpu_of(admin) - used) / std::chrono::duration<double>(period / 2).count();
  {
    const throttled half(server, std::clamp(r.needs / 2, 0.01, 0.9));
    go_on(io, 2 * period);
  }
  const auto begun = clock::now(), one_ttl = begun + 3 * period;
  // A renewal every third of the TTL leaves two thirds of it; a fifteenth of it is for the server's own queue.
  const auto late = [&](const lease& l) { return l.held() && l.valid_for() < 9 * period / 5; };
  r.late_at_first = static_cast<double>(std::ranges::count_if(h.leases, late));
  do go_on(io, 10ms);
  while (std::ranges::any_of(h.leases, late) && clock::now() < one_ttl);
  r.seconds_behind = seconds_since(begun);
  go_on(io, one_ttl - clock::now());
  r.lost_meanwhile = seen->lost;
  go_on(io, period);
  r.lost_later = seen->lost - r.lost_meanwhile;
  return r;
}

std::vector<finding> recovery(const plan& p) {
  const real_redis server;
  load_scripts(server);
  child_run<recovery_result> run([&](const teller<recovery_result>& tell) { tell(recover(server, p)); });
  const auto r = run.result_until(clock::now() + 3 * plan::patience);
  const auto one_ttl = static_cast<double>(p.scaled(10'000)) * 3 / 1e3;
  return {{r.seconds_behind / one_ttl,
           {{"needs_of_a_core", r.needs}, {"seconds", r.seconds_behind}, {"late_at_first", r.late_at_first}}},
          {static_cast<double>(r.lost_meanwhile)},
          {static_cast<double>(r.lost_later)}};
}

}  // namespace

std::vector<scenario> held_scenarios() {
  return {{"held-10k",
           {{"held-10k/client", "client CPU of the renewals / bare client that sends the same", at_most(2.5)},
            {"held-10k/paced", "the same / bare client that sends each when it is due", at_most(2.5)},
            {"held-10k/commands", "commands in a period", at_most(110)},
            {"held-10k/bytes", "bytes of a lock in a period beyond its name", at_most(100)},
            {"held-10k/memory", "bytes of a lock on the heap", at_most(680)}},
           ten_thousand},
          {"held-10k/redlock",
           {{"held-10k/redlock", "client CPU of the renewals / redlock 5 in node", at_most(0.5)}},
           ten_thousand_beside_redlock,
           redlock_node::missing},
          {"held-1m",
           {{"held-1m/lost", "lost of a million", at_most(0)},
            {"held-1m/client", "client CPU, of a core", at_most(0.25)},
            {"held-1m/server", "server CPU, of a core", at_most(0.60)},
            {"held-1m/script", "ms that a script takes at most", at_most(1)}},
           a_million},
          {"recovery",
           {{"recovery/time", "until renewals keep up again after half of the server was gone / TTL", at_most(1)},
            {"recovery/lost-meanwhile", "lost until one TTL afterwards", {}},
            {"recovery/lost-later", "lost from then on", at_most(0)}},
           recovery}};
}

}  // namespace holdfast::bench

// SPDX-License-Identifier: BSL-1.0
#include "support/proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/net.hpp"
#include "support/proxy_connection.hpp"
#include "support/real_redis.hpp"
#include "support/temp_folder.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using direction = proxy::direction;

}  // namespace

class proxy::impl {
 public:
  impl(const real_redis& server, proxy_options options)
      : options_(options), folder_("holdfast-proxy-"), path(folder_.path() + "/s"),
        upstream_path_(server.socket_path()), password(server.password()),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    listen();
    thread_ = std::thread([this] { loop(); });
  }

  ~impl() {
    call([this] { stopping_ = true; });
    thread_.join();
  }

  // Runs `act` in the proxy's thread, which alone touches connections and rules; returns when it is done.
  void call(std::function<void()> act) {
    std::packaged_task<void()> job(std::move(act));
    auto done = job.get_future();
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    const std::uint64_t one = 1;
    if (::write(wake_.get(), &one, sizeof one) < 0 && errno != EAGAIN) throw_errno("eventfd");
    done.get();
  }

  // Below: in the proxy's thread.
  void cut() {
    for (auto& c : connections_) kill(c);
    bury();
  }
  void forget(bool resets) {
    for (auto& c : connections_) c.forget(resets);
  }
  bool idle() {
    for (auto& c : connections_) read(c);
    bury();
    return std::all_of(connections_.begin(), connections_.end(), [](const auto& c) { return c.idle(); });
  }
  void refuse() { listener_.reset(); }
  void release() {
    for (auto& pace : faults.paces) pace.held = false;
    for (auto& c : connections_)
      for (auto& side : c.sides) side.out.release();
    std::erase_if(faults.rules, [](const auto& r) { return r.what.what == rule::action::hold_rest; });
  }
  void heal() {
    release();
    faults.rules.clear();
    for (auto& pace : faults.paces) pace = {};
    for (auto& c : connections_)
      for (auto& side : c.sides)
        if (side.out.lost_bytes) kill(c);
    bury();
    if (!listener_) listen();
  }

  proxy_faults faults;

  // Any thread.
  template <class F>
  auto with_counters(F look) const {
    const std::lock_guard lock(mutex_);
    return look(counters_);
  }
  std::string url() const {
    const auto user = password.empty() ? "" : ":" + percent_encoded(password) + "@";
    if (!options_.tcp) return "redis+unix://" + user + percent_encoded(path, "/");
    return "redis://" + user + "127.0.0.1:" + std::to_string(port);
  }
  bool wait_until(const std::function<bool(const counters&)>& condition, std::chrono::milliseconds timeout) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return condition(counters_); });
  }

 private:
  const proxy_options options_;
  temp_folder folder_;

 public:
  const std::string path;

 private:
  const std::string upstream_path_;

 public:
  const std::string password;
  std::uint16_t port = 0;

 private:
  template <class F>
  void change(F update) {
    {
      const std::lock_guard lock(mutex_);
      update(counters_);
    }
    changed_.notify_all();
  }

  void listen() {
    if (!options_.tcp) {
      listener_ = listen_unix(path);
      return;
    }
    for (int left = port == 0 ? 10 : 0;; --left) {
      const auto wanted = port == 0 ? free_loopback_port() : port;
      try {
        listener_ = listen_tcp(wanted);
        port = wanted;
        return;
      } catch (const std::system_error&) {
        if (left == 0) throw;
      }
    }
  }

  void loop() {
    while (!stopping_) {
      std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      const auto again = write_all(fds);
      timespec left{};
      if (again) {
        const auto ns = std::max(0ns, std::chrono::nanoseconds(*again - steady_clock::now()));
        left = {static_cast<time_t>(ns / 1s), static_cast<long>((ns % 1s).count())};
      }
      if (::ppoll(fds.data(), fds.size(), again ? &left : nullptr, nullptr) < 0 && errno != EINTR) throw_errno("ppoll");
      if ((fds[0].revents & POLLIN) != 0) run_jobs();
      if (listener_ && fds[1].fd == listener_.get() && (fds[1].revents & POLLIN) != 0) accept();
      for (auto& c : connections_) read(c);
      bury();
    }
    cut();
  }

  // Writes what is due, notes what to wait for, returns when to look again.
  std::optional<steady_clock::time_point> write_all(std::vector<pollfd>& fds) {
    std::optional<steady_clock::time_point> again;
    const auto now = steady_clock::now();
    for (auto& c : connections_) {
      short events[2] = {0, 0};  // of sides[i].fd
      for (const auto where : {direction::to_server, direction::to_client}) {
        auto& from = c.sides[index(where)];
        auto& to = c.sides[1 - index(where)];
        const auto progress = from.out.write_to(to.fd.get(), now, faults.paces[index(where)]);
        if (progress.sent > 0)
          change([&](counters& n) {
            (where == direction::to_server ? n.bytes_to_server : n.bytes_to_client) += progress.sent;
            (where == direction::to_server ? n.pieces_to_server : n.pieces_to_client) += progress.pieces;
          });
        if (progress.blocked) events[1 - index(where)] |= POLLOUT;
        if (progress.again) again = again ? std::min(*again, *progress.again) : *progress.again;
        if (progress.ended) kill(c);
        if (!from.ended) events[index(where)] |= POLLIN;
      }
      for (const std::size_t i : {0, 1})
        if (!c.dead && events[i] != 0) fds.push_back({c.sides[i].fd.get(), events[i], 0});
    }
    bury();
    return again;
  }

  void run_jobs() {
    std::uint64_t ignored;
    if (::read(wake_.get(), &ignored, sizeof ignored) < 0 && errno != EAGAIN) throw_errno("eventfd");
    std::unique_lock lock(mutex_);
    auto jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (auto& job : jobs) job();
  }

  void accept() {
    unique_fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    const int on = 1;
    if (options_.tcp) ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto server = connect_upstream();
    std::size_t number = 0;
    change([&](counters& n) {
      number = n.connections++;
      if (server) ++n.open;
    });
    if (!server) return;  // the client sees a connection that ends at once
    connections_.emplace_back(number, std::move(client), std::move(server));
  }

  unique_fd connect_upstream() const {
    try {
      return connect_unix(upstream_path_);
    } catch (const std::system_error&) {
      return unique_fd{};  // it is down
    }
  }

  void read(proxy_connection& c) {
    counters n = {};
    for (const auto where : {direction::to_server, direction::to_client}) c.read(where, faults, n);
    if (c.to_be_reset) {
      const linger at_once{1, 0};
      ::setsockopt(c.sides[0].fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      return kill(c);
    }
    if (n.replies == 0 && n.fired == 0 && n.commands.empty()) return;
    change([&](counters& all) {
      all.replies += n.replies;
      all.fired += n.fired;
      for (const auto& [name, times] : n.commands) all.commands[name] += times;
    });
  }

  void kill(proxy_connection& c) {
    if (std::exchange(c.dead, true)) return;
    for (auto& side : c.sides) side.fd.reset();
    change([](counters& n) { --n.open; });
  }

  void bury() {
    connections_.remove_if([](const proxy_connection& c) { return c.dead; });
  }

  unique_fd wake_, listener_;
  std::list<proxy_connection> connections_;
  bool stopping_ = false;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  counters counters_;
  std::vector<std::packaged_task<void()>> jobs_;
  std::thread thread_;
};

proxy::proxy(const real_redis& server, proxy_options options) : impl_(std::make_unique<impl>(server, options)) {}
proxy::~proxy() = default;

std::string proxy::url() const { return impl_->url(); }
const std::string& proxy::socket_path() const { return impl_->path; }
std::uint16_t proxy::port() const { return impl_->port; }

void proxy::cut() {
  impl_->call([this] { impl_->cut(); });
}
void proxy::forget(bool resets) {
  impl_->call([=, this] { impl_->forget(resets); });
}
bool proxy::idle() {
  bool all = false;
  impl_->call([&] { all = impl_->idle(); });
  return all;
}
void proxy::refuse() {
  impl_->call([this] { impl_->refuse(); });
}
void proxy::release() {
  impl_->call([this] { impl_->release(); });
}
void proxy::heal() {
  impl_->call([this] { impl_->heal(); });
}
void proxy::hold(direction where) {
  impl_->call([=, this] { impl_->faults.paces[index(where)].held = true; });
}
void proxy::swallow(direction where) {
  impl_->call([=, this] { impl_->faults.paces[index(where)].swallowed = true; });
}
void proxy::delay(direction where, std::chrono::milliseconds by) {
  impl_->call([=, this] { impl_->faults.paces[index(where)].delay = by; });
}
void proxy::split(direction where, std::size_t bytes) {
  impl_->call([=, this] { impl_->faults.paces[index(where)].split = bytes; });
}
void proxy::throttle(direction where, std::size_t bytes_per_second) {
  impl_->call([=, this] { impl_->faults.paces[index(where)].bytes_per_second = bytes_per_second; });
}
void proxy::at_command(rule what) {
  impl_->call([&] { impl_->faults.rules.push_back({std::move(what), direction::to_server}); });
}
void proxy::at_reply(rule what) {
  impl_->call([&] { impl_->faults.rules.push_back({std::move(what), direction::to_client}); });
}

proxy::counters proxy::count() const {
  return impl_->with_counters([](const counters& n) { return n; });
}
bool proxy::wait_until(const std::function<bool(const counters&)>& condition, std::chrono::milliseconds timeout) const {
  return impl_->wait_until(condition, timeout);
}
bool proxy::wait_for_commands(const std::string& name, std::size_t ever, std::chrono::milliseconds timeout) const {
  const auto reached = [&](const counters& n) {
    const auto found = n.commands.find(name);
    return found != n.commands.end() && found->second >= ever;
  };
  return wait_until(reached, timeout);
}
bool proxy::wait_for_fired(std::size_t ever, std::chrono::milliseconds timeout) const {
  return wait_until([&](const counters& n) { return n.fired >= ever; }, timeout);
}

}  // namespace holdfast::test

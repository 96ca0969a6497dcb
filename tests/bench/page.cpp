// SPDX-License-Identifier: BSL-1.0
// The load of the page of locks (holdfast serve) on the server.
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/meter.hpp"
#include "bench/scenario.hpp"
#include "bench/work.hpp"
#include "support/child_process.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;

constexpr std::string_view owner = "0b6ab61e-3a4f-8d5c-9d3c-6a2f4e1c7b90:1";

/// A `holdfast serve`, and the requests of one browser.
class served_page {
 public:
  explicit served_page(const test::real_redis& server) : program_(options(server)) {
    const auto address = program_.read_line(10s);
    if (!address) throw not_finished("the page cannot be opened");
    host_ = address->substr(address->find("//") + 2);
    host_ = host_.substr(0, host_.find('/'));
  }

  /// Whether it shows `locks` of them.
  bool shows(long locks) {
    auto socket = ask("/metrics");
    std::string answer;
    boost::system::error_code end;
    asio::read(socket, asio::dynamic_buffer(answer), end);
    return answer.find("holdfast_page_locks{kind=\"mutex\"} " + std::to_string(locks)) != std::string::npos;
  }
  /// Reads events from now on, as an open page does.
  void follow() {
    events_.emplace(ask("/api/events"));
    read_on();
  }
  void run_for(std::chrono::milliseconds span) { io_.run_for(span); }

 private:
  static test::child_process::options options(const test::real_redis& server) {
    return {.executable = HOLDFAST_BENCH_PAGE,
            .argv = {"holdfast", "serve", "--listen", "127.0.0.1:0"},
            .environment = {"HOLDFAST_URL=" + server.unix_url()}};
  }
  tcp::socket ask(const std::string& path) {
    tcp::socket socket(io_);
    const auto colon = host_.rfind(':');
    asio::connect(socket, tcp::resolver(io_).resolve(host_.substr(0, colon), host_.substr(colon + 1)));
    asio::write(socket, asio::buffer("GET " + path + " HTTP/1.1\r\nHost: " + host_ + "\r\n\r\n"));
    return socket;
  }
  void read_on() {
    events_->async_read_some(asio::buffer(bytes_), [this](boost::system::error_code failed, std::size_t) {
      if (!failed) read_on();
    });
  }

  test::child_process program_;
  std::string host_;
  asio::io_context io_{1};
  std::optional<tcp::socket> events_;
  std::array<char, 65'536> bytes_{};
};

std::vector<finding> thousand_locks(const plan& p) {
  constexpr long locks = 1000;
  std::vector<double> share;
  p.rounds("page-1k", 1, [&] {
    const test::real_redis server;
    test::raw_client admin(server);
    for (long n = 0; n < locks; ++n) {
      admin("HSET", name_of(n), owner, 1);
      admin("PEXPIRE", name_of(n), 3'600'000);
    }
    served_page page(server);
    page.follow();
    const auto patience = clock::now() + plan::patience;
    while (!page.shows(locks)) {
      if (clock::now() > patience) throw not_finished("the page does not show the locks");
      page.run_for(100ms);
    }
    meter m(admin);
    page.run_for(p.scaled(60'000) * 1ms);
    const auto used = m.stop();
    share.push_back(100 * used.server_cpu / used.seconds);
  });
  return {{median(share)}};
}

std::string missing_program() {
  return std::string(HOLDFAST_BENCH_PAGE).empty() ? "the command line is not built: CLI11, Boost.JSON" : "";
}

}  // namespace

std::vector<scenario> page_scenarios() {
  return {{"page-1k",
           {{"page-1k/server", "% of a core of the server, for a page of 1,000 locks", at_most(1)}},
           thousand_locks,
           missing_program}};
}

}  // namespace holdfast::bench

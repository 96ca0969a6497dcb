// SPDX-License-Identifier: BSL-1.0
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <exception>
#include <string>
#include <utility>

#include "cli/acquisition.hpp"
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/web/http_server.hpp"
#include "cli/web/listen_address.hpp"
#include "cli/web/lock_site.hpp"

namespace holdfast::cli {
namespace {

/// Never throws: `||` would wait for its other sides.
asio::awaitable<void> watch_until_failure(lock_watch& watched, std::exception_ptr& failure) {
  try {
    co_await watched.run();
  } catch (...) {
    failure = std::current_exception();
  }
}

asio::awaitable<void> wait_for_end(asio::signal_set& signals) {
  for (;;) {
    const int number = co_await signals.async_wait(asio::use_awaitable);
    if (number != SIGUSR1 && number != SIGUSR2) co_return;
  }
}

void report_address(const serve_options& options, const std::string& url, const std::string& token) {
  if (options.access.json) {
    json::object line;
    line["event"] = "serving";
    line["url"] = url;
    put_if(line, "token", token.empty() ? std::nullopt : std::optional(token));
    print(line);
  } else {
    print(token.empty() ? url : url + "#token=" + token);
  }
}

}  // namespace

asio::awaitable<int> serve(serve_options options) {
  using namespace asio::experimental::awaitable_operators;
  const auto executor = co_await asio::this_coro::executor;
  const auto at = read_listen_address(options.listen, !options.proxied_host.empty());
  const auto given = config_of(options.access);
  const auto settings = detail::resolve(given);
  network over(executor);
  job_signals signals(executor);
  asio::ip::tcp::acceptor acceptor(executor);
  try {
    open(acceptor, at);
  } catch (const boost::system::system_error& failed) {
    complain(options.listen + " cannot be opened: " + failed.code().message() + " (see --listen)");
    co_return cannot_listen;
  }
  const auto port = acceptor.local_endpoint().port();
  const auto token = options.may_free ? random_secret() : std::string();
  const auto url = "http://" + host_text(at.address) + ':' + std::to_string(port) + '/';
  const auto on_ready = [&] { report_address(options, url, token); };
  const gate_settings gate{host_text(at.address), port, options.proxied_host, token};
  lock_site site(gate, given, settings, over, on_ready);
  http_server server(std::move(acceptor), site);
  lock_watch watched("*", settings, over, site);
  std::exception_ptr failure;
  const auto first = co_await (watch_until_failure(watched, failure) || server.run() || wait_for_end(signals));
  co_await server.close();
  if (first.index() == 0 && failure) std::rethrow_exception(failure);
  co_return done;
}

}  // namespace holdfast::cli

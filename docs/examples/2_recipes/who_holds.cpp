// SPDX-License-Identifier: BSL-1.0
// Who holds the lock, and where does that process run? holder() asks Redis; CLIENT LIST knows the client's name.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <holdfast/holdfast.hpp>
#include <iostream>
namespace asio = boost::asio;

const char* yes(bool b) { return b ? "yes" : "no"; }

asio::awaitable<void> ask(holdfast::client& here, holdfast::client& elsewhere) {
  auto lease = co_await elsewhere.mutex("report").lock();
  auto mutex = here.mutex("report");
  if (const auto who = co_await mutex.holder()) {  // empty: free
    std::cout << "count: " << who->count << ", at most for another "
              << std::chrono::ceil<std::chrono::minutes>(who->ttl).count() << " min\n"
              << "by that lease: " << yes(who->id == lease.id()) << '\n'
              << "by this client: " << yes(who->id.starts_with(here.id())) << '\n'
              << "by the other client: " << yes(who->id.starts_with(elsewhere.id())) << '\n';
  }
  co_await lease.unlock();
  std::cout << "then: " << (co_await mutex.holder() ? "held" : "free") << '\n';
}

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "redis://localhost";
  asio::io_context io;
  // A name of its own for each service: `CLIENT LIST` then shows billing:<id>:<process>@<host>.
  holdfast::client here{io, {.url = url}}, elsewhere{io, {.url = url, .client_name = "billing"}};
  asio::co_spawn(io, ask(here, elsewhere), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
}

// Output:
//   count: 1, at most for another 1 min
//   by that lease: yes
//   by this client: no
//   by the other client: yes
//   then: free

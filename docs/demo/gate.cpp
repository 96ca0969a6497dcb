// SPDX-License-Identifier: BSL-1.0
#include "gate.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <functional>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::demo {

namespace asio = boost::asio;
using asio::use_awaitable;
using unix_stream = asio::local::stream_protocol;
using any_socket = asio::generic::stream_protocol::socket;

class gate::impl {
 public:
  impl(std::string path, holdfast::detail::url_parts server)
      : path_(std::move(path)), server_(std::move(server)), acceptor_(io_, unix_stream::endpoint(path_)) {
    asio::co_spawn(io_, accept(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

  const std::string& path() const noexcept { return path_; }

  void set_silent(bool on) {
    std::promise<void> done;
    auto act = [&] {
      silent_ = on;
      if (!on)
        for (const auto& link : links_)
          if (const auto open = link.lock()) open->close();
      if (!on) links_.clear();
      done.set_value();
    };
    asio::post(io_, act);
    done.get_future().wait();
  }

 private:
  struct link {
    link(any_socket from, asio::io_context& io) : near(std::move(from)), far(io) {}
    void close() {
      boost::system::error_code ignored;
      near.close(ignored);
      far.close(ignored);
    }
    any_socket near, far;
  };
  using link_ptr = std::shared_ptr<link>;

  asio::awaitable<void> accept() {
    for (;;) {
      auto socket = co_await acceptor_.async_accept(use_awaitable);
      auto one = std::make_shared<link>(any_socket(std::move(socket)), io_);
      links_.push_back(one);
      asio::co_spawn(io_, join(std::move(one)), asio::detached);
    }
  }

  asio::awaitable<void> join(link_ptr one) {
    try {
      co_await connect(one->far);
      asio::co_spawn(io_, pass(one, one->far, one->near), asio::detached);
      co_await pass(one, one->near, one->far);
    } catch (const boost::system::system_error&) {
      one->close();  // the server is down
    }
  }

  asio::awaitable<void> connect(any_socket& far) {
    using holdfast::detail::url_parts;
    if (server_.kind == url_parts::scheme::unix_socket) {
      co_await far.async_connect(unix_stream::endpoint(server_.unix_path), use_awaitable);
      co_return;
    }
    asio::ip::tcp::resolver resolver(io_);
    const auto& [host, port] = server_.hosts[0];
    const auto found = co_await resolver.async_resolve(host, std::to_string(port), use_awaitable);
    asio::ip::tcp::socket socket(io_);
    co_await asio::async_connect(socket, found, use_awaitable);
    socket.set_option(asio::ip::tcp::no_delay(true));
    far = any_socket(std::move(socket));
  }

  // When one direction ends, so does the other. `one` keeps both sockets.
  asio::awaitable<void> pass(link_ptr one, any_socket& from, any_socket& to) {
    try {
      std::string block(4096, 0);
      for (;;) {
        const auto size = co_await from.async_read_some(asio::buffer(block), use_awaitable);
        if (!silent_) co_await asio::async_write(to, asio::buffer(block, size), use_awaitable);
      }
    } catch (const boost::system::system_error&) {
      one->close();
    }
  }

  const std::string path_;
  const holdfast::detail::url_parts server_;
  asio::io_context io_{1};
  unix_stream::acceptor acceptor_;
  std::vector<std::weak_ptr<link>> links_;
  bool silent_ = false;
  std::thread thread_;
};

gate::gate(std::string path, holdfast::detail::url_parts server)
    : impl_(std::make_unique<impl>(std::move(path), std::move(server))) {}
gate::~gate() = default;

const std::string& gate::path() const noexcept { return impl_->path(); }
void gate::silence() { impl_->set_silent(true); }
void gate::mend() { impl_->set_silent(false); }

}  // namespace holdfast::demo

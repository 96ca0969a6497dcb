// SPDX-License-Identifier: BSL-1.0
#include "testing/sim/virtual_transport.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "redis/io_services.hpp"

namespace holdfast::sim {
namespace {

/// The client's end of a simulated connection; never TLS.
class wire_stream final : public redis::stream {
 public:
  explicit wire_stream(std::shared_ptr<wire> wire) : wire_(std::move(wire)) {}
  ~wire_stream() override { wire_->close(); }

  void async_read_some(asio::mutable_buffer into, handler done) override { wire_->read(into, std::move(done)); }
  void async_write(asio::const_buffer bytes, handler done) override {
    error_code failed;
    if (wire_->ended())
      failed = asio::error::broken_pipe;
    else
      wire_->write({static_cast<const char*>(bytes.data()), bytes.size()});
    wire_->client().post([done = std::move(done), failed, size = bytes.size()] { done(failed, failed ? 0 : size); });
  }
  std::size_t write_now(std::string_view bytes, error_code& failed) override {
    if (wire_->ended()) return failed = asio::error::broken_pipe, 0;
    const auto size = wire_->take_at_once(bytes.size());
    wire_->write(bytes.substr(0, size));
    return size;
  }
  input peek() override { return wire_->has_input() ? input::some : wire_->ended() ? input::ended : input::none; }
  void cancel() override { wire_->cancel(); }
  void close() override { wire_->close(); }

 private:
  std::shared_ptr<wire> wire_;
};

class dialling final : public redis::transport::attempt, public std::enable_shared_from_this<dialling> {
 public:
  dialling(const redis::endpoint& node, redis::transport::handler done) : node_(node), done_(std::move(done)) {}

  void begin(route& way, const home_ptr& from) {
    way.dial(from, [self = shared_from_this()](error_code failed, const std::shared_ptr<wire>& wire) {
      const auto made = wire ? std::make_shared<wire_stream>(wire) : nullptr;
      if (const auto done = std::exchange(self->done_, nullptr))
        done(made, failed ? redis::fail(self->node_, errc::unreachable, failed.message()) : redis::failure());
    });
  }
  void cancel() override { done_ = nullptr; }
  const char* phase() const noexcept override { return "connecting"; }

 private:
  const redis::endpoint& node_;
  redis::transport::handler done_;
};

}  // namespace

std::shared_ptr<redis::transport::attempt> transport::connect(const redis::io_services&, const redis::endpoint& node,
                                                              time_point, handler done) {
  const auto made = std::make_shared<dialling>(node, std::move(done));
  const auto way =
      std::find_if(ways_.begin(), ways_.end(), [&](const route& each) { return each.to().is_at(node.at); });
  if (way != ways_.end()) made->begin(*way, client_);
  return made;
}

}  // namespace holdfast::sim

// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/error.hpp>

#include "base/lease_clock.hpp"
#include "redis/failure.hpp"

namespace holdfast::redis {

struct io_services;

/// A byte stream to a server. Used on the strand only; at most one read and one write at a time. Handlers are called on
/// the strand, never inside a call, also after close(); until then the stream and the buffers must live.
class stream {
 public:
  /// The object to call, kept alive until then. Three words that are cheap to move: Asio moves a handler often.
  class handler {
   public:
    template <auto Call, class T>
    static handler to(std::shared_ptr<T> whom) {
      return {std::move(whom), [](void* object, const error_code& failed, std::size_t size) {
                (static_cast<T*>(object)->*Call)(failed, size);
              }};
    }
    void operator()(const error_code& failed, std::size_t size) const { call_(whom_.get(), failed, size); }

   private:
    using function = void (*)(void* whom, const error_code& failed, std::size_t size);
    handler(std::shared_ptr<void> whom, function call) noexcept : whom_(std::move(whom)), call_(call) {}

    std::shared_ptr<void> whom_;
    function call_;
  };
  /// The state of the receive buffer, read without taking bytes out.
  enum class input { none, some, ended };

  virtual ~stream() = default;
  virtual void async_read_some(boost::asio::mutable_buffer into, handler done) = 0;
  /// Writes all of it.
  virtual void async_write(boost::asio::const_buffer bytes, handler done) = 0;
  /// Writes the bytes that the socket takes at once, without waiting; perhaps none.
  virtual std::size_t write_now(std::string_view bytes, error_code& failed) = 0;
  virtual input peek() = 0;
  /// Ends the pending read and write with operation_aborted; the stream stays usable.
  virtual void cancel() = 0;
  virtual void close() = 0;
  /// Bytes may come that are no reply (records of TLS).
  virtual bool secured() const noexcept { return false; }
  /// The cause of an error of encryption, for a text; empty for an error of the connection.
  virtual std::string tls_cause(const error_code&) { return {}; }
};

/// Makes streams: our sockets, or a simulated network. Passed in.
class transport {
 public:
  /// An attempt to make a stream. Its owner calls cancel() before dropping it, unless its handler has been called.
  class attempt {
   public:
    virtual ~attempt() = default;
    /// From now on its handler is not called.
    virtual void cancel() = 0;
    /// Its present step, for a text.
    virtual const char* phase() const noexcept = 0;
  };
  /// Gets the stream, or the reason why there is none.
  using handler = std::function<void(std::shared_ptr<stream>, failure)>;

  /// `done` is called once, from the strand, never inside the call. `node` must live until then or until cancel().
  /// `deadline`: the time at which the caller cancels. The addresses of a name share the time until then.
  virtual std::shared_ptr<attempt> connect(const io_services& services, const endpoint& node,
                                           detail::time_point deadline, handler done) = 0;

 protected:
  ~transport() = default;
};

}  // namespace holdfast::redis

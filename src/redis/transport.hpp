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
  /// Whom to call, kept alive until then. Three words that cost nothing to move: Asio moves a handler often.
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
  /// What a look at the receive buffer shows, without taking anything out.
  enum class input { none, some, ended };

  virtual ~stream() = default;
  virtual void async_read_some(boost::asio::mutable_buffer into, handler done) = 0;
  /// All of it.
  virtual void async_write(boost::asio::const_buffer bytes, handler done) = 0;
  /// Writes what is taken at once, without waiting; perhaps nothing.
  virtual std::size_t write_now(std::string_view bytes, error_code& failed) = 0;
  virtual input peek() = 0;
  /// Ends the pending read and write with operation_aborted; the stream stays usable.
  virtual void cancel() = 0;
  virtual void close() = 0;
  /// Bytes may come that are no reply (records of TLS).
  virtual bool secured() const noexcept { return false; }
  /// What an error of encryption means to a person; empty when it is one of the connection.
  virtual std::string tls_cause(const error_code&) { return {}; }
};

/// Makes streams: our sockets, or a simulated network. Passed in.
class transport {
 public:
  /// An attempt to get a stream. Whoever drops it calls cancel() first, or its handler has been called.
  class attempt {
   public:
    virtual ~attempt() = default;
    /// Its handler is not called any more.
    virtual void cancel() = 0;
    /// How far it has come, for a text.
    virtual const char* phase() const noexcept = 0;
  };
  /// The stream, or why there is none.
  using handler = std::function<void(std::shared_ptr<stream>, failure)>;

  /// `done` is called once, from the strand, never inside the call. `node` must live until then or until cancel().
  /// `deadline`: when the caller will cancel; it shares the time among the addresses of a name.
  virtual std::shared_ptr<attempt> connect(const io_services& services, const endpoint& node,
                                           detail::time_point deadline, handler done) = 0;

 protected:
  ~transport() = default;
};

}  // namespace holdfast::redis

// SPDX-License-Identifier: BSL-1.0
#include <utility>

#include "sync/engine.hpp"

// The engine's questions: nothing here changes what is held, but for force_unlock.
namespace holdfast::detail {

void engine::ask_twice(std::function<void(topology::handler)> send, topology::handler done) {
  send([send, done = std::move(done)](outcome o) {
    if (o.error == errc::unconfirmed) return send(done);
    done(std::move(o));
  });
}

template <class T, class Read>
void engine::ask(const std::string& name, std::string command, Read read, value_handler<T> done) {
  if (closed()) return done(errc::closed, {}, {});
  auto key = keys_of(name).lock;
  auto send = [this, key = std::move(key), command = std::move(command)](topology::handler then) {
    around_.servers.execute(key, command, around_.now() + around_.settings.command_timeout, std::move(then));
  };
  ask_twice(std::move(send), [read, done = std::move(done)](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    auto said = read(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    done({}, {}, std::move(said.value));
  });
}

void engine::force_unlock(const std::string& name, value_handler<bool> done) {
  if (closed()) return done(errc::closed, {}, {});
  auto send = [this, keys = keys_of(name)](topology::handler then) {
    around_.run(scripts::force_release(keys), around_.now() + around_.settings.command_timeout, std::move(then));
  };
  ask_twice(std::move(send), [this, name, done = std::move(done)](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    const auto said = read_force_release(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    // It may have been ours: let its holder know now rather than at the next renewal.
    if (auto* h = live_hold(name)) watchdog_.confirm_soon(*h, nanoseconds::zero());
    wake(name);
    done({}, {}, said.value);
  });
}

void engine::is_locked(const std::string& name, value_handler<bool> done) {
  ask<bool>(name, redis::make_command({"EXISTS", keys_of(name).lock}), read_exists, std::move(done));
}

void engine::hold_count(const std::string& name, holdfast::owner who, value_handler<unsigned> done) {
  const auto h = hold_of(name, who);
  if (!h && !closed()) return done({}, {}, 0);
  ask<unsigned>(name, redis::make_command({"HGET", keys_of(name).lock, h ? h->field : ""}), read_count, std::move(done));
}

void engine::remaining_ttl(const std::string& name, value_handler<std::optional<milliseconds>> done) {
  ask<std::optional<milliseconds>>(name, redis::make_command({"PTTL", keys_of(name).lock}), read_ttl, std::move(done));
}

namespace {

/// Subscribes once, to see whether it may.
struct channel_probe final : subscriber {
  explicit channel_probe(std::function<void(error_code, std::string)> d) : done(std::move(d)) {}
  void on_subscribed() override { end({}, {}); }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code error, const std::string& detail) override { end(error, detail); }
  void end(error_code error, const std::string& detail) {
    if (done) std::exchange(done, {})(error, detail);
  }
  std::function<void(error_code, std::string)> done;
};

}  // namespace

void engine::probe(done_handler done) {
  if (closed()) return done(errc::closed, {});
  struct progress {
    progress(timers& alarms) : patience(alarms) {}
    std::size_t left = 0;
    error_code error;
    std::string detail;
    done_handler done;
    std::unique_ptr<channel_probe> listener;
    subscription heard;
    timer patience;
  };
  auto p = std::make_shared<progress>(around_.alarms);
  p->done = std::move(done);
  const auto step = [p](const error_code& error, const std::string& detail) {
    if (error && !p->error) std::tie(p->error, p->detail) = std::tie(error, detail);
    if (--p->left > 0) return;
    p->patience.stop();
    p->heard.reset();
    std::exchange(p->done, {})(p->error, p->detail);
  };

  const auto keys = keys_of("__probe:" + fields_.client_uuid());
  const auto field = fields_.next();
  const milliseconds ttl{1000};
  const renewal one{keys.lock, field, ttl};
  const script_call calls[] = {scripts::acquire(keys, ttl, field), scripts::reenter(keys, ttl, field, 2), scripts::renew({&one, 1}),
                               scripts::release(keys, field, 1, ttl), scripts::release(keys, field, 0, ttl)};
  p->left = std::size(calls) + 1;
  const auto deadline = around_.now() + around_.settings.connect_timeout + around_.settings.command_timeout;
  p->listener = std::make_unique<channel_probe>([this, step, alarms = &around_.alarms](error_code error, const std::string& detail) {
    step(error, detail);
  });
  p->heard = around_.servers.subscribe(keys.channel, *p->listener);
  p->patience.start(deadline, [p] { p->listener->end(errc::unreachable, "SUBSCRIBE was not acknowledged in time"); });
  for (const auto& call : calls)
    around_.run(call, deadline, [step](const outcome& o) {
      if (o.error) return step(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail);
      const auto said = o.reply.is_error() ? classify(o.reply.text) : server_error{};
      step(said.code, said.text);
    });
}

}  // namespace holdfast::detail

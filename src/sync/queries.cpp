// SPDX-License-Identifier: BSL-1.0
#include <utility>

#include "sync/engine.hpp"

// The engine's questions: nothing here changes what is held, but for force_unlock.
namespace holdfast::detail {

void engine::ask_twice(time_point deadline, function<void(topology::handler)> send, topology::handler done) {
  send([this, deadline, send, done = std::move(done)](outcome o) {
    if (o.error == errc::unconfirmed && around_.now() < deadline) return send(done);
    done(std::move(o));
  });
}

template <class T, class Read>
void engine::ask(const shared_keys& keys, std::string command, Read read, value_handler<T> done) {
  if (closed()) return done(errc::closed, {}, {});
  done = until_closed(std::move(done));
  const auto deadline = around_.now() + around_.settings.command_timeout;
  auto send = [this, keys, deadline, command = std::move(command)](topology::handler then) {
    around_.servers.execute(keys->lock, command, deadline, std::move(then));
  };
  ask_twice(deadline, std::move(send), [read, done = std::move(done)](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    auto said = read(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    done({}, {}, std::move(said.value));
  });
}

void engine::force_unlock(const shared_keys& keys, value_handler<bool> done) {
  if (closed()) return done(errc::closed, {}, {});
  done = until_closed(std::move(done));
  const auto deadline = around_.now() + around_.settings.command_timeout;
  auto send = [this, keys, deadline](topology::handler then) {
    around_.run(scripts::force_release(*keys), deadline, std::move(then));
  };
  ask_twice(deadline, std::move(send), [this, keys, done = std::move(done)](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    const auto said = read_force_release(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    // It may have been ours: let its holder know now rather than at the next renewal.
    if (auto* h = live_hold(keys->name)) watchdog_.confirm_soon(*h, nanoseconds::zero());
    wake(keys->name);
    done({}, {}, said.value);
  });
}

void engine::is_locked(const shared_keys& keys, value_handler<bool> done) {
  ask<bool>(keys, redis::make_command({"EXISTS", keys->lock}), read_exists, std::move(done));
}

void engine::hold_count(const shared_keys& keys, holdfast::owner who, value_handler<unsigned> done) {
  const auto h = hold_of(keys->name, who);
  if (!h && !closed()) return done({}, {}, 0);
  ask<unsigned>(keys, redis::make_command({"HGET", keys->lock, h ? std::string_view(h->field) : ""}), read_count,
                std::move(done));
}

void engine::remaining_ttl(const shared_keys& keys, value_handler<std::optional<milliseconds>> done) {
  ask<std::optional<milliseconds>>(keys, redis::make_command({"PTTL", keys->lock}), read_ttl, std::move(done));
}

void engine::last_token(const shared_keys& keys, value_handler<std::optional<std::uint64_t>> done) {
  ask<std::optional<std::uint64_t>>(keys, redis::make_command({"GET", token_key(*keys)}), read_token, std::move(done));
}

/// One use of every permission, on a name of nobody; ends at the first refusal.
class engine::permission_probe final : public subscriber, public std::enable_shared_from_this<permission_probe> {
 public:
  permission_probe(engine& host, done_handler done)
      : host_(host), done_(std::move(done)), patience_(host.around_.alarms) {}

  void begin() {
    auto& around = host_.around_;
    const lock_keys keys("__probe:" + host_.fields_.client_uuid(), around.settings.key_prefix);
    const auto field = host_.fields_.next();
    const milliseconds ttl{1000};
    const renewal one{keys.lock, field, ttl};
    const script_call calls[] = {scripts::acquire(keys, ttl, field), scripts::reenter(keys, ttl, field, 2),
                                 scripts::renew({&one, 1}), scripts::release(keys, field, 1, ttl),
                                 scripts::release(keys, field, 0, ttl)};
    left_ = std::size(calls) + 1;
    const auto deadline = around.now() + around.settings.connect_timeout + around.settings.command_timeout;
    heard_ = around.servers.subscribe(keys.channel, *this);
    patience_.start(deadline, [this] {
      over_ = true;
      give_up_on_subscription();
    });
    for (const auto& call : calls)
      around.run(call, deadline, [id = weak_from_this()](const outcome& o) {
        if (const auto self = id.lock()) self->answered(o);
      });
  }

  void end(error_code error, const std::string& detail) {
    if (!done_) return;
    const auto keep = shared_from_this();
    host_.probes_.remove(keep);
    patience_.stop();
    heard_.reset();
    std::exchange(done_, {})(error, detail);
  }

 private:
  void on_subscribed() override {
    if (!std::exchange(subscribed_, true)) step();
  }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code error, const std::string& detail) override { end(error, detail); }

  void answered(const outcome& o) {
    if (o.error) return end(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail);
    if (!o.reply.is_error()) return step();
    const auto said = classify(o.reply.text);
    end(said.code, said.text);
  }
  void step() {
    if (--left_ == 0) return end({}, {});
    give_up_on_subscription();
  }
  // Commands first: each is answered in time, and they know best why there is no server.
  void give_up_on_subscription() {
    if (over_ && left_ == 1 && !subscribed_) end(errc::unreachable, "SUBSCRIBE was not acknowledged in time");
  }

  engine& host_;
  done_handler done_;  // emptied when it is answered
  timer patience_;
  subscription heard_;
  std::size_t left_ = 0;  // answers to come
  bool subscribed_ = false;
  bool over_ = false;  // the deadline has passed
};

void engine::probe(done_handler done) {
  if (closed()) return done(errc::closed, {});
  const auto p = probes_.emplace_back(std::make_shared<permission_probe>(*this, std::move(done)));
  p->begin();
}

void engine::end_probes() {
  while (!probes_.empty()) std::shared_ptr(probes_.front())->end(errc::closed, {});
}

}  // namespace holdfast::detail

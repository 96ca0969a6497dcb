// SPDX-License-Identifier: BSL-1.0
#include <utility>

#include "sync/engine.hpp"

// The engine's questions: nothing here changes what is held, except force_unlock.
namespace holdfast::detail {

void engine::ask_twice(nanoseconds timeout, sender send, topology::handler done) {
  auto answered = [this, timeout, send, done = std::move(done)](outcome o) {
    const auto left = timeout - (around_.now() - o.sent);
    if (o.error == errc::unconfirmed && left > nanoseconds::zero()) return send(left, done);
    done(std::move(o));
  };
  send(timeout, std::move(answered));
}

template <class T, class Send, class Read>
void engine::ask_by(Send send, Read read, value_handler<T> done) {
  if (closed()) return done(errc::closed, {}, {});
  done = until_closed(std::move(done));
  ask_twice(around_.settings.command_timeout, std::move(send), [read, done = std::move(done)](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    auto said = read(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    done({}, {}, std::move(said.value));
  });
}

template <class T, class Read>
void engine::ask(const shared_keys& keys, std::string command, Read read, value_handler<T> done) {
  auto send = [this, keys, command = std::move(command)](nanoseconds left, topology::handler then) {
    redis::request question{command, {.timeout = left}, {}};
    question.done = std::move(then);
    around_.servers.execute(keys->lock, std::move(question));
  };
  ask_by(std::move(send), read, std::move(done));
}

void engine::force_unlock(const shared_keys& keys, value_handler<bool> done) {
  if (closed()) return done(errc::closed, {}, {});
  done = until_closed(std::move(done));
  const auto copies = std::make_shared<unsigned>(0);
  auto send = [this, keys, copies](nanoseconds left, topology::handler then) {
    ++*copies;
    around_.run(scripts::force_release(*keys), {.timeout = left}, std::move(then));
  };
  auto answered = [this, keys, copies, done = std::move(done)](const outcome& o) {
    if (o.error) return done(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail, {});
    const auto said = read_force_release(o.reply);
    if (said.error) return done(said.error->code, said.error->text, {});
    // It may have been ours: let its holder know now rather than at the next renewal.
    if (auto* h = live_hold(keys->name)) {
      h->forced = h->forced || said.value;
      watchdog_.confirm_soon(*h->on, nanoseconds::zero());
    }
    wake(keys->name);
    if (*copies > 1 && !said.value)
      return done(errc::unconfirmed, "the first answer was lost, and the second found no hold", {});
    done({}, {}, said.value);
  };
  ask_twice(around_.settings.command_timeout, std::move(send), std::move(answered));
}

void engine::is_locked(const shared_keys& keys, value_handler<bool> done) {
  ask<bool>(keys, redis::make_command({"EXISTS", keys->lock}), read_exists, std::move(done));
}

void engine::hold_count(const shared_keys& keys, owner_id who, value_handler<unsigned> done) {
  const auto h = hold_of(keys->name, who);
  if (!h && !closed()) return done({}, {}, 0);
  ask<unsigned>(keys, redis::make_command({"HGET", keys->lock, h ? std::string_view(h->field()) : ""}), read_count,
                std::move(done));
}

void engine::holder(const shared_keys& keys, value_handler<std::optional<lock_holder>> done) {
  auto send = [this, keys](nanoseconds left, topology::handler then) {
    around_.run(scripts::holder(*keys), {.timeout = left}, std::move(then));
  };
  auto read = [](const redis::reply& r) {
    auto said = read_holder(r);
    answer<std::optional<lock_holder>> a{std::move(said.error), {}};
    if (auto& who = said.value) a.value = lock_holder{std::move(who->field), who->count, who->ttl};
    return a;
  };
  ask_by(std::move(send), read, std::move(done));
}

void engine::remaining_ttl(const shared_keys& keys, value_handler<std::optional<milliseconds>> done) {
  ask<std::optional<milliseconds>>(keys, redis::make_command({"PTTL", keys->lock}), read_ttl, std::move(done));
}

void engine::last_token(const shared_keys& keys, value_handler<std::optional<std::uint64_t>> done) {
  ask<std::optional<std::uint64_t>>(keys, redis::make_command({"GET", token_key(*keys)}), read_token, std::move(done));
}

/// One use of every permission, on a name of nobody; ends at the first refusal. One after the other: a script that the
/// server does not know yet is sent twice, and would come after those that it knows.
class engine::permission_probe final : public subscriber, public std::enable_shared_from_this<permission_probe> {
 public:
  permission_probe(engine& host, done_handler done)
      : host_(host), done_(std::move(done)),
        keys_("__probe:" + host.fields_.client_uuid(), host.around_.settings.key_prefix), field_(host.fields_.next()),
        patience_(host.around_.alarms) {}

  void begin() {
    auto& around = host_.around_;
    deadline_ = around.now() + around.settings.connect_timeout + around.settings.command_timeout;
    heard_ = around.servers.subscribe(keys_.channel, *this);
    patience_.start(deadline_, [this] { time_out(); });
    send_next();
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
    subscribed_ = true;
    end_if_done();
  }
  void on_message(std::string_view) override {}
  void on_subscribe_failed(error_code error, const std::string& detail) override { end(error, detail); }

  script_call next() const {
    constexpr milliseconds ttl{1000};
    const renewal one{keys_.lock, field_, {ttl}};
    switch (answers_) {
      case 0: return scripts::acquire(keys_, ttl, field_);
      case 1: return scripts::reenter(keys_, {ttl}, field_, 2);
      case 2: return scripts::renew({&one, 1});
      case 3: return scripts::release(keys_, field_, 1, {ttl});
      default: return scripts::release(keys_, field_, 0, {ttl});
    }
  }
  static constexpr int all_scripts = 5;

  void send_next() {
    const auto left = deadline_ - host_.around_.now();
    host_.around_.run(next(), {.timeout = left}, [id = weak_from_this()](const outcome& o) {
      if (const auto self = id.lock()) self->answered(o);
    });
  }
  void answered(const outcome& o) {
    if (!done_) return;
    if (o.error) return end(o.error == errc::unconfirmed ? make_error_code(errc::unreachable) : o.error, o.detail);
    if (o.reply.is_error()) {
      const auto said = classify(o.reply.text);
      return end(said.code, said.text);
    }
    if (++answers_ < all_scripts) return send_next();
    end_if_done();
  }
  void end_if_done() {
    if (answers_ == all_scripts && subscribed_) end({}, {});
  }
  // Not left to the commands: one that is sent again, on a new connection or by its text, has its whole time anew.
  void time_out() {
    if (answers_ == all_scripts) return end(errc::unreachable, "SUBSCRIBE was not acknowledged in time");
    const auto why = host_.around_.servers.trouble(keys_.lock);
    end(why.code, why.detail);
  }

  engine& host_;
  done_handler done_;  // emptied when it is answered
  const lock_keys keys_;
  const owner_field field_;
  time_point deadline_;
  timer patience_;
  subscription heard_;
  int answers_ = 0;
  bool subscribed_ = false;
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

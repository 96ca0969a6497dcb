// SPDX-License-Identifier: BSL-1.0
// Subscriptions that come and go, and a server that says anything: events name what is wanted, and nothing dangles.
// A run is a program: "w" and "u" with a letter for a channel, "s" and "S" for a connection with the one or the other
// kind of channels, and "x", "p", "o", "r" followed by a reply.
#include <deque>
#include <set>
#include <string>

#include "fuzz/input.hpp"
#include "redis/subscription_table.hpp"

using namespace holdfast;
using fuzz::require;
using redis::subscription_table;
using kind = subscription_table::event::kind;

namespace {

/// One reply from the front of `bytes`.
std::optional<redis::reply> take_reply(fuzz::input& bytes) {
  redis::reader server;
  while (!bytes.empty() && !server.failed()) {
    server.feed(bytes.take(1));
    if (auto* const r = server.next()) return std::move(*r);
  }
  return std::nullopt;
}

class program {
 public:
  void step(fuzz::input& bytes) {
    switch (bytes.byte()) {
      case 'w': return want(channel(bytes));
      case 'u': return unwant(channel(bytes));
      case 'W': return want(std::string(redis::push_channel));
      case 'U': return unwant(std::string(redis::push_channel));
      case 's': return start(redis::channel_kind::classic);
      case 'S': return start(redis::channel_kind::sharded);
      case 'x': return stop();
      case 'p': return table_.ping();
      case 'o': return write();
      case 'r':
        if (auto r = take_reply(bytes)) hear(std::move(*r));
        return;
      default: return;
    }
  }

  void check() const {
    require(table_.any_wanted() == !wanted_.empty(), "what is wanted is known");
    require(table_.oldest_unanswered().has_value() == !open_.empty(), "every command waits for one answer");
    for (const auto name : {std::string_view("a"), std::string_view("b"), std::string_view("c"), redis::push_channel})
      require(!table_.confirmed(name) || (started_ && wanted_.contains(std::string(name))),
              "only what is wanted is confirmed");
  }

 private:
  static std::string channel(fuzz::input& bytes) { return {static_cast<char>('a' + bytes.byte() % 3)}; }

  void want(const std::string& name) {
    wanted_.insert(name);
    table_.want(name);
  }
  void unwant(const std::string& name) {
    wanted_.erase(name);
    table_.unwant(name);
  }
  void start(redis::channel_kind of) {
    if (started_) return;  // its owner stops it first
    started_ = true;
    of_ = of;
    table_.start(of);
  }
  void stop() {
    started_ = false;
    open_.clear();
    table_.stop();
    require(!table_.busy(), "without a connection there is nothing to do");
  }

  void write() {
    std::string out;
    table_.write(out, 1'000, {});
    redis::reader commands;
    commands.feed(out);
    while (const auto c = commands.next()) {
      const auto& verb = c->elements.front().text;
      open_.push_back({verb, c->elements.back().text});
      if (verb == "PING") continue;
      const bool sharded = of_ == redis::channel_kind::sharded && c->elements[1].text != redis::push_channel;
      const std::string subscribe(sharded ? "SSUBSCRIBE" : "SUBSCRIBE"),
          unsubscribe(sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE");
      require(verb == subscribe || verb == unsubscribe, "nothing else is written");
      require((verb == subscribe) == wanted_.contains(c->elements[1].text),
              "what is wanted is asked for, and nothing else");
    }
    require(!commands.failed(), "what is written is commands");
  }

  void hear(redis::reply r) {
    if (is_answer(r) && !open_.empty()) open_.pop_front();
    const auto e = table_.on_reply(std::move(r));
    if (e.type == kind::confirmed || e.type == kind::refused || e.type == kind::unavailable || e.type == kind::moved ||
        e.type == kind::message)
      require(wanted_.contains(e.channel), "events name what is wanted");
    if (e.type == kind::changed) require(wanted_.contains(std::string(redis::push_channel)), "pushes are wanted");
    if (e.type == kind::confirmed) require(table_.confirmed(e.channel), "what was confirmed is confirmed");
    if (e.type == kind::moved) require(!table_.confirmed(e.channel), "what has moved is not here");
    if (e.type == kind::desync || e.type == kind::error) stop();  // as its owner does
  }

  /// And neither a message nor said unasked.
  bool is_answer(const redis::reply& r) const {
    const bool sharded = of_ == redis::channel_kind::sharded;
    if (r.elements.size() != 3) return true;
    const auto& word = r.elements[0].text;
    if (word == "message" && r.elements[1].text == redis::push_channel) return false;
    if (word == (sharded ? "smessage" : "message")) return false;
    if (!sharded || word != "sunsubscribe") return true;
    return !open_.empty() && open_.front().verb == "SUNSUBSCRIBE" && open_.front().channel == r.elements[1].text;
  }

  struct question {
    std::string verb, channel;
  };

  subscription_table table_;
  std::set<std::string, std::less<>> wanted_;
  std::deque<question> open_;
  redis::channel_kind of_ = redis::channel_kind::classic;
  bool started_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input bytes(data, size);
  program p;
  while (!bytes.empty()) {
    p.step(bytes);
    p.check();
  }
  return 0;
}

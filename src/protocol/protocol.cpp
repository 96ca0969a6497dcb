// SPDX-License-Identifier: BSL-1.0
#include "protocol/protocol.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "lua_scripts.hpp"

namespace holdfast::detail {
namespace {

/// Decimal text of a number that lives as long as the full expression.
class decimal {
 public:
  template <class Integer>
  explicit decimal(Integer n) {
    size_ = static_cast<std::size_t>(std::to_chars(digits_.data(), digits_.data() + digits_.size(), n).ptr -
                                     digits_.data());
  }
  operator std::string_view() const { return {digits_.data(), size_}; }

 private:
  std::array<char, 24> digits_;
  std::size_t size_;
};

/// A key or channel beside the lock's. Redisson asks only whether the name has an opening brace anywhere, not whether
/// it makes a hash tag.
std::string beside(std::string_view what, std::string_view lock) {
  const bool tagged = lock.find('{') != std::string_view::npos;
  std::string out;
  out.reserve(what.size() + lock.size() + 3);
  return out.append(what).append(tagged ? ":" : ":{").append(lock).append(tagged ? "" : "}");
}

bool differ(const key_ttl& t) { return t.if_none > t.ttl; }

}  // namespace

lock_keys::lock_keys(std::string_view n, std::string_view prefix)
    : name(n), lock(std::string(prefix).append(n)), channel(beside("redisson_lock__channel", lock)) {}

std::string token_key(const lock_keys& k) { return beside("redisson_lock_token", k.lock); }

owner_field::owner_field(std::string_view text) : size_(static_cast<std::uint8_t>(text.copy(text_.data(), longest))) {}

owner_fields::owner_fields(std::uint64_t high, std::uint64_t low) {
  high = (high & ~0xF000ULL) | 0x8000ULL;               // version 8
  low = (low & 0x3FFF'FFFF'FFFF'FFFFULL) | 1ULL << 63;  // RFC 9562 variant
  std::array<char, 37> text;
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xFFFF), static_cast<unsigned>(high & 0xFFFF),
                static_cast<unsigned>(low >> 48), static_cast<unsigned long long>(low & 0xFFFF'FFFF'FFFFULL));
  uuid_ = text.data();
}

owner_field owner_fields::next() {
  std::array<char, owner_field::longest> text;
  const decimal number(++last_);
  auto end = std::copy(uuid_.begin(), uuid_.end(), text.begin());
  *end++ = ':';
  end = std::copy_n(std::string_view(number).begin(), std::string_view(number).size(), end);
  return owner_field({text.begin(), end});
}

class script_call::writer {
 public:
  writer(std::string& out, const script& which, bool by_text) : bytes_(out), which_(which), by_text_(by_text) {}

  void begin(std::size_t keys, std::size_t arguments) {
    bytes_.begin(3 + keys + arguments);
    if (by_text_) {
      bytes_.add("EVAL");
      bytes_.add(which_.body);
    } else {
      bytes_.add_encoded(which_.evalsha);
    }
    bytes_.add(static_cast<std::int64_t>(keys));
  }
  void add(std::string_view word) { bytes_.add(word); }
  void add(std::int64_t number) { bytes_.add(number); }
  void add(milliseconds ttl) { bytes_.add(ttl.count()); }
  /// The last argument, where the script's default will not do.
  void add_if_none(const key_ttl& t) {
    if (differ(t)) add(t.if_none);
  }
  void end() { bytes_.flush(); }

 private:
  redis::command_writer bytes_;
  const script& which_;
  const bool by_text_;
};

void script_call::append_to(std::string& out, bool by_text) const {
  writer to(out, *which_, by_text);
  which_->write(to, what_);
  to.end();
}

script_call scripts::acquire(const lock_keys& k, milliseconds ttl, std::string_view field) {
  static constexpr script_call::script script{lua::acquire.evalsha, lua::acquire.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, 2);
                                                to.add(o.at->lock);
                                                to.add(o.ttl.ttl);
                                                to.add(o.field);
                                              }};
  return {script, {.at = &k, .field = field, .ttl = {ttl}}};
}

script_call scripts::acquire_fenced(const lock_keys& k, milliseconds ttl, std::string_view field) {
  static constexpr script_call::script script{lua::acquire_fenced.evalsha, lua::acquire_fenced.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(2, 2);
                                                to.add(o.at->lock);
                                                to.add(token_key(*o.at));
                                                to.add(o.ttl.ttl);
                                                to.add(o.field);
                                              }};
  return {script, {.at = &k, .field = field, .ttl = {ttl}}};
}

script_call scripts::reenter(const lock_keys& k, key_ttl wanted, std::string_view field, unsigned want) {
  static constexpr script_call::script script{lua::reenter.evalsha, lua::reenter.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, differ(o.ttl) ? 4 : 3);
                                                to.add(o.at->lock);
                                                to.add(o.ttl.ttl);
                                                to.add(o.field);
                                                to.add(std::int64_t{o.count});
                                                to.add_if_none(o.ttl);
                                              }};
  return {script, {.at = &k, .field = field, .ttl = wanted, .count = want}};
}

void script_call::write_renewals(writer& to, std::span<const renewal> holds) {
  const bool both = std::any_of(holds.begin(), holds.end(), [](const auto& h) { return differ(h.wanted); });
  to.begin(holds.size(), (both ? 3 : 2) * holds.size());
  for (const auto& h : holds) to.add(h.lock);
  for (const auto& h : holds) to.add(h.wanted.ttl);
  for (const auto& h : holds) to.add(h.field);
  if (!both) return;
  for (const auto& h : holds) to.add(h.wanted.if_none);
}

script_call scripts::renew(std::span<const renewal> holds) {
  static constexpr script_call::script script{lua::renew.evalsha, lua::renew.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                script_call::write_renewals(to, {o.holds, o.count});
                                              }};
  return {script, {.holds = holds.data(), .count = static_cast<unsigned>(holds.size())}};
}

script_call scripts::renew(const lock_keys& k, std::string_view field, key_ttl wanted) {
  static constexpr script_call::script script{lua::renew.evalsha, lua::renew.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                const renewal one{o.at->lock, o.field, o.ttl};
                                                script_call::write_renewals(to, {&one, 1});
                                              }};
  return {script, {.at = &k, .field = field, .ttl = wanted}};
}

script_call scripts::release(const lock_keys& k, std::string_view field, unsigned count, key_ttl wanted) {
  static constexpr script_call::script script{lua::release.evalsha, lua::release.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, differ(o.ttl) ? 5 : 4);
                                                to.add(o.at->lock);
                                                to.add(o.at->channel);
                                                to.add(o.field);
                                                to.add(std::int64_t{o.count});
                                                to.add(o.ttl.ttl);
                                                to.add_if_none(o.ttl);
                                              }};
  return {script, {.at = &k, .field = field, .ttl = wanted, .count = count}};
}

script_call scripts::force_release(const lock_keys& k) {
  static constexpr script_call::script script{lua::force_release.evalsha, lua::force_release.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, 1);
                                                to.add(o.at->lock);
                                                to.add(o.at->channel);
                                              }};
  return {script, {.at = &k}};
}

script_call scripts::holder(const lock_keys& k) {
  static constexpr script_call::script script{lua::holder.evalsha, lua::holder.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, 0);
                                                to.add(o.at->lock);
                                              }};
  return {script, {.at = &k}};
}

}  // namespace holdfast::detail

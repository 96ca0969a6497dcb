// SPDX-License-Identifier: BSL-1.0
#include "protocol/protocol.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "lua_scripts.hpp"

namespace holdfast::detail {
namespace {

/// The text of a key or a channel, in parts.
using parts = std::array<std::string_view, 4>;

/// A key or channel beside the lock's. Redisson asks only whether the name has an opening brace anywhere, not whether
/// it makes a hash tag.
parts beside(std::string_view what, std::string_view lock) {
  const bool tagged = lock.find('{') != std::string_view::npos;
  return {what, tagged ? ":" : ":{", lock, tagged ? "" : "}"};
}

parts channel_parts(const lock_keys& k) { return beside("redisson_lock__channel", k.lock); }
parts token_parts(const lock_keys& k) { return beside("redisson_lock_token", k.lock); }

std::string joined(const parts& all) {
  std::string out;
  for (const auto part : all) out += part;
  return out;
}

bool differ(const key_ttl& t) { return t.if_none > t.ttl; }

}  // namespace

lock_keys::lock_keys(std::string_view n, std::string_view prefix) : name(n), lock(std::string(prefix).append(n)) {}

std::string channel_of(const lock_keys& k) { return joined(channel_parts(k)); }
std::string token_key(const lock_keys& k) { return joined(token_parts(k)); }

uuid::uuid(std::uint64_t high, std::uint64_t low) noexcept
    : high_((high & ~0xF000ULL) | 0x8000ULL),                 // version 8
      low_((low & 0x3FFF'FFFF'FFFF'FFFFULL) | 1ULL << 63) {}  // RFC 9562 variant

uuid::text uuid::to_text() const noexcept {
  static constexpr auto pairs = [] {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> all{};
    for (std::size_t byte = 0; byte < all.size(); ++byte) all[byte] = {digits[byte >> 4], digits[byte & 15]};
    return all;
  }();
  text out;
  auto* to = out.data();
  for (int byte = 0; byte < 16; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) *to++ = '-';
    const auto& pair = pairs[(byte < 8 ? high_ : low_) >> (56 - byte % 8 * 8) & 0xFF];
    to = std::copy(pair.begin(), pair.end(), to);
  }
  return out;
}

owner_field::text owner_field::to_text() const noexcept {
  text out;
  if (empty()) return out;
  const auto client = client_.to_text();
  auto* to = std::copy(client.begin(), client.end(), out.bytes_.data());
  *to++ = ':';
  to = std::to_chars(to, out.bytes_.data() + out.bytes_.size(), number_).ptr;
  out.size_ = static_cast<std::size_t>(to - out.bytes_.data());
  return out;
}

owner_fields::owner_fields(const uuid& client)
    : client_(client), text_([text = client.to_text()] { return std::string(text.data(), text.size()); }()) {}

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
  void add(const parts& word) { bytes_.add(word); }
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

script_call scripts::acquire(const lock_keys& k, milliseconds ttl, const owner_field& field) {
  static constexpr script_call::script script{lua::acquire.evalsha, lua::acquire.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, 2);
                                                to.add(o.at->lock);
                                                to.add(o.ttl.ttl);
                                                to.add(o.field->to_text());
                                              }};
  return {script, {.at = &k, .field = &field, .ttl = {ttl}}};
}

script_call scripts::acquire_fenced(const lock_keys& k, milliseconds ttl, const owner_field& field) {
  static constexpr script_call::script script{lua::acquire_fenced.evalsha, lua::acquire_fenced.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(2, 2);
                                                to.add(o.at->lock);
                                                to.add(token_parts(*o.at));
                                                to.add(o.ttl.ttl);
                                                to.add(o.field->to_text());
                                              }};
  return {script, {.at = &k, .field = &field, .ttl = {ttl}}};
}

script_call scripts::reenter(const lock_keys& k, key_ttl wanted, const owner_field& field, unsigned want) {
  static constexpr script_call::script script{lua::reenter.evalsha, lua::reenter.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, differ(o.ttl) ? 4 : 3);
                                                to.add(o.at->lock);
                                                to.add(o.ttl.ttl);
                                                to.add(o.field->to_text());
                                                to.add(std::int64_t{o.count});
                                                to.add_if_none(o.ttl);
                                              }};
  return {script, {.at = &k, .field = &field, .ttl = wanted, .count = want}};
}

void script_call::write_renewals(writer& to, std::span<const renewal> holds) {
  const bool both = std::any_of(holds.begin(), holds.end(), [](const auto& h) { return differ(h.wanted); });
  to.begin(holds.size(), (both ? 3 : 2) * holds.size());
  for (const auto& h : holds) to.add(h.lock);
  for (const auto& h : holds) to.add(h.wanted.ttl);
  for (const auto& h : holds) to.add(h.field.to_text());
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

script_call scripts::renew(const lock_keys& k, const owner_field& field, key_ttl wanted) {
  static constexpr script_call::script script{lua::renew.evalsha, lua::renew.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                const renewal one{o.at->lock, *o.field, o.ttl};
                                                script_call::write_renewals(to, {&one, 1});
                                              }};
  return {script, {.at = &k, .field = &field, .ttl = wanted}};
}

script_call scripts::release(const lock_keys& k, const owner_field& field, unsigned count, key_ttl wanted) {
  static constexpr script_call::script script{lua::release.evalsha, lua::release.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, differ(o.ttl) ? 5 : 4);
                                                to.add(o.at->lock);
                                                to.add(channel_parts(*o.at));
                                                to.add(o.field->to_text());
                                                to.add(std::int64_t{o.count});
                                                to.add(o.ttl.ttl);
                                                to.add_if_none(o.ttl);
                                              }};
  return {script, {.at = &k, .field = &field, .ttl = wanted, .count = count}};
}

script_call scripts::force_release(const lock_keys& k) {
  static constexpr script_call::script script{lua::force_release.evalsha, lua::force_release.body,
                                              [](script_call::writer& to, const script_call::operands& o) {
                                                to.begin(1, 1);
                                                to.add(o.at->lock);
                                                to.add(channel_parts(*o.at));
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

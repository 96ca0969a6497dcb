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

/// Without the last one, if_none, where the script's default will do.
std::span<const std::string_view> without_default(std::span<const std::string_view> args, const key_ttl& t) {
  return args.first(args.size() - (differ(t) ? 0 : 1));
}

void begin(std::string& out, std::size_t words, std::string_view verb, std::string_view script) {
  redis::append_head(out, words);
  redis::append_argument(out, verb);
  redis::append_argument(out, script);
}

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

script_call::script_call(text script, std::span<const std::string_view> keys, std::span<const std::string_view> args)
    : body_(script.body), key_size_(keys.front().size()), words_(3 + keys.size() + args.size()) {
  std::size_t bytes = 96;
  for (const auto k : keys) bytes += k.size() + 16;
  for (const auto a : args) bytes += a.size() + 16;
  by_digest_.reserve(bytes);
  begin(by_digest_, words_, "EVALSHA", script.sha1);
  tail_at_ = by_digest_.size();
  redis::append_argument(by_digest_, decimal(keys.size()));
  key_at_ = by_digest_.size() + 3 + std::string_view(decimal(key_size_)).size();  // behind "$<size>\r\n"
  for (const auto k : keys) redis::append_argument(by_digest_, k);
  for (const auto a : args) redis::append_argument(by_digest_, a);
}

std::string script_call::by_text() const {
  std::string out;
  out.reserve(by_digest_.size() + body_.size());
  begin(out, words_, "EVAL", body_);
  return out += std::string_view(by_digest_).substr(tail_at_);
}

script_call scripts::acquire(const lock_keys& k, milliseconds ttl, std::string_view field) {
  const decimal ms(ttl.count());
  const std::array<std::string_view, 1> keys{k.lock};
  const std::array<std::string_view, 2> args{ms, field};
  return {{lua::acquire.sha1, lua::acquire.body}, keys, args};
}

script_call scripts::acquire_fenced(const lock_keys& k, milliseconds ttl, std::string_view field) {
  const decimal ms(ttl.count());
  const auto token = token_key(k);
  const std::array<std::string_view, 2> keys{k.lock, token};
  const std::array<std::string_view, 2> args{ms, field};
  return {{lua::acquire_fenced.sha1, lua::acquire_fenced.body}, keys, args};
}

script_call scripts::reenter(const lock_keys& k, key_ttl wanted, std::string_view field, unsigned want) {
  const decimal ttl(wanted.ttl.count()), count(want), if_none(wanted.if_none.count());
  const std::array<std::string_view, 1> keys{k.lock};
  const std::array<std::string_view, 4> args{ttl, field, count, if_none};
  return {{lua::reenter.sha1, lua::reenter.body}, keys, without_default(args, wanted)};
}

script_call scripts::renew(std::span<const renewal> holds) {
  std::vector<std::string_view> keys, args;
  std::vector<decimal> numbers;
  keys.reserve(holds.size());
  numbers.reserve(2 * holds.size());
  args.reserve(3 * holds.size());
  for (const auto& h : holds) {
    keys.push_back(h.lock);
    args.push_back(numbers.emplace_back(h.wanted.ttl.count()));
  }
  for (const auto& h : holds) args.push_back(h.field);
  if (std::any_of(holds.begin(), holds.end(), [](const auto& h) { return differ(h.wanted); }))
    for (const auto& h : holds) args.push_back(numbers.emplace_back(h.wanted.if_none.count()));
  return {{lua::renew.sha1, lua::renew.body}, keys, args};
}

script_call scripts::release(const lock_keys& k, std::string_view field, unsigned count, key_ttl wanted) {
  const decimal left(count), ttl(wanted.ttl.count()), if_none(wanted.if_none.count());
  const std::array<std::string_view, 1> keys{k.lock};
  const std::array<std::string_view, 5> args{k.channel, field, left, ttl, if_none};
  return {{lua::release.sha1, lua::release.body}, keys, without_default(args, wanted)};
}

script_call scripts::force_release(const lock_keys& k) {
  const std::array<std::string_view, 1> keys{k.lock}, args{k.channel};
  return {{lua::force_release.sha1, lua::force_release.body}, keys, args};
}

script_call scripts::holder(const lock_keys& k) {
  const std::array<std::string_view, 1> keys{k.lock};
  return {{lua::holder.sha1, lua::holder.body}, keys, {}};
}

}  // namespace holdfast::detail

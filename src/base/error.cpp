// SPDX-License-Identifier: BSL-1.0
#include <holdfast/error.hpp>

namespace holdfast {
namespace {

const char* meaning(errc code) noexcept {
  switch (code) {
    case errc::lost: return "the lock was lost";
    case errc::not_held: return "the lease holds nothing";
    case errc::closed: return "the client is closed";
    case errc::corrupt_lock: return "the key is not a usable lock";
    case errc::invalid_name: return "invalid name";
    case errc::invalid_ttl: return "invalid TTL";
    case errc::invalid_wait: return "invalid wait";
    case errc::invalid_config: return "invalid configuration";
    case errc::unreachable: return "no answer from Redis";
    case errc::unconfirmed: return "not confirmed by Redis";
    case errc::auth_failed: return "authentication failed";
    case errc::no_permission: return "permission denied by Redis";
    case errc::not_primary: return "the server is not a primary";
    case errc::server_refused: return "refused by Redis";
    case errc::quorum_failed: return "no quorum";
    case errc::protocol_error: return "protocol error";
    case errc::too_many_reentries: return "too many re-entries";
    case errc::tls_failed: return "TLS failed";
    case errc::overloaded: return "too many pending commands";
    case errc::already_held: return "already held by this owner";
    case errc::not_replicated: return "not replicated";
    case errc::shutting_down: return "the client shuts down";
    case errc::invalid_argument: return "invalid argument";
  }
  return "unknown error";
}

constexpr unsigned only(condition condition) noexcept { return 1U << static_cast<unsigned>(condition); }

unsigned conditions_of(errc code) noexcept {
  switch (code) {
    case errc::lost: return only(condition::no_longer_held);
    case errc::not_held: return only(condition::misuse);
    case errc::closed: return only(condition::no_longer_held);
    case errc::corrupt_lock: return only(condition::no_longer_held) | only(condition::setup);
    case errc::invalid_name: return only(condition::misuse);
    case errc::invalid_ttl: return only(condition::misuse);
    case errc::invalid_wait: return only(condition::misuse);
    case errc::invalid_config: return only(condition::setup);
    case errc::unreachable: return only(condition::retry_later);
    case errc::unconfirmed: return 0;
    case errc::auth_failed: return only(condition::setup);
    case errc::no_permission: return only(condition::setup);
    case errc::not_primary: return only(condition::setup);
    case errc::server_refused: return only(condition::retry_later);
    case errc::quorum_failed: return only(condition::retry_later);
    case errc::protocol_error: return only(condition::setup);
    case errc::too_many_reentries: return only(condition::misuse);
    case errc::tls_failed: return only(condition::setup);
    case errc::overloaded: return only(condition::retry_later);
    case errc::already_held: return only(condition::misuse);
    case errc::not_replicated: return only(condition::retry_later);
    case errc::shutting_down: return only(condition::retry_later);
    case errc::invalid_argument: return only(condition::misuse);
  }
  return 0;
}

const char* meaning(condition condition) noexcept {
  switch (condition) {
    case condition::retry_later: return "retry later";
    case condition::no_longer_held: return "no longer held";
    case condition::misuse: return "misuse";
    case condition::setup: return "set-up";
  }
  return "unknown condition";
}

class holdfast_category final : public boost::system::error_category {
 public:
  constexpr holdfast_category() noexcept
      : error_category(0x686f'6c64'6661'7374) {}  // an id: equal across shared objects
  const char* name() const noexcept override { return "holdfast"; }
  std::string message(int code) const override { return meaning(static_cast<errc>(code)); }
  const char* message(int code, char*, std::size_t) const noexcept override { return meaning(static_cast<errc>(code)); }
};

class condition_category final : public boost::system::error_category {
 public:
  constexpr condition_category() noexcept : error_category(0x686f'6c64'636f'6e64) {}
  const char* name() const noexcept override { return "holdfast condition"; }
  std::string message(int code) const override { return meaning(static_cast<condition>(code)); }
  bool equivalent(const error_code& code, int value) const noexcept override {
    if (code.category() != category()) return false;
    return (conditions_of(static_cast<errc>(code.value())) & only(static_cast<condition>(value))) != 0;
  }
};

std::string text(const error_code& code, const std::string& detail) {
  return detail.empty() ? code.message() : code.message() + ": " + detail;
}

}  // namespace

const boost::system::error_category& category() noexcept {
  static const holdfast_category instance;
  return instance;
}

error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), category()}; }

boost::system::error_condition make_error_condition(condition condition) noexcept {
  static const condition_category instance;
  return {static_cast<int>(condition), instance};
}

error::error(error_code code, const std::string& detail) : system_error(code) {
  // The base would put the detail first and the category's name and number behind it.
  static_cast<std::runtime_error&>(*this) = std::runtime_error(text(code, detail));
}

error::~error() = default;

}  // namespace holdfast

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
  }
  return "unknown error";
}

class holdfast_category final : public boost::system::error_category {
 public:
  constexpr holdfast_category() noexcept
      : error_category(0x686f'6c64'6661'7374) {}  // an id: equal across shared objects
  const char* name() const noexcept override { return "holdfast"; }
  std::string message(int code) const override { return meaning(static_cast<errc>(code)); }
  const char* message(int code, char*, std::size_t) const noexcept override { return meaning(static_cast<errc>(code)); }
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

error::error(error_code code, const std::string& detail) : system_error(code) {
  // The base would put the detail first and the category's name and number behind it.
  static_cast<std::runtime_error&>(*this) = std::runtime_error(text(code, detail));
}

error::~error() = default;

}  // namespace holdfast

// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <span>
#include <vector>

#include "protocol/operands.hpp"
#include "protocol/vote_of.hpp"

/// Steps that differ from kind to kind by their script alone. `Script`: of lua_scripts.hpp.
namespace holdfast::detail::script_steps {

template <const auto& Script>
call acquire(const lock_keys& keys, milliseconds ttl, const owner_field& field) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::acquire, vote_of::acquire,
                                     call::effect::takes};
  return {form, {.at = &keys, .field = &field, .ttl = {ttl}}};
}

template <const auto& Script>
call acquire_any(const std::vector<shared_keys>& of, milliseconds ttl, const owner_field& field) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::acquire_any};
  return {form, {.field = &field, .ttl = {ttl}, .several = &of}};
}

template <const auto& Script>
call acquire_all(const std::vector<shared_keys>& of, milliseconds ttl, std::span<const owner_field> fields) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::acquire_all};
  return {form, {.field = fields.data(), .ttl = {ttl}, .several = &of}};
}

template <const auto& Script>
call renew(std::span<const renewal> holds) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::renewals, nullptr, call::effect::writes};
  return {form, {.holds = holds}};
}

template <const auto& Script>
call renew_one(const lock_keys& keys, key_ttl wanted, const owner_field& field) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::renewal_of_one, vote_of::sole_renewal,
                                     call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = wanted}};
}

template <const auto& Script>
call set_hold_count(const lock_keys& keys, key_ttl wanted, const owner_field& field, unsigned count) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::set_hold_count, vote_of::flag,
                                     call::effect::writes};
  return {form, {.at = &keys, .field = &field, .ttl = wanted, .count = count}};
}

template <const auto& Script>
call release(const lock_keys& keys, const owner_field& field) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::release, vote_of::release,
                                     call::effect::writes};
  return {form, {.at = &keys, .field = &field}};
}

template <const auto& Script>
call force_release(const lock_keys& keys) {
  static constexpr call::recipe form{Script.evalsha, Script.body, operands::force_release, vote_of::force_release};
  return {form, {.at = &keys}};
}

template <const auto& Script>
call holder(const lock_keys& keys) {
  static constexpr call::recipe form{Script.evalsha,     Script.body,        operands::key,
                                     vote_of::something, call::effect::asks, vote_of::settles_holder};
  return {form, {.at = &keys}};
}

}  // namespace holdfast::detail::script_steps

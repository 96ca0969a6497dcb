// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <string>
#include <vector>

namespace holdfast::test {

/// Tests under the rule that `holdfast acl` prints. HOLDFAST_TEST_ACL is the path of that program. The default user of
/// each server then has that rule alone, so no client of a test escapes it. The rig logs in as another user, who may do
/// everything. HOLDFAST_TEST_ACL_WITHOUT takes one word of the rule away: `+hset`, or `sentinel:+ping` of
/// the sentinels' rule.
///
/// At its end a server prints each command that it refused to the default user: some are missed by nobody else.
namespace least_rights {

constexpr auto rig_user = "rig", rig_password = "rig";

bool in_force();
/// Skips a test that sends other commands than the library does.
void skip_if_in_force(const std::string& reason);
/// The directives of redis.conf for both users, each without the word `user`. `url`: of a service with this server;
/// `password`: of the default user, empty: none.
std::vector<std::vector<std::string>> users(const std::string& url, bool of_sentinel, const std::string& server_version,
                                            const std::string& password);

}  // namespace least_rights

}  // namespace holdfast::test

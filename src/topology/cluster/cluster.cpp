// SPDX-License-Identifier: BSL-1.0
#include "topology/cluster/cluster.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.hpp"
#include "redis/tls.hpp"
#include "topology/failover_time.hpp"

namespace holdfast::detail {
namespace {

constexpr auto map_is_old = std::chrono::seconds(60);
constexpr auto between_tellings = std::chrono::seconds(1);
// A map in which every slot stands alone is 1.4 MB.
constexpr redis::reader_limits for_maps{.elements = 20'000, .depth = 8, .bytes = 8 * 1024 * 1024};

cluster::plan checked(cluster::plan plan) {
  HOLDFAST_ASSERT(!plan.seeds.empty() && !plan.ways.empty());
  if (plan.discovered.use_tls) redis::check(plan.discovered.tls);
  plan.discovered.expected = redis::server_mode::cluster;
  plan.discovered.limits = for_maps;
  return plan;
}

redis::endpoint for_questions(redis::endpoint endpoint) {
  endpoint.any_role = true;
  return endpoint;
}

}  // namespace

cluster::cluster(const redis::io_services& services, plan plan, redis::connection::event_sink events)
    : services_(services), plan_(checked(std::move(plan))), events_(std::move(events)),
      nodes_(services, plan_.discovered, plan_.answer_timeout, plan_.ways, events_),
      commands_(services, plan_.discovered, plan_.reach, map_, nodes_,
                {.ask_map = [this] { refresh_.ask(); },
                 .slot_moved =
                     [this](const redirect& to) {
                       if (map_.moved(to.slot, to.to)) map_changed(1, to.slot);
                     },
                 .no_owner = [this](slot_number slot) { return no_owner(slot); },
                 .node_used =
                     [this](node_id number, const node& used) {
                       if (watch_) used.commands->keep_watch(map_.owns_any(number));
                     },
                 .first_sent = [this](const node& first) { ask_node_timeout(first); }}),
      channels_(std::make_shared<shard_channels>(
          services,
          shard_channels::environment{
              .owner = [this](std::string_view channel) { return map_.owner(slot_of(channel)); },
              .subscribe =
                  [this](node_id id, const shard_channels::way& by, std::string_view channel, subscriber& subscriber) {
                    const auto found = std::find(plan_.ways.begin(), plan_.ways.end(), by) - plan_.ways.begin();
                    const auto& hubs = nodes_.enter(id, map_.address_of(id)).channels;
                    return hubs.at(static_cast<std::size_t>(found))->subscribe(channel, subscriber);
                  }},
          plan_.ways)),
      refresh_(services, for_questions(plan_.discovered), plan_.reach, plan_.answer_timeout,
               [this](const redis::address& node, const event& event) { seed_lost(node, event); },
               {.candidates = [this](std::size_t round) { return candidates(round); },
                .take = [this](const slot_view& view, const redis::address& by) { return take(view, by); },
                .failed = [this](const redis::failure& why) { nobody_knows(why); },
                .over =
                    [this] {
                      drop_unused();
                      return map_needed();
                    }}),
      report_pause_(services.alarms) {
  nodes_.on_outage([this](node_id lost) {
    refresh_.ask();
    commands_.node_lost(lost);
  });
  nodes_.on_channel_moved(
      [this](node_id from, std::string_view channel, std::string_view words) { channel_moved(from, channel, words); });
}

void cluster::close() {
  if (std::exchange(closed_, true)) return;
  refresh_.close();
  report_pause_.stop();
  nodes_.close();
  channels_->close();
  commands_.close();
}

redis::ticket cluster::execute(std::string_view key, redis::request asked) {
  if (closed_) return 0;
  if (refresh_.quiet_since(services_.now() - map_is_old)) refresh_.ask();
  return commands_.execute(slot_of(key), std::move(asked));
}

bool cluster::withdraw(redis::ticket ticket) { return !closed_ && commands_.withdraw(ticket); }

// --- nodes

// Not during a round: its questions use connections of the nodes.
void cluster::drop_unused() {
  if (refresh_.under_way()) return;
  nodes_.drop([this](node_id number, const node& node) {
    return !map_.owns_any(number) && node.under_way == 0 && node.replicas->idle() && !channels_->any_at(number);
  });
}

// The first node in use stands for all: they are configured alike.
void cluster::ask_node_timeout(const node& node) {
  const auto notify = [this](std::chrono::milliseconds node_timeout) {
    const auto text = shorter_than(cluster_failover, node_timeout, plan_.ttl);
    if (!text || !events_) return;
    event event{event_kind::ttl_shorter_than_failover, {}};
    event.detail = *text;
    events_(event);
  };
  node.commands->execute({std::make_shared<node_timeout_question>(notify), {.timeout = plan_.answer_timeout}});
}

std::uint64_t cluster::server_of(std::string_view key) const {
  const auto* node = nodes_.find(node_of(key));
  return node ? node->commands->server_number() : 0;
}

bool cluster::answering(std::string_view key) {
  const auto* node = nodes_.find(node_of(key));
  return node && node->commands->answering();
}

bool cluster::answered_since(std::string_view key, time_point when) {
  const auto* node = nodes_.find(node_of(key));
  return node && node->commands->answered_since(when);
}

redis::failure cluster::trouble(std::string_view key) const {
  if (const auto* node = nodes_.find(node_of(key))) return node->commands->trouble();
  return no_owner(slot_of(key));
}

redis::failure cluster::no_owner(slot_number slot) const {
  if (why_no_map_) return *why_no_map_;
  return {errc::unreachable, where_is(slot) + ": slot " + std::to_string(slot) + " has no primary that is known yet"};
}

bool cluster::in_outage(std::string_view key) const {
  const auto* node = nodes_.find(node_of(key));
  return node ? node->commands->in_outage() : why_no_map_.has_value();
}

std::string cluster::where(std::string_view key) const { return where_is(slot_of(key)); }

std::string cluster::where_is(slot_number slot) const {
  const auto owner = map_.owner(slot);
  return plan_.discovered.with(owner == slot_map::nobody ? plan_.seeds.front() : map_.address_of(owner)).to_string();
}

std::vector<std::string> cluster::name_on_each_primary(std::string_view stem) const {
  std::map<node_id, std::string> found;
  const auto primaries = map_.primaries().size();
  // Most primaries are met soon. One with a single slot of 16384 takes about as many tries, and is not worth more.
  for (unsigned n = 0; found.size() < primaries && n < 2u * slot_count; ++n) {
    auto name = std::string(stem) + ':' + std::to_string(n);
    if (const auto owner = node_of(name); owner != slot_map::nobody) found.try_emplace(owner, std::move(name));
  }
  std::vector<std::string> names;
  for (auto& [id, name] : found) names.push_back(std::move(name));
  if (names.empty()) names.emplace_back(stem);
  return names;
}

// The node that a slot is moving to grants locks already. If that node has granted this one, its replicas count; those
// of the slot's owner know nothing of it.
void cluster::replicated(std::string_view key, const replica_demand& wanted, replicas_handler done) {
  const auto* node = nodes_.find(node_of(key));
  if (const auto moving = commands_.moving_to(slot_of(key))) {
    const auto* there = nodes_.find(*moving);
    if (there && there->commands->server_number() == wanted.server) node = there;
  }
  if (!node) return done(redis::failure{errc::unreachable, "nobody has the slot"}, 0);
  node->replicas->ask(key, wanted, std::move(done));
}

subscription cluster::subscribe(std::string_view channel, subscriber& subscriber) {
  if (closed_) return nullptr;
  if (map_.owner(slot_of(channel)) == slot_map::nobody) refresh_.ask();
  return channels_->subscribe(channel, subscriber);
}

void cluster::start_pushing(std::string_view key) {
  if (closed_) return;
  const auto owner = node_of(key);
  if (owner == slot_map::nobody) return refresh_.ask();
  nodes_.enter(owner, map_.address_of(owner)).pushes->start();
}

void cluster::stop_pushing() { nodes_.stop_pushing(); }

bool cluster::pushes(std::string_view key) const {
  const auto* node = nodes_.find(node_of(key));
  return node && node->pushes->pushing();
}

// A caller that takes one lock after the other switches it with each lock. Nodes without any of them are left alone.
void cluster::keep_watch(bool on) {
  watch_ = on;
  if (!on) nodes_.rest();
  watch_nodes();
}

void cluster::watch_nodes() {
  nodes_.keep_watch([this](node_id number, const node&) { return watch_ && map_.owns_any(number); });
}

// --- the map

// Nodes that do not answer now take turns at the front of the others. A node that has left the cluster, with an old
// map, must not be the first each time.
std::vector<slot_map_refresh::candidate> cluster::candidates(std::size_t round) {
  std::vector<slot_map_refresh::candidate> all;
  auto known = nodes_.answering();
  if (!known.empty()) std::swap(known.front(), known[services_.random.next() % known.size()]);
  for (const auto* node : known) all.push_back({node->commands, node->at});
  std::vector<redis::address> others;
  for (const auto id : map_.primaries()) others.push_back(map_.address_of(id));
  others.insert(others.end(), plan_.seeds.begin(), plan_.seeds.end());
  const auto first = static_cast<std::ptrdiff_t>(round % others.size());
  std::rotate(others.begin(), others.begin() + first, others.end());
  for (auto& at : others)
    if (std::none_of(all.begin(), all.end(), [&](const auto& known_already) { return known_already.at == at; }))
      all.push_back({nullptr, at});
  return all;
}

// A node that has left its cluster, or has not joined it yet, knows few slots or none.
slot_map_refresh::verdict cluster::take(const slot_view& view, const redis::address& source) {
  using verdict = slot_map_refresh::verdict;
  const auto before = map_.covered();
  const auto changed = map_.replace(view, source);
  if (!changed) return verdict::refused;
  why_no_map_.reset();
  const auto had_none = map_.covered() - std::min(before, map_.covered());
  if (*changed != 0) map_changed(*changed - had_none);
  return map_.covered() < slot_count && owner_wanted() ? verdict::too_little : verdict::enough;
}

// Reports the outage once, and not in each round.
void cluster::seed_lost(const redis::address& node, const event& event) {
  const bool notified =
      nodes_.any([&](node_id, const auto& other) { return other.at == node && other.commands->is_down(); });
  if (events_ && !why_no_map_ && !notified) events_(event);
}

void cluster::map_changed(std::size_t moved, std::optional<slot_number> only) {
  commands_.forget_moves();
  if (watch_) nodes_.all_in_use();
  watch_nodes();
  channels_->map_changed();
  commands_.map_changed();
  if (closed_) return;
  drop_unused();
  if (moved != 0) report_moved(moved);
  if (!closed_ && keys_moved_) keys_moved_(only);
}

// A node reports this when the slot has left, or is about to leave; its words may name the new owner. The channel is
// notified first, because it counts how often it was sent away. Two nodes that name each other must not be asked
// without a pause.
void cluster::channel_moved(node_id from, std::string_view channel, std::string_view words) {
  const auto to = read_redirect(words, nodes_.at(from).at, plan_.reach);
  refresh_.ask();
  const bool news = to && to->type == redirect::kind::moved && map_.moved(to->slot, to->to);
  channels_->moved(from, channel);
  if (news) map_changed(1, to->slot);
}

void cluster::nobody_knows(const redis::failure& why) {
  why_no_map_ = why;
  if (!why.is_answer()) return;
  commands_.answer_homeless(why);
  if (closed_) return;
  if (!why.mends_itself()) channels_->tell_homeless(why);
}

// A command or a channel waits for the owner of its slot.
bool cluster::owner_wanted() const { return commands_.owner_wanted() || channels_->any_homeless(); }

bool cluster::map_needed() const {
  if (closed_) return false;
  if (owner_wanted()) return true;
  return nodes_.any([this](node_id number, const node& node) {
    return node.commands->is_down() &&
           (watch_ || node.under_way != 0 || node.pushes->started() || channels_->any_at(number));
  });
}

void cluster::report_moved(std::size_t moved) {
  unreported_moves_ += moved;
  if (unreported_moves_ == 0 || report_pause_.due()) return;
  event event{event_kind::slots_moved, {}};
  event.count = std::exchange(unreported_moves_, 0);
  const auto text =
      std::to_string(event.count) + (event.count == 1 ? " slot has" : " slots have") + " another primary than before";
  event.detail = text;
  report_pause_.start(services_.now() + between_tellings, [this] { report_moved(0); });
  if (events_) events_(event);
}

}  // namespace holdfast::detail

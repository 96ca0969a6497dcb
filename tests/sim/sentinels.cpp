// SPDX-License-Identifier: BSL-1.0
#include "sim/sentinels.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

std::string ms_of(nanoseconds d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

reply list_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  reply all{reply::kind::array, 0, {}, {}};
  for (const auto& [name, value] : pairs) {
    all.elements.push_back(string_reply(name));
    all.elements.push_back(string_reply(value));
  }
  return all;
}

}  // namespace

sentinels::sentinels(scheduler& plan, std::deque<server>& all, replication& data, detail::random_source& random,
                     trace& log, times t)
    : plan_(plan), all_(all), data_(data), random_(random), log_(log), times_(t) {
  for (std::size_t i = 0; i < how_many; ++i)
    machine(i).program().watch_over(watched, [this, i](const arguments& a) { return answer(i, a); });
  for (member m = 1; m < servers(); ++m) data_.follow(m, 0);
}

reply sentinels::answer(std::size_t which, const arguments& a) const {
  const auto verb = lower(a[1]);
  const auto& at = all_[views_[which].primary].at();
  if (verb == "get-master-addr-by-name")
    return {reply::kind::array, 0, {}, {string_reply(at.host), string_reply(std::to_string(at.port))}};
  if (verb == "master") return description(which);
  reply others{reply::kind::array, 0, {}, {}};
  for (std::size_t i = 0; i < how_many; ++i) {
    if (i == which) continue;
    const auto& other = machine(i);
    others.elements.push_back(list_of({{"name", other.name()},
                                       {"ip", other.at().host},
                                       {"port", std::to_string(other.at().port)},
                                       {"runid", other.name()},
                                       {"flags", works(i) ? "sentinel" : "s_down,sentinel"}}));
  }
  return others;
}

reply sentinels::description(std::size_t which) const {
  const auto& sees = views_[which];
  const auto& at = all_[sees.primary].at();
  const bool down = sees.primary == primary_ && missed_since_ && plan_.now() >= *missed_since_ + times_.down_after;
  return list_of({{"name", watched},
                  {"ip", at.host},
                  {"port", std::to_string(at.port)},
                  {"runid", ""},
                  {"flags", down ? "s_down,o_down,master" : "master"},
                  {"link-pending-commands", "0"},
                  {"link-refcount", "1"},
                  {"last-ping-sent", "0"},
                  {"last-ok-ping-reply", "177"},
                  {"last-ping-reply", "177"},
                  {"down-after-milliseconds", ms_of(times_.down_after)},
                  {"info-refresh", "2249"},
                  {"role-reported", "master"},
                  {"role-reported-time", "2370"},
                  {"config-epoch", std::to_string(sees.epoch)},
                  {"num-slaves", std::to_string(servers() - 1)},
                  {"num-other-sentinels", std::to_string(how_many - 1)},
                  {"quorum", "2"},
                  {"failover-timeout", "6000"},
                  {"parallel-syncs", "1"}});
}

std::size_t sentinels::working() const {
  std::size_t n = 0;
  for (std::size_t i = 0; i < how_many; ++i) n += works(i);
  return n;
}

bool sentinels::settled() const {
  if (failing_over_ || working() <= how_many / 2 || !reached(primary_)) return false;
  for (std::size_t i = 0; i < how_many; ++i)
    if (works(i) && views_[i].epoch != epoch_) return false;
  return true;
}

void sentinels::look() {
  check_primary();
  spread(true);
  bring_in_line();
}

void sentinels::check_primary() {
  if (reached(primary_)) return missed_since_.reset();
  if (missed_since_) return;
  const auto since = missed_since_.emplace(plan_.now());
  // Until it can be done, it is tried again.
  const auto act = [this, since](auto again) -> void {
    if (missed_since_ != since || failing_over_ || fail_over()) return;
    plan_.after(1s, [again] { again(again); });
  };
  plan_.at(since + times_.down_after + random_.up_to(times_.down_after / 5), [act] { act(act); });
}

std::optional<sentinels::member> sentinels::candidate() const {
  std::optional<member> best;
  for (const auto m : data_.replicas_of(primary_)) {
    if (!reached(m)) continue;
    if (!best || all_[m].program().is_ahead_of(all_[*best].program())) best = m;
  }
  return best;
}

bool sentinels::fail_over() {
  if (failing_over_ || working() <= how_many / 2 || !candidate()) return false;
  failing_over_ = true;
  plan_.after(5ms + random_.up_to(times_.slowest_word / 4), [this] { promote(); });
  return true;
}

void sentinels::promote() {
  const auto chosen = candidate();
  failing_over_ = false;
  missed_since_.reset();
  if (!chosen || working() <= how_many / 2) return look();
  const auto old = std::exchange(primary_, *chosen);
  ++epoch_;
  log_.note(plan_.now(), all_[primary_].name(), "promoted");
  old_.push_back({old});
  on_promotion(old, primary_);
  const auto others = data_.replicas_of(old);
  data_.lead(primary_);
  all_[primary_].cut_clients();
  for (const auto m : others)
    if (m != primary_) old_.push_back({m});  // it, too, is told whom to follow from now on
  look();
}

// One of them leads, and knows first; it tells its subscribers last.
void sentinels::spread(bool with_leader) {
  for (std::size_t i = 0; i < how_many; ++i) {
    auto& v = views_[i];
    if (v.epoch == epoch_ || v.learns || !works(i)) continue;
    v.learns = true;
    const bool leads = std::exchange(with_leader, false) && random_.next() % 2 == 0;
    const auto delay = leads ? times_.slowest_word / 20 : 1ms + random_.up_to(times_.slowest_word);
    plan_.after(delay, [this, i] { learn(i); });
  }
}

void sentinels::learn(std::size_t which) {
  auto& v = views_[which];
  v.learns = false;
  if (!works(which) || v.epoch == epoch_) return;
  const auto& from = all_[v.primary].at();
  const auto& to = all_[primary_].at();
  v.epoch = epoch_;
  v.primary = primary_;
  const auto text = std::string(watched) + ' ' + from.host + ' ' + std::to_string(from.port) + ' ' + to.host + ' ' +
                    std::to_string(to.port);
  plan_.after(random_.up_to(times_.slowest_word / 4), [this, which, text] {
    if (!machine(which).running()) return;
    log_.note(plan_.now(), machine(which).name(), "+switch-master", text);
    machine(which).program().announce("+switch-master", text);
  });
}

void sentinels::bring_in_line() {
  for (auto& each : old_) {
    if (each.leaves || !reached(each.who)) continue;
    each.leaves = true;
    const bool leads = !data_.primary_of(each.who);
    const auto delay = 1ms + random_.up_to(leads ? times_.longest_farewell : times_.slowest_word);
    plan_.after(delay, [this, who = each.who] {
      const auto found = std::find_if(old_.begin(), old_.end(), [&](const auto& o) { return o.who == who; });
      if (found == old_.end()) return;
      found->leaves = false;
      if (!reached(who) || working() == 0) return;
      old_.erase(found);
      if (who == primary_) return;
      log_.note(plan_.now(), all_[who].name(), "reconfigured", "to follow " + all_[primary_].name());
      all_[who].cut_clients();
      data_.follow(who, primary_);
    });
  }
}

}  // namespace holdfast::sim

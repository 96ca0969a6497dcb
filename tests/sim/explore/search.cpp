// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/search.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/explore/state_graph.hpp"

namespace holdfast::sim::explore {
namespace {

using sleepers = std::vector<option>;

bool is_among(const sleepers& all, const option& one) {
  return std::ranges::any_of(all, [&](const auto& each) { return each.label == one.label; });
}

/// The part of each bound that one path has spent.
struct expenses {
  std::size_t acts = 0, delays = 0, faults = 0;

  void add(option_kind kind) {
    acts += kind == option_kind::act;
    delays += kind == option_kind::delay;
    faults += kind == option_kind::fault;
  }
  bool can_add(option_kind kind, const search_bounds& within) const {
    switch (kind) {
      case option_kind::step: break;
      case option_kind::act: return acts < within.acts;
      case option_kind::delay: return delays < within.delays;
      case option_kind::fault: return faults < within.faults;
    }
    return true;
  }
  auto operator<=>(const expenses&) const = default;
};

/// A point of choice of the path that is searched.
struct choice {
  std::vector<option> options;
  sleepers asleep;
  std::vector<std::size_t> open;  // options to take, one after the other
  std::size_t turn = 0;
  expenses spent;
  std::uint64_t state = 0;

  std::size_t taken() const { return open[turn]; }
  const option& taken_option() const { return options[taken()]; }
};

/// The search from one state.
struct visit {
  sleepers asleep;
  std::size_t depth;
};

class searcher final : public chooser {
 public:
  searcher(const world& lives, const search_bounds& within)
      : lives_(lives), within_(within), reduces_(within.reduces && !within.judges_liveness) {}

  search_result run() {
    do {
      if (done_.paths + done_.cut == within_.paths) {
        done_.exhausted = false;
        break;
      }
      live_one();
    } while (!is_enough() && advance());
    if (within_.judges_liveness && !is_enough()) judge_liveness();
    return std::move(done_);
  }

  std::optional<std::size_t> choose(const std::vector<option>& options, std::optional<std::uint64_t> state) override {
    if (depth_ < path_.size()) return repeat(options);
    if (depth_ >= within_.depth) return 0;
    open(options, state);
    if (path_.back().open.empty()) {
      cut_ = true;
      return std::nullopt;
    }
    ++depth_;
    return path_.back().taken();
  }

 private:
  void live_one() {
    depth_ = 0;
    cut_ = false;
    const auto end = lives_(*this);
    if (depth_ < path_.size() && !cut_) throw std::logic_error("the world ended earlier than before");
    done_.deepest = std::max(done_.deepest, path_.size());
    ++(cut_ ? done_.cut : done_.paths);
    if (cut_)
      path_.pop_back();
    else if (within_.judges_liveness)
      end_at_last_state(end);
    if (!end.violation.empty()) found(path_.size(), end.violation);
  }

  void end_at_last_state(const path_end& end) {
    if (!path_.empty())
      graph_.add_end(path_.back().state, end.all_served);
    else if (!end.all_served)
      found(0, "a waiter is left, and there is no choice");
  }

  std::size_t repeat(const std::vector<option>& options) {
    const auto& known = path_[depth_++];
    const auto is_same = [](const option& one, const option& other) { return one.label == other.label; };
    if (!std::ranges::equal(known.options, options, is_same))
      throw std::logic_error("the world is not the same again after " + to_text(taken(depth_ - 1)));
    return known.taken();
  }

  void open(const std::vector<option>& options, std::optional<std::uint64_t> state) {
    choice made{.options = options, .asleep = {}, .open = {}, .spent = {}};
    if (!path_.empty()) {
      const auto& before = path_.back();
      made.spent = before.spent;
      made.spent.add(before.taken_option().kind);
      std::ranges::copy_if(before.asleep, std::back_inserter(made.asleep),
                           [&](const auto& each) { return independent(each, before.taken_option()); });
    }
    for (std::size_t index = 0; index < options.size(); ++index)
      if (made.spent.can_add(options[index].kind, within_) && !is_among(made.asleep, options[index]))
        made.open.push_back(index);
    if (!state || !was_visited(made, *state)) ++done_.states;
    if (within_.judges_liveness) {
      const auto& [acts, delays, faults] = made.spent;
      made.state = graph_.state_at(taken(path_.size()), state, {acts, delays, faults});
      if (!path_.empty()) graph_.add_step(path_.back().state, made.state);
    }
    path_.push_back(std::move(made));
  }

  // From a state that was visited before, those options are left that slept then and do not now.
  bool was_visited(choice& made, std::uint64_t state) {
    const auto [known, is_new] =
        visits_.try_emplace({state, made.spent}, visit{.asleep = made.asleep, .depth = path_.size()});
    if (is_new) return false;
    auto& before = known->second;
    const bool was_deeper = within_.depth != search_bounds::none && path_.size() < before.depth;
    if (was_deeper) {
      before = {.asleep = made.asleep, .depth = path_.size()};
      return true;
    }
    std::erase_if(made.open, [&](std::size_t index) { return !is_among(before.asleep, made.options[index]); });
    std::erase_if(before.asleep, [&](const auto& each) { return !is_among(made.asleep, each); });
    made.asleep = before.asleep;
    return true;
  }

  /// Goes to the next path. False: there is none.
  bool advance() {
    while (!path_.empty()) {
      auto& last = path_.back();
      if (reduces_) last.asleep.push_back(last.taken_option());
      if (++last.turn < last.open.size()) return true;
      path_.pop_back();
    }
    return false;
  }

  plan taken(std::size_t length) const {
    plan made;
    for (std::size_t at = 0; at < length; ++at) made.push_back(path_[at].taken());
    return made;
  }

  void found(std::size_t length, std::string violation) {
    done_.found.push_back({taken(length), std::move(violation)});
    if (is_enough()) done_.exhausted = false;
  }
  bool is_enough() const { return done_.found.size() >= within_.counter_examples; }

  void judge_liveness() {
    if (auto stuck = graph_.stuck()) done_.found.push_back({std::move(*stuck), "no continuation lets every waiter in"});
  }

  const world& lives_;
  const search_bounds& within_;
  const bool reduces_;
  std::vector<choice> path_;
  std::map<std::pair<std::uint64_t, expenses>, visit> visits_;
  state_graph graph_;
  search_result done_;
  std::size_t depth_ = 0;
  bool cut_ = false;
};

class replayer final : public chooser {
 public:
  replayer(const plan& path, const std::function<void(const option&)>& on_choice)
      : path_(path), on_choice_(on_choice) {}

  std::optional<std::size_t> choose(const std::vector<option>& options, std::optional<std::uint64_t>) override {
    const auto index = depth_ < path_.size() ? path_[depth_] : 0;
    ++depth_;
    if (index >= options.size()) throw std::out_of_range("the plan is of another world");
    if (on_choice_) on_choice_(options[index]);
    return index;
  }

 private:
  const plan& path_;
  const std::function<void(const option&)>& on_choice_;
  std::size_t depth_ = 0;
};

}  // namespace

search_result explore(const world& lives, const search_bounds& within) { return searcher(lives, within).run(); }

path_end replay(const world& lives, const plan& path, const std::function<void(const option&)>& on_choice) {
  replayer follows(path, on_choice);
  return lives(follows);
}

}  // namespace holdfast::sim::explore

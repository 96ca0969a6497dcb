// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/metrics.hpp>

namespace holdfast::test {

/// A strict reader of Prometheus' text format 0.0.4, which knows nothing of how ours is made. Throws at whatever a
/// scrape would refuse, and at what would be counted wrong: a series that is there twice, a histogram that does not
/// agree with itself.
class prometheus_text {
 public:
  explicit prometheus_text(const std::string& text) {
    if (text.empty() || text.back() != '\n') throw std::runtime_error("the last line has no end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) read(line);
    for (const auto& [labels, h] : histograms_) check(labels, h);
  }
  explicit prometheus_text(const metrics& of) : prometheus_text(written_by(of)) {}

  static std::string written_by(const metrics& of) {
    std::ostringstream to;
    of.write(to);
    return to.str();
  }

  /// Of the sample that is written so, up to its value; 0 where there is none.
  double operator[](const std::string& series) const {
    const auto found = values_.find(series);
    return found == values_.end() ? 0 : found->second;
  }
  bool has(const std::string& series) const { return values_.contains(series); }
  std::size_t size() const { return values_.size(); }
  const std::map<std::string, double>& samples() const { return values_; }
  const std::set<std::string>& families() const { return seen_; }

 private:
  struct buckets {
    std::vector<double> counts;
    double count = -1, sum = -1;
    bool ended = false;
  };

  void read(const std::string& line) {
    static const std::regex comment("# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
    static const std::regex sample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\[\\n"])*",?)+\})? (-?[0-9.]+))re");
    std::smatch m;
    if (std::regex_match(line, m, comment)) {
      if (m[1] == "HELP" && !seen_.insert(m[2]).second)
        throw std::runtime_error("a family that is there twice: " + line);
      if (m[1] == "TYPE" && (m[2] != last_help_ || !types_.emplace(m[2], m[3]).second))
        throw std::runtime_error("a type without its family: " + line);
      if (m[1] == "HELP") last_help_ = m[2];
      return;
    }
    if (!std::regex_match(line, m, sample)) throw std::runtime_error("no sample: " + line);
    const std::string name = m[1], series = line.substr(0, line.rfind(' '));
    const double value = std::stod(m[5]);
    if (!name.starts_with(last_help_) || !types_.contains(last_help_))
      throw std::runtime_error("a sample of another family: " + line);
    if (!values_.emplace(series, value).second) throw std::runtime_error("a series that is there twice: " + line);
    const auto suffix = name.substr(last_help_.size());
    const auto& type = types_[last_help_];
    if (type != "histogram" && !suffix.empty()) throw std::runtime_error("a sample of another family: " + line);
    if (type == "counter" && value < 0) throw std::runtime_error("a counter below 0: " + line);
    if (type != "histogram") return;
    static const std::regex end_of_bucket(R"re(,?le="([^"]*)")re");
    auto labels = std::regex_replace(series.substr(name.size()), end_of_bucket, "");
    if (labels == "{}") labels.clear();
    auto& h = histograms_[last_help_ + labels];
    if (suffix == "_bucket") {
      if (h.ended || (!h.counts.empty() && value < h.counts.back()))
        throw std::runtime_error("not cumulative: " + line);
      h.counts.push_back(value);
      h.ended = series.find("le=\"+Inf\"") != std::string::npos;
    } else if (suffix == "_count") {
      h.count = value;
    } else if (suffix == "_sum") {
      h.sum = value;
    } else {
      throw std::runtime_error("no part of a histogram: " + line);
    }
  }

  static void check(const std::string& labels, const buckets& h) {
    if (!h.ended || h.counts.back() != h.count || h.sum < 0)
      throw std::runtime_error("a histogram that does not agree with itself: " + labels);
  }

  std::string last_help_;
  std::set<std::string> seen_;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> values_;
  std::map<std::string, buckets> histograms_;
};

}  // namespace holdfast::test

// SPDX-License-Identifier: BSL-1.0
#include "bench/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace holdfast::bench {
namespace {

template <class Number>
std::string number(Number value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string json(double value) { return std::isfinite(value) ? number(value, "%.7g") : "null"; }

std::string json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      out += number(static_cast<unsigned>(c), "\\u%04x");
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

const char* sign_of(const limit& l) { return l.good == limit::side::at_most ? "<=" : ">="; }

const char* verdict(const bound& b) {
  if (!b.value) return "no value";
  if (!b.keeps) return "";
  return b.ok() ? "ok" : "MISSED";
}

std::string columns(const std::string& target, const std::string& value, const std::string& limit, const char* ok,
                    const std::string& what) {
  char text[96];
  std::snprintf(text, sizeof text, "%-22s %9s  %-9s %-8s  ", target.c_str(), value.c_str(), limit.c_str(), ok);
  return text + what;
}

}  // namespace

double quantile(double share, std::vector<double> values) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  if (at >= values.size()) throw std::out_of_range("no value");
  std::nth_element(values.begin(), values.begin() + static_cast<long>(at), values.end());
  return values[at];
}

bool bound::ok() const {
  if (!value || !std::isfinite(*value)) return false;
  return !keeps || (keeps->good == limit::side::at_most ? *value <= keeps->value : *value >= keeps->value);
}

std::string json_line(const bound& b) {
  std::string out =
      "{\"target\":" + json(b.target) + ",\"value\":" + (b.value ? json(*b.value) : "null") +
      ",\"limit\":" + (b.keeps ? json(b.keeps->value) : "null") + ",\"ok\":" + (b.ok() ? "true" : "false") +
      ",\"bound\":" + (b.keeps ? json(std::string_view(sign_of(*b.keeps))) : "null") + ",\"what\":" + json(b.what);
  for (const auto& [name, value] : b.made_of) out += "," + json(name) + ":" + json(value);
  if (!b.why.empty()) out += ",\"why\":" + json(b.why);
  return out + "}";
}

std::string table_head() { return columns("target", "value", "bound", "", "what"); }

std::string table_row(const bound& b) {
  std::string what = b.what;
  for (const char* between = ": "; const auto& [name, value] : b.made_of)
    what += std::exchange(between, ", ") + name + " " + number(value, "%.4g");
  if (!b.why.empty()) what += "; " + b.why;
  return columns(b.target, b.value ? number(*b.value, "%.3g") : "-",
                 b.keeps ? sign_of(*b.keeps) + number(b.keeps->value, " %.4g") : "", verdict(b), what);
}

long long calls_of(std::string_view info, std::string_view command) {
  const std::string key = "cmdstat_" + std::string(command) + ":calls=";
  const auto at = info.find(key);
  return at == info.npos ? 0 : std::stoll(std::string(info.substr(at + key.size(), 20)));
}

double number_in(std::string_view info, std::string_view name) {
  const std::string key = "\n" + std::string(name) + ":";
  const auto at = info.find(key);
  if (at == info.npos) throw std::runtime_error("INFO does not say " + std::string(name));
  return std::stod(std::string(info.substr(at + key.size(), 24)));
}

}  // namespace holdfast::bench

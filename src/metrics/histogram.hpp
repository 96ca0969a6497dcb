// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace holdfast::detail {

/// The upper end of a bucket, and how it is printed: what is equal to it is in the bucket.
struct bucket_end {
  std::int64_t value;
  std::string_view text;
};

/// Of durations, in nanoseconds and printed in seconds.
inline constexpr std::array duration_ends{
    bucket_end{500'000, "0.0005"},    bucket_end{1'000'000, "0.001"},     bucket_end{2'500'000, "0.0025"},
    bucket_end{5'000'000, "0.005"},   bucket_end{10'000'000, "0.01"},     bucket_end{25'000'000, "0.025"},
    bucket_end{50'000'000, "0.05"},   bucket_end{100'000'000, "0.1"},     bucket_end{250'000'000, "0.25"},
    bucket_end{500'000'000, "0.5"},   bucket_end{1'000'000'000, "1"},     bucket_end{2'500'000'000, "2.5"},
    bucket_end{5'000'000'000, "5"},   bucket_end{10'000'000'000, "10"},   bucket_end{30'000'000'000, "30"},
    bucket_end{60'000'000'000, "60"}, bucket_end{300'000'000'000, "300"}, bucket_end{3'600'000'000'000, "3600"}};
/// Of a part of something, in billionths of it.
inline constexpr std::array ratio_ends{
    bucket_end{50'000'000, "0.05"}, bucket_end{100'000'000, "0.1"}, bucket_end{250'000'000, "0.25"},
    bucket_end{400'000'000, "0.4"}, bucket_end{500'000'000, "0.5"}, bucket_end{600'000'000, "0.6"},
    bucket_end{700'000'000, "0.7"}, bucket_end{800'000'000, "0.8"}, bucket_end{1'000'000'000, "1"}};

/// Any thread. A reader that sees a count also sees every earlier count of the same thread.
class counter {
 public:
  void add(std::int64_t count = 1) noexcept { value_.fetch_add(count, std::memory_order_release); }
  std::int64_t get() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// The number of values in each bucket, and their sum. Any thread.
template <const auto& Ends>
class histogram {
 public:
  static constexpr const auto& ends = Ends;

  void add(std::int64_t value) noexcept {
    std::size_t n = first_of[63U - static_cast<unsigned>(std::countl_zero(static_cast<std::uint64_t>(value) | 1))];
    while (value > reaches_to[n]) ++n;
    sum_.add(value);
    buckets_[n].add();
  }
  /// The last one: larger than the largest end.
  std::array<std::int64_t, Ends.size() + 1> buckets() const noexcept {
    std::array<std::int64_t, Ends.size() + 1> all;
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = buckets_[n].get();
    return all;
  }
  std::int64_t count() const noexcept {
    std::int64_t all = 0;
    for (const auto& bucket : buckets_) all += bucket.get();
    return all;
  }
  std::int64_t sum() const noexcept { return sum_.get(); }

 private:
  /// By the place of a value's first bit: the first bucket that it may be in. Place 63 is that of a sign.
  static constexpr auto first_of = [] {
    std::array<std::uint8_t, 64> first{};
    for (std::size_t bit = 0; bit < 63; ++bit)
      while (first[bit] < Ends.size() && Ends[first[bit]].value < std::int64_t{1} << bit) ++first[bit];
    return first;
  }();
  static constexpr auto reaches_to = [] {
    std::array<std::int64_t, Ends.size() + 1> to{};
    for (std::size_t n = 0; n < Ends.size(); ++n) to[n] = Ends[n].value;
    to.back() = std::numeric_limits<std::int64_t>::max();
    return to;
  }();

  std::array<counter, Ends.size() + 1> buckets_;
  counter sum_;
};
using durations = histogram<duration_ends>;
using ratios = histogram<ratio_ends>;

}  // namespace holdfast::detail

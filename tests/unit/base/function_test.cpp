// SPDX-License-Identifier: BSL-1.0
#include "base/function.hpp"

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/catch.hpp"

using namespace holdfast;
using detail::function;

namespace {

/// How many of it live. Of the size of so many words.
template <std::size_t Words>
struct counted {
  explicit counted(int& living) : living_(&living) { ++living; }
  counted(counted&& other) noexcept : living_(other.living_) { ++*living_; }
  counted(const counted&) = delete;
  ~counted() { --*living_; }
  int operator()(int n) const { return n + *living_; }

 private:
  int* living_;
  std::array<void*, Words - 1> filling_{};
};

template <class Callable>
void check_a_life() {
  int living = 0;
  {
    function<int(int)> f = Callable(living);
    CHECK(living == 1);
    CHECK(f(41) == 42);
    auto moved = std::move(f);
    CHECK(living == 1);
    CHECK_FALSE(f);
    CHECK(moved(41) == 42);
    moved = Callable(living);
    CHECK(living == 1);
    moved = {};
    CHECK(living == 0);
    f = Callable(living);
    CHECK(std::exchange(f, {})(41) == 42);
    CHECK(living == 0);
    f = Callable(living);
  }
  CHECK(living == 0);
}

}  // namespace

TEST_CASE("a callback moves what it holds and destroys it once, small or large") {
  check_a_life<counted<2>>();
  check_a_life<counted<9>>();
}

TEST_CASE("a callback takes what can only be moved, may change it, and drops a value that nobody wants") {
  function<int()> next = [n = std::make_unique<int>(0)] { return ++*n; };
  next();
  CHECK(next() == 2);
  std::string heard;
  const function<void(std::string)> hear = [&](std::string text) {
    heard = std::move(text);
    return 7;
  };
  hear("news");
  CHECK(heard == "news");
}

TEST_CASE("a callback that throws stays whole") {
  int living = 0;
  function<void(bool)> f = [c = counted<2>(living)](bool fails) {
    if (fails) throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(f(true), std::runtime_error);
  f(false);
  CHECK(living == 1);
}

TEST_CASE("what is dropped by an assignment finds the callback assigned") {
  struct looks_back {
    function<void()>* at;
    bool* saw;
    looks_back(function<void()>& f, bool& s) : at(&f), saw(&s) {}
    looks_back(looks_back&& other) noexcept : at(std::exchange(other.at, nullptr)), saw(other.saw) {}
    ~looks_back() {
      if (at) *saw = static_cast<bool>(*at);
    }
    void operator()() const {}
  };
  bool saw_the_next = false;
  function<void()> f;
  f = looks_back(f, saw_the_next);
  f = [] {};
  CHECK(saw_the_next);
}

// SPDX-License-Identifier: BSL-1.0
#include <holdfast/metrics.hpp>

#include <ostream>

#include "metrics/exposition.hpp"
#include "metrics/metric_store.hpp"

namespace holdfast {

metrics::metrics(options options) : store_(std::make_unique<detail::metric_store>(options.lock_names)) {}

metrics::~metrics() = default;

// As bytes: a stream's width would pad them.
void metrics::write(std::ostream& to) const {
  const auto text = detail::exposition(*store_).text();
  to.write(text.data(), static_cast<std::streamsize>(text.size()));
}

void metrics::fence_rejected() noexcept { store_->count_fence_rejection(); }

void metrics::on(const event& event) noexcept { store_->count(event); }

void metrics::measured(const measurement& measurement) noexcept { store_->count(measurement); }

}  // namespace holdfast

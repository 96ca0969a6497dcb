// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include <holdfast/export.hpp>

#include "base/lease_clock.hpp"

namespace holdfast::detail {

/// The randomness that is passed in. Used on the client's strand only.
class HOLDFAST_EXPORT random_source {
 public:
  virtual std::uint64_t next() = 0;

  /// Uniform in [0, limit]; 0 when limit <= 0.
  lease_clock::duration up_to(lease_clock::duration limit);

 protected:
  ~random_source() = default;
};

/// getentropy(3), 256 bytes at a time. A failure ends the process: weak owner ids would break exclusion in silence.
class system_random final : public random_source {
 public:
  std::uint64_t next() override;

 private:
  std::array<std::uint64_t, 32> pool_{};
  std::size_t used_ = 32;
};

}  // namespace holdfast::detail

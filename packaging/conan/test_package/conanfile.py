# SPDX-License-Identifier: BSL-1.0
"""A user's project, copied by cmake/packaging/recipes.sh from tests/install/consumer."""
import os
from io import StringIO

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        printed = StringIO()
        status = self.run(os.path.join(self.cpp.build.bindir, "consumer") + " nonsense://localhost", env="conanrun",
                          stdout=printed, ignore_errors=True)
        if status != 3 or "holdfast::error: " not in printed.getvalue():
            raise ConanException(f"the consumer ended with {status}: {printed.getvalue()}")

# SPDX-License-Identifier: BSL-1.0
"""The recipe for Conan 2. cmake/packaging/recipes.sh writes conandata.yml beside it: the version, and where its source is."""
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir

required_conan_version = ">=2.0"


class Holdfast(ConanFile):
    name = "holdfast"
    description = "Distributed locks on Redis for Boost.Asio coroutines"
    license = "BSL-1.0"
    topics = ("redis", "lock", "mutex", "asio", "coroutines")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "with_tls": [True, False]}
    default_options = {"shared": False, "fPIC": True, "with_tls": True, "boost/*:header_only": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        self.version = self.version or next(iter(self.conan_data["sources"]))

    def configure(self):
        self.homepage = self.conan_data["homepage"] or None

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("hiredis/[>=0.14.1 <2]")
        if self.options.with_tls:
            self.requires("openssl/[>=1.1 <4]")

    def validate(self):
        check_min_cppstd(self, 20)

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for name in ("TESTS", "EXAMPLES", "BENCH", "CLI"):
            toolchain.cache_variables[f"HOLDFAST_BUILD_{name}"] = False
        toolchain.cache_variables["HOLDFAST_WITH_TESTING"] = False  # it needs Lua 5.1
        toolchain.cache_variables["HOLDFAST_WITH_TLS"] = bool(self.options.with_tls)
        toolchain.cache_variables["OPENTELEMETRY_INCLUDE_DIR"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        for folder in ("cmake", "pkgconfig"):  # Conan's generators make their own
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))

    def package_info(self):
        self.cpp_info.libs = ["holdfast"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.shared:
            self.cpp_info.defines = ["HOLDFAST_STATIC_DEFINE"]
        self.cpp_info.requires = ["boost::headers", "hiredis::hiredis"]
        if self.options.with_tls:
            self.cpp_info.requires += ["openssl::ssl", "openssl::crypto"]

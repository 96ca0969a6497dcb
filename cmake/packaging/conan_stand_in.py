# SPDX-License-Identifier: BSL-1.0
"""Stands in for a library of Conan Center: the system's own, under the names that Conan Center gives to it."""
from conan import ConanFile

# For each package its name in find_package(), and for each component its target and its library.
PACKAGES = {
    "boost": ("Boost", {"headers": ("Boost::headers", None)}),
    "hiredis": ("hiredis", {"hiredislib": ("hiredis::hiredis", "hiredis")}),
    "openssl": ("OpenSSL", {"crypto": ("OpenSSL::Crypto", "crypto"), "ssl": ("OpenSSL::SSL", "ssl")}),
}


class StandIn(ConanFile):
    package_type = "shared-library"
    options = {"header_only": [True, False]}
    default_options = {"header_only": True}

    def package_info(self):
        file_name, components = PACKAGES[self.name]
        self.cpp_info.set_property("cmake_file_name", file_name)
        for name, (target, library) in components.items():
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", target)
            component.includedirs = component.libdirs = component.bindirs = []
            component.system_libs = [library] if library else []
